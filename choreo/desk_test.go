package choreo

import (
	"testing"
	"time"

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
	if err := mesh.start("one", mesh.genesis(map[workflow.PartitionName]workflow.PartnerID{"p1": "two"}, "one", "two")); err != nil {
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
		one.m.state.reset()
		one.m.state.settle()
		mesh.step(one)
	}
	if got := one.m.look().part("p1").joined; got != joined || joined != 3 {
		t.Errorf("%d came to work, and %d when all slots were made again, want 3", joined, got)
	}
	if c := one.m.clocks.all[WaitKey{Kind: WaitAnswer, Name: "p1"}]; c == nil || c.read(mesh.now).Round(time.Second) != 40*time.Minute {
		t.Errorf("after 40 minutes the wait for the answer is %+v", c)
	}
}
