package state

import (
	"cmp"
	"iter"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is about what a start built upon. Most of it follows from the start's own
// past, so that a start is no larger for a wide fan-in, contested or not: of a slot that
// its rule mentions, the attempt whose success it knew, if that is one. Where its author
// saw something else count, or knew of the successes of several, the start names what it
// built upon; where it does not, it built upon nothing there: so a success that a fork
// takes away is not replaced by another. Being about the start's past alone, none of it
// changes with what becomes known later.

// Consumed is what a start of the attempt has to name, sorted by slot: of every slot that
// its rule mentions the success that counts, or nothing (a zero Fact), where that does not
// follow. A compensation builds upon nothing.
func (s *State) Consumed(a *Attempt) []fact.Consumption {
	if a.Beside() {
		return nil
	}
	var out []fact.Consumption
	for _, from := range a.Slot.Mentions {
		// Of several attempts with a fork about, another success may count later than now.
		sure := s.log.Forked() == 0 || len(from.Attempts) == 1
		if only, others := s.succeeded(from, anySuccess); sure && !others && only == from.Pick {
			continue
		}
		c := fact.Consumption{Slot: from.Task.Name}
		if from.Pick != nil {
			c.Fact = from.Pick.Success().ID
		}
		out = append(out, c)
	}
	return out
}

func anySuccess(*log.Entry) bool { return true }

// BuiltOn are the attempts that a start of a built upon, of those that it knew to
// have succeeded. Only slots before its own can have been waited for.
func (s *State) BuiltOn(a *Attempt, start *log.Entry) iter.Seq[*Attempt] {
	return func(yield func(*Attempt) bool) {
		if start == nil || a.Beside() {
			return
		}
		named := start.Fact.Body.Start.Consumed
		for _, from := range s.mentionedTo(start, a.Slot) {
			for len(named) > 0 && named[0].Slot < from.Task.Name {
				named = named[1:]
			}
			var used *Attempt
			if len(named) > 0 && named[0].Slot == from.Task.Name {
				used = s.named(start, from, named[0].Fact)
			} else if only, others := s.succeeded(from,
				func(ok *log.Entry) bool { return s.log.Knew(start, ok) }); !others {
				used = only
			}
			if used != nil && from.Place < a.Slot.Place && !yield(used) {
				return
			}
		}
	}
}

// succeeded is the slot's one attempt with a success that is known to somebody; nil: there is
// none. others: there are several.
func (s *State) succeeded(from *Slot, known func(ok *log.Entry) bool) (only *Attempt, others bool) {
	for _, a := range from.Attempts {
		s.log.Steps++
		if !slices.ContainsFunc(a.Successes, known) {
			continue
		}
		if only != nil {
			return nil, true
		}
		only = a
	}
	return only, false
}

// named is the slot's attempt that succeeded by a fact that the start knew; nil: none.
func (s *State) named(start *log.Entry, from *Slot, success fact.ID) *Attempt {
	if a := s.bySucc[success]; a != nil && a.Slot == from && s.log.Knew(start, s.log.ByID()[success]) {
		return a
	}
	return nil
}

// mentionedTo are the slots that a slot's rule mentioned as the author of a start knew it.
func (s *State) mentionedTo(start *log.Entry, sl *Slot) []*Slot {
	if len(s.edition.heavy) == 0 {
		return sl.Mentions
	}
	v := s.EvidenceOf(start)
	switch def := v.under(); {
	case s.edition.answers && (def != s.def || len(s.filled) > 0):
		return v.mentions(sl)
	case def != s.def && def.Task(sl.Task.Name) != nil:
		return s.mentioned(def, sl.Task.Name)
	}
	return sl.Mentions
}

// mentioned are the slots that a task's rule mentions, each once, by name.
func (s *State) mentioned(def *workflow.Definition, t workflow.TaskName) []*Slot {
	before := def.Predecessors(t)
	out := make([]*Slot, 0, len(before))
	for _, p := range before {
		out = append(out, s.SlotsOf(p)...)
	}
	slices.SortFunc(out, func(a, b *Slot) int { return cmp.Compare(a.Task.Name, b.Task.Name) })
	return slices.Compact(out)
}

// rebase finds the start that says what an attempt built upon: the earliest that its
// success knew, while it has none the earliest.
func (s *State) rebase(a *Attempt) {
	if a.Fired != nil {
		return // it is built upon data states
	}
	was, ok := a.Base, a.Success()
	a.Base = nil
	for _, e := range a.Starts {
		if ok == nil || s.log.Knew(ok, e) {
			a.Base = earlier(a.Base, e)
		}
	}
	if a.Base == was {
		return
	}
	for from := range s.BuiltOn(a, was) {
		s.log.Steps++
		from.dropUser(a)
		s.touch(from.Slot)
	}
	for from := range s.BuiltOn(a, a.Base) {
		s.log.Steps++
		from.addUser(a)
		if a.claims != Superseded {
			s.touch(from.Slot)
		}
	}
}
