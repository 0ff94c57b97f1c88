package state

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/dataflow"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file says how the instance stands as a whole.

// Overall says how the instance stands (docs/language.md, final).
func (s *State) Overall() workflow.InstanceState {
	switch {
	case s.cancel != nil:
		return workflow.InstanceCancelled
	case s.going > 0:
		return workflow.InstanceRunning
	case s.broken > 0:
		return workflow.InstanceBlocked
	case s.IsFinal():
		return workflow.InstanceSucceeded
	case s.blocked > 0:
		return workflow.InstanceBlocked
	case s.final != nil:
		return workflow.InstanceFailed
	}
	if s.end == "" {
		s.end = workflow.InstanceSucceeded
		for sl := range s.failures {
			if !s.Handled(sl) {
				s.end = workflow.InstanceFailed
			}
		}
	}
	return s.end
}

// Handled reports whether a failure was released, or taken up by a task that
// started and whose rule asks for it.
func (s *State) Handled(sl *Slot) bool {
	if sl.Outcome != nil && sl.Outcome.Action.Kind == workflow.FailRelease {
		return true
	}
	q := s.questions[TransitionOf{workflow.BecameFailed, sl.Task.Name}]
	return q != nil && slices.ContainsFunc(q.Terms, func(n *Clause) bool { return n.Of.Current.Start != nil })
}

// AsksWhetherFailed reports whether a rule asks whether a task failed.
func (s *State) AsksWhetherFailed(t workflow.TaskName) bool {
	return s.questions[TransitionOf{workflow.BecameFailed, t}] != nil
}

// Unhandled reports whether an attempt has failed, and nothing deals with that.
func (s *State) Unhandled(a *Attempt) bool {
	sl := a.Slot
	return sl.Current == a && sl.Pick == nil && sl.Outcome != nil && sl.Outcome.Action.Kind == workflow.FailBlock &&
		s.cancel == nil && !a.Beside() && !s.Handled(sl)
}

func (s *State) ShownState() workflow.InstanceState {
	if s.Interruption() != nil {
		return workflow.InstanceInterrupted
	}
	return s.Overall()
}

func (s *State) Interruption() *dataflow.Interruption {
	if s.flow == nil || s.flow.Line == nil || s.Overall() != workflow.InstanceRunning {
		return nil // while facts are folded from the first on there is no line yet
	}
	return s.flow.Line.Board.Interrupted()
}
