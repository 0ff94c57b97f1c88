package choreo

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// boundedSource is a random definition of which every task has a time-out, looseSource one
// of which some have none.
func boundedSource(d dice) string {
	timed := strings.NewReplacer(
		"c0: {", "c0: {timeout: 10m, ", "c1: {", "c1: {timeout: 10m", "undo: {", "undo: {timeout: 10m, ")
	return timed.Replace(sourceOf(d, true))
}

func looseSource(d dice) string {
	untimed := strings.NewReplacer("timeout: 10m, ", "", ", timeout: 10m", "", "timeout: 10m", "")
	lines := strings.SplitAfter(boundedSource(d), "\n")
	for i := range lines {
		if d.chance(20) {
			lines[i] = untimed.Replace(lines[i])
		}
	}
	return strings.Join(lines, "")
}

// TestSilentHoldersStallNothing: where every task has a time-out, an instance ends though
// partners that hold work live and say nothing from some moment on. Whatever their parts
// wait for, also for each other in a circle of data, somebody clocks it.
func TestSilentHoldersStallNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := silentMesh(t, rt, boundedSource)
		if ann := w.node("ann"); ann.m.Overall() == workflow.InstanceRunning {
			rt.Fatalf("the instance goes on:\n%s\n%s", ann.m.Fingerprint(), w.def.Canonical())
		}
	})
}

// TestSilentHoldersHaveTheirTime: where some tasks have no time-out, those are all that an
// instance goes on for.
func TestSilentHoldersHaveTheirTime(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := silentMesh(t, rt, looseSource)
		m := w.node("ann").m
		active := func(sl *state.Slot) bool { return sl.State == workflow.Ready || sl.State == workflow.Running }
		endless := func(sl *state.Slot) bool {
			return sl.Current.Task.Timeout == 0 && (active(sl) || m.deciding(w.moment(), w).shouldBeReady(sl, 0, w.now))
		}
		if m.Overall() == workflow.InstanceRunning && !slices.ContainsFunc(m.state.Slots(), endless) {
			rt.Fatalf("nothing may take for ever, and the instance goes on:\n%s\n%s", m.Fingerprint(),
				w.def.Canonical())
		}
		for _, sl := range m.state.Slots() {
			begins := active(sl) || sl.State == workflow.NotReady && sl.RuleHolds()
			if a := sl.Current; a.Task.Timeout > 0 && m.state.Wanted(a) && sl.Unjudged() && begins {
				rt.Fatalf("nobody clocks %s at %s:\n%s\n%s", a.ID, a.Partner, m.Fingerprint(), w.def.Canonical())
			}
		}
	})
}

// silentMesh is an instance of a random definition at three partners, of which one or two
// live and say nothing from some moment on, three days later if it has not ended before. In
// half of the cases the judge starts again every half hour.
func silentMesh(t testing.TB, rt *rapid.T, source func(dice) string) *mesh {
	d := diceOf(rt)
	w := newMesh(t, validDefinition(d, source))
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
	restarts := d.chance(50)
	for end := w.now + 72*time.Hour; w.now < end && w.node("ann").m.Overall() == workflow.InstanceRunning; {
		w.livingAct(d)
		w.advance(30 * time.Minute)
		if restarts {
			w.crash(w.node("ann"))
		}
	}
	return w
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
