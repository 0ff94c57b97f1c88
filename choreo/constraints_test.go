package choreo

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/workflow"
)

const constrained = `
workflow: w
data: {a: {type: integer, default: 0}, b: {type: integer, default: 0}, c: {type: integer}}
tasks:
  left:  {application: x, out: [a], timeout: 30m, contingency: other, reconcile: keep-replacement}
  other: {application: x, out: [a], timeout: 30m}
  right: {application: x, out: [b], timeout: 30m, on-failure: release}
  late:  {after: left, application: x, time-to-wait: 1h, timeout: 30m, out: [c]}
  free:  {when: c != null or a + b > 3, application: x, out: [b], timeout: 30m}
  join:  {after: [left, right], application: x, out: [c]}
  end:   {after: join, timeout: 30m}
constraints:
  - {name: sum, when: a + b <= 4, strict: true}
  - {name: soft, when: b <= a}
partitions: {one: [left, late], two: [right, free], three: [join, end]}
`

// constrainedRun is a random history in which partners that do not know of each other write data that a strict
// constraint is about: letters are late or lost, holders are given up and come back, nodes crash.
func constrainedRun(t *testing.T, seed uint64, src string) *mesh {
	r := rand.New(rand.NewPCG(seed, 11))
	w := newMesh(t, parse(t, src))
	names := []workflow.PartnerID{"ann", "ben", "cleo"}
	at := map[workflow.PartitionName]workflow.PartnerID{"one": "ann", "two": "ben", "three": "cleo"}
	if err := w.start("ann", w.genesis(at, names...)); err != nil {
		t.Fatal(err)
	}
	w.stabilize(false)
	for range 50 {
		n := w.nodes[names[r.IntN(3)]]
		switch r.IntN(10) {
		case 0:
			w.gone[n.id] = !w.gone[n.id]
		case 1:
			w.now += time.Duration(r.IntN(2400)) * time.Second
			for _, p := range names {
				w.step(w.nodes[p])
			}
		case 2:
			if n.m != nil {
				w.crash(n)
			}
		case 3, 4:
			if len(w.mail) > 0 {
				i := r.IntN(len(w.mail))
				l := w.mail[i]
				w.mail = slices.Delete(w.mail, i, i+1)
				if r.IntN(4) > 0 {
					w.deliver(l)
				}
			}
		case 5:
			w.meet(names[r.IntN(3)], names[r.IntN(3)])
		default:
			if n.m == nil || len(n.running()) == 0 {
				continue
			}
			ids := n.running()
			id := ids[r.IntN(len(ids))]
			res := Result{Failed: r.IntN(10) == 0, Outputs: map[workflow.DataName]workflow.Value{}}
			for _, d := range n.jobs[id].Task.Out {
				res.Outputs[d] = int64(r.IntN(5))
			}
			before := n.m.state.Broken()
			w.end(n, id, res)
			if now := n.m.state.Broken(); before == 0 && now > 0 {
				t.Fatalf("seed %d: %s recorded a result of %s that breaks a constraint which held for all that it knew",
					seed, n.id, id)
			}
		}
	}
	return w
}

// settledRun is one after which all know all.
func settledRun(t *testing.T, seed uint64) *mesh { return settledHistory(t, seed, constrained) }

// settledHistory is settledRun of another definition.
func settledHistory(t *testing.T, seed uint64, src string) *mesh {
	w := constrainedRun(t, seed, src)
	clear(w.gone)
	for range 3 {
		w.meetAll()
		w.stabilize(false)
	}
	return w
}

// Partners that do not know of each other break a strict constraint together; whatever they do then, and in
// whatever order facts come, all that have the same facts agree, and nothing begins while it is broken.
func TestConstraintsConverge(t *testing.T) {
	broke, blocked, failed := 0, 0, 0
	for seed := range uint64(150) {
		w := settledRun(t, seed)
		want := agreed(t, w, seed)
		s := want.state
		if s.Broken() > 0 {
			broke++
			blocked += state.AsInt(s.Overall() == workflow.InstanceBlocked)
			for _, sl := range s.Slots() {
				if !sl.Begun() && (sl.State == workflow.Ready || sl.State == workflow.Running) {
					t.Errorf("seed %d: %s is %s, and the strict constraint is broken", seed, sl.Task.Name, sl.State)
				}
			}
		}
		if sum := s.Definition().Constraints[0]; (s.Broken() > 0) == s.Holds(sum.When) || sum.Name != "sum" {
			t.Errorf("seed %d: %d strict constraints are broken, by data %v", seed, s.Broken(), s.Values())
		}
		for sl := range s.Failures() {
			failed += state.AsInt(sl.Outcome != nil && sl.Outcome.At.Fact.Body.Verdict.Cause == fact.CauseReported)
		}
	}
	if broke == 0 || blocked == 0 || failed == 0 {
		t.Errorf("of 150 histories %d broke the constraint in the end, %d of these are blocked, %d tasks failed: want some of each", broke, blocked, failed)
	}
}

// A result that mends the data lets all go on that waited.
func TestMendedConstraintsLetGo(t *testing.T) {
	w := newMesh(t, parse(t, `
workflow: w
data: {a: {type: integer, default: 0}, b: {type: integer, default: 0}}
tasks:
  left:  {application: x, out: [a]}
  right: {application: x, out: [b]}
  slow:  {application: x, out: [a]}
  next:  {after: left}
constraints: [{name: sum, when: a + b <= 4, strict: true}]
partitions: {one: [left, next], two: [right], three: [slow]}
`))
	at := map[workflow.PartitionName]workflow.PartnerID{"one": "ann", "two": "ben", "three": "cleo"}
	if err := w.start("ann", w.genesis(at, "ann", "ben", "cleo")); err != nil {
		t.Fatal(err)
	}
	w.stabilize(false)
	ends := func(p workflow.PartnerID, task workflow.TaskName, n workflow.DataName, v int64) {
		t.Helper()
		id, runs := w.nodes[p].jobOf(task)
		if !runs {
			t.Fatalf("%s does not run at %s", task, p)
		}
		w.end(w.nodes[p], id, Result{Outputs: map[workflow.DataName]workflow.Value{n: v}})
	}
	state := func(p workflow.PartnerID, task workflow.TaskName) workflow.State {
		return w.nodes[p].m.state.BySlot()[task].State
	}
	ends("ben", "right", "b", 3)
	ends("ann", "left", "a", 3) // next begins: ann does not know of b
	if got := state("ann", "next"); got != workflow.Running {
		t.Errorf("next is %s at ann, before it knows of the other result", got)
	}
	w.meetAll()
	w.stabilize(false)
	if m := w.nodes["cleo"].m; m.state.Broken() != 1 || m.Overall() != workflow.InstanceRunning {
		t.Errorf("cleo sees %d strict constraints broken, and the instance %s", m.state.Broken(), m.Overall())
	}
	ends("cleo", "slow", "a", 1)
	w.meetAll()
	w.stabilize(true)
	for _, p := range w.names() {
		if m := w.nodes[p].m; m.state.Broken() != 0 || m.Overall() != workflow.InstanceSucceeded {
			t.Errorf("%s sees %d strict constraints broken, and the instance %s", p, m.state.Broken(), m.Overall())
		}
	}
}

const finals = `
workflow: w
data: {a: {type: integer, default: 0}, b: {type: integer, default: 0}, c: {type: integer}}
tasks:
  left:  {application: x, out: [a], timeout: 30m, contingency: other, reconcile: keep-replacement}
  other: {application: x, out: [a], timeout: 30m}
  right: {application: x, out: [b], timeout: 30m, on-failure: release}
  late:  {after: left, application: x, time-to-wait: 1h, timeout: 30m, out: [c]}
  free:  {when: c != null or a + b > 3, application: x, out: [b], timeout: 30m}
  off:   {after: left, enabled: false, application: x, out: [a]}
  then:  {when: not succeeded("off") and succeeded("right"), application: x, out: [c]}
  join:  {after: [left, right], application: x, out: [c]}
  end:   {after: join, timeout: 30m}
constraints: [{name: sum, when: a + b <= 7, strict: true}]
final: a + b == 5
partitions: {one: [left, late, off], two: [right, free, then], three: [join, end]}
`

// Partners that do not know of each other make data final, and not final again; whatever they do then, and in
// whatever order facts come, all that have the same facts agree, and nothing begins while they are final.
func TestFinalDataConverge(t *testing.T) {
	final, ended, failed := 0, 0, 0
	for seed := range uint64(150) {
		w := settledHistory(t, seed, finals)
		want := agreed(t, w, seed)
		s := want.state
		if st := s.BySlot()["off"].State; st != workflow.Skipped && st != workflow.Aborted {
			t.Errorf("seed %d: what is not enabled is %s", seed, st)
		}
		if s.IsFinal() && s.Broken() == 0 {
			final++
			ended += state.AsInt(s.Overall() == workflow.InstanceSucceeded)
			for _, sl := range s.Slots() {
				if !sl.Begun() && !sl.State.Done() {
					t.Errorf("seed %d: %s is %s, and the data are final", seed, sl.Task.Name, sl.State)
				}
			}
		}
		failed += state.AsInt(s.Overall() == workflow.InstanceFailed)
		for _, e := range want.log.Order() {
			if !e.Counted {
				t.Errorf("seed %d: a fact of a correct node does not count: %s, %s", seed, e.Fact.Body.Kind(), e.Why)
			}
		}
	}
	if final == 0 || ended == 0 || failed == 0 {
		t.Errorf("of 150 histories %d ended with final data, %d of these well, %d failed: want some of each", final,
			ended, failed)
	}
}
