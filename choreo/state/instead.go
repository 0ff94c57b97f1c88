package state

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about orders in place of a holder. Whoever had a task that failed, or is presumed to have, may be gone for
// good. Then who decides may order that it be done once more, or left out, with any partner that takes part: that one
// writes the order down and follows it, as the holder would (docs/worklists.md, Who decides). It is the signed word of
// who decides that gives the right to this, so nothing has to prove that the holder is gone. If that one comes back and
// has done it, there are two results, and the author's choice (reconcile) says which counts, as after a contingency.

// OrderedInStead reports whether a claim is an order that another than the holder of an attempt may write down, as the
// author of the fact knew; without a fact, as is known now.
func (s *State) OrderedInStead(e *log.Entry, a *Attempt, body worklist.Body) bool {
	x, orders := body.(worklist.Order)
	if !orders || x.What != worklist.Again && x.What != worklist.Skip || a.Task.Whole || a.Beside() {
		return false
	}
	return slices.ContainsFunc(a.Rulings, func(r *Ruling) bool {
		return r.Action.Kind == workflow.FailBlock && (e == nil || s.log.Knew(e, r.At))
	})
}

// InStead are the attempts of others that one partner is to have done once more, or left out, by orders that it wrote
// down and has not followed, with those, in the order of facts.
func (s *State) InStead(by workflow.PartnerID) (out []Instead) {
	for _, e := range s.peoples.instead {
		s.log.Steps++
		x, orders := OrderIn(e)
		a := s.attempts[fact.AttemptIDOf(x.Item)]
		if orders && e.Fact.Chain.Author == by && a != nil && len(a.Assigns) == 0 && s.Unhandled(a) {
			out = append(out, Instead{a, e, x})
		}
	}
	return out
}

// InSteadAtAll reports whether there are any such orders, followed or not.
func (s *State) InSteadAtAll() bool { return len(s.peoples.instead) > 0 }

// Instead is an order about an attempt that another holds.
type Instead struct {
	Attempt *Attempt
	At      *log.Entry
	Order   worklist.Order
}
