package choreo

import (
	"slices"
	"testing"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// TestReleaseIsNotBuiltUponWhatWasGivenUp: one gives a up, which releases b. That it says in a fresh chain
// that a succeeded does not count, also once two began b upon the release.
func TestReleaseIsNotBuiltUponWhatWasGivenUp(t *testing.T) {
	w := newMesh(t, parse(t, `
workflow: ex
data: {x: {type: integer}}
tasks:
  a: {type: manual, out: [x], on-failure: release}
  b: {type: manual, after: a}
partitions:
  p1: [a]
  p2: [b]
`))
	if err := w.start("one", w.genesis(map[workflow.PartitionName]workflow.PartnerID{"p1": "one", "p2": "two"}, "one",
		"two", "liar")); err != nil {
		t.Fatal(err)
	}
	w.stabilize(false)
	w.lies = true
	one := w.nodes["one"]
	if err := one.m.Finish("a", Result{Failed: true}, w.moment(), w); err != nil {
		t.Fatal(err)
	}
	w.step(one)
	w.meetAll()
	w.stabilize(false)
	w.tell("one", fact.Body{Seen: &fact.Seen{}})
	a, two := fact.AttemptID{Slot: "a"}, w.nodes["two"].m
	lie := w.fresh("one", says(fact.Body{Start: &fact.Start{Attempt: a, Try: 1}}),
		says(fact.Body{Success: &fact.Success{
			Attempt: a, Try: 1, Outputs: map[workflow.DataName]workflow.Value{"x": int64(666)},
		}}))
	if _, err := two.Receive("one", lie); err != nil {
		t.Fatal(err)
	}
	if err := two.Begin("b", w.moment(), w); err != nil {
		t.Fatal(err)
	}
	if sl := two.state.BySlot()["a"]; sl.Pick != nil {
		t.Error("a success that was given up stands by a start upon the release")
	}
}

// twofold is an instance in which liar, who holds a, succeeds in it in two chains that do not know each other,
// and two, to whom a verdict of its own gives the contingency, succeeds as well: all of it as one knows it, at
// whose node more can be taken in. at says who holds p1 and p2, if there are such.
func twofold(t *testing.T, partitions string, at map[workflow.PartitionName]workflow.PartnerID) (
	w *mesh, m *Machine, l1, l2, two *pen, take func(...fact.Received),
) {
	t.Helper()
	w = newMesh(t, parse(t, `
workflow: ex
tasks:
  a: {type: manual, reconcile: keep-first, on-failure: {contingency: a2}}
  a2: {type: manual}
  b: {type: manual, after: a}
partitions: `+partitions+"\n"))
	if err := w.start("one", w.genesis(at, "one", "two", "three", "liar")); err != nil {
		t.Fatal(err)
	}
	w.stabilize(false)
	w.lies = true
	m = w.nodes["one"].m
	take = func(fs ...fact.Received) {
		t.Helper()
		if _, err := m.Receive("three", fs); err != nil {
			t.Fatal(err)
		}
	}
	g, a := m.log.Genesis().Head(), fact.AttemptID{Slot: "a"}
	l1 = penOf(t, m, "liar", 7)
	take(l1.write(fact.Body{Start: &fact.Start{Attempt: a, Try: 1}}, g),
		l1.write(fact.Body{Success: &fact.Success{Attempt: a, Try: 1}}))
	l2 = penOf(t, m, "liar", 8)
	second := []fact.Received{l2.write(fact.Body{Start: &fact.Start{Attempt: a, Try: 1}}, g)}
	for range 12 {
		second = append(second, l2.write(fact.Body{Seen: &fact.Seen{}}))
	}
	take(append(second, l2.write(fact.Body{Success: &fact.Success{Attempt: a, Try: 1}}))...)
	two = penOf(t, m, "two", 9)
	v := two.write(fact.Body{Verdict: &fact.Verdict{
		Cause: fact.CauseExpired, Actions: []fact.Action{{Attempt: a, Kind: workflow.FailContingency, Task: "a2",
			Partner: "two"}},
	}}, g)
	b := fact.AttemptID{Fact: v.ID, Slot: "a"}
	take(v, two.write(fact.Body{Start: &fact.Start{Attempt: b, Try: 1}}),
		two.write(fact.Body{Success: &fact.Success{Attempt: b, Try: 1}}))
	return w, m, l1, l2, two, take
}

// TestWhatAStartBuiltUponDoesNotChangeLater: of liar's chains two and three turn out to have known the second
// first. b, which began before that was known, was built upon the same as before.
func TestWhatAStartBuiltUponDoesNotChangeLater(t *testing.T) {
	w, m, _, l2, two, take := twofold(t, "{p1: [a], p2: [b]}",
		map[workflow.PartitionName]workflow.PartnerID{"p1": "liar", "p2": "one"})
	used := func() (built []fact.AttemptID) {
		start := m.state.BySlot()["b"].Current
		for u := range m.state.BuiltOn(start, start.Start) {
			built = append(built, u.ID)
		}
		return built
	}
	if err := m.Begin("b", w.moment(), w); err != nil {
		t.Fatal(err)
	}
	first := used()
	three := penOf(t, m, "three", 10)
	take(three.write(fact.Body{Seen: &fact.Seen{}}, l2.head()))
	take(two.write(fact.Body{Seen: &fact.Seen{}}, l2.head()))
	if after := used(); len(first) != 1 || !slices.Equal(first, after) {
		t.Errorf("b was built upon %v, and later upon %v", first, after)
	}
	w.shuffledMatches(t, m)
}

// TestLiarThatBeginsWhatItKnewOtherwise: liar begins and ends b in chains that know different successes of a.
// What others turn out to have known changes nothing of what those were built upon, and nothing breaks.
func TestLiarThatBeginsWhatItKnewOtherwise(t *testing.T) {
	w, m, l1, l2, two, take := twofold(t, "{p1: [a, b]}", map[workflow.PartitionName]workflow.PartnerID{"p1": "liar"})
	b := fact.AttemptID{Slot: "b"}
	l3 := penOf(t, m, "liar", 11) // knows all of it
	take(l3.write(fact.Body{Start: &fact.Start{Attempt: b, Try: 1}}, l1.head(), l2.head(), two.head()))
	l4 := penOf(t, m, "liar", 12)
	take(l4.write(fact.Body{Seen: &fact.Seen{}}, l2.head(),
		two.head())) // shows to know the contingency's result, and not the first
	// and ends b in its first chain, which began it by itself
	take(l1.write(fact.Body{Start: &fact.Start{Attempt: b, Try: 1}}),
		l1.write(fact.Body{Success: &fact.Success{Attempt: b, Try: 1}}))
	w.shuffledMatches(t, m)
}
