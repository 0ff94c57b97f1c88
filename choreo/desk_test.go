package choreo

import (
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/contingency/waits"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// That all slots are made again, as a fork may have it, brings nothing to work in a partition:
// the time for its answer goes on.
func TestAnswerGoesOnWhenSlotsAreMadeAgain(t *testing.T) {
	def, err := workflow.Parse("again.yaml", []byte(`workflow: again
tasks:
  u: {type: manual, timeout: 1h}
  v: {type: manual, timeout: 1h}
  w: {type: manual, timeout: 1h}
partitions:
  p1: [u, v, w]
`))
	if err != nil {
		t.Fatal(err)
	}
	mesh := newMesh(t, def)
	mesh.node("one")
	mesh.node("two")
	if err := mesh.start("one", mesh.genesis(map[workflow.PartitionName]workflow.PartnerID{"p1": "two"}, "one",
		"two")); err != nil {
		t.Fatal(err)
	}
	mesh.stabilize(false)
	one, two := mesh.node("one"), mesh.node("two")
	mesh.advance(10 * time.Minute)
	if err := two.m.Finish("u", Result{}, mesh.moment(), mesh); err != nil {
		t.Fatal(err)
	}
	mesh.step(two)
	mesh.meet("one", "two")
	mesh.stabilize(false)
	joined := one.m.look().part("p1").joined
	for range 3 {
		mesh.advance(10 * time.Minute)
		one.m.state.Reset()
		one.m.state.Settle()
		mesh.step(one)
	}
	if got := one.m.look().part("p1").joined; got != joined || joined != 3 {
		t.Errorf("%d came to work, and %d when all slots were made again, want 3", joined, got)
	}
	if c := one.m.clocks.Get(waits.Key{Kind: waits.Answer, Name: "p1"}); c == nil ||
		c.Read(mesh.now).Round(time.Second) != 40*time.Minute {
		t.Errorf("after 40 minutes the wait for the answer is %+v", c)
	}
}

// While an instance is cancelled nobody works on it. If a fork takes the cancellation away, what
// an emergency task waits for has its whole time once more, and so has the trigger.
func TestTriggerHasItsTimeAfterACancellationThatAForkTookAway(t *testing.T) {
	w := newMesh(t, parse(t, `
workflow: alarmed
tasks:
  a: {type: manual, timeout: 1h}
  alarm: {after: a, time-to-wait: 30m}
partitions:
  p1: [a]
  p2: [alarm]
`))
	at := map[workflow.PartitionName]workflow.PartnerID{"p1": "one", "p2": "two"}
	if err := w.start("two", w.genesis(at, "two", "one")); err != nil {
		t.Fatal(err)
	}
	two := w.node("two")
	one := penOf(t, two.m, "one", 7)
	first := one.write(fact.Body{Seen: &fact.Seen{}}, two.m.log.Genesis().Head())
	fork := *one // goes on from there once more
	is := func(when string, overall workflow.InstanceState, alarm workflow.State) {
		t.Helper()
		w.step(two)
		if two.m.Overall() != overall || two.m.state.BySlot()["alarm"].State != alarm {
			t.Fatalf("%s the instance is %s, the emergency task %s; want %s, %s",
				when, two.m.Overall(), two.m.state.BySlot()["alarm"].State, overall, alarm)
		}
	}
	w.advance(20 * time.Minute)
	two.m.mustTake(t, first, one.write(fact.Body{Cancel: &fact.Cancel{}}))
	is("after 20 minutes", workflow.InstanceCancelled, workflow.Aborted)
	w.advance(20 * time.Minute)
	two.m.mustTake(t, fork.write(fact.Body{Seen: &fact.Seen{}}))
	is("when a fork took the cancellation away", workflow.InstanceRunning, workflow.NotReady)
	w.advance(29 * time.Minute)
	is("29 minutes later", workflow.InstanceRunning, workflow.NotReady)
	w.advance(2 * time.Minute)
	if got := two.m.state.BySlot()["alarm"].State; got == workflow.NotReady {
		t.Errorf("31 minutes after the instance went on the emergency task is %s", got)
	}
}
