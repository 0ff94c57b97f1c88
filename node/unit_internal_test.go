package node

import (
	"math/rand/v2"
	"testing"

	"github.com/mutirao-mesh/mutirao/node/store/kv"
)

// A round that is too large for one unit is never cut between a fact and the later one whose
// attestation vouches for it: after a crash between two units the first would be here, and
// nobody could prove it. What comes together is much smaller than a unit.
func TestUnitsEndWhereAllIsVouchedFor(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		b := batch{open: map[int]bool{}}
		for len(b.writes) < 3*kv.UnitWrites {
			for run, size := 1+r.IntN(700), 1+r.IntN(600); run > 0; run-- {
				b.open[len(b.writes)] = run > 1
				b.writes = append(b.writes, kv.Write{Key: make([]byte, 41), Value: make([]byte, size)})
			}
		}
		for from := 0; from < len(b.writes); {
			to := b.unitEnd(from)
			if to <= from || to-from > kv.Unit(b.writes[from:]) {
				t.Fatalf("seed %d: a unit of the writes %d to %d", seed, from, to)
			}
			if b.open[to-1] {
				t.Fatalf("seed %d: the unit that ends before %d leaves a fact that nothing vouches for", seed, to)
			}
			from = to
		}
	}
	// What has no room in one unit is cut, so that the rest of the round goes on.
	b := batch{open: map[int]bool{}}
	for i := range 2 * kv.UnitWrites {
		b.writes = append(b.writes, kv.Write{Key: []byte{1}})
		b.open[i] = true
	}
	if got := b.unitEnd(0); got != kv.UnitWrites {
		t.Errorf("a run that fills two units is cut at %d, want %d", got, kv.UnitWrites)
	}
}
