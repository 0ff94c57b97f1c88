package choreo

import (
	"container/heap"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/contingency/waits"
	"github.com/mutirao-mesh/mutirao/dataflow"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file clocks what this node holds (waits.go says how long what runs). There may be thousands of such tasks, so
// they are looked at only when something of a task's slot has changed, or when its time is over; all other clocks are
// looked at each time.

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
	d.clockedBy = nil
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

// overdue clocks an attempt of our own, and fails it when its time-out is over.
func (d *decision) overdue(a *state.Attempt, of *slotClocks) (added bool) {
	if a.Task.Timeout == 0 {
		return false
	}
	k, from := waits.Key{Kind: waits.Timeout, Name: a.ID.String()}, a.WaitedBefore()
	if d.limitCame(a.Task.Name, func(t *workflow.Task) time.Duration { return t.Timeout }) {
		from = max(from, d.noticedFor(a))
	}
	if !d.runs(k, from, a.Task.Timeout, of) {
		return false
	}
	if !d.fail(a, fact.CauseTimeout, "no result within "+workflow.FormatDuration(a.Task.Timeout)) {
		return false
	}
	d.callOff(a.ID)
	return true
}

// limitCame reports whether a task has a limit since an amendment of which this node has just heard. Its clock counts
// from when it would have begun: then it may be over now, though it never was before.
func (m *Machine) limitCame(t workflow.TaskName, limit func(*workflow.Task) time.Duration) bool {
	if m.clockedBy == nil {
		return false
	}
	was := m.clockedBy.Task(t)
	return was == nil || limit(was) == 0
}

// readyBefore is for how long this node has known of a predecessor of a slot that it is ready, or has ended.
func (o outlook) readyBefore(sl *state.Slot) (longest time.Duration) {
	for _, p := range o.state.Definition().Predecessors(sl.Task.Name) {
		for _, from := range o.state.SlotsOf(p) {
			if from.State != workflow.NotReady {
				longest = max(longest, o.noticedFor(from.Current))
			}
		}
	}
	return longest
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
		if !d.state.IsAdded(sl) {
			from = max(age-start, 0) // it began at the worst case, even if this node was down just then
		}
		if d.limitCame(sl.Task.Name, func(t *workflow.Task) time.Duration { return t.TimeToWait }) {
			from = max(from, d.readyBefore(sl))
		}
	}
	if !d.runs(k, from, sl.Task.TimeToWait, of) {
		return false
	}
	_, err := d.append(fact.Body{Ready: &fact.ReadyBody{Attempt: sl.Current.ID, Trigger: true}})
	return err == nil
}

// clockUntaken counts for how long an attempt of ours can be taken, and is offered, as far as its mechanism goes by
// that, whether or not somebody has it meanwhile. A restart of this node goes on from there, whatever its wall clock
// says.
func (d *decision) clockUntaken(a *state.Attempt, of *slotClocks) {
	if a.Start != nil || !d.state.ToBeTaken(a) {
		return
	}
	if rules := d.state.Definition().Distribution; rules.Relax || rules.UrgencyGrowth > 0 {
		of.keys = append(of.keys, untaken(a))
		d.clocks.RunFrom(d.untakenFor(a), untaken(a), true, d.now.Boot)
	}
	if since, offered := d.offeredFor(a); offered && d.state.Mechanism() == aptitude.SelPushPull {
		d.runs(offeredSince(a), since, partition.PatienceOf(d.state.Definition()), of)
	}
}

// overdueJobs clocks the transitions of a flow that this node holds, and the compensation for which a recovery waits.
func (d *decision) overdueJobs(a *state.Attempt, of *slotClocks) (added bool) {
	f := d.state.Flow()
	if !a.Task.Whole || f.Line == nil || f.Line.Of != a || !d.timed {
		return false
	}
	var jobs []dataflow.Job
	for _, p := range f.Line.Board.Pending() {
		jobs = append(jobs, p.Job)
	}
	if u := f.Line.Board.Undoing(); u != nil {
		jobs = append(jobs, u.Job)
	}
	for _, j := range jobs {
		d.log.Steps++
		job := d.state.Attempts()[state.AttemptOfJob(j)]
		if job != nil && (job.Start != nil || job.Task.Type != workflow.Automatic) && d.overdue(job, of) {
			return true
		}
	}
	return false
}

// comeOfAge says of a flow that this node holds that its instance has come to an age at which a condition may come
// out otherwise, by this node's clock. It reports whether it added facts.
func (d *decision) comeOfAge(a *state.Attempt, of *slotClocks, age time.Duration) (added bool) {
	f := d.state.Flow()
	if !a.Task.Whole || f.Line == nil || f.Line.Of != a {
		return false
	}
	next, has := f.Line.Board.NextAge()
	switch {
	case !has:
		return false
	case age < next:
		of.wake(d.now.Boot + next - age)
		return false
	case d.now.Boot < d.clocks.calm:
		of.wake(d.clocks.calm)
		return false
	}
	e, err := d.append(fact.Body{Aged: &fact.Aged{Attempt: a.ID, Age: age}})
	return err == nil && e.Counted
}
