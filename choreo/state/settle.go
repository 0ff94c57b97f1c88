package state

import (
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
