package study

import (
	"github.com/mutirao-mesh/mutirao/partition/aptitude"
)

// InstanceRun is one workflow instance as one simulation performed it.
type InstanceRun struct {
	Instance int       `json:"instance"` // from 1
	Arrived  float64   `json:"arrived"`
	Ended    float64   `json:"ended"`
	Time     float64   `json:"time"`    // from its arrival to its end
	Quality  float64   `json:"quality"` // Q_total of its tasks
	Tasks    []TaskRun `json:"tasks"`   // in the order in which they ended
}

// TaskRun is one task of an instance: who performed it, and when.
type TaskRun struct {
	Task     aptitude.TaskID     `json:"task"`
	Resource aptitude.ResourceID `json:"resource"`
	Ready    float64             `json:"ready"`
	Start    float64             `json:"start"`
	End      float64             `json:"end"`
}

// MechanismRun is one run under one mechanism.
type MechanismRun struct {
	Mechanism aptitude.Mechanism `json:"mechanism"`
	Time      float64            `json:"time"`
	Quality   float64            `json:"quality"`
	Instances []InstanceRun      `json:"instances"`
}

// TrialRun is one trial, instance by instance.
type TrialRun struct {
	Trial string         `json:"trial"` // in words
	Runs  []MechanismRun `json:"runs"`  // one per mechanism
}

// RunInstances simulates one trial under each mechanism, and gives what became
// of each workflow instance.
func RunInstances(s *Scenario, t Trial, mechanisms []aptitude.Mechanism, seed uint64) (*TrialRun, error) {
	p := NewProblem(s, t, seed)
	all := &TrialRun{Trial: s.DescribeTrial(t)}
	for _, m := range mechanisms {
		r, work, err := simulate(s, p, m, source(seed, t, m))
		if err != nil {
			return nil, err
		}
		all.Runs = append(all.Runs, MechanismRun{m, r.Time, r.Quality, s.instanceRuns(p, work)})
	}
	return all, nil
}

// instanceRuns sorts the work of a run, which is in the order of its ends, by
// instances.
func (s *Scenario) instanceRuns(p *Problem, work []Work) []InstanceRun {
	runs := make([]InstanceRun, s.Instances)
	qualities := make([]aptitude.Quality, s.Instances)
	best := s.bestQualities()
	for _, w := range work {
		task, r := s.Tasks[w.Task].Name, &s.Resources[w.Resource]
		qualities[w.Instance].Add(r.quality(task), best[task])
		run := &runs[w.Instance]
		run.Ended = w.End
		run.Tasks = append(run.Tasks, TaskRun{task, r.Name, w.Ready, w.Start, w.End})
	}
	for i := range runs {
		runs[i].Instance, runs[i].Arrived, runs[i].Quality = i+1, p.Arrival[i], qualities[i].Total()
		runs[i].Time = runs[i].Ended - runs[i].Arrived
	}
	return runs
}

// instanceTime is how long an instance took on average. The work is in the order
// of its ends.
func (p *Problem) instanceTime(work []Work) float64 {
	ended := make([]float64, len(p.Arrival))
	for _, w := range work {
		ended[w.Instance] = w.End
	}
	sum := 0.0
	for i, at := range p.Arrival {
		sum += ended[i] - at
	}
	return sum / float64(len(p.Arrival))
}
