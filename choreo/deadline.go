package choreo

import (
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file works out the deadlines of tasks, for people: a deadline fails nothing (docs/worklists.md). Whoever
// holds a task clocks a span itself; others reckon from when its facts say that it could be done, by the
// holder's clock as far as they know how that one differs from theirs. So nothing has to be sent, and a node
// that is cut off still knows.

// Deadline is the deadline of a task that is READY or RUNNING, or waits: then it is a point in time, since a span
// begins when the task is READY.
type Deadline struct {
	Item    worklist.Item
	Task    *workflow.Task // what is performed
	Partner workflow.PartnerID
	Holder  worklist.User // who has it; empty: nobody
	Due     worklist.Due
	// Left is how much time is left, below zero once it is over.
	Left     time.Duration
	Warnings []time.Duration // with how much left people are warned, the longest first
	Waits    bool            // the task is not READY yet
	// Decided: somebody who may has said that it goes on beyond its deadline.
	Decided bool
}

// Dated reports whether a task has a deadline, so that Deadlines may find one.
func (m *Machine) Dated() bool { return m.dated }

// Deadlines are those of the tasks that can be done, or are being done, and points in time also of those that wait,
// in rule order. ahead is by how much this node's wall clock is ahead of a partner's, as far as that is known; nil:
// nothing is.
func (m *Machine) Deadlines(now Moment, ahead func(workflow.PartnerID) time.Duration) (out []Deadline) {
	if !m.dated || m.state.overall() != workflow.InstanceRunning {
		return nil
	}
	arrivals := moments{s: m.state}
	for _, sl := range m.state.slots {
		m.log.steps++
		a := sl.Current
		if a.Task.Deadline == nil || sl.State.Done() || !m.state.wanted(a) {
			continue
		}
		waits := sl.State == workflow.NotReady
		due, warnings := m.state.dueOf(a)
		if waits && due.After > 0 {
			continue
		}
		since := a.noticed
		if since == 0 { // it was just started, and has not looked yet
			since = now.Boot
		}
		if !waits && (a.Partner != m.self || a.noticed == 0) {
			wall := now.Wall
			if ahead != nil && a.Partner != m.self {
				wall = wall.Add(-ahead(a.Partner))
			}
			since = min(since, now.Boot-readyFor(arrivals.arrival(a), wall)) - arrivals.passedAfter(a, wall)
		}
		left, has := due.Left(since, worklist.Moment{Boot: now.Boot, Wall: now.Wall})
		if !has {
			continue
		}
		d := Deadline{
			Item: itemOf(a.ID), Task: a.Task, Partner: a.Partner, Due: due, Left: left, Warnings: warnings,
			Waits:   waits,
			Decided: m.state.goesOn(a),
		}
		if h, held := m.state.holdOf(a); held {
			d.Holder = h.User
		}
		out = append(out, d)
	}
	return out
}

// DueOf is the deadline that an attempt has now; zero: it has none, or its data are not there.
func (m *Machine) DueOf(i worklist.Item) (due worklist.Due) {
	if a := m.state.attempts[attemptIDOf(i)]; a != nil {
		due, _ = m.state.dueOf(a)
	}
	return due
}

// overdueTask reports whether the deadline is over of an attempt of this node that can be done, or is being done.
func (d *decision) overdueTask(a *Attempt) bool {
	if !d.dated || a.Task.Deadline == nil || !d.state.wanted(a) {
		return false
	}
	due, _ := d.state.dueOf(a)
	left, has := due.Left(a.noticed, worklist.Moment{Boot: d.now.Boot, Wall: d.now.Wall})
	return has && a.noticed != 0 && left <= 0
}

// readyFor is for how long something could be done at a moment, as the facts date it (ms).
func readyFor(arrival int64, now time.Time) time.Duration {
	if arrival <= 0 {
		return 0
	}
	return max(0, now.Sub(time.UnixMilli(arrival)))
}

// passedAfter is for how long a task could be done before an attempt at it was passed on to its holder: its
// deadline goes on. Whoever gave it on says when, by a clock of its own: it was not later than now.
func (m *moments) passedAfter(a *Attempt, now time.Time) time.Duration {
	first := a
	for first.by == nil && first.after != nil {
		m.s.log.steps++
		first = first.after
	}
	if first == a {
		return 0
	}
	if at := time.UnixMilli(a.assigned.fact.At); at.Before(now) {
		now = at
	}
	return readyFor(m.arrival(first), now)
}

// dueOf is the deadline of an attempt, by the data of now, and with how much time left people are warned. It
// costs what the expression costs.
func (s *State) dueOf(a *Attempt) (due worklist.Due, warnings []time.Duration) {
	d := a.Task.Deadline
	if d == nil {
		return worklist.Due{}, nil
	}
	given, extended := s.extended(a)
	switch {
	case extended:
		due = given
	case d.Expr == nil:
		due.After = d.After
	default:
		s.log.steps++
		v, err := d.Expr.Eval(workflow.Env{Data: s.values, Instance: s.log.instance.String()})
		text, is := v.(string)
		at, wrong := time.Parse(time.RFC3339Nano, text)
		if err != nil || !is || wrong != nil {
			return worklist.Due{}, nil // its data are not there yet
		}
		due.At = at
	}
	switch x := s.log.genesis.fact.Body.Annex; {
	case x != nil && len(x.Warnings) > 0:
		warnings = x.Warnings
	case a.Task.Warnings != nil:
		warnings = a.Task.Warnings
	default:
		warnings = s.def.Warnings
	}
	return due, due.Within(warnings, time.UnixMilli(s.log.genesis.fact.At))
}

// extended is the deadline that somebody who decides gave an attempt, or one that was passed on to its holder; false:
// nobody did.
func (s *State) extended(a *Attempt) (worklist.Due, bool) {
	if s.peoples.board == nil {
		return worklist.Due{}, false
	}
	for {
		if due, is := s.peoples.board.Extended(itemOf(a.ID)); is {
			return due, true
		}
		if a.by != nil || a.after == nil {
			return worklist.Due{}, false
		}
		s.log.steps++
		a = a.after
	}
}

// goesOn reports whether somebody who may has said that an attempt goes on beyond its deadline.
func (s *State) goesOn(a *Attempt) bool {
	return s.peoples.board != nil && s.peoples.board.GoesOn(itemOf(a.ID))
}

// backdate has attempts of this node at tasks with a deadline count from when its own facts say that they could
// be done: it is called once, when what it had noticed before it was started again is gone.
func (d *decision) backdate() {
	if !d.dated {
		return
	}
	arrivals := moments{s: d.state}
	for _, sl := range d.state.slots {
		a := sl.Current
		if a.Task.Deadline == nil || a.Partner != d.self || a.noticed == 0 {
			continue
		}
		a.noticed -= readyFor(arrivals.arrival(a), d.now.Wall)
		if a.noticed == 0 {
			a.noticed = -1 // 0: not known
		}
		d.state.placeItems(sl)
	}
}
