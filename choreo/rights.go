package choreo

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file says what an author may say of an attempt, by what it knew when it
// said it: what it knew is in the facts, and does not change any more.
//
//	ready       its task has a rule about data, or a trigger
//	start       it holds the attempt, has the role and a unit of what its task holds, and the
//	            rule may have held: for each term it knew a fact from which that can follow
//	success     it had started, and told of no other end
//	called off  it knew why the attempt was not needed
//
// Who may say something about other partners stands with those facts (verdicts.go,
// writeoff.go).
//
// More that it knew never makes less of this so. What is held against it is another
// matter, that its task was done or cancelled, given up or passed on: a fork may have
// taken that away from it, and others give it back. So that counts here where it counted
// for certain (converge.go, rule 8).
//
// Whether a trigger's wait was over, whether data were what the rule asks for,
// and when a partner is to be given up rest on local clocks and on what was seen
// here. That cannot be proved, and is its author's word.

// evidence is what may have been true as far as a fact's author knew.
type evidence struct {
	s      *State
	of     *entry // nil: of all that counts here
	number int    // of this evidence; State.evidences counts them
	within bool   // a rule is being read, perhaps for another one
}

// ruleWas is what one evidence says of a slot's rule: whether it may have been so.
// While that is being found out, it may not.
type ruleWas struct {
	by int // the evidence; 0: none was asked
	is bool
}

// reading is what a rule was found to be for a fact, which is kept where that took many
// steps. What may be so stays so for what follows in the strand, and what may not be so
// as long as its author knows no more.
type reading struct {
	is     bool
	others vector // what it knew of others
	said   int    // of what it had said itself, how much changed something
	at     int    // the first of what the rule asks for that may not be so
}

// readingOf names it: by its author, of which slot, and whether it is about the rule
// having come to hold.
type readingOf struct {
	strand *strand
	slot   *Slot
	held   bool
}

// keptFrom is from how many steps on a reading is kept.
const keptFrom = 32

func (s *State) evidenceOf(e *entry) *evidence {
	s.evidences++
	return &evidence{s: s, of: e, number: s.evidences}
}

func (v *evidence) knew(e *entry) bool { return e != nil && (v.of == nil || v.s.log.knew(v.of, e)) }

// certain is knew for what is held against the author.
func (v *evidence) certain(e *entry) bool { return v.of == nil || v.s.certain(v.of, e) }

func (v *evidence) any(es []*entry) bool { return slices.ContainsFunc(es, v.knew) }

// held reports whether the rule of a slot's task can have held, and ended whether it
// can have become impossible.
func (v *evidence) held(sl *Slot) bool {
	return !sl.Task.Disabled && v.rule(sl, &sl.mayHold, true)
}

func (v *evidence) ended(sl *Slot) bool {
	return sl.Task.Disabled || v.rule(sl, &sl.mayEnd, false)
}

func (v *evidence) rule(sl *Slot, was *ruleWas, held bool) bool {
	r := sl.Task.Rule
	if r == nil {
		return held
	}
	if was.by != v.number {
		*was = ruleWas{by: v.number}
		if v.of == nil || v.within {
			was.is = v.read(r, held)
		} else {
			was.is = v.reread(sl, held)
		}
	}
	return was.is
}

func (v *evidence) read(r *workflow.Rule, held bool) bool {
	return v.came(r, held) || (held && v.dropped(r))
}

// reread reads a slot's rule unless that was done for an earlier fact of the strand that
// says enough. Of a rule that asks for several things it goes on with the first that was
// not so.
func (v *evidence) reread(sl *Slot, held bool) bool {
	of, readings := readingOf{v.of.strand, sl, held}, v.s.readings
	was, known := readings[of]
	if known && (was.is || was.said == v.of.strand.said && was.others.covers(v.of.others)) {
		return was.is
	}
	before := v.s.log.steps
	is := reading{others: v.of.others, said: v.of.strand.said, at: was.at}
	v.within = true
	if r := sl.Task.Rule; held && r.Op == workflow.OpAnd {
		for is.at < len(r.Args) && v.read(r.Args[is.at], true) {
			is.at++
		}
		is.is = is.at == len(r.Args)
	} else {
		is.is = v.read(r, held)
	}
	v.within = false
	if known || v.s.log.steps-before >= keptFrom {
		readings[of] = is
	}
	return is.is
}

// came reports whether a rule, or a part of one, can have come to hold or, if not
// held, to be impossible.
func (v *evidence) came(r *workflow.Rule, held bool) bool {
	v.s.log.steps++
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
func (v *evidence) dropped(r *workflow.Rule) bool {
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
func (v *evidence) term(tr workflow.Transition, t workflow.TaskName, held bool) bool {
	if sl := v.s.bySlot[t]; sl != nil {
		return v.slot(tr, sl, held)
	}
	slots := v.s.slotsOf(t)
	if held {
		return slices.ContainsFunc(slots, func(sl *Slot) bool { return v.standIn(tr, sl, t) })
	}
	return !slices.ContainsFunc(slots, func(sl *Slot) bool {
		over := v.succeeded(sl) || v.failed(sl) || v.ended(sl)
		tried := func(a *Attempt) bool {
			ruled := func(r *ruling) bool { return v.knew(r.at) }
			return a.Task.Name == t && v.knew(a.assigned) && slices.ContainsFunc(a.rulings, ruled)
		}
		return !over && !slices.ContainsFunc(sl.Attempts, tried)
	})
}

func (v *evidence) slot(tr workflow.Transition, sl *Slot, held bool) bool {
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
	return v.begun(sl) || v.succeeded(sl) || (!sl.hasData && v.held(sl))
}

// standIn reports whether a task that is only a contingency can have made a
// transition in a slot.
func (v *evidence) standIn(tr workflow.Transition, sl *Slot, t workflow.TaskName) bool {
	return slices.ContainsFunc(sl.Attempts, func(a *Attempt) bool {
		if a.Task.Name != t || !v.knew(a.assigned) {
			return false
		}
		switch tr {
		case workflow.BecameReady:
			return true
		case workflow.BecameRunning:
			return v.any(a.starts) || v.any(a.successes)
		case workflow.BecameFailed:
			return slices.ContainsFunc(a.rulings, func(r *ruling) bool { return v.knew(r.at) })
		}
		return v.any(a.successes)
	})
}

func (v *evidence) succeeded(sl *Slot) bool {
	return slices.ContainsFunc(sl.Attempts, func(a *Attempt) bool { return v.any(a.successes) }) ||
		(sl.Dropped != nil && v.held(sl))
}

func (v *evidence) started(sl *Slot) bool {
	return slices.ContainsFunc(sl.Attempts, func(a *Attempt) bool { return v.any(a.starts) })
}

func (v *evidence) failed(sl *Slot) bool {
	return slices.ContainsFunc(sl.Attempts, func(a *Attempt) bool { return v.any(a.offs) }) ||
		v.ruled(sl, workflow.FailBlock) || v.ruled(sl, workflow.FailRelease)
}

// ruled reports whether a verdict with such an action on the slot was known.
func (v *evidence) ruled(sl *Slot, kind workflow.FailureAction) bool {
	return slices.ContainsFunc(sl.Attempts, func(a *Attempt) bool {
		return slices.ContainsFunc(a.rulings, func(r *ruling) bool { return r.action.Kind == kind && v.knew(r.at) })
	})
}

// begun reports whether the slot was known to be ready, or started, in one of its
// attempts.
func (v *evidence) begun(sl *Slot) bool {
	return slices.ContainsFunc(sl.Attempts, func(a *Attempt) bool { return v.any(a.readied) || v.any(a.starts) })
}

// givenUp reports whether an attempt's holder was known to have given it up.
func (v *evidence) givenUp(a *Attempt) bool {
	return slices.ContainsFunc(a.rulings, func(r *ruling) bool { return r.final && v.knew(r.at) })
}

// gaveUp is givenUp where that is held against the author.
func (v *evidence) gaveUp(a *Attempt) bool {
	return slices.ContainsFunc(a.rulings, func(r *ruling) bool { return r.final && v.certain(r.at) })
}

// mayReady says why an attempt cannot have become ready by its holder's word; "":
// it can.
func (v *evidence) mayReady(a *Attempt, trigger bool) string {
	switch {
	case a.beside():
		return "it waits for no rule"
	case a.Slot.Task.Disabled:
		return "its task is not enabled"
	case trigger && a.Slot.Task.TimeToWait == 0:
		return "its task has no trigger"
	case !trigger && !a.Slot.hasData:
		return "its rule is not about data"
	case !trigger && !v.held(a.Slot):
		return "its rule did not hold, as far as its author knew"
	}
	return ""
}

// mayStart says why an attempt's holder may not have started it; "": it may.
func (v *evidence) mayStart(a *Attempt) string {
	sl := a.Slot
	done := func(o *Attempt) bool { return slices.ContainsFunc(o.successes, v.certain) && !v.givenUp(o) }
	switch {
	case a.transition() && !v.any(a.starts):
		return v.mayPerform(a)
	case a.beside() || v.any(a.starts):
		return ""
	case v.mayPerform(a) != "":
		return v.mayPerform(a)
	case sl.Dropped != nil:
		return "its task is not needed"
	case sl.Task.Disabled:
		return "its task is not enabled"
	case slices.ContainsFunc(v.s.cancels, v.certain):
		return "it was started after the instance was cancelled"
	case v.gaveUp(a):
		return "its author had given the attempt up"
	case slices.ContainsFunc(a.passed, func(n *Attempt) bool { return v.certain(n.assigned) }):
		return "its author had passed the attempt on"
	case slices.ContainsFunc(sl.Attempts, done):
		return "its task had been done, as its author knew"
	case v.unitless(a) != "":
		return v.unitless(a)
	case v.begun(sl):
		return ""
	case sl.hasData || !v.held(sl):
		return "its rule did not hold, as far as its author knew"
	}
	return ""
}

// mayFail says why an attempt's holder may not tell that a try of it failed; "": it
// may.
func (v *evidence) mayFail(a *Attempt) string {
	if !v.any(a.starts) {
		return "it was not started"
	}
	return ""
}

// maySucceed says why an attempt's holder may not tell that it succeeded; "": it may.
func (v *evidence) maySucceed(a *Attempt) string {
	known := func(i int) bool { return v.knew(a.successes[i]) }
	switch {
	case !v.any(a.starts):
		return "it was not started"
	case v.gaveUp(a):
		return "its author had given the attempt up"
	case slices.ContainsFunc(a.successes, v.certain) || v.s.atLeast(MaxSuccesses, len(a.successes), known):
		return "it had succeeded already"
	case a.undoes != nil:
		return v.mayPerform(a)
	}
	return ""
}

// mayCallOff says why an attempt's holder may not call it off; "": it may.
func (v *evidence) mayCallOff(a *Attempt) string {
	if !a.beside() && v.any(v.s.cancels) {
		return ""
	}
	before := map[*Attempt]bool{}
	because := map[*ruling]bool{}
	for b := a; b != nil; b = b.after {
		before[b], because[b.by] = true, true
	}
	replaced := func(o *Attempt) bool {
		return v.any(o.successes) || (!before[o] && v.knew(o.assigned)) ||
			slices.ContainsFunc(o.rulings, func(r *ruling) bool { return !because[r] && v.knew(r.at) })
	}
	if a.beside() || !slices.ContainsFunc(a.Slot.Attempts, replaced) {
		return "it was still needed, as far as its author knew"
	}
	return ""
}

// Trust checks what authors show to prove their rights, which are in the facts:
// its answers depend on its arguments alone, not on time or place.
type Trust interface {
	// Roles are the roles that credentials prove a partner to have.
	Roles(p workflow.PartnerID, credentials []byte) ([]workflow.RoleName, error)
	// Evicted returns an error unless proof shows that a partner was evicted.
	Evicted(p workflow.PartnerID, proof []byte) error
	// Speaker is the person whose word that is for what was signed.
	Speaker(word []byte, signed [32]byte) (Speaker, error)
}

// shown notes what a fact shows its author to have. It says why the fact does not
// count; "": it does, as far as that goes.
func (s *State) shown(e *entry) string {
	if len(e.fact.Body.Credentials) == 0 {
		return ""
	}
	if !e.checked {
		e.checked = true
		if s.trust != nil {
			e.roles, e.untrue = s.trust.Roles(e.fact.Chain.Author, e.fact.Body.Credentials)
		} else {
			e.untrue = errNoTrust
		}
	}
	if e.untrue != nil {
		return "its author's credentials are not true"
	}
	of := s.credentials[e.fact.Chain.Author]
	if !slices.ContainsFunc(of, func(o *entry) bool { return o.strand == e.strand && slices.Equal(o.roles, e.roles) }) {
		s.credentials[e.fact.Chain.Author] = append(of, e) // an author that knows of this fact knows of the earlier one
	}
	return ""
}

var errNoTrust = errors.New("this node trusts nobody's credentials")

// cutOff refuses a fact of a forked chain. Those to whom it gave work, having taken
// part from the start, took part as far as it knew.
func (s *State) cutOff(e *entry) {
	s.refuse(e, forkedAway)
	if s.log.original[e.fact.Chain.Author] {
		for p := range e.fact.Body.appoints() {
			s.former[p] = earlier(s.former[p], e)
		}
	}
}

// mayCreate returns an error unless the author of a genesis shows that it has the
// role which the definition wants of an initiator, and shows nothing
// that is untrue.
func mayCreate(trust Trust, def *workflow.Definition, genesis *Fact) error {
	credentials := genesis.Body.Credentials
	if def.CreatorRole == "" && len(credentials) == 0 {
		return nil
	}
	if def.CreatorRole == "" {
		return proves(trust, credentials, genesis.Chain.Author, "")
	}
	if err := proves(trust, credentials, genesis.Chain.Author, def.CreatorRole); err != nil {
		return fmt.Errorf("workflow %s: %w", def.Name, err)
	}
	return nil
}

// proves returns an error unless credentials prove that a partner has a role.
func (s *State) proves(credentials []byte, p workflow.PartnerID, role workflow.RoleName) error {
	return proves(s.trust, credentials, p, role)
}

func proves(trust Trust, credentials []byte, p workflow.PartnerID, role workflow.RoleName) error {
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

// hasRole reports whether the author of what is judged had shown that it has a role.
func (v *evidence) hasRole(p workflow.PartnerID, role workflow.RoleName) bool {
	return slices.ContainsFunc(v.s.credentials[p], func(e *entry) bool {
		v.s.log.steps++
		return slices.Contains(e.roles, role) && v.knew(e)
	})
}

// mayPerform says why an attempt's holder may not perform it; "": it may. What
// undoes something is performed when it succeeds, everything else when it starts. Instead of
// its holder a person may show the role, whose result closed it (claims.go).
func (v *evidence) mayPerform(a *Attempt) string {
	if a.Task.ByRole() && !v.hasRole(a.Partner, a.Task.Role) && !v.personDid(a) {
		return "its author has not shown that it has the role of the task"
	}
	return ""
}
