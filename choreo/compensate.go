package choreo

import (
	"slices"
	"time"

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

// undoable gives an attempt that has succeeded its compensation, if the author
// of the definition wants one.
func (s *State) undoable(a *Attempt, success *entry) {
	id := AttemptID{Fact: success.id, Slot: a.ID.Slot}
	if a.undo == nil {
		t := s.def.CompensationOf(a.Task)
		if t == nil {
			return
		}
		a.undo = &Attempt{
			ID: id, Slot: a.Slot, Task: t, Partner: a.Partner, Depth: a.Depth, assigned: success, undoes: a,
			turns: noTurns,
		}
	}
	s.attempts[id] = a.undo
}

// lost reports whether the attempt finished for nothing, or is to be undone by order, and has
// a compensation that has not begun.
func (a *Attempt) lost() bool {
	return a.undo != nil && (a.stands == superseded || a.toUndo) && a.success() != nil && a.undo.start == nil
}

// undoing reports whether the attempt's compensation has begun and not ended.
func (a *Attempt) undoing() bool { return a.undo != nil && a.undo.start != nil && !a.undo.ended() }

// ended reports whether a compensation has ended, well or not.
func (a *Attempt) ended() bool { return a.success() != nil || a.endedByHolder() }

// mayUndo reports whether the compensation of an attempt that lost may begin.
func (s *State) mayUndo(a *Attempt) bool {
	builtUponIt := func(u *Attempt) bool {
		return (u.lost() || u.undoing()) && s.writtenOff[u.Partner] == nil
	}
	if a.fired != nil {
		return s.settledFlow(a)
	}
	return !slices.ContainsFunc(a.users, builtUponIt) && s.settled(a.Slot)
}

const (
	// undoPause is for how long, where it takes many steps to look at all that is to be
	// undone, it is left alone for each of them: it is not looked at for each fact.
	undoPause = time.Microsecond
	manySteps = 1000
)

// looksForUndoing says whether what is to be undone is looked at now; if not, when.
type looksForUndoing struct {
	now  bool
	wake time.Duration // Boot; 0: never
}

// mayLookForUndoing says whether this decision looks at what is to be undone: each such
// slot takes a look at all that may be later, and at all participants.
func (d *decision) mayLookForUndoing() looksForUndoing {
	desk := d.look()
	steps := len(desk.undoing) * (len(d.state.slots) + len(d.state.joined))
	next := desk.undid + time.Duration(steps)*undoPause
	switch {
	case steps == 0:
		return looksForUndoing{now: true}
	case steps > manySteps && desk.undid > 0 && d.now.Boot < next:
		return looksForUndoing{wake: next}
	}
	desk.undid = max(d.now.Boot, 1) // 0 is never
	return looksForUndoing{now: true}
}

// settled reports whether no fact that is still to come can make the slot's
// superseded successes stand, as long as nobody who was written off comes back.
func (s *State) settled(sl *Slot) bool {
	for _, x := range s.andLater(sl) {
		if slices.ContainsFunc(x.Attempts,
			func(a *Attempt) bool { return a.runs() && s.writtenOff[a.Partner] == nil }) {
			return false
		}
	}
	for p := range s.joined {
		s.log.steps++
		if s.writtenOff[p] == nil && !s.hasSeen(p, sl) {
			return false
		}
	}
	return true
}

// andLater is a slot with all that waits for it, directly or not.
func (s *State) andLater(sl *Slot) []*Slot {
	out := []*Slot{sl}
	in, read := map[*Slot]bool{sl: true}, map[*item]bool{}
	add := func(ds []*Slot) {
		for _, d := range ds {
			if !in[d] {
				in[d] = true
				out = append(out, d)
			}
		}
	}
	for i := 0; i < len(out); i++ {
		s.log.steps++
		add(out[i].dependents)
		for _, it := range out[i].writes {
			if !read[it] {
				read[it] = true
				add(it.askers)
			}
		}
	}
	return out
}

// runs reports whether an attempt was started and has not ended, as far as is
// known.
func (a *Attempt) runs() bool {
	return a.start != nil && a.off == nil && !a.ended()
}

// hasSeen reports whether a counted fact of the partner has all the slot's
// successes in its past.
func (s *State) hasSeen(p workflow.PartnerID, sl *Slot) bool {
	return s.anyHeeded(p, func(e *entry) bool { return s.knewSuccesses(e, sl) })
}

// anyHeeded reports whether something is so of a counted fact of a partner.
func (s *State) anyHeeded(p workflow.PartnerID, is func(*entry) bool) bool {
	return slices.ContainsFunc(s.log.byAuthor[p], func(c *chain) bool { return slices.ContainsFunc(c.heeded(), is) })
}

func (s *State) knewSuccesses(e *entry, sl *Slot) bool {
	return !slices.ContainsFunc(sl.Attempts, func(a *Attempt) bool {
		return slices.ContainsFunc(a.successes, func(ok *entry) bool { return !s.log.knew(e, ok) })
	})
}

// undo does what this node has to do about the slot's successes that lost. It
// reports whether it added facts.
func (d *decision) undo(sl *Slot) (added bool) {
	for _, a := range d.state.mayUndoIn(sl) {
		switch {
		case a.lost() && !d.haveSaidOf(a):
			if _, err := d.append(Body{Seen: &Seen{}}); err == nil {
				return true
			}
		case a.Partner != d.self:
		case a.undoing():
			added = d.resume(a.undo) || added
		case a.lost() && d.state.mayUndo(a):
			if d.start(a.undo, 1) {
				return true
			}
		case a.lost():
			added = d.writeOffEvicted() || added
		}
	}
	return added
}

// haveSaid reports whether a fact of ours shows that this node knows all the slot's
// successes.
func (m *Machine) haveSaid(sl *Slot) bool {
	return m.own != nil && m.state.knewSuccesses(m.own, sl)
}

// haveSaidOf reports whether a fact of ours shows that this node knows all that an attempt that lost
// waits for.
func (m *Machine) haveSaidOf(a *Attempt) bool {
	if a.fired != nil {
		return m.own != nil && m.state.knewFlow(m.own, a)
	}
	return m.haveSaid(a.Slot)
}

// cleansUp reports whether this node still has something to do about successes
// that lost.
func (m *Machine) cleansUp() bool {
	for sl := range m.look().undoing {
		if slices.ContainsFunc(m.state.mayUndoIn(sl), func(a *Attempt) bool {
			mine := a.Partner == m.self && (a.lost() || a.undoing())
			return mine || (a.lost() && !m.haveSaidOf(a))
		}) {
			return true
		}
	}
	return false
}

// failUndo records that a compensation failed for good. Nothing stands in for
// one: people have to look at it.
func (d *decision) failUndo(u *Attempt, cause Cause, reason string) bool {
	e, err := d.append(Body{Verdict: &Verdict{
		Cause: cause, Reason: clip(reason), Actions: []Action{{Attempt: u.ID, Kind: workflow.FailBlock}},
	}})
	return err == nil && e.counted
}

// personsUndo finds a compensation of that name that waits here for a person.
func (m *Machine) personsUndo(t workflow.TaskName) *Attempt {
	for _, sl := range inOrder(m.look().undoing) {
		for _, a := range m.state.mayUndoIn(sl) {
			if u := a.undo; u != nil && u.Task.Name == t && !u.Task.ByNode() && a.Partner == m.self && a.undoing() {
				return u
			}
		}
	}
	return nil
}
