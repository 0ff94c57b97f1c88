package state

import (
	"iter"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Armed reports whether the slot's trigger may still have to fire. It waits on where
// its holder is only presumed to be gone.
func (s *State) Armed(sl *Slot) bool {
	if sl.Task.TimeToWait == 0 || (sl.State != workflow.NotReady && sl.State != workflow.Failed) {
		return false
	}
	return !sl.Begun() && !sl.Task.Disabled && s.Wanted(sl.Current)
}

// WaitedBefore is for how long an attempt's time-out had run when it was passed
// on to its holder: no longer than it lasts, whatever was said.
func (a *Attempt) WaitedBefore() time.Duration {
	if x := a.Assigned.Fact.Body.Annex; x != nil {
		return min(x.Waited, a.Task.Timeout)
	}
	return 0
}

// PredecessorReady reports whether one of the slot's predecessors is known to be
// ready, running or finished.
func (s *State) PredecessorReady(sl *Slot) bool {
	for _, p := range s.def.Predecessors(sl.Task.Name) {
		for _, from := range s.SlotsOf(p) {
			if from.State != workflow.NotReady {
				return true
			}
		}
	}
	return false
}

// AnswerTime is how long a partition may take once all that it waits for has
// ended: its time-out, and the waits of those of its unfinished tasks that have
// an emergency trigger, which run although nothing else does.
func (s *State) AnswerTime(p workflow.PartitionName, left []*Attempt) time.Duration {
	total := s.plan.Timeout(p)
	for _, a := range left {
		if !a.Slot.Begun() {
			total += a.Slot.Task.TimeToWait
		}
	}
	return total
}

// CountsIn reports whether an attempt is part of what a partition's holder answers
// for: what it has and, where the author gave the partition a time-out as a whole,
// what it passed on. A contingency does not count, no matter which partner has it:
// it is clocked by itself.
func (s *State) CountsIn(p workflow.PartitionName, a *Attempt) bool {
	if s.plan.Home(a.Slot.Task.Name) != p {
		return false
	}
	return a.Depth == 1 || s.plan.Partition(p).Declared && s.lastOf(s.root(a.Slot)) == a
}

// Unjudged reports whether the slot's current attempt has neither succeeded nor
// been judged, be it only presumed to have failed: a second verdict on it would
// change nothing, and nothing would keep a third from following.
func (sl *Slot) Unjudged() bool {
	return sl.Dropped == nil && !sl.State.Done() && sl.Pick == nil && sl.Pending == nil && sl.Current.Success() == nil
}

// MayTake is how long an attempt may take: its time-out, else that of the partition whose
// author gave it one; 0: for ever.
func (s *State) MayTake(a *Attempt) time.Duration {
	home := s.plan.Home(a.Slot.Task.Name)
	if a.Task.Timeout > 0 || !s.CountsIn(home, a) {
		return a.Task.Timeout
	}
	return s.plan.Timeout(home)
}

// Name is what a rule waits for: a task, or a data item.
type Name struct {
	Task workflow.TaskName
	Data workflow.DataName
}

// NamesFor are the names that a task's rule has, of tasks and of data.
func (s *State) NamesFor(t workflow.TaskName) iter.Seq[Name] {
	return func(yield func(Name) bool) {
		for _, pred := range s.def.Predecessors(t) {
			if !yield(Name{Task: pred}) {
				return
			}
		}
		var all []workflow.DataName
		s.def.Task(t).Rule.Terms(func(r *workflow.Rule) {
			if r.Op == workflow.OpData {
				all = append(all, r.Data.Names()...)
			}
		})
		for _, n := range all {
			if !yield(Name{Data: n}) {
				return
			}
		}
	}
}

// Ended is the fact that ended the slot; nil: none did yet.
func (sl *Slot) Ended() *log.Entry {
	switch {
	case sl.Pick != nil:
		return sl.Pick.Success()
	case sl.Outcome != nil:
		return sl.Outcome.At
	}
	return nil
}

// Awaiting are those who hold what waits for an attempt's success, or may wait for
// data that it writes.
func (s *State) Awaiting(a *Attempt) map[workflow.PartnerID]bool {
	next := map[workflow.PartnerID]bool{}
	for _, d := range a.Slot.Dependents {
		s.log.Steps++
		next[d.Current.Partner] = true
		for _, k := range s.KeepersOf(d) {
			next[k] = true
		}
	}
	for _, it := range a.Slot.Writes {
		for p := range it.holders {
			next[p] = true
		}
	}
	return next
}
