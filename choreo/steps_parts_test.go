package choreo

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// crowd is an instance of n partitions with a time-out that one partner holds: half of
// them write a data item, and the others wait for it; another partner may judge.
func crowd(t testing.TB, n int) (w *mesh, m *Machine) {
	var b strings.Builder
	b.WriteString("workflow: crowd\ndata: {x: {type: integer}}\ntasks:\n")
	for i := range n {
		if i < n/2 {
			fmt.Fprintf(&b, "  t%05d: {timeout: 1h, out: [x]}\n", i)
		} else {
			fmt.Fprintf(&b, "  t%05d: {timeout: 1h, when: x > 5}\n", i)
		}
	}
	b.WriteString("partitions:\n")
	for i := range n {
		fmt.Fprintf(&b, "  p%05d: {tasks: [t%05d]}\n", i, i)
	}
	w = newMesh(t, parse(t, b.String()))
	holders := map[workflow.PartitionName]workflow.PartnerID{}
	for _, p := range w.plan.Partitions() {
		holders[p.Name] = "two"
	}
	if err := w.start("one", w.genesis(holders, "one", "two", "three")); err != nil {
		t.Fatal(err)
	}
	return w, w.nodes["one"].m
}

// What many partitions wait for is kept once, and takes as much as the definition.
func TestStepsOfManyPartitionsThatWait(t *testing.T) {
	growth(t, 20, func(n int) (int, int) {
		_, m := crowd(t, n)
		kept := 0
		for _, p := range m.state.Plan().Partitions() {
			if m.before(p.Name); m.desk.part(p.Name).before == 0 && m.state.BySlot()[p.Tasks[0]].Task.Rule != nil {
				t.Errorf("%s waits for nothing", p.Name)
			}
		}
		for _, ws := range m.desk.awaited {
			kept += len(ws)
		}
		return m.log.Steps + kept, n
	})
}

// Whether those who hold many partitions have heard of what these wait for is asked
// once, of what ended last.
func TestStepsOfManyPartitionsThatWereHandedOver(t *testing.T) {
	growth(t, 20, func(n int) (int, int) {
		w, m := crowd(t, n)
		two := penOf(t, m, "two", 7)
		var facts []fact.Received
		for i := range n / 2 {
			a := fact.AttemptID{Slot: workflow.TaskName(fmt.Sprintf("t%05d", i))}
			seen := []fact.Head{}
			if i == 0 {
				seen = append(seen, m.log.Genesis().Head())
			}
			facts = append(facts, two.write(fact.Body{Start: &fact.Start{Attempt: a, Try: 1}}, seen...),
				two.write(fact.Body{Success: &fact.Success{Attempt: a, Try: 1, Outputs: writesX(7)}}))
		}
		m.mustTake(t, facts...)
		before := m.log.Steps
		w.now += time.Minute
		m.Decide(w.moment(), w)
		var left []*state.Attempt
		for _, p := range m.state.Plan().Partitions() {
			left = append(left, m.mayJudge(p.Name)...)
			m.unheard(m.unfinishedIn(p.Name), false)
		}
		if len(left) != n/2 {
			t.Errorf("%d of %d tasks may be judged", len(left), n/2)
		}
		return m.log.Steps - before, n
	})
}

// A fact costs the same however many partitions and participants may have to be judged:
// all are looked at now and then, here once in a tenth of a second for a thousand.
func TestStepsOfWatchingManyPartitions(t *testing.T) {
	growth(t, 20, func(n int) (int, int) {
		w, m := crowd(t, n)
		before := m.log.Steps
		facts := words(t, m, n)
		for _, f := range facts {
			w.now += time.Millisecond
			m.mustTake(t, f)
			m.Decide(w.moment(), w)
		}
		return m.log.Steps - before, len(facts)
	})
}

// What waits to be undone, because a participant is silent, costs what else is said the
// same however much it is: all of it is looked at now and then.
func TestStepsOfWaitingToUndo(t *testing.T) {
	growth(t, 10, func(n int) (int, int) {
		var b strings.Builder
		b.WriteString("workflow: lost\ntasks:\n  b: {compensate: u}\n  u: {}\n")
		for i := range n {
			fmt.Fprintf(&b, "  t%05d: {on-failure: {contingency: b}, compensate: u}\n", i)
		}
		w := newMesh(t, parse(t, b.String()))
		if err := w.start("one", w.genesis(map[workflow.PartitionName]workflow.PartnerID{"main": "three"}, "one", "two",
			"three", "four")); err != nil {
			t.Fatal(err)
		}
		m := w.nodes["one"].m
		two, three := penOf(t, m, "two", 7), penOf(t, m, "three", 7)
		facts := []fact.Received{
			two.write(fact.Body{Seen: &fact.Seen{}}, m.log.Genesis().Head()),
			three.write(fact.Body{Seen: &fact.Seen{}}, m.log.Genesis().Head()),
		}
		for i := range n {
			a := fact.AttemptID{Slot: workflow.TaskName(fmt.Sprintf("t%05d", i))}
			act := fact.Action{Attempt: a, Kind: workflow.FailContingency, Task: "b", Partner: "two"}
			v := two.write(fact.Body{Verdict: &fact.Verdict{Cause: fact.CauseTimeout, Actions: []fact.Action{act}}})
			next := fact.AttemptID{Fact: v.ID, Slot: a.Slot}
			facts = append(facts, v, two.write(fact.Body{Start: &fact.Start{Attempt: next, Try: 1}}),
				two.write(fact.Body{Success: &fact.Success{Attempt: next, Try: 1}}),
				three.write(fact.Body{Start: &fact.Start{Attempt: a, Try: 1}}),
				three.write(fact.Body{Success: &fact.Success{Attempt: a, Try: 1}}))
		}
		m.mustTake(t, facts...)
		w.now += time.Second
		m.Decide(w.moment(), w)
		if got := len(m.desk.undoing); got != n {
			t.Errorf("%d of %d tasks wait to be undone", got, n)
		}
		before := m.log.Steps
		for range n {
			w.now += time.Millisecond
			m.mustTake(t, two.write(fact.Body{Seen: &fact.Seen{}}))
			m.Decide(w.moment(), w)
		}
		return m.log.Steps - before, n
	})
}

// Partitions of others whose time is over together cost each verdict the same, however
// many they are.
func TestStepsOfManyPartitionsThatAreOver(t *testing.T) {
	growth(t, 20, func(n int) (int, int) {
		w, m := many(t, n, "t%05d: {timeout: 1h}", "p%05d: {tasks: [t%05d]}")
		before := m.log.Steps
		for range 20 {
			w.now += 10 * time.Minute
			m.Decide(w.moment(), w)
		}
		if got := m.Len(); got != 1+n {
			t.Errorf("%d facts, want the genesis and %d verdicts", got, n)
		}
		return m.log.Steps - before, n
	})
}

// chooser counts how often it is asked.
type chooser struct {
	*mesh
	asked int
}

func (c *chooser) Choose(x Work) (partition.Choice, error) {
	c.asked++
	return c.mesh.Choose(x)
}

// Contingencies that nobody can take are tried now and then, not with every fact.
func TestStepsOfContingenciesThatNobodyCanTake(t *testing.T) {
	growth(t, 20, func(n int) (int, int) {
		w, m := many(t, n, "t%05d: {on-failure: {contingency: b}}", "")
		w.takers = map[workflow.TaskName]workflow.PartnerID{"b": ""}
		by := &chooser{mesh: w}
		three := penOf(t, m, "three", 7)
		facts := []fact.Received{three.write(fact.Body{Seen: &fact.Seen{}}, m.log.Genesis().Head())}
		for i := range n {
			a := fact.AttemptID{Slot: workflow.TaskName(fmt.Sprintf("t%05d", i))}
			act := fact.Action{Attempt: a, Kind: workflow.FailContingency, Task: "b"}
			facts = append(facts, three.write(fact.Body{Verdict: &fact.Verdict{Cause: fact.CauseTimeout,
				Actions: []fact.Action{act}}}))
		}
		m.mustTake(t, facts...)
		w.now += time.Minute
		m.Decide(w.moment(), by)
		if len(m.desk.others) != n || by.asked == 0 {
			t.Fatalf("%d contingencies wait of %d, and somebody was asked for %d times", len(m.desk.others), n,
				by.asked)
		}
		before := m.log.Steps
		by.asked = 0
		for range n {
			w.now += time.Millisecond
			m.mustTake(t, three.write(fact.Body{Seen: &fact.Seen{}}))
			m.Decide(w.moment(), by)
		}
		return m.log.Steps - before + by.asked, n
	})
}

// many is an instance of n tasks and one more, b, which one partner holds; another one may
// judge.
func many(t testing.TB, n int, task, part string) (w *mesh, m *Machine) {
	var b strings.Builder
	b.WriteString("workflow: many\ntasks:\n")
	for i := range n {
		fmt.Fprintf(&b, "  "+task+"\n", i)
	}
	if b.WriteString("  b: {}\n"); part != "" {
		b.WriteString("partitions:\n  p: {tasks: [b]}\n")
		for i := range n {
			fmt.Fprintf(&b, "  "+part+"\n", i, i)
		}
	}
	w = newMesh(t, parse(t, b.String()))
	holders := map[workflow.PartitionName]workflow.PartnerID{}
	for _, p := range w.plan.Partitions() {
		holders[p.Name] = "three"
	}
	if err := w.start("one", w.genesis(holders, "one", "two", "three")); err != nil {
		t.Fatal(err)
	}
	return w, w.nodes["one"].m
}
