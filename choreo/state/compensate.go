package state

import (
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file undoes what lost (docs/design.md, rule 5), and what an order has undone (orders.go).
//
//	superseded ── shown at once
//	    │   nothing runs in its slot or a later one, and every participant has
//	    │   shown that it knows all the slot's successes (by a `seen` fact, if
//	    │   it has nothing else to say) or was written off
//	settled
//	    │   what was built upon it has been undone
//	compensation starts: from here on there is no way back
//	    │
//	succeeded, or failed for good: an incident
//
// A compensation is an attempt that fills no slot. It is named by a success of
// the attempt that it undoes, is held by that one's performer, and is started,
// tried again and ended by the same facts as any other. What it writes is
// recorded and counts for nothing: neither did what it undoes.

// What undoes it is what the definition says that counts now, until that begins: an amendment may give a
// compensation to what has succeeded before, or another one. From then on it is what whoever began it knew,
// whatever is amended elsewhere.

// compensationOf is what undoes an attempt, by a definition; nil: nothing does.
func (s *State) compensationOf(def *workflow.Definition, a *Attempt) *workflow.Task {
	if a.Fired != nil || len(s.edition.heavy) == 0 {
		return def.CompensationOf(a.Task)
	}
	known := def.Task(a.Task.Name)
	if known == nil {
		return nil
	}
	t := *s.limited(a.Task)
	t.Compensate = known.Compensate
	u := def.CompensationOf(&t)
	if u != nil && t.Compensate.Task != "" {
		u = s.limited(u)
	}
	return u
}

// does is what the holder of an attempt performs, as the author of what is judged knew: of a compensation that has
// begun what its definition said then, of one that has not what it says now. Nil: nothing undoes that.
func (v *Evidence) does(a *Attempt) *workflow.Task {
	if a.Undoes == nil || a.Undoes.Fired != nil || len(v.s.edition.heavy) == 0 {
		return a.Task
	}
	if began := v.began(a); began != nil && began != v.of {
		v = v.s.EvidenceOf(began)
	}
	return v.s.compensationOf(v.under(), a.Undoes)
}

// undoneElsewhere makes the compensation of which a fact is a start, if its author knew of one, and by the
// definition of now there is none.
func (s *State) undoneElsewhere(id fact.AttemptID, e *log.Entry) {
	of := s.bySucc[id.Fact]
	if len(s.edition.heavy) == 0 || s.attempts[id] != nil || of == nil || of.ID.Slot != id.Slot ||
		of.Partner != e.Fact.Chain.Author || !s.log.Knew(e, s.log.ByID()[id.Fact]) {
		return
	}
	if t := s.compensationOf(s.EvidenceOf(e).under(), of); t != nil && of.Undo == nil {
		of.Undo = s.undoing(of, t, s.log.ByID()[id.Fact])
	}
	if of.Undo != nil {
		s.attempts[id] = of.Undo
	}
}

// Lost reports whether the attempt finished for nothing, or is to be undone by order, and has
// a compensation that has not begun.
func (a *Attempt) Lost() bool {
	return a.Undo != nil && (a.Stands == Superseded || a.toUndo) && a.Success() != nil && a.Undo.Start == nil
}

// Undoing reports whether the attempt's compensation has begun and not ended.
func (a *Attempt) Undoing() bool { return a.Undo != nil && a.Undo.Start != nil && !a.Undo.ended() }

// MayUndo reports whether the compensation of an attempt that lost may begin.
func (s *State) MayUndo(a *Attempt) bool {
	builtUponIt := func(u *Attempt) bool {
		return (u.Lost() || u.Undoing()) && s.writtenOff[u.Partner] == nil
	}
	if a.Fired != nil {
		return s.settledFlow(a)
	}
	return !slices.ContainsFunc(a.Users, builtUponIt) && s.settled(a.Slot)
}

// LooksForUndoing says whether what is to be undone is looked at now; if not, when.
type LooksForUndoing struct {
	Now  bool
	Wake time.Duration // Boot; 0: never
}

// settled reports whether no fact that is still to come can make the slot's
// superseded successes stand, as long as nobody who was written off comes back.
func (s *State) settled(sl *Slot) bool {
	for _, x := range s.andLater(sl) {
		if slices.ContainsFunc(x.Attempts,
			func(a *Attempt) bool { return a.Runs() && s.writtenOff[a.Partner] == nil }) {
			return false
		}
	}
	for p := range s.joined {
		s.log.Steps++
		if s.writtenOff[p] == nil && !s.hasSeen(p, sl) {
			return false
		}
	}
	return true
}

// andLater is a slot with all that waits for it, directly or not.
func (s *State) andLater(sl *Slot) []*Slot {
	out := []*Slot{sl}
	in, read := map[*Slot]bool{sl: true}, map[*DataItem]bool{}
	add := func(ds []*Slot) {
		for _, d := range ds {
			if !in[d] {
				in[d] = true
				out = append(out, d)
			}
		}
	}
	for i := 0; i < len(out); i++ {
		s.log.Steps++
		add(out[i].Dependents)
		for _, it := range out[i].Writes {
			if !read[it] {
				read[it] = true
				add(it.Askers)
			}
		}
	}
	return out
}

// hasSeen reports whether a counted fact of the partner has all the slot's
// successes in its past.
func (s *State) hasSeen(p workflow.PartnerID, sl *Slot) bool {
	return s.anyHeeded(p, func(e *log.Entry) bool { return s.KnewSuccesses(e, sl) })
}

// anyHeeded reports whether something is so of a counted fact of a partner.
func (s *State) anyHeeded(p workflow.PartnerID, is func(*log.Entry) bool) bool {
	return slices.ContainsFunc(s.log.ByAuthor()[p],
		func(c *log.Chain) bool { return slices.ContainsFunc(c.Heeded(), is) })
}

func (s *State) KnewSuccesses(e *log.Entry, sl *Slot) bool {
	return !slices.ContainsFunc(sl.Attempts, func(a *Attempt) bool {
		return slices.ContainsFunc(a.Successes, func(ok *log.Entry) bool { return !s.log.Knew(e, ok) })
	})
}

// settledFlow reports whether no fact that is still to come can make a transition count that does
// not: no other holder goes on, and each participant has shown that it knows of all who held the
// flow, and of the transition's success, or was written off.
func (s *State) settledFlow(job *Attempt) bool {
	f := s.flow
	end := f.end()
	for _, a := range f.Slot.Attempts {
		if a != end && a.Runs() && s.writtenOff[a.Partner] == nil {
			return false
		}
	}
	for p := range s.joined {
		s.log.Steps++
		if s.writtenOff[p] == nil && !s.anyHeeded(p, func(e *log.Entry) bool { return s.KnewFlow(e, job) }) {
			return false
		}
	}
	return true
}

// KnewFlow reports whether a fact's author knew of all who held the flow, and of a success.
func (s *State) KnewFlow(e *log.Entry, job *Attempt) bool {
	for _, a := range s.flow.Slot.Attempts {
		if a.Start != nil && !s.log.Knew(e, a.Start) {
			return false
		}
	}
	return e == job.Success() || s.log.Knew(e, job.Success())
}
