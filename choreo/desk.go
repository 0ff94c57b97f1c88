package choreo

import (
	"container/heap"
	"maps"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// desk is what a node has before it of an instance: the slots about which it may
// have something to do, and what the rest adds up to. It follows the state slot by
// slot: what a decision costs depends on what changed and what is at hand, not on
// how large the instance is.
type desk struct {
	made  int     // of which state, see State.made
	slots []*Slot // of that
	// worked are the slots that were at work when all were made again, waited those that waited
	// for a trigger, while they are looked at for the first time since: they do not join, or
	// wait, once more (partDesk.joined, over).
	worked, waited map[workflow.TaskName]bool
	// todo are the slots that Decide has to look at each time, clocked those of our own whose
	// time may run, others those of others that this node clocks one by one, undoing
	// those with successes that lost.
	todo, clocked, others, undoing map[*Slot]bool
	// dues are those of our own that pass to the responsible user as their deadline is near.
	dues map[*Slot]bool
	// duesAt is State.rewritten when these were brought before the board.
	duesAt   int
	atWork   int // slots at which this node may still work
	unjudged map[workflow.PartnerID]int
	parts    map[workflow.PartitionName]*partDesk
	names    map[name]*awaited             // what the parts whose before is known wait for
	awaited  map[*Slot][]*awaited          // the same by slot
	writers  map[workflow.DataName][]*Slot // of those data that were asked for
	apart    map[*Slot]bool                // with unfinished work that came to its holder by itself
	inHand   time.Duration
	reading  beingRead

	queue byPlace // the slots that this pass of Decide has still to look at
	at    int     // the place that it has reached; -1: no pass is under way
	// all: this pass looks at what is to be undone, too, as was last done at undid
	// (Boot; 0: never).
	all   bool
	undid time.Duration
}

// partDesk is what a partition's slots add up to.
type partDesk struct {
	left     int           // not done, also for this node
	holding  int           // unfinished, at the partition's holder
	expected time.Duration // for those
	begun    int           // ready, running or done there

	// answers is of how many slots the partition's holder owes an answer (countsIn),
	// active how many of these are ready or running, for the partition's own time-out;
	// waits is for how long together they may wait for a trigger. joined counts how
	// often one came to work, over how often one was done that had still waited for its
	// trigger when it was last looked at: what comes after it can begin. One that was
	// passed on, or waits for somebody to take its contingency, is over with nothing.
	answers, active, joined, over int
	waits                         time.Duration
	looked                        time.Duration // when all its slots were last looked at (Boot); 0: never
	// before is how many of the names that its tasks wait for have slots elsewhere that are
	// not done, worst when they are in the worst case. Only if awaits is set.
	before int
	worst  time.Duration
	awaits bool
}

// shown is what one slot counts for at the desk.
type shown struct {
	todo, clocked, others, undoing bool
	atWork, left, active           bool
	holding, apart, own, begun     bool
	done                           bool               // it waits for nothing any more
	answers, works                 bool               // see partDesk
	unjudged                       workflow.PartnerID // who holds what nobody judged; empty: no such thing
	expected                       time.Duration
	waits                          time.Duration
}

func newDesk(made int) desk {
	return desk{
		made: made, at: -1, duesAt: -1, todo: map[*Slot]bool{}, clocked: map[*Slot]bool{}, others: map[*Slot]bool{},
		undoing:  map[*Slot]bool{},
		dues:     map[*Slot]bool{},
		unjudged: map[workflow.PartnerID]int{}, parts: map[workflow.PartitionName]*partDesk{}, apart: map[*Slot]bool{},
		names: map[name]*awaited{}, awaited: map[*Slot][]*awaited{}, writers: map[workflow.DataName][]*Slot{},
	}
}

// look brings the desk up to date with the state.
func (m *Machine) look() *desk {
	s, d := m.state, &m.desk
	if d.made != s.made {
		was, at, first := *d, d.at, d.made == 0
		m.unnoticed = nil // slots of before say nothing of those that there are now
		if *d = newDesk(s.made); !first {
			d.at, d.all, d.undid = at, was.all, was.undid
			d.goOn(&was, &m.log.steps)
		}
		d.slots = s.slots
	}
	s.eachMoved(m.lookAt)
	d.worked, d.waited = nil, nil
	return d
}

// goOn takes from the desk before it what counts on though all slots were made again: how
// often one came to work, or was done that had waited for its trigger.
func (d *desk) goOn(was *desk, steps *int) {
	for name, part := range was.parts {
		p := d.part(name)
		p.joined, p.over = part.joined, part.over
	}
	d.worked, d.waited = map[workflow.TaskName]bool{}, map[workflow.TaskName]bool{}
	for _, sl := range was.slots {
		*steps++
		if sl.shown.works {
			d.worked[sl.Task.Name] = true
		}
		if sl.shown.waits > 0 {
			d.waited[sl.Task.Name] = true
		}
	}
}

func (m *Machine) lookAt(sl *Slot) {
	d, was, is := &m.desk, sl.shown, m.show(sl)
	put(d.dues, sl, m.falls(sl))
	m.notice(sl)
	m.state.placeItems(sl)
	if (is.todo || is.undoing && d.all) && d.at >= 0 && sl.place > d.at && !sl.due {
		sl.due = true
		heap.Push(&d.queue, sl)
	}
	if was.clocked || is.clocked || was.undoing || is.undoing {
		m.clocks.freshen(sl)
	}
	if m.filed {
		d.reading.look(sl, m)
	}
	if was == is {
		return
	}
	sl.shown = is
	put(d.todo, sl, is.todo)
	put(d.clocked, sl, is.clocked)
	put(d.others, sl, is.others)
	put(d.undoing, sl, is.undoing)
	put(d.apart, sl, is.apart)
	d.atWork += one(is.atWork) - one(was.atWork)
	if was.unjudged != is.unjudged {
		d.unjudged[is.unjudged]++
		if d.unjudged[was.unjudged]--; d.unjudged[was.unjudged] == 0 {
			delete(d.unjudged, was.unjudged)
		}
	}
	p := d.part(m.state.plan.Home(sl.Task.Name))
	p.left += one(is.left) - one(was.left)
	p.active += one(is.active) - one(was.active)
	p.count(was, -1)
	p.count(is, +1)
	p.joined += one(is.works && !was.works && !d.worked[sl.Task.Name])
	p.over += one(sl.State.Done() && (was.waits > 0 || d.waited[sl.Task.Name]))
	if was.done != is.done {
		for _, w := range d.awaited[sl] {
			m.log.steps++
			w.count(m.state.plan.Home(sl.Task.Name), one(was.done)-one(is.done), &m.log.steps)
		}
	}
	if was.own {
		d.inHand -= was.expected
	}
	if is.own {
		d.inHand += is.expected
	}
}

// tick tells the machine what time it is.
func (d *decision) tick() {
	d.ticked, d.decided, d.noticedAt = true, d.now.Boot, d.now.Wall
	if d.desk.made == d.state.made { // else all slots were made again, and are looked at next
		for _, sl := range d.unnoticed {
			d.log.steps++
			d.notice(sl)
			d.state.placeItems(sl)
		}
	}
	d.unnoticed = nil
	if !d.backdated {
		d.backdated = true
		for _, sl := range d.state.slots { // was looked at when it was loaded
			d.notice(sl)
		}
		d.backdate()
	}
}

// notice notes since when the attempt in charge of a slot is known to be able to begin. Looked at between two
// decisions it waits for the next one, which comes in the same round and knows what time it is: the last may be
// long ago. What was blocked or skipped and can begin after all is noticed once more: nobody could begin it meanwhile.
func (m *Machine) notice(sl *Slot) {
	a, blocked := sl.Current, sl.State == workflow.Blocked || sl.State == workflow.Skipped
	if a.blocked && !blocked {
		a.noticed = 0
	}
	a.blocked = blocked
	if sl.State != workflow.NotReady && a.noticed == 0 {
		if !m.ticked {
			m.unnoticed = append(m.unnoticed, sl)
			return
		}
		a.noticed = m.decided
		if m.dated && a.Partner == m.self && a.Task.Deadline != nil {
			a.noticed -= (&moments{s: m.state}).passedAfter(a, m.noticedAt)
		}
	}
}

func (d *desk) part(name workflow.PartitionName) *partDesk {
	p := d.parts[name]
	if p == nil {
		p = &partDesk{}
		d.parts[name] = p
	}
	return p
}

func (p *partDesk) count(x shown, by int) {
	if x.begun {
		p.begun += by
	}
	if x.holding {
		p.holding += by
		p.expected += time.Duration(by) * x.expected
	}
	p.answers += by * one(x.answers)
	p.waits += time.Duration(by) * x.waits
}

func put(set map[*Slot]bool, sl *Slot, in bool) {
	if in {
		set[sl] = true
	} else {
		delete(set, sl)
	}
}

// show works out what a slot counts for.
func (m *Machine) show(sl *Slot) (x shown) {
	m.log.steps += len(sl.Attempts)
	a := sl.Current
	mine, wanted, done := a.Partner == m.self, m.state.wanted(a), sl.State.Done()
	x.undoing = m.undoes && slices.ContainsFunc(m.state.mayUndoIn(sl),
		func(a *Attempt) bool { return a.lost() || a.undoing() })
	x.todo = slices.ContainsFunc(sl.Attempts, m.mayAct)
	x.clocked = mine && wanted && (m.state.armed(sl) || a.start != nil || a.mayStart())
	x.atWork = m.atWork(sl)
	x.others = (sl.Pending != nil && sl.Pick == nil) || (!mine && wanted && m.maySingle(sl))
	x.left = !done || x.atWork
	if sl.unjudged() {
		x.unjudged = a.Partner
	}
	x.begun = sl.State == workflow.Ready || sl.State == workflow.Running || done && a.start != nil
	if home := m.state.plan.Home(sl.Task.Name); x.unjudged != "" && m.state.countsIn(home, a) {
		x.active = sl.State == workflow.Ready || sl.State == workflow.Running
		x.answers = true
		if x.works = sl.Task.TimeToWait == 0 || sl.begun(); !sl.begun() {
			x.waits = sl.Task.TimeToWait
		}
	}
	if x.done = done; !done && sl.Pending == nil && sl.Dropped == nil {
		x.expected, x.own, x.apart, x.holding = partition.Expected(a.Task), mine, a.byItself(), !a.byItself()
	}
	return x
}

// maySingle reports whether what is at another in a slot may be clocked by itself: always,
// or while its partition may be kept for ever (guardian.go).
func (m *Machine) maySingle(sl *Slot) bool {
	begins := sl.State != workflow.NotReady || sl.hasData || sl.Task.TimeToWait > 0
	return sl.unjudged() && (sl.Current.Depth > 1 || m.endless && begins) && m.state.mayTake(sl.Current) > 0
}

// mayAct reports whether decideSlot may have something to do about an attempt.
func (m *Machine) mayAct(a *Attempt) bool {
	if a.Partner != m.self || a.success() != nil || a.off != nil || a.endedByHolder() {
		return false
	}
	switch wanted := m.state.wanted(a); {
	case a.start != nil && wanted:
		return a.Task.ByNode() && !m.running[a.ID]
	case a.start != nil || !wanted:
		return a.start != nil
	}
	return a.waitsForData() || (a.mayStart() && (a.Task.ByNode() && m.state.hasUnits(a) || a.Task.ByRole()))
}

// pass calls fn for all slots at hand in rule order, and for those behind that come
// to hand meanwhile. With all, what is to be undone is at hand.
func (m *Machine) pass(all bool, fn func(*Slot)) {
	d := m.look()
	d.queue, d.at, d.all = nil, 0, all
	for sl := range d.todo {
		sl.due = true
		d.queue = append(d.queue, sl)
	}
	for sl := range d.undoing {
		if all && !sl.due {
			sl.due = true
			d.queue = append(d.queue, sl)
		}
	}
	heap.Init(&d.queue)
	for made := d.made; len(d.queue) > 0; d = m.look() {
		if d.made != made { // a fact of ours had all slots made again: look has filled the queue
			made = d.made
			continue
		}
		sl := heap.Pop(&d.queue).(*Slot)
		sl.due = false
		d.at = sl.place
		m.log.steps++
		fn(sl)
	}
	d.at = -1
}

// byPlace is a heap of slots, the first in rule order first.
type byPlace []*Slot

func (q byPlace) Len() int           { return len(q) }
func (q byPlace) Less(i, j int) bool { return q[i].place < q[j].place }
func (q byPlace) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *byPlace) Push(sl any)       { *q = append(*q, sl.(*Slot)) }
func (q *byPlace) Pop() any          { return (*judging)(q).Pop() }

// inOrder are the slots of a set in rule order.
func inOrder(set map[*Slot]bool) []*Slot {
	return slices.SortedFunc(maps.Keys(set), func(a, b *Slot) int { return a.place - b.place })
}
