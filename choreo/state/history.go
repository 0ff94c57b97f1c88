package state

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/dataflow"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file shows a data-state flow (flow.go).

// StateView is a step of the history of an instance that is driven by its data.
type StateView struct {
	dataflow.Record
	// EquivalentTo is the first state before that satisfies the same conditions; -1: none.
	EquivalentTo int
	// Partner is who brought it about.
	Partner workflow.PartnerID
	// Values are the data of the state, or in which the transition was aborted.
	Values map[workflow.DataName]workflow.Value
	// Pending are the transitions that had been fired and had not ended when the state was there, of the current
	// state those that have not ended now.
	Pending []workflow.TaskName
}

// TriggerView shows a trigger of the flow, by its newest transition.
func (s *State) TriggerView(t *workflow.Task) TaskView {
	f := s.flow
	v := TaskView{Task: t, Partition: s.plan.Home(t.Name), Partner: f.Slot.Current.Partner, State: workflow.NotReady}
	if a := f.Latest[t.Name]; a != nil {
		v = s.attemptView(a, s.jobState(a))
		v.Attempt = a.Fired.Flow.Depth
	}
	pending := f.Line.Board.IsPending(t.Name)
	switch over := s.Overall() != workflow.InstanceRunning; {
	case pending && v.State.Done():
		v.State = workflow.Ready
	case pending && v.State == workflow.NotReady:
		v.State = workflow.Ready
	case over && v.State == workflow.NotReady:
		v.State = workflow.Skipped
	}
	for _, x := range s.SupersededJobs(t.Name) {
		v.Superseded = append(v.Superseded,
			SupersededView{
				Task: x.Task.Name, Partner: x.Partner, Attempt: x.Fired.Flow.Depth, Ended: x.Success().Fact.At,
				Compensation: x.compensation(),
			})
	}
	return v
}

// jobState says where a transition stands.
func (s *State) jobState(a *Attempt) workflow.State {
	switch pending := s.flow.PendingJob(a) != nil; {
	case a.Success() != nil:
		return workflow.Succeeded
	case len(a.Rulings) > 0:
		return workflow.Failed
	case !pending || s.cancel != nil:
		return workflow.Aborted
	case a.Start != nil:
		return workflow.Running
	}
	return workflow.Ready
}

// SupersededJobs are the transitions of a trigger that succeeded for nothing, the earliest first.
func (s *State) SupersededJobs(t workflow.TaskName) (out []*Attempt) {
	for _, said := range s.flow.said {
		for _, e := range said {
			b := e.Fact.Body.Success
			if b == nil {
				continue
			}
			if a := s.attempts[b.Attempt]; a.Transition() && a.Task.Name == t && a.Success() == e &&
				a.Stands == Superseded {
				out = append(out, a)
			}
		}
	}
	slices.SortFunc(out, func(x, y *Attempt) int { return log.ByTime(x.Success(), y.Success()) })
	return out
}
