package state

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// why is how an attempt that was assigned by itself came to its partner, why its holder
// keeps it, or how those were weighed to whom it was offered.
func (a *Attempt) why() *fact.Why {
	e := a.Assigned
	switch {
	case a.Kept != nil:
		e = a.Kept
	case a.Weighed != nil && !a.given():
		e = a.Weighed
	}
	return e.Fact.Body.Annex.Of("", a.Task.Name)
}

// ByItself reports whether somebody was chosen for the attempt alone, and not for
// a partition.
func (a *Attempt) ByItself() bool { return a.Depth > 1 || a.Kept != nil }

// Ended reports whether nothing more is expected of a task.
func (s *State) Ended(t workflow.TaskName) bool {
	return !slices.ContainsFunc(s.SlotsOf(t), func(sl *Slot) bool { return !sl.State.Done() })
}

// Chosen reports whether the attempt's holder was chosen to perform it, and does not
// only hold it.
func (a *Attempt) Chosen() bool { return a.Kept != nil || a.passedOn() }

// GivenToPerform reports whether an attempt is at its holder only to be performed there: the holder of its partition
// offered it, also where others passed it on since.
func (s *State) GivenToPerform(a *Attempt) bool {
	home := s.plan.Home(a.Task.Name)
	if to, _ := s.MovedTo(home); !a.ToPerform() || s.ForOthers(a) || a.Partner == s.holder[home] || a.Partner == to {
		return false
	}
	for ; a.passedOn(); a = s.attempts[a.Assigned.Fact.Body.Assign.After] {
		if a.given() {
			return true
		}
	}
	return false
}

// Rejecters are those that rejected an attempt until it came to a's holder. A
// partner that offers what came with a partition, or by a verdict, has not
// rejected it; one that gives on what was given to it has.
func (s *State) Rejecters(a *Attempt) (out []workflow.PartnerID) {
	for a.passedOn() {
		b := &a.Assigned.Fact.Body
		before := s.attempts[b.Assign.After]
		if before.passedOn() || b.Annex == nil || !b.Annex.Offered {
			out = append(out, before.Partner)
		}
		a = before
	}
	return out
}
