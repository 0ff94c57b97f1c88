//go:build linux

package chaos_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// total sums up a run.
type total struct {
	rounds    int
	faults    map[string]int
	instances map[string]int // by how they ended
	kinds     map[string]int // facts by kind
	memory    int            // the most that a node held, in MiB
	lies      lies
	prints    map[string]string
	factsOf   map[string]int
}

func newTotal() total {
	return total{
		faults: map[string]int{}, instances: map[string]int{}, kinds: map[string]int{}, prints: map[string]string{},
		factsOf: map[string]int{}, lies: lies{refused: map[string]int{}},
	}
}

func (s *total) add(h *history) {
	s.instances[string(h.shown.State)]++
	if h.shown.Duplicated {
		s.instances["duplicated"]++
	}
	for _, e := range h.entries {
		s.kinds[e.Kind]++
		if strings.Contains(e.Text, "trigger") {
			s.kinds["trigger"]++
		}
	}
	for _, t := range h.shown.Tasks {
		s.kinds["superseded"] += len(t.Superseded)
	}
	s.prints[h.id], s.factsOf[h.id] = h.print, len(h.entries)
}

func (s *total) String() string {
	return fmt.Sprintf("%d rounds\ninstances: %s\nfacts: %s\nfaults: %s\nmost memory of a node: %d MiB",
		s.rounds, counts(s.instances), counts(s.kinds), counts(s.faults), s.memory)
}

func counts(m map[string]int) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, fmt.Sprintf("%d %s", m[k], k))
	}
	return strings.Join(out, ", ")
}
