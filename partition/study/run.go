package study

import (
	"fmt"

	"github.com/mutirao-mesh/mutirao/partition/aptitude"
)

// DefaultSeed is the seed of a study that is given none. How much the results
// vary with the seed is in docs/study.md.
const DefaultSeed = 2

// Result is what one simulation is measured by.
type Result struct {
	Time         float64 // when the last workflow instance finished
	InstanceTime float64 // from an instance's arrival to its end, on average
	Quality      float64 // Q_total
}

// Work is one task of one workflow instance as a simulation performed it.
type Work struct {
	Instance int     `json:"instance"` // from 0
	Task     int     `json:"task"`     // index into Scenario.Tasks
	Resource int     `json:"resource"` // index into Scenario.Resources
	Ready    float64 `json:"ready"`
	Start    float64 `json:"start"`
	End      float64 `json:"end"`
}

// Run simulates one trial under each of the mechanisms and gives their results
// in that order.
func Run(s *Scenario, t Trial, mechanisms []aptitude.Mechanism, seed uint64) ([]Result, error) {
	p := NewProblem(s, t, seed)
	results := make([]Result, len(mechanisms))
	for i, m := range mechanisms {
		r, _, err := simulate(s, p, m, source(seed, t, m))
		if err != nil {
			return nil, fmt.Errorf("condition %d, repetition %d, %s: %w", t.Index+1, t.Repetition+1, m, err)
		}
		results[i] = r
	}
	return results, nil
}

// Trace simulates one trial under one mechanism and gives everything that was
// done, in the order in which it ended.
func Trace(s *Scenario, t Trial, m aptitude.Mechanism, seed uint64) (Result, []Work, error) {
	return simulate(s, NewProblem(s, t, seed), m, source(seed, t, m))
}

// RunAll simulates all trials, one after the other, and makes the report of them.
func RunAll(s *Scenario, mechanisms []aptitude.Mechanism, seed uint64) (*Report, error) {
	trials := s.Trials()
	results := make([][]Result, len(trials))
	for i, t := range trials {
		var err error
		if results[i], err = Run(s, t, mechanisms, seed); err != nil {
			return nil, err
		}
	}
	return Summarize(s, mechanisms, seed, results), nil
}
