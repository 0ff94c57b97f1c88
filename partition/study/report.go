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
	Simulations int
	Together    bool // all instances arrived at once: there are no loads to tell apart

	Measures                      // over all trials
	ByLoad      []LoadReport      // none where instances arrived at once
	ByCondition []ConditionReport // in the order of the scenario's Conditions

	// Published is how the signs compare to the source's tables; nil for a
	// scenario that the source does not have.
	Published *Comparison
	// Run is one trial, instance by instance; nil unless it was asked for.
	Run *TrialRun
}

// LoadReport is what was found at one load.
type LoadReport struct {
	Load float64
	Measures
}

// ConditionReport is what was found in one condition.
type ConditionReport struct {
	Condition
	Measures
}

// Measures are all that was measured in a set of trials.
type Measures struct {
	Time         Measure // when the last workflow instance finished
	InstanceTime Measure // from an instance's arrival to its end, mean of each run
	Quality      Measure // Q_total
}

// Measure is one thing that was measured.
type Measure struct {
	Means map[aptitude.Mechanism]Summary
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
		Simulations: len(trials) * len(mechanisms), Together: s.Together,
		Measures: measure(mechanisms, results),
	}
	for i, c := range s.Conditions() {
		of := results[i*s.Repetitions : (i+1)*s.Repetitions]
		r.ByCondition = append(r.ByCondition, ConditionReport{c, measure(mechanisms, of)})
	}
	if !s.Together {
		each := len(trials) / len(s.Loads) // loads change slowest
		for i, load := range s.Loads {
			r.ByLoad = append(r.ByLoad, LoadReport{load, measure(mechanisms, results[i*each:(i+1)*each])})
		}
	}
	if s.isBuiltin() {
		r.Published = compareToSource(r)
	}
	return r
}

// measure describes the results of some trials, in the order of mechanisms.
func measure(mechanisms []aptitude.Mechanism, results [][]Result) Measures {
	of := func(side float64, value func(Result) float64) Measure {
		samples := make([][]float64, len(mechanisms))
		for i := range mechanisms {
			for _, rs := range results {
				samples[i] = append(samples[i], value(rs[i]))
			}
		}
		return measureOf(mechanisms, samples, side)
	}
	return Measures{
		Time:         of(lessIsBetter, func(x Result) float64 { return x.Time }),
		InstanceTime: of(lessIsBetter, func(x Result) float64 { return x.InstanceTime }),
		Quality:      of(moreIsBetter, func(x Result) float64 { return x.Quality }),
	}
}

// measureOf describes one sample per mechanism, and compares them in pairs.
func measureOf(mechanisms []aptitude.Mechanism, samples [][]float64, side float64) Measure {
	m := Measure{
		Means: make(map[aptitude.Mechanism]Summary),
		Test:  make(map[aptitude.Mechanism]map[aptitude.Mechanism]Sign),
	}
	for i, row := range mechanisms {
		m.Means[row] = summarize(samples[i])
		m.Test[row] = make(map[aptitude.Mechanism]Sign)
		for j, column := range mechanisms {
			if i != j {
				m.Test[row][column] = compare(samples[i], samples[j], side)
			}
		}
	}
	return m
}

// measuresJSON is how measures are written, in reports and their parts.
type measuresJSON struct {
	Time             map[aptitude.Mechanism]Summary `json:"time"`
	InstanceTime     map[aptitude.Mechanism]Summary `json:"instance_time"`
	Quality          map[aptitude.Mechanism]Summary `json:"quality"`
	TimeTest         signTable                      `json:"time_test"`
	InstanceTimeTest signTable                      `json:"instance_time_test"`
	QualityTest      signTable                      `json:"quality_test"`
}

type signTable = map[aptitude.Mechanism]map[aptitude.Mechanism]Sign

func (m *Measures) json() measuresJSON {
	return measuresJSON{
		m.Time.Means, m.InstanceTime.Means, m.Quality.Means, m.Time.Test, m.InstanceTime.Test, m.Quality.Test,
	}
}

// MarshalJSON writes the report for programs: means and comparisons over all
// conditions, at each load and in each condition, and how they compare to what was
// published.
func (r *Report) MarshalJSON() ([]byte, error) {
	type perLoad struct {
		Load float64 `json:"load"`
		measuresJSON
	}
	type perCondition struct {
		Load                *float64 `json:"load"`
		TaskVariability     float64  `json:"task_variability"`
		ResourceVariability float64  `json:"resource_variability"`
		measuresJSON
	}
	doc := struct {
		Scenario    string               `json:"scenario"`
		Seed        uint64               `json:"seed"`
		Conditions  int                  `json:"conditions"`
		Simulations int                  `json:"simulations"`
		Together    bool                 `json:"together"`
		Mechanisms  []aptitude.Mechanism `json:"mechanisms"`
		measuresJSON
		Published   *Comparison    `json:"published,omitempty"`
		ByLoad      []perLoad      `json:"by_load,omitempty"`
		ByCondition []perCondition `json:"by_condition"`
		Run         *TrialRun      `json:"run,omitempty"`
	}{
		Scenario: r.Scenario, Seed: r.Seed, Conditions: len(r.ByCondition), Simulations: r.Simulations,
		Together:   r.Together,
		Mechanisms: r.Mechanisms, measuresJSON: r.Measures.json(), Published: r.Published, Run: r.Run,
	}
	for i := range r.ByLoad {
		l := &r.ByLoad[i]
		doc.ByLoad = append(doc.ByLoad, perLoad{l.Load, l.Measures.json()})
	}
	for i := range r.ByCondition {
		c := &r.ByCondition[i]
		p := perCondition{&c.Load, c.TaskVariability, c.ResourceVariability, c.Measures.json()}
		if r.Together {
			p.Load = nil
		}
		doc.ByCondition = append(doc.ByCondition, p)
	}
	return json.Marshal(doc)
}
