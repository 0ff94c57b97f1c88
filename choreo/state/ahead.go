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
// What failed, or is presumed to, may still be done: its holder comes back, or it is ordered once more. So may the attempt
// itself that others presume to have failed. None: it is ready, it never will be, or more is needed than successes: data,
// a failure, a time that has to go by, a unit of a resource.
func (s *State) WaitsOf(a *Attempt) (waits []workflow.TaskName, people bool) {
	sl := a.Slot
	switch {
	case a.Beside() || a.Task.Whole || sl.Task.Rule == nil || !s.Wanted(a) || a.Start != nil || a.MayStart():
		return nil, false
	case sl.State == workflow.Skipped || sl.HasData || sl.barred || sl.Task.Disabled || sl.Task.TimeToWait > 0:
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
	case f.Truth == workflow.Impossible && !f.ByFailure, part.Negated, part.Transition == workflow.BecameFailed:
		return false
	}
	if of := r.of.S.bySlot[part.Task]; of == nil || r.people && of.Current.Task.ByNode() {
		return false
	}
	r.waits = append(r.waits, part.Task)
	return true
}

// Failure is what keeps a task from being ready: of those that it waits for, one failed or waits itself for one that did.
type Failure struct {
	Awaits workflow.TaskName // that the task waits for
	Failed *Attempt          // of Awaits, or of what that waits for
	By     *Ruling           // by which it failed; nil: it was called off
}

// HeldUp is why an attempt cannot be ready as things are, where that is the first failure of those that it waits for;
// nil: none is known.
func (s *State) HeldUp(a *Attempt) *Failure {
	waits, _ := s.WaitsOf(a)
	for _, t := range waits {
		if f := s.failureAt(t, map[workflow.TaskName]bool{}); f != nil {
			f.Awaits = t
			return f
		}
	}
	return nil
}

// failureAt is the failure of a task, or of the first that it waits for; seen are those that were looked at.
func (s *State) failureAt(t workflow.TaskName, seen map[workflow.TaskName]bool) (f *Failure) {
	sl := s.bySlot[t]
	if sl == nil || seen[t] {
		return nil
	}
	s.log.Steps++
	seen[t] = true
	switch sl.State {
	case workflow.Failed, workflow.Aborted:
		return &Failure{Failed: sl.Current, By: s.Prevailing(sl.Current.Rulings)}
	case workflow.Blocked:
		sl.Task.Rule.Terms(func(leaf *workflow.Rule) {
			if f == nil && leaf.Op == workflow.OpTask {
				f = s.failureAt(leaf.Task, seen)
			}
		})
	}
	return f
}
