package dataflow

import (
	"fmt"
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
	// Beside is, of an offer, what ran in parallel with what brought the current state and came to nothing: that is
	// why it undoes something. The order is that of the history.
	Beside []Record
	// Jumped are, of a jump back, the transitions that it jumps over, which count no more, in the order of the history.
	Jumped []Record
	// State is the number of the state in the end, Values are its data, and Changed those of them
	// that have another value than now; nil: null then.
	State   int
	Values  map[workflow.DataName]workflow.Value
	Changed map[workflow.DataName]workflow.Value
	// Like is the first state of the history that satisfies the same conditions, as the history says of it then
	// (EquivalentTo); -1: none.
	Like int
	// Fires are the triggers that it fires; Final: it ends the instance. With neither the instance is
	// interrupted still, or once more, for that Cause and what has come of it Since, and Methods are what the rules allow then.
	// Task is the one of the Cause, which failed, or brought the state; empty: none did.
	Fires   []workflow.TaskName
	Final   bool
	Cause   string
	Task    workflow.TaskName
	Since   string
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
	if x.Method == MethodOffer {
		for _, r := range b.besides() {
			out.Beside = append(out.Beside, *r)
		}
	}
	for i, r := range b.history {
		if r.Mark != Jumped && then.history[i].Mark == Jumped {
			out.Jumped = append(out.Jumped, r)
		}
	}
	for u := then.Undoing(); u != nil; u = then.Undoing() {
		t := *then.producer()
		r := then.restores(&t)
		out.Undoes = append(out.Undoes, Undoing{Task: t.Task, State: t.Output, Sure: r.sure})
		job := Job{Task: t.Task}
		then.FireUndo(job, u.By, b.stop.At)
		if r.failure != "" {
			then.UndoFailed(job, r.failure, b.stop.At)
			break
		}
		then.Undone(job, ID{}, r.updates, b.stop.At)
	}
	out.State, out.Values, out.Like, out.Final = then.State(), then.values, then.EquivalentTo(then.State()), then.done
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
		out.Cause, out.Task, out.Since, out.Methods = then.stop.Cause, then.stop.Task, then.stop.Since, then.Methods()
	}
	return out, ""
}

// fruitless says why a step that the rules allow comes to nothing, as the definition says; empty: it does not say so.
// That is so where the first compensation fails, or does not restore what was there, or breaks a strict constraint. One
// that comes later may: what was compensated before it stands.
func (b *Board) fruitless(x Step) string {
	if x.Method != MethodCompensate && (x.Method != MethodOffer || b.offerGoal() < 0) {
		return ""
	}
	t := b.producer()
	u := b.restores(t)
	switch {
	case u.failure != "":
		return b.undoFailure(t.Task, u.failure)
	case !u.sure:
		return ""
	}
	before := b.write(b.differing(u.updates))
	defer func() { b.write(before) }()
	return b.badlyDesigned(t)
}

// restoring is what a compensation comes to.
type restoring struct {
	updates map[workflow.DataName]workflow.Value
	sure    bool   // that follows from the definition
	failure string // it fails for certain, for that reason; empty: it does not
}

// restores is what the compensation of a transition sets: what its definition gives, else all that the data were
// before it.
func (b *Board) restores(t *Record) restoring {
	undo := b.flow.compensation(t.Task)
	if undo.Type == workflow.Automatic {
		switch undo.Application {
		case "", workflow.AppNoop, workflow.AppSleep:
			return restoring{sure: true}
		case workflow.AppFail:
			return restoring{sure: true, failure: undo.With.Failure()}
		case workflow.AppSet:
			if out := b.sets(undo, t); out.sure {
				return out
			}
		}
	}
	return restoring{updates: b.becoming(b.before(t.Input))}
}

// sets is what the built-in set makes to compensate a transition: it is given the current data and, in their
// place, what the transition set. Not sure: that depends on more than is known here.
func (b *Board) sets(undo *workflow.Task, t *Record) restoring {
	given := maps.Clone(b.values)
	for n, v := range t.Changed {
		given[n] = v
	}
	for _, e := range undo.With.Set {
		if strings.Contains(e.Source, "instance.age") {
			return restoring{}
		}
		for _, read := range e.Names() {
			if _, set := t.Changed[read]; !set && b.set[read] > t.Output { // it may have set what was there before
				return restoring{}
			}
		}
	}
	updates, err := undo.With.Values(given, b.instance, 0)
	if err != nil {
		return restoring{sure: true, failure: err.Error()}
	}
	for n, v := range updates {
		if updates[n], err = workflow.CheckValue(b.flow.def.Datum(n), v); err != nil {
			return restoring{sure: true, failure: fmt.Sprintf("task %s returned a wrong %s: %v", undo.WithLabel(), n, err)}
		}
	}
	return restoring{updates: updates, sure: true}
}

// clone is a board of its own that stands where this one does.
func (b *Board) clone() *Board {
	c := *b
	c.values, c.pending, c.due, c.set, c.first = maps.Clone(b.values), maps.Clone(b.pending), maps.Clone(b.due),
		maps.Clone(b.set), maps.Clone(b.first)
	c.states, c.history, c.truth, c.bits = slices.Clone(b.states), slices.Clone(b.history), slices.Clone(b.truth),
		slices.Clone(b.bits)
	c.clashed = slices.Clone(b.clashed)
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
