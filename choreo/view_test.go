package choreo

import (
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/workflow"
)

const views = `
workflow: views
tasks:
  a: {type: manual, timeout: 10m, on-failure: {contingency: a2}}
  a2: {type: manual, timeout: 10m}
  b: {after: a, time-to-wait: 30m, type: manual}
  c: {type: manual, role: diver}
partitions:
  p1: {tasks: [a], timeout: 20m}
  p2: [b]
  p3: [c]
`

func viewed(t *testing.T, w *mesh, at workflow.PartnerID, name workflow.TaskName) state.TaskView {
	t.Helper()
	for _, v := range w.node(at).m.Snapshot().Tasks {
		if v.Task.Name == name {
			return v
		}
	}
	t.Fatalf("no task %s at %s", name, at)
	return state.TaskView{}
}

func startViews(t *testing.T) *mesh {
	t.Helper()
	w := newMesh(t, parse(t, views))
	w.now = time.Hour // since the devices were switched on
	at := map[workflow.PartitionName]workflow.PartnerID{"p1": "one", "p2": "two", "p3": "three"}
	if err := w.start("judge", w.genesis(at, "judge", "one", "two", "three")); err != nil {
		t.Fatal(err)
	}
	w.stabilize(false)
	return w
}

// How much time is left: to its holder by its own clock, to others by when they heard
// that it could begin.
func TestDues(t *testing.T) {
	w := startViews(t)
	w.advance(4 * time.Minute)
	for _, tt := range []struct {
		at   workflow.PartnerID
		task workflow.TaskName
		want Due
	}{
		{"one", "a", Due{DueTimeout, 6 * time.Minute, false}},
		{"judge", "a", Due{DueTimeout, 6 * time.Minute, true}},
		{"two", "b", Due{DueTrigger, 26 * time.Minute, false}},
		{"judge", "b", Due{DueTrigger, 26 * time.Minute, true}},
	} {
		got := w.node(tt.at).m.Dues(w.moment(), w).Tasks[tt.task]
		if len(got) != 1 || got[0] != tt.want {
			t.Errorf("%s at %s: %v, want %v", tt.task, tt.at, got, tt.want)
		}
	}
	if got := w.node("one").m.Dues(w.moment(), w).Partitions["p1"]; len(got) != 1 ||
		got[0] != (Due{DueTimeout, 16 * time.Minute, false}) {
		t.Errorf("p1 at its holder: %v, want a time-out in 16 minutes", got)
	}
	if got := w.node("judge").m.Dues(w.moment(), w).Partitions["p1"]; len(got) != 1 || got[0].Kind != DueVerdict ||
		got[0].Left <= 16*time.Minute {
		t.Errorf("p1 at the judge: %v, want a verdict after its time-out", got)
	}
	w.crash(w.node("one"))
	if got := w.node("one").m.Dues(w.moment(), w).Tasks["a"]; len(got) != 1 || got[0].Left > 7*time.Minute {
		t.Errorf("a at its holder after a crash: %v, want what was stored of its clock", got)
	}
	if err := w.node("one").m.Finish("a", Result{}, w.moment(), w); err != nil {
		t.Fatal(err)
	}
	w.step(w.node("one"))
	w.stabilize(false)
	if got := w.node("judge").m.Dues(w.moment(),
		w); len(got.Tasks["a"])+len(got.Tasks["b"])+len(got.Partitions["p1"]) > 0 {
		t.Errorf("a has succeeded, and clocks run: %v", got)
	}
}

// A person's task has a start if somebody said when; its end alone says nothing of it.
func TestPersonBegins(t *testing.T) {
	w := startViews(t)
	w.advance(time.Minute)
	one := w.node("one").m
	if err := one.Begin("a", w.moment(), w); err != nil {
		t.Fatal(err)
	}
	w.step(w.node("one"))
	if err := one.Begin("a", w.moment(), w); err == nil {
		t.Error("a begins twice")
	}
	if err := one.Begin("b", w.moment(), w); err == nil {
		t.Error("b, which another holds, begins")
	}
	began := w.moment().Wall.UnixMilli()
	w.advance(2 * time.Second)
	w.stabilize(false)
	for _, at := range []workflow.PartnerID{"one", "two", "judge"} {
		if v := viewed(t, w, at, "a"); v.State != workflow.Running || v.Started != began {
			t.Errorf("a is %s at %s, started at %d; want RUNNING since %d", v.State, at, v.Started, began)
		}
	}
	if err := one.Finish("a", Result{}, w.moment(), w); err != nil {
		t.Fatal(err)
	}
	w.step(w.node("one"))
	w.stabilize(false)
	if v := viewed(t, w, "two", "a"); v.Started != began || v.Ended <= began {
		t.Errorf("a from %d to %d, want from %d", v.Started, v.Ended, began)
	}
	if err := w.node("two").m.Finish("b", Result{}, w.moment(), w); err != nil {
		t.Fatal(err)
	}
	w.step(w.node("two"))
	if v := viewed(t, w, "two", "b"); v.Started != 0 || v.Ended == 0 {
		t.Errorf("nobody said when b began: from %d to %d", v.Started, v.Ended)
	}
}

// Whoever holds a person's task that others presume to have failed may begin it all the same. As long as the verdict
// stands the task is shown as ended then, and not as begun after its end; if it succeeds it has both once more.
func TestBegunAfterAVerdict(t *testing.T) {
	w := newMesh(t, parse(t, `workflow: late
tasks:
  a: {type: manual, timeout: 10m}
  b: {after: a, type: manual}
partitions:
  p1: [a]
  p2: [b]
`))
	w.now = time.Hour
	at := map[workflow.PartitionName]workflow.PartnerID{"p1": "one", "p2": "two"}
	if err := w.start("two", w.genesis(at, "two", "one")); err != nil {
		t.Fatal(err)
	}
	w.stabilize(false)
	w.gone["one"] = true
	w.step(w.node("two"))
	w.advance(time.Minute)
	w.gone["one"] = false
	w.meet("one", "two")
	w.stabilize(false)
	if v := viewed(t, w, "two", "a"); v.State != workflow.Failed || v.Ended == 0 {
		t.Fatalf("a is %s, want it presumed to have failed", v.State)
	}
	w.advance(time.Minute)
	one := w.node("one")
	if err := one.m.Begin("a", w.moment(), w); err != nil {
		t.Fatal(err)
	}
	w.step(one)
	w.advance(time.Minute)
	w.meet("one", "two")
	w.stabilize(false)
	if v := viewed(t, w, "one", "a"); v.State != workflow.Running || v.Started == 0 || v.Ended != 0 {
		t.Errorf("at its holder a is %s, begun at %d and ended at %d", v.State, v.Started, v.Ended)
	}
	if a := w.node("two").m.state.BySlot()["a"].Current; a.Start == nil {
		t.Fatal("two has not heard that a was begun")
	}
	if v := viewed(t, w, "two", "a"); v.State != workflow.Failed || v.Started != 0 || v.Ended == 0 {
		t.Errorf("a is %s, begun at %d and ended at %d; want it failed, and not begun", v.State, v.Started, v.Ended)
	}
	w.advance(time.Minute)
	if err := one.m.Finish("a", Result{}, w.moment(), w); err != nil {
		t.Fatal(err)
	}
	w.step(one)
	w.advance(time.Minute)
	w.stabilize(false)
	for _, at := range []workflow.PartnerID{"one", "two"} {
		if v := viewed(t, w, at, "a"); v.State != workflow.Succeeded || v.Started == 0 || v.Ended <= v.Started {
			t.Errorf("at %s a is %s, begun at %d and ended at %d", at, v.State, v.Started, v.Ended)
		}
	}
}

// nobodyAnswers is that nobody is left who answers for an instance.
func nobodyAnswers() bool { return false }

// What needs a person: failures that nothing mends, what waits for them, what nobody can
// perform. What a contingency did needs nobody, and reads as failed.
func TestNeeds(t *testing.T) {
	w := startViews(t)
	nobody := func(workflow.RoleName) bool { return false }
	everybody := func(workflow.RoleName) bool { return true }
	judge := w.node("judge")
	if got := judge.m.Needs(everybody, nobody, nobodyAnswers); len(got) > 0 {
		t.Errorf("all is well: %v", got)
	}
	got := judge.m.Needs(nobody, nobody, nobodyAnswers)
	if len(got) != 1 || got[0].Kind != NeedNobody || got[0].Number != 1 || got[0].Tasks[0] != "c" {
		t.Errorf("nobody is a diver: %v", got)
	}
	w.takers["a2"] = "two"
	fail := func(at workflow.PartnerID, task workflow.TaskName) {
		if err := w.node(at).m.Finish(task, Result{Failed: true, Reason: "no"}, w.moment(), w); err != nil {
			t.Fatal(err)
		}
		w.step(w.node(at))
		w.stabilize(false)
	}
	fail("one", "a")
	if got := judge.m.Needs(everybody, nobody, nobodyAnswers); len(got) > 0 {
		t.Errorf("a2 stands in for a: %v", got)
	}
	if err := w.node("two").m.Finish("a2", Result{}, w.moment(), w); err != nil {
		t.Fatal(err)
	}
	w.step(w.node("two"))
	w.stabilize(false)
	if v := viewed(t, w, "judge", "a"); v.State != workflow.Failed || v.ReplacedBy != "a2" || v.Reason != "no" {
		t.Errorf("a is %s, replaced by %q, %q; want that it failed", v.State, v.ReplacedBy, v.Reason)
	}
	if v := viewed(t, w, "judge", "a2"); v.State != workflow.Succeeded {
		t.Errorf("a2 is %s", v.State)
	}
	fail("two", "b")
	got = judge.m.Needs(everybody, nobody, nobodyAnswers)
	if len(got) != 1 || got[0].Kind != NeedFailed || got[0].Tasks[0] != "b" {
		t.Errorf("b failed: %v", got)
	}
}

// A failure that was released, or that a task has taken up by now, needs nobody; until
// that task has started, it does.
func TestFailuresThatNeedNobody(t *testing.T) {
	w := newMesh(t, parse(t, `
workflow: dealt-with
tasks:
  engine: {type: manual, timeout: 10m, on-failure: release}
  hull:   {type: manual, timeout: 10m}
  tow:    {when: failed("hull"), type: manual, timeout: 10m}
partitions:
  p1: [engine, hull]
  p2: [tow]
`))
	if err := w.start("judge", w.genesis(map[workflow.PartitionName]workflow.PartnerID{"p1": "one", "p2": "two"},
		"judge", "one", "two")); err != nil {
		t.Fatal(err)
	}
	w.stabilize(false)
	needs := func() []Need {
		return w.node("judge").m.Needs(func(workflow.RoleName) bool { return true },
			func(workflow.RoleName) bool { return false }, nobodyAnswers)
	}
	fail := func(task workflow.TaskName) {
		t.Helper()
		if err := w.node("one").m.Finish(task, Result{Failed: true, Reason: "no"}, w.moment(), w); err != nil {
			t.Fatal(err)
		}
		w.step(w.node("one"))
		w.stabilize(false)
	}
	fail("engine")
	if got := needs(); len(got) > 0 {
		t.Errorf("engine was released: %v", got)
	}
	fail("hull")
	if got := needs(); len(got) != 1 || got[0].Kind != NeedFailed || got[0].Number != 1 || got[0].Tasks[0] != "hull" {
		t.Errorf("nobody has begun tow: %v", got)
	}
	if err := w.node("two").m.Begin("tow", w.moment(), w); err != nil {
		t.Fatal(err)
	}
	w.step(w.node("two"))
	w.advance(2 * time.Second)
	w.stabilize(false)
	if got := needs(); len(got) > 0 {
		t.Errorf("tow deals with it: %v", got)
	}
}

// What is only presumed to have failed can still be done by its holder's people. A block that was lifted takes nothing
// of the time of what waits behind it: nobody could begin it meanwhile.
func TestLiftedBlock(t *testing.T) {
	w := newMesh(t, parse(t, `
workflow: lifted
tasks:
  a: {type: manual}
  b: {after: a, type: manual, timeout: 30m, deadline: 1h}
partitions:
  p1: [a]
  p2: [b]
`))
	w.now = time.Hour
	at := map[workflow.PartitionName]workflow.PartnerID{"p1": "one", "p2": "two"}
	if err := w.start("judge", w.genesis(at, "judge", "one", "two")); err != nil {
		t.Fatal(err)
	}
	w.stabilize(false)
	w.gone["one"] = true
	w.advance(time.Minute)
	if got := viewed(t, w, "judge", "b"); got.State != workflow.Blocked {
		t.Fatalf("b is %s, want blocked by the presumed failure of a", got.State)
	}
	w.advance(20 * time.Minute)
	for _, at := range []workflow.PartnerID{"judge", "one", "two"} { // its holder alone may still do it
		if got := w.node(at).m.Items(); len(got) != state.AsInt(at == "one") {
			t.Errorf("items at %s, blocked: %v", at, got)
		}
	}
	w.gone["one"] = false
	if err := w.node("one").m.Finish("a", Result{}, w.moment(), w); err != nil {
		t.Fatal(err)
	}
	w.step(w.node("one"))
	w.stabilize(false)
	w.advance(5 * time.Minute)
	for _, at := range []workflow.PartnerID{"judge", "two"} {
		m := w.node(at).m
		if got := m.Dues(w.moment(), w).Tasks["b"]; len(got) != 1 || got[0].Left != 25*time.Minute {
			t.Errorf("b at %s: %v, want 25 minutes left", at, got)
		}
		if got := m.Deadlines(w.moment(), Reckoning{}); len(got) != 1 || got[0].Left < 54*time.Minute {
			t.Errorf("the deadline of b at %s: %v, want 55 minutes left", at, got)
		}
	}
}
