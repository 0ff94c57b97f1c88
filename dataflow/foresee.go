package dataflow

import (
	"maps"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is about what a step of recovery would lead to, so that people can see it before they order it.

// Outlook is what a step of recovery would lead to, as far as that is known before it is taken.
type Outlook struct {
	// Undoes are the compensations that come first, in their order.
	Undoes []Undoing
	// State is the number of the state in the end, Values are its data, and Changed those of them
	// that have another value than now; nil: null then.
	State   int
	Values  map[workflow.DataName]workflow.Value
	Changed map[workflow.DataName]workflow.Value
	// Like is the state of the history for which it is to be taken, or that satisfies the same
	// conditions; -1: none.
	Like int
	// Fires are the triggers that it fires; Final: it ends the instance. With neither the instance is
	// interrupted still, or once more, for that Cause, and Methods are what the rules allow then.
	Fires   []workflow.TaskName
	Final   bool
	Cause   string
	Methods []string
}

// Undoing is a compensation that a step asks for.
type Undoing struct {
	Task  workflow.TaskName // that is undone
	State int               // that its transition brought
	// Sure: what it sets follows from the definition. Else its application decides, and it is taken to
	// restore the data that were there before.
	Sure bool
}

// Sure reports whether all that follows does so from the definition.
func (o *Outlook) Sure() bool {
	return !slices.ContainsFunc(o.Undoes, func(u Undoing) bool { return !u.Sure })
}

// Foresee says what a step would lead to, or why it is not allowed. It changes nothing.
func (b *Board) Foresee(x Step) (Outlook, string) {
	if why := b.MayRecover(x); why != "" {
		return Outlook{}, why
	}
	then := b.clone()
	then.Recover(x, ID{}, b.stop.At)
	var out Outlook
	for u := then.Undoing(); u != nil; u = then.Undoing() {
		t := *then.producer()
		updates, sure := then.restores(&t)
		out.Undoes = append(out.Undoes, Undoing{Task: t.Task, State: t.Output, Sure: sure})
		job := Job{Task: t.Task}
		then.FireUndo(job, u.By)
		then.Undone(job, ID{}, updates, b.stop.At, b.stop.At)
	}
	out.State, out.Values, out.Like, out.Final = then.State(), then.values, then.Last().As, then.done
	if out.Like == out.State {
		out.Like = then.EquivalentTo(out.State)
	}
	out.Changed = b.differing(then.values)
	for n := range b.values {
		if then.values[n] == nil {
			out.Changed[n] = nil
		}
	}
	for _, p := range then.Pending() {
		out.Fires = append(out.Fires, p.Task.Name)
	}
	if then.stop != nil {
		out.Cause, out.Methods = then.stop.Cause, then.Methods()
	}
	return out, ""
}

// restores are the updates of the compensation of a transition: those that its definition gives, else
// all that the data were before it.
func (b *Board) restores(t *Record) (updates map[workflow.DataName]workflow.Value, sure bool) {
	undo := b.flow.compensation(t.Task)
	switch undo.Application {
	case "", workflow.AppNoop, workflow.AppSleep:
		if undo.Type == workflow.Automatic {
			return nil, true
		}
	case workflow.AppSet:
		if updates, sure = b.sets(undo, t); sure {
			return updates, true
		}
	}
	before := b.ValuesAt(t.Input)
	for n := range b.values {
		if _, was := before[n]; !was {
			before[n] = nil
		}
	}
	return before, false
}

// sets is what the built-in set makes to compensate a transition: it is given the current data and, in their
// place, what the transition set. false: that depends on more than is known here.
func (b *Board) sets(undo *workflow.Task, t *Record) (map[workflow.DataName]workflow.Value, bool) {
	given := maps.Clone(b.values)
	for n, v := range t.Changed {
		given[n] = v
	}
	out := map[workflow.DataName]workflow.Value{}
	for n, e := range undo.With.Set {
		v, err := e.Eval(workflow.Env{Data: given, Instance: b.instance})
		if err != nil || strings.Contains(e.Source, "instance.age") {
			return nil, false
		}
		for _, read := range e.Names() {
			if _, set := t.Changed[read]; !set && b.set[read] > t.Output { // it may have set what was there before
				return nil, false
			}
		}
		out[n] = v
	}
	return out, true
}

// clone is a board of its own that stands where this one does.
func (b *Board) clone() *Board {
	c := *b
	c.values, c.pending, c.due, c.set, c.first = maps.Clone(b.values), maps.Clone(b.pending), maps.Clone(b.due),
		maps.Clone(b.set), maps.Clone(b.first)
	c.states, c.history, c.truth, c.bits = slices.Clone(b.states), slices.Clone(b.history), slices.Clone(b.truth),
		slices.Clone(b.bits)
	c.ready, c.ran = slices.Clone(b.ready), slices.Clone(b.ran)
	if b.stop != nil {
		stop := *b.stop
		c.stop = &stop
	}
	if b.recovery != nil {
		r := *b.recovery
		c.recovery = &r
	}
	return &c
}
