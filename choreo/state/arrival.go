package state

import (
	"math"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file works out since when a task can be done, for people. It is told from the facts alone,
// so it is the same at all nodes that have them, and after a restart. No rule asks for it: the
// facts are dated by their authors' clocks, and those differ.

// Moments finds when rules and slots came to what they are.
type Moments struct {
	S *State
	// ruled are the moments of the rules that were asked for already; 0: it is being asked for.
	ruled map[*Slot]int64
}

// Arrival is when an attempt came to be done, in ms since 1970: when its holder wrote down that it is
// ready, or else with the latest fact that its rule needed; not before it was assigned.
func (m *Moments) Arrival(a *Attempt) (ms int64) {
	if a.Assigned != nil {
		ms = a.Assigned.Fact.At
	}
	switch {
	case a.Fired != nil:
		return ms // the state that fired it was there before
	case a.Undoes != nil && a.Start != nil:
		return a.Start.Fact.At
	case a.Undoes != nil:
		return ms
	}
	if r := a.Ready; r != nil && r.Fact.Chain.Author == a.Partner {
		return max(ms, r.Fact.At)
	}
	return max(ms, m.rule(a.Slot))
}

// rule is when a slot's rule came to hold, or came to be impossible.
func (m *Moments) rule(sl *Slot) int64 {
	ms, known := m.ruled[sl]
	if known || sl.Task.Rule == nil {
		return ms
	}
	if m.ruled == nil {
		m.ruled = map[*Slot]int64{}
	}
	m.ruled[sl] = 0
	_, ms = m.part(sl, sl.Task.Rule)
	m.ruled[sl] = ms
	return ms
}

// part is what a part of a slot's rule comes to, and since when. An "and" holds with the last of
// its parts and an "or" with the first that holds; impossible they are the other way round. A
// part that was released is no part any more, and an "and" waited for that as well.
func (m *Moments) part(sl *Slot, r *workflow.Rule) (workflow.Finding, int64) {
	m.S.log.Steps++
	switch r.Op {
	case workflow.OpTask:
		return r.Term(View{m.S, sl}), m.task(r.Transition, r.Task)
	case workflow.OpData:
		return r.Term(View{m.S, sl}), m.data(r.Data)
	}
	var args workflow.Tally
	var released, latest int64
	var firsts, lasts [workflow.True + 1]int64
	var seen [workflow.True + 1]bool
	for _, arg := range r.Args {
		f, at := m.part(sl, arg)
		latest = max(latest, at)
		if f.Dropped {
			released = max(released, at)
			continue
		}
		if !seen[f.Truth] || at < firsts[f.Truth] {
			firsts[f.Truth], seen[f.Truth] = at, true
		}
		lasts[f.Truth] = max(lasts[f.Truth], at)
		args.Count(f, +1)
	}
	f := args.Of(r.Op)
	switch {
	case f.Dropped:
		return f, latest
	case r.Op == workflow.OpAnd && f.Truth == workflow.True:
		return f, max(lasts[f.Truth], released)
	case r.Op == workflow.OpOr && f.Truth == workflow.Impossible:
		return f, lasts[f.Truth]
	}
	return f, firsts[f.Truth]
}

// task is when a transition of a task was made, or came to be impossible.
func (m *Moments) task(tr workflow.Transition, t workflow.TaskName) (ms int64) {
	if sl := m.S.bySlot[t]; sl != nil {
		return m.slot(sl, tr)
	}
	made := int64(math.MaxInt64) // where the task is only a contingency, the first slot that it made it in
	for _, sl := range m.S.heardIn(t) {
		m.S.log.Steps++
		a := m.S.standIn(sl, t)
		at, yes := a.made(tr)
		if yes {
			made = min(made, at)
		}
		ms = max(ms, m.done(sl))
	}
	if made < math.MaxInt64 {
		return made
	}
	return ms
}

// made is when an attempt made a transition, if it did.
func (a *Attempt) made(tr workflow.Transition) (ms int64, yes bool) {
	switch {
	case a == nil:
		return 0, false
	case tr == workflow.BecameReady && a.Assigned != nil:
		return a.Assigned.Fact.At, true
	case tr == workflow.BecameRunning && a.Start != nil:
		return a.Start.Fact.At, true
	case tr == workflow.BecameFailed && a.Success() == nil && len(a.Rulings) > 0:
		ms = math.MaxInt64 // they stand in the order in which they came here
		for _, r := range a.Rulings {
			ms = min(ms, r.At.Fact.At)
		}
		return ms, true
	case tr != workflow.BecameFailed && a.Success() != nil:
		return a.Success().Fact.At, true
	}
	return 0, false
}

// slot is when a slot made a transition, or could not make it any more.
func (m *Moments) slot(sl *Slot, tr workflow.Transition) int64 {
	first := int64(math.MaxInt64)
	for _, a := range sl.Attempts {
		m.S.log.Steps++
		if tr == workflow.BecameReady && a.Ready != nil {
			first = min(first, a.Ready.Fact.At)
		}
		if (tr == workflow.BecameReady || tr == workflow.BecameRunning) && a.Start != nil {
			first = min(first, a.Start.Fact.At)
		}
	}
	switch {
	case tr == workflow.BecameReady && (first < math.MaxInt64 || sl.State == workflow.Ready):
		return min(first, m.Arrival(sl.Attempts[0]))
	case first < math.MaxInt64:
		return first
	}
	return m.done(sl)
}

// done is when a slot came to its end; 0: it has not.
func (m *Moments) done(sl *Slot) int64 {
	switch {
	case sl.Pick != nil:
		return sl.Pick.Success().Fact.At
	case sl.State == workflow.Failed && sl.Outcome != nil:
		return sl.Outcome.At.Fact.At
	case sl.State == workflow.Aborted && sl.Current.Off != nil:
		return sl.Current.Off.Fact.At
	case sl.State == workflow.Blocked || sl.State == workflow.Skipped:
		return m.rule(sl)
	}
	return 0
}

// Over is when the instance came to its end, as it is known now: with the fact that ended the last of its tasks, or
// cancelled it. 0: it goes on.
func (m *Moments) Over() (ms int64) {
	s := m.S
	switch s.Overall() {
	case workflow.InstanceRunning:
		return 0
	case workflow.InstanceCancelled:
		return s.cancel.Fact.At
	}
	ms = s.log.Genesis().Fact.At
	for _, sl := range s.slots {
		s.log.Steps++
		ms = max(ms, m.done(sl))
	}
	if s.flow != nil && s.flow.Line != nil && s.flow.Line.last != nil {
		ms = max(ms, s.flow.Line.last.Fact.At)
	}
	return ms
}

// data is when the last value was written that a condition is about, or the last of those ended who
// may write one. Where it holds, the holder's word that it does is asked for before.
func (m *Moments) data(e *workflow.Expr) (ms int64) {
	for _, it := range m.S.conditionOn(e).items {
		m.S.log.Steps++
		if w := m.S.data[it.decl.Name].By; w != nil {
			ms = max(ms, w.Fact.At)
		}
		for sl := range it.writers {
			m.S.log.Steps++
			if sl.Pick != nil || sl.State == workflow.Failed || !m.S.Cyclic { // else it might ask for itself
				ms = max(ms, m.done(sl))
			}
		}
	}
	return ms
}
