package study

import (
	"math"
	"math/rand/v2"

	"github.com/mutirao-mesh/mutirao/partition/aptitude"
)

// Problem is what chance brings in one trial. Every mechanism gets the same,
// so that results can be compared in pairs.
type Problem struct {
	Arrival []float64 // per workflow instance, ascending
	Mean    []float64 // per task: its mean processing time, which everybody knows
	// Duration is how long a resource takes: per instance, task and resource.
	// It is drawn for each execution; only those that can happen are.
	Duration [][][]float64
}

// NewProblem draws the problem of a trial.
func NewProblem(s *Scenario, t Trial, seed uint64) *Problem {
	return newProblem(s, t.Condition, source(seed, t, ""))
}

func newProblem(s *Scenario, c Condition, rnd *rand.Rand) *Problem {
	p := &Problem{
		Arrival:  make([]float64, s.Instances),
		Mean:     make([]float64, len(s.Tasks)),
		Duration: make([][][]float64, s.Instances),
	}
	rate := c.Load * s.ResourcesPerRole / s.MeanTime
	at := 0.0
	for i := range p.Arrival {
		at += rnd.ExpFloat64() / rate
		if !s.Together {
			p.Arrival[i] = at
		}
	}
	for t, task := range s.Tasks {
		p.Mean[t] = processingTime(rnd, task.Time, c.TaskVariability)
	}
	for i := range p.Duration {
		p.Duration[i] = s.durations(p.Mean, c.ResourceVariability, rnd)
	}
	return p
}

// durations draws how long each resource would take for each task of one
// workflow instance.
func (s *Scenario) durations(mean []float64, variability float64, rnd *rand.Rand) [][]float64 {
	all := make([]float64, len(s.Tasks)*len(s.Resources))
	ds := make([][]float64, len(s.Tasks))
	for t := range s.Tasks {
		ds[t], all = all[:len(s.Resources)], all[len(s.Resources):]
		for r := range s.Resources {
			if s.Resources[r].Suitability[s.Tasks[t].Name] > 0 {
				ds[t][r] = processingTime(rnd, mean[t], variability)
			}
		}
	}
	return ds
}

// processingTime draws from N(mean, (mean × variability)²), rounded to whole
// time units; what is not positive becomes 1.
func processingTime(rnd *rand.Rand, mean, variability float64) float64 {
	return max(1, math.Round(mean+mean*variability*rnd.NormFloat64()))
}

// source is the randomness of one purpose in one trial: use "" for the problem
// itself, a mechanism's name for what happens under it. So no mechanism's
// results depend on which others are studied, or in which order.
func source(seed uint64, t Trial, use aptitude.Mechanism) *rand.Rand {
	lo := mix(uint64(t.Index)<<32 | uint64(t.Repetition))
	for _, c := range []byte(use) {
		lo = mix(lo ^ uint64(c))
	}
	return rand.New(rand.NewPCG(mix(seed), lo))
}

// mix spreads neighbouring numbers over the whole range, one to one.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
