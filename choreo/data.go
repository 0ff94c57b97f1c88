package choreo

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file keeps the data of an instance, and what rules ask of them. Writers and
// readers meet at the item: a write costs what it changes, however many there are.

// item is a data item: who may write it, who asks for it, and what was written.
type item struct {
	decl    *workflow.DataDecl
	writers map[*Slot]bool
	askers  []*Slot // whose rules have terms about it
	open    int     // writers that are not done
	// holders counts the askers by their holders.
	holders    map[workflow.PartnerID]int
	conditions []*condition
	writes     []*writes
}

// writes are the standing writes to one item in one strand, by number: each knew
// those before it.
type writes struct {
	strand *strand
	by     []*entry
}

// condition is a term about data, one for all rules that have it.
type condition struct {
	expr   *workflow.Expr
	items  []*item
	holds  bool
	terms  []*clause
	strict int // strict constraints that ask for it (constraints.go)
}

type written struct {
	value workflow.Value
	by    *entry
}

// item is the data item of that name.
func (s *State) item(n workflow.DataName) *item {
	it := s.items[n]
	if it == nil {
		it = &item{decl: s.decls[n], writers: map[*Slot]bool{}, holders: map[workflow.PartnerID]int{}}
		s.items[n] = it
	}
	return it
}

// write enters a standing write, or takes it out.
func (it *item) write(e *entry, in bool) {
	i := slices.IndexFunc(it.writes, func(w *writes) bool { return w.strand == e.strand })
	if i < 0 {
		i = len(it.writes)
		it.writes = append(it.writes, &writes{strand: e.strand})
	}
	w := it.writes[i]
	at, found := slices.BinarySearchFunc(w.by, e, func(a, b *entry) int { return a.index - b.index })
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
func (it *item) current(l *Log) (cur *entry, conflict bool) {
	for _, w := range it.writes {
		l.steps++
		if last := w.by[len(w.by)-1]; cur == nil || byTime(last, cur) > 0 {
			cur = last
		}
	}
	for _, w := range it.writes {
		if last := w.by[len(w.by)-1]; last != cur && !l.knew(cur, last) {
			conflict = true
		}
	}
	return cur, conflict
}

// writeData brings up to date what the slot's successes may have written
// (converge.go, rule 6).
func (s *State) writeData(sl *Slot) {
	for _, a := range sl.Attempts {
		was, is := a.wrote, a.success()
		if a.stands != standing {
			is = nil
		}
		if was == is {
			continue
		}
		a.wrote = is
		if was != nil {
			for n := range was.gave() {
				s.item(n).write(was, false)
				s.rewrite(n)
			}
		}
		if is != nil {
			for n := range is.gave() {
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
	was := s.data[n].by
	cur, conflict := it.current(s.log)
	if cur != nil {
		s.datum(n, written{cur.gave()[n], cur})
	} else {
		s.unwritten(n, it.decl)
	}
	if delete(s.conflicts, n); conflict {
		s.conflicts[n] = true
	}
	if is := s.data[n].by; is == was {
		return
	}
	for _, c := range it.conditions {
		s.check(c)
	}
}

// unwritten gives a data item its value where nobody wrote any: its input, else
// its default.
func (s *State) unwritten(n workflow.DataName, decl *workflow.DataDecl) {
	if v, ok := s.genesis.Input[n]; ok {
		s.datum(n, written{v, s.log.genesis})
	} else if decl != nil && decl.Default != nil {
		s.datum(n, written{decl.Default, s.log.genesis})
	} else {
		delete(s.data, n)
		delete(s.values, n)
		s.refiled = s.refiled || isFile(decl)
	}
}

func (s *State) datum(n workflow.DataName, w written) {
	s.data[n], s.values[n] = w, w.value
	s.refiled = s.refiled || isFile(s.decls[n])
}

// conditionOn is the condition of a term about data.
func (s *State) conditionOn(e *workflow.Expr) *condition {
	c := s.conditions[e.String()]
	if c != nil {
		return c
	}
	c = &condition{expr: e, holds: s.holds(e)}
	s.conditions[e.String()] = c
	for _, n := range e.Names() {
		it := s.item(n)
		it.conditions = append(it.conditions, c)
		c.items = append(c.items, it)
	}
	return c
}

// holds reports whether a boolean expression is true of the current data: neither
// false nor unknown.
func (s *State) holds(e *workflow.Expr) bool { return s.holdsOf(e, s.values) }

// holdsOf is holds for other data.
func (s *State) holdsOf(e *workflow.Expr, data map[workflow.DataName]workflow.Value) bool {
	s.log.steps++
	v, err := e.Eval(workflow.Env{Data: data, Instance: s.log.instance.String()})
	yes, ok := v.(bool)
	return ok && yes && err == nil
}

// check evaluates a condition after data it is about have changed.
func (s *State) check(c *condition) {
	if holds := s.holds(c.expr); holds != c.holds {
		c.holds = holds
		s.reconsider(c)
		s.constrain(c)
	}
}

// reconsider has the rules with a condition hear what it comes to.
func (s *State) reconsider(c *condition) {
	for _, n := range c.terms {
		s.set(n, s.conditionFor(c, n.of))
	}
}

// conditionFor is what a condition comes to in the rule of a slot: what does
// not hold is undecided while somebody may still write one of its data, before
// the slot itself runs, else impossible. For a task with time-to-wait it is
// undecided always.
func (s *State) conditionFor(c *condition, of *Slot) workflow.Finding {
	switch {
	case c.holds:
		return workflow.Finding{Truth: workflow.True}
	case of.waits(), !s.idle && slices.ContainsFunc(c.items, func(it *item) bool { return it.mayChange(of) }):
		return workflow.Finding{Truth: workflow.Undecided}
	}
	return workflow.Finding{Truth: workflow.Impossible}
}

// mayChange reports whether somebody may still write the item, before of itself runs.
func (it *item) mayChange(of *Slot) bool {
	if of != nil && of.open && it.writers[of] {
		return it.open > 1
	}
	return it.open > 0
}

// opens notes that a writer is done, or is not any more. Only where it was one of
// the last two does that change anything for those that wait.
func (s *State) opens(it *item, open bool) {
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

// output is what a standing success wrote to a data item.
func (a *Attempt) output(n workflow.DataName) (workflow.Value, bool) {
	if a.wrote == nil {
		return nil, false
	}
	v, ok := a.wrote.gave()[n]
	return v, ok
}

// unchanged reports whether a data item had the value that it has now when an attempt
// started, and always since, by what the start's author knew. Where that would take
// reading the whole history again it says no: where somebody may have been held back,
// and where a writer was judged, or was not the only one.
func (s *State) unchanged(n workflow.DataName, start *entry) bool {
	it := s.item(n)
	if len(it.writers) == 0 {
		return true
	}
	if start == nil || s.log.forks > 0 || s.contested && slices.ContainsFunc(s.slots, (*Slot).mayBeHeld) {
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
func (s *State) wroteBefore(sl *Slot, start *entry) bool {
	wrote := 0
	for _, a := range sl.Attempts {
		s.log.steps++
		if a.success() == nil {
			continue
		}
		if wrote += len(a.successes); wrote > 1 || a.stands != standing || len(a.rulings) > 0 ||
			!s.log.knew(start, a.success()) {
			return false
		}
	}
	return true
}
