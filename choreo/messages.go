package choreo

import (
	"cmp"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file works out what people are told of an instance: that tasks have failed, and that deadlines are near.
// Nobody sends that (docs/worklists.md, Messages).

// Failure is a task that has failed, for whoever answers for the instance.
type Failure struct {
	Item   worklist.Item
	Task   workflow.TaskName // what was performed
	By     worklist.ID       // the verdict
	At     int64             // ms, by the clock of whoever judged
	Reason string
	Asks   bool // somebody is to decide what becomes of it
	// Presumed is who holds it, as long as that one has not said that it failed; empty: it has.
	Presumed workflow.PartnerID
}

// maxFailures bounds the failures that people are told of: those that came last.
const maxFailures = 64

// Failures are the attempts at tasks that have failed as far as is known here, the newest 64, in the order of
// their verdicts. A failure that was only presumed, and that a success made void, is none.
func (m *Machine) Failures() (out []Failure) {
	s := m.state
	for _, sl := range s.Slots() {
		for _, a := range sl.Attempts {
			s.Log().Steps++
			if len(a.Rulings) == 0 || a.Success() != nil || a.Task.Whole {
				continue
			}
			r := s.Prevailing(a.Rulings)
			if r == nil {
				continue
			}
			why := a.WhyFailed(r)
			if a == sl.Current && sl.State == workflow.Failed && m.goesOnHere(sl) {
				why = worklist.GoesOnHere + why
			}
			f := Failure{
				Item: state.ItemOf(a.ID), Task: a.Task.Name, By: worklist.ID(r.At.ID), At: r.At.Fact.At,
				Reason: why,
				Asks:   s.Unhandled(a) && !s.Answered(sl),
			}
			if !a.EndedByHolder() {
				f.Presumed = a.Partner
			}
			out = append(out, f)
		}
	}
	if f, is := m.Interruption(); is {
		out = append(out, f)
	}
	slices.SortFunc(out, func(x, y Failure) int {
		return cmp.Or(cmp.Compare(x.At, y.At), x.Item.Compare(y.Item))
	})
	return out[max(0, len(out)-maxFailures):]
}

// Vain is an order in the place of a holder that was gone which came to nothing, as that one had done the task, or as
// another order counts.
type Vain struct {
	User    worklist.User // who ordered
	Item    worklist.Item // what the order began
	Task    workflow.TaskName
	Skip    bool               // the task was to be left out, and not to be done once more
	Began   *log.Entry         // by which the order was followed
	Counts  *log.Entry         // the success, or by which the other order is followed
	Partner workflow.PartnerID // whose success that is; empty: another order counts
}

// maxVain bounds them: the newest orders.
const maxVain = 64

// Vain are the orders that came to nothing, the newest 64, the oldest first.
func (m *Machine) Vain() (out []Vain) {
	for _, sl := range m.state.Slots() {
		for _, a := range sl.Attempts {
			m.log.Steps++
			v := Vain{Item: state.ItemOf(a.ID), Task: a.Task.Name, Skip: a.Skips, Began: a.Assigned}
			if done := a.DoneAllTheSame(); done != nil {
				v.Counts, v.Partner = done.Success(), done.Partner
			} else if by := a.PassedOver(); by != nil {
				v.Counts = by.Assigned
			} else {
				continue
			}
			if order := m.log.ByID()[*a.Assigned.Fact.Body.Annex.Order]; order != nil {
				v.User = order.Speaker().User
			}
			out = append(out, v)
		}
	}
	slices.SortFunc(out, func(x, y Vain) int { return log.ByTime(x.Began, y.Began) })
	return out[max(0, len(out)-maxVain):]
}

// OrderedInStead reports whether somebody wrote down an order in the place of a holder, as far as is known here.
func (m *Machine) OrderedInStead() bool { return m.state.InSteadAtAll() }

// Adoptions are the messages that results which a person brought were adopted by somebody else.
func (m *Machine) Adoptions(u worklist.User) (out []worklist.Message) {
	if !m.Claims() {
		return nil
	}
	of := worklist.Source{Instance: m.Instance(), Workflow: m.state.Definition().Name}
	for _, sl := range m.state.Slots() {
		for _, a := range sl.Attempts {
			for _, ok := range a.Successes {
				m.log.Steps++
				if word, is := m.adoptedOf(ok, u); is {
					out = append(out, of.Adopted(state.ItemOf(a.ID), a.Task.Name, word, time.UnixMilli(ok.Fact.At)))
				}
			}
		}
	}
	return out
}

// Unneeded is an item that somebody had of an attempt that is not needed any more, or that ended meanwhile.
type Unneeded struct {
	User worklist.User
	Item worklist.Item
	Task workflow.TaskName // what was performed
	Why  string
	By   worklist.User // whose word that was, if another person's
	At   int64         // ms: since when, by the clock of whoever wrote it down
	Made bool          // the person brought something of it, which is kept
}

// maxUnneeded bounds them: those that came last.
const maxUnneeded = 64

// Unneeded are the items that people had of attempts which are not needed any more, the newest 64, the oldest first:
// their task was done after all, is in another's hands, or has failed, the item was passed on, or the instance was
// cancelled; and those of which a fork took the result away.
func (m *Machine) Unneeded() (out []Unneeded) {
	forked, _ := m.state.Forked()
	for _, l := range forked {
		out = append(out, Unneeded{
			User: l.User, Item: l.Item, Task: m.state.Attempts()[fact.AttemptIDOf(l.Item)].Task.Name, Why: l.Why,
			At: l.At.UnixMilli(), Made: true,
		})
	}
	var losses []worklist.Loss
	if m.Claims() {
		losses = m.state.People().Board.Unneeded()
	}
	for _, l := range losses {
		m.log.Steps++
		a := m.state.Attempts()[fact.AttemptIDOf(l.Item)]
		if a == nil {
			continue
		}
		at := m.state.UnneededSince(a)
		if l.Passed() {
			at = l.At.UnixMilli()
		}
		if at > 0 {
			out = append(out, Unneeded{
				User: l.User, Item: l.Item, Task: a.Task.Name, Why: m.whyLost(a, l.Why), By: l.Whose, At: at,
				Made: len(l.Works) > 0,
			})
		}
	}
	slices.SortStableFunc(out, func(x, y Unneeded) int { return cmp.Compare(x.At, y.At) })
	return out[max(0, len(out)-maxUnneeded):]
}

// adoptedOf is the word by which a person brought the result that such a success adopts; false: it adopts none of this
// person's, or the person adopted it.
func (m *Machine) adoptedOf(ok *log.Entry, u worklist.User) (word worklist.ID, is bool) {
	r := m.adoptedBy(ok)
	if r == nil || ok.Speaker().User == u || r.Speaker().User != u {
		return word, false
	}
	return m.wordOf(r), true
}

// adoptedBy is the result of a person that such a success adopts; nil: it adopts none.
func (m *Machine) adoptedBy(ok *log.Entry) *log.Entry {
	if ok.Fact.Body.Claim == nil {
		return nil
	}
	x, adopts := ok.Fact.Body.Claim.Body().(worklist.Adopt)
	if r := m.log.ByID()[fact.ID(x.Result)]; adopts && r != nil && r.Fact.Body.Claim != nil {
		return r
	}
	return nil
}

// wordOf is the word of a person that a claim has.
func (m *Machine) wordOf(e *log.Entry) worklist.ID {
	return fact.WordOf(m.Instance(), e.Fact.Body.Claim.Says, e.Fact.Body.Claim.Nonce)
}

// WasAdopted reports whether the result that a person brought of an item, by such a word, was adopted by somebody.
func (m *Machine) WasAdopted(i worklist.Item, word worklist.ID) bool {
	a := m.state.Attempts()[fact.AttemptIDOf(i)]
	if a == nil {
		return false
	}
	for _, x := range a.Slot.Attempts { // that of an item which somebody else has by now is a success of the next attempt
		m.log.Steps++
		if slices.ContainsFunc(x.Successes, func(ok *log.Entry) bool {
			r := m.adoptedBy(ok)
			return r != nil && m.wordOf(r) == word
		}) {
			return true
		}
	}
	return false
}

// Interruption is the failure that interrupts the instance, until it is recovered; false: none does.
func (m *Machine) Interruption() (f Failure, is bool) {
	x := m.Interrupted()
	if x == nil {
		return f, false
	}
	why := "the instance is interrupted: "
	if !x.Failed && x.Task != "" {
		why = worklist.WrongState
	}
	return Failure{
		Item: worklist.Item{Assigned: worklist.ID(x.By), Slot: x.Task}, Task: x.Task, By: worklist.ID(x.By), At: x.At,
		Reason: why + x.String(), Asks: true,
	}, true
}

// DoneAgain is how often an order had a task done once more, so that the instance went on.
func (m *Machine) DoneAgain() (n int) {
	for _, sl := range m.state.Slots() {
		for _, a := range sl.Attempts {
			m.log.Steps++
			if x := a.Assigned.Fact.Body.Annex; x != nil && x.Order != nil {
				n++
			}
		}
	}
	return n
}

// Reminders are the messages that a deadline is near, or over, or has an item pass on, for a person: of all tasks if the
// person answers for the instance, else of those that the person has; of those that others took from the person, what
// came before that. Next is when there may be one more (Boot; 0: never).
func (m *Machine) Reminders(
	u worklist.User, answers bool, now Moment, by Reckoning,
) (out []worklist.Message, next time.Duration) {
	if !m.dated || !answers && !m.Claims() {
		return nil, 0
	}
	at := worklist.Moment{Boot: now.Boot, Wall: now.Wall}
	of := worklist.Source{Instance: m.Instance(), Workflow: m.state.Definition().Name}
	var lost map[worklist.Item]*worklist.Loss
	if !answers {
		_, lost = m.state.People().Board.Had(u)
	}
	theirs := u == m.state.Responsible()
	for _, d := range m.Deadlines(now, by) {
		past := !answers && d.Holder != u
		if past && (lost[d.Item] == nil || lost[d.Item].At.IsZero()) {
			continue
		}
		if answers && !theirs {
			d.Transfer = 0 // nobody is left to whom it passes
		}
		more, then := of.Reminders(worklist.Dated{
			Item: d.Item, Task: d.Task.Name, Due: d.Due, Since: d.Due.Since(d.Left, at), Warnings: d.Warnings,
			Waits:    d.Waits,
			Asks:     answers && !d.Decided,
			Transfer: d.Transfer, Theirs: theirs, Passed: d.Passed && !past,
		}, at)
		if past {
			more, then = worklist.Before(more, lost[d.Item].At.Add(by.aheadOf(d.Partner)), lost[d.Item].Why), 0
		}
		out = append(out, more...)
		if then > 0 && (next == 0 || then < next) {
			next = then
		}
	}
	return out, next
}
