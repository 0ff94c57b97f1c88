package state

import (
	"fmt"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about adoption: who decides about an instance takes a result that is kept and does not count
// by itself (docs/worklists.md, Adoption). The word is a claim, which any partner that takes part may write:
// the holder of the attempt may be gone for good. It counts as one more success of the attempt whose item
// the result is about, at whoever has it; which success stands, if there are several, is for the rules of
// convergence (converge.go), as for a late success. So it does not follow a start, and nothing is said of
// what it built upon.

// Adopts reports whether that is an adoption.
func Adopts(body worklist.Body) bool {
	_, is := body.(worklist.Adopt)
	return is
}

// mayAdopt says why a result cannot be adopted, by what the author of the fact knew; "": it can. What it
// brings is noted with the fact.
func (s *State) mayAdopt(e *log.Entry, a *Attempt, x worklist.Adopt) (why string) {
	r := s.log.ByID()[fact.ID(x.Result)]
	if r == nil || !r.Counted || !s.log.Knew(e, r) {
		return "it names no result that its author knew"
	}
	out, why := s.AdoptionOf(a, r)
	if why != "" {
		return why
	}
	ended := func(o *Attempt) bool {
		return slices.ContainsFunc(o.Successes, func(ok *log.Entry) bool { return s.certain(e, ok) })
	}
	switch {
	case slices.ContainsFunc(s.Cancels, func(c *log.Entry) bool { return s.certain(e, c) }):
		return "the instance had been cancelled, as its author knew"
	case slices.ContainsFunc(a.Slot.Attempts, ended), s.closedWell(e, a):
		return "the task had been done, as its author knew"
	case s.AtLeast(fact.MaxSuccesses, len(a.Successes), func(i int) bool { return s.log.Knew(e, a.Successes[i]) }):
		return "it had succeeded already"
	}
	e.Word.Adopted = out
	return ""
}

// closedWell reports whether a fact's author knew that the holder of an attempt had taken a successful result; nil:
// whether that is known here.
func (s *State) closedWell(e *log.Entry, a *Attempt) bool {
	return slices.ContainsFunc(s.peoples.Of[ClaimsOf{Attempt: a.ID}], func(c *log.Entry) bool {
		x, closes := c.Fact.Body.Claim.Body().(worklist.Close)
		r := s.log.ByID()[fact.ID(x.Result)]
		if !closes || r == nil || r.Fact.Body.Claim == nil || e != nil && !s.certain(e, c) {
			return false
		}
		res, is := r.Fact.Body.Claim.Body().(worklist.Result)
		return is && !res.Failed
	})
}

// AdoptionOf is what a result brings that is about an attempt; or why it cannot be adopted, whatever becomes
// of the attempt. That follows from the result and its past alone.
func (s *State) AdoptionOf(a *Attempt, r *log.Entry) (out map[workflow.DataName]workflow.Value, why string) {
	if r.Fact.Body.Claim == nil {
		return nil, "it names no result"
	}
	x, is := r.Fact.Body.Claim.Body().(worklist.Result)
	switch {
	case !is || fact.AttemptIDOf(x.Item) != a.ID || r.Fact.Chain.Author != a.Partner:
		return nil, "it names no result of that item"
	case x.Failed:
		return nil, "there is nothing to adopt of a failure"
	case a.Slot.Dropped != nil:
		return nil, "its task is not needed"
	case !s.showedRole(r, a, x):
		return nil, "whoever brought it had not shown the role of the task"
	}
	out, err := s.EvidenceOf(r).written(a.Task, x)
	if err != nil {
		return nil, "its task may not have such a result"
	}
	return out, ""
}

// showedRole reports whether whoever brought a result showed the role of the item, with it or when the item
// was taken.
func (s *State) showedRole(r *log.Entry, a *Attempt, x worklist.Result) bool {
	u := r.Speaker()
	if !s.givenTo(r, x.Item, x.Grant, u.User) {
		return false
	}
	if s.entitledAt(r, a, u) {
		return true
	}
	g := s.log.ByID()[fact.ID(x.Grant)]
	return g.Speaker().User == u.User && s.entitledAt(g, a, g.Speaker())
}

// Adoptable says why a result cannot be adopted now, as far as is known here; nil: it can.
func (s *State) Adoptable(r *log.Entry) error {
	x, is := r.Fact.Body.Claim.Body().(worklist.Result)
	if !is {
		return fmt.Errorf("%w: that is no result", ErrNotNow)
	}
	a := s.attempts[fact.AttemptIDOf(x.Item)]
	if a == nil {
		return fmt.Errorf("%w: nothing is known here of what it is about", ErrNotNow)
	}
	_, why := s.AdoptionOf(a, r)
	took, _, taken := s.Work().Taken(x.Item)
	done := func(o *Attempt) bool { return o.Success() != nil }
	switch {
	case a.Beside():
		return fmt.Errorf("%w: %s was fired by a data state: what it comes to is recovered, and not adopted", ErrNotNow,
			a.Task.WithLabel())
	case why != "":
		return fmt.Errorf("%w: %s: %s", ErrNotNow, a.Task.WithLabel(), why)
	case s.cancel != nil:
		return fmt.Errorf("%w: the instance is cancelled", ErrNotNow)
	case slices.ContainsFunc(a.Slot.Attempts, done), taken && !took.Failed:
		return fmt.Errorf("%w: %s is done: a result is not adopted beside another", ErrNotNow, a.Slot.Task.WithLabel())
	case s.closedWell(nil, a):
		return fmt.Errorf("%w: %s, who holds %s, says that it took a result, and no other counts beside that",
			ErrNotNow, a.Partner, a.Task.WithLabel())
	}
	return nil
}
