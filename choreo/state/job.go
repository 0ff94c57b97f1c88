package state

import (
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Job is a try of an automatic task.
type Job struct {
	Attempt fact.AttemptID
	Try     int
	Task    *workflow.Task
	Input   map[workflow.DataName]workflow.Value
	Lease   *fact.Lease // a worker's that has it already; nil: nobody's
	// Key names the job in place of the attempt where it is the same at whoever begins it: the
	// state that fired a transition, and its trigger. Zero: the attempt does.
	Key fact.AttemptID
}

// Job is what is to be run for a try of an attempt, by the data as they stand.
func (s *State) Job(a *Attempt, try int) Job {
	input := make(map[workflow.DataName]workflow.Value, len(a.Task.In))
	for _, n := range Inputs(a.Task) {
		if w, ok := s.data[n]; ok && !a.Transition() {
			input[n] = w.Value
		}
		if v, ok := a.undone()[n]; ok {
			input[n] = v
		}
	}
	j := Job{Attempt: a.ID, Try: try, Task: a.Task, Input: input}
	if l := a.leased(); l != nil && l.Try == try {
		j.Lease = l
	}
	if a.Fired != nil {
		s.flow.fit(&j, a)
	}
	return j
}

// fit gives the job of a transition the state that fired it, and a name that it has wherever it is begun.
func (f *FlowWork) fit(j *Job, a *Attempt) {
	if p := f.PendingJob(a); p != nil {
		for n, v := range p.Input {
			j.Input[n] = v
		}
		j.Key = fact.AttemptID{Fact: a.Fired.state, Slot: a.ID.Slot}
	}
}
