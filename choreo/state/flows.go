package state

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/dataflow"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Clashes are the data because of which a result is a failure, as its author wants.
func (f *FlowWork) Clashes(a *Attempt, outputs map[workflow.DataName]workflow.Value) []workflow.DataName {
	if f.PendingJob(a) == nil {
		return nil
	}
	return f.Line.Board.Clashes(JobOf(a.ID), outputs)
}

// ErrTooEarly is returned for a result that is not taken, as its state would be final while other transitions are
// pending. Its transition is tried again later.
var ErrTooEarly = errors.New("the result is not taken now")

// TooEarlyFor is the error of a result that is not taken now; nil: it may be.
func (s *State) TooEarlyFor(a *Attempt, outputs map[workflow.DataName]workflow.Value) error {
	f := s.flow
	if !a.Transition() || f.PendingJob(a) == nil ||
		f.Line.Board.Refuses(JobOf(a.ID), outputs) != dataflow.FinalTooEarly {
		return nil
	}
	return fmt.Errorf("%w: %s: wait until these have ended: %s", ErrTooEarly, dataflow.FinalTooEarly,
		s.pendingBeside(a))
}

// pendingBeside names the other triggers of which something is pending.
func (s *State) pendingBeside(a *Attempt) string {
	var others []string
	for _, p := range s.flow.Line.Board.Pending() {
		if p.Task.Name != a.Task.Name {
			others = append(others, string(p.Task.Name))
		}
	}
	return strings.Join(others, ", ")
}

// TooEarly reports whether a transition waits because its state would be final.
func (a *Attempt) TooEarly() bool {
	return a.Fired != nil && a.Failed != nil && a.Failed.Fact.Body.TryFailed.Reason == dataflow.FinalTooEarly
}

// PeoplesJobs are the transitions that wait for people, by trigger, or the compensation of one for which a recovery
// waits.
func (s *State) PeoplesJobs() (out []*Attempt) {
	if s.flow == nil || s.flow.Line == nil {
		return nil
	}
	for _, p := range s.flow.Line.Board.Pending() {
		if a := s.attempts[AttemptOfJob(p.Job)]; a != nil && !a.Task.ByNode() && s.Wanted(a) {
			out = append(out, a)
		}
	}
	if u := s.flow.Line.Board.Undoing(); u != nil {
		if a := s.attempts[AttemptOfJob(u.Job)]; a != nil && !a.Task.ByNode() && s.Wanted(a) {
			out = append(out, a)
		}
	}
	return out
}

// MayUndoIn are the attempts of a slot whose success may have lost.
func (s *State) MayUndoIn(sl *Slot) []*Attempt {
	if s.flow == nil || sl != s.flow.Slot || len(s.flow.lost) == 0 {
		return sl.Attempts
	}
	return append(slices.Clone(sl.Attempts), sortedJobs(s.flow.lost)...)
}
