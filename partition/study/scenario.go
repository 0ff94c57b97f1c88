package study

import (
	"cmp"
	"fmt"

	"github.com/mutirao-mesh/mutirao/partition/aptitude"
)

// Scenario is what a study runs: a process, those who perform it, and the
// conditions to vary. Parse makes it; nobody changes it afterwards. Times are
// in the scenario's own time units.
type Scenario struct {
	Name      string
	Process   []Task // the whole process
	Tasks     []Task // what is allocated: the process, or its critical path
	Resources []Resource

	ResourcesPerRole float64 // the n of λ = load × n / mean time
	MeanTime         float64 // mean processing time where a task states none
	Instances        int     // workflow instances per simulation
	Repetitions      int     // random problems per condition
	Together         bool    // all instances arrive at once: there is one load, which means nothing

	Loads               []float64 // average system load
	TaskVariability     []float64 // standard deviation of a task's mean, relative to it
	ResourceVariability []float64 // standard deviation of a processing time, relative to its mean

	Urgency     aptitude.Urgency
	Dispatching aptitude.Dispatching
	DueFactor   float64 // an instance is due after so many times its expected time; 0: never
	Relax       bool    // thresholds relax as an instance's due date nears
	Compensate  bool    // violations that nobody could avoid are disregarded
	Patience    float64 // how long Sel-push-pull offers an item before it pushes
	Rejection   float64 // chance that a resource turns down what it is given

	Shares Shares

	CriticalPath bool // only the tasks on the costliest path are allocated
}

// Task is a step of the process.
type Task struct {
	Name  aptitude.TaskID
	Roles []string // it is open to resources with any of them
	Time  float64  // mean processing time
	After []int    // indexes of the tasks that must end first
}

// Resource is someone who performs tasks.
type Resource struct {
	Name         aptitude.ResourceID
	Roles        []string
	Availability float64 // at the start, and whenever it has nothing to do
	// Suitability holds the tasks whose roles the resource has, and that no hard
	// constraint bars it from; no others.
	Suitability map[aptitude.TaskID]float64
	Violations  map[aptitude.TaskID][]aptitude.Violation // constraints that it breaks by performing the task
}

// Shares are the rule by which what a resource has in hand counts when an item is given out: by
// the Sel-push family as a charge on its availability, by Pull and its like as being busy.
type Shares string

// The rules for shares.
const (
	// KeptShares: an item costs the share that it had when it was assigned, as published.
	KeptShares Shares = "kept"
	// RenewedShares: the shares of all that is in hand are worked out again for each item that
	// is distributed, one after the other, as live for people's tasks. Only the Sel-push family
	// has shares.
	RenewedShares Shares = "renewed"
	// EarlierShares are RenewedShares in which an item counts only what is in hand of its own
	// instance and of those that arrived before it, as live for partitions: they are given out
	// when their instance starts, and nobody knows then what will be started later. By Pull and
	// its like a resource is idle if it has nothing in hand but work of later instances. It does
	// an item that it takes after that.
	EarlierShares Shares = "earlier"
)

// Condition is one combination of the parameters that a study varies.
type Condition struct {
	Load                float64
	TaskVariability     float64
	ResourceVariability float64
}

// Conditions are all combinations, loads changing slowest.
func (s *Scenario) Conditions() []Condition {
	var cs []Condition
	for _, l := range s.Loads {
		for _, t := range s.TaskVariability {
			for _, r := range s.ResourceVariability {
				cs = append(cs, Condition{l, t, r})
			}
		}
	}
	return cs
}

// describe says in words what holds in a condition.
func (s *Scenario) describe(c Condition) string {
	load := fmt.Sprintf("load %v", c.Load)
	if s.Together {
		load = "all instances at once"
	}
	return fmt.Sprintf("%s, task variability %v, resource variability %v", load, c.TaskVariability,
		c.ResourceVariability)
}

// Trial is one random problem of one condition.
type Trial struct {
	Condition
	Index      int // the condition's place among Conditions
	Repetition int // from 0
}

// DescribeTrial says in words what holds in a trial.
func (s *Scenario) DescribeTrial(t Trial) string {
	return fmt.Sprintf("%s, repetition %d", s.describe(t.Condition), t.Repetition+1)
}

// Trials are all trials of the scenario, condition by condition.
func (s *Scenario) Trials() []Trial {
	var ts []Trial
	for i, c := range s.Conditions() {
		for rep := range s.Repetitions {
			ts = append(ts, Trial{c, i, rep})
		}
	}
	return ts
}

// Example is the trial that charts of a single run show: the first one of the
// middle condition.
func (s *Scenario) Example() Trial {
	cs := s.Conditions()
	return Trial{Condition: cs[len(cs)/2], Index: len(cs) / 2}
}

// policy is how a mechanism is applied in this scenario.
func (s *Scenario) policy(m aptitude.Mechanism) aptitude.Policy {
	return aptitude.Policy{
		Mechanism: m, Dispatching: s.Dispatching, Relax: s.Relax, Compensate: s.Compensate, Patience: s.Patience,
	}
}

// bestQualities are, per task, the greatest quality that anybody reaches.
func (s *Scenario) bestQualities() map[aptitude.TaskID]float64 {
	var rs []aptitude.Resource
	for _, r := range s.Resources {
		rs = append(rs, aptitude.Resource{ID: r.Name, Suitability: r.Suitability})
	}
	best := make(map[aptitude.TaskID]float64, len(s.Tasks))
	for _, t := range s.Tasks {
		best[t.Name] = aptitude.BestQuality(aptitude.Item{Task: t.Name, Violations: s.violations(t.Name)}, rs)
	}
	return best
}

// quality is what a resource gives a task.
func (r *Resource) quality(t aptitude.TaskID) float64 {
	return r.Suitability[t] * aptitude.Conformance(r.Violations[t])
}

// violations are those of a task, by the resource that would commit them; nil when nobody does.
func (s *Scenario) violations(t aptitude.TaskID) map[aptitude.ResourceID][]aptitude.Violation {
	var all map[aptitude.ResourceID][]aptitude.Violation
	for _, r := range s.Resources {
		if vs := r.Violations[t]; len(vs) > 0 {
			if all == nil {
				all = make(map[aptitude.ResourceID][]aptitude.Violation)
			}
			all[r.Name] = vs
		}
	}
	return all
}

// costliestPath gives the indexes of the tasks on the path with the greatest
// sum of times, in order; of equals the one whose tasks come first in the file.
// order is a topological order of the tasks.
func costliestPath(tasks []Task, order []int) []int {
	cost := make([]float64, len(tasks))
	before := make([]int, len(tasks))
	last := -1
	for _, t := range order {
		before[t] = -1
		for _, p := range tasks[t].After {
			if b := before[t]; b < 0 || cmp.Or(cmp.Compare(cost[p], cost[b]), cmp.Compare(b, p)) > 0 {
				before[t] = p
			}
		}
		cost[t] = tasks[t].Time
		if before[t] >= 0 {
			cost[t] += cost[before[t]]
		}
		if last < 0 || cmp.Or(cmp.Compare(cost[t], cost[last]), cmp.Compare(last, t)) > 0 {
			last = t
		}
	}
	var path []int
	for t := last; t >= 0; t = before[t] {
		path = append([]int{t}, path...)
	}
	return path
}
