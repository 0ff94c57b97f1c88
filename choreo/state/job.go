package state

import (
	"github.com/mutirao-mesh/mutirao/workflow"
)

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
