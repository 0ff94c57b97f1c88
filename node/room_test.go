package node_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// longThenLast is a workflow of so many tasks one after the other, and a last one in a
// partition of its own.
func longThenLast(tasks int) string {
	var b, names strings.Builder
	b.WriteString("workflow: long\ntasks:\n  t000: {}\n")
	names.WriteString("t000")
	for i := 1; i < tasks; i++ {
		fmt.Fprintf(&b, "  t%03d: {after: t%03d}\n", i, i-1)
		fmt.Fprintf(&names, ", t%03d", i)
	}
	fmt.Fprintf(&b, "  last: {after: t%03d}\npartitions: {long: [%s], rest: [last]}\n", tasks-1, names.String())
	return b.String()
}

// beginMany begins so many instances of longThenLast at a partner, without a pause.
func (tm *team) beginMany(at string, n int, assign map[string]string) (ids []string) {
	tm.t.Helper()
	for range n {
		st, err := tm.p[at].node.Start(tm.t.Context(), api.StartRequest{Workflow: "long", Assign: assign})
		if err != nil {
			tm.t.Fatal(err)
		}
		ids = append(ids, st.ID)
	}
	return ids
}

// Instances that one partner begins at once, more than there is room for, all end: those that
// were taken in have room to go on, however evenly they grow.
func TestInstancesBegunAtOnceAllEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) { c.Limits.Memory = 2 << 20 }, "one", "two", "three")
		tm.add("one", longThenLast(36))
		pass(time.Minute)
		tm.p["three"].hand.work(time.Second) // in turn, a task of each
		ids := tm.beginMany("two", 10, map[string]string{"long": "three", "rest": "one"})
		pass(30 * time.Minute)
		if l := tm.refused("one", "three"); len(l) != 0 {
			t.Errorf("one refused facts of three in instances that it took in: %+v", l)
		}
		for _, id := range ids {
			for _, at := range []string{"one", "two", "three"} {
				if st := tm.state(at, id); st != workflow.InstanceSucceeded {
					t.Errorf("%s of %s is %s", id[:8], at, st)
				}
			}
		}
	})
}

// What is expected in instances is taken from the share of the partner that began them: a
// liar that has another named as the holder of very many tasks takes nothing of that one's room.
func TestExpectedIsPaidByInitiator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) { c.Limits.Memory = 2 << 20 }, "one", "two", "three", "mal")
		tm.add("one", longThenLast(36))
		tm.add("one", parcel)
		pass(time.Minute)
		tm.p["three"].hand.hold("t000")
		tm.beginMany("mal", 10, map[string]string{"long": "three", "rest": "one"}) // none of them ever ends
		pass(time.Minute)
		if n, l := tm.running("one"), tm.refused("one", "mal"); n != 2 || len(l) == 0 || l[0].Reason != "bytes-over-share" {
			t.Errorf("one runs %d instances of mal, want as many as have room with what three is to write, 2; refused is %+v", n, l)
		}
		for _, by := range []string{"two", "three"} {
			for range 3 {
				id := tm.begin(by, "parcel", map[string]string{"pa": "three", "pb": "one"})
				tm.succeeds(id, time.Minute, by, "one", "three")
			}
		}
	})
}
