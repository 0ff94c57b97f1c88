package sim_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/sim"
	"github.com/mutirao-mesh/mutirao/workflow"
)

var every = flag.Int("every", 12, "TestVanish: one of how many events is tried; 1: all")

// eleven is the workflow of figure 16 (docs/systems.md, Partitions).
const eleven = `workflow: eleven
tasks:
  a: {timeout: 10m}
  b: {after: a, timeout: 10m}
  c: {after: [a, e], timeout: 10m}
  d: {after: [b, c], timeout: 10m}
  e: {timeout: 10m}
  f: {after: e, timeout: 10m}
  g: {after: f, timeout: 1h}
  h: {after: d, timeout: 10m}
  i: {after: h, timeout: 10m}
  j: {after: [h, g], time-to-wait: 1h, timeout: 10m}
  k: {after: [i, j], timeout: 10m}
partitions:
  p1: [a, b, c, d]
  p2: [h, i, j, k]
  p3: [e, f, g]
`

// TestVanish lets every partner vanish for good at every moment of a run of the
// eleven tasks: at each commit of facts and each frame. The rest ends as the
// authors' choices say, within the bound that the definition implies (sim.Run
// checks the bound), with no coordinator. The fourth node only starts it.
func TestVanish(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{3, 4} {
		t.Run(fmt.Sprintf("%d nodes", nodes), func(t *testing.T) {
			t.Parallel()
			whole := sim.Run(vanishing(nodes, nil), sim.Sound)
			if len(whole.Violations) > 0 || whole.Instances[workflow.InstanceSucceeded] != 1 {
				t.Fatalf("nobody vanishes: %v %v", whole.Violations, whole.Instances)
			}
			runs := 0
			for event := 1; event <= whole.Events; event += *every {
				for node := range nodes {
					vanish(t, nodes, sim.Vanish{Node: node, Event: event})
					runs++
				}
			}
			t.Logf("%d events, %d runs", whole.Events, runs)
		})
	}
}

func vanishing(nodes int, v *sim.Vanish) sim.Plan {
	return sim.Plan{
		Seed: 16, Nodes: nodes, Workflow: eleven, Pins: map[string]int{"p1": 0, "p2": 1, "p3": 2}, Scale: 1, Calm: true,
		Starts: []sim.Start{{At: 20 * time.Second, Node: nodes - 1}}, Length: 30 * time.Second,
		ConnectionTime: 15 * time.Minute, Vanish: v,
	}
}

func vanish(t *testing.T, nodes int, v sim.Vanish) {
	t.Helper()
	p := vanishing(nodes, &v)
	out := sim.Run(p, sim.Sound)
	if len(out.Violations) > 0 {
		t.Errorf("%s\n%s", p, strings.Join(out.Violations, "\n"))
		return
	}
	if len(out.Tasks) == 0 {
		return // the initiator took the instance with it
	}
	// What must have succeeded, by the nodes that are still there: j has its
	// trigger.
	sure := map[int]string{0: "efgj", 1: "abcdefg", 2: "j", 3: "abcdefghijk"}[v.Node]
	for _, name := range sure {
		if s := out.Tasks[workflow.TaskName(name)]; s != workflow.Succeeded {
			t.Errorf("%s%c is %s, want SUCCEEDED: %v", p, name, s, out.Tasks)
		}
	}
	for name, s := range out.Tasks {
		if !s.Done() {
			t.Errorf("%s%s is %s for ever", p, name, s)
		}
	}
}
