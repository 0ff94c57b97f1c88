package meaning

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/dataflow"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about instances that are driven by their data (docs/design.md, Data states): which of the facts that
// whoever held the flow wrote make up the one history that counts. What states a history has is worked out by dataflow,
// as there it is held against rules that are written once more (dataflow's own tests).

// flow is what those wrote who held the flow.
type flow struct {
	slot    *Slot
	records map[*Attempt][]int // by the attempt by which its author held it
	line    []int              // those that count, in their order
	board   *dataflow.Board
}

// beside reports whether an attempt fills no slot.
func (a *Attempt) beside() bool { return a.undoes != nil || a.fired != nil }

// holdsFlow is the attempt by which the author of fact i held the flow, as it knew; nil: it did not.
func (m *Meaning) holdsFlow(id fact.AttemptID, i int) *Attempt {
	a := m.own(id, i)
	knew := func(by int) bool { return m.h.knew(i, by) }
	if m.flow == nil || a == nil || a.slot != m.flow.slot || a.beside() || !slices.ContainsFunc(a.starts, knew) ||
		slices.ContainsFunc(a.rulings, func(r *ruling) bool { return r.final && m.certain(i, r.at) }) {
		return nil
	}
	return a
}

// enterFire makes the attempts at what a state fired, each named by the fact and its trigger.
func (m *Meaning) enterFire(i int, b *fact.Fire) bool {
	a := m.holdsFlow(b.Attempt, i)
	state, known := m.h.index[b.State]
	if a == nil || !known || !m.h.knew(i, state) {
		return false
	}
	if b.Undoes != (fact.ID{}) {
		return m.enterUndoing(i, a, b)
	}
	for _, t := range b.Tasks {
		if x := m.def.Task(t); x == nil || x.Condition == nil {
			return false
		}
	}
	for _, t := range b.Tasks {
		m.fire(i, a, m.def.Task(t), t)
	}
	m.record(a, i)
	return true
}

// enterUndoing makes the attempt that undoes a transition in a recovery.
func (m *Meaning) enterUndoing(i int, a *Attempt, b *fact.Fire) bool {
	j, known := m.h.index[b.Undoes]
	if !known || !m.h.knew(i, j) || m.h.facts[j].Body.Success == nil {
		return false
	}
	was := m.attempts[m.h.facts[j].Body.Success.Attempt]
	if was == nil || was.fired == nil || was.undoes != nil || was.task.Name != b.Tasks[0] {
		return false
	}
	undo := m.def.CompensationOf(was.task)
	if undo == nil {
		return false
	}
	m.fire(i, a, undo, b.Tasks[0]).undoes = was
	m.record(a, i)
	return true
}

// fire makes an attempt that fills no slot. What a program does has begun with it.
func (m *Meaning) fire(i int, by *Attempt, t *workflow.Task, trigger workflow.TaskName) *Attempt {
	x := &Attempt{
		ID: fact.AttemptID{Fact: m.h.facts[i].id, Slot: trigger}, Partner: by.Partner, slot: by.slot, task: t, depth: 1,
		assigned: i, ready: none, start: none, base: none, off: none, kept: none, failed: map[int]bool{},
		fired: by,
	}
	if t.Type == workflow.Automatic {
		x.start, x.starts, x.tries = i, []int{i}, 1
	}
	m.attempts[x.ID] = x
	return x
}

// record notes what somebody wrote who held the flow.
func (m *Meaning) record(a *Attempt, i int) {
	if list := m.flow.records[a]; len(list) == 0 || list[len(list)-1] != i {
		m.flow.records[a] = append(list, i)
	}
}

// taken notes that the holder of transitions gave them to somebody: those that waited for that are executed from there on.
func (m *Meaning) taken(i int, of ...fact.AttemptID) {
	for _, id := range of {
		if a := m.attempts[id]; a.fired != nil && a.undoes == nil {
			m.record(a.fired, i)
			return
		}
	}
}

// laying lays the line and the states that it has. Of each who held the flow and was followed by another, what that one
// knew when it began counts, of the last one all; and in the order of facts each that knew the one before.
func (m *Meaning) laying() {
	f := m.flow
	if f == nil {
		return
	}
	end := f.slot.Current
	if f.slot.Pick != nil {
		end = f.slot.Pick
	}
	for end != nil && end.start == none {
		end = end.after
	}
	var all []int
	next := none
	for a := end; a != nil; a = a.after {
		began := a.start
		if next != none {
			began = none
			for _, s := range a.starts {
				if m.h.knew(next, s) {
					first(&began, s)
				}
			}
		}
		if began == none {
			continue
		}
		for _, i := range f.records[a] {
			if next == none || m.h.knew(next, i) {
				all = append(all, i)
			}
		}
		next = began
	}
	slices.Sort(all)
	m.play(end, all)
}

// play works out the states of a line.
func (m *Meaning) play(end *Attempt, all []int) {
	f, g := m.flow, m.h.facts[0]
	data := map[workflow.DataName]workflow.Value{}
	for n, w := range m.data {
		data[n] = w.value
	}
	f.board = dataflow.NewBoard(dataflow.New(m.h.def), fact.InstanceOf(g.id).String(), data, dataflow.ID(g.id), g.At)
	var holder *Attempt
	for _, i := range all {
		if len(f.line) > 0 && !m.h.knew(i, f.line[len(f.line)-1]) {
			m.endsNothing(i)
			continue
		}
		if of := m.holderBy(i); of != holder {
			f.board.HandOver()
			holder = of
		}
		f.line = append(f.line, i)
		before := f.board.State()
		if why := m.playOne(i); why != "" {
			m.lost(i)
			m.endsNothing(i)
		}
		if f.board.State() == before {
			continue
		}
		for n, v := range f.board.Last().Changed {
			if v == nil {
				delete(m.data, n)
			} else {
				m.data[n] = written{v, i}
			}
		}
	}
	if holder != end {
		f.board.HandOver()
	}
	for _, list := range f.records {
		for _, i := range list {
			if !slices.Contains(f.line, i) {
				m.lost(i)
			}
		}
	}
	clear(m.Data)
	for n, w := range m.data {
		m.Data[n] = w.value
	}
}

// endsNothing has begin once more what a fact says has ended, which does not count.
func (m *Meaning) endsNothing(i int) {
	if s := m.h.facts[i].Body.Success; s != nil {
		m.flow.board.Again(jobOf(m.attempts[s.Attempt]))
	}
	if v := m.h.facts[i].Body.Verdict; v != nil {
		for _, act := range v.Actions {
			if a := m.attempts[act.Attempt]; a != nil {
				m.flow.board.Again(jobOf(a))
			}
		}
	}
}

// lost notes that a fact does not count in the line: the transition that it ends well has done so for nothing.
func (m *Meaning) lost(i int) {
	if s := m.h.facts[i].Body.Success; s != nil {
		if a := m.attempts[s.Attempt]; a.success() == i {
			a.Stands = false
		}
	}
}

// holderBy is the attempt at the flow by which the author of a record held it.
func (m *Meaning) holderBy(i int) *Attempt {
	for a, list := range m.flow.records {
		if slices.Contains(list, i) {
			return a
		}
	}
	return nil
}

// playOne enters a record into the states. It says why that changes nothing.
func (m *Meaning) playOne(i int) (why string) {
	board, x := m.flow.board, &m.h.facts[i]
	id, at := dataflow.ID(x.id), x.At
	switch b := &x.Body; {
	case b.Fire != nil && b.Fire.Undoes != (fact.ID{}):
		return board.FireUndo(dataflow.Job{Fact: id, Task: b.Fire.Tasks[0]}, dataflow.ID(b.Fire.Undoes), at)
	case b.Fire != nil:
		for _, t := range b.Fire.Tasks {
			job := dataflow.Job{Fact: id, Task: t}
			waits := slices.Contains(b.Fire.ForWorkers, t) || !m.attempts[fact.AttemptID{Fact: x.id, Slot: t}].task.ByNode()
			if not := board.Fire(job, dataflow.ID(b.Fire.State), waits, at); not != "" {
				why = not
			}
		}
		return why
	case b.Aged != nil:
		return board.Age(b.Aged.Age, id, at)
	case b.Claim != nil && recovers(b.Claim.Body()):
		order, _ := b.Claim.Body().(worklist.Order)
		step, err := dataflow.DecodeStep(order.Reason)
		if err != nil {
			return err.Error()
		}
		return board.Recover(step, id, at)
	case b.Success != nil:
		a := m.attempts[b.Success.Attempt]
		switch {
		case a.success() != i:
			return "it had succeeded already"
		case a.undoes != nil:
			return board.Undone(jobOf(a), id, b.Success.Outputs, at)
		}
		if why = board.Done(jobOf(a), id, b.Success.Outputs, at); why == "" {
			a.Stands = true
		}
		return why
	case b.Verdict != nil:
		for _, act := range b.Verdict.Actions {
			switch a := m.attempts[act.Attempt]; {
			case a == nil || a.fired == nil:
			case a.undoes != nil:
				return board.UndoFailed(jobOf(a), reasonOf(b.Verdict), at)
			default:
				why = board.Fail(jobOf(a), id, reasonOf(b.Verdict), at)
			}
		}
	default:
		m.playTaken(b, at)
	}
	return why
}

// playTaken enters that somebody was given transitions.
func (m *Meaning) playTaken(b *fact.Body, at int64) {
	var of []fact.AttemptID
	switch {
	case b.Claim != nil:
		of = b.Claim.About()
	case b.Lease != nil:
		of = append(of, b.Lease.Attempt)
	case b.Start != nil:
		of = append(of, b.Start.Attempt)
	}
	for _, id := range of {
		m.flow.board.Take(jobOf(m.attempts[id]), at)
	}
}

func jobOf(a *Attempt) dataflow.Job {
	return dataflow.Job{Fact: dataflow.ID(a.ID.Fact), Task: a.ID.Slot}
}

// reasonOf is why a holder gave something up.
func reasonOf(v *fact.Verdict) string {
	if v.Reason != "" {
		return v.Reason
	}
	return string(v.Cause)
}

// runs reports whether an attempt is under way in the history: a transition that is pending by that name, or the
// compensation for which a recovery waits.
func (f *flow) runs(a *Attempt) bool {
	if a.undoes != nil {
		u := f.board.Undoing()
		return u != nil && u.Job == jobOf(a)
	}
	return f.board.Running(jobOf(a)) != nil
}

// fire checks what whoever holds the flow begins: of what states fired, all that it had not begun.
func (c *check) fire(b *fact.Fire) {
	a, f := c.m.attempts[b.Attempt], c.m.flow
	if f == nil || a == nil {
		c.wants(false, "what is fired is of no flow")
		return
	}
	c.wants(c.m.live(a), "it fires, and does not hold the flow any more")
	if b.Undoes != (fact.ID{}) {
		u := f.board.Undoing()
		c.wants(u != nil && u.Job == (dataflow.Job{}) && fact.ID(u.By) == b.Undoes && u.Task == b.Tasks[0],
			"it undoes what no recovery waits for")
		return
	}
	for _, t := range b.Tasks {
		due := slices.ContainsFunc(f.board.Due(), func(p *dataflow.Pending) bool {
			return p.Task.Name == t && fact.ID(f.board.StateID(p.State)) == b.State
		})
		c.wants(due, "it begins %s, which no state fired, or which it had begun", t)
	}
}

// resultOfFlow checks what a transition brings: nothing, unless it is under way; by the built-in set what its
// expressions give in the state that fired it.
func (c *check) resultOfFlow(a *Attempt, b *fact.Success) {
	c.wants(!a.givenUp(), "what succeeds was given up by its own holder")
	c.wants(a.success() == none, "it succeeds a second time")
	p := c.m.flow.board.Running(jobOf(a))
	if a.task.Application != workflow.AppSet || a.undoes != nil || p == nil {
		return
	}
	env := c.m.env()
	env.Data = p.Input
	for n, e := range a.task.With.Set {
		was, err := e.Eval(env)
		got := b.Outputs[n]
		c.wants(err == nil && reflect.DeepEqual(got, was), "%s sets %s to %v, its expression gives %v", a.task.Name, n, got,
			was)
	}
}

// undoOfFlow checks that what undoes a transition may begin that is not in the history that counts: all who take part
// are known to know of it and of all who held the flow, and no other of these works.
func (c *check) undoOfFlow(u *Attempt) {
	a := u.undoes
	c.wants(!a.Stands, "a transition is undone that is in the history")
	c.wants(u.start == none, "a compensation begins a second time")
	for p := range c.m.joined {
		knows := slices.ContainsFunc(c.m.h.facts, func(f known) bool {
			i := c.m.h.index[f.id]
			return c.m.counts.has(i) && f.Chain.Author == p && c.m.h.knew(i, a.success()) &&
				!slices.ContainsFunc(a.slot.Attempts, func(x *Attempt) bool { return x.start != none && !c.m.h.knew(i, x.start) })
		})
		c.wants(knows || c.m.writtenOff[p], "a compensation begins, and %s may not know of all that is said of the flow", p)
	}
}

// tooEarly reports whether a transition is tried again because its state would be final while others are pending.
func tooEarly(a *Attempt, b *fact.TryFailed) bool {
	return a.fired != nil && b.Reason == dataflow.FinalTooEarly
}

// recovers reports whether a person orders a step of recovery.
func recovers(body worklist.Body) bool {
	x, orders := body.(worklist.Order)
	return orders && x.What == worklist.Recover
}

// FlowLines are the states of the history that counts, as a fingerprint has them (ShownFlow).
func (m *Meaning) FlowLines() (out []string) {
	if m.flow == nil || m.flow.board == nil {
		return nil
	}
	b := m.flow.board
	for _, r := range b.History() {
		out = append(out, fmt.Sprintf("state %d %s %s by %s fired=%d input=%d mark=%s status=%s", r.Output, r.Kind,
			r.Task, fact.ID(r.ID).Short(), r.FiredBy, r.Input, r.Mark, r.Status))
	}
	for _, p := range b.Pending() {
		id := fact.AttemptID{Fact: fact.ID(p.Job.Fact), Slot: p.Job.Task}
		out = append(out, fmt.Sprintf("pending %s since %d as %s", p.Task.Name, p.State, id))
	}
	if x := b.Interrupted(); x != nil {
		out = append(out, fmt.Sprintf("interrupted at %d: %s", x.State, x))
	}
	return out
}

// ShownFlow are the lines of a fingerprint that FlowLines has too.
func ShownFlow(print []byte) (out []string) {
	for line := range strings.Lines(string(print)) {
		if strings.HasPrefix(line, "state ") || strings.HasPrefix(line, "pending ") ||
			strings.HasPrefix(line, "interrupted at ") {
			out = append(out, strings.TrimRight(line, "\n"))
		}
	}
	return out
}
