package sim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/sim"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// kept has a partition that may be kept for ever, as a has no time-out; its author gave it
// the time that t has not.
const kept = `workflow: kept
tasks:
  a: {application: sleep, with: {for: 2h}}
  t: {application: sleep, with: {for: 100m}, on-failure: release}
  u: {after: [t, a], timeout: 10m}
partitions:
  p1: [a]
  p2: {tasks: [t, u], timeout: 40m}
`

// TestTimeOfPartition: what has no time-out of its own has that of its partition.
func TestTimeOfPartition(t *testing.T) {
	p := sim.Plan{
		Seed: 16, Nodes: 3, Workflow: kept, Pins: map[string]int{"p1": 0, "p2": 1}, Scale: 1, Calm: true,
		Starts: []sim.Start{{At: 20 * time.Second}}, Length: 2 * time.Hour, ConnectionTime: 3 * time.Hour,
	}
	for _, other := range []int{0, 2} {
		p.Faults = append(p.Faults, sim.Fault{
			At: time.Minute, Kind: sim.Cut, Node: 1, Other: other, For: 90 * time.Minute,
		})
	}
	out := sim.Run(p, sim.Sound)
	if len(out.Violations) > 0 || out.Tasks["t"] != workflow.Failed {
		t.Fatalf("%s\n%s\n%v", p, strings.Join(out.Violations, "\n"), out.Tasks)
	}
}
