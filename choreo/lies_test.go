package choreo

import (
	"slices"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// What a participant can lie about without contradicting itself: when it did something, and
// what it knew.

// sets is a result that sets x.
func sets(x int64) map[workflow.DataName]workflow.Value {
	return map[workflow.DataName]workflow.Value{"x": x}
}

// mutter has a pen say nothing n times: what it says next is later by that.
func (p *pen) mutter(n int, seen ...fact.Head) (out []fact.Received) {
	for range n {
		out, seen = append(out, p.write(fact.Body{Seen: &fact.Seen{}}, seen...)), nil
	}
	return out
}

// replaces are the facts by which an author judges a, and does its contingency a2 itself.
func (p *pen) replaces(seen ...fact.Head) []fact.Received {
	act := fact.Action{Attempt: fact.AttemptID{Slot: "a"}, Kind: workflow.FailContingency, Task: "a2",
		Partner: p.chain.Author}
	verdict := p.write(fact.Body{Verdict: &fact.Verdict{Cause: fact.CauseTimeout, Actions: []fact.Action{act}}},
		seen...)
	a2 := fact.AttemptID{Fact: verdict.ID, Slot: "a"}
	return []fact.Received{
		verdict, p.write(fact.Body{Start: &fact.Start{Attempt: a2, Try: 1}}),
		p.write(fact.Body{Success: &fact.Success{Attempt: a2, Try: 1, Outputs: sets(2)}}),
	}
}

// Dates decide nothing: whether a liar dates its results to 1970, to today or to 9999, the
// same result counts, and the same data are current: those of the earlier by what their
// authors knew. People see the date.
func TestFalseDatesDecideNothing(t *testing.T) {
	today := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC).UnixMilli()
	for _, c := range []struct {
		what         string
		before, lies int // what each says before it has its result
		counts       workflow.PartnerID
	}{
		{"one was first", 0, 20, "one"},
		{"the liar was first", 20, 0, "liar"},
	} {
		for _, at := range []int64{fact.MinAt, today, fact.MaxAt} {
			w := forgetting(t, "keep-first")
			one := w.nodes["one"].m
			for range c.before {
				w.must(one.deciding(w.moment(), nil).append(fact.Body{Seen: &fact.Seen{}}))
			}
			w.say("one", "a", 1)
			liar := penOf(t, one, "liar", 7)
			liar.at = at
			lies := liar.mutter(c.lies, one.log.Genesis().Head())
			if len(lies) > 0 {
				lies = append(lies, liar.replaces()...)
			} else {
				lies = liar.replaces(one.log.Genesis().Head())
			}
			one.mustTake(t, lies...)
			x := map[workflow.PartnerID]int64{"one": 1, "liar": 2}[c.counts]
			view := one.Snapshot()
			if got := one.state.BySlot()["a"].Pick.Partner; got != c.counts || view.Data["x"] != x {
				t.Errorf("%s, the lie is dated %s: the result of %s counts, and x is %v", c.what,
					time.UnixMilli(at).UTC(), got, view.Data["x"])
			}
			shown := false
			for _, v := range view.Tasks {
				shown = shown || v.Ended == at ||
					slices.ContainsFunc(v.Superseded, func(s state.SupersededView) bool { return s.Ended == at })
			}
			if !shown {
				t.Errorf("%s: the date of the lie, %s, is not shown", c.what, time.UnixMilli(at).UTC())
			}
		}
	}
}

// How long work took is what its performer says, and nodes learn from that.
func TestHowLongWorkTookIsWhatItsPerformerSays(t *testing.T) {
	w := newMesh(t, parse(t, twoWrite))
	if err := w.start("one", w.genesis(map[workflow.PartitionName]workflow.PartnerID{"p1": "one", "p2": "liar"}, "one",
		"liar")); err != nil {
		t.Fatal(err)
	}
	w.stabilize(false)
	one := w.nodes["one"].m
	liar, of := penOf(t, one, "liar", 7), fact.AttemptID{Slot: "c"}
	begins := liar.write(fact.Body{Start: &fact.Start{Attempt: of, Try: 1}}, one.log.Genesis().Head())
	liar.at = (5 * time.Hour).Milliseconds()
	one.mustTake(t, begins, liar.write(fact.Body{Success: &fact.Success{Attempt: of, Try: 1, Outputs: sets(2)}}))
	if out := one.Outcomes(); len(out) != 1 || out[0].Performer != "liar" || out[0].Took() != 5*time.Hour {
		t.Errorf("learned: %+v; want 5 hours of the liar, in no time", out)
	}
}

const twoWrite = `
workflow: two-write
data: {x: {type: integer}}
tasks:
  a: {type: manual, out: [x]}
  b: {type: manual, out: [x]}
  c: {type: manual, out: [x]}
partitions:
  p1: [a, b]
  p2: [c]
`

// A liar that hides what it knew is early or late among what is concurrent, as it likes, and
// people see that data conflict. It comes before nothing that it named, nor after anything
// whose author knew of it.
func TestWhoHidesWhatItKnewMovesAmongTheConcurrent(t *testing.T) {
	for _, c := range []struct {
		what     string
		named    bool // it names a's result as seen
		mutters  int
		x        int64
		conflict bool
	}{
		{"it says that it knew of a", true, 0, 2, false},
		{"it hides that, and is early", false, 0, 1, true},
		{"it hides that, and is late", false, 40, 2, true},
	} {
		w := newMesh(t, parse(t, twoWrite))
		if err := w.start("one", w.genesis(map[workflow.PartitionName]workflow.PartnerID{"p1": "one", "p2": "liar"},
			"one", "liar")); err != nil {
			t.Fatal(err)
		}
		w.stabilize(false)
		one := w.nodes["one"].m
		for range 10 {
			w.must(one.deciding(w.moment(), nil).append(fact.Body{Seen: &fact.Seen{}}))
		}
		w.say("one", "a", 1)
		w.meetAll()
		w.stabilize(false) // the liar has it
		liar := penOf(t, one, "liar", 7)
		seen := []fact.Head{one.log.Genesis().Head()}
		if c.named {
			seen = append(seen, one.state.BySlot()["a"].Pick.Success().Head())
		}
		of := fact.AttemptID{Slot: "c"}
		facts := liar.mutter(c.mutters+1, seen...)
		facts = append(facts, liar.write(fact.Body{Start: &fact.Start{Attempt: of, Try: 1}}),
			liar.write(fact.Body{Success: &fact.Success{Attempt: of, Try: 1, Outputs: sets(2)}}))
		one.mustTake(t, facts...)
		view := one.Snapshot()
		if view.Data["x"] != c.x || (len(view.Conflicts["x"]) > 0) != c.conflict {
			t.Errorf("%s: x = %v, conflicts %v; want %d, and a conflict: %t", c.what, view.Data["x"],
				view.Conflicts["x"], c.x, c.conflict)
		}
		w.say("one", "b", 3) // which knows of all that
		if view = one.Snapshot(); view.Data["x"] != int64(3) || len(view.Conflicts["x"]) > 0 {
			t.Errorf("%s: after b x = %v, conflicts %v; want 3, and none", c.what, view.Data["x"], view.Conflicts["x"])
		}
		w.shuffledMatches(t, one)
	}
}

// A liar that has heard of a result, and has shown that to nobody, may judge it and put its
// own beside it: the definition's reconcile says which of them counts, the other is shown as
// superseded, and that the liar gave the work to itself is shown too.
func TestADeniedResultFollowsReconcile(t *testing.T) {
	for reconcile, counts := range map[string]workflow.PartnerID{
		"keep-first": "one", "keep-original": "one", "keep-replacement": "liar",
	} {
		w := forgetting(t, reconcile)
		w.say("one", "a", 1)
		w.meetAll()
		w.stabilize(false)
		if w.nodes["liar"].m.state.BySlot()["a"].Pick == nil {
			t.Fatal("the liar has not heard of the result")
		}
		one := w.nodes["one"].m
		one.mustTake(t, penOf(t, one, "liar", 7).replaces(one.log.Genesis().Head())...)
		if got := one.state.BySlot()["a"].Pick.Partner; got != counts {
			t.Errorf("%s: the result of %s counts, want that of %s", reconcile, got, counts)
		}
		view := one.Snapshot()
		if !slices.ContainsFunc(view.Tasks,
			func(v state.TaskView) bool { return len(v.Superseded) == 1 && v.Superseded[0].Partner != counts }) {
			t.Errorf("%s: the other result is not shown as superseded: %+v", reconcile, view.Tasks)
		}
		if !slices.ContainsFunc(view.Incidents, func(i state.IncidentView) bool { return i.Who == "liar" }) {
			t.Errorf("%s: no incident names the liar: %+v", reconcile, view.Incidents)
		}
		w.shuffledMatches(t, one)
	}
}
