package meaning

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file answers what is asked about time: how the instance stood for somebody
// at a moment.

// Known is what the author of a fact knew of its past at some moment: what keep says.
func (h *History) Known(id fact.ID, keep func(fact.ID) bool) *Meaning {
	past := h.before(h.index[id])
	in := make(Set, len(past))
	for i := range h.facts {
		if past.has(i) && (i == 0 || keep(h.facts[i].id)) {
			in.add(i)
		}
	}
	return h.Of(in)
}

// Clocked reports whether the time of an attempt ran for its holder: it was ready or
// running there.
func (m *Meaning) Clocked(id fact.AttemptID) bool {
	a := m.attempts[id]
	switch {
	case a == nil:
		return false
	case a.undoes != nil:
		return a.start != none
	case a.fired != nil:
		return m.live(a)
	}
	return m.live(a) && (a.start != none || m.mayStart(a))
}

// Open reports whether an attempt was in charge and unfinished.
func (m *Meaning) Open(id fact.AttemptID) bool {
	a := m.attempts[id]
	return a != nil && a.undoes == nil && a.slot.Current == a && !a.slot.State.Done() && !a.slot.Pending
}

// OpenIn reports whether an attempt was in charge in a task's place, and unfinished, for which the holder of a partition
// answers that has a time-out as a whole.
func (m *Meaning) OpenIn(t workflow.TaskName) bool {
	sl := m.bySlot[t]
	return sl != nil && m.Open(sl.Current.ID) && m.Answered(sl.Current.ID, true)
}

// Awaited reports whether a task had not become ready yet, nor ended.
func (m *Meaning) Awaited(t workflow.TaskName) bool {
	sl := m.bySlot[t]
	return sl != nil && sl.State == workflow.NotReady
}

// Began reports whether the slot of an attempt was ready or running.
func (m *Meaning) Began(id fact.AttemptID) bool {
	a := m.attempts[id]
	return a != nil && (a.slot.State == workflow.Ready || a.slot.State == workflow.Running)
}

// RuleHolds reports whether the rule of an attempt's slot held.
func (m *Meaning) RuleHolds(id fact.AttemptID) bool {
	a := m.attempts[id]
	return a != nil && m.rule3(a.slot).truth == workflow.True
}

// HolderOf is the holder of an attempt, and its task.
func (m *Meaning) HolderOf(id fact.AttemptID) (workflow.PartnerID, *workflow.Task) {
	if a := m.attempts[id]; a != nil {
		return a.Partner, a.task
	}
	return "", nil
}

// Answered reports whether the holder of its partition answers for an attempt: for the
// first in a slot, and for what that was passed on to where the partition has a time-out as
// a whole. Not for a contingency.
func (m *Meaning) Answered(id fact.AttemptID, whole bool) bool {
	a := m.attempts[id]
	if a == nil {
		return false
	}
	last := a.slot.Attempts[0]
	for whole && len(last.passed) > 0 {
		last = m.next(last)
	}
	return a == a.slot.Attempts[0] || a == last
}

// Heard are the facts that made an attempt what it is: first that by which it was given out,
// then those that ended what its slot waits for.
func (m *Meaning) Heard(id fact.AttemptID) (out []fact.ID) {
	a := m.attempts[id]
	if a == nil {
		return nil
	}
	out = append(out, m.h.facts[a.assigned].id)
	for _, from := range m.before(a.slot) {
		switch {
		case from.Pick != nil:
			out = append(out, m.h.facts[from.Pick.success()].id)
		case from.outcome != nil:
			out = append(out, m.h.facts[from.outcome.at].id)
		}
	}
	return out
}

// Armed reports whether one of the tasks that a task waits for was known to be ready,
// running or finished.
func (m *Meaning) Armed(t workflow.TaskName) bool {
	return slices.ContainsFunc(m.before(m.bySlot[t]), func(sl *Slot) bool { return sl.State != workflow.NotReady })
}

// EndedBefore reports whether all had ended elsewhere that tasks wait for.
func (m *Meaning) EndedBefore(tasks []workflow.TaskName) bool {
	for _, t := range tasks {
		sl := m.bySlot[t]
		if sl == nil {
			continue
		}
		for _, from := range m.waitsFor(sl) {
			if !slices.Contains(tasks, from.Task.Name) && !from.State.Done() {
				return false
			}
		}
	}
	return true
}

// Active reports whether one of the tasks was ready or running for the partner that
// holds them.
func (m *Meaning) Active(tasks []workflow.TaskName) bool {
	return slices.ContainsFunc(tasks, func(t workflow.TaskName) bool {
		sl := m.bySlot[t]
		return sl != nil && !sl.Pending && (sl.State == workflow.Ready || sl.State == workflow.Running)
	})
}

// BuiltUpon calls fn with each attempt that succeeded and each other that its start
// was built upon, and so holds up.
func (m *Meaning) BuiltUpon(fn func(a, upon fact.AttemptID)) {
	for _, sl := range m.slots {
		for _, a := range sl.Attempts {
			if a.success() == none {
				continue
			}
			for _, b := range m.builtUpon(a) {
				if !m.props(a, b) {
					fn(a.ID, b.ID)
				}
			}
		}
	}
}
