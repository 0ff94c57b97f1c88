package node_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// A coordinator that was elected while an instance ran judges first, and its
// verdict says in which office: everybody can check that, also a partner that
// was away.
func TestTheCoordinatorJudgesInItsOffice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, brisk, "one", "two", "three")
		tm.electorate("one", "two", "three")
		tm.add("one", `
workflow: judged
coordination: orchestration
tasks:
  a: {}
  b: {after: a, type: manual, timeout: 1m, on-failure: release}
  c: {after: b}
partitions: {p1: [a], p2: [c], p3: [b]}
`)
		id := tm.begin("one", "judged", map[string]string{"p1": "one", "p2": "two", "p3": "three"})
		if _, err := tm.p["two"].api.Elect(t.Context(), api.ElectRequest{}); err != nil {
			t.Fatal(err)
		}
		pass(5 * time.Second) // the others hear of it
		tm.wantCoordinator("two", "one", "two", "three")
		tm.cut([]string{"one", "two"}, []string{"three"})
		pass(2 * time.Minute)
		if got := tm.state("one", id); got != workflow.InstanceSucceeded {
			t.Fatalf("the instance is %q:\n%s", got, lines(tm.log("one", id)))
		}
		if log := lines(tm.log("one", id)); !strings.Contains(log, "b failed, but what waits for it goes on (its holder was silent for too long, as the coordinator of term ") {
			t.Errorf("no verdict of the coordinator:\n%s", log)
		}
		tm.connect("one", "three")
		pass(time.Minute)
		tm.once(id, []string{"a", "c"}, "one", "two", "three")
		if n := tm.counter("three", "refused.facts-forged"); n != 0 {
			t.Errorf("%d messages were refused as forged", n)
		}
	})
}
