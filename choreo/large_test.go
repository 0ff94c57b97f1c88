package choreo

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is about work that is large: what fits into no fact as a whole is
// split, or fails with the limit, and nobody waits for ever.

// fanIn is a definition of n tasks that one task waits for.
func fanIn(n int) string {
	var b strings.Builder
	b.WriteString("workflow: fanin\ntasks:\n")
	for i := range n {
		fmt.Fprintf(&b, "  t%d: {type: manual}\n", i)
	}
	b.WriteString("  join: {after: [")
	for i := range n {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "t%d", i)
	}
	b.WriteString("]}\n")
	return b.String()
}

// insertBodies puts facts of a machine's own into its log, folded at once.
func (m *Machine) insertBodies(t *testing.T, bodies []fact.Body) {
	t.Helper()
	var es []*log.Entry
	for _, b := range bodies {
		f := m.deciding(Moment{}, nil).next(b, nil)
		raw, id, err := f.Encode()
		if err != nil {
			t.Fatal(err)
		}
		e, err := m.log.Insert(f, raw, id, nil)
		if err != nil {
			t.Fatal(err)
		}
		m.own = e
		es = append(es, e)
	}
	m.unsaved = append(m.unsaved, es...)
	m.state.Fold(es)
}

// alone has one partner hold all of a definition.
func alone(t *testing.T, src string) (*mesh, *node) {
	t.Helper()
	w := newMesh(t, parse(t, src))
	if err := w.start("one", w.genesis(map[workflow.PartitionName]workflow.PartnerID{"main": "one"}, "one",
		"two")); err != nil {
		t.Fatal(err)
	}
	return w, w.nodes["one"]
}

// TestJoinOfThousands: a task that waits for 7,000 others starts, with a fact that is
// no larger for it, and what it built upon is known all the same.
func TestJoinOfThousands(t *testing.T) {
	const n = 7000
	w, one := alone(t, fanIn(n))
	var done []fact.Body
	for i := range n {
		a := fact.AttemptID{Slot: workflow.TaskName(fmt.Sprintf("t%d", i))}
		done = append(done, fact.Body{Start: &fact.Start{Attempt: a, Try: 1}},
			fact.Body{Success: &fact.Success{Attempt: a, Try: 1}})
	}
	one.m.insertBodies(t, done)
	w.step(one)
	join := one.m.state.BySlot()["join"].Current
	if join.Start == nil {
		t.Fatalf("join is %s and was not started", join.Slot.State)
	}
	if size := len(join.Start.Raw); size > 300 {
		t.Errorf("its start takes %d bytes", size)
	}
	built := 0
	for range one.m.state.BuiltOn(join, join.Start) {
		built++
	}
	if built != n {
		t.Errorf("it built upon %d results, want %d", built, n)
	}
}

// TestJoinOfSharedContingencies: 260 tasks share a line of 30 contingencies that one
// task's rule mentions: each of their results is consumed once.
func TestJoinOfSharedContingencies(t *testing.T) {
	const n, line = 260, 30
	var b strings.Builder
	b.WriteString("workflow: shared\ntasks:\n")
	for i := range n {
		fmt.Fprintf(&b, "  t%d: {type: manual, on-failure: {contingency: c0}}\n", i)
	}
	for i := range line - 1 {
		fmt.Fprintf(&b, "  c%d: {on-failure: {contingency: c%d}}\n", i, i+1)
	}
	fmt.Fprintf(&b, "  c%d: {}\n  join: {when: '", line-1)
	for i := range line {
		fmt.Fprintf(&b, "failed(\"c%d\") or ", i)
	}
	b.WriteString("succeeded(\"t0\")'}\n")
	w, one := alone(t, b.String())
	var done []fact.Body
	for i := range n {
		a := fact.AttemptID{Slot: workflow.TaskName(fmt.Sprintf("t%d", i))}
		done = append(done, fact.Body{Start: &fact.Start{Attempt: a, Try: 1}},
			fact.Body{Success: &fact.Success{Attempt: a, Try: 1}})
	}
	one.m.insertBodies(t, done)
	w.step(one)
	join := one.m.state.BySlot()["join"].Current
	if join.Start == nil {
		t.Fatalf("join is %s and was not started", join.Slot.State)
	}
	built := 0
	for range one.m.state.BuiltOn(join, join.Start) {
		built++
	}
	if built != n {
		t.Errorf("it built upon %d results, want %d", built, n)
	}
}

// TestVerdictOnThousands: a partner with thousands of tasks is gone. The verdicts on
// them are as many as that takes, all go to one partner, and a third reads them.
func TestVerdictOnThousands(t *testing.T) {
	for _, n := range []int{1, fact.MaxActions, fact.MaxActions + 1, 4000} {
		var b strings.Builder
		b.WriteString("workflow: big\ntasks:\n")
		names := make([]string, n)
		for i := range n {
			names[i] = fmt.Sprintf("t%d", i)
			fmt.Fprintf(&b, "  t%d: {type: manual, timeout: 1h, on-failure: {contingency: spare}}\n", i)
		}
		fmt.Fprintf(&b, "  spare: {type: manual, timeout: 1h}\n  z: {type: manual}\npartitions:\n  p1: [z]\n  p2: [%s]\n", strings.Join(names, ", "))
		w := newMesh(t, parse(t, b.String()))
		w.takers["spare"] = "three"
		at := map[workflow.PartitionName]workflow.PartnerID{"p1": "one", "p2": "two"}
		if err := w.start("one", w.genesis(at, "one", "two", "three")); err != nil {
			t.Fatal(err)
		}
		one := w.nodes["one"]
		w.gone["two"] = true
		w.now += time.Hour
		w.step(one)
		if got, want := counted(one.m, "verdict"), (n+fact.MaxActions-1)/fact.MaxActions; got != want {
			t.Errorf("%d tasks: %d verdicts, want %d", n, got, want)
		}
		for _, sl := range one.m.state.Slots() {
			if sl.Task.Name != "z" && (sl.Current.Partner != "three" || sl.Current.Depth != 2 ||
				sl.State != workflow.Ready) {
				t.Fatalf("%d tasks: %s is %s at %s", n, sl.Task.Name, sl.State, sl.Current.Partner)
			}
		}
		w.stabilize(false)
		if three := w.nodes["three"]; counted(three.m, "verdict") != counted(one.m, "verdict") || len(three.errs) > 0 {
			t.Errorf("%d tasks: three has %d verdicts, errors %v", n, counted(three.m, "verdict"), three.errs)
		}
	}
}

// TestUnitStaysWholeInSplitVerdicts: the contingencies of a large partition that one
// partner can take all go to that one, whatever fact names them.
func TestUnitStaysWholeInSplitVerdicts(t *testing.T) {
	const n = 3 * fact.MaxActions
	var b strings.Builder
	b.WriteString("workflow: unit\ntasks:\n")
	names := make([]string, n)
	for i := range n {
		names[i] = fmt.Sprintf("t%d", i)
		fmt.Fprintf(&b, "  t%d: {type: manual, timeout: 1h, on-failure: {contingency: c%d}}\n  c%d: {type: manual}\n",
			i, i, i)
	}
	fmt.Fprintf(&b, "  z: {type: manual}\npartitions:\n  p1: [z]\n  p2: [%s]\n", strings.Join(names, ", "))
	w := newMesh(t, parse(t, b.String()))
	asked := dice(rand.New(rand.NewPCG(1, 1)).IntN)
	if err := w.start("one", w.genesis(map[workflow.PartitionName]workflow.PartnerID{"p1": "one", "p2": "two"}, "one",
		"two", "three", "four")); err != nil {
		t.Fatal(err)
	}
	one := w.nodes["one"]
	w.dice = func(n int) int { return asked(n - 1) } // anybody, each time another
	w.gone["two"] = true
	w.now += time.Hour
	w.step(one)
	who := map[workflow.PartnerID]int{}
	for _, sl := range one.m.state.Slots() {
		if sl.Task.Name != "z" {
			who[sl.Current.Partner]++
		}
	}
	if len(who) != 1 || who["two"] > 0 {
		t.Errorf("the contingencies are at %v, want one partner for all", who)
	}
}

// TestStartBeyondTheLimit: where a start would have to name more than fits into a
// fact, its attempt fails and says so; nothing loops. It names what counts otherwise than
// the author's choice says: here early was built upon all replacements, and the originals,
// which are preferred, are heard of later.
func TestStartBeyondTheLimit(t *testing.T) {
	const n = 2200
	long := strings.Repeat("x", 90)
	var b strings.Builder
	b.WriteString("workflow: long\ntasks:\n")
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("%s%d", long, i))
		fmt.Fprintf(&b, "  %s: {timeout: 1h, on-failure: {contingency: spare}, reconcile: keep-original}\n", names[i])
	}
	all := strings.Join(names, ", ")
	fmt.Fprintf(&b, "  spare: {type: manual}\n  early: {type: manual, after: [%s]}\n  join: {after: [early, %s]}\n",
		all, all)
	fmt.Fprintf(&b, "partitions:\n  p1: [early, join]\n  p2: [%s]\n", all)
	w := newMesh(t, parse(t, b.String()))
	w.takers["spare"] = "one"
	at := map[workflow.PartitionName]workflow.PartnerID{"p1": "one", "p2": "two"}
	if err := w.start("one", w.genesis(at, "one", "two")); err != nil {
		t.Fatal(err)
	}
	one := w.nodes["one"]
	w.stabilize(false)
	done := func(n *node) {
		var done []fact.Body
		for _, x := range names {
			a := n.m.state.BySlot()[workflow.TaskName(x)].Current
			if a.Start == nil {
				done = append(done, fact.Body{Start: &fact.Start{Attempt: a.ID, Try: 1}})
			}
			done = append(done, fact.Body{Success: &fact.Success{Attempt: a.ID, Try: 1}})
		}
		n.m.insertBodies(t, done)
		w.step(n)
	}
	w.gone["two"] = true
	w.now += time.Hour
	w.step(one)
	done(one)
	early := one.m.state.BySlot()["early"].Current
	begun := fact.Start{Attempt: early.ID, Try: 1, Consumed: one.m.state.Consumed(early)}
	one.m.insertBodies(t, []fact.Body{{Start: &begun}})
	w.step(one)
	w.mail = nil
	done(w.nodes["two"])
	w.gone["two"] = false
	w.meet("one", "two")
	w.stabilize(false)
	one.m.insertBodies(t, []fact.Body{{Success: &fact.Success{Attempt: early.ID, Try: 1}}})
	now := w.moment()
	r := one.m.Decide(now, w)
	join := one.m.state.BySlot()["join"]
	if join.State != workflow.Failed || !strings.Contains(join.Outcome.At.Fact.Body.Verdict.Reason, "at most 262144") {
		t.Errorf("join is %s; %+v", join.State, join.Outcome)
	}
	if len(r.Beyond) != 1 {
		t.Errorf("reported as beyond a limit: %v", r.Beyond)
	}
	if again := one.m.Decide(now, w); len(again.Persist) > 0 || len(again.Beyond) > 0 {
		t.Errorf("the next decision adds %d facts: %v", len(again.Persist), again.Beyond)
	}
}
