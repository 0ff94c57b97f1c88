package choreo

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/amendments"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// mapped is a definition with a task that is not needed where its data set exists.
const mapped = `
workflow: mapped
data: {map: {type: string}}
tasks:
  fly:  {type: manual, out: [map], produces: a-map}
  plan: {type: manual, after: fly, in: [map]}
  tell: {type: manual, after: plan}
partitions: {air: [fly], desk: [plan], base: [tell]}
`

// unneeded starts an instance in which the data set exists.
func unneeded(t testing.TB) *mesh {
	w := newMesh(t, parse(t, mapped))
	w.people["u"] = fact.Speaker{User: "u", At: "ann"}
	w.annex = &fact.Annex{Responsible: "u", Dropped: []fact.Dropped{{Task: "fly", DataSet: "a-map", Holder: "ann"}}}
	at := map[workflow.PartitionName]workflow.PartnerID{"air": "ann", "desk": "bob", "base": "cy"}
	g := w.genesis(at, "ann", "bob", "cy")
	g.Input = map[workflow.DataName]workflow.Value{"map": "dry"}
	if err := w.start("ann", g); err != nil {
		t.Fatal(err)
	}
	return w
}

// outlive are amendments by which the start would not have left fly out: others wait for it alone, it can be undone,
// and another task writes what it would.
var outlive = []string{
	`[{"kind":"task","name":"note","key":"add-to","value":"base"},` +
		`{"kind":"task","name":"note","key":"after","value":["fly"]},` +
		`{"kind":"task","name":"note","key":"type","value":"manual"}]`,
	`[{"kind":"task","name":"fly","key":"compensate","value":{"application":"noop"}}]`,
	`[{"kind":"task","name":"draw","key":"add-to","value":"base"},` +
		`{"kind":"task","name":"draw","key":"out","value":["map"]},` +
		`{"kind":"task","name":"draw","key":"type","value":"manual"}]`,
	`[{"kind":"task","name":"tell","key":"after","value":["fly","plan"]},{"kind":"task","name":"tell","key":"when"}]`,
}

// A task that an instance does not need since its start is not needed after an amendment either, by which it would have
// been: what others began without it counts, and nobody has to do it who need not be able to.
func TestWhatIsNotNeededStaysSo(t *testing.T) {
	for _, text := range outlive {
		w := unneeded(t)
		w.stabilize(false)
		ann, bob := w.nodes["ann"], w.nodes["bob"]
		if err := bob.m.Finish("plan", Result{}, w.moment(), w); err != nil {
			t.Fatal(err)
		}
		w.step(bob)
		w.mail = nil // ann hears of it after the amendment
		patch, err := amendments.DecodePatch(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.put(ann, w.word(w.people["u"], worklist.Amend{Patch: patch.Text()})); err != nil {
			t.Fatal(err)
		}
		w.mail = nil
		w.meetAll()
		w.stabilize(false)
		for _, id := range w.names() {
			m := w.nodes[id].m
			fly, plan := m.state.BySlot()["fly"], m.state.BySlot()["plan"]
			if fly.State != workflow.Skipped || fly.Dropped == nil || plan.State != workflow.Succeeded {
				t.Errorf("%s: after %s fly is %s, plan %s", id, text, fly.State, plan.State)
			}
		}
	}
}

// Amended at random, at partners who may be out of reach of one another, it stays so, nothing that was done without it
// ceases to count, and what comes of it does not depend on the order in which facts arrive.
func TestRandomAmendmentsOfWhatIsNotNeeded(t *testing.T) {
	done, amended := 0, 0
	checkUntil(t, func(rt *rapid.T) {
		d := diceOf(rt)
		w := unneeded(t)
		w.dice = d
		for range 20 + d(30) {
			switch n := w.nodes[pickOf(d, w.names())]; {
			case n.m == nil:
				w.randomStep(d)
			case d(6) == 0:
				patch, err := amendments.DecodePatch(pickOf(d, outlive))
				if err != nil {
					rt.Fatal(err)
				}
				_, _ = w.put(n, w.word(w.people["u"], worklist.Amend{Patch: patch.Text()})) // refused where it does not fit
			case d(3) == 0:
				task := pickOf(d, []workflow.TaskName{"plan", "tell", "note", "draw"})
				_ = n.m.Finish(task, Result{Outputs: map[workflow.DataName]workflow.Value{}}, w.moment(), w)
				w.step(n)
			default:
				w.randomStep(d)
			}
		}
		w.dice = nil
		for range 6 {
			w.meetAll()
			w.stabilize(false)
			w.advance(time.Second)
		}
		w.incremental(rt)
		w.anyOrder(rt, d)
		if err := w.sameEverywhere(); err != nil {
			rt.Fatal(err)
		}
		m := w.nodes["ann"].m
		if m == nil {
			return
		}
		amended += len(m.Amendments())
		if fly := m.state.BySlot()["fly"]; fly.Dropped == nil || fly.State != workflow.Skipped {
			rt.Errorf("fly is %s", fly.State)
		}
		for _, e := range m.log.Order() {
			if b := e.Fact.Body; (b.Start != nil || b.Success != nil) && !e.Counted {
				rt.Errorf("%s of %s does not count: %s", e.ID.Short(), e.Fact.Chain.Author, e.Why)
			}
		}
		done += len(slices.DeleteFunc(slices.Clone(m.state.Slots()), func(sl *state.Slot) bool { return sl.Pick == nil }))
	}, &amended, &done)
	t.Logf("%d amendments, %d tasks done", amended, done)
}
