package state

import (
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about whom people's tasks are offered to (docs/worklists.md, Offers). By the policy of an instance that
// is everybody who has the role, which needs no fact, or some of them: then the holder of an attempt chooses
// among those who are here, and says so in a fact (worklist.Offer). Who comes later is told in another one. Who
// sees an item follows from these facts and the policy, so it is the same at all who have them.
//
// The policy is that of the genesis, else of the definition, until somebody who decides about the instance gives
// another (worklist.Notify): of several the last in the order of facts counts. That is a person's word, about no
// attempt, so any participant may write it down.
//
// An offer gives nobody anything, and takes nothing from anybody: a grant by a holder that did not offer the item
// counts all the same. So a holder that lies about whom it offers items to does no more than it could do by
// granting them to those alone.

// policyAtStart is the policy with which an instance begins.
func (s *State) policyAtStart() worklist.Policy {
	if x := s.log.Genesis().Fact.Body.Annex; x != nil && x.Notify != "" {
		p, _ := worklist.ParsePolicy(x.Notify) // validate has refused others
		return p
	}
	return worklist.Policy{Name: s.def.Distribution.Notify, N: s.def.Distribution.NotifyN}
}

// Policy is the one by which items are offered now.
func (s *State) Policy() worklist.Policy {
	if s.peoples.Board == nil {
		return s.policyAtStart()
	}
	return s.peoples.Board.Policy()
}

// Limits reports whether the policy or a mechanism limits to some of its role who sees an attempt.
func (s *State) Limits(a *Attempt) bool {
	return !a.Task.ByNode() && (!s.Policy().All() || s.Pulled(a))
}

// Offered are those to whom the item of an attempt is offered by name, while nobody has it; toAll: it is for all of its
// role.
func (s *State) Offered(a *Attempt) (to []worklist.User, toAll bool) {
	i := ItemOf(a.ID)
	if !s.Offers(i) {
		return nil, !s.Limits(a)
	}
	return s.peoples.Board.Offered(i)
}

// Offers reports whether the board knows of an item, so that it says who sees it.
func (s *State) Offers(i worklist.Item) bool { return s.peoples.Board != nil && s.peoples.Board.Has(i) }

// Unlimited reports whether everybody of its role sees an item of which the board does not know.
func (s *State) Unlimited(i worklist.Item) bool {
	a := s.attempts[fact.AttemptIDOf(i)]
	return a == nil || !s.Limits(a)
}

// offerAnew has all of people's tasks looked at once more: the policy has changed.
func (s *State) offerAnew() {
	for _, sl := range s.slots {
		if t := sl.Current.Task; !t.ByNode() || t.Whole {
			s.Move(sl)
		}
	}
}

// ToPerform reports whether somebody who takes an attempt from its holder only performs it:
// it is a person's task that can begin. Before it can, the taker is its next holder, has what
// its partition lists, and seeks the performer itself.
func (a *Attempt) ToPerform() bool { return a.Task.ByRole() && a.MayStart() }

// CameWithPartition reports whether an attempt is at its holder because the
// author put its task into a partition that is there.
func (s *State) CameWithPartition(a *Attempt) bool {
	if a.passedOn() {
		return false
	}
	home := s.plan.Home(a.Task.Name)
	return home != "" && s.holder[home] == a.Partner
}

// Mechanism is that of the instance.
func (s *State) Mechanism() aptitude.Mechanism {
	if a := s.log.Genesis().Fact.Body.Annex; a != nil {
		return a.Mechanism
	}
	return partition.PlainRule
}

// Pulled reports whether an attempt is at a person's task that waits to be taken: its holder was not chosen to
// perform it, and it was not passed to another role.
func (s *State) Pulled(a *Attempt) bool {
	return s.ToBeTaken(a) && !s.ForOthers(a)
}

// ToBeTaken is pulled, also of what was passed to another role.
func (s *State) ToBeTaken(a *Attempt) bool {
	return a.Task.ByRole() && !a.Beside() && s.Mechanism().Pulls() && !a.given()
}

// given reports whether an attempt is at its holder since a mechanism gave it to that one to perform, or had it keep
// it: what was passed on as its holder left, or turned it down, is only held there.
func (a *Attempt) given() bool {
	x := a.Assigned.Fact.Body.Annex
	return a.Kept != nil || a.passedOn() && x != nil && x.Offered
}

// PerformerOf is who performs or performed an attempt: the person who has or did its item, or else its holder.
func (s *State) PerformerOf(a *Attempt) worklist.User {
	if s.peoples.Board != nil && !a.Task.ByNode() {
		if h, held := s.HoldOf(a); held && h.Mode != worklist.Handed {
			return h.User
		}
		if _, who, done := s.peoples.Board.Taken(ItemOf(a.ID)); done {
			return who
		}
	}
	return worklist.User(a.Partner)
}
