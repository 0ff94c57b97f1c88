package choreo

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
)

// ForkedHistory is a machine that has a random history with forks, in which authors go on
// from what a fork takes away and others give back.
func ForkedHistory(t *testing.T, seed uint64) *Machine {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 8))
	m := randomMesh(t, r.IntN).nodes["ann"].m
	for range 50 {
		if _, err := m.Receive("somebody", []fact.Received{forking(r, m)}); err != nil &&
			!errors.Is(err, log.ErrMissingPast) &&
			!errors.Is(err, fact.ErrInvalid) {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	return m
}

// Counted are the facts of a machine, and which of them count.
func (m *Machine) Counted() (facts map[fact.ID]*fact.Fact, counted map[fact.ID]bool) {
	facts, counted = map[fact.ID]*fact.Fact{}, map[fact.ID]bool{}
	for _, e := range m.log.Order() {
		facts[e.ID], counted[e.ID] = e.Fact, e.Counted
	}
	return facts, counted
}

// ConstrainedHistory is a machine with a random history in which a strict constraint may be broken by partners that
// did not know of each other, or with data that are final for a while.
func ConstrainedHistory(t *testing.T, seed uint64) *Machine {
	t.Helper()
	return settledHistory(t, seed, []string{constrained, finals}[seed%2]).nodes["ann"].m
}
