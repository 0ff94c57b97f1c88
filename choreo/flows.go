package choreo

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/dataflow"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about what the holder of a data-state flow does (flow.go): it begins what states
// fire, and ends the flow at a final state.

// runFlow does what this node has to do about a flow that it holds and has started. It reports
// whether it added facts.
func (d *decision) runFlow(a *Attempt) (added bool) {
	f := d.state.flow
	if f == nil || f.line == nil || f.line.of != a {
		return false
	}
	d.stopAborted(a)
	b := f.line.board
	switch {
	case b.Ended():
		e, err := d.append(Body{Success: &Success{Attempt: a.ID, Try: a.try()}})
		return err == nil && e.counted
	case b.Interrupted() != nil:
		return d.undoInFlow(a)
	case len(b.Due()) > 0:
		return d.fireDue(a)
	}
	for _, p := range b.Pending() {
		d.log.steps++
		job := d.state.attempts[attemptOfJob(p.Job)]
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
func (d *decision) bringAgain(job *Attempt) (added bool) {
	if !job.tooEarly() {
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
func (d *decision) fireDue(a *Attempt) (added bool) {
	b := d.state.flow.line.board
	var tasks []workflow.TaskName
	due := b.Due()
	state := due[0].State
	for _, p := range due {
		if p.State == state && len(tasks) < maxCollection {
			tasks = append(tasks, p.Task.Name)
		}
	}
	e, err := d.append(Body{Fire: &Fire{Attempt: a.ID, State: FactID(b.StateID(state)), Tasks: tasks}})
	if err != nil || !e.counted {
		return false
	}
	for _, t := range tasks {
		d.startJob(d.state.attempts[AttemptID{Fact: e.id, Slot: t}])
	}
	return true
}

// startJob has a transition run that was recorded as begun.
func (d *decision) startJob(job *Attempt) {
	if job != nil && job.Task.Type == workflow.Automatic && d.state.flow.pendingJob(job) != nil {
		d.running[job.ID] = true
		d.out.Start = append(d.out.Start, d.state.job(job, job.try()))
	}
}

// stopAborted stops what runs here of transitions that are not pending any more.
func (d *decision) stopAborted(a *Attempt) {
	for id := range d.running {
		job := d.state.attempts[id]
		if job != nil && job.transition() && (job.fired.flow != a || d.state.flow.pendingJob(job) == nil) {
			d.stopJob(id)
		}
	}
}

// stopFlow stops all that runs here of a flow that this node does not hold any more.
func (d *decision) stopFlow(a *Attempt) {
	if !a.Task.Whole {
		return
	}
	for id := range d.running {
		if job := d.state.attempts[id]; job != nil && job.fired != nil && job.fired.flow == a {
			d.stopJob(id)
		}
	}
}

func (d *decision) stopJob(id AttemptID) {
	delete(d.running, id)
	delete(d.again, id)
	i, _ := slices.BinarySearchFunc(d.out.Stop, id, func(x, y AttemptID) int { return x.Fact.compare(y.Fact) })
	d.out.Stop = slices.Insert(d.out.Stop, i, id)
}

// tooEarlyPause is how long a transition waits whose result would be final while others are
// pending: longer each time, up to maxTooEarly.
const (
	tooEarlyPause = time.Second
	maxTooEarly   = time.Minute
)

// weighEnd says what becomes of a transition that ended well: it fails where the author wants a
// conflict to be a failure, and waits where its state would be final while others are pending.
func (d *decision) weighEnd(
	a *Attempt, try int, outputs map[workflow.DataName]workflow.Value,
) (res Result, waits bool) {
	res.Outputs = outputs
	f := d.state.flow
	if f.pendingJob(a) == nil {
		return res, false // it counts for nothing, and is kept
	}
	b := f.line.board
	if clash := f.clashes(a, outputs); len(clash) > 0 {
		d.fail(a, CauseReported, "it sets "+string(clash[0])+", which was changed after the state that fired it")
		return res, true
	}
	if b.Refuses(jobOf(a.ID), outputs) != dataflow.FinalTooEarly {
		return res, false
	}
	if _, err := d.append(Body{TryFailed: &TryFailed{Attempt: a.ID, Try: try, Reason: dataflow.FinalTooEarly}}); err == nil {
		d.pause(a)
	}
	return res, true
}

// clashes are the data because of which a result is a failure, as its author wants.
func (f *flowWork) clashes(a *Attempt, outputs map[workflow.DataName]workflow.Value) []workflow.DataName {
	if f.pendingJob(a) == nil {
		return nil
	}
	return f.line.board.Clashes(jobOf(a.ID), outputs)
}

// ErrTooEarly is returned for a result that is not taken, as its state would be final while other transitions are
// pending. Its transition is tried again later.
var ErrTooEarly = errors.New("the result is not taken now")

// tooEarlyFor is the error of a result that is not taken now; nil: it may be.
func (s *State) tooEarlyFor(a *Attempt, outputs map[workflow.DataName]workflow.Value) error {
	f := s.flow
	if !a.transition() || f.pendingJob(a) == nil ||
		f.line.board.Refuses(jobOf(a.ID), outputs) != dataflow.FinalTooEarly {
		return nil
	}
	return fmt.Errorf("%w: %s: wait until these have ended: %s", ErrTooEarly, dataflow.FinalTooEarly,
		s.pendingBeside(a))
}

// pendingBeside names the other triggers of which something is pending.
func (s *State) pendingBeside(a *Attempt) string {
	var others []string
	for _, p := range s.flow.line.board.Pending() {
		if p.Task.Name != a.Task.Name {
			others = append(others, string(p.Task.Name))
		}
	}
	return strings.Join(others, ", ")
}

// tooEarly reports whether a transition waits because its state would be final.
func (a *Attempt) tooEarly() bool {
	return a.fired != nil && a.failed != nil && a.failed.fact.Body.TryFailed.Reason == dataflow.FinalTooEarly
}

// overdueJobs clocks the transitions of a flow that this node holds.
func (d *decision) overdueJobs(a *Attempt, of *slotClocks) (added bool) {
	f := d.state.flow
	if !a.Task.Whole || f.line == nil || f.line.of != a || !d.timed {
		return false
	}
	for _, p := range f.line.board.Pending() {
		d.log.steps++
		job := d.state.attempts[attemptOfJob(p.Job)]
		if job != nil && (job.start != nil || job.Task.Type != workflow.Automatic) && d.overdue(job, of) {
			return true
		}
	}
	return false
}

// comeOfAge says of a flow that this node holds that its instance has come to an age at which a condition may come
// out otherwise, by this node's clock. It reports whether it added facts.
func (d *decision) comeOfAge(a *Attempt, of *slotClocks, age time.Duration) (added bool) {
	f := d.state.flow
	if !a.Task.Whole || f.line == nil || f.line.of != a {
		return false
	}
	next, has := f.line.board.NextAge()
	switch {
	case !has:
		return false
	case age < next:
		of.wake(d.now.Boot + next - age)
		return false
	case d.now.Boot < d.clocks.calm:
		of.wake(d.clocks.calm)
		return false
	}
	e, err := d.append(Body{Aged: &Aged{Attempt: a.ID, Age: age}})
	return err == nil && e.counted
}

// placeTransitions tells the board of claims how those transitions stand that people do. What is over is not
// looked at again, unless the line changes.
func (s *State) placeTransitions() {
	for _, a := range slices.SortedFunc(maps.Keys(s.flow.people), func(x, y *Attempt) int {
		return cmp.Or(x.ID.Fact.compare(y.ID.Fact), cmp.Compare(x.ID.Slot, y.ID.Slot))
	}) {
		s.log.steps++
		if i := itemOf(a.ID); s.peoples.board.Knows(i) || s.peoples.board.Has(i) || s.limits(a) {
			s.placeItem(a)
		}
		if s.flow.pendingJob(a) == nil {
			delete(s.flow.people, a)
		}
	}
}

// peoplesJobs are the transitions that wait for people, by trigger.
func (s *State) peoplesJobs() (out []*Attempt) {
	if s.flow == nil || s.flow.line == nil {
		return nil
	}
	for _, p := range s.flow.line.board.Pending() {
		if a := s.attempts[attemptOfJob(p.Job)]; a != nil && !a.Task.ByNode() && s.wanted(a) {
			out = append(out, a)
		}
	}
	return out
}

// settledFlow reports whether no fact that is still to come can make a transition count that does
// not: no other holder goes on, and each participant has shown that it knows of all who held the
// flow, and of the transition's success, or was written off.
func (s *State) settledFlow(job *Attempt) bool {
	f := s.flow
	end := f.end()
	for _, a := range f.slot.Attempts {
		if a != end && a.runs() && s.writtenOff[a.Partner] == nil {
			return false
		}
	}
	for p := range s.joined {
		s.log.steps++
		if s.writtenOff[p] == nil && !s.anyHeeded(p, func(e *entry) bool { return s.knewFlow(e, job) }) {
			return false
		}
	}
	return true
}

// knewFlow reports whether a fact's author knew of all who held the flow, and of a success.
func (s *State) knewFlow(e *entry, job *Attempt) bool {
	for _, a := range s.flow.slot.Attempts {
		if a.start != nil && !s.log.knew(e, a.start) {
			return false
		}
	}
	return e == job.success() || s.log.knew(e, job.success())
}

// mayUndoIn are the attempts of a slot whose success may have lost.
func (s *State) mayUndoIn(sl *Slot) []*Attempt {
	if s.flow == nil || sl != s.flow.slot || len(s.flow.lost) == 0 {
		return sl.Attempts
	}
	return append(slices.Clone(sl.Attempts), sortedJobs(s.flow.lost)...)
}

// transitionOf finds the transition of a trigger that is pending at this node.
func (m *Machine) transitionOf(t workflow.TaskName) (*Attempt, error) {
	s := m.state
	if st := s.shownState(); st != workflow.InstanceRunning {
		return nil, fmt.Errorf("%w: the instance is %s", ErrNotNow, st)
	}
	if p := s.flow.slot.Current.Partner; p != m.self {
		return nil, &Elsewhere{Task: t, Partner: p}
	}
	for _, p := range s.flow.line.board.Pending() {
		if job := s.attempts[attemptOfJob(p.Job)]; p.Task.Name == t && job != nil && job.Partner == m.self {
			return job, nil
		}
	}
	return nil, fmt.Errorf("%w: no data state has fired %s that has not ended", ErrNotNow, t)
}

// undoInFlow begins the compensation that a recovery waits for, or has it go on.
func (d *decision) undoInFlow(a *Attempt) (added bool) {
	b := d.state.flow.line.board
	u := b.Undoing()
	if u == nil {
		return false
	}
	if u.Job != (dataflow.Job{}) {
		return d.resume(d.state.attempts[attemptOfJob(u.Job)])
	}
	state := FactID(b.StateID(b.State()))
	e, err := d.append(Body{Fire: &Fire{
		Attempt: a.ID, State: state, Tasks: []workflow.TaskName{u.Task}, Undoes: FactID(u.By),
	}})
	if err != nil || !e.counted {
		return false
	}
	job := d.state.attempts[AttemptID{Fact: e.id, Slot: u.Task}]
	if job.Task.Type == workflow.Automatic {
		d.running[job.ID] = true
		d.out.Start = append(d.out.Start, d.state.job(job, job.try()))
	}
	return true
}

// recovers reports whether a person orders a step of recovery.
func recovers(body worklist.Body) bool {
	x, orders := body.(worklist.Order)
	return orders && x.What == worklist.Recover
}

// stepOf is the step of recovery that a claim orders.
func stepOf(c *Claim) (dataflow.Step, error) {
	x, _ := c.Body().(worklist.Order)
	return dataflow.DecodeStep(x.Reason)
}

// mayRecover says why a step of recovery is not allowed now; nil: it is.
func (d *decision) mayRecover(a *Attempt, x worklist.Order) error {
	step, err := dataflow.DecodeStep(x.Reason)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrFactInvalid, err)
	case d.state.overall() != workflow.InstanceRunning:
		return fmt.Errorf("%w: the instance is %s: nothing of it is to be recovered", ErrNotNow, d.state.overall())
	case d.state.flow == nil || d.state.flow.line.of != a || !d.state.wanted(a):
		return fmt.Errorf("%w: this node does not keep the data states of the instance any more", ErrNotNow)
	}
	if why := d.state.flow.line.board.MayRecover(step); why != "" {
		return fmt.Errorf("%w: %s", ErrNotNow, why)
	}
	return nil
}

// Recovery is what can be done about an interruption, as the rules allow (none: there is none), and whether
// compensations that somebody ordered are under way.
func (m *Machine) Recovery() (methods []string, underWay bool) {
	if m.Interrupted() == nil {
		return nil, false
	}
	b := m.state.flow.line.board
	return b.Methods(), b.Undoing() != nil
}
