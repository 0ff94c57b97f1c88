package state

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file says what the terms of rules come to that are about data. A condition is kept once, however many rules
// ask for it.

// conditionOn is the condition of a term about data.
func (s *State) conditionOn(e *workflow.Expr) *condition {
	c := s.conditions[e.String()]
	if c != nil {
		return c
	}
	c = &condition{Expr: e, holds: s.Holds(e)}
	s.conditions[e.String()] = c
	for _, n := range e.Names() {
		it := s.item(n)
		it.conditions = append(it.conditions, c)
		c.items = append(c.items, it)
	}
	return c
}

// Holds reports whether a boolean expression is true of the current data: neither
// false nor unknown.
func (s *State) Holds(e *workflow.Expr) bool { return s.holdsOf(e, s.values) }

// holdsOf is holds for other data.
func (s *State) holdsOf(e *workflow.Expr, data map[workflow.DataName]workflow.Value) bool {
	s.log.Steps++
	v, err := e.Eval(workflow.Env{Data: data, Instance: s.log.Instance().String()})
	yes, ok := v.(bool)
	return ok && yes && err == nil
}

// conditionFor is what a condition comes to in the rule of a slot: what does
// not hold is undecided while somebody may still write one of its data, before
// the slot itself runs, else impossible. For a task with time-to-wait it is
// undecided always.
func (s *State) conditionFor(c *condition, of *Slot) workflow.Finding {
	switch {
	case c.holds:
		return workflow.Finding{Truth: workflow.True}
	case of.waits(), !s.idle && slices.ContainsFunc(c.items, func(it *DataItem) bool { return it.mayChange(of) }):
		return workflow.Finding{Truth: workflow.Undecided}
	}
	return workflow.Finding{Truth: workflow.Impossible}
}

// mayChange reports whether somebody may still write the item, before of itself runs.
func (it *DataItem) mayChange(of *Slot) bool {
	if of != nil && of.open && it.writers[of] {
		return it.open > 1
	}
	return it.open > 0
}

// reconsider has the rules with a condition hear what it comes to.
func (s *State) reconsider(c *condition) {
	for _, n := range c.terms {
		s.set(n, s.conditionFor(c, n.Of))
	}
}

// opens notes that a writer is done, or is not any more. Only where it was one of
// the last two does that change anything for those that wait.
func (s *State) opens(it *DataItem, open bool) {
	left := it.open
	if open {
		it.open++
	} else {
		it.open--
	}
	if min(left, it.open) > 1 {
		return
	}
	for _, c := range it.conditions {
		if !c.holds {
			s.reconsider(c)
		}
	}
}
