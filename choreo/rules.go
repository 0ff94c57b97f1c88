package choreo

import (
	"github.com/mutirao-mesh/mutirao/contingency"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file keeps what the slots' rules come to up to date, term by term: a
// change goes up from the terms that it is about, and stops where nothing comes
// out otherwise. What a clause of a rule comes to follows from how many of its
// arguments come to what, so that a join of ten thousand is never read as a whole.
//
//	slot ──▶ question ──▶ term ──▶ clause ──▶ … ──▶ the rule of a slot
//	item ──▶ condition ──▶ term ──┘

// clause is a part of a slot's rule: a term, or an "and" or "or" of clauses.
type clause struct {
	of    *Slot
	up    *clause // nil: it is the whole rule
	op    workflow.Op
	not   bool // of a term about a task
	args  workflow.Tally
	comes workflow.Finding
}

// set notes what a clause comes to, and has the rules above it follow.
func (s *State) set(n *clause, f workflow.Finding) {
	s.lifted = s.lifted || f != n.comes && n.decided()
	for s.log.steps++; f != n.comes; s.log.steps++ {
		was := n.comes
		if n.comes = f; n.up == nil {
			s.touch(n.of)
			return
		}
		n = n.up
		n.args.Count(was, -1)
		n.args.Count(f, +1)
		f = n.args.Of(n.op)
	}
}

// decided reports whether others may have concluded something from what a term comes
// to. That data are what it asks for is concluded from only where a task is not needed
// then.
func (n *clause) decided() bool {
	if n.op == workflow.OpData && n.comes.Truth == workflow.True {
		return n.of.Dropped != nil
	}
	return n.comes.Dropped || n.comes.Truth != workflow.Undecided
}

// ruleComes is what the slot's rule comes to.
func (sl *Slot) ruleComes() workflow.Finding {
	if sl.rule == nil || sl.rule.comes.Dropped {
		return workflow.Finding{Truth: workflow.True}
	}
	return sl.rule.comes
}

// question is what rules ask about a task: whether its slot has made a
// transition or, of a task that is only a contingency, any slot that it may fill.
type question struct {
	transition workflow.Transition
	task       workflow.TaskName
	own        bool           // the task has a slot of its own
	slots      workflow.Tally // of a task that is only a contingency: what holds in each
	comes      workflow.Finding
	terms      []*clause
}

// answer is what a question comes to in one slot.
type answer struct {
	to    *question
	comes workflow.Finding
}

// compile makes the clauses of a slot's rule; nil: it has none.
func (s *State) compile(sl *Slot) *clause {
	if sl.Task.Rule == nil {
		return nil
	}
	return s.compilePart(sl, nil, sl.Task.Rule)
}

func (s *State) compilePart(sl *Slot, up *clause, r *workflow.Rule) *clause {
	n := &clause{of: sl, up: up, op: r.Op, not: r.Negated}
	switch r.Op {
	case workflow.OpTask:
		q := s.ask(r.Transition, r.Task)
		q.terms = append(q.terms, n)
		n.comes = n.hears(q.comes)
	case workflow.OpData:
		c := s.conditionOn(r.Data)
		c.terms = append(c.terms, n)
		n.comes = s.conditionFor(c, sl)
		sl.hasData = true
	default:
		for _, arg := range r.Args {
			n.args.Count(s.compilePart(sl, n, arg).comes, +1)
		}
		n.comes = n.args.Of(n.op)
	}
	return n
}

// hears is what a term about a task makes of what the question comes to.
func (n *clause) hears(f workflow.Finding) workflow.Finding {
	f = contingency.Spared(f, n.of.waits())
	if n.not && !f.Dropped {
		f.Truth = workflow.True - f.Truth
		f.ByFailure = f.ByFailure && f.Truth == workflow.Impossible
	}
	f.BySuccess = false // it has had its part
	return f
}

// ask is the question about a task, one for all rules that ask it.
func (s *State) ask(tr workflow.Transition, t workflow.TaskName) *question {
	key := asked{tr, t}
	q := s.questions[key]
	if q != nil {
		return q
	}
	q = &question{transition: tr, task: t, own: s.bySlot[t] != nil}
	s.questions[key] = q
	for _, sl := range s.slotsOf(t) {
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

type asked struct {
	transition workflow.Transition
	task       workflow.TaskName
}

func (q *question) overall() workflow.Finding {
	f := q.slots.Of(workflow.OpOr)
	f.Dropped = false // no slot may need it
	return f
}

// comesTo is what a question comes to in a slot.
func (s *State) comesTo(q *question, sl *Slot) workflow.Finding {
	if q.own {
		return sl.term(q.transition)
	}
	f := s.termOf(sl, q.transition, q.task)
	f.BySuccess = false // of several slots none speaks for all
	return f
}

// answer has the rules that ask about the slot hear what has changed.
func (s *State) answer(sl *Slot) {
	for i := range sl.answers {
		a := &sl.answers[i]
		was, f := a.comes, s.comesTo(a.to, sl)
		if s.log.steps++; f == was {
			continue
		}
		a.comes = f
		q := a.to
		if !q.own {
			q.slots.Count(was, -1)
			q.slots.Count(f, +1)
			f = q.overall()
		}
		if q.comes == f {
			continue
		}
		q.comes = f
		for _, n := range q.terms {
			s.set(n, n.hears(f))
		}
	}
}
