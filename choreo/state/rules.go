package state

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

// set notes what a clause comes to, and has the rules above it follow.
func (s *State) set(n *Clause, f workflow.Finding) {
	s.lifted = s.lifted || f != n.comes && n.decided()
	for s.log.Steps++; f != n.comes; s.log.Steps++ {
		was := n.comes
		if n.comes = f; n.up == nil {
			s.touch(n.Of)
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
func (n *Clause) decided() bool {
	if n.op == workflow.OpData && n.comes.Truth == workflow.True {
		return n.Of.Dropped != nil
	}
	return n.comes.Dropped || n.comes.Truth != workflow.Undecided
}

// RuleComes is what the slot's rule comes to.
func (sl *Slot) RuleComes() workflow.Finding {
	if sl.rule == nil || sl.rule.comes.Dropped {
		return workflow.Finding{Truth: workflow.True}
	}
	return sl.rule.comes
}

// hears is what a term about a task makes of what the question comes to.
func (n *Clause) hears(f workflow.Finding) workflow.Finding {
	f = contingency.Spared(f, n.Of.waits())
	if n.not && !f.Dropped {
		f.Truth = workflow.True - f.Truth
		f.ByFailure = f.ByFailure && f.Truth == workflow.Impossible
	}
	f.BySuccess = false // it has had its part
	return f
}

func (q *Question) overall() workflow.Finding {
	f := q.slots.Of(workflow.OpOr)
	f.Dropped = false // no slot may need it
	return f
}

// comesTo is what a question comes to in a slot.
func (s *State) comesTo(q *Question, sl *Slot) workflow.Finding {
	if q.own {
		return sl.Term(q.transition)
	}
	f := s.TermOf(sl, q.transition, q.task)
	f.BySuccess = false // of several slots none speaks for all
	return f
}

// answer has the rules that ask about the slot hear what has changed.
func (s *State) answer(sl *Slot) {
	for i := range sl.answers {
		a := &sl.answers[i]
		was, f := a.comes, s.comesTo(a.to, sl)
		if s.log.Steps++; f == was {
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
		for _, n := range q.Terms {
			s.set(n, n.hears(f))
		}
	}
}

func (sl *Slot) RuleHolds() bool {
	return !sl.barred && sl.RuleComes().Truth == workflow.True
}

// MayStart reports whether an attempt that is wanted and not started is ready.
func (a *Attempt) MayStart() bool {
	if a.Beside() {
		return true
	}
	if a.Slot.State == workflow.Failed || a.Slot.Pending != nil { // as others presume
		return a.Slot.Begun() || !a.Slot.Task.Disabled && a.Slot.RuleHolds()
	}
	return a.Slot.State == workflow.Ready
}

// WaitsForData reports whether the attempt's rule, which is about data, holds
// and this has not been recorded yet.
func (a *Attempt) WaitsForData() bool {
	return a.Slot.HasData && !a.Slot.Begun() && a.Slot.RuleHolds()
}
