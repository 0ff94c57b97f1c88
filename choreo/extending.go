package choreo

import (
	"fmt"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about what follows from a deadline beside messages: as it is near, a person's task passes to the
// responsible user, whoever has it (docs/worklists.md, Deadlines); and who decides about the instance may give a
// task that is not done a later one.
//
// Nobody asks for the first: the holder of the attempt writes it down, by its clock, and once for each deadline.
// The second is an order as all are: the person signs it, and the holder writes it down.

// bringItems brings before the board what it has to know of before anybody claims it: items of this node that may
// pass on as their deadline is near, once they can be done, and once more when data have changed, from which a
// deadline may follow; and those that are offered by a policy.
func (d *decision) bringItems() {
	if d.state.People().Board == nil && d.peopled {
		for _, a := range d.state.PeoplesJobs() { // once there is a board, it has those that come after these
			if a.Partner == d.self && d.state.Limits(a) {
				d.state.PlaceItem(a)
			}
		}
	}
	if len(d.desk.dues) == 0 || d.desk.duesAt == d.state.Rewritten() && d.state.People().Board != nil {
		return
	}
	d.desk.duesAt = d.state.Rewritten()
	for sl := range d.desk.dues {
		d.log.Steps++
		if a := sl.Current; a.Noticed != 0 || d.state.Limits(a) {
			d.state.PlaceItem(a)
		}
	}
}

// extend writes down that somebody gives a task a later deadline, who may.
func (d *decision) extend(c *fact.Claim, x worklist.Extend, p worklist.Person, before bool) (Claimed, error) {
	if err := d.state.MayDecide(x.Item, p); err != nil {
		return Claimed{}, err
	}
	if before { // the answer was lost
		return Claimed{Already: true}, nil
	}
	already, err := d.mayExtend(d.state.Attempts()[fact.AttemptIDOf(x.Item)], x.Due)
	if already || err != nil {
		return Claimed{Already: already}, err
	}
	if err := d.mayBeSaid(x.Item, state.MostWords(x)); err != nil {
		return Claimed{}, err
	}
	if err := d.mayOrderMore(state.ExtendTakes(c), p.User); err != nil {
		return Claimed{}, err
	}
	_, err = d.append(fact.Body{Claim: c})
	return Claimed{}, err
}

// mayExtend says why a deadline cannot be put in place of the one that an attempt has; already: it has that.
func (d *decision) mayExtend(a *state.Attempt, to worklist.Due) (already bool, err error) {
	sl, t := a.Slot, a.Task.WithLabel()
	switch {
	case sl.Current != a:
		return false, notInCharge(t)
	case a.Task.Deadline == nil:
		return false, fmt.Errorf("%w: %s has no deadline in its definition, so there is none to extend",
			state.ErrNotNow, t)
	case sl.State.Done() || !d.state.Wanted(a) || a.Success() != nil || a.EndedByHolder():
		return false, fmt.Errorf("%w: %s is %s: its deadline does not matter any more", state.ErrNotNow, t, sl.State)
	}
	is := d.state.DueOf(a)
	now := worklist.Moment{Boot: d.now.Boot, Wall: d.now.Wall}
	since := a.Noticed
	if since == 0 {
		since = now.Boot // nobody knows yet since when it can be done: a span would begin now
	}
	was, has := is.Left(since, now)
	left, _ := to.Left(since, now)
	switch {
	case is == to:
		return true, nil
	case left <= 0:
		return false, fmt.Errorf("%w: that deadline of %s is over already: give a later one", state.ErrNotNow, t)
	case has && left <= was:
		return false, fmt.Errorf("%w: that is not later than the deadline that %s has: it leaves %s, and there are %s",
			state.ErrNotNow, t, workflow.FormatDuration(left.Round(time.Second)),
			workflow.FormatDuration(was.Round(time.Second)))
	}
	return false, nil
}
