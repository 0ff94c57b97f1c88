package choreo

import (
	"errors"
	"fmt"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is about automatic tasks that workers do: programs beside a node that take
// tries of attempts and bring their results. Who has one is the holder's to say.

// awaits is the attempt of which a try runs here; nil: it does not, or not any more.
func (d *decision) awaits(id fact.AttemptID, try int) *state.Attempt {
	a := d.state.Attempts()[id]
	if a == nil || !d.heeded() || a.Partner != d.self || a.Start == nil || a.Off != nil || a.Success() != nil ||
		a.EndedByHolder() {
		return nil
	}
	if a.Try() != try || !d.running[id] {
		return nil
	}
	return a
}

// ErrConflict is returned for a result that will be recorded, and makes its transition fail, as its author wants of
// conflicts, or comes to nothing, as it does not undo what it was to undo.
var ErrConflict = errors.New("the job has failed by this result")

// Lease records that a worker has a try that runs here. The error is ErrNotAwaited where
// it does not run, or says which limit the lease is beyond.
func (m *Machine) Lease(l fact.Lease, now Moment) error {
	d := m.deciding(now, nil)
	defer m.reuse(d)
	if d.awaits(l.Attempt, l.Try) == nil {
		return ErrNotAwaited
	}
	_, err := d.append(fact.Body{Lease: &l})
	return err
}

// CheckResult says why outputs could not be the result of a try that runs here:
// ErrNotAwaited, or that its task may not write them; or, ErrConflict, that they make it fail. The values of those under
// except are not looked at, only their names.
func (m *Machine) CheckResult(
	id fact.AttemptID, try int, out map[workflow.DataName]workflow.Value, except []workflow.DataName, now Moment,
) error {
	d := m.deciding(now, nil)
	defer m.reuse(d)
	a := d.awaits(id, try)
	if a == nil {
		return ErrNotAwaited
	}
	blank := make(map[workflow.DataName]workflow.Value, len(out))
	for n, v := range out {
		blank[n] = v
	}
	for _, n := range except {
		if _, given := blank[n]; given {
			blank[n] = nil
		}
	}
	checked, err := d.state.CheckResult(a, blank)
	if err != nil {
		return err
	}
	if err := d.fits(fact.Body{Success: &fact.Success{Attempt: id, Try: try, Outputs: checked}}); err != nil {
		return err
	}
	why := d.clash(a, checked)
	if a.Fired != nil && a.Undoes != nil {
		why = d.state.Flow().Line.Board.RefusesUndo(state.JobOf(a.ID), checked)
	}
	if why != "" {
		return fmt.Errorf("%w: %s", ErrConflict, why)
	}
	return nil
}

// Parent is what this instance is for, by the word of its initiator; nil: for itself.
func (m *Machine) Parent() *fact.Parent {
	if a := m.log.Genesis().Fact.Body.Annex; a != nil {
		return a.Parent
	}
	return nil
}

// Pins are the definitions that the names under uses stand for here, sorted by name.
func (m *Machine) Pins() []fact.Pin {
	if a := m.log.Genesis().Fact.Body.Annex; a != nil {
		return a.Uses
	}
	return nil
}

// Works reports whether this node is at a try of an attempt, and nobody has ended it.
func (m *Machine) Works(id fact.AttemptID, try int) bool {
	a := m.state.Attempts()[id]
	return a != nil && a.Partner == m.self && a.Start != nil && a.Try() == try && a.Success() == nil && a.Off == nil &&
		!a.EndedByHolder() && (a.Undoes != nil || m.state.Wanted(a))
}

// OnlyBlocks reports whether nothing follows from it that an attempt fails but that what waits for it is blocked: no
// other try comes, nothing stands in for it, and no rule asks for it. So it can as well be waited for.
func (m *Machine) OnlyBlocks(id fact.AttemptID) bool {
	a := m.state.Attempts()[id]
	return a != nil && !a.Beside() && a.Try() > a.Task.Retries.Times && a.Task.OnFailure == workflow.FailBlock &&
		!m.state.AsksWhetherFailed(a.Task.Name) && !m.state.AsksWhetherFailed(a.Slot.Task.Name)
}

// childsGrace is how long an attempt at a workflow is not called off yet for which another stands in, as others
// presumed that it had failed. Its holder was out of reach then, and may have to hear yet that the child has succeeded
// meanwhile.
const childsGrace = 10 * time.Second

// Awaits reports whether what a child comes to may still end a try: this node is at it, or another stands in for its
// attempt, which is not called off yet.
func (m *Machine) Awaits(id fact.AttemptID, try int) bool {
	if m.Works(id, try) {
		return true
	}
	a, until := m.state.Attempts()[id], m.graces[id]
	return a != nil && a.Partner == m.self && a.Start != nil && a.Try() == try && a.Success() == nil && a.Off == nil &&
		m.mayHear(a) && (until == 0 || m.decided < until)
}

// mayHear reports whether another stands in for an attempt that a child does, and that its holder has not given up.
func (m *Machine) mayHear(a *state.Attempt) bool {
	return a.Child != nil && !a.Beside() && a.Slot.Dropped == nil && a.Slot.Current != a &&
		m.state.PresumedBy(a) != nil && m.state.Overall() == workflow.InstanceRunning
}

// hearsOut reports whether an attempt that is not wanted any more is not to be called off yet.
func (d *decision) hearsOut(a *state.Attempt) bool {
	if !d.mayHear(a) {
		return false
	}
	if d.graces[a.ID] == 0 {
		d.graces[a.ID] = d.now.Boot + childsGrace
	}
	if d.now.Boot >= d.graces[a.ID] {
		return false
	}
	d.out.wake(d.graces[a.ID])
	return true
}

// Nested is the instance that does a try, as this node told; zero: it has told of none.
func (m *Machine) Nested(id fact.AttemptID, try int) workflow.InstanceID {
	if a := m.state.Attempts()[id]; a != nil && a.Child != nil && a.Child.Fact.Body.Child.Try == try {
		return a.ChildInstance()
	}
	return workflow.InstanceID{}
}

// Nest records which instance does a try that Effects.Start asked for, unless that is
// recorded.
func (m *Machine) Nest(id fact.AttemptID, try int, child workflow.InstanceID, now Moment) error {
	if !m.heeded() || !m.Works(id, try) || m.Nested(id, try) == child {
		return nil
	}
	_, err := m.deciding(now, nil).append(fact.Body{Child: &fact.Child{Attempt: id, Try: try, Instance: child}})
	return err
}

// AtWork reports whether this node may still do a task of the instance, whatever others
// presume.
func (m *Machine) AtWork() bool { return m.heeded() && m.goesOn() }
