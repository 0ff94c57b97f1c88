package state

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/contingency"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Settle brings slots, data and states up to date with what was applied. Only
// what changed, and what mentions it, is looked at again.
func (s *State) Settle() {
	s.end = ""
	s.conclude()
	s.settleFlow()
	if !s.Cyclic {
		s.propagate()
		return
	}
	if !s.idle {
		s.lifted = false
		s.propagate()
	} else if len(s.dirty) > 0 {
		s.lifted = true
	}
	if s.lifted {
		s.resettle()
	}
	if !s.idle && s.quiescent() {
		s.presume(true)
		s.propagate()
	}
}

// resettle works out all states from nothing, for a definition in which tasks wait
// for data that they would write for each other, when something that was decided is
// not so any more: what was concluded from it could hold itself up. While more and
// more is decided, nothing can. What is undecided about data when nothing is
// under way that may change it stays as it is, and counts as impossible.
func (s *State) resettle() {
	s.presume(false)
	for _, sl := range s.slots {
		s.stand(sl, workflow.NotReady)
	}
	for _, sl := range s.slots {
		s.answer(sl)
		s.touch(sl)
	}
	s.propagate()
}

// presume notes whether nothing is under way that could change the data.
func (s *State) presume(idle bool) {
	if s.idle == idle {
		return
	}
	s.idle = idle
	for _, c := range s.conditions {
		s.reconsider(c)
	}
}

// quiescent reports whether nothing is under way that could change the data
// while something waits for data.
func (s *State) quiescent() bool { return s.underWay == 0 && s.forData > 0 }

// underWay reports whether a slot's task may come to change the data: a trigger may still
// fire, or its holder is about to say that its rule about data holds.
func (sl *Slot) underWay() bool {
	switch sl.State {
	case workflow.Ready, workflow.Running:
		return true
	case workflow.NotReady:
		return sl.waits() || sl.HasData && sl.RuleComes().Truth == workflow.True
	}
	return false
}

func (s *State) propagate() {
	for i := 0; i < len(s.dirty); i++ { // it grows meanwhile
		sl := s.dirty[i]
		s.log.Steps++
		sl.queued = false
		s.Move(sl)
		s.writeData(sl)
		s.stand(sl, s.stateOf(sl))
		s.answer(sl)
	}
	s.dirty = s.dirty[:0]
}

// Move has the machine look at the slot.
func (s *State) Move(sl *Slot) {
	if !sl.moved {
		sl.moved = true
		s.moved = append(s.moved, sl)
	}
}

// stand notes where a slot's task stands, and what of the instance depends on it.
func (s *State) stand(sl *Slot, st workflow.State) {
	if len(s.patient) > 0 && sl.State == workflow.NotReady && st != workflow.NotReady {
		for _, d := range sl.Dependents {
			s.log.Steps++
			if d.waits() {
				s.Move(d) // the wait of its trigger may begin
			}
		}
	}
	s.lifted = s.lifted || sl.State != st && sl.State.Done()
	sl.State = st
	if open := !st.Done(); open != sl.open {
		sl.open = open
		for _, it := range sl.Writes {
			s.log.Steps++
			s.opens(it, open)
		}
	}
	pending := sl.Pending != nil && sl.Pick == nil
	failed := st == workflow.Failed || st == workflow.Aborted
	is := weight{
		going: sl.open || pending, pending: pending, blocked: st == workflow.Blocked, failed: failed,
		underWay: sl.underWay(), forData: st == workflow.NotReady && sl.HasData,
	}
	if is == sl.weighs {
		return
	}
	s.pending += AsInt(is.pending) - AsInt(sl.weighs.pending)
	s.going += AsInt(is.going) - AsInt(sl.weighs.going)
	s.blocked += AsInt(is.blocked) - AsInt(sl.weighs.blocked)
	s.underWay += AsInt(is.underWay) - AsInt(sl.weighs.underWay)
	s.forData += AsInt(is.forData) - AsInt(sl.weighs.forData)
	if is.failed {
		s.failures[sl] = true
	} else {
		delete(s.failures, sl)
	}
	sl.weighs = is
}

// stateOf says where a slot's task stands.
func (s *State) stateOf(sl *Slot) workflow.State {
	a := sl.Current
	sl.Spared, sl.barred = false, (s.broken > 0 || s.IsFinal()) && !sl.Begun()
	switch {
	case sl.Pick != nil:
		return workflow.Succeeded
	case sl.Outcome != nil:
		return workflow.Failed
	case s.cancel != nil:
		if s.leftOut(sl) { // it stays so: nobody had to do it
			return workflow.Skipped
		}
		return workflow.Aborted
	case a.Off != nil:
		return workflow.Aborted
	case a.Start != nil:
		return workflow.Running
	case sl.Begun():
		return workflow.Ready
	}
	if s.leftOut(sl) {
		return workflow.Skipped
	}
	switch f := sl.RuleComes(); {
	case f.Truth == workflow.Impossible && f.ByFailure:
		return workflow.Blocked
	case sl.barred && !sl.waits(): // nothing disarms an emergency trigger
		return workflow.Blocked
	case f.Truth == workflow.True && !sl.HasData && !sl.barred:
		return workflow.Ready
	}
	return workflow.NotReady
}

// leftOut reports whether a slot's task, which nobody began, is not needed, and notes whether it is spared.
func (s *State) leftOut(sl *Slot) bool {
	if sl.Begun() || sl.Current.Off != nil {
		return false
	}
	f := sl.RuleComes()
	sl.Spared = sl.Dropped != nil && f.Truth == workflow.True
	return sl.Spared || sl.Task.Disabled || (sl.barred && s.broken == 0) || // the data are final
		(f.Truth == workflow.Impossible && !f.ByFailure)
}

// Begun reports whether the slot was recorded as ready, or started, in one of its
// attempts: a contingency then goes on at once. One that stands in for a task
// that was still waiting, as in a partition that failed as a whole, waits for
// what that task waited for (docs/systems.md, Failure: figure 22).
func (sl *Slot) Begun() bool {
	return slices.ContainsFunc(sl.Attempts, func(a *Attempt) bool { return a.Ready != nil || a.Start != nil })
}

// TaskTerm says what a rule may hold of a task's slot.
func (v View) TaskTerm(tr workflow.Transition, t workflow.TaskName) workflow.Finding {
	if sl := v.S.bySlot[t]; sl != nil {
		return contingency.Spared(sl.Term(tr), v.Of.waits())
	}
	return contingency.Spared(v.S.ask(tr, t).comes, v.Of.waits())
}

// DataTerm says what a term about data comes to.
func (v View) DataTerm(e *workflow.Expr) workflow.Finding {
	return v.S.conditionFor(v.S.conditionOn(e), v.Of)
}

// waits reports whether the slot's task has a time-to-wait.
func (sl *Slot) waits() bool { return sl != nil && sl.Task.TimeToWait > 0 }

func truth(held, possible, byFailure bool) workflow.Finding {
	switch {
	case held:
		return workflow.Finding{Truth: workflow.True}
	case possible:
		return workflow.Finding{Truth: workflow.Undecided}
	}
	return workflow.Finding{Truth: workflow.Impossible, ByFailure: byFailure}
}

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

// Wanted reports whether the slot still waits for this attempt. A slot is held
// for the sake of the attempt in charge, so that one goes on too. One that its holder
// called off does not, though others only presume that it failed. A transition is wanted while it is pending.
func (s *State) Wanted(a *Attempt) bool {
	if a.Transition() {
		return s.Wanted(a.Fired.Flow) && s.flow.PendingJob(a) != nil
	}
	sl := a.Slot
	return sl.Dropped == nil && sl.Pick == nil && sl.Current == a && a.Off == nil && !sl.over() && s.cancel == nil
}

func (sl *Slot) RuleHolds() bool {
	return !sl.barred && sl.RuleComes().Truth == workflow.True
}

// WaitsForData reports whether the attempt's rule, which is about data, holds
// and this has not been recorded yet.
func (a *Attempt) WaitsForData() bool {
	return a.Slot.HasData && !a.Slot.Begun() && a.Slot.RuleHolds()
}
