package choreo

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// orderOf is an order as a node would be brought it.
func orderOf(n *node, what, task string) worklist.Order {
	o := worklist.Order{What: what}
	if what != worklist.Cancel {
		o.Item = n.itemAt(task)
	}
	return o
}

// order has a person bring a node an order.
func (s *story) order() string {
	n, task := s.node(1), ""
	if len(s.d.CmdArgs) > 3 {
		task = s.d.CmdArgs[3].Key
	}
	o := orderOf(n, s.d.CmdArgs[2].Key, task)
	o.Reason, o.To = s.arg("reason"), workflow.PartnerID(s.arg("to"))
	return s.put(n, s.w.word(s.speaker(), o))
}

func (s *story) asks() string {
	var b strings.Builder
	for _, a := range s.node(0).m.Asks() {
		fmt.Fprintf(&b, "%s of %s", a.Task, a.Partner)
		if a.Presumed {
			b.WriteString(" (presumed)")
		}
		if a.Left {
			b.WriteString(" (left so)")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// Another attempt by order counts only where its holder names an order that asks for it, once.
func TestDoneAgainOnlyByOrder(t *testing.T) {
	w := newMesh(t, parse(t, "workflow: w\ntasks:\n  a: {}\n  b: {after: a}\n"))
	w.annex = &fact.Annex{Responsible: "u"}
	w.people["u"] = fact.Speaker{User: "u", At: "one"}
	if err := w.start("one", w.genesis(map[workflow.PartitionName]workflow.PartnerID{"main": "one"}, "one",
		"two")); err != nil {
		t.Fatal(err)
	}
	w.stabilize(false)
	n := w.nodes["one"]
	old := n.m.state.BySlot()["a"].Current
	n.m.TaskEnded(old.ID, 1, Result{Failed: true, Reason: "fog"}, w.moment(), w)
	w.step(n)
	verdict := n.m.state.BySlot()["a"].Outcome.At.ID
	again := func(by *node, after fact.AttemptID, task workflow.TaskName, order fact.ID) string {
		b := fact.Assign{After: after, Verdict: verdict, Task: task, Partner: by.id}
		return by.m.mustAppend(w.moment(), fact.Body{Assign: &b, Annex: &fact.Annex{Order: &order}}).Why
	}
	say := func(what string) fact.ID {
		c := w.word(w.people["u"], worklist.Order{Item: state.ItemOf(old.ID), What: what})
		return n.m.mustAppend(w.moment(), fact.Body{Claim: c}).ID
	}
	elsewhere := func() string {
		b := fact.Assign{After: old.ID, Verdict: verdict, Task: "a", Partner: "two"}
		order := say(worklist.Again)
		return n.m.mustAppend(w.moment(), fact.Body{Assign: &b, Annex: &fact.Annex{Order: &order}}).Why
	}
	w.lies = true
	if got := elsewhere(); !strings.Contains(got, "or the partner that the order names") {
		t.Errorf("by one whom no order names: %q", got)
	}
	goOn := say(worklist.Continue)
	order := say(worklist.Again)
	w.stabilize(false)
	for what, got := range map[string]string{
		"no order asked for it": again(n, old.ID, "a", fact.ID{1}) + again(n, old.ID, "a", goOn),
		"by order the holder":   again(n, old.ID, "b", order),
	} {
		if !strings.Contains(got, what) {
			t.Errorf("it says %q, want %q", got, what)
		}
	}
	if got := again(w.nodes["two"], old.ID, "a", order); !strings.Contains(got, "by order the holder") {
		t.Errorf("by another partner: %q", got)
	}
	if sl := n.m.state.BySlot()["a"]; sl.State != workflow.Running || len(sl.Attempts) != 2 {
		t.Fatalf("a is %s, %d attempts: want it to run once more", sl.State, len(sl.Attempts))
	}
	if got := again(n, old.ID, "a", order); !strings.Contains(got, "had been done once more") {
		t.Errorf("twice: %q", got)
	}
}

// So many orders are taken in an instance at one partner; what else people say takes nothing of that.
func TestSoManyOrders(t *testing.T) {
	w, n := wardOf(t, 1, 1)
	for k := range fact.MaxPersonIdleFacts { // others are loud first
		_ = w.selects(n, "u", n.itemAt("t0"), 2*k)
		_ = w.giveUp(n, "u", n.itemAt("t0"), 2*k+1)
	}
	w.people["one"] = fact.Speaker{User: "one", At: "one"}
	orders, err := 0, error(nil)
	for k := range 1000 {
		o := worklist.Order{Item: n.itemAt("t0"), What: worklist.Stop, Reason: strings.Repeat("x", 1000)}
		if sl := n.m.state.BySlot()["t0"]; sl.State == workflow.Failed {
			o.What = worklist.Again
		}
		if _, err = w.put(n, w.ofUser("one", o, 5000+k)); err != nil {
			break
		}
		orders++
	}
	if orders < 32 || orders > fact.MaxPersonOrderFacts || !errors.Is(err, state.ErrNotNow) {
		t.Errorf("%d orders were taken, then: %v", orders, err)
	}
	if sl := n.m.state.BySlot()["t0"]; len(sl.Attempts) != 1+orders/2 {
		t.Errorf("%d attempts after %d orders", len(sl.Attempts), orders)
	}
}

// An order that cannot be carried out does not keep those after it from being: here `again`, of what others
// only presume to have failed, though its holder wrote it down.
func TestAnOrderThatCannotBeFollowedHidesNone(t *testing.T) {
	w := newMesh(t, parse(t, "workflow: w\ntasks:\n  a: {type: manual}\n  b: {after: a}\npartitions: {p: [a], q: [b]}\n"))
	w.annex = &fact.Annex{Responsible: "u"}
	w.people["u"] = fact.Speaker{User: "u", At: "two"}
	if err := w.start("two", w.genesis(map[workflow.PartitionName]workflow.PartnerID{"p": "one", "q": "two"}, "two",
		"one")); err != nil {
		t.Fatal(err)
	}
	w.stabilize(false)
	one, two := w.nodes["one"], w.nodes["two"]
	a := one.m.state.BySlot()["a"].Current
	two.m.mustAppend(w.moment(), fact.Body{Verdict: &fact.Verdict{
		Cause: fact.CauseExpired, Actions: []fact.Action{{Attempt: a.ID, Kind: workflow.FailBlock}},
	}})
	w.step(two)
	w.meet("one", "two")
	w.stabilize(false)
	if a = one.m.state.BySlot()["a"].Current; !one.m.state.Unhandled(a) || !one.m.state.Wanted(a) {
		t.Fatalf("a is %s at its holder: want it presumed to have failed, and going on", a.Slot.State)
	}
	again := w.word(w.people["u"], worklist.Order{Item: state.ItemOf(a.ID), What: worklist.Again})
	if _, err := w.put(one, again); !errors.Is(err, state.ErrNotNow) {
		t.Fatalf("it is to be done again while it goes on: %v", err)
	}
	one.m.mustAppend(w.moment(), fact.Body{Claim: again}) // all the same
	w.step(one)
	if _, err := w.put(one, w.word(w.people["u"],
		worklist.Order{Item: state.ItemOf(a.ID), What: worklist.Stop})); err != nil {
		t.Fatal(err)
	}
	w.stabilize(false)
	if sl := one.m.state.BySlot()["a"]; !sl.Attempts[0].EndedByHolder() {
		t.Errorf("a is %s, and its holder goes on with it: want it stopped", sl.State)
	}
}

// Of two orders about a failure that come before the first is carried out the second is refused, and says who gave the
// first: at the holder, and at another that writes orders down in its place.
func TestOfTwoOrdersAtOnceOneIsRefused(t *testing.T) {
	for _, at := range []workflow.PartnerID{"one", "two"} {
		for _, first := range []worklist.Order{{What: worklist.Skip, Reason: "fog"}, {What: worklist.Again, To: at}} {
			w := newMesh(t, parse(t,
				"workflow: w\nadministrators: boss\ntasks:\n  a: {type: manual}\n  b: {after: a}\npartitions: {p: [a], q: [b]}\n"))
			w.annex = &fact.Annex{Responsible: "u"}
			for _, u := range []worklist.User{"u", "v"} {
				w.people[u] = fact.Speaker{User: u, At: at, Roles: []workflow.RoleName{"boss"}}
			}
			plan := map[workflow.PartitionName]workflow.PartnerID{"p": "one", "q": "two"}
			if err := w.start("two", w.genesis(plan, "two", "one")); err != nil {
				t.Fatal(err)
			}
			w.stabilize(false)
			n, cause := w.nodes[at], fact.CauseReported
			if at == "two" {
				cause = fact.CauseExpired
			}
			a := n.m.state.BySlot()["a"].Current
			n.m.mustAppend(w.moment(), fact.Body{Verdict: &fact.Verdict{
				Cause: cause, Actions: []fact.Action{{Attempt: a.ID, Kind: workflow.FailBlock}},
			}})
			w.step(n)
			order := func(u worklist.User, o worklist.Order) error {
				o.Item = state.ItemOf(a.ID)
				_, err := n.m.Claim(w.ofUser(u, o, len(o.What)), w.moment(), w)
				return err
			}
			if err := order("u", first); err != nil {
				t.Fatal(err)
			}
			var was *Decided
			for _, what := range []string{worklist.Again, worklist.Skip} {
				o := worklist.Order{What: what, Reason: "calm"}
				if what == worklist.Again {
					o.To = at
				}
				err := order("v", o)
				if !errors.As(err, &was) || was.By != "u" || !errors.Is(err, state.ErrNotNow) {
					t.Errorf("at %s, after %s: %s is answered %v", at, first.What, what, err)
				}
			}
			w.step(n)
			after := order("v", worklist.Order{What: worklist.Again, Reason: "calm", To: at}) // about what the other ended
			if !errors.As(after, &was) || was.By != "u" || was.Then == "" {
				t.Errorf("at %s, once the %s was carried out: again is answered %v", at, first.What, after)
			}
			if sl := n.m.state.BySlot()["a"]; len(sl.Attempts) != 2 || sl.Current.Skips != (first.What == worklist.Skip) {
				t.Errorf("at %s the %s was not carried out: a is %s", at, first.What, sl.State)
			}
		}
	}
}

// An order is charged with what it costs its holder, and one person cannot use up what all may order.
func TestWhatAnOrderCosts(t *testing.T) {
	w := newMesh(t, parse(t, "workflow: w\nadministrators: boss\ntasks:\n  a: {retries: {times: 20}}\n"))
	w.annex = &fact.Annex{Responsible: "u"}
	for _, u := range []worklist.User{"u", "v"} {
		w.people[u] = fact.Speaker{User: u, At: "one", Roles: []workflow.RoleName{"boss"}}
	}
	if err := w.start("one", w.genesis(map[workflow.PartitionName]workflow.PartnerID{"main": "one"}, "one",
		"two")); err != nil {
		t.Fatal(err)
	}
	n := w.nodes["one"]
	fail := func() {
		for range 100 {
			if n.m.state.BySlot()["a"].State == workflow.Failed {
				return
			}
			if id, runs := n.jobOf("a"); runs {
				w.end(n, id, Result{Failed: true, Reason: "fog"})
			}
			w.advance(time.Hour)
		}
		t.Fatal("a does not fail")
	}
	taken := map[worklist.User]int{}
	for _, u := range []worklist.User{"u", "v"} {
		for k := range 100 {
			fail()
			before := len(n.m.log.Order())
			if _, err := w.put(n, w.ofUser(u, orderOf(n, worklist.Again, "a"), k)); err != nil {
				if !errors.Is(err, state.ErrNotNow) || !strings.Contains(err.Error(), "what you ordered") {
					t.Fatalf("%s, after %d: %v", u, k, err)
				}
				break
			}
			taken[u]++
			fail()
			if wrote, most := len(n.m.log.Order())-before,
				n.m.state.OrderTakes(&fact.Claim{}, orderOf(n, worklist.Again, "a")).Facts; wrote > most {
				t.Fatalf("%d facts followed an order that was charged as %d", wrote, most)
			}
		}
	}
	if taken["u"] == 0 || taken["u"] != taken["v"] || taken["u"] > fact.MaxPersonOrderFacts/40 {
		t.Errorf("%d orders of u and %d of v were taken: want as many of each, each charged with its 21 tries",
			taken["u"], taken["v"])
	}
}

// A holder that stopped after it had begun the attempt at what is to be left out, and before it ended that, does so
// when it is back: the task is not done.
func TestLeftOutAlsoAfterACrash(t *testing.T) {
	w := newMesh(t, parse(t, "workflow: w\ntasks:\n  a: {}\n  b: {after: a}\n"))
	w.annex = &fact.Annex{Responsible: "u"}
	w.people["u"] = fact.Speaker{User: "u", At: "one"}
	if err := w.start("one", w.genesis(map[workflow.PartitionName]workflow.PartnerID{"main": "one"}, "one",
		"two")); err != nil {
		t.Fatal(err)
	}
	w.stabilize(false)
	n := w.nodes["one"]
	old := n.m.state.BySlot()["a"].Current
	n.m.TaskEnded(old.ID, 1, Result{Failed: true, Reason: "fog"}, w.moment(), w)
	w.step(n)
	c := w.word(w.people["u"], worklist.Order{Item: state.ItemOf(old.ID), What: worklist.Skip, Reason: "storm"})
	order := n.m.mustAppend(w.moment(), fact.Body{Claim: c}).ID
	b := fact.Assign{After: old.ID, Verdict: n.m.state.BySlot()["a"].Outcome.At.ID, Task: "a", Partner: n.id}
	if e := n.m.mustAppend(w.moment(), fact.Body{Assign: &b, Annex: &fact.Annex{Order: &order}}); !e.Counted {
		t.Fatal(e.Why)
	}
	w.step(n)
	w.stabilize(false)
	a := n.m.state.BySlot()["a"]
	if a.State != workflow.Failed || a.Outcome.Action.Kind != workflow.FailRelease || a.Current.Start != nil {
		t.Errorf("a is %s, by %+v, started: %v", a.State, a.Outcome, a.Current.Start != nil)
	}
	if b := n.m.state.BySlot()["b"]; b.State != workflow.Running {
		t.Errorf("b is %s", b.State)
	}
}
