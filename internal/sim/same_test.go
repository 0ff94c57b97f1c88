package sim_test

import (
	"strconv"
	"testing"

	"github.com/mutirao-mesh/mutirao/internal/sim"
)

// TestSameRunAgain runs a plan of each kind again and again: a seed that fails must fail each
// time. The strained one has a disk that cannot read several entries.
func TestSameRunAgain(t *testing.T) {
	t.Parallel()
	for _, seed := range []uint64{
		1, sim.Rough, sim.Peopled, sim.Stopped, sim.Hostile, sim.Strained, sim.Claimed, sim.Claimed + 3,
	} {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			p := sim.NewPlan(seed)
			once := sim.Run(p, sim.Sound)
			for range 3 {
				if again := sim.Run(p, sim.Sound); again.Fingerprint != once.Fingerprint {
					t.Fatal("two runs differ")
				}
			}
		})
	}
}
