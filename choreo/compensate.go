package choreo

import (
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/workflow"
)

const (
	// undoPause is for how long, where it takes many steps to look at all that is to be
	// undone, it is left alone for each of them: it is not looked at for each fact.
	undoPause = time.Microsecond
	manySteps = 1000
)

// mayLookForUndoing says whether this decision looks at what is to be undone: each such
// slot takes a look at all that may be later, and at all participants.
func (d *decision) mayLookForUndoing() state.LooksForUndoing {
	desk := d.look()
	steps := len(desk.undoing) * (len(d.state.Slots()) + len(d.state.Joined()))
	next := desk.undid + time.Duration(steps)*undoPause
	switch {
	case steps == 0:
		return state.LooksForUndoing{Now: true}
	case steps > manySteps && desk.undid > 0 && d.now.Boot < next:
		return state.LooksForUndoing{Wake: next}
	}
	desk.undid = max(d.now.Boot, 1) // 0 is never
	return state.LooksForUndoing{Now: true}
}

// undo does what this node has to do about the slot's successes that lost. It
// reports whether it added facts.
func (d *decision) undo(sl *state.Slot) (added bool) {
	for _, a := range d.state.MayUndoIn(sl) {
		switch {
		case a.Lost() && !d.haveSaidOf(a):
			if _, err := d.append(fact.Body{Seen: &fact.Seen{}}); err == nil {
				return true
			}
		case a.Partner != d.self:
		case a.Undoing():
			added = d.resume(a.Undo) || added
		case a.Lost() && d.state.MayUndo(a):
			if d.start(a.Undo, 1) {
				return true
			}
		case a.Lost():
			added = d.writeOffEvicted() || added
		}
	}
	return added
}

// haveSaid reports whether a fact of ours shows that this node knows all the slot's
// successes.
func (m *Machine) haveSaid(sl *state.Slot) bool {
	return m.own != nil && m.state.KnewSuccesses(m.own, sl)
}

// haveSaidOf reports whether a fact of ours shows that this node knows all that an attempt that lost
// waits for.
func (m *Machine) haveSaidOf(a *state.Attempt) bool {
	if a.Fired != nil {
		return m.own != nil && m.state.KnewFlow(m.own, a)
	}
	return m.haveSaid(a.Slot)
}

// cleansUp reports whether this node still has something to do about successes
// that lost.
func (m *Machine) cleansUp() bool {
	for sl := range m.look().undoing {
		if slices.ContainsFunc(m.state.MayUndoIn(sl), func(a *state.Attempt) bool {
			mine := a.Partner == m.self && (a.Lost() || a.Undoing())
			return mine || (a.Lost() && !m.haveSaidOf(a))
		}) {
			return true
		}
	}
	return false
}

// personsUndo finds a compensation of that name that waits for a person: rather one here than elsewhere.
func (m *Machine) personsUndo(t workflow.TaskName) (found *state.Attempt) {
	for _, u := range append(m.peoplesUndoing(), m.state.PeoplesJobs()...) {
		switch {
		case u.Undoes == nil || u.Task.Name != t:
		case u.Partner == m.self:
			return u
		case found == nil:
			found = u
		}
	}
	return found
}

// peoplesUndoing are the compensations that wait for people, in rule order, but for that for which the recovery of a
// flow waits.
func (m *Machine) peoplesUndoing() (out []*state.Attempt) {
	for _, sl := range inOrder(m.look().undoing) {
		for _, a := range m.state.MayUndoIn(sl) {
			if a.Undo != nil && m.state.Wanted(a.Undo) && !a.Undo.Task.ByNode() {
				out = append(out, a.Undo)
			}
		}
	}
	return out
}
