package choreo

import (
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file finds the performers of people's tasks. The holder of a partition runs it;
// a task with a role is for any partner that has the role (docs/language.md, role).
// When such a task becomes ready its holder gives it to one of them that can be
// reached, by the instance's mechanism, and takes itself into account. (By one that
// pulls it waits first to be taken from a worklist: pulling.go.)
//
//	                         the holder performs it        somebody else does
//	by a mechanism           one fact says that, and why   one fact passes it on, and says why
//	by the plain rule        if it has the role: no fact   only if it has not
//
// Where nobody can be reached who has the role, the task waits at its holder,
// visibly, with its time-out running, and is offered as soon as somebody comes.
//
// A task at a partner without the role is passed on in the same way, no matter
// which partner gave it there: as part of a unit of contingencies, by a stale or a
// wrong word. It does not come back to a partner that passed on what it had been
// given.

// seeksPerformer reports whether an attempt here, which has not been started, is a
// person's task for which nobody was chosen yet, or this node wrongly.
func (o outlook) seeksPerformer(a *state.Attempt) bool {
	switch waits, _ := o.awaitsTaker(a); {
	case !a.Task.ByRole() || !a.MayStart() || o.claimed(a) || o.state.ForOthers(a) || waits:
		return false
	case !o.partners.HasRole(o.self, a.Task.Role):
		return true
	}
	return a.Kept == nil && !o.keeps[a.ID] &&
		(o.Mechanism() == partition.PlainRule || o.state.CameWithPartition(a) || o.state.Pulled(a))
}

// offer gives an attempt of ours to its performer. It reports whether it added
// a fact: not if nobody can, nor if it is this node by the plain rule.
func (d *decision) offer(a *state.Attempt) (added bool) {
	t := a.Task.Name
	if d.movedOften(a.Slot) {
		d.nobody[a.ID] = "it waits: " + errMovedOften.Error()
		return false
	}
	w := d.work([]workflow.TaskName{t}, "")
	w.Rejected, w.Holder, w.CanWait = d.state.Rejecters(a), d.self, true
	if !d.partners.HasRole(d.self, a.Task.Role) {
		w.Rejected = append(w.Rejected, d.self)
	}
	c, err := d.choose(w)
	switch {
	case err != nil:
		d.nobody[a.ID] = "it waits for somebody to perform it: " + fact.Clip(err.Error())
		if w.Mechanism == aptitude.SelPushPull { // somebody may have less in hand by then, who is not heard of for that
			d.out.wake(d.now.Boot + weighLatest)
		}
		return false
	case c.Partner == d.self && w.Mechanism == partition.PlainRule:
		d.keeps[a.ID] = true
		return false
	}
	annex := fact.Annex{Why: []fact.Why{fact.WhyOf(c, t)}, Offered: true, Waited: d.waited(a)}
	return d.assign(fact.Assign{After: a.ID, Task: t, Partner: c.Partner}, &annex) == nil
}
