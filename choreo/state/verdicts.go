package state

import (
	"cmp"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about who else takes a slot's work: verdicts on attempts, what they ask
// for, and assignments. Which of several counts is in converge.go; what passes on what
// its holder does not want, in pass.go.

// enter enters a verdict. Each action counts for itself: not if its
// author already knew of the attempt's success (converge.go, rule 1), nor if
// it does something else than the definition chose. A verdict judges one
// attempt of a slot at most, since its name is part of what follows is named by.
func (s *State) enterVerdict(v *fact.Verdict, e *log.Entry) (why string) {
	why = "it judges nothing that may be judged"
	e.Late = s.knewHigher(e)
	judged := map[*Slot]bool{}
	for _, act := range v.Actions {
		a := s.attempts[act.Attempt]
		if a == nil || judged[a.Slot] || !s.knewOf(e, act.Attempt) || !s.allowed(e, a, act) ||
			v.Cause == fact.CauseLost && !s.EvidenceOf(e).MayMiss(a, e.Fact.Chain.Author) {
			continue
		}
		if slices.ContainsFunc(a.Successes, func(ok *log.Entry) bool { return s.certain(e, ok) }) ||
			s.judgedOften(e, a) {
			continue
		}
		if act.Kind == workflow.FailContingency && act.Partner != "" && s.movedOften(e, a.Slot) {
			continue
		}
		r := &Ruling{At: e, Action: act, Final: a.Partner == e.Fact.Chain.Author}
		if act.Kind == workflow.FailContingency {
			s.contested = true
			if act.Partner != "" {
				r.Next = s.addAttempt(e, a, r, act.Task, act.Partner)
			} else {
				s.comesIn(a.Slot, s.standingIn(e, act.Task))
			}
		}
		a.Rulings = append(a.Rulings, r)
		if a.Fired != nil {
			s.flow.say(a.Fired.Flow, e)
		}
		judged[a.Slot] = true
		s.touch(a.Slot)
		why = ""
	}
	if why == "" {
		s.noteOffice(e)
	}
	return why
}

// judgedOften reports whether a fact's author knew of all the verdicts on an attempt that
// count. The holder's own are counted apart: what others presume takes none from it.
func (s *State) judgedOften(e *log.Entry, a *Attempt) bool {
	final := a.Partner == e.Fact.Chain.Author
	return s.AtLeast(fact.MaxVerdicts, len(a.Rulings), func(i int) bool {
		return a.Rulings[i].Final == final && s.log.Knew(e, a.Rulings[i].At)
	})
}

// allowed reports whether an action is what the author of the definition chose
// for the failure of the attempt. Of a compensation only its holder can say that
// it failed, and nothing follows from it. What an order has left out is released by its
// holder, whatever the definition says.
func (s *State) allowed(e *log.Entry, a *Attempt, act fact.Action) bool {
	author := e.Fact.Chain.Author
	switch {
	case a.Beside():
		return author == a.Partner && act.Kind == workflow.FailBlock && act.Task == ""
	case a.Skips && author == a.Partner:
		return act.Kind == workflow.FailRelease && act.Task == ""
	}
	t := cmp.Or(s.EvidenceOf(e).task(a.Task), a.Task)
	kind := cmp.Or(t.OnFailure, workflow.FailBlock)
	return act.Kind == kind && act.Task == t.Contingency
}

func (s *State) enterAssign(b *fact.Assign, e *log.Entry) (why string) {
	a := s.attempts[b.After]
	if a == nil || b.Partner == "" || !s.knewOf(e, b.After) {
		return "it follows an attempt that it does not know"
	}
	if b.Verdict.IsZero() {
		return s.applyPass(e, a, b)
	}
	if x := e.Fact.Body.Annex; x != nil && x.Order != nil {
		return s.applyAgain(e, a, b, *x.Order)
	}
	asked := slices.IndexFunc(a.Rulings, func(r *Ruling) bool {
		return r.At.ID == b.Verdict && r.Next == nil && r.Action.Kind == workflow.FailContingency && s.log.Knew(e, r.At)
	})
	if asked < 0 || b.Task != a.Rulings[asked].Action.Task { // as its author knew, whatever is amended meanwhile
		return "no verdict asked for it"
	}
	if s.movedOften(e, a.Slot) {
		return movedOften
	}
	t := a.turning()
	t.Assigns = append(t.Assigns, s.addAttempt(e, a, a.Rulings[asked], b.Task, b.Partner))
	s.touch(a.Slot)
	return ""
}

// movedOften is why an assignment does not count.
const movedOften = "its author has found others for the task too often"

// movedOften reports whether the author of a fact had found somebody else for the work of
// a slot as often as one may, as far as it knew.
func (s *State) movedOften(e *log.Entry, sl *Slot) bool {
	return s.AtLeast(fact.MaxAttempts, len(sl.Attempts), func(i int) bool {
		a := sl.Attempts[i]
		return MovedBy(a, e.Fact.Chain.Author) && s.log.Knew(e, a.Assigned)
	})
}

// MovedBy reports whether a partner found the holder of an attempt after the instance had
// begun.
func MovedBy(a *Attempt, p workflow.PartnerID) bool {
	b := &a.Assigned.Fact.Body
	return a.Assigned.Fact.Chain.Author == p && b.Genesis == nil && b.Claim == nil // an amendment gives it to its holder
}

// addAttempt puts a new attempt after another in its slot, because of a verdict or,
// nil, as that one's holder passed it on.
func (s *State) addAttempt(
	e *log.Entry, after *Attempt, by *Ruling, task workflow.TaskName, p workflow.PartnerID,
) *Attempt {
	sl, t := after.Slot, after.Task
	if t.Name != task {
		t = s.standingIn(e, task)
	}
	a := &Attempt{
		ID: fact.AttemptID{Fact: e.ID, Slot: sl.Task.Name}, Slot: sl, Task: t, Partner: p,
		Depth: after.Depth + 1, replaced: after.replaced, Assigned: e, after: after, by: by, turns: noTurns,
	}
	if !a.passedOn() {
		a.replaced++
	}
	s.attempts[a.ID] = a
	if t.Name != sl.Task.Name {
		defer s.comesIn(sl, t)
	}
	at, _ := slices.BinarySearchFunc(sl.Attempts, a, func(x, y *Attempt) int {
		s.log.Steps++
		return cmp.Or(cmp.Compare(x.Depth, y.Depth), log.ByTime(x.Assigned, y.Assigned))
	})
	sl.Attempts = slices.Insert(sl.Attempts, at, a)
	s.contested = true
	s.join(p, e)
	return a
}

func (s *State) enterCancel(e *log.Entry) (why string) {
	if s.cancel == nil {
		for _, sl := range s.slots {
			s.touch(sl)
		}
	}
	s.cancel, s.Cancels = earlier(s.cancel, e), firstOf(s.Cancels, e)
	return ""
}

// applyAgain enters an assignment by which the holder of an attempt that failed begins another, by order; or who wrote
// the order down in its place.
func (s *State) applyAgain(e *log.Entry, a *Attempt, b *fact.Assign, order fact.ID) (why string) {
	o := s.log.ByID()[order]
	asked := slices.IndexFunc(a.Rulings, func(r *Ruling) bool {
		return r.At.ID == b.Verdict && r.Action.Kind == workflow.FailBlock && s.log.Knew(e, r.At)
	})
	followed := func(n *Attempt) bool { return s.log.Knew(e, n.Assigned) } // by this order or another
	x, _ := OrderIn(o)
	inStead := o != nil && a.Partner != e.Fact.Chain.Author && o.Fact.Chain.Author == e.Fact.Chain.Author &&
		s.OrderedInStead(e, a, x)
	switch {
	case a.Partner != e.Fact.Chain.Author && !inStead || b.Task != a.Task.Name || a.Beside():
		return "by order the holder of an attempt does the same once more, and nothing else"
	case inStead && x.What == worklist.Skip && b.Partner != e.Fact.Chain.Author:
		return "who has a task left out in its holder's place does that itself"
	case !(inStead && x.To == "") && b.Partner != cmp.Or(x.To, a.Partner):
		return "by order the holder of an attempt does the same once more, or the partner that the order names"
	case asked < 0:
		return "no verdict had ended the attempt, as its author knew"
	case !orderedAgain(o, a) || !s.log.Knew(e, o):
		return "no order asked for it"
	case slices.ContainsFunc(a.Assigns, followed):
		return "it had been done once more, as its author knew"
	case s.movedOften(e, a.Slot):
		return movedOften
	}
	t := a.turning()
	n := s.addAttempt(e, a, a.Rulings[asked], b.Task, b.Partner)
	n.Skips = x.What == worklist.Skip
	t.Assigns = append(t.Assigns, n)
	s.touch(a.Slot)
	return ""
}

// applyPass enters an assignment by which a holder passes its attempt on, or says
// that it keeps it.
func (s *State) applyPass(e *log.Entry, a *Attempt, b *fact.Assign) (why string) {
	switch {
	case a.Beside() || a.Partner != e.Fact.Chain.Author: // that its author knew of it was looked at
		return "no verdict asked for it, and its author does not hold the attempt"
	case b.Task != a.Task.Name:
		return "it passes something else on"
	case b.Partner == a.Partner:
		a.Kept = earlier(a.Kept, e)
		s.touch(a.Slot)
		return ""
	case s.movedOften(e, a.Slot):
		return movedOften
	}
	t := a.turning()
	t.passed = append(t.passed, s.addAttempt(e, a, nil, b.Task, b.Partner))
	s.touch(a.Slot)
	return ""
}

func (s *State) enterWriteOff(b *fact.WriteOff, e *log.Entry) (why string) {
	if why = s.mayWriteOff(b, e); why == "" {
		s.writtenOff[b.Partner] = earlier(s.writtenOff[b.Partner], e)
	}
	return why
}

// mayWriteOff says why a partner may not be written off by a fact; "": it may, by the
// instance's initiator, who answers for it, or because it was evicted.
func (s *State) mayWriteOff(b *fact.WriteOff, e *log.Entry) (why string) {
	switch {
	case !s.tookPart(b.Partner, e):
		return "it writes off somebody who takes no part"
	case e.Fact.Chain.Author == s.log.Genesis().Fact.Chain.Author:
		return ""
	case len(b.Eviction) == 0:
		return "its author does not answer for the instance"
	}
	if !e.Checked {
		e.Checked = true
		if e.Untrue = errNoTrust; s.trust != nil {
			e.Untrue = s.trust.Evicted(b.Partner, b.Eviction)
		}
	}
	if e.Untrue != nil {
		return "it does not prove the eviction"
	}
	return ""
}
