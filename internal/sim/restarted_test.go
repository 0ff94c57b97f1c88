package sim_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/sim"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// long has a task that takes longer than its holder is there.
const long = `workflow: long
tasks:
  a: {}
  b: {}
  c: {application: sleep, with: {for: 2h}, timeout: 3h, on-failure: {contingency: d}}
  d: {timeout: 10m}
  e: {after: c, timeout: 10m}
partitions:
  p1: [a, e]
  p2: [b]
  p3: [c]
`

// TestGuardianThatHadJustStarted: a guardian that was started a moment before a holder vanished counts the silence of
// that one from its start on, with a grace, and the next judge from the last sign of life. So either may judge first;
// the other hears of it, and judges no more. Only where the two differ by as much as the places in the succession do
// they judge at the same time, which is found by halving. However that is, all have one outcome (sim.Run checks that),
// in which the task is done elsewhere.
func TestGuardianThatHadJustStarted(t *testing.T) {
	t.Parallel()
	judges := func(started time.Duration) []int {
		p := sim.Plan{
			Seed: 16, Nodes: 3, Workflow: long, Pins: map[string]int{"p1": 0, "p2": 1, "p3": 2}, Scale: 1, Calm: true,
			Starts: []sim.Start{{At: 18 * time.Minute}}, Length: time.Hour, ConnectionTime: 3 * time.Minute,
			Faults: []sim.Fault{
				{At: started - 5*time.Second, Kind: sim.Crash, Node: 0, For: 5 * time.Second},
				{At: started + 100*time.Millisecond, Kind: sim.Gone, Node: 2}, // before it is heard
			},
		}
		out := sim.Run(p, sim.Sound)
		if len(out.Violations) > 0 || out.Tasks["d"] != workflow.Succeeded || out.Tasks["e"] != workflow.Succeeded {
			t.Fatalf("%s\n%s\n%v", p, strings.Join(out.Violations, "\n"), out.Tasks)
		}
		return out.Judges
	}
	early := 19 * time.Minute
	for ; early < 20*time.Minute && !slices.Equal(judges(early), []int{0}); early += 2 * time.Second {
	}
	late := early + 20*time.Second // and before the next sign of life
	if by := judges(late); early == 20*time.Minute || !slices.Equal(by, []int{1}) {
		t.Fatalf("started at %s %v judge: want the guardian alone at first, and then the next one alone", late, by)
	}
	for range 20 {
		middle := (early + late) / 2
		switch by := judges(middle); {
		case len(by) > 1:
			return // at the same time, and no violation
		case by[0] == 0:
			early = middle
		default:
			late = middle
		}
	}
	t.Errorf("the two never judge at the same time, started up to %s or from %s on: the test does not test that", early,
		late)
}
