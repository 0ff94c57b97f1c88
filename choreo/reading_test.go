package choreo_test

import (
	"slices"
	"testing"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/internal/sim/meaning"
)

// TestForkedHistoriesAreReadAlike: of histories with forks the second reading of the rules
// (internal/sim/meaning) makes the same. What does not count by what its author may say is
// not worked out a second time; that nothing else is left out is.
func TestForkedHistoriesAreReadAlike(t *testing.T) {
	seeds := uint64(200)
	if testing.Short() {
		seeds = 50
	}
	for seed := range seeds {
		readAlike(t, seed, choreo.ForkedHistory(t, seed))
	}
}

// TestConstraintsAreReadAlike is the same for strict constraints over data that were broken.
func TestConstraintsAreReadAlike(t *testing.T) {
	for seed := range uint64(100) {
		readAlike(t, seed, choreo.ConstrainedHistory(t, seed))
	}
}

// readAlike has the second reading of the rules read the history of a machine.
func readAlike(t *testing.T, seed uint64, m *choreo.Machine) {
	t.Helper()
	facts, counted := m.Counted()
	h, err := meaning.New(m.Definition(), facts)
	if err != nil {
		t.Fatal(err)
	}
	for id := range facts {
		if !counted[id] {
			h.Refuse(id)
		}
	}
	read, shown := h.Of(h.All()).Lines(), meaning.Shown(m.Fingerprint())
	for _, l := range read {
		if !slices.Contains(shown, l) {
			t.Errorf("seed %d: only the second reading has %s", seed, l)
		}
	}
	for _, l := range shown {
		if !slices.Contains(read, l) {
			t.Errorf("seed %d: the second reading lacks %s", seed, l)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
}
