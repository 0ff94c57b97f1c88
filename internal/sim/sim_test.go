package sim_test

import (
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/sim"
)

var (
	seeds = flag.Int("seeds", 200, "how many seeds to run")
	first = flag.Uint64("first", 1, "the first seed")
)

// TestSeeds runs a fixed set of seeds; -seeds and -first choose others.
func TestSeeds(t *testing.T) {
	var hours time.Duration
	start := time.Now()
	facts := 0
	for seed := *first; seed < *first+uint64(*seeds); seed++ {
		p := sim.NewPlan(seed)
		out := sim.Run(p, sim.Sound)
		hours += out.Virtual
		facts += out.Facts
		if len(out.Violations) > 0 {
			small := sim.Shrink(p, sim.Sound)
			t.Fatalf("%s\n%s\n%s", strings.Join(out.Violations, "\n"), small, strings.Join(sim.Run(small, sim.Sound).Violations, "\n"))
		}
	}
	t.Logf("%d seeds, %.0f node-hours, %d facts, in %s", *seeds, hours.Hours(), facts, time.Since(start).Round(time.Millisecond))
}
