package choreo

import (
	"slices"
	"testing"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Of a chain that is forked again and again no more branches are taken in than it
// takes for nothing of it to count by itself, in one batch or in many; what another
// participant built upon is taken in all the same.
func TestForksWithoutEndAreNotTakenIn(t *testing.T) {
	for _, together := range []bool{false, true} {
		m := relayMesh(t).nodes["one"].m
		m.mustTake(t, words(t, m, 200)...)
		liar := penOf(t, m, "three", 7)
		var forks []fact.Received
		for i := range uint64(100) {
			forks = append(forks, liar.fork(m.log, 150-i).write(fact.Body{Seen: &fact.Seen{}}, m.log.Genesis().Head()))
		}
		if together {
			m.mustTake(t, forks...)
		} else {
			for _, f := range forks {
				m.mustTake(t, f)
			}
		}
		c := m.log.Index()[liar.chain]
		if len(c.Strands) != log.MaxBranches+1 {
			t.Errorf("%d branches are taken in, want %d", len(c.Strands), log.MaxBranches+1)
		}
		if got := m.Declined(); len(got) != 1 ||
			got[0] != (Declined{Author: "three", Why: TooManyForks, Facts: 100 - log.MaxBranches}) {
			t.Errorf("declined: %+v", got)
		}
		if slices.ContainsFunc(c.Strands[0].Facts, func(e *log.Entry) bool { return e.Counted }) {
			t.Error("facts of a chain count that is forked more often than any backup explains")
		}
		late := forks[99]
		two := penOf(t, m, "two", 9)
		built := two.write(fact.Body{Seen: &fact.Seen{}}, m.log.Genesis().Head(),
			fact.Head{Chain: late.Fact.Chain, Seq: late.Fact.Seq, ID: late.ID})
		if _, err := m.Receive("two", []fact.Received{late, built}); err != nil {
			t.Fatal(err)
		}
		if !m.log.Has(late.ID) || !m.log.ByID()[late.ID].Counted {
			t.Error("a branch that another built upon does not count")
		}
	}
}

// Of writes one after the other the later is current, of concurrent ones the later
// by time and hash, with a conflict (choreo/state/converge.go, rule 6).
func TestWhichWriteIsCurrent(t *testing.T) {
	const writes = `
workflow: writes
data: {x: {type: integer}}
tasks:
  a: {type: manual, out: [x]}
  b: {after: a, type: manual, out: [x]}
  c: {type: manual, out: [x]}
  d: {when: x > 5, after: b, type: manual}
partitions:
  p1: [a, b, d]
  p2: [c]
`
	w := newMesh(t, parse(t, writes))
	at := map[workflow.PartitionName]workflow.PartnerID{"p1": "one", "p2": "two"}
	if err := w.start("one", w.genesis(at, "one", "two")); err != nil {
		t.Fatal(err)
	}
	w.stabilize(false)
	one := w.nodes["one"].m
	w.say("one", "a", 1)
	w.stabilize(false)
	w.say("one", "b", 9)
	w.stabilize(false)
	if got := one.state.Data()["x"].Value; got != int64(9) || one.state.Conflicts()["x"] {
		t.Errorf("x = %v, conflict %t, after a wrote 1 and then b 9", got, one.state.Conflicts()["x"])
	}
	if got := one.state.BySlot()["d"].State; got != workflow.Ready {
		t.Errorf("d, when x > 5, is %s", got)
	}

	w = newMesh(t, parse(t, writes))
	if err := w.start("one", w.genesis(at, "one", "two")); err != nil {
		t.Fatal(err)
	}
	w.stabilize(false)
	w.say("one", "a", 1)
	w.say("two", "c", 2)
	w.meetAll()
	w.stabilize(false)
	one = w.nodes["one"].m
	a, c, want := one.state.BySlot()["a"].Pick.Success(), one.state.BySlot()["c"].Pick.Success(), int64(1)
	if log.ByTime(c, a) > 0 {
		want = 2
	}
	if got := one.state.Data()["x"].Value; got != want || !one.state.Conflicts()["x"] {
		t.Errorf("x = %v, conflict %t, want %d and a conflict", got, one.state.Conflicts()["x"], want)
	}
}
