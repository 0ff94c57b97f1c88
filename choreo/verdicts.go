package choreo

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/mutirao-mesh/mutirao/membership/election"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is about who else takes a slot's work: verdicts on attempts, what they ask
// for, and assignments. Which of several counts is in converge.go; what passes on what
// its holder does not want, in pass.go.

func (v *Verdict) kind() string { return "verdict" }

func (v *Verdict) validate(workflow.PartnerID) error {
	switch v.Cause {
	case CauseReported, CauseTimeout, CauseExpired, CauseEvicted, CauseLost:
	default:
		return fmt.Errorf("cause %q, want %s, %s, %s, %s or %s", v.Cause, CauseReported, CauseTimeout, CauseExpired,
			CauseEvicted, CauseLost)
	}
	if n := len(v.Actions); n == 0 || n > MaxActions {
		return fmt.Errorf("it judges %d attempts, want 1 to %d", n, MaxActions)
	}
	for _, a := range v.Actions {
		switch a.Kind {
		case workflow.FailBlock, workflow.FailRelease, workflow.FailContingency:
		default:
			return fmt.Errorf("action %q, want %s, %s or %s", a.Kind, workflow.FailBlock, workflow.FailRelease,
				workflow.FailContingency)
		}
		if err := names(a.Attempt.Slot, a.Task); err != nil {
			return err
		}
		if err := names(a.Partner); err != nil {
			return err
		}
	}
	if v.Office != nil && len(v.Office.Proof) > election.MaxCredentials {
		return fmt.Errorf("credentials of %d bytes, at most %d", len(v.Office.Proof), election.MaxCredentials)
	}
	return reason(v.Reason)
}

// enter enters a verdict. Each action counts for itself: not if its
// author already knew of the attempt's success (converge.go, rule 1), nor if
// it does something else than the definition chose. A verdict judges one
// attempt of a slot at most, since its name is part of what follows is named by.
func (s *State) enterVerdict(v *Verdict, e *entry) (why string) {
	why = "it judges nothing that may be judged"
	e.late = s.knewHigher(e)
	judged := map[*Slot]bool{}
	for _, act := range v.Actions {
		a := s.attempts[act.Attempt]
		if a == nil || judged[a.Slot] || !s.knewOf(e, act.Attempt) || !allowed(a, act, e.fact.Chain.Author) ||
			v.Cause == CauseLost && !s.mayMiss(a, e.fact.Chain.Author) {
			continue
		}
		if slices.ContainsFunc(a.successes, func(ok *entry) bool { return s.certain(e, ok) }) || s.judgedOften(e, a) {
			continue
		}
		if act.Kind == workflow.FailContingency && act.Partner != "" && s.movedOften(e, a.Slot) {
			continue
		}
		r := &ruling{at: e, action: act, final: a.Partner == e.fact.Chain.Author}
		if act.Kind == workflow.FailContingency {
			s.contested = true
			if act.Partner != "" {
				r.next = s.addAttempt(e, a, r, act.Task, act.Partner)
			}
		}
		a.rulings = append(a.rulings, r)
		if a.fired != nil {
			s.flow.say(a.fired.flow, e)
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

func (v *Verdict) appoints(yield func(workflow.PartnerID) bool) {
	for _, a := range v.Actions {
		if a.Partner != "" && !yield(a.Partner) {
			return
		}
	}
}

// ruling is one action of a counted verdict.
type ruling struct {
	at     *entry
	action Action
	final  bool     // by the attempt's own holder
	void   bool     // its author knew of the attempt's success
	next   *Attempt // the attempt that the verdict itself assigned
}

// judgedOften reports whether a fact's author knew of all the verdicts on an attempt that
// count. The holder's own are counted apart: what others presume takes none from it.
func (s *State) judgedOften(e *entry, a *Attempt) bool {
	final := a.Partner == e.fact.Chain.Author
	return s.atLeast(MaxVerdicts, len(a.rulings), func(i int) bool {
		return a.rulings[i].final == final && s.log.knew(e, a.rulings[i].at)
	})
}

// allowed reports whether an action is what the author of the definition chose
// for the failure of the attempt. Of a compensation only its holder can say that
// it failed, and nothing follows from it. What an order has left out is released by its
// holder, whatever the definition says.
func allowed(a *Attempt, act Action, author workflow.PartnerID) bool {
	t := a.Task
	switch {
	case a.beside():
		return author == a.Partner && act.Kind == workflow.FailBlock && act.Task == ""
	case a.skips && author == a.Partner:
		return act.Kind == workflow.FailRelease && act.Task == ""
	}
	kind := cmp.Or(t.OnFailure, workflow.FailBlock)
	return act.Kind == kind && act.Task == t.Contingency
}

func (b *Assign) kind() string { return "assign" }

func (b *Assign) validate(workflow.PartnerID) error {
	if err := names(b.After.Slot, b.Task); err != nil {
		return err
	}
	return names(b.Partner)
}

func (s *State) enterAssign(b *Assign, e *entry) (why string) {
	a := s.attempts[b.After]
	if a == nil || b.Partner == "" || !s.knewOf(e, b.After) {
		return "it follows an attempt that it does not know"
	}
	if b.Verdict.IsZero() {
		return s.applyPass(e, a, b)
	}
	if x := e.fact.Body.Annex; x != nil && x.Order != nil {
		return s.applyAgain(e, a, b, *x.Order)
	}
	asked := slices.IndexFunc(a.rulings, func(r *ruling) bool {
		return r.at.id == b.Verdict && r.next == nil && r.action.Kind == workflow.FailContingency && s.log.knew(e, r.at)
	})
	if asked < 0 || b.Task != a.Task.Contingency {
		return "no verdict asked for it"
	}
	if s.movedOften(e, a.Slot) {
		return movedOften
	}
	t := a.turning()
	t.assigns = append(t.assigns, s.addAttempt(e, a, a.rulings[asked], b.Task, b.Partner))
	s.touch(a.Slot)
	return ""
}

func (b *Assign) appoints(yield func(workflow.PartnerID) bool) { yield(b.Partner) }

// movedOften is why an assignment does not count.
const movedOften = "its author has found others for the task too often"

// movedOften reports whether the author of a fact had found somebody else for the work of
// a slot as often as one may, as far as it knew.
func (s *State) movedOften(e *entry, sl *Slot) bool {
	return s.atLeast(MaxAttempts, len(sl.Attempts), func(i int) bool {
		a := sl.Attempts[i]
		return movedBy(a, e.fact.Chain.Author) && s.log.knew(e, a.assigned)
	})
}

// movedBy reports whether a partner found the holder of an attempt after the instance had
// begun.
func movedBy(a *Attempt, p workflow.PartnerID) bool {
	return a.assigned.fact.Chain.Author == p && a.assigned.fact.Body.Genesis == nil
}

// atLeast reports whether something is so of that many of n.
func (s *State) atLeast(many, n int, is func(int) bool) bool {
	for i := 0; i < n && many > 0 && many <= n-i; i++ {
		s.log.steps++
		many -= one(is(i))
	}
	return many == 0
}

// addAttempt puts a new attempt after another in its slot, because of a verdict or,
// nil, as that one's holder passed it on.
func (s *State) addAttempt(
	e *entry, after *Attempt, by *ruling, task workflow.TaskName, p workflow.PartnerID,
) *Attempt {
	sl := after.Slot
	a := &Attempt{
		ID: AttemptID{Fact: e.id, Slot: sl.Task.Name}, Slot: sl, Task: s.def.Task(task), Partner: p,
		Depth: after.Depth + 1, replaced: after.replaced, assigned: e, after: after, by: by, turns: noTurns,
	}
	if !a.passedOn() {
		a.replaced++
	}
	s.attempts[a.ID] = a
	at, _ := slices.BinarySearchFunc(sl.Attempts, a, func(x, y *Attempt) int {
		s.log.steps++
		return cmp.Or(cmp.Compare(x.Depth, y.Depth), byTime(x.assigned, y.assigned))
	})
	sl.Attempts = slices.Insert(sl.Attempts, at, a)
	s.contested = true
	s.join(p, e)
	return a
}
