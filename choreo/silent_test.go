package choreo

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// boundedSource is a random definition of which every task has a time-out.
func boundedSource(d dice) string {
	return strings.NewReplacer("c0: {", "c0: {timeout: 10m, ", "c1: {", "c1: {timeout: 10m", "undo: {", "undo: {timeout: 10m, ").Replace(sourceOf(d, true))
}

// TestSilentHoldersStallNothing: where every task has a time-out, an instance ends though
// partners that hold work live and say nothing from some moment on. Whatever their parts
// wait for, also for each other in a circle of data, somebody clocks it.
func TestSilentHoldersStallNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := diceOf(rt)
		w := newMesh(t, validDefinition(d, boundedSource))
		w.node("dan")
		ids := []workflow.PartnerID{"ann", "bob", "cy"}
		at := map[workflow.PartitionName]workflow.PartnerID{}
		for _, p := range w.plan.Partitions() {
			at[p.Name] = pickOf(d, ids)
		}
		if err := w.start("ann", w.genesis(at, ids...)); err != nil {
			rt.Fatal(err)
		}
		w.stabilize(false)
		for range d(6) {
			w.livingAct(d)
		}
		for _, id := range pickOf(d, [][]workflow.PartnerID{{"bob"}, {"cy"}, {"bob", "cy"}}) {
			w.die(w.node(id))
		}
		ann := w.node("ann")
		for rounds := 0; ann.m.Overall() == workflow.InstanceRunning; rounds++ {
			if rounds == 150 {
				rt.Fatalf("the instance goes on:\n%s\n%s", ann.m.Fingerprint(), w.def.Canonical())
			}
			w.livingAct(d)
			w.stabilize(false)
			w.advance(30 * time.Minute)
		}
	})
}

// livingAct has a job end at each node that lives, and a person do something.
func (w *mesh) livingAct(d dice) {
	for _, id := range w.names() {
		n := w.nodes[id]
		if len(n.jobs) > 0 {
			w.end(n, pickOf(d, n.running()), randomResult(d))
		}
		if n.m != nil {
			w.randomWord(d, n)
		}
	}
	w.stabilize(false)
}
