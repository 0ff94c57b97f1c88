package choreo

import (
	"fmt"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/dataflow"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about what the holder of a data-state flow does (choreo/state/flow.go): it begins what states
// fire, and ends the flow at a final state.

// runFlow does what this node has to do about a flow that it holds and has started. It reports
// whether it added facts.
func (d *decision) runFlow(a *state.Attempt) (added bool) {
	f := d.state.Flow()
	if f == nil || f.Line == nil || f.Line.Of != a {
		return false
	}
	d.stopAborted(a)
	b := f.Line.Board
	switch {
	case d.state.TakesUp():
		e, err := d.append(fact.Body{Aged: &fact.Aged{Attempt: a.ID}})
		return err == nil && e.Counted
	case b.Ended():
		e, err := d.append(fact.Body{Success: &fact.Success{Attempt: a.ID, Try: a.Try()}})
		return err == nil && e.Counted
	case b.Interrupted() != nil:
		return d.undoInFlow(a)
	case len(b.Due()) > 0:
		return d.fireDue(a)
	}
	for _, p := range b.Pending() {
		d.log.Steps++
		job := d.state.Attempts()[state.AttemptOfJob(p.Job)]
		switch {
		case job.Task.Type != workflow.Automatic:
			added = d.bringAgain(job) || added
		case !d.running[job.ID]:
			added = d.resume(job) || added
		}
	}
	return added
}

// bringAgain has a person's result taken that was too early: nobody brings it once more, as it had closed its item.
func (d *decision) bringAgain(job *state.Attempt) (added bool) {
	if !job.TooEarly() {
		return false
	}
	due, waiting := d.again[job.ID]
	switch {
	case !waiting: // the node was started again
		d.pause(job)
		return true
	case due > d.now.Boot:
		d.out.wake(due)
		return false
	}
	delete(d.again, job.ID)
	return d.endAsClosed(job.ID)
}

// fireDue begins what states fired and this node has not begun.
func (d *decision) fireDue(a *state.Attempt) (added bool) {
	b := d.state.Flow().Line.Board
	due := b.Due()
	state := due[0].State
	fire := fact.Fire{Attempt: a.ID, State: fact.ID(b.StateID(state))}
	for _, p := range due {
		if p.State != state || len(fire.Tasks) == fact.MaxCollection {
			continue
		}
		fire.Tasks = append(fire.Tasks, p.Task.Name)
		if p.Task.Type == workflow.Automatic && d.served != nil && d.served(p.Task.Application) {
			fire.ForWorkers = append(fire.ForWorkers, p.Task.Name)
		}
	}
	e, err := d.append(fact.Body{Fire: &fire})
	if err != nil || !e.Counted {
		return false
	}
	for _, t := range fire.Tasks {
		d.startJob(d.state.Attempts()[fact.AttemptID{Fact: e.ID, Slot: t}])
	}
	return true
}

// startJob has a transition run that was recorded as begun.
func (d *decision) startJob(job *state.Attempt) {
	if job != nil && job.Task.Type == workflow.Automatic && d.state.Flow().PendingJob(job) != nil {
		d.running[job.ID] = true
		d.out.Start = append(d.out.Start, d.state.Job(job, job.Try()))
	}
}

// stopAborted stops what runs here of transitions that are not pending any more.
func (d *decision) stopAborted(a *state.Attempt) {
	for id := range d.running {
		job := d.state.Attempts()[id]
		if job != nil && job.Fired != nil && (job.Fired.Flow != a || !d.state.Flow().Goes(job)) {
			d.stopJob(id)
		}
	}
}

// stopFlow stops all that runs here of a flow that this node does not hold any more.
func (d *decision) stopFlow(a *state.Attempt) {
	if !a.Task.Whole {
		return
	}
	for id := range d.running {
		if job := d.state.Attempts()[id]; job != nil && job.Fired != nil && job.Fired.Flow == a {
			d.stopJob(id)
		}
	}
}

func (d *decision) stopJob(id fact.AttemptID) {
	delete(d.running, id)
	delete(d.again, id)
	i, _ := slices.BinarySearchFunc(d.out.Stop, id, func(x, y fact.AttemptID) int { return x.Fact.Compare(y.Fact) })
	d.out.Stop = slices.Insert(d.out.Stop, i, id)
}

// transitionOf finds the transition of a trigger that is pending at this node.
func (m *Machine) transitionOf(t workflow.TaskName) (*state.Attempt, error) {
	s := m.state
	if st := s.ShownState(); st != workflow.InstanceRunning {
		return nil, fmt.Errorf("%w: the instance is %s", state.ErrNotNow, st)
	}
	if p := s.Flow().Slot.Current.Partner; p != m.self {
		return nil, &Elsewhere{Task: m.called(t), Partner: p}
	}
	if job := m.pendingOf(t); job != nil && job.Partner == m.self {
		return job, nil
	}
	return nil, fmt.Errorf("%w: no data state has fired %s that has not ended", state.ErrNotNow, t)
}

// pendingOf is the transition of a trigger that was begun and is pending; nil: none is.
func (m *Machine) pendingOf(t workflow.TaskName) *state.Attempt {
	f := m.state.Flow()
	if f == nil || f.Line == nil {
		return nil
	}
	for _, p := range f.Line.Board.Pending() {
		if job := m.state.Attempts()[state.AttemptOfJob(p.Job)]; p.Task.Name == t && job != nil {
			return job
		}
	}
	return nil
}

// undoInFlow begins the compensation that a recovery waits for, or has it go on.
func (d *decision) undoInFlow(a *state.Attempt) (added bool) {
	b := d.state.Flow().Line.Board
	u := b.Undoing()
	if u == nil {
		return false
	}
	if u.Job != (dataflow.Job{}) {
		return d.resume(d.state.Attempts()[state.AttemptOfJob(u.Job)])
	}
	state := fact.ID(b.StateID(b.State()))
	e, err := d.append(fact.Body{Fire: &fact.Fire{
		Attempt: a.ID, State: state, Tasks: []workflow.TaskName{u.Task}, Undoes: fact.ID(u.By),
	}})
	if err != nil || !e.Counted {
		return false
	}
	job := d.state.Attempts()[fact.AttemptID{Fact: e.ID, Slot: u.Task}]
	if job.Task.Type == workflow.Automatic {
		d.running[job.ID] = true
		d.out.Start = append(d.out.Start, d.state.Job(job, job.Try()))
	}
	return true
}

// mayRecover says why a step of recovery is not allowed now; nil: it is.
func (d *decision) mayRecover(a *state.Attempt, x worklist.Order) error {
	step, err := dataflow.DecodeStep(x.Reason)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", fact.ErrInvalid, err)
	case d.state.Overall() != workflow.InstanceRunning:
		return fmt.Errorf("%w: the instance is %s: nothing of it is to be recovered", state.ErrNotNow,
			d.state.Overall())
	case d.state.Flow() == nil || d.state.Flow().Line.Of != a || !d.state.Wanted(a):
		return fmt.Errorf("%w: this node does not keep the data states of the instance any more", state.ErrNotNow)
	}
	if why := d.state.Flow().Line.Board.MayRecover(step); why != "" {
		return fmt.Errorf("%w: %s", state.ErrNotNow, why)
	}
	return nil
}

// Recovery is what can be done about an interruption, as the rules allow (none: there is none), and whether
// compensations that somebody ordered are under way.
func (m *Machine) Recovery() (methods []string, underWay bool) {
	if m.Interrupted() == nil {
		return nil, false
	}
	b := m.state.Flow().Line.Board
	return b.Methods(), b.Undoing() != nil
}

// ForeseeRecovery says what a step of recovery would lead to, as far as that is known here; or why it is not
// allowed. It changes nothing.
func (m *Machine) ForeseeRecovery(x dataflow.Step) (dataflow.Outlook, error) {
	if m.Interrupted() == nil {
		return dataflow.Outlook{}, fmt.Errorf("%w: the instance is not interrupted", state.ErrNotNow)
	}
	out, why := m.state.Flow().Line.Board.Foresee(x)
	if why != "" {
		return out, fmt.Errorf("%w: %s", state.ErrNotNow, why)
	}
	return out, nil
}
