package state

import (
	"fmt"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// Decides reports whether only those who decide about the instance say something.
func Decides(body worklist.Body) bool {
	switch body.(type) {
	case worklist.Order, worklist.Adopt, worklist.Extend, worklist.Notify, worklist.Amend:
		return true
	}
	return false
}

// MayDecide is the refusal of a person who does not decide about the instance; nil: the person does.
func (s *State) MayDecide(i worklist.Item, p worklist.Person) error {
	if s.Work().MayOrder(p.User, p.Roles) == "" {
		return nil
	}
	return &worklist.Refusal{
		Item: i, Why: worklist.NotDeciding, By: s.Responsible(),
		Text: "you answer neither for the instance nor for all of its workflow",
	}
}

// MayUndoBy says why what an attempt did is not undone by order; nil: it is. What others may still build upon is
// not, nor what was built upon before that is undone which was.
func (s *State) MayUndoBy(a *Attempt) error {
	t := a.Task.WithLabel()
	switch now := s.Overall(); {
	case a.Success() == nil:
		return fmt.Errorf("%w: %s has not succeeded: there is nothing to undo", ErrNotNow, t)
	case a.Undo == nil:
		return fmt.Errorf("%w: the workflow does not say how %s is undone", ErrNotNow, t)
	case a.toUndo, a.Stands != Standing, a.Undo.Start != nil:
		return fmt.Errorf("%w: %s is undone already, or will be", ErrNotNow, t)
	case now == workflow.InstanceRunning, now == workflow.InstanceBlocked, now == workflow.InstanceInterrupted:
		return fmt.Errorf("%w: the instance is %s, so others may still build upon %s: cancel it first", ErrNotNow, now,
			t)
	}
	for _, u := range a.Users {
		if u.Undo != nil && u.Success() != nil && u.Stands == Standing && !u.toUndo {
			return fmt.Errorf("%w: %s was built upon it, and can be undone: have that undone first", ErrNotNow,
				u.Task.WithLabel())
		}
	}
	return nil
}

// OrderOf is the order by which the holder began an attempt; false: it was none.
func (s *State) OrderOf(a *Attempt) (worklist.Order, bool) {
	x := a.Assigned.Fact.Body.Annex
	if x == nil || x.Order == nil {
		return worklist.Order{}, false
	}
	return OrderIn(s.log.ByID()[*x.Order])
}

// OrderIn is the order that a fact gives; false: it gives none that counts.
func OrderIn(e *log.Entry) (worklist.Order, bool) {
	if e == nil || !e.Counted || e.Fact.Body.Claim == nil {
		return worklist.Order{}, false
	}
	x, orders := e.Fact.Body.Claim.Body().(worklist.Order)
	return x, orders
}

// orderedAgain reports whether a fact orders that an attempt be done once more, or left out.
func orderedAgain(o *log.Entry, a *Attempt) bool {
	x, orders := OrderIn(o)
	return orders && (x.What == worklist.Again || x.What == worklist.Skip) && fact.AttemptIDOf(x.Item) == a.ID
}
