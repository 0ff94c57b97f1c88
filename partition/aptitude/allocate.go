package aptitude

import (
	"math/rand/v2"
	"slices"
)

// Allocate distributes the waiting items among the resources, one after the
// other, the most urgent first, and answers with one assignment per item in
// that order. Each assignment counts when the next item is looked at. An item
// that nobody can take now stays in the queue: ask again when something
// becomes ready or a resource frees up.
//
// The arguments are taken to be sound; see [Check]. rnd decides which resource
// is first at a shared queue.
func Allocate(q Queue, resources []Resource, p Policy, rnd *rand.Rand) []Assignment {
	a := allocator{
		now:       q.Now,
		backlog:   q.backlog(),
		resources: slices.Clone(resources),
		policy:    p,
		rnd:       rnd,
	}
	out := make([]Assignment, 0, len(q.Waiting))
	for _, i := range p.Dispatching.order(&q) {
		out = append(out, a.allocate(&q.Waiting[i]))
	}
	return out
}

// allocator is the state of one distribution.
type allocator struct {
	now       float64
	backlog   map[TaskID]float64
	resources []Resource // as they stand after the assignments made so far
	policy    Policy
	rnd       *rand.Rand
}

func (a *allocator) allocate(it *Item) Assignment {
	as := Assignment{Item: it.ID, Task: it.Task, Candidates: a.candidates(it)}
	if as.Err = nobody(it, as.Candidates); as.Err != nil {
		return as
	}
	chosen := a.choose(it, &as)
	if chosen == nil {
		return as
	}
	chosen.Verdict = Chosen
	as.Resource = chosen.Resource
	r := &a.resources[chosen.index]
	r.Busy = true
	if a.policy.Mechanism.Loads() {
		as.Load = min(a.cost(it, r), r.Availability)
		r.Availability -= as.Load
	}
	return as
}

// candidates weighs everyone who is suited for the item.
func (a *allocator) candidates(it *Item) []Candidate {
	cs := make([]Candidate, 0, len(a.resources))
	urgency := it.Urgency.After(a.now - it.Ready)
	for i := range a.resources {
		r := &a.resources[i]
		s := r.Suitability[it.Task]
		if s <= 0 {
			continue
		}
		c := Candidate{Resource: r.ID, index: i, Factors: Factors{s, urgency, 1, r.Availability}}
		if len(it.Violations) > 0 {
			c.Conformance = Conformance(it.Violations[r.ID])
		}
		if c.Verdict = exclusion(it, r, c.Conformance); c.Verdict == Forbidden {
			c.Broken = it.hard(r.ID)
		}
		cs = append(cs, c)
	}
	if a.policy.Compensate {
		compensate(cs)
	}
	return cs
}

// hard are the hard constraints that a resource would break with the item.
func (it *Item) hard(r ResourceID) (names []string) {
	for _, v := range it.Violations[r] {
		if v.Hard() && !slices.Contains(names, v.Constraint) {
			names = append(names, v.Constraint)
		}
	}
	return names
}

// exclusion says why a resource is out of the question for an item, if it is.
func exclusion(it *Item, r *Resource, conformance float64) Verdict {
	switch {
	case r.Rested <= 0:
		return Absent
	case conformance <= 0:
		return Forbidden
	case slices.Contains(it.Rejected, r.ID):
		return Rejecting
	}
	return ""
}

// compensate scales the conformances up until the best one to be had is 1: a
// violation that nobody could avoid says nothing about whom to choose, and
// must not put the item below a threshold.
func compensate(cs []Candidate) {
	best := 0.0
	for i := range cs {
		if !cs[i].Verdict.out() {
			best = max(best, cs[i].Conformance)
		}
	}
	if best == 0 {
		return
	}
	for i := range cs {
		cs[i].Conformance = min(1, cs[i].Conformance/best)
	}
}

// cost is the availability that an item takes from a resource: its share of
// the time of its task's FilaW, of what the resource has when rested.
func (a *allocator) cost(it *Item, r *Resource) float64 {
	return it.Time / max(a.backlog[it.Task], it.Time+r.InHand[it.Task]) * r.Rested
}

// relaxed lowers a threshold as the item's deadline nears, when asked to.
func (a *allocator) relaxed(threshold float64, it *Item) float64 {
	due := it.Instance.Due
	if !a.policy.Relax || due == 0 {
		return threshold
	}
	if a.now >= due {
		return 0
	}
	return threshold * min(1, (due-a.now)/(due-it.Ready))
}
