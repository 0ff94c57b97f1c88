package choreo

import (
	"fmt"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about what follows from a deadline beside messages: as it is near, a person's task passes to the
// responsible user, whoever has it (docs/worklists.md, Deadlines); and who decides about the instance may give a
// task that is not done a later one.
//
// Nobody asks for the first: the holder of the attempt writes it down, by its clock, and once for each deadline.
// The second is an order as all are: the person signs it, and the holder writes it down.

// maxDates bounds the warnings that a genesis gives.
const maxDates = 100

// dates reports whether an annex says something of deadlines.
func (x *Annex) dates() bool { return len(x.Warnings) > 0 || x.Transfer != 0 }

func (x *Annex) validateDates() error {
	if len(x.Warnings) > maxDates {
		return fmt.Errorf("%d warnings, at most %d", len(x.Warnings), maxDates)
	}
	for i, w := range x.Warnings {
		if w <= 0 || w > worklist.MaxDue || i > 0 && w >= x.Warnings[i-1] {
			return fmt.Errorf("a warning %s before a deadline: want them between 0 and %s, the longest first", w,
				worklist.MaxDue)
		}
	}
	if x.Transfer < 0 || x.Transfer > worklist.MaxDue {
		return fmt.Errorf("work that passes on %s before its deadline: want 0 to %s", x.Transfer, worklist.MaxDue)
	}
	return nil
}

// transferAt is with how much time left before its deadline a task passes to the responsible user; 0: never.
func (s *State) transferAt(t *workflow.Task) time.Duration {
	switch x := s.log.genesis.fact.Body.Annex; {
	case t.Deadline == nil || t.ByNode():
		return 0
	case x != nil && x.Transfer > 0:
		return x.Transfer
	case t.Transfer > 0:
		return t.Transfer
	}
	return s.def.Transfer
}

// transferOf is the same of an attempt.
func (s *State) transferOf(a *Attempt) time.Duration {
	if a.undoes != nil {
		return 0
	}
	return s.transferAt(a.Task)
}

// mayPassDue says why an item may not pass on as its deadline is near; "": it may.
func (s *State) mayPassDue(a *Attempt, x worklist.Transfer) (why string) {
	switch {
	case s.transferOf(a) == 0:
		return "its task does not pass on as its deadline is near"
	case x.To != s.responsible():
		return "by a deadline an item passes to the responsible user alone"
	}
	return ""
}

// bringItems brings before the board what it has to know of before anybody claims it: items of this node that may
// pass on as their deadline is near, once they can be done, and once more when data have changed, from which a
// deadline may follow; and those that are offered by a policy.
func (d *decision) bringItems() {
	if d.state.peoples.board == nil && d.peopled {
		for _, a := range d.state.peoplesJobs() { // once there is a board, it has those that come after these
			if a.Partner == d.self && d.state.limits(a) {
				d.state.placeItem(a)
			}
		}
	}
	if len(d.desk.dues) == 0 || d.desk.duesAt == d.state.rewritten && d.state.peoples.board != nil {
		return
	}
	d.desk.duesAt = d.state.rewritten
	for sl := range d.desk.dues {
		d.log.steps++
		if a := sl.Current; a.noticed != 0 || d.state.limits(a) {
			d.state.placeItem(a)
		}
	}
}

// falls reports whether the attempt in charge of a slot is one of this node that passes on as its deadline is near, or
// is offered by a policy. What others only presume to have failed goes on here.
func (m *Machine) falls(sl *Slot) bool {
	a := sl.Current
	ours := a.Partner == m.self && a.success() == nil && !a.endedByHolder()
	minded := m.passesOn && m.state.transferOf(a) > 0 || m.peopled && m.state.limits(a)
	return ours && minded && m.state.wanted(a) && (a.start != nil || a.mayStart())
}

// extend writes down that somebody gives a task a later deadline, who may.
func (d *decision) extend(c *Claim, x worklist.Extend, p worklist.Person, before bool) (Claimed, error) {
	if err := d.state.mayDecide(x.Item, p); err != nil {
		return Claimed{}, err
	}
	if before { // the answer was lost
		return Claimed{Already: true}, nil
	}
	already, err := d.mayExtend(d.state.attempts[attemptIDOf(x.Item)], x.Due)
	if already || err != nil {
		return Claimed{Already: already}, err
	}
	if err := d.mayBeSaid(x.Item, mostWords(x)); err != nil {
		return Claimed{}, err
	}
	if err := d.mayOrderMore(extendTakes(c), p.User); err != nil {
		return Claimed{}, err
	}
	_, err = d.append(Body{Claim: c})
	return Claimed{}, err
}

// mayExtend says why a deadline cannot be put in place of the one that an attempt has; already: it has that.
func (d *decision) mayExtend(a *Attempt, to worklist.Due) (already bool, err error) {
	sl, t := a.Slot, a.Task.Name
	switch {
	case sl.Current != a:
		return false, notInCharge(t)
	case a.Task.Deadline == nil:
		return false, fmt.Errorf("%w: %s has no deadline in its definition, so there is none to extend", ErrNotNow, t)
	case sl.State.Done() || !d.state.wanted(a) || a.success() != nil || a.endedByHolder():
		return false, fmt.Errorf("%w: %s is %s: its deadline does not matter any more", ErrNotNow, t, sl.State)
	}
	is, _ := d.state.dueOf(a)
	now := worklist.Moment{Boot: d.now.Boot, Wall: d.now.Wall}
	since := a.noticed
	if since == 0 {
		since = now.Boot // nobody knows yet since when it can be done: a span would begin now
	}
	was, has := is.Left(since, now)
	left, _ := to.Left(since, now)
	switch {
	case is == to:
		return true, nil
	case left <= 0:
		return false, fmt.Errorf("%w: that deadline of %s is over already: give a later one", ErrNotNow, t)
	case has && left <= was:
		return false, fmt.Errorf("%w: that is not later than the deadline that %s has: it leaves %s, and there are %s",
			ErrNotNow, t, workflow.FormatDuration(left.Round(time.Second)),
			workflow.FormatDuration(was.Round(time.Second)))
	}
	return false, nil
}
