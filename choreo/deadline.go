package choreo

import (
	"iter"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// Dated reports whether a task has a deadline, so that Deadlines may find one.
func (m *Machine) Dated() bool { return m.dated }

// Reckoning is what a node knows that deadlines are reckoned with. Ahead is by how much its wall clock is ahead of a
// partner's, as far as that is known; nil: nothing is. Known reports whether a user is known, and so may get an item; nil:
// all are. Gone reports whether a partner is out of the process, and so does not go on with what it has; nil: none is.
type Reckoning struct {
	Ahead func(workflow.PartnerID) time.Duration
	Known func(worklist.User) bool
	Gone  func(workflow.PartnerID) bool
}

func (r Reckoning) aheadOf(p workflow.PartnerID) time.Duration {
	if r.Ahead == nil {
		return 0
	}
	return r.Ahead(p)
}

// Deadlines are those of the tasks that can be done, or are being done, though others presume that they failed, and
// points in time also of those that wait, in rule order.
func (m *Machine) Deadlines(now Moment, by Reckoning) (out []state.Deadline) {
	for a, d := range m.eachDeadline(now, by) {
		d.Warnings = m.state.WarningsOf(a, d.Due)
		out = append(out, d)
	}
	return out
}

// Overdue are those of them that are over while nobody has done anything about that, without their warnings.
func (m *Machine) Overdue(now Moment, by Reckoning) (out []state.Deadline) {
	for _, d := range m.eachDeadline(now, by) {
		if d.Overdue() {
			out = append(out, d)
		}
	}
	return out
}

// eachDeadline is Deadlines without their warnings, each with whose it is.
func (m *Machine) eachDeadline(now Moment, by Reckoning) iter.Seq2[*state.Attempt, state.Deadline] {
	return func(yield func(*state.Attempt, state.Deadline) bool) {
		running := m.state.Overall() == workflow.InstanceRunning
		if !m.dated || !running && len(m.state.Failures()) == 0 {
			return
		}
		arrivals := state.Moments{S: m.state}
		for _, sl := range m.state.Slots() {
			m.log.Steps++
			if d, has := m.deadlineOf(sl, running, &arrivals, now, by); has && !yield(sl.Current, d) {
				return
			}
		}
	}
}

// deadlineOf is the deadline of the attempt in charge of a slot; false: there is none to speak of.
func (m *Machine) deadlineOf(
	sl *state.Slot, running bool, arrivals *state.Moments, now Moment, by Reckoning,
) (d state.Deadline, has bool) {
	a := sl.Current
	if a.Task.Deadline == nil || !m.state.Wanted(a) || (!running || sl.State.Done()) && !m.mayGoOn(sl, by) {
		return d, false
	}
	waits := sl.State == workflow.NotReady
	due := m.state.DueOf(a)
	if waits && due.After > 0 {
		return d, false
	}
	since := a.Noticed
	if since == 0 { // it was just started, and has not looked yet
		since = now.Boot
	}
	if !waits && (a.Partner != m.self || a.Noticed == 0) {
		wall := now.Wall
		if a.Partner != m.self {
			wall = wall.Add(-by.aheadOf(a.Partner))
		}
		since = min(since, now.Boot-state.ReadyFor(arrivals.Arrival(a), wall)) - arrivals.PassedAfter(a, wall)
	}
	left, has := due.Left(since, worklist.Moment{Boot: now.Boot, Wall: now.Wall})
	if !has {
		return d, false
	}
	d = state.Deadline{
		Item: state.ItemOf(a.ID), Task: a.Task, Partner: a.Partner, Due: due, Left: left, Waits: waits,
		Decided: m.state.GoesOn(a),
	}
	if h, held := m.state.HoldOf(a); held {
		d.Holder = h.User
	}
	if !waits {
		if d.Transfer, d.Passed = m.state.PassesAt(a); !d.Passed && by.Known != nil && !by.Known(m.state.Responsible()) {
			d.Transfer = 0 // it stays where it is
		}
	}
	if left <= 0 && !waits {
		at := m.state.PassedOn(a)
		if a.Partner != m.self {
			at = at.Add(by.aheadOf(a.Partner))
		}
		d.PassedSince = at.After(now.Wall.Add(left))
	}
	return d, true
}

// mayGoOn reports whether what others presume to have failed goes on with its holder, as far as is known here.
func (m *Machine) mayGoOn(sl *state.Slot, by Reckoning) bool {
	a := sl.Current
	return sl.State == workflow.Failed && m.state.Wanted(a) && a.Success() == nil && (a.Start != nil || a.MayStart()) &&
		(a.Partner == m.self || by.Gone == nil || !by.Gone(a.Partner))
}

// DueOf is the deadline that an attempt has now; zero: it has none, or its data are not there.
func (m *Machine) DueOf(i worklist.Item) (due worklist.Due) {
	if a := m.state.Attempts()[fact.AttemptIDOf(i)]; a != nil {
		due = m.state.DueOf(a)
	}
	return due
}

// overdueTask reports whether the deadline is over of an attempt of this node that can be done, or is being done.
func (d *decision) overdueTask(a *state.Attempt) bool {
	if !d.dated || a.Task.Deadline == nil || !d.state.Wanted(a) {
		return false
	}
	left, has := d.state.DueOf(a).Left(a.Noticed, worklist.Moment{Boot: d.now.Boot, Wall: d.now.Wall})
	return has && a.Noticed != 0 && left <= 0
}

// backdate has attempts of this node at tasks with a deadline count from when that begins. It is called once when the
// instance was loaded, and where an amendment may have given tasks a deadline that had none.
func (d *decision) backdate() {
	for _, sl := range d.state.Slots() {
		d.log.Steps++
		if d.date(sl.Current) {
			d.state.PlaceItems(sl)
		}
	}
}

// date has an attempt of this node count from when its deadline begins, if it has one: of what could be done when this
// node was started what it had noticed before is gone, so that its own facts say since when; and what was passed on to
// this node could be done before.
func (m *Machine) date(a *state.Attempt) (changed bool) {
	if a.Task.Deadline == nil || a.Partner != m.self || a.Noticed == 0 || a.Dated {
		return false
	}
	arrivals := state.Moments{S: m.state}
	before := arrivals.PassedAfter(a, m.noticedAt)
	if a.Noticed == m.loaded {
		before += max(0, state.ReadyFor(arrivals.Arrival(a), m.noticedAt)-(m.decided-a.Noticed))
	}
	a.Noticed, a.Dated = a.Noticed-before, true
	if a.Noticed == 0 {
		a.Noticed = -1 // 0: not known
	}
	return true
}
