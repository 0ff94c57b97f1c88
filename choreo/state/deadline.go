package state

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
	// PassedSince: it was passed on after its deadline was over.
	PassedSince bool
	// Transfer is with how much left it passes to the responsible user; 0: it does not. Passed: it has.
	Transfer time.Duration
	Passed   bool
}

// Passes reports whether it is still to pass to the responsible user, and in what time.
func (d *Deadline) Passes() (in time.Duration, is bool) {
	return d.Left - d.Transfer, d.Transfer > 0 && !d.Passed
}

// Overdue reports whether the deadline of a person's task is over, and nobody has done anything about that yet: it was
// not said that it goes on, nor passed on since.
func (d *Deadline) Overdue() bool {
	return d.Left <= 0 && !d.Waits && !d.Decided && !d.PassedSince && !d.Task.ByNode()
}

// PassesAt is with how much time left the item of an attempt that can be done passes to the responsible user, and whether
// it has; 0: it does not, as that user has it.
func (s *State) PassesAt(a *Attempt) (left time.Duration, passed bool) {
	if s.peoples.Board != nil && s.peoples.Board.HasPassed(ItemOf(a.ID)) {
		return s.TransferOf(a), true
	}
	if h, held := s.HoldOf(a); held && h.User == s.Responsible() {
		return 0, false
	}
	return s.TransferOf(a), false
}

// PassedOn is when the item of an attempt was passed on last, by its holder's clock; zero: it never was.
func (s *State) PassedOn(a *Attempt) (at time.Time) {
	if s.peoples.Board == nil {
		return at
	}
	return s.peoples.Board.PassedOn(ItemOf(a.ID))
}

// ReadyFor is for how long something could be done at a moment, as the facts date it (ms).
func ReadyFor(arrival int64, now time.Time) time.Duration {
	if arrival <= 0 {
		return 0
	}
	return max(0, now.Sub(time.UnixMilli(arrival)))
}

// PassedAfter is for how long a task could be done before an attempt at it was passed on to its holder: its
// deadline goes on. Whoever gave it on says when, by a clock of its own: it was not later than now.
func (m *Moments) PassedAfter(a *Attempt, now time.Time) time.Duration {
	first := a
	for first.by == nil && first.after != nil {
		m.S.log.Steps++
		first = first.after
	}
	if first == a {
		return 0
	}
	if at := time.UnixMilli(a.Assigned.Fact.At); at.Before(now) {
		now = at
	}
	return ReadyFor(m.Arrival(first), now)
}

// DueOf is the deadline of an attempt, by the data of now. It costs what the expression costs.
func (s *State) DueOf(a *Attempt) (due worklist.Due) {
	d := a.Task.Deadline
	if d == nil {
		return worklist.Due{}
	}
	given, extended := s.extended(a)
	switch {
	case extended:
		due = given
	case d.Expr == nil:
		due.After = d.After
	default:
		s.log.Steps++
		v, err := d.Expr.Eval(workflow.Env{Data: s.values, Instance: s.log.Instance().String()})
		text, is := v.(string)
		at, wrong := time.Parse(time.RFC3339Nano, text)
		if err != nil || !is || wrong != nil {
			return worklist.Due{} // its data are not there yet
		}
		due.At = at
	}
	return due
}

// WarningsOf is with how much time left people are warned of the deadline of an attempt.
func (s *State) WarningsOf(a *Attempt, due worklist.Due) []time.Duration {
	return due.Within(s.warningsOf(a.Task), time.UnixMilli(s.log.Genesis().Fact.At))
}

// extended is the deadline that somebody who decides gave an attempt, or one that was passed on to its holder; false:
// nobody did.
func (s *State) extended(a *Attempt) (worklist.Due, bool) {
	if s.peoples.Board == nil {
		return worklist.Due{}, false
	}
	for {
		if due, is := s.peoples.Board.Extended(ItemOf(a.ID)); is {
			return due, true
		}
		if a.by != nil || a.after == nil {
			return worklist.Due{}, false
		}
		s.log.Steps++
		a = a.after
	}
}

// GoesOn reports whether somebody who may has said that an attempt goes on beyond its deadline.
func (s *State) GoesOn(a *Attempt) bool {
	return s.peoples.Board != nil && s.peoples.Board.GoesOn(ItemOf(a.ID))
}
