package choreo

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/contingency"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// settle brings slots, data and states up to date with what was applied. Only
// what changed, and what mentions it, is looked at again.
func (s *State) settle() {
	s.end = ""
	s.conclude()
	s.settleFlow()
	if !s.cyclic {
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
		return sl.waits() || sl.hasData && sl.ruleComes().Truth == workflow.True
	}
	return false
}

func (s *State) propagate() {
	for i := 0; i < len(s.dirty); i++ { // it grows meanwhile
		sl := s.dirty[i]
		s.log.steps++
		sl.queued = false
		s.move(sl)
		s.writeData(sl)
		s.stand(sl, s.stateOf(sl))
		s.answer(sl)
	}
	s.dirty = s.dirty[:0]
}

// move has the machine look at the slot.
func (s *State) move(sl *Slot) {
	if !sl.moved {
		sl.moved = true
		s.moved = append(s.moved, sl)
	}
}

// stand notes where a slot's task stands, and what of the instance depends on it.
func (s *State) stand(sl *Slot, st workflow.State) {
	if len(s.patient) > 0 && sl.State == workflow.NotReady && st != workflow.NotReady {
		for _, d := range sl.dependents {
			s.log.steps++
			if d.waits() {
				s.move(d) // the wait of its trigger may begin
			}
		}
	}
	s.lifted = s.lifted || sl.State != st && sl.State.Done()
	sl.State = st
	if open := !st.Done(); open != sl.open {
		sl.open = open
		for _, it := range sl.writes {
			s.log.steps++
			s.opens(it, open)
		}
	}
	pending := sl.Pending != nil && sl.Pick == nil
	failed := st == workflow.Failed || st == workflow.Aborted
	is := weight{
		going: sl.open || pending, pending: pending, blocked: st == workflow.Blocked, failed: failed,
		underWay: sl.underWay(), forData: st == workflow.NotReady && sl.hasData,
	}
	if is == sl.weighs {
		return
	}
	s.pending += one(is.pending) - one(sl.weighs.pending)
	s.going += one(is.going) - one(sl.weighs.going)
	s.blocked += one(is.blocked) - one(sl.weighs.blocked)
	s.underWay += one(is.underWay) - one(sl.weighs.underWay)
	s.forData += one(is.forData) - one(sl.weighs.forData)
	if is.failed {
		s.failures[sl] = true
	} else {
		delete(s.failures, sl)
	}
	sl.weighs = is
}

// weight is what a slot counts for when people ask how the instance stands.
type weight struct{ going, pending, blocked, failed, underWay, forData bool }

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// stateOf says where a slot's task stands.
func (s *State) stateOf(sl *Slot) workflow.State {
	a := sl.Current
	sl.Spared, sl.barred = false, (s.broken > 0 || s.isFinal()) && !sl.begun()
	switch {
	case sl.Pick != nil:
		return workflow.Succeeded
	case sl.Outcome != nil:
		return workflow.Failed
	case s.cancel != nil:
		return workflow.Aborted
	case a.off != nil:
		return workflow.Aborted
	case a.start != nil:
		return workflow.Running
	case sl.begun():
		return workflow.Ready
	}
	switch f := sl.ruleComes(); {
	case sl.Dropped != nil && f.Truth == workflow.True:
		sl.Spared = true
		return workflow.Skipped
	case sl.Task.Disabled, sl.barred && s.broken == 0: // the data are final
		return workflow.Skipped
	case f.Truth == workflow.Impossible && f.ByFailure:
		return workflow.Blocked
	case f.Truth == workflow.Impossible:
		return workflow.Skipped
	case sl.barred && !sl.waits(): // nothing disarms an emergency trigger
		return workflow.Blocked
	case f.Truth == workflow.True && !sl.hasData && !sl.barred:
		return workflow.Ready
	}
	return workflow.NotReady
}

// begun reports whether the slot was recorded as ready, or started, in one of its
// attempts: a contingency then goes on at once. One that stands in for a task
// that was still waiting, as in a partition that failed as a whole, waits for
// what that task waited for (docs/systems.md, Failure: figure 22).
func (sl *Slot) begun() bool {
	return slices.ContainsFunc(sl.Attempts, func(a *Attempt) bool { return a.ready != nil || a.start != nil })
}

// view answers the terms of a slot's rule, as they stand.
type view struct {
	s  *State
	of *Slot // whose rule it is; nil: nobody's
}

// TaskTerm says what a rule may hold of a task's slot.
func (v view) TaskTerm(tr workflow.Transition, t workflow.TaskName) workflow.Finding {
	if sl := v.s.bySlot[t]; sl != nil {
		return contingency.Spared(sl.term(tr), v.of.waits())
	}
	return contingency.Spared(v.s.ask(tr, t).comes, v.of.waits())
}

// DataTerm says what a term about data comes to.
func (v view) DataTerm(e *workflow.Expr) workflow.Finding {
	return v.s.conditionFor(v.s.conditionOn(e), v.of)
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

// term is what a transition of the slot comes to.
func (sl *Slot) term(tr workflow.Transition) workflow.Finding {
	if sl.Spared {
		if tr == workflow.BecameFailed {
			return workflow.Finding{Truth: workflow.Impossible, BySuccess: true}
		}
		return workflow.Finding{Truth: workflow.True}
	}
	open := !sl.State.Done()
	started := slices.ContainsFunc(sl.Attempts, func(a *Attempt) bool { return a.start != nil })
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
	if o := sl.Outcome; sl.State == workflow.Failed && o != nil && o.action.Kind == workflow.FailRelease {
		return workflow.Finding{Truth: workflow.Impossible, Dropped: true}
	}
	return truth(sl.Pick != nil && !sl.Held, open, byFailure)
}

// termOf is what a transition of a task that is only a contingency comes to in
// one slot.
func (s *State) termOf(sl *Slot, tr workflow.Transition, t workflow.TaskName) workflow.Finding {
	open := !sl.State.Done()
	a := s.standIn(sl, t)
	if a == nil {
		return truth(false, open, false)
	}
	switch done := a.success() != nil; tr {
	case workflow.BecameReady:
		return truth(true, true, false)
	case workflow.BecameRunning:
		return truth(a.start != nil || done, open, false)
	case workflow.BecameFailed:
		f := truth(len(a.rulings) > 0 && !done, open, false)
		f.BySuccess = f.Truth == workflow.Impossible && done
		return f
	default:
		return truth(done && a.stands == standing, open, len(a.rulings) > 0)
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

// overall says how the instance stands (docs/language.md, final).
func (s *State) overall() workflow.InstanceState {
	switch {
	case s.cancel != nil:
		return workflow.InstanceCancelled
	case s.going > 0:
		return workflow.InstanceRunning
	case s.broken > 0:
		return workflow.InstanceBlocked
	case s.isFinal():
		return workflow.InstanceSucceeded
	case s.blocked > 0:
		return workflow.InstanceBlocked
	case s.final != nil:
		return workflow.InstanceFailed
	}
	if s.end == "" {
		s.end = workflow.InstanceSucceeded
		for sl := range s.failures {
			if !s.handled(sl) {
				s.end = workflow.InstanceFailed
			}
		}
	}
	return s.end
}

// handled reports whether a failure was released, or taken up by a task that
// started and whose rule asks for it.
func (s *State) handled(sl *Slot) bool {
	if sl.Outcome != nil && sl.Outcome.action.Kind == workflow.FailRelease {
		return true
	}
	q := s.questions[asked{workflow.BecameFailed, sl.Task.Name}]
	return q != nil && slices.ContainsFunc(q.terms, func(n *clause) bool { return n.of.Current.start != nil })
}
