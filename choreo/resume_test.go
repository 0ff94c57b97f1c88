package choreo

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/contingency/waits"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// A node is killed when a fact is on its disk for which it has not looked at its waits: it
// does so only now and then where there are many tasks, or of the commit with both only the
// fact was made durable. After the restart the fact has the time of its partition begin
// again, as it would have without: here that of a trigger which fired after an hour.
func TestFactsThatNoWaitHadSeenAtAKill(t *testing.T) {
	for _, c := range []struct {
		name  string
		tasks int  // besides, so that not all are looked at each time
		cut   bool // the waits that were stored with the fact are lost
	}{{"many tasks", manySlots, false}, {"a commit is cut", 0, true}} {
		t.Run(c.name, func(t *testing.T) {
			w := newMesh(t, parse(t, triggered(c.tasks)))
			at := map[workflow.PartitionName]workflow.PartnerID{"p1": "one", "p2": "two"}
			if err := w.start("one", w.genesis(at, "one", "two", "three")); err != nil {
				t.Fatal(err)
			}
			w.stabilize(false)
			one := w.nodes["one"]
			w.takers["x"] = "three" // with a second attempt at something, tasks may join at any time
			if _, err := one.m.Reject("x", "", w.moment(), w); err != nil {
				t.Fatal(err)
			}
			w.step(one)
			w.stabilize(false)
			w.advance(61 * time.Minute)
			w.step(one) // it looks at its waits
			waits := one.waits
			w.stabilize(false)
			if sl := one.m.state.BySlot()["e"]; sl.State != workflow.Ready {
				t.Fatalf("the trigger of e has not fired: it is %s", sl.State)
			}
			if c.cut {
				one.waits = waits
			}
			w.crash(one)
			w.meet("one", "two")
			w.stabilize(false)
			w.advance(15 * time.Minute)
			if sl := one.m.state.BySlot()["e"]; sl.State != workflow.Ready {
				t.Errorf("e has had 15 of its 20 minutes, and is %s", sl.State)
			}
			w.die(w.nodes["two"])
			w.advance(6 * time.Minute)
			if sl := one.m.state.BySlot()["e"]; sl.State != workflow.Failed {
				t.Errorf("e has had 21 of its 20 minutes, and is %s", sl.State)
			}
		})
	}
}

// All that a partition of this node has left is blocked, as a partner is presumed to be gone, and so the instance has
// ended: nobody works in it. It is taken out of memory, and read again when word comes that lifts the block. What was
// stored of the partition's clock counts nothing of the time in between.
func TestABlockedPartitionIsNotClockedOnTheDisk(t *testing.T) {
	w := newMesh(t, parse(t, `workflow: blocked
tasks:
  x: {timeout: 30m, type: manual}
  u: {type: manual, timeout: 9m}
  v: {after: x, type: manual}
  d: {type: manual, timeout: 1h}
partitions:
  p1: [x]
  p2: {tasks: [u, v], timeout: 10m}
  p3: [d]
`))
	at := map[workflow.PartitionName]workflow.PartnerID{"p1": "one", "p2": "two", "p3": "three"}
	if err := w.start("two", w.genesis(at, "two", "three", "one")); err != nil {
		t.Fatal(err)
	}
	w.stabilize(false)
	w.gone["one"] = true
	w.advance(8 * time.Minute)
	two := w.nodes["two"]
	if err := two.m.Finish("u", Result{}, w.moment(), w); err != nil {
		t.Fatal(err)
	}
	w.step(two)
	if sl := two.m.state.BySlot()["v"]; sl.State != workflow.Blocked {
		t.Fatalf("v is %s, want it blocked", sl.State)
	}
	for _, k := range two.waits.All {
		if k.Key.Kind == waits.Partition {
			t.Errorf("nothing is left to do in p2, and on the disk its clock stands at %s, and runs: %t",
				k.Elapsed, k.Running)
		}
	}
}

// triggered is a workflow with an emergency trigger after an hour, and so many other tasks.
func triggered(others int) string {
	var b, names strings.Builder
	for i := range others {
		fmt.Fprintf(&b, "  n%d: {type: manual, timeout: 10h}\n", i)
		fmt.Fprintf(&names, ", n%d", i)
	}
	return `workflow: guard
tasks:
  a: {type: manual, timeout: 30m}
  e: {after: a, time-to-wait: 1h, type: manual, timeout: 20m, on-failure: release}
  z: {after: e}
  x: {type: manual, timeout: 10h}
` + b.String() + `partitions:
  p1: [a, z, x` + names.String() + `]
  p2: [e]
`
}
