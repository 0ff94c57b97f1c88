package choreo

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file keeps the clocks of what waits.go waits for. Of the tasks that this node
// holds there may be thousands, so theirs are looked at only when something of a task's
// slot has changed, or when its time is over; all others are looked at each time.

// clock counts the time of one wait.
type clock struct {
	elapsed time.Duration // until since
	since   time.Duration // Boot; while running
	running bool
	seen    bool // still wanted
	asked   bool // the partner that it is about was asked what it has
	// of are the slots that may be judged by it, of a WaitAnswer; nil: all for which the
	// partition answers. joined is how many had joined these, over how many were done that
	// had waited for a trigger (partDesk).
	of           map[workflow.TaskName]bool
	joined, over int
	known        int // how many facts there were when it was looked at (WaitKind.ofFacts)
}

func (c *clock) read(now time.Duration) time.Duration {
	if !c.running {
		return c.elapsed
	}
	return c.elapsed + max(now-c.since, 0)
}

// clocks are all waits of a machine.
type clocks struct {
	// own are the clocks of this node's own tasks, all those of everything else.
	own, all map[WaitKey]*clock
	// slots are the slots that own clocks are about, due when to look at them though
	// nothing changed; fresh are those of which something changed, in rule order.
	slots   map[*Slot]*slotClocks
	due     soonest
	fresh   byPlace
	isFresh map[*Slot]bool
	// made is of which state these slots are, goesOn whether their tasks were clocked.
	// outdated: none of that is true any more; others: among the own clocks may be some
	// that are about no slot.
	made                     int
	goesOn, outdated, others bool

	// quiet is the moment (Boot) before which nothing fires, unless this node
	// heard before what happened in a gap: heard is when it began to; 0: not yet.
	// calm is the moment that follows from both, when waits were last looked at.
	quiet, heard, calm time.Duration
	// savedAt is when the waits were last handed out to be stored, and stored what
	// they were; every is the time between two savings, everyOwn what it must be for
	// the own ones. changed: what is stored could make a wait end too early.
	savedAt, every, everyOwn time.Duration
	// watched is when partitions and participants were last looked at (Boot); 0: never.
	// carefree: there was nothing to watch then.
	watched  time.Duration
	carefree bool
	stored   map[WaitKey]bool
	changed  bool
	steps    *int // Log.steps
}

// slotClocks are the own clocks about a slot, and when to look at them; 0: never.
type slotClocks struct {
	keys []WaitKey
	at   time.Duration // Boot
}

func newClocks(steps *int) clocks {
	return clocks{
		own: map[WaitKey]*clock{}, all: map[WaitKey]*clock{}, slots: map[*Slot]*slotClocks{}, isFresh: map[*Slot]bool{},
		outdated: true, every: saveEvery, everyOwn: saveEvery, stored: map[WaitKey]bool{}, steps: steps,
	}
}

// of are the clocks among which a wait's is.
func (cs *clocks) of(k WaitKey) map[WaitKey]*clock {
	if k.Kind == WaitTimeout || k.Kind == WaitTrigger {
		return cs.own
	}
	return cs.all
}

// get is the clock of a wait; nil: it has none.
func (cs *clocks) get(k WaitKey) *clock { return cs.of(k)[k] }

// run says that a wait is wanted, and whether its clock runs now. It returns
// the time on it.
func (cs *clocks) run(k WaitKey, running bool, now time.Duration) time.Duration {
	c := cs.get(k)
	if c == nil {
		c = cs.begin(k, 0, now)
		c.running = running
	}
	c.seen = true
	if c.running != running {
		c.elapsed, c.since, c.running = c.read(now), now, running
		cs.changed = cs.changed || !running && cs.stored[k]
	}
	return c.read(now)
}

// runFrom is run for a wait of which some had passed already when it began here.
func (cs *clocks) runFrom(elapsed time.Duration, k WaitKey, running bool, now time.Duration) time.Duration {
	if cs.get(k) == nil && elapsed > 0 {
		cs.begin(k, elapsed, now)
	}
	return cs.run(k, running, now)
}

// begin starts a wait of which some has passed already. It is stored at once among few,
// and where what is stored is an earlier wait of the same name. One of many is stored
// with the next waits, so that each costs only itself: a crash before makes it longer.
func (cs *clocks) begin(k WaitKey, elapsed, now time.Duration) *clock {
	c := &clock{elapsed: elapsed, since: now, running: true}
	cs.of(k)[k] = c
	cs.changed = cs.changed || cs.stored[k] || len(cs.all)+len(cs.own) <= fewWaits
	return c
}

// fewWaits is how many waits of an instance are all stored whenever one begins.
const fewWaits = 32

// drop ends a wait for which something was found that it had not counted from its
// beginning. What is stored of it goes at once: restored, it would be over too early.
func (cs *clocks) drop(k WaitKey) {
	delete(cs.of(k), k)
	cs.changed = cs.changed || cs.stored[k]
}

// beginAfter starts a wait once what it is for was handed over.
func (cs *clocks) beginAfter(k WaitKey, elapsed, now time.Duration) {
	delete(cs.all, k.handOver())
	cs.begin(k, elapsed, now)
}

// answering reports whether a clock runs for another's partition.
func (cs *clocks) answering(p workflow.PartitionName) bool {
	k := WaitKey{Kind: WaitAnswer, Name: string(p)}
	return cs.all[k] != nil || cs.all[k.handOver()] != nil
}

// byItself reports whether a clock runs for another's attempt by itself.
func (cs *clocks) byItself(a AttemptID) bool {
	if len(cs.all) == 0 {
		return false
	}
	name := a.String()
	return cs.all[WaitKey{Kind: WaitAttempt, Name: name}] != nil || cs.all[WaitKey{Kind: WaitReadiness, Name: name}] != nil
}

// unsee begins a pass over what is waited for of others: only what it finds wanted
// stays.
func (cs *clocks) unsee() {
	for _, c := range cs.all {
		*cs.steps++
		c.seen = false
	}
}

// keep has a wait, or the one for its hand-over, stay as it is.
func (cs *clocks) keep(k WaitKey) {
	for _, k := range []WaitKey{k, k.handOver()} {
		if c := cs.all[k]; c != nil {
			c.seen = true
		}
	}
}

// sweep forgets those waits that nobody wanted since.
func (cs *clocks) sweep() {
	for k, c := range cs.all {
		*cs.steps++
		if !c.seen {
			delete(cs.all, k)
		}
	}
}

// forget forgets all waits.
func (cs *clocks) forget() {
	if len(cs.all)+len(cs.own) > 0 {
		clear(cs.all)
		clear(cs.own)
		cs.outdated = true
	}
}

// saveEvery is how often at least running waits are stored; short waits are stored
// more often, so that a reboot with a wrong clock costs no more than a twentieth of a
// wait (docs/design.md, idea 8).
const (
	saveEvery    = 30 * time.Second
	minSaveEvery = time.Second
)

// saveWithin is how often waits are stored while one of that length runs.
func saveWithin(total time.Duration) time.Duration { return max(total/20, minSaveEvery) }

// toSave are the waits to be stored now, among so many facts; nil: nothing needs to be.
func (cs *clocks) toSave(now time.Duration, facts int) *Waits {
	n, due := len(cs.all)+len(cs.own), now >= cs.savedAt+min(cs.every, cs.everyOwn)
	if n == 0 && len(cs.stored) == 0 || n > 0 && !cs.changed && !due {
		cs.changed = false
		return nil
	}
	cs.changed, cs.savedAt = false, now
	ws := &Waits{Known: facts}
	clear(cs.stored)
	for _, clocks := range []map[WaitKey]*clock{cs.own, cs.all} {
		for k, c := range clocks {
			*cs.steps++
			cs.stored[k] = true
			ws.All = append(ws.All, Wait{Key: k, Elapsed: c.read(now), Running: c.running})
			if k.Kind.ofFacts() {
				ws.Known = min(ws.Known, c.known)
			}
		}
	}
	slices.SortFunc(ws.All, func(a, b Wait) int {
		return cmp.Or(cmp.Compare(a.Key.Kind, b.Key.Kind), cmp.Compare(a.Key.Name, b.Key.Name))
	})
	return ws
}

// nextSave is when the waits should be stored again; ok is false while none runs.
func (cs *clocks) nextSave() (at time.Duration, ok bool) {
	ok = len(cs.own) > 0 // these run
	for _, c := range cs.all {
		ok = ok || c.running
	}
	return cs.savedAt + min(cs.every, cs.everyOwn), ok
}

// watchSlots clocks what this node holds: its compensations and, while the instance
// goes on, its tasks. It reports whether it added facts.
func (d *decision) watchSlots(age time.Duration, goesOn bool) (added bool) {
	desk, c := d.look(), &d.clocks
	if c.outdated || c.made != desk.made || c.goesOn != goesOn {
		clear(c.slots)
		clear(c.isFresh)
		c.due, c.fresh, c.everyOwn = nil, nil, saveEvery
		c.made, c.goesOn, c.outdated, c.others = desk.made, goesOn, false, true
		for _, sls := range []map[*Slot]bool{desk.clocked, desk.undoing} {
			for sl := range sls {
				c.freshen(sl)
			}
		}
	}
	for len(c.due) > 0 && c.due[0].at <= d.now.Boot && d.now.Boot >= c.calm {
		c.freshen(heap.Pop(&c.due).(dueAt).sl)
	}
	for len(c.fresh) > 0 {
		d.log.steps++
		sl := heap.Pop(&c.fresh).(*Slot)
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
func (cs *clocks) freshen(sl *Slot) {
	if !cs.isFresh[sl] {
		cs.isFresh[sl] = true
		heap.Push(&cs.fresh, sl)
	}
}

// only forgets the own clocks that are about no slot.
func (cs *clocks) only() {
	wanted := make(map[WaitKey]bool, len(cs.own))
	for _, of := range cs.slots {
		for _, k := range of.keys {
			wanted[k] = true
		}
	}
	for k := range cs.own {
		*cs.steps++
		if !wanted[k] {
			delete(cs.own, k)
		}
	}
}

// watchSlot clocks what this node holds of a slot. It reports whether it added facts.
func (d *decision) watchSlot(sl *Slot, age time.Duration) (added bool) {
	c := &d.clocks
	if !d.desk.undoing[sl] && (!c.goesOn || !d.desk.clocked[sl]) && c.slots[sl] == nil {
		return false // it has no clocks, and had none
	}
	is := &slotClocks{}
	if d.desk.undoing[sl] {
		for _, a := range d.state.mayUndoIn(sl) {
			if d.log.steps++; !added && a.Partner == d.self && a.undoing() {
				added = d.overdue(a.undo, is)
			}
		}
	}
	if a := sl.Current; !added && c.goesOn && d.desk.clocked[sl] {
		switch {
		case d.state.armed(sl):
			added = d.triggers(sl, is, age)
		case a.start != nil || a.mayStart():
			added = d.overdue(a, is) || d.overdueJobs(a, is) || d.comeOfAge(a, is, age)
		}
	}
	if was := c.slots[sl]; was != nil {
		for _, k := range was.keys {
			if !slices.Contains(is.keys, k) {
				delete(c.own, k)
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
func (d *decision) runs(k WaitKey, from, total time.Duration, of *slotClocks) (over bool) {
	c := &d.clocks
	c.everyOwn = min(c.everyOwn, saveWithin(total))
	of.keys = append(of.keys, k)
	t := c.runFrom(from, k, true, d.now.Boot)
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
func (d *decision) overdue(a *Attempt, of *slotClocks) (added bool) {
	if a.Task.Timeout == 0 {
		return false
	}
	k := WaitKey{Kind: WaitTimeout, Name: a.ID.String()}
	if !d.runs(k, a.waitedBefore(), a.Task.Timeout, of) {
		return false
	}
	if !d.fail(a, CauseTimeout, "no result within "+workflow.FormatDuration(a.Task.Timeout)) {
		return false
	}
	d.callOff(a.ID)
	return true
}

// triggers clocks an emergency task and fires it when its wait is over.
func (d *decision) triggers(sl *Slot, of *slotClocks, age time.Duration) (added bool) {
	k := WaitKey{Kind: WaitTrigger, Name: string(sl.Task.Name)}
	from := time.Duration(0)
	if start, _ := d.state.plan.WaitStart(sl.Task.Name); d.clocks.own[k] == nil {
		if age < start && !d.state.predecessorReady(sl) {
			of.wake(d.now.Boot + start - age)
			return false
		}
		from = max(age-start, 0) // it began at the worst case, even if this node was down just then
	}
	if !d.runs(k, from, sl.Task.TimeToWait, of) {
		return false
	}
	_, err := d.append(Body{Ready: &ReadyBody{Attempt: sl.Current.ID, Trigger: true}})
	return err == nil
}

// soonest is a heap of slots by when to look at them.
type soonest []dueAt

type dueAt struct {
	at time.Duration
	sl *Slot
}

func (q soonest) Len() int           { return len(q) }
func (q soonest) Less(i, j int) bool { return q[i].at < q[j].at }
func (q soonest) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *soonest) Push(x any)        { *q = append(*q, x.(dueAt)) }
func (q *soonest) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
