package choreo

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about adoption: who decides about an instance takes a result that is kept and does not count
// by itself (docs/worklists.md, Adoption). The word is a claim, which any partner that takes part may write:
// the holder of the attempt may be gone for good. It counts as one more success of the attempt whose item
// the result is about, at whoever has it; which success stands, if there are several, is for the rules of
// convergence (converge.go), as for a late success. So it does not follow a start, and nothing is said of
// what it built upon.

// ErrNoResult is returned for a result that is not among those that are kept.
var ErrNoResult = errors.New("no such result is kept here")

// adopts reports whether that is an adoption.
func adopts(body worklist.Body) bool {
	_, is := body.(worklist.Adopt)
	return is
}

// mayAdopt says why a result cannot be adopted, by what the author of the fact knew; "": it can. What it
// brings is noted with the fact.
func (s *State) mayAdopt(e *entry, a *Attempt, x worklist.Adopt) (why string) {
	r := s.log.byID[FactID(x.Result)]
	if r == nil || !r.counted || !s.log.knew(e, r) {
		return "it names no result that its author knew"
	}
	out, why := s.adoptionOf(a, r)
	if why != "" {
		return why
	}
	ended := func(o *Attempt) bool {
		return slices.ContainsFunc(o.successes, func(ok *entry) bool { return s.certain(e, ok) })
	}
	switch {
	case slices.ContainsFunc(s.cancels, func(c *entry) bool { return s.certain(e, c) }):
		return "the instance had been cancelled, as its author knew"
	case slices.ContainsFunc(a.Slot.Attempts, ended), s.closedWell(e, a):
		return "the task had been done, as its author knew"
	case s.atLeast(MaxSuccesses, len(a.successes), func(i int) bool { return s.log.knew(e, a.successes[i]) }):
		return "it had succeeded already"
	}
	e.word.adopted = out
	return ""
}

// closedWell reports whether a fact's author knew that the holder of an attempt had taken a successful result; nil:
// whether that is known here.
func (s *State) closedWell(e *entry, a *Attempt) bool {
	return slices.ContainsFunc(s.peoples.of[claimsOf{attempt: a.ID}], func(c *entry) bool {
		x, closes := c.fact.Body.Claim.Body().(worklist.Close)
		r := s.log.byID[FactID(x.Result)]
		if !closes || r == nil || r.fact.Body.Claim == nil || e != nil && !s.certain(e, c) {
			return false
		}
		res, is := r.fact.Body.Claim.Body().(worklist.Result)
		return is && !res.Failed
	})
}

// adoptionOf is what a result brings that is about an attempt; or why it cannot be adopted, whatever becomes
// of the attempt. That follows from the result and its past alone.
func (s *State) adoptionOf(a *Attempt, r *entry) (out map[workflow.DataName]workflow.Value, why string) {
	if r.fact.Body.Claim == nil {
		return nil, "it names no result"
	}
	x, is := r.fact.Body.Claim.Body().(worklist.Result)
	switch {
	case !is || attemptIDOf(x.Item) != a.ID || r.fact.Chain.Author != a.Partner:
		return nil, "it names no result of that item"
	case x.Failed:
		return nil, "there is nothing to adopt of a failure"
	case a.Slot.Dropped != nil:
		return nil, "its task is not needed"
	case !s.showedRole(r, a, x):
		return nil, "whoever brought it had not shown the role of the task"
	}
	out, err := s.written(a.Task, x)
	if err != nil {
		return nil, "its task may not have such a result"
	}
	return out, ""
}

// showedRole reports whether whoever brought a result showed the role of the item, with it or when the item
// was taken.
func (s *State) showedRole(r *entry, a *Attempt, x worklist.Result) bool {
	u := r.speaker()
	if !s.givenTo(r, x.Item, x.Grant, u.User) {
		return false
	}
	if s.entitledAt(r, a, u) {
		return true
	}
	g := s.log.byID[FactID(x.Grant)]
	return g.speaker().User == u.User && s.entitledAt(g, a, g.speaker())
}

// adoptable says why a result cannot be adopted now, as far as is known here; nil: it can.
func (s *State) adoptable(r *entry) error {
	x, is := r.fact.Body.Claim.Body().(worklist.Result)
	if !is {
		return fmt.Errorf("%w: that is no result", ErrNotNow)
	}
	a := s.attempts[attemptIDOf(x.Item)]
	if a == nil {
		return fmt.Errorf("%w: nothing is known here of what it is about", ErrNotNow)
	}
	_, why := s.adoptionOf(a, r)
	took, _, taken := s.work().Taken(x.Item)
	done := func(o *Attempt) bool { return o.success() != nil }
	switch {
	case a.beside():
		return fmt.Errorf("%w: %s was fired by a data state: what it comes to is recovered, and not adopted", ErrNotNow,
			a.Task.Name)
	case why != "":
		return fmt.Errorf("%w: %s: %s", ErrNotNow, a.Task.Name, why)
	case s.cancel != nil:
		return fmt.Errorf("%w: the instance is cancelled", ErrNotNow)
	case slices.ContainsFunc(a.Slot.Attempts, done), taken && !took.Failed:
		return fmt.Errorf("%w: %s is done: a result is not adopted beside another", ErrNotNow, a.Slot.Task.Name)
	case s.closedWell(nil, a):
		return fmt.Errorf("%w: %s, who holds %s, says that it took a result, and no other counts beside that",
			ErrNotNow, a.Partner, a.Task.Name)
	}
	return nil
}

// adopt writes down that somebody adopts a result, who may.
func (d *decision) adopt(c *Claim, x worklist.Adopt, p worklist.Person, before bool) (Claimed, error) {
	if err := d.state.mayDecide(x.Item, p); err != nil {
		return Claimed{}, err
	}
	if before { // the answer was lost
		return Claimed{Already: true}, nil
	}
	r := d.log.byID[FactID(x.Result)]
	if r == nil || !r.counted || r.fact.Body.Claim == nil {
		return Claimed{}, fmt.Errorf("%w: there is no such result here", ErrNotNow)
	}
	if err := d.state.adoptable(r); err != nil {
		return Claimed{}, err
	}
	a := d.state.attempts[attemptIDOf(x.Item)]
	if out, why := d.state.adoptionOf(a, r); why == "" && d.state.wouldBreak(out) != "" {
		return Claimed{}, fmt.Errorf("%w: the result of %s: %s", ErrNotNow, a.Task.Name, d.state.wouldBreak(out))
	}
	if err := d.mayBeSaid(x.Item, mostWords(x)); err != nil {
		return Claimed{}, err
	}
	if err := d.mayOrderMore(takes(c), p.User); err != nil {
		return Claimed{}, err
	}
	_, err := d.append(Body{Claim: c})
	return Claimed{}, err
}

// endOf is the end of an item that the attempt's success follows, where there may be several; zero: the first.
func (s *State) endOf(a *Attempt) worklist.ID {
	ok := a.success()
	if ok == nil || len(a.successes) == 1 && ok.fact.Body.Success != nil {
		return worklist.ID{}
	}
	if ok.fact.Body.Success == nil {
		return worklist.ID(ok.id)
	}
	for _, e := range slices.Backward(s.peoples.of[claimsOf{attempt: a.ID}]) {
		if _, closes := e.fact.Body.Claim.Body().(worklist.Close); closes && s.log.knew(ok, e) {
			return worklist.ID(e.id)
		}
	}
	return worklist.ID{}
}

// givenAt is with which partner the content is that a success brought.
func givenAt(a *Attempt, ok *entry) workflow.PartnerID {
	if ok.fact.Body.Success == nil {
		return a.Partner // who took the result
	}
	return ok.strand.chain.id.Author
}

// counts reports whether a result of that name, or beginning of it, ended its item.
func (m *Machine) counts(ref string) bool {
	if !m.Claims() || ref == "" {
		return false
	}
	return slices.ContainsFunc(m.state.peoples.board.Items(), func(i worklist.Item) bool {
		v, _ := m.state.peoples.board.View(i)
		return slices.ContainsFunc(v.Works, func(w worklist.Work) bool {
			return w.Counts && strings.HasPrefix(FactID(w.ID).String(), ref)
		})
	})
}

// Result is a result of a person by its name, or the beginning of it, with its item: what an adoption is about.
func (m *Machine) Result(ref string) (i worklist.Item, id FactID, err error) {
	var found []KeptResult
	for _, r := range m.KeptResults() {
		if ref != "" && strings.HasPrefix(r.ID.String(), ref) {
			found = append(found, r)
		}
	}
	switch {
	case len(found) == 0 && m.counts(ref):
		return i, id, fmt.Errorf("%w: the result %s counts", ErrNotNow, ref)
	case len(found) == 0:
		return i, id, fmt.Errorf("%w: %q", ErrNoResult, ref)
	case len(found) > 1:
		return i, id, fmt.Errorf("%w: %d results that are kept begin with %s: give more of it", ErrNotNow, len(found),
			ref)
	}
	return found[0].Item, found[0].ID, m.state.adoptable(m.log.byID[found[0].ID])
}
