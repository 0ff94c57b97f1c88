package study

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mutirao-mesh/mutirao/partition/aptitude"
)

// Report is what a study found.
type Report struct {
	Scenario    string
	Seed        uint64
	Mechanisms  []aptitude.Mechanism
	Conditions  int
	Simulations int
	Loads       []float64
	Time        Measure // when the last workflow instance finished
	Quality     Measure // Q_total
}

// Measure is one thing that was measured, over all trials.
type Measure struct {
	Overall map[aptitude.Mechanism]Summary
	ByLoad  map[aptitude.Mechanism][]Summary // in the order of Report.Loads
	// Test says how the first mechanism compares to the second.
	Test map[aptitude.Mechanism]map[aptitude.Mechanism]Sign
}

// Summarize makes the report of a study from the results of every trial:
// results[i] are those of Trials()[i], in the order of mechanisms.
func Summarize(s *Scenario, mechanisms []aptitude.Mechanism, seed uint64, results [][]Result) *Report {
	trials := s.Trials()
	if len(results) != len(trials) {
		panic(fmt.Sprintf("study: %d results for %d trials", len(results), len(trials)))
	}
	r := &Report{
		Scenario: s.Name, Seed: seed, Mechanisms: slices.Clone(mechanisms),
		Conditions:  len(s.Conditions()),
		Simulations: len(trials) * len(mechanisms),
		Loads:       s.Loads,
	}
	r.Time = r.measure(trials, results, lessIsBetter, func(x Result) float64 { return x.Time })
	r.Quality = r.measure(trials, results, moreIsBetter, func(x Result) float64 { return x.Quality })
	return r
}

func (r *Report) measure(trials []Trial, results [][]Result, side float64, value func(Result) float64) Measure {
	m := Measure{
		Overall: make(map[aptitude.Mechanism]Summary),
		ByLoad:  make(map[aptitude.Mechanism][]Summary),
		Test:    make(map[aptitude.Mechanism]map[aptitude.Mechanism]Sign),
	}
	samples := make([][]float64, len(r.Mechanisms))
	for i, mech := range r.Mechanisms {
		for _, rs := range results {
			samples[i] = append(samples[i], value(rs[i]))
		}
		m.Overall[mech] = summarize(samples[i])
		for _, load := range r.Loads {
			m.ByLoad[mech] = append(m.ByLoad[mech], summarize(atLoad(trials, samples[i], load)))
		}
	}
	for i, row := range r.Mechanisms {
		m.Test[row] = make(map[aptitude.Mechanism]Sign)
		for j, column := range r.Mechanisms {
			if i != j {
				m.Test[row][column] = compare(samples[i], samples[j], side)
			}
		}
	}
	return m
}

// atLoad picks the observations of the trials with that load.
func atLoad(trials []Trial, sample []float64, load float64) []float64 {
	var xs []float64
	for i, t := range trials {
		if t.Load == load {
			xs = append(xs, sample[i])
		}
	}
	return xs
}

// MarshalJSON writes the report for programs: means and comparisons over all loads,
// and the means per load.
func (r *Report) MarshalJSON() ([]byte, error) {
	type perLoad struct {
		Load    float64                        `json:"load"`
		Time    map[aptitude.Mechanism]Summary `json:"time"`
		Quality map[aptitude.Mechanism]Summary `json:"quality"`
	}
	type signs = map[aptitude.Mechanism]map[aptitude.Mechanism]Sign
	doc := struct {
		Scenario    string                         `json:"scenario"`
		Seed        uint64                         `json:"seed"`
		Conditions  int                            `json:"conditions"`
		Simulations int                            `json:"simulations"`
		Mechanisms  []aptitude.Mechanism           `json:"mechanisms"`
		Time        map[aptitude.Mechanism]Summary `json:"time"`
		Quality     map[aptitude.Mechanism]Summary `json:"quality"`
		TimeTest    signs                          `json:"time_test"`
		QualityTest signs                          `json:"quality_test"`
		ByLoad      []perLoad                      `json:"by_load"`
	}{
		r.Scenario, r.Seed, r.Conditions, r.Simulations, r.Mechanisms,
		r.Time.Overall, r.Quality.Overall, r.Time.Test, r.Quality.Test, nil,
	}
	for i, load := range r.Loads {
		doc.ByLoad = append(doc.ByLoad, perLoad{load, r.Time.atLoad(i), r.Quality.atLoad(i)})
	}
	return json.Marshal(doc)
}

// atLoad gives the summaries at the load with that index.
func (m *Measure) atLoad(i int) map[aptitude.Mechanism]Summary {
	at := make(map[aptitude.Mechanism]Summary, len(m.ByLoad))
	for mech, loads := range m.ByLoad {
		at[mech] = loads[i]
	}
	return at
}
