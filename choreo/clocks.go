package choreo

import (
	"container/heap"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/contingency/waits"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file says which of the clocks are looked at by which waits.go judges, and which
// contingency/waits keeps. Of the tasks that this node holds there may be thousands, so theirs
// are looked at only when something of a task's slot has changed, or when its time is over;
// all others are looked at each time.

// noted is what is noted of a wait.
type noted struct {
	asked bool // the partner that it is about was asked what it has
	// of are the slots that may be judged by it, of a waits.Answer; nil: all for which the
	// partition answers. joined is how many had joined these, over how many were done that
	// had waited for a trigger (partDesk).
	of           map[workflow.TaskName]bool
	joined, over int
}

// clocks are all waits of a machine.
type clocks struct {
	waits.Clocks[noted]
	// slots are the slots that own clocks are about, due when to look at them though
	// nothing changed; fresh are those of which something changed, in rule order.
	slots   map[*state.Slot]*slotClocks
	due     soonest
	fresh   byPlace
	isFresh map[*state.Slot]bool
	// made is of which state these slots are, goesOn whether their tasks were clocked.
	// outdated: none of that is true any more; others: among the own clocks may be some
	// that are about no slot.
	made                     int
	goesOn, outdated, others bool

	// quiet is the moment (Boot) before which nothing fires, unless this node
	// heard before what happened in a gap: heard is when it began to; 0: not yet.
	// calm is the moment that follows from both, when waits were last looked at.
	quiet, heard, calm time.Duration
	// watched is when partitions and participants were last looked at (Boot); 0: never.
	// carefree: there was nothing to watch then.
	watched  time.Duration
	carefree bool
}

// slotClocks are the own clocks about a slot, and when to look at them; 0: never.
type slotClocks struct {
	keys []waits.Key
	at   time.Duration // Boot
}

func newClocks(steps *int) clocks {
	return clocks{
		Clocks: waits.New[noted](steps), slots: map[*state.Slot]*slotClocks{}, isFresh: map[*state.Slot]bool{},
		outdated: true,
	}
}

// answering reports whether a clock runs for another's partition.
func (cs *clocks) answering(p workflow.PartitionName) bool {
	k := waits.Key{Kind: waits.Answer, Name: string(p)}
	return cs.Get(k) != nil || cs.Get(k.HandOver()) != nil
}

// byItself reports whether a clock runs for another's attempt by itself.
func (cs *clocks) byItself(a fact.AttemptID) bool {
	if cs.LenOthers() == 0 {
		return false
	}
	name := a.String()
	return cs.Get(waits.Key{Kind: waits.Attempt, Name: name}) != nil ||
		cs.Get(waits.Key{Kind: waits.Readiness, Name: name}) != nil
}

// forget forgets all waits.
func (cs *clocks) forget() {
	if cs.Len() > 0 {
		cs.Clear()
		cs.outdated = true
	}
}

// watchSlots clocks what this node holds: its compensations and, while the instance
// goes on, its tasks. It reports whether it added facts.
func (d *decision) watchSlots(age time.Duration, goesOn bool) (added bool) {
	desk, c := d.look(), &d.clocks
	if c.outdated || c.made != desk.made || c.goesOn != goesOn {
		clear(c.slots)
		clear(c.isFresh)
		c.due, c.fresh = nil, nil
		c.OwnAgain()
		c.made, c.goesOn, c.outdated, c.others = desk.made, goesOn, false, true
		for _, sls := range []map[*state.Slot]bool{desk.clocked, desk.undoing} {
			for sl := range sls {
				c.freshen(sl)
			}
		}
	}
	for len(c.due) > 0 && c.due[0].at <= d.now.Boot && d.now.Boot >= c.calm {
		c.freshen(heap.Pop(&c.due).(dueAt).sl)
	}
	for len(c.fresh) > 0 {
		d.log.Steps++
		sl := heap.Pop(&c.fresh).(*state.Slot)
		delete(c.isFresh, sl)
		if d.watchSlot(sl, age) {
			return true
		}
	}
	if c.others {
		c.only()
		c.others = false
	}
	for len(c.due) > 0 {
		if next := c.due[0]; c.slots[next.sl] == nil || c.slots[next.sl].at != next.at {
			heap.Pop(&c.due) // something changed since
			continue
		}
		d.out.wake(max(c.due[0].at, c.calm))
		break
	}
	return false
}

// freshen has a slot looked at.
func (cs *clocks) freshen(sl *state.Slot) {
	if !cs.isFresh[sl] {
		cs.isFresh[sl] = true
		heap.Push(&cs.fresh, sl)
	}
}

// only ends the waits for own tasks that are about no slot.
func (cs *clocks) only() {
	wanted := map[waits.Key]bool{}
	for _, of := range cs.slots {
		for _, k := range of.keys {
			wanted[k] = true
		}
	}
	cs.Only(wanted)
}

// watchSlot clocks what this node holds of a slot. It reports whether it added facts.
func (d *decision) watchSlot(sl *state.Slot, age time.Duration) (added bool) {
	c := &d.clocks
	if !d.desk.undoing[sl] && (!c.goesOn || !d.desk.clocked[sl]) && c.slots[sl] == nil {
		return false // it has no clocks, and had none
	}
	is := &slotClocks{}
	if d.desk.undoing[sl] {
		for _, a := range d.state.MayUndoIn(sl) {
			if d.log.Steps++; !added && a.Partner == d.self && a.Undoing() {
				added = d.overdue(a.Undo, is)
			}
		}
	}
	if a := sl.Current; !added && c.goesOn && d.desk.clocked[sl] {
		switch {
		case d.state.Armed(sl):
			added = d.triggers(sl, is, age)
		case a.Start != nil || a.MayStart():
			d.clockUntaken(a, is)
			added = d.overdue(a, is) || d.overdueJobs(a, is) || d.comeOfAge(a, is, age)
		}
	}
	if was := c.slots[sl]; was != nil {
		for _, k := range was.keys {
			if !slices.Contains(is.keys, k) {
				c.End(k)
			}
		}
	}
	if delete(c.slots, sl); len(is.keys) > 0 || is.at > 0 {
		c.slots[sl] = is
	}
	if is.at > 0 {
		heap.Push(&c.due, dueAt{is.at, sl})
	}
	return added
}

// runs runs an own clock about a slot, and reports whether it is over: if not, the slot
// is looked at when it will be.
func (d *decision) runs(k waits.Key, from, total time.Duration, of *slotClocks) (over bool) {
	c := &d.clocks
	c.OwnLasts(total)
	of.keys = append(of.keys, k)
	t := c.RunFrom(from, k, true, d.now.Boot)
	if t >= total && d.now.Boot >= c.calm {
		return true
	}
	of.wake(d.now.Boot + max(total-t, 0))
	return false
}

func (of *slotClocks) wake(at time.Duration) {
	if at = max(at, 1); of.at == 0 || at < of.at { // 0 is never
		of.at = at
	}
}

// overdue clocks an attempt of our own, and fails it when its time-out is over.
func (d *decision) overdue(a *state.Attempt, of *slotClocks) (added bool) {
	if a.Task.Timeout == 0 {
		return false
	}
	k := waits.Key{Kind: waits.Timeout, Name: a.ID.String()}
	if !d.runs(k, a.WaitedBefore(), a.Task.Timeout, of) {
		return false
	}
	if !d.fail(a, fact.CauseTimeout, "no result within "+workflow.FormatDuration(a.Task.Timeout)) {
		return false
	}
	d.callOff(a.ID)
	return true
}

// triggers clocks an emergency task and fires it when its wait is over.
func (d *decision) triggers(sl *state.Slot, of *slotClocks, age time.Duration) (added bool) {
	k := waits.Key{Kind: waits.Trigger, Name: string(sl.Task.Name)}
	from := time.Duration(0)
	if start, _ := d.state.Plan().WaitStart(sl.Task.Name); d.clocks.Get(k) == nil {
		if age < start && !d.state.PredecessorReady(sl) {
			of.wake(d.now.Boot + start - age)
			return false
		}
		from = max(age-start, 0) // it began at the worst case, even if this node was down just then
	}
	if !d.runs(k, from, sl.Task.TimeToWait, of) {
		return false
	}
	_, err := d.append(fact.Body{Ready: &fact.ReadyBody{Attempt: sl.Current.ID, Trigger: true}})
	return err == nil
}

// soonest is a heap of slots by when to look at them.
type soonest []dueAt

type dueAt struct {
	at time.Duration
	sl *state.Slot
}

func (q soonest) Len() int { return len(q) }

func (q soonest) Less(i, j int) bool { return q[i].at < q[j].at }

func (q soonest) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

func (q *soonest) Push(x any) { *q = append(*q, x.(dueAt)) }

func (q *soonest) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// over reports whether a wait of that length is over; if not it asks to be woken.
func (d *decision) over(elapsed, total time.Duration, running bool) bool {
	d.clocks.Lasts(total)
	calm := d.clocks.calm
	switch {
	case elapsed >= total && d.now.Boot >= calm:
		return true
	case elapsed >= total:
		d.out.wake(calm)
	case running:
		d.out.wake(max(d.now.Boot+total-elapsed, calm))
	}
	return false
}

// waited is for how long the time-out of an attempt of our own has run.
func (o outlook) waited(a *state.Attempt) time.Duration {
	if c := o.clocks.Get(waits.Key{Kind: waits.Timeout, Name: a.ID.String()}); c != nil {
		return min(c.Read(o.now.Boot), a.Task.Timeout)
	}
	return 0
}
