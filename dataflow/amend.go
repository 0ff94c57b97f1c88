package dataflow

import (
	"maps"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is about a definition that changes while an instance runs by it (docs/amendments.md).
//
// What was fired goes on, by what its trigger said when it began; what was fired and has not begun begins by what
// its trigger says now. The current state is looked at once more: it fires what it did not fire by the definition
// before. Equivalence is asked of the whole history by the conditions that there are now, of the data that each state
// had: what was added later is null in it, as it is shown. A compensation cannot bring that back, so its state may
// also be equivalent to what was there before with what amendments have changed since (restored).

// Flow is what the board goes by.
func (b *Board) Flow() *Flow { return b.flow }

// Hash names the definition whose flow it is.
func (f *Flow) Hash() workflow.Hash { return f.def.Hash() }

// compensation is what compensates a trigger's transition; nil: nothing does, or there is no such trigger.
func (f *Flow) compensation(t workflow.TaskName) *workflow.Task {
	if x := f.def.Task(t); x != nil {
		return f.def.CompensationOf(x)
	}
	return nil
}

// Amend enters that the instance goes by a changed definition from here on, by that fact. It says why that changes
// nothing; empty: it may.
//
// Data that are new have their defaults. A value that is not of the type of its data any more, as two added data of one
// name unlike, is null. One out of new limits stays: it was right when it was set. If that changes a value there is a
// new state.
func (b *Board) Amend(f *Flow, by ID, at int64) string {
	switch {
	case b.done:
		return "a final state ended the instance"
	case f.Hash() == b.flow.Hash():
		return "it goes by that definition already"
	}
	changed, broken := b.amends(f), b.strict > 0
	b.goBy(f)
	for _, p := range b.Pending() {
		if _, has := f.of[p.Task.Name]; !has {
			b.abort(p, at)
		}
	}
	if len(changed) > 0 {
		as := b.Last().As
		b.write(changed)
		b.enter(Record{
			ID: by, Kind: Amendment, FiredBy: -1, Input: len(b.states) - 1, Undoes: -1, Began: at, Ended: at,
			From: b.place, Changed: changed,
		}).As = as
	}
	if b.stop == nil {
		b.followBy(by, at)
		return ""
	}
	b.stop.State = len(b.states) - 1
	switch {
	case b.recovery == nil && b.strict > 0:
		b.stop.Consistent = false
		if why := breaks(b.firstBroken()); why != b.stop.Cause {
			b.stop.Since = why
		}
	case b.recovery == nil:
		if b.stop.Consistent = b.consistent(); broken { // which is what was said
			b.stop.Since = ""
		}
	case b.recovery.job == Job{}:
		b.stopUnless(b.mayUndo())
	}
	return ""
}

// AwaitsEnds reports whether the board is to go by a changed definition later: by that its state would be final while
// several transitions are pending, and no result of any of these could be taken that leaves it so (Refuses).
func (b *Board) AwaitsEnds(f *Flow) bool {
	left := 0
	for t := range b.pending {
		if _, has := f.of[t]; has {
			left++
		}
	}
	if left < 2 || f.final < 0 {
		return false
	}
	values := maps.Clone(b.values)
	maps.Copy(values, b.amends(f))
	return holds(f.conds[f.final].expr, values, b.instance, b.age)
}

// consistent reports whether the state of an interrupted instance, which breaks no strict constraint, was consistent or
// is so by now.
func (b *Board) consistent() bool {
	return b.stop.Consistent || len(b.ready) > 0 || b.isFinal() || b.waitsForAge() || b.rules() && b.broken == 0
}

// amends are the data that a changed definition gives another value.
func (b *Board) amends(f *Flow) map[workflow.DataName]workflow.Value {
	out, declared := map[workflow.DataName]workflow.Value{}, map[workflow.DataName]bool{}
	for i := range f.def.Data {
		d := &f.def.Data[i]
		declared[d.Name] = true
		v, has := b.values[d.Name]
		switch {
		case has:
			if !workflow.HasType(d, v) {
				out[d.Name] = nil
			}
		case d.Default != nil && b.flow.def.Datum(d.Name) == nil:
			out[d.Name] = d.Default
		}
	}
	for n := range b.values {
		if !declared[n] {
			out[n] = nil
		}
	}
	return out
}

// goBy has the board go by another flow, of which it reads the whole history again.
func (b *Board) goBy(f *Flow) {
	ran := make([]int, len(f.triggers))
	for i, t := range f.triggers {
		if was, has := b.flow.of[t.Name]; has {
			ran[i] = b.ran[was]
		}
	}
	b.flow, b.ran, b.ready = f, ran, nil
	past := &Board{flow: f, instance: b.instance, values: map[workflow.DataName]workflow.Value{}, ran: ran}
	past.evaluateAll()
	b.first = map[string]int{}
	for n, at := range b.states {
		r := &b.history[at]
		past.write(r.Changed)
		r.satisfies, r.broken = string(past.bits), past.broken
		if _, known := b.first[r.satisfies]; !known {
			b.first[r.satisfies] = n
		}
	}
	b.steps += past.steps
	b.evaluateAll()
}

// before are the data of a state with what amendments have changed since.
func (b *Board) before(n int) map[workflow.DataName]workflow.Value {
	out := b.ValuesAt(n)
	for _, at := range b.states[n+1:] {
		if r := &b.history[at]; r.Kind == Amendment {
			maps.Copy(out, r.Changed)
		}
	}
	maps.DeleteFunc(out, func(_ workflow.DataName, v workflow.Value) bool { return v == nil })
	return out
}

// evaluateAll finds out whether each condition holds now, of none of which that is known.
func (b *Board) evaluateAll() {
	b.truth, b.bits = make([]bool, len(b.flow.conds)), make([]byte, (b.flow.bits+7)/8)
	b.strict, b.broken = 0, 0
	for _, c := range b.flow.conds {
		b.broken += one(c.rule)
		b.strict += one(c.strict)
	}
	for i := range b.flow.conds {
		b.evaluate(i)
	}
}
