package node_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Of tasks that become ready at once that of the higher priority takes a free place first, whatever their names: when
// an instance begins, and when a task has ended for which they waited.
func TestTheHigherPriorityIsStartedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one")
		tm.add("one", `
workflow: turns
tasks:
  a: {application: sleep, with: {for: 1s}, priority: -5}
  b: {application: sleep, with: {for: 1s}}
  z: {application: sleep, with: {for: 1s}, priority: 9}
  a2: {after: z, application: sleep, with: {for: 1s}, priority: -5}
  z2: {after: z, application: sleep, with: {for: 1s}, priority: 9}
`)
		hand := tm.p["one"].hand
		hand.hold("z")
		id := tm.begin("one", "turns", nil)
		pass(time.Second)
		hand.letGo(t, "z")
		tm.succeeds(id, time.Minute, "one")
		place := map[workflow.TaskName]int{}
		for i, j := range hand.started {
			place[j.Task] = i
		}
		if len(hand.started) != 5 || place["z"] != 0 || place["b"] != 1 || place["a"] != 2 || place["z2"] != 3 {
			t.Errorf("started, by place: %v; want z, b, a, z2, a2", place)
		}
	})
}
