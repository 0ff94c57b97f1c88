package choreo

import (
	"container/heap"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file keeps the desk up to date with the state: what each slot that changed counts for at this node.

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

func (m *Machine) lookAt(sl *state.Slot) {
	d, was, is := &m.desk, sl.Shown, m.show(sl)
	put(d.dues, sl, m.falls(sl))
	put(d.moving, sl, m.moves(sl))
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

// atWork reports whether this node may still do a slot's task, whatever others presume.
func (m *Machine) atWork(sl *state.Slot) bool {
	a := sl.Current
	return a.Partner == m.self && a.Success() == nil && m.state.Wanted(a) &&
		(a.Start != nil || a.MayStart() || m.state.Armed(sl))
}

// falls reports whether the attempt in charge of a slot is one of this node that passes on as its deadline is near, or
// is offered by a policy. What others only presume to have failed goes on here.
func (m *Machine) falls(sl *state.Slot) bool {
	a := sl.Current
	ours := a.Partner == m.self && a.Success() == nil && !a.EndedByHolder()
	minded := m.passesOn && m.state.TransferOf(a) > 0 || m.peopled && m.state.Limits(a)
	return ours && minded && m.state.Wanted(a) && (a.Start != nil || a.MayStart())
}

// noticedBefore takes over since when attempts are known to be able to begin, though all slots were made again.
func (m *Machine) noticedBefore(slots []*state.Slot) {
	for _, sl := range slots {
		for _, was := range sl.Attempts {
			m.log.Steps++
			if a := m.state.Attempts()[was.ID]; a != nil {
				a.Noticed, a.Dated, a.Blocked = was.Noticed, was.Dated, was.Blocked
			}
		}
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
		a.Noticed, a.Dated = m.decided, false
		if !m.undated {
			m.date(a)
		}
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
		d.backdated, d.loaded = true, d.now.Boot
		for _, sl := range d.state.Slots() { // was looked at when it was loaded
			d.notice(sl)
		}
	}
	if d.undated {
		d.look() // an amendment may have had all slots made again
		d.undated = false
		d.backdate()
	}
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

// partitionDone reports whether a partition has ended, also for this node if it holds
// what others only presume to have failed.
func (m *Machine) partitionDone(p workflow.PartitionName) bool {
	return m.look().part(p).left == 0
}

func (m *Machine) goesOn() bool { return m.look().atWork > 0 }

// look follows what a slot reads.
func (r *beingRead) look(sl *state.Slot, m *Machine) {
	if r.tasks == nil {
		r.tasks, r.by = map[workflow.DataName]int{}, map[*state.Slot]*workflow.Task{}
	}
	var reads *workflow.Task
	if a := sl.Current; a.Partner == m.self &&
		(sl.State == workflow.Ready || sl.State == workflow.Running || m.goesOnHere(sl)) {
		reads = a.Task
	}
	if was := r.by[sl]; was != reads {
		r.count(was, -1, m.state.Declarations())
		r.count(reads, +1, m.state.Declarations())
		if r.by[sl] = reads; reads == nil {
			delete(r.by, sl)
		}
	}
}

// count counts that a task reads its files now, or, with by = -1, does so no more.
func (r *beingRead) count(t *workflow.Task, by int, decls map[workflow.DataName]*workflow.DataDecl) {
	if t == nil {
		return
	}
	for _, n := range state.Inputs(t) {
		if !state.IsFile(decls[n]) {
			continue
		}
		was := r.tasks[n]
		if r.tasks[n] = was + by; was == 0 || was+by == 0 {
			r.known = false
		}
		if was+by == 0 {
			delete(r.tasks, n)
		}
	}
}
