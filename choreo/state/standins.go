package state

import (
	"cmp"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is about tasks that stand in for others, of an instance whose amendments say which do. What an answer to a
// failure may be follows from the definition that its author knew: so a task may come to fill a slot that it cannot
// fill by the definition of now. It stays there, as what it is and does follows from what gave it out.
//
//	by the definition of now      the slots whose chains of contingencies it is in
//	besides, found as facts come  those in which somebody gave it out by another definition
//	of these not heard            those whose own rule asks for it by the definition of now (comesRound)
//
// No definition loses such a task: where none names it any more it is kept (workflow.Kept). Who says that it can make
// no transition any more goes by the slots that it could fill by the definition that this one knew.

// standingIn is a task that somebody gave out to stand in for another, by the definition that was known then: as far as
// it can be amended, it is as it is now. Of what two add unlike under one name, each goes on as it began.
func (s *State) standingIn(e *log.Entry, t workflow.TaskName) *workflow.Task {
	if len(s.edition.heavy) == 0 {
		return s.def.Task(t)
	}
	return s.amended(cmp.Or(s.EvidenceOf(e).under().Task(t), s.def.Task(t)))
}

// amended is a task of an earlier edition with all that can be amended as it is now.
func (s *State) amended(t *workflow.Task) *workflow.Task {
	now := s.def.Task(t.Name)
	if now == nil || now == t {
		return t
	}
	x := *s.limited(t)
	x.Rule, x.TimeToWait, x.Disabled, x.ContingencyOnly = now.Rule, now.TimeToWait, now.Disabled, now.ContingencyOnly
	x.OnFailure, x.Contingency, x.Compensate, x.Retries = now.OnFailure, now.Contingency, now.Compensate, now.Retries
	x.Deadline, x.Warnings, x.Transfer = now.Deadline, now.Warnings, now.Transfer
	if alikeButIn(&x, now) { // else what it reads goes with what it does, which is another than now
		return now
	}
	return &x
}

// comesIn notes that a task stands in a slot, where it cannot by the definition of now: rules that ask for it hear of
// that slot too, and what it may write waits for it.
func (s *State) comesIn(sl *Slot, t *workflow.Task) {
	at := filled{t.Name, sl}
	if len(s.edition.heavy) == 0 || s.filled[at] ||
		t == s.def.Task(t.Name) && slices.Contains(s.plan.Chain(sl.Task.Name), t.Name) {
		return
	}
	if s.filled == nil {
		s.filled = map[filled]bool{}
	}
	s.filled[at] = true
	for _, n := range t.Out {
		if it := s.item(n); !it.writers[sl] {
			it.writers[sl], s.widened = true, true
			sl.Writes = append(sl.Writes, it)
			if sl.open {
				s.opens(it, true)
			}
		}
	}
	if s.bySlot[t.Name] != nil || slices.Contains(s.plan.Chain(sl.Task.Name), t.Name) {
		return
	}
	s.widened = true
	s.fills[t.Name] = append(slices.Clone(s.fills[t.Name]), sl)
	slices.SortFunc(s.fills[t.Name], func(a, b *Slot) int { return a.Place - b.Place })
	if s.comesRound(s.def, sl, t.Name) {
		return
	}
	for _, tr := range []workflow.Transition{
		workflow.BecameReady, workflow.BecameRunning, workflow.BecameSucceeded, workflow.BecameFailed,
	} {
		if q := s.questions[TransitionOf{tr, t.Name}]; q != nil {
			s.askIn(q, sl)
		}
	}
}

// FilledBy are the tasks that came to stand in a slot by another definition than that of now, by name.
func (v View) FilledBy(slot workflow.TaskName) (out []workflow.TaskName) {
	for at := range v.S.filled {
		if at.slot.Task.Name == slot {
			out = append(out, at.task)
		}
	}
	slices.Sort(out)
	return out
}

// askIn has a question be one about another slot as well.
func (s *State) askIn(q *Question, sl *Slot) {
	f := s.comesTo(q, sl)
	sl.answers = append(sl.answers, answer{q, f})
	q.slots.Count(f, +1)
	for _, n := range q.Terms {
		if by := n.Of; !slices.Contains(by.Mentions, sl) {
			at, _ := slices.BinarySearchFunc(by.Mentions, sl, byName)
			by.Mentions = slices.Insert(slices.Clone(by.Mentions), at, sl)
			sl.Dependents = append(sl.Dependents, by)
		}
	}
	if f = q.overall(); f != q.comes {
		q.comes = f
		for _, n := range q.Terms {
			s.set(n, n.hears(f))
		}
	}
}

// slotsOf are the slots that a task may fill, as the author of what is judged knew, and those in which it stood then.
func (v *Evidence) slotsOf(t workflow.TaskName) []*Slot {
	s := v.s
	if !s.edition.answers || s.bySlot[t] != nil {
		return s.SlotsOf(t)
	}
	out := slices.Clone(s.fillsBy(v.under())[t])
	for _, sl := range s.fills[t] {
		s.log.Steps++
		stood := func(a *Attempt) bool { return a.Task.Name == t && v.knew(a.Assigned) }
		if !slices.Contains(out, sl) && slices.ContainsFunc(sl.Attempts, stood) && !s.comesRound(v.under(), sl, t) {
			out = append(out, sl)
		}
	}
	return out
}

// mentions are the slots that a slot's rule mentioned, as the author of what is judged knew it, each once, by name.
func (v *Evidence) mentions(sl *Slot) []*Slot {
	def := v.under()
	if def.Task(sl.Task.Name) == nil {
		def = v.s.def
	}
	var out []*Slot
	for _, p := range def.Predecessors(sl.Task.Name) {
		out = append(out, v.slotsOf(p)...)
	}
	slices.SortFunc(out, byName)
	return slices.Compact(out)
}

func byName(a, b *Slot) int { return cmp.Compare(a.Task.Name, b.Task.Name) }
