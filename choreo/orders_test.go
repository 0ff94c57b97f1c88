package choreo

import (
	"errors"
	"fmt"
	"strings"
	"testing"

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
	o.Reason = s.arg("reason")
	return s.put(n, s.w.word(s.speaker(), o))
}

func (s *story) asks() string {
	var b strings.Builder
	for _, a := range s.node(0).m.Asks() {
		fmt.Fprintf(&b, "%s of %s", a.Task, a.Partner)
		if a.Presumed {
			b.WriteString(" (presumed)")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// Another attempt by order counts only where its holder names an order that asks for it, once.
func TestDoneAgainOnlyByOrder(t *testing.T) {
	w := newMesh(t, parse(t, "workflow: w\ntasks:\n  a: {}\n  b: {after: a}\n"))
	w.annex = &Annex{Responsible: "u"}
	w.people["u"] = Speaker{User: "u", At: "one"}
	if err := w.start("one", w.genesis(map[workflow.PartitionName]workflow.PartnerID{"main": "one"}, "one", "two")); err != nil {
		t.Fatal(err)
	}
	w.stabilize(false)
	n := w.nodes["one"]
	old := n.m.state.bySlot["a"].Current
	n.m.TaskEnded(old.ID, 1, Result{Failed: true, Reason: "fog"}, w.moment(), w)
	w.step(n)
	verdict := n.m.state.bySlot["a"].Outcome.at.id
	again := func(by *node, after AttemptID, task workflow.TaskName, order FactID) string {
		b := Assign{After: after, Verdict: verdict, Task: task, Partner: by.id}
		return by.m.mustAppend(w.moment(), Body{Assign: &b, Annex: &Annex{Order: &order}}).why
	}
	say := func(what string) FactID {
		c := w.word(w.people["u"], worklist.Order{Item: itemOf(old.ID), What: what})
		return n.m.mustAppend(w.moment(), Body{Claim: c}).id
	}
	goOn := say(worklist.Continue)
	order := say(worklist.Again)
	w.stabilize(false)
	for what, got := range map[string]string{
		"no order asked for it": again(n, old.ID, "a", FactID{1}) + again(n, old.ID, "a", goOn),
		"by order the holder":   again(n, old.ID, "b", order),
	} {
		if !strings.Contains(got, what) {
			t.Errorf("it says %q, want %q", got, what)
		}
	}
	if got := again(w.nodes["two"], old.ID, "a", order); !strings.Contains(got, "by order the holder") {
		t.Errorf("by another partner: %q", got)
	}
	if sl := n.m.state.bySlot["a"]; sl.State != workflow.Running || len(sl.Attempts) != 2 {
		t.Fatalf("a is %s, %d attempts: want it to run once more", sl.State, len(sl.Attempts))
	}
	if got := again(n, old.ID, "a", order); !strings.Contains(got, "had been done once more") {
		t.Errorf("twice: %q", got)
	}
}

// So many orders are taken in an instance at one partner; what else people say takes nothing of that.
func TestSoManyOrders(t *testing.T) {
	w, n := wardOf(t, 1, 1)
	for k := range MaxPersonIdleFacts { // others are loud first
		_ = w.selects(n, "u", n.itemAt("t0"), 2*k)
		_ = w.giveUp(n, "u", n.itemAt("t0"), 2*k+1)
	}
	w.people["one"] = Speaker{User: "one", At: "one"}
	orders, err := 0, error(nil)
	for k := range 1000 {
		o := worklist.Order{Item: n.itemAt("t0"), What: worklist.Stop, Reason: strings.Repeat("x", 1000)}
		if sl := n.m.state.bySlot["t0"]; sl.State == workflow.Failed {
			o.What = worklist.Again
		}
		if _, err = w.put(n, w.ofUser("one", o, 5000+k)); err != nil {
			break
		}
		orders++
	}
	if orders < 32 || orders > MaxOrderFacts || !errors.Is(err, ErrNotNow) {
		t.Errorf("%d orders were taken, then: %v", orders, err)
	}
	if sl := n.m.state.bySlot["t0"]; len(sl.Attempts) != 1+orders/2 {
		t.Errorf("%d attempts after %d orders", len(sl.Attempts), orders)
	}
}
