package state

import (
	"github.com/mutirao-mesh/mutirao/contingency"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file finds what the rule of a slot asks, of which tasks and of which data. What comes of it is in rules.go.

// compile makes the clauses of a slot's rule; nil: it has none.
func (s *State) compile(sl *Slot) *Clause {
	if sl.Task.Rule == nil {
		return nil
	}
	return s.compilePart(sl, nil, sl.Task.Rule)
}

func (s *State) compilePart(sl *Slot, up *Clause, r *workflow.Rule) *Clause {
	n := oneOf(&s.blank)
	*n = Clause{Of: sl, up: up, op: r.Op, not: r.Negated}
	switch r.Op {
	case workflow.OpTask:
		q := s.ask(r.Transition, r.Task)
		q.Terms = append(q.Terms, n)
		n.comes = n.hears(q.comes)
	case workflow.OpData:
		c := s.conditionOn(r.Data)
		c.terms = append(c.terms, n)
		n.comes = s.conditionFor(c, sl)
		sl.HasData = true
	default:
		for _, arg := range r.Args {
			n.args.Count(s.compilePart(sl, n, arg).comes, +1)
		}
		n.comes = n.args.Of(n.op)
	}
	return n
}

// ask is the question about a task, one for all rules that ask it.
func (s *State) ask(tr workflow.Transition, t workflow.TaskName) *Question {
	key := TransitionOf{tr, t}
	q := s.questions[key]
	if q != nil {
		return q
	}
	q = oneOf(&s.unasked)
	*q = Question{transition: tr, task: t, own: s.bySlot[t] != nil}
	s.questions[key] = q
	for _, sl := range s.heardIn(t) {
		f := s.comesTo(q, sl)
		sl.answers = append(sl.answers, answer{q, f})
		q.slots.Count(f, +1)
		q.comes = f
	}
	if !q.own {
		q.comes = q.overall()
	}
	return q
}

// oneOf takes a value off those that were made together, since each by itself would cost more. If none is left,
// some more are made.
func oneOf[T any](made *[]T) *T {
	if len(*made) == 0 {
		*made = make([]T, 8)
	}
	one := &(*made)[0]
	*made = (*made)[1:]
	return one
}

// View answers the terms of a slot's rule, as they stand.
type View struct {
	S  *State
	Of *Slot // whose rule it is; nil: nobody's
}

// TaskTerm says what a rule may hold of a task's slot.
func (v View) TaskTerm(tr workflow.Transition, t workflow.TaskName) workflow.Finding {
	if sl := v.S.bySlot[t]; sl != nil {
		return contingency.Spared(sl.Term(tr), v.Of.waits())
	}
	return contingency.Spared(v.S.ask(tr, t).comes, v.Of.waits())
}

// DataTerm says what a term about data comes to.
func (v View) DataTerm(e *workflow.Expr) workflow.Finding {
	return v.S.conditionFor(v.S.conditionOn(e), v.Of)
}
