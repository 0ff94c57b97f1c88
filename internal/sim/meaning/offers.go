package meaning

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is the second reading of whom items are offered to (docs/worklists.md, Offers).

// offers are those of an item under one policy.
type offers struct {
	under worklist.ID
	first fact.ID
	to    []worklist.User
}

// mostNamed is how many people the offers of one partner in an instance name before its items are for all.
const mostNamed = 1024

func isOffer(b worklist.Body) bool {
	_, is := b.(worklist.Offer)
	return is
}

func isAmend(b worklist.Body) bool {
	_, is := b.(worklist.Amend)
	return is
}

// maxAmendments is how many of them an instance takes.
const maxAmendments = 64

func isNotify(b worklist.Body) bool {
	_, is := b.(worklist.Notify)
	return is
}

// offer offers the item to some: to others than before, if by another policy.
func (it *Item) offer(x *claimed, b worklist.Offer) {
	if b.Under != (worklist.ID{}) {
		by := it.m.claimOf(b.Under)
		if by == nil || !isNotify(by.body) || !it.m.h.knew(x.at, by.at) {
			return
		}
	}
	if b.Under != it.offers.under || len(it.offers.to) == 0 {
		it.offers = offers{b.Under, it.m.h.facts[x.at].id, nil}
	}
	for _, u := range b.To {
		if !slices.Contains(it.offers.to, u) {
			it.offers.to = append(it.offers.to, u)
		}
	}
}

// changedBy is the change of policy that counts, as far as the author of a fact knew; none: as all facts say. Nil: there
// is none.
func (m *Meaning) changedBy(knew int) (by *claimed) {
	for i := range m.claims {
		if x := &m.claims[i]; isNotify(x.body) && (knew == none || m.h.knew(knew, x.at)) {
			by = x // they are in the order of facts
		}
	}
	return by
}

// policy is by which policy items are offered, as far as the author of a fact knew, and which change made it.
func (m *Meaning) policy(knew int) (p worklist.Policy, by worklist.ID) {
	if x := m.changedBy(knew); x != nil {
		return x.body.(worklist.Notify).Policy, worklist.ID(m.h.facts[x.at].id)
	}
	if a := m.h.facts[0].Body.Annex; a != nil && a.Notify != "" {
		p.Name, p.N, _ = workflow.ParseNotify(a.Notify)
		return p, by
	}
	return worklist.Policy{Name: m.def.Distribution.Notify, N: m.def.Distribution.NotifyN}, by
}

// sees reports whether a user sees an item that nobody has, as far as the author of a fact knew, who holds it.
func (m *Meaning) sees(it *Item, knew int, u worklist.User) bool {
	p, under := m.policy(knew)
	limited := m.pulled(m.attempts[it.Attempt], knew) && it.Role == it.Task.Role
	if p.All() && !limited || u == m.responsible() {
		return true
	}
	said, named := 0, 0
	for _, x := range m.claims {
		if o, is := x.body.(worklist.Offer); is && m.h.facts[x.at].Chain.Author == it.Holder &&
			(knew == none || m.h.knew(knew, x.at)) {
			said, named = said+1, named+len(o.To)
		}
	}
	return said >= mostSaid || named >= mostNamed || it.offers.under == under && slices.Contains(it.offers.to, u)
}

// Sees reports whether a user sees the item while nobody has it, if the user may do it at all.
func (it *Item) Sees(u worklist.User) bool { return it.m.sees(it, none, u) }

// OfferedTo are those to whom the item is offered by name, by the policy that there is.
func (it *Item) OfferedTo() []worklist.User {
	if _, under := it.m.policy(none); it.offers.under != under {
		return nil
	}
	return it.offers.to
}

// ToAll reports whether the item of a task at a partner is for all who have its role, which is it, if something was said
// of it.
func (m *Meaning) ToAll(p workflow.PartnerID, t workflow.TaskName, it *Item) bool {
	if policy, _ := m.policy(none); !policy.All() {
		return false
	}
	if it != nil && it.Role != it.Task.Role {
		return true
	}
	for _, sl := range m.slots {
		if a := sl.Current; a.Partner == p && a.task.Name == t {
			return !m.pulled(a, none)
		}
	}
	return true
}

// pulled reports whether an attempt waits to be taken by a mechanism that pulls, as far as the author of a fact knew:
// its holder was not chosen to perform it.
func (m *Meaning) pulled(a *Attempt, knew int) bool {
	annex := m.h.facts[0].Body.Annex
	if a == nil || annex == nil || !annex.Mechanism.Pulls() || a.task.Role == "" ||
		a.task.Type != workflow.Manual && a.task.Type != workflow.SemiAutomatic {
		return false
	}
	x := m.h.facts[a.assigned].Body
	given := a.after != nil && a.by == nil && x.Assign.Verdict.IsZero() && x.Annex != nil && x.Annex.Offered
	kept := a.kept != none && (knew == none || m.h.knew(knew, a.kept))
	return !given && !kept
}

// Unoffered are the holds that were given although the holder knew that it had not offered the item to that user.
func (it *Item) Unoffered() []*Hold { return it.unoffered }
