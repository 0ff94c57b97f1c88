package choreo

import (
	"cmp"
	"iter"
	"slices"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is about what a start built upon. Most of it follows from the start's
// own past, so that a start is no larger for a wide fan-in: of a slot that its rule
// mentions and of which it knew one attempt, that one's success, if it knew it. Of a
// slot of which its author knew of several attempts the start names what it built
// upon; where it names nothing, it built upon nothing there. Being about the start's
// past alone, none of it changes with what becomes known later.

// consumed is what a start of the attempt has to name, sorted by slot: of every slot
// with several attempts that its rule mentions its success, or the verdict that ended
// it, or nothing (a zero Fact). A compensation builds upon nothing.
func (s *State) consumed(a *Attempt) []Consumption {
	if a.undoes != nil {
		return nil
	}
	var out []Consumption
	for _, from := range a.Slot.mentions {
		if len(from.Attempts) == 1 {
			continue
		}
		c := Consumption{Slot: from.Task.Name}
		switch {
		case from.Pick != nil:
			c.Fact = from.Pick.success().id
		case from.Outcome != nil:
			c.Fact = from.Outcome.at.id
		}
		out = append(out, c)
	}
	return out
}

// builtOn are the attempts that a start of a built upon, of those that it knew to
// have succeeded. Only slots before its own can have been waited for.
func (s *State) builtOn(a *Attempt, start *entry) iter.Seq[*Attempt] {
	return func(yield func(*Attempt) bool) {
		if start == nil || a.undoes != nil {
			return
		}
		named := start.fact.Body.Start.Consumed
		for _, from := range a.Slot.mentions {
			for len(named) > 0 && named[0].Slot < from.Task.Name {
				named = named[1:]
			}
			var used *Attempt
			if len(named) > 0 && named[0].Slot == from.Task.Name {
				used = s.named(start, from, named[0].Fact)
			} else if only := s.only(start, from); only != nil && slices.ContainsFunc(only.successes, func(ok *entry) bool { return s.log.knew(start, ok) }) {
				used = only
			}
			if used != nil && from.place < a.Slot.place && !yield(used) {
				return
			}
		}
	}
}

// only is the slot's first attempt if the start knew of no other; nil: it did.
func (s *State) only(start *entry, from *Slot) *Attempt {
	if slices.ContainsFunc(from.Attempts[1:], func(a *Attempt) bool { return s.certain(start, a.assigned) }) {
		return nil
	}
	return from.Attempts[0]
}

// named is the slot's attempt that succeeded by a fact that the start knew; nil: none.
func (s *State) named(start *entry, from *Slot, success FactID) *Attempt {
	if a := s.bySucc[success]; a != nil && a.Slot == from && s.log.knew(start, s.log.byID[success]) {
		return a
	}
	return nil
}

// mentioned are the slots that a task's rule mentions, each once, by name.
func (s *State) mentioned(t workflow.TaskName) []*Slot {
	var out []*Slot
	for _, p := range s.def.Predecessors(t) {
		out = append(out, s.slotsOf(p)...)
	}
	slices.SortFunc(out, func(a, b *Slot) int { return cmp.Compare(a.Task.Name, b.Task.Name) })
	return slices.Compact(out)
}
