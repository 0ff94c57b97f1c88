package state

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is about people's tasks that are not ready yet and can be locked all the same, together with what they
// wait for (docs/worklists.md, Work ahead). Nobody begins them earlier for that: a result of one is put off until its
// rule holds and those have counted that it names (worklist.Basis).

// maxAhead bounds the parts of a rule that are read to say what a task waits for.
const maxAhead = 256

// WaitsOf are the tasks whose success would make an attempt ready: of alternatives those of the first that takes
// nothing but successes of people or, if there is none, of programs as well; people reports whether it is the former.
// None: it is ready, it never will be, or more is needed than successes: data, a failure, a time that has to go by, a
// unit of a resource.
func (s *State) WaitsOf(a *Attempt) (waits []workflow.TaskName, people bool) {
	sl := a.Slot
	switch {
	case a.Beside() || a.Task.Whole || sl.Task.Rule == nil || !s.Wanted(a) || a.Start != nil:
		return nil, false
	case sl.State != workflow.NotReady || sl.HasData || sl.barred || sl.Task.Disabled || sl.Task.TimeToWait > 0:
		return nil, false
	case len(a.holds()) > 0:
		return nil, false
	}
	for _, people := range []bool{true, false} {
		if r := (ahead{of: View{s, sl}, left: maxAhead, people: people}); r.read(sl.Task.Rule) && r.left >= 0 {
			slices.Sort(r.waits)
			return slices.Compact(r.waits), people
		}
	}
	return nil, false
}

// ahead reads a rule for what successes alone can make of it.
type ahead struct {
	of     View
	people bool // what a program does counts as more than successes
	left   int  // parts that may still be read
	waits  []workflow.TaskName
}

// read reports whether successes can make a part hold, and notes which are still needed.
func (r *ahead) read(part *workflow.Rule) bool {
	r.of.S.log.Steps++
	if r.left--; r.left < 0 {
		return false
	}
	switch part.Op {
	case workflow.OpTask:
		return r.term(part)
	case workflow.OpAnd:
		return !slices.ContainsFunc(part.Args, func(p *workflow.Rule) bool { return !r.read(p) })
	case workflow.OpOr:
		before := len(r.waits)
		for _, p := range part.Args {
			if r.read(p) {
				return true
			}
			r.waits = r.waits[:before]
		}
	}
	return false
}

func (r *ahead) term(part *workflow.Rule) bool {
	switch f := part.Term(r.of); {
	case f.Dropped || f.Truth == workflow.True:
		return true
	case f.Truth == workflow.Impossible || part.Negated || part.Transition == workflow.BecameFailed:
		return false
	}
	if of := r.of.S.bySlot[part.Task]; of == nil || r.people && of.Current.Task.ByNode() {
		return false
	}
	r.waits = append(r.waits, part.Task)
	return true
}
