package state

import (
	"fmt"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file says what an author may say of an attempt, by what it knew when it
// said it (evidence.go).
//
//	ready       its task has a rule about data, or a trigger
//	start       it holds the attempt, has the role and a unit of what its task holds, and the
//	            rule may have held: for each term it knew a fact from which that can follow
//	success     it had started, and told of no other end
//	done        what a start and a success ask for; its node does the task by itself
//	called off  it knew why the attempt was not needed
//
// Who may say something about other partners stands with those facts (verdicts.go,
// choreo/writeoff.go).
//
// More that it knew never makes less of this so. What is held against it is another
// matter, that its task was done or cancelled, given up or passed on: a fork may have
// taken that away from it, and others give it back. So that counts here where it counted
// for certain (converge.go, rule 8).
//
// Whether a trigger's wait was over, whether data were what the rule asks for,
// and when a partner is to be given up rest on local clocks and on what was seen
// here. That cannot be proved, and is its author's word.

// keptFrom is from how many steps on a reading is kept.
const keptFrom = 32

// held reports whether the rule of a slot's task can have held, and ended whether it
// can have become impossible.
func (v *Evidence) held(sl *Slot) bool {
	t := v.task(sl.Task)
	return t != nil && !t.Disabled && v.rule(sl, t.Rule, &sl.mayHold, true)
}

func (v *Evidence) ended(sl *Slot) bool {
	t := v.task(sl.Task)
	return t == nil || t.Disabled || v.rule(sl, t.Rule, &sl.mayEnd, false)
}

func (v *Evidence) rule(sl *Slot, r *workflow.Rule, was *ruleWas, held bool) bool {
	if r == nil {
		return held
	}
	if was.by != v.number {
		*was = ruleWas{by: v.number}
		if v.of == nil || v.within {
			was.is = v.read(r, held)
		} else {
			was.is = v.reread(sl, r, held)
		}
	}
	return was.is
}

func (v *Evidence) read(r *workflow.Rule, held bool) bool {
	return v.came(r, held) || (held && v.dropped(r))
}

// reread reads a slot's rule unless that was done for an earlier fact of the strand that
// says enough. Of a rule that asks for several things it goes on with the first that was
// not so.
func (v *Evidence) reread(sl *Slot, r *workflow.Rule, held bool) bool {
	of, readings := readingOf{v.of.Strand, sl, held, v.under()}, v.s.readings
	was, known := readings[of]
	if known && (was.is || was.said == v.of.Strand.Said && was.others.Covers(v.of.Others)) {
		return was.is
	}
	before := v.s.log.Steps
	is := reading{others: v.of.Others, said: v.of.Strand.Said, at: was.at}
	v.within = true
	if held && r.Op == workflow.OpAnd {
		for is.at < len(r.Args) && v.read(r.Args[is.at], true) {
			is.at++
		}
		is.is = is.at == len(r.Args)
	} else {
		is.is = v.read(r, held)
	}
	v.within = false
	if known || v.s.log.Steps-before >= keptFrom {
		readings[of] = is
	}
	return is.is
}

// came reports whether a rule, or a part of one, can have come to hold or, if not
// held, to be impossible.
func (v *Evidence) came(r *workflow.Rule, held bool) bool {
	v.s.log.Steps++
	switch r.Op {
	case workflow.OpData:
		return true
	case workflow.OpTask:
		return v.term(r.Transition, r.Task, held != r.Negated)
	}
	if (r.Op == workflow.OpOr) == held { // one is enough
		return slices.ContainsFunc(r.Args, func(a *workflow.Rule) bool { return v.came(a, held) })
	}
	return !slices.ContainsFunc(r.Args, func(a *workflow.Rule) bool { return !v.came(a, held) && !v.dropped(a) })
}

// dropped reports whether nothing may have been left of a part of a rule: all that it
// asks for was released.
func (v *Evidence) dropped(r *workflow.Rule) bool {
	switch r.Op {
	case workflow.OpData:
		return false
	case workflow.OpTask:
		sl := v.s.bySlot[r.Task]
		return sl != nil && r.Transition == workflow.BecameSucceeded && v.ruled(sl, workflow.FailRelease)
	}
	return !slices.ContainsFunc(r.Args, func(a *workflow.Rule) bool { return !v.dropped(a) })
}

// term reports whether a task can have made a transition or, if not held, cannot make
// it any more: of a task that is only a contingency, in a slot that it may fill.
func (v *Evidence) term(tr workflow.Transition, t workflow.TaskName, held bool) bool {
	if sl := v.s.bySlot[t]; sl != nil {
		return v.slot(tr, sl, held)
	}
	if held {
		return slices.ContainsFunc(v.s.SlotsOf(t), func(sl *Slot) bool { return v.standIn(tr, sl, t) })
	}
	return !slices.ContainsFunc(v.slotsOf(t), func(sl *Slot) bool {
		over := v.succeeded(sl) || v.failed(sl) || v.ended(sl)
		tried := func(a *Attempt) bool {
			ruled := func(r *Ruling) bool { return v.knew(r.At) }
			return a.Task.Name == t && v.knew(a.Assigned) && slices.ContainsFunc(a.Rulings, ruled)
		}
		return !over && !slices.ContainsFunc(sl.Attempts, tried)
	})
}

func (v *Evidence) slot(tr workflow.Transition, sl *Slot, held bool) bool {
	switch {
	case tr == workflow.BecameFailed && held:
		return v.failed(sl)
	case tr == workflow.BecameFailed:
		return v.succeeded(sl) || v.ended(sl)
	case !held:
		return v.failed(sl) || v.ended(sl)
	case tr == workflow.BecameSucceeded:
		return v.succeeded(sl)
	case tr == workflow.BecameRunning:
		return v.started(sl) || v.succeeded(sl)
	}
	return v.begun(sl) || v.succeeded(sl) || (!v.hasData(sl) && v.held(sl))
}

// standIn reports whether a task that is only a contingency can have made a
// transition in a slot.
func (v *Evidence) standIn(tr workflow.Transition, sl *Slot, t workflow.TaskName) bool {
	return slices.ContainsFunc(sl.Attempts, func(a *Attempt) bool {
		if a.Task.Name != t || !v.knew(a.Assigned) {
			return false
		}
		switch tr {
		case workflow.BecameReady:
			return true
		case workflow.BecameRunning:
			return v.any(a.Starts) || v.any(a.Successes)
		case workflow.BecameFailed:
			return slices.ContainsFunc(a.Rulings, func(r *Ruling) bool { return v.knew(r.At) })
		}
		return v.any(a.Successes)
	})
}

func (v *Evidence) succeeded(sl *Slot) bool {
	return slices.ContainsFunc(sl.Attempts, func(a *Attempt) bool { return v.any(a.Successes) }) ||
		(sl.Dropped != nil && v.held(sl))
}

func (v *Evidence) started(sl *Slot) bool {
	return slices.ContainsFunc(sl.Attempts, func(a *Attempt) bool { return v.any(a.Starts) })
}

func (v *Evidence) failed(sl *Slot) bool {
	return slices.ContainsFunc(sl.Attempts, func(a *Attempt) bool { return v.any(a.offs) }) ||
		v.ruled(sl, workflow.FailBlock) || v.ruled(sl, workflow.FailRelease)
}

// ruled reports whether a verdict with such an action on the slot was known.
func (v *Evidence) ruled(sl *Slot, kind workflow.FailureAction) bool {
	return slices.ContainsFunc(sl.Attempts, func(a *Attempt) bool {
		return slices.ContainsFunc(a.Rulings, func(r *Ruling) bool { return r.Action.Kind == kind && v.knew(r.At) })
	})
}

// begun reports whether the slot was known to be ready, or started, in one of its
// attempts.
func (v *Evidence) begun(sl *Slot) bool {
	return slices.ContainsFunc(sl.Attempts, func(a *Attempt) bool { return v.any(a.readied) || v.any(a.Starts) })
}

// disabled reports whether a slot's task was not enabled, as the author knew.
func (v *Evidence) disabled(sl *Slot) bool {
	t := v.task(sl.Task)
	return t == nil || t.Disabled
}

// MayReady says why an attempt cannot have become ready by its holder's word; "":
// it can.
func (v *Evidence) MayReady(a *Attempt, trigger bool) string {
	switch {
	case a.Beside():
		return "it waits for no rule"
	case v.disabled(a.Slot):
		return "its task is not enabled"
	case trigger && v.task(a.Slot.Task).TimeToWait == 0:
		return "its task has no trigger"
	case !trigger && !v.hasData(a.Slot):
		return "its rule is not about data"
	case !trigger && !v.held(a.Slot):
		return "its rule did not hold, as far as its author knew"
	}
	return ""
}

// MayStart says why an attempt's holder may not have started it; "": it may.
func (v *Evidence) MayStart(a *Attempt) string {
	if (a.Transition() || !a.Beside()) && !v.any(a.Starts) {
		if why := v.mayPerform(a); why != "" {
			return why
		}
	}
	return v.MayBegin(a)
}

// MayBegin is MayStart where the role of its task is shown.
func (v *Evidence) MayBegin(a *Attempt) string {
	sl := a.Slot
	done := func(o *Attempt) bool { return slices.ContainsFunc(o.Successes, v.certain) && !v.givenUp(o) }
	switch {
	case v.does(a) == nil:
		return "nothing undoes it, as far as its author knew"
	case a.Beside() || v.any(a.Starts):
		return ""
	case sl.Dropped != nil:
		return "its task is not needed"
	case v.disabled(sl) && !v.begun(sl): // what was ready by somebody's word is done to its end
		return "its task is not enabled"
	case slices.ContainsFunc(v.s.Cancels, v.certain):
		return "it was started after the instance was cancelled"
	case v.gaveUp(a):
		return "its author had given the attempt up"
	case slices.ContainsFunc(a.passed, func(n *Attempt) bool { return v.certain(n.Assigned) }):
		return "its author had passed the attempt on"
	case slices.ContainsFunc(sl.Attempts, done):
		return "its task had been done, as its author knew"
	case v.unitless(a) != "":
		return v.unitless(a)
	case v.begun(sl):
		return ""
	case v.hasData(sl) || !v.held(sl):
		return "its rule did not hold, as far as its author knew"
	}
	return ""
}

// mayFail says why an attempt's holder may not tell that a try of it failed; "": it
// may.
func (v *Evidence) mayFail(a *Attempt) string {
	if !v.any(a.Starts) {
		return "it was not started"
	}
	return ""
}

// maySucceed says why an attempt's holder may not tell that it succeeded; "": it may.
func (v *Evidence) maySucceed(a *Attempt) string {
	if !v.any(a.Starts) {
		return "it was not started"
	}
	return v.mayEnd(a)
}

// mayEnd says why an attempt that was started may not end with a success; "": it may.
func (v *Evidence) mayEnd(a *Attempt) string {
	known := func(i int) bool { return v.knew(a.Successes[i]) }
	switch {
	case v.gaveUp(a):
		return "its author had given the attempt up"
	case slices.ContainsFunc(a.Successes, v.certain) || v.s.AtLeast(fact.MaxSuccesses, len(a.Successes), known):
		return "it had succeeded already"
	case a.Undoes != nil:
		return v.mayPerform(a)
	}
	return ""
}

// MayCallOff says why an attempt's holder may not call it off; "": it may.
func (v *Evidence) MayCallOff(a *Attempt) string {
	if !a.Beside() && v.any(v.s.Cancels) {
		return ""
	}
	before := map[*Attempt]bool{}
	because := map[*Ruling]bool{}
	for b := a; b != nil; b = b.after {
		before[b], because[b.by] = true, true
	}
	replaced := func(o *Attempt) bool {
		return v.any(o.Successes) || (!before[o] && v.knewOf(o)) ||
			slices.ContainsFunc(o.Rulings, func(r *Ruling) bool { return !because[r] && v.knew(r.At) })
	}
	if a.Beside() || !slices.ContainsFunc(a.Slot.Attempts, replaced) {
		return "it was still needed, as far as its author knew"
	}
	return ""
}

// shown notes what a fact shows its author to have. It says why the fact does not
// count; "": it does, as far as that goes.
func (s *State) shown(e *log.Entry) string {
	if len(e.Fact.Body.Credentials) == 0 {
		return ""
	}
	if !e.Checked {
		e.Checked = true
		if s.trust != nil {
			e.Roles, e.Untrue = s.trust.Roles(e.Fact.Chain.Author, e.Fact.Body.Credentials)
		} else {
			e.Untrue = errNoTrust
		}
	}
	if e.Untrue != nil {
		return "its author's credentials are not true"
	}
	of := s.credentials[e.Fact.Chain.Author]
	if !slices.ContainsFunc(of, func(o *log.Entry) bool {
		return o.Strand == e.Strand &&
			slices.Equal(o.Roles, e.Roles)
	}) {
		s.credentials[e.Fact.Chain.Author] = append(of, e) // an author that knows of this fact knows of the earlier one
	}
	return ""
}

// Proves returns an error unless credentials prove that a partner has a role.
func (s *State) Proves(credentials []byte, p workflow.PartnerID, role workflow.RoleName) error {
	return Proves(s.trust, credentials, p, role)
}

// Proves returns an error unless credentials prove, to a node that trusts in that way, that a partner has a role.
func Proves(trust Trust, credentials []byte, p workflow.PartnerID, role workflow.RoleName) error {
	err, roles := errNoTrust, []workflow.RoleName(nil)
	if trust != nil {
		roles, err = trust.Roles(p, credentials)
	}
	switch {
	case err != nil:
		return fmt.Errorf("%s does not show that it has role %s: %w", p, role, err)
	case role != "" && !slices.Contains(roles, role):
		return fmt.Errorf("%s does not have role %s, its certificate gives it %v", p, role, roles)
	}
	return nil
}

// HasRole reports whether the author of what is judged had shown that it has a role.
func (v *Evidence) HasRole(p workflow.PartnerID, role workflow.RoleName) bool {
	return slices.ContainsFunc(v.s.credentials[p], func(e *log.Entry) bool {
		v.s.log.Steps++
		return slices.Contains(e.Roles, role) && v.knew(e)
	})
}

// mayPerform says why an attempt's holder may not perform it; "": it may. What
// undoes something is performed when it succeeds, everything else when it starts. Instead of
// its holder a person may show the role, whose result closed it (claims.go).
func (v *Evidence) mayPerform(a *Attempt) string {
	if t := v.does(a); t.ByRole() && !v.HasRole(a.Partner, t.Role) && !v.PersonDid(a) {
		return "its author has not shown that it has the role of the task"
	}
	return ""
}

// PersonDid reports whether the result of a person who showed the role of its task closed an attempt.
func (v *Evidence) PersonDid(a *Attempt) bool { return v.any(v.s.peoples.done[a.ID]) }
