package choreo

import (
	"container/heap"
	"maps"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// desk is what a node has before it of an instance: the slots about which it may
// have something to do, and what the rest adds up to. It follows the state slot by
// slot: what a decision costs depends on what changed and what is at hand, not on
// how large the instance is.
type desk struct {
	made  int           // of which state, see State.Made
	slots []*state.Slot // of that
	// worked are the slots that were at work when all were made again, waited those that waited
	// for a trigger, while they are looked at for the first time since: they do not join, or
	// wait, once more (partDesk.joined, over).
	worked, waited map[workflow.TaskName]bool
	// todo are the slots that Decide has to look at each time, clocked those of our own whose
	// time may run, others those of others that this node clocks one by one, undoing
	// those with successes that lost.
	todo, clocked, others, undoing map[*state.Slot]bool
	// dues are those of our own that pass to the responsible user as their deadline is near.
	dues map[*state.Slot]bool
	// duesAt is State.Rewritten when these were brought before the board.
	duesAt   int
	atWork   int // slots at which this node may still work
	unjudged map[workflow.PartnerID]int
	parts    map[workflow.PartitionName]*partDesk
	names    map[state.Name]*awaited             // what the parts whose before is known wait for
	awaited  map[*state.Slot][]*awaited          // the same by slot
	writers  map[workflow.DataName][]*state.Slot // of those data that were asked for
	apart    map[*state.Slot]bool                // with unfinished work that came to its holder by itself
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

func newDesk(made int) desk {
	return desk{
		made: made, at: -1, duesAt: -1, todo: map[*state.Slot]bool{}, clocked: map[*state.Slot]bool{},
		others:   map[*state.Slot]bool{},
		undoing:  map[*state.Slot]bool{},
		dues:     map[*state.Slot]bool{},
		unjudged: map[workflow.PartnerID]int{}, parts: map[workflow.PartitionName]*partDesk{},
		apart: map[*state.Slot]bool{},
		names: map[state.Name]*awaited{}, awaited: map[*state.Slot][]*awaited{},
		writers: map[workflow.DataName][]*state.Slot{},
	}
}

// look brings the desk up to date with the state.
func (m *Machine) look() *desk {
	s, d := m.state, &m.desk
	if d.made != s.Made() {
		was, at, first := *d, d.at, d.made == 0
		m.unnoticed = nil // slots of before say nothing of those that there are now
		if *d = newDesk(s.Made()); !first {
			d.at, d.all, d.undid = at, was.all, was.undid
			d.goOn(&was, &m.log.Steps)
			m.noticedBefore(was.slots)
		}
		d.slots = s.Slots()
	}
	s.EachMoved(m.lookAt)
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
		if sl.Shown.Works {
			d.worked[sl.Task.Name] = true
		}
		if sl.Shown.Waits > 0 {
			d.waited[sl.Task.Name] = true
		}
	}
}

// noticedBefore takes over since when attempts are known to be able to begin, though all slots were made again.
func (m *Machine) noticedBefore(slots []*state.Slot) {
	for _, sl := range slots {
		for _, was := range sl.Attempts {
			m.log.Steps++
			if a := m.state.Attempts()[was.ID]; a != nil {
				a.Noticed, a.Blocked = was.Noticed, was.Blocked
			}
		}
	}
}

func (m *Machine) lookAt(sl *state.Slot) {
	d, was, is := &m.desk, sl.Shown, m.show(sl)
	put(d.dues, sl, m.falls(sl))
	m.notice(sl)
	m.state.PlaceItems(sl)
	if (is.Todo || is.Undoing && d.all) && d.at >= 0 && sl.Place > d.at && !sl.Due {
		sl.Due = true
		heap.Push(&d.queue, sl)
	}
	if was.Clocked || is.Clocked || was.Undoing || is.Undoing {
		m.clocks.freshen(sl)
	}
	if m.filed {
		d.reading.look(sl, m)
	}
	if was == is {
		return
	}
	sl.Shown = is
	put(d.todo, sl, is.Todo)
	put(d.clocked, sl, is.Clocked)
	put(d.others, sl, is.Others)
	put(d.undoing, sl, is.Undoing)
	put(d.apart, sl, is.Apart)
	d.atWork += state.AsInt(is.AtWork) - state.AsInt(was.AtWork)
	if was.Unjudged != is.Unjudged {
		d.unjudged[is.Unjudged]++
		if d.unjudged[was.Unjudged]--; d.unjudged[was.Unjudged] == 0 {
			delete(d.unjudged, was.Unjudged)
		}
	}
	p := d.part(m.state.Plan().Home(sl.Task.Name))
	p.left += state.AsInt(is.Left) - state.AsInt(was.Left)
	p.active += state.AsInt(is.Active) - state.AsInt(was.Active)
	p.count(was, -1)
	p.count(is, +1)
	p.joined += state.AsInt(is.Works && !was.Works && !d.worked[sl.Task.Name])
	p.over += state.AsInt(sl.State.Done() && (was.Waits > 0 || d.waited[sl.Task.Name]))
	if was.Done != is.Done {
		for _, w := range d.awaited[sl] {
			m.log.Steps++
			w.count(m.state.Plan().Home(sl.Task.Name), state.AsInt(was.Done)-state.AsInt(is.Done), &m.log.Steps)
		}
	}
	if was.Own {
		d.inHand -= was.Expected
	}
	if is.Own {
		d.inHand += is.Expected
	}
}

// tick tells the machine what time it is.
func (d *decision) tick() {
	d.ticked, d.decided, d.noticedAt = true, d.now.Boot, d.now.Wall
	if d.desk.made == d.state.Made() { // else all slots were made again, and are looked at next
		for _, sl := range d.unnoticed {
			d.log.Steps++
			d.notice(sl)
			d.state.PlaceItems(sl)
		}
	}
	d.unnoticed = nil
	if !d.backdated {
		d.backdated = true
		for _, sl := range d.state.Slots() { // was looked at when it was loaded
			d.notice(sl)
		}
		d.backdate()
	}
}

// notice notes since when the attempt in charge of a slot is known to be able to begin. Looked at between two
// decisions it waits for the next one, which comes in the same round and knows what time it is: the last may be
// long ago. What was blocked or skipped and can begin after all is noticed once more: nobody could begin it meanwhile.
func (m *Machine) notice(sl *state.Slot) {
	a, blocked := sl.Current, sl.State == workflow.Blocked || sl.State == workflow.Skipped
	if a.Blocked && !blocked {
		a.Noticed = 0
	}
	a.Blocked = blocked
	if sl.State != workflow.NotReady && a.Noticed == 0 {
		if !m.ticked {
			m.unnoticed = append(m.unnoticed, sl)
			return
		}
		a.Noticed = m.decided
		if m.dated && a.Partner == m.self && a.Task.Deadline != nil {
			a.Noticed -= (&state.Moments{S: m.state}).PassedAfter(a, m.noticedAt)
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

func (p *partDesk) count(x state.Shown, by int) {
	if x.Begun {
		p.begun += by
	}
	if x.Holding {
		p.holding += by
		p.expected += time.Duration(by) * x.Expected
	}
	p.answers += by * state.AsInt(x.Answers)
	p.waits += time.Duration(by) * x.Waits
}

func put(set map[*state.Slot]bool, sl *state.Slot, in bool) {
	if in {
		set[sl] = true
	} else {
		delete(set, sl)
	}
}

// show works out what a slot counts for.
func (m *Machine) show(sl *state.Slot) (x state.Shown) {
	m.log.Steps += len(sl.Attempts)
	a := sl.Current
	mine, wanted, done := a.Partner == m.self, m.state.Wanted(a), sl.State.Done()
	x.Undoing = m.undoes && slices.ContainsFunc(m.state.MayUndoIn(sl),
		func(a *state.Attempt) bool { return a.Lost() || a.Undoing() })
	x.Todo = slices.ContainsFunc(sl.Attempts, m.mayAct)
	x.Clocked = mine && wanted && (m.state.Armed(sl) || a.Start != nil || a.MayStart())
	x.AtWork = m.atWork(sl)
	x.Others = (sl.Pending != nil && sl.Pick == nil) || (!mine && wanted && m.maySingle(sl))
	x.Left = !done || x.AtWork
	if sl.Unjudged() {
		x.Unjudged = a.Partner
	}
	x.Begun = sl.State == workflow.Ready || sl.State == workflow.Running || done && a.Start != nil
	if home := m.state.Plan().Home(sl.Task.Name); x.Unjudged != "" && m.state.CountsIn(home, a) {
		x.Active = sl.State == workflow.Ready || sl.State == workflow.Running
		x.Answers = true
		if x.Works = sl.Task.TimeToWait == 0 || sl.Begun(); !sl.Begun() {
			x.Waits = sl.Task.TimeToWait
		}
	}
	if x.Done = done; !done && sl.Pending == nil && sl.Dropped == nil {
		x.Expected, x.Own, x.Apart, x.Holding = partition.Expected(a.Task), mine, a.ByItself(), !a.ByItself()
	}
	return x
}

// maySingle reports whether what is at another in a slot may be clocked by itself: always,
// or while its partition may be kept for ever (guardian.go).
func (m *Machine) maySingle(sl *state.Slot) bool {
	begins := sl.State != workflow.NotReady || sl.HasData || sl.Task.TimeToWait > 0
	return sl.Unjudged() && (sl.Current.Depth > 1 || m.endless && begins) && m.state.MayTake(sl.Current) > 0
}

// mayAct reports whether decideSlot may have something to do about an attempt.
func (m *Machine) mayAct(a *state.Attempt) bool {
	if a.Partner != m.self || a.Success() != nil || a.Off != nil || a.EndedByHolder() {
		return false
	}
	switch wanted := m.state.Wanted(a); {
	case a.Start != nil && wanted:
		return a.Task.ByNode() && !m.running[a.ID]
	case a.Start != nil || !wanted:
		return a.Start != nil
	}
	return a.WaitsForData() || (a.MayStart() && (a.Task.ByNode() && m.state.HasUnits(a) || a.Task.ByRole()))
}

// pass calls fn for all slots at hand in rule order, and for those behind that come
// to hand meanwhile. With all, what is to be undone is at hand.
func (m *Machine) pass(all bool, fn func(*state.Slot)) {
	d := m.look()
	d.queue, d.at, d.all = nil, 0, all
	for sl := range d.todo {
		sl.Due = true
		d.queue = append(d.queue, sl)
	}
	for sl := range d.undoing {
		if all && !sl.Due {
			sl.Due = true
			d.queue = append(d.queue, sl)
		}
	}
	heap.Init(&d.queue)
	for made := d.made; len(d.queue) > 0; d = m.look() {
		if d.made != made { // a fact of ours had all slots made again: look has filled the queue
			made = d.made
			continue
		}
		sl := heap.Pop(&d.queue).(*state.Slot)
		sl.Due = false
		d.at = sl.Place
		m.log.Steps++
		fn(sl)
	}
	d.at = -1
}

func (q byPlace) Len() int { return len(q) }

func (q byPlace) Less(i, j int) bool { return q[i].Place < q[j].Place }

func (q byPlace) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

func (q *byPlace) Push(sl any) { *q = append(*q, sl.(*state.Slot)) }

func (q *byPlace) Pop() any { return (*state.Judging)(q).Pop() }

// inOrder are the slots of a set in rule order.
func inOrder(set map[*state.Slot]bool) []*state.Slot {
	return slices.SortedFunc(maps.Keys(set), func(a, b *state.Slot) int { return a.Place - b.Place })
}

// partitionDone reports whether a partition has ended, also for this node if it holds
// what others only presume to have failed.
func (m *Machine) partitionDone(p workflow.PartitionName) bool {
	return m.look().part(p).left == 0
}
