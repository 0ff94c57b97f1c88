package choreo

import (
	"fmt"

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

// validateNotify checks the policy that a genesis gives.
func (x *Annex) validateNotify() error {
	if x.Notify == "" {
		return nil
	}
	p, err := worklist.ParsePolicy(x.Notify)
	if err == nil && p.String() != x.Notify {
		err = fmt.Errorf("the policy %q is not written in the one way: want %q", x.Notify, p)
	}
	return err
}

// policyAtStart is the policy with which an instance begins.
func (s *State) policyAtStart() worklist.Policy {
	if x := s.log.genesis.fact.Body.Annex; x != nil && x.Notify != "" {
		p, _ := worklist.ParsePolicy(x.Notify) // validate has refused others
		return p
	}
	return worklist.Policy{Name: s.def.Distribution.Notify, N: s.def.Distribution.NotifyN}
}

// policy is the one by which items are offered now.
func (s *State) policy() worklist.Policy {
	if s.peoples.board == nil {
		return s.policyAtStart()
	}
	return s.peoples.board.Policy()
}

// Policy is by which policy people's tasks are offered now.
func (m *Machine) Policy() worklist.Policy { return m.state.policy() }

// limits reports whether the policy or a mechanism limits to some of its role who sees an attempt.
func (s *State) limits(a *Attempt) bool {
	return a.undoes == nil && !a.Task.ByNode() && (!s.policy().All() || s.pulled(a))
}

// offered are those to whom an item is offered by name, while nobody has it; toAll: it is for all of its role.
func (s *State) offered(i worklist.Item) (to []worklist.User, toAll bool) {
	if !s.offers(i) {
		return nil, s.unlimited(i)
	}
	return s.peoples.board.Offered(i)
}

// offers reports whether the board knows of an item, so that it says who sees it.
func (s *State) offers(i worklist.Item) bool { return s.peoples.board != nil && s.peoples.board.Has(i) }

// unlimited reports whether everybody of its role sees an item of which the board does not know.
func (s *State) unlimited(i worklist.Item) bool {
	a := s.attempts[attemptIDOf(i)]
	return a == nil || !s.limits(a)
}

// Sees reports whether somebody who may do an item sees it while nobody has it.
func (m *Machine) Sees(i worklist.Item, u worklist.User) bool {
	if !m.state.offers(i) {
		return m.state.unlimited(i) || u == m.state.responsible()
	}
	return m.state.peoples.board.Visible(i, u)
}

// offerAnew has all of people's tasks looked at once more: the policy has changed.
func (s *State) offerAnew() {
	for _, sl := range s.slots {
		if t := sl.Current.Task; !t.ByNode() || t.Whole {
			s.move(sl)
		}
	}
}

// PeoplesLoad is how much of people's work each person has in the instance, as far as it is claimed or offered by
// name. It is not to be changed; the number tells whether it has.
func (m *Machine) PeoplesLoad() (of map[worklist.User]worklist.Load, version int) {
	if m.state.peoples.board == nil {
		return nil, 0
	}
	return m.state.peoples.board.Loads()
}

func isOffer(body worklist.Body) bool {
	_, is := body.(worklist.Offer)
	return is
}

// changePolicy writes down by which policy items are offered from now on, as somebody says who may.
func (d *decision) changePolicy(c *Claim, x worklist.Notify, p worklist.Person, before bool) (Claimed, error) {
	if err := d.state.mayDecide(worklist.Item{}, p); err != nil {
		return Claimed{}, err
	}
	switch overall := d.state.overall(); {
	case before, d.state.policy().String() == x.Policy.String(): // the answer was lost, or it is so
		return Claimed{Already: true}, nil
	case !d.peopled:
		return Claimed{}, fmt.Errorf("%w: the workflow has no task of people that could be offered", ErrNotNow)
	case !cancellable(overall):
		return Claimed{}, fmt.Errorf("%w: the instance is %s already", ErrNotNow, overall)
	}
	if n := len(d.state.peoples.of[ofInstance(x)]); n >= 2*MaxClaims {
		return Claimed{}, fmt.Errorf("%w: the policy was changed %d times, at most %d", ErrNotNow, n, 2*MaxClaims)
	}
	if err := d.mayOrderMore(takes(c), p.User); err != nil {
		return Claimed{}, err
	}
	_, err := d.append(Body{Claim: c})
	return Claimed{}, err
}
