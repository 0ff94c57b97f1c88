package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is about rules over the data of a workflow whose tasks run once (docs/language.md,
// constraints). Those of a data-state flow are looked after by package dataflow.
//
//	at the start       strict ones hold, else there is no instance
//	at a result        whoever records it checks the strict ones by the data that it knows. One that
//	                   would break one is a failure, or is refused where a person can mend it
//	whatever follows   partners that do not know of each other may still break one together. What
//	                   holds then follows from the current data, so it is the same everywhere: while a
//	                   strict one is broken no task begins that has not (BLOCKED), and people are told
//
// A final condition holds tasks back in the same way: while it holds of the current data, what has not begun is
// SKIPPED, and when nothing is under way any more the instance has succeeded.
//
// That a result breaks a constraint is not held against the fact that brings it: its author may not
// have known what it breaks it with.

// layConstraints finds the final condition, and the constraints over data, by name.
func (s *State) layConstraints() {
	s.constraints, s.broken, s.final = nil, 0, nil
	if s.flow != nil {
		return
	}
	if s.def.Final != nil {
		s.final = s.conditionOn(s.def.Final)
	}
	for _, c := range s.def.Constraints {
		if c.When == nil {
			continue
		}
		on := s.conditionOn(c.When)
		s.constraints = append(s.constraints, constraint{c.Name, c.Strict, on})
		if c.Strict {
			on.strict++
			s.broken += AsInt(!on.holds)
		}
	}
	slices.SortFunc(s.constraints, func(a, b constraint) int { return cmp.Compare(a.name, b.name) })
}

// constrain notes that a condition came to hold, or does not any more.
func (s *State) constrain(c *condition) {
	was := s.broken
	s.broken += c.strict * (1 - 2*AsInt(c.holds))
	if (was > 0) == (s.broken > 0) && c != s.final {
		return
	}
	for _, sl := range s.slots {
		s.log.Steps++
		if !sl.Begun() {
			s.touch(sl)
		}
	}
}

// Broken is how many strict constraints over data the current data break.
func (s *State) Broken() int { return s.broken }

// IsFinal reports whether the data satisfy the final condition of a workflow whose tasks run once.
func (s *State) IsFinal() bool { return s.final != nil && s.final.holds }

// lastWrite is the latest fact that wrote what a condition is about: the genesis, if nobody wrote any.
func (s *State) lastWrite(c *condition) *log.Entry {
	by := s.log.Genesis()
	for _, it := range c.items {
		if w := s.data[it.decl.Name].By; w != nil && log.ByTime(w, by) > 0 {
			by = w
		}
	}
	return by
}

// WouldBreak says which strict constraint does not hold with other data in place of some that are known here;
// empty: none. What is broken already they need not mend.
func (s *State) WouldBreak(out map[workflow.DataName]workflow.Value) string {
	var then map[workflow.DataName]workflow.Value
	written := func(n workflow.DataName) bool { _, is := out[n]; return is }
	for _, c := range s.constraints {
		s.log.Steps++
		if !c.strict || !c.holds || !slices.ContainsFunc(c.Expr.Names(), written) {
			continue
		}
		if then == nil {
			then = maps.Clone(s.values)
			maps.Copy(then, out)
		}
		if !s.holdsOf(c.Expr, then) {
			return fmt.Sprintf("it would break the constraint %s: %s", c.name, c.Expr.Source)
		}
	}
	return ""
}
