package state

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file keeps the data of an instance. Writers and readers meet at the item: a write
// costs what it changes, however many there are. What rules ask of data is in conditions.go.

// write enters a standing write, or takes it out.
func (it *DataItem) write(e *log.Entry, in bool) {
	i := slices.IndexFunc(it.writes, func(w *writes) bool { return w.strand == e.Strand })
	if i < 0 {
		i = len(it.writes)
		it.writes = append(it.writes, &writes{strand: e.Strand})
	}
	w := it.writes[i]
	at, found := slices.BinarySearchFunc(w.by, e, func(a, b *log.Entry) int { return a.Index - b.Index })
	switch {
	case in && !found:
		w.by = slices.Insert(w.by, at, e)
	case !in && found:
		if w.by = slices.Delete(w.by, at, at+1); len(w.by) == 0 {
			it.writes = slices.Delete(it.writes, i, i+1)
		}
	}
}

// current is the standing write that counts, and whether others did not know of
// each other (converge.go, rule 6); nil: there is none.
func (it *DataItem) current(l *log.Log) (cur *log.Entry, conflict bool) {
	for _, w := range it.writes {
		l.Steps++
		if last := w.by[len(w.by)-1]; cur == nil || log.ByTime(last, cur) > 0 {
			cur = last
		}
	}
	for _, w := range it.writes {
		if last := w.by[len(w.by)-1]; last != cur && !l.Knew(cur, last) {
			conflict = true
		}
	}
	return cur, conflict
}

// writeData brings up to date what the slot's successes may have written
// (converge.go, rule 6).
func (s *State) writeData(sl *Slot) {
	for _, a := range sl.Attempts {
		was, is := a.Wrote, a.Success()
		if a.Stands != Standing {
			is = nil
		}
		if was == is {
			continue
		}
		a.Wrote = is
		if was != nil {
			for n := range was.Gave() {
				s.item(n).write(was, false)
				s.rewrite(n)
			}
		}
		if is != nil {
			for n := range is.Gave() {
				s.item(n).write(is, true)
				s.rewrite(n)
			}
		}
	}
}

// rewrite finds the current value of one data item among the standing writes.
func (s *State) rewrite(n workflow.DataName) {
	it := s.item(n)
	s.rewritten++
	was := s.data[n].By
	cur, conflict := it.current(s.log)
	if cur != nil && s.fitsNow(it, cur.Gave()[n]) {
		s.datum(n, Written{cur.Gave()[n], cur})
	} else {
		s.unwritten(n, it.decl)
	}
	if delete(s.conflicts, n); conflict {
		s.conflicts[n] = true
	}
	if is := s.data[n].By; is == was {
		return
	}
	for _, c := range it.conditions {
		s.check(c)
	}
}

// fitsNow reports whether a data item can have a value that somebody wrote who may have known it as it is not now: of
// what two amendments added unlike it is of the type that the first says (amend.go). A value that was within the limits
// as its author knew stays, though others have narrowed these meanwhile.
func (s *State) fitsNow(it *DataItem, v workflow.Value) bool {
	if len(s.edition.heavy) == 0 || it.decl == nil {
		return true
	}
	return workflow.HasType(it.decl, v)
}

// unwritten gives a data item its value where nobody wrote any: its input, else
// its default.
func (s *State) unwritten(n workflow.DataName, decl *workflow.DataDecl) {
	if v, ok := s.genesis.Input[n]; ok {
		s.datum(n, Written{v, s.log.Genesis()})
	} else if decl != nil && decl.Default != nil {
		s.datum(n, Written{decl.Default, s.log.Genesis()})
	} else {
		delete(s.data, n)
		delete(s.values, n)
		s.refiled = s.refiled || IsFile(decl)
	}
}

func (s *State) datum(n workflow.DataName, w Written) {
	s.data[n], s.values[n] = w, w.Value
	s.refiled = s.refiled || IsFile(s.decls[n])
}

// check evaluates a condition after data it is about have changed.
func (s *State) check(c *condition) {
	if holds := s.Holds(c.Expr); holds != c.holds {
		c.holds = holds
		s.reconsider(c)
		s.constrain(c)
	}
}

// Output is what a standing success wrote to a data item.
func (a *Attempt) Output(n workflow.DataName) (workflow.Value, bool) {
	if a.Wrote == nil {
		return nil, false
	}
	v, ok := a.Wrote.Gave()[n]
	return v, ok
}

// Unchanged reports whether a data item had the value that it has now when an attempt
// started, and always since, by what the start's author knew. Where that would take
// reading the whole history again it says no: where somebody may have been held back,
// and where a writer was judged, or was not the only one.
func (s *State) Unchanged(n workflow.DataName, start *log.Entry) bool {
	it := s.item(n)
	if len(it.writers) == 0 {
		return true
	}
	if start == nil || s.log.Forked() > 0 || s.contested && slices.ContainsFunc(s.slots, (*Slot).mayBeHeld) {
		return false
	}
	for sl := range it.writers {
		if !s.wroteBefore(sl, start) {
			return false
		}
	}
	return true
}

// mayBeHeld reports whether the slot's successes may have been held back for a while.
func (sl *Slot) mayBeHeld() bool {
	return sl.Task.Reconcile == workflow.KeepReplacement && len(sl.Attempts) > 1
}

// wroteBefore reports whether what a slot wrote stood, all of it, when somebody started.
func (s *State) wroteBefore(sl *Slot, start *log.Entry) bool {
	wrote := 0
	for _, a := range sl.Attempts {
		s.log.Steps++
		if a.Success() == nil {
			continue
		}
		if wrote += len(a.Successes); wrote > 1 || a.Stands != Standing || len(a.Rulings) > 0 ||
			!s.log.Knew(start, a.Success()) {
			return false
		}
	}
	return true
}

// Inputs are the data that a task may read: what it declares, and for its queries, the built-in
// set and what a sub-workflow is given, all of which was checked, all that they mention.
func Inputs(t *workflow.Task) []workflow.DataName {
	if t.Application != workflow.AppSet && t.Uses == nil && len(t.Queries) == 0 {
		return t.In
	}
	names := slices.Clone(t.In)
	if t.Uses != nil {
		for _, e := range t.Uses.Input {
			names = append(names, e.Names()...)
		}
	}
	for _, e := range t.With.Set {
		names = append(names, e.Names()...)
	}
	for _, q := range t.Queries {
		names = append(names, q.Statement.Parameters()...)
	}
	return names
}
