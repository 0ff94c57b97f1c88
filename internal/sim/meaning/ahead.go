package meaning

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about work ahead (rules 5 and 9 of docs/worklists.md): what a result of an item that is not ready names
// that it was made from, and when it comes to count.

// broughtAhead checks a result that a holder takes: as long as its item waits for other tasks alone, whoever has it
// says from which results of those it was made.
func (c *check) broughtAhead(body worklist.Body) {
	x, brings := body.(worklist.Result)
	if !brings {
		return
	}
	a := c.m.attempts[fact.AttemptID{Fact: fact.ID(x.Item.Assigned), Slot: x.Item.Slot}]
	if a == nil || a.slot.State != workflow.NotReady || a.start != none || !c.m.live(a) ||
		!c.m.bySuccesses(a.slot.Task) {
		return
	}
	if h := c.m.item(a.ID).Open; h == nil || !slices.Contains(h.Grants, fact.ID(x.Grant)) {
		return // it is kept, whatever it names
	}
	c.wants(c.m.holdsUpon(a.slot.Task.Rule, x.Upon),
		"a result of %s is taken, which is not ready, and it does not name what that waits for", a.task.Name)
}

// bySuccesses reports whether nothing but successes of tasks in the flow makes a task ready.
func (m *Meaning) bySuccesses(t *workflow.Task) bool {
	if t.Rule == nil || t.TimeToWait > 0 || asksData(t.Rule) {
		return false
	}
	only := true
	t.Rule.Terms(func(r *workflow.Rule) {
		only = only && r.Transition == workflow.BecameSucceeded && !r.Negated && m.bySlot[r.Task] != nil
	})
	return only
}

// holdsUpon reports whether a rule would hold if those results counted.
func (m *Meaning) holdsUpon(r *workflow.Rule, upon []worklist.Basis) bool {
	holds := func(part *workflow.Rule) bool { return m.holdsUpon(part, upon) }
	switch r.Op {
	case workflow.OpTask:
		f := m.transition(r.Task, r.Transition)
		return f.released || f.truth == workflow.True ||
			slices.ContainsFunc(upon, func(of worklist.Basis) bool { return of.Item.Slot == r.Task })
	case workflow.OpOr:
		return slices.ContainsFunc(r.Args, holds)
	}
	return !slices.ContainsFunc(r.Args, func(part *workflow.Rule) bool { return !holds(part) })
}

// counted reports whether an item ended well with the result that a word brought.
func (m *Meaning) counted(of worklist.Basis) bool {
	a := m.attempts[fact.AttemptID{Fact: fact.ID(of.Item.Assigned), Slot: of.Item.Slot}]
	if a == nil {
		return false
	}
	it := m.item(a.ID)
	return it.InCharge() && it.End != nil && !it.End.Says.Failed && m.wordAt(it.End.at) == of.Word
}

// wordAt is the name of the word that a claim has in it, which is known before anybody writes it down.
func (m *Meaning) wordAt(i int) worklist.ID {
	c := m.h.facts[i].Body.Claim
	return worklist.ID(fact.SpokenOf(fact.InstanceOf(m.h.facts[0].id), c.Says, c.Nonce))
}

// Due is a result with which the holder is to close the item now: whoever has it brought it, the item is ready, and all
// counts that it was made from; nil: there is none.
func (it *Item) Due() *Result {
	sl := it.m.attempts[it.Attempt].slot
	if it.Ended() || !it.InCharge() || sl.State != workflow.Ready && sl.State != workflow.Running {
		return nil
	}
	at := slices.IndexFunc(it.Results, func(r *Result) bool {
		return r.hold != nil && r.hold == it.Open && !r.early &&
			!slices.ContainsFunc(r.Says.Upon, func(of worklist.Basis) bool { return !it.m.counted(of) })
	})
	if at < 0 {
		return nil
	}
	return it.Results[at]
}

// PutOff reports whether a result may still count: its user has the item, and it names others that it was made from,
// not all of which count yet, or its item is not ready.
func (it *Item) PutOff(r *Result) bool {
	return r.hold != nil && r.hold == it.Open && !r.early && len(r.Says.Upon) > 0 && !it.Ended() && it.Due() == nil
}

// CameToCount reports whether the item ended, by itself, with a result that was put off before: its holder took that
// when it did not know yet that all had been taken that it was made from.
func (it *Item) CameToCount() bool {
	r := it.End
	return r != nil && !it.ends[0].adopted &&
		slices.ContainsFunc(r.Says.Upon, func(of worklist.Basis) bool { return !it.m.tookKnown(r.at, of) })
}
