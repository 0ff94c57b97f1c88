package state

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file says what rules are told of a slot: whether its task has come to be ready, to run, to succeed or to
// fail, may still do so, or cannot any more.

// Term is what a transition of the slot comes to.
func (sl *Slot) Term(tr workflow.Transition) workflow.Finding {
	if sl.Spared {
		if tr == workflow.BecameFailed {
			return workflow.Finding{Truth: workflow.Impossible, BySuccess: true}
		}
		return workflow.Finding{Truth: workflow.True}
	}
	open := !sl.State.Done()
	started := slices.ContainsFunc(sl.Attempts, func(a *Attempt) bool { return a.Start != nil })
	// Called off although nothing took its place: that is a failure, too.
	failed := sl.State == workflow.Failed || sl.State == workflow.Aborted
	byFailure := sl.State == workflow.Blocked || failed
	switch tr {
	case workflow.BecameReady:
		return truth(sl.State == workflow.Ready || started || sl.Pick != nil, open, byFailure)
	case workflow.BecameRunning:
		return truth(started || sl.Pick != nil, open, byFailure)
	case workflow.BecameFailed:
		f := truth(failed, open, sl.State == workflow.Blocked)
		f.BySuccess = f.Truth == workflow.Impossible && sl.Pick != nil
		return f
	}
	// Without an outcome its state is about to change.
	if o := sl.Outcome; sl.State == workflow.Failed && o != nil && o.Action.Kind == workflow.FailRelease {
		return workflow.Finding{Truth: workflow.Impossible, Dropped: true}
	}
	return truth(sl.Pick != nil && !sl.Held, open, byFailure)
}

func truth(held, possible, byFailure bool) workflow.Finding {
	switch {
	case held:
		return workflow.Finding{Truth: workflow.True}
	case possible:
		return workflow.Finding{Truth: workflow.Undecided}
	}
	return workflow.Finding{Truth: workflow.Impossible, ByFailure: byFailure}
}

// TermOf is what a transition of a task that is only a contingency comes to in
// one slot.
func (s *State) TermOf(sl *Slot, tr workflow.Transition, t workflow.TaskName) workflow.Finding {
	open := !sl.State.Done()
	a := s.standIn(sl, t)
	if a == nil {
		return truth(false, open, false)
	}
	switch done := a.Success() != nil; tr {
	case workflow.BecameReady:
		return truth(true, true, false)
	case workflow.BecameRunning:
		return truth(a.Start != nil || done, open, false)
	case workflow.BecameFailed:
		f := truth(len(a.Rulings) > 0 && !done, open, false)
		f.BySuccess = f.Truth == workflow.Impossible && done
		return f
	default:
		return truth(done && a.Stands == Standing, open, len(a.Rulings) > 0)
	}
}

// standIn is the attempt in a slot at a task that is only a contingency, with
// the last partner that it was passed on to, and by order once more. nil: there is none yet.
func (s *State) standIn(sl *Slot, t workflow.TaskName) *Attempt {
	i := slices.IndexFunc(sl.Attempts, func(a *Attempt) bool { return a.Task.Name == t })
	if i < 0 {
		return nil
	}
	return s.latest(sl.Attempts[i])
}
