package state

import (
	"cmp"
	"maps"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/dataflow"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file shows a data-state flow (flow.go).

// StateView is a step of the history of an instance that is driven by its data.
type StateView struct {
	dataflow.Record
	// EquivalentTo is the first state before that satisfies the same conditions; -1: none.
	EquivalentTo int
	// Partner is who brought it about.
	Partner workflow.PartnerID
	// Values are the data of the state, or in which the transition was aborted.
	Values map[workflow.DataName]workflow.Value
	// Pending are the transitions that had been fired and had not ended when the state was there, of the current
	// state those that have not ended now.
	Pending []workflow.TaskName
	// Compensation is how far the undoing of what is superseded has got; NotCompensated: it does not, or counts.
	Compensation Compensation
	// User is who ordered it, of a step of recovery; empty: nobody did, or it is none.
	User worklist.User
}

// OfferedView is a step of recovery that offered the state, after so many records of the history.
type OfferedView struct {
	StateView
	After int
}

// OfferedSteps are the steps of recovery that offered the state, in order. They brought none by themselves, so Output and
// Input are -1.
func (s *State) OfferedSteps() (out []OfferedView) {
	for _, x := range s.flow.Line.offered {
		v := aside(x.by)
		v.Kind, v.Mark, v.User = dataflow.Kind(x.method), dataflow.Unmarked, x.by.Speaker().User
		out = append(out, OfferedView{v, x.after})
	}
	return out
}

// TriggerView shows a trigger of the flow, by its newest transition.
func (s *State) TriggerView(t *workflow.Task) TaskView {
	f := s.flow
	v := TaskView{Task: t, Partition: s.plan.Home(t.Name), Partner: f.Slot.Current.Partner, State: workflow.NotReady}
	if a := f.Latest[t.Name]; a != nil {
		v = s.attemptView(a, s.jobState(a))
		v.Attempt = a.Fired.Flow.Depth
	}
	pending := f.Line.Board.IsPending(t.Name)
	switch waits := v.State == workflow.NotReady; {
	case pending && s.cancel == nil && (waits || v.State.Done()):
		v.State = workflow.Ready
	case pending && waits:
		v.State = workflow.Aborted
	case waits && s.Overall() != workflow.InstanceRunning:
		v.State = workflow.Skipped
	}
	if x := s.orderedUndo(t.Name); x != NotCompensated {
		v.Also(undoneByOrder[x])
	}
	for _, e := range s.undoneInVain() {
		if s.attempts[e.Fact.Body.Success.Attempt].Undoes == f.Latest[t.Name] {
			v.Also(undoneForNothing)
		}
	}
	for _, x := range s.SupersededJobs(t.Name) {
		v.Superseded = append(v.Superseded,
			SupersededView{
				Task: x.Task.Name, Partner: x.Partner, Attempt: x.Fired.Flow.Depth, Ended: x.Success().Fact.At,
				Compensation: x.compensation(),
			})
	}
	return v
}

// WhyIdle is why a record of the history that counts changes nothing; empty: it does, or is none.
func (s *State) WhyIdle(e *log.Entry) string {
	if s.flow == nil || s.flow.Line == nil {
		return ""
	}
	return s.flow.Line.why[e]
}

// undoneForNothing is said of a transition that counts as done, and was undone by an order of another history.
const undoneForNothing = "it was undone by an order that does not count: what it did may have to be done again"

// undoneInVain are the successes, the earliest first, of what undid transitions in histories that do not count, where
// these transitions are in force in the history that does. What the built-in set undoes is data, which are as that
// history says.
func (s *State) undoneInVain() (out []*log.Entry) {
	passed := s.Passed()
	if len(passed) == 0 {
		return nil
	}
	inForce := map[dataflow.Job]bool{}
	for _, r := range s.flow.Line.Board.History() {
		inForce[r.Job] = r.Kind == dataflow.Transition && r.Brought() && r.Mark == dataflow.Unmarked
	}
	for e := range passed {
		b := e.Fact.Body.Success
		if b == nil {
			continue
		}
		a := s.attempts[b.Attempt]
		if a.Undoes != nil && a.Success() == e && a.Task.Application != workflow.AppSet && inForce[JobOf(a.Undoes.ID)] {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, log.ByTime)
	return out
}

// orderedUndo is how far the compensation has got that was ordered since a trigger last fired; NotCompensated: none was.
func (s *State) orderedUndo(t workflow.TaskName) Compensation {
	f := s.flow
	if x := f.Line.Board.Undoing(); x != nil && x.Task == t && x.Job == (dataflow.Job{}) {
		if s.cancel != nil {
			return calledOff
		}
		return CompensationWaits
	}
	u, last := f.undone[t], f.Latest[t]
	switch {
	case u == nil || last != nil && log.ByTime(u.Assigned, last.Assigned) < 0:
		return NotCompensated
	case u.Success() != nil && f.Line.why[u.Success()] == "":
		return CompensationDone
	case u.Success() != nil, len(u.Rulings) > 0:
		return CompensationFailed
	case f.Goes(u) && s.cancel == nil:
		return CompensationRuns
	}
	return calledOff
}

// DroppedViews show the tasks that an amendment has dropped while one undoes something, which goes on, or after it ended:
// in the partition of what it undoes.
func (s *State) DroppedViews() (out []TaskView) {
	if len(s.edition.heavy) == 0 {
		return nil
	}
	dropped := map[workflow.TaskName]*Attempt{} // the newest by each
	for _, a := range s.attempts {
		if a.Undoes == nil || s.def.Task(a.Task.Name) != nil {
			continue
		}
		if was := dropped[a.Task.Name]; was == nil ||
			cmp.Or(log.ByTime(was.Assigned, a.Assigned), cmp.Compare(was.ID.Slot, a.ID.Slot)) < 0 {
			dropped[a.Task.Name] = a
		}
	}
	for _, name := range slices.Sorted(maps.Keys(dropped)) {
		show := s.ContingencyView
		if s.flow != nil {
			show = s.UndoView
		}
		v := show(dropped[name].Task)
		if v.Undoes == "" || v.State == workflow.Aborted {
			continue // it has not begun, or came to nothing
		}
		v.Partition = s.plan.Home(v.Undoes)
		out = append(out, v)
	}
	return out
}

// UndoView shows a task of a flow that no state fires, by what it undoes, or undid last.
func (s *State) UndoView(t *workflow.Task) TaskView {
	a := s.undoBy(t.Name)
	switch {
	case a == nil:
		return s.ContingencyView(t)
	case a.Start == nil && a.Fired == nil: // it waits until all know that what it undoes does not count
		return TaskView{Task: t, Partition: s.plan.Home(t.Name), State: workflow.NotReady}
	}
	v := s.attemptView(a, s.undoState(a))
	v.Attempt, v.Undoes = a.Undoes.Fired.Flow.Depth, a.Undoes.Task.Name
	if ok := a.Success(); ok != nil && s.flow.Line.why[ok] != "" {
		v.Also("its result does not count: " + s.flow.Line.why[ok])
	}
	return v
}

// undoBy is the newest compensation by a task, of a transition that an order has undone or that is of a history that
// does not count: rather one that has not ended. Nil: there is none.
func (s *State) undoBy(t workflow.TaskName) (newest *Attempt) {
	goes := func(a *Attempt) int { return AsInt(!s.undoState(a).Done()) }
	look := func(a *Attempt) {
		if a != nil && a.Task.Name == t && (newest == nil ||
			cmp.Or(goes(newest)-goes(a), log.ByTime(newest.Assigned, a.Assigned)) < 0) {
			newest = a
		}
	}
	for _, a := range s.flow.undone {
		look(a)
	}
	for a := range s.flow.lost {
		look(a.Undo)
	}
	return newest
}

// undoState says where what undoes a transition stands.
func (s *State) undoState(a *Attempt) workflow.State {
	if a.Fired != nil {
		return s.jobState(a)
	}
	return a.undoingState()
}

// jobState says where a transition stands, or what undoes one by order.
func (s *State) jobState(a *Attempt) workflow.State {
	switch goes := s.flow.Goes(a); {
	case a.Success() != nil:
		return workflow.Succeeded
	case len(a.Rulings) > 0:
		return workflow.Failed
	case !goes || s.cancel != nil:
		return workflow.Aborted
	case a.Start != nil:
		return workflow.Running
	}
	return workflow.Ready
}

// FlowRecords are what a flow went through, in order, with what was called off as the instance was cancelled. Nobody may
// change them.
func (s *State) FlowRecords() []dataflow.Record {
	b := s.flow.Line.Board
	if s.cancel == nil {
		return b.History()
	}
	return append(slices.Clip(b.History()), b.CalledOff("the instance was cancelled", s.cancel.Fact.At)...)
}

// SupersededJobs are the transitions of a trigger that succeeded for nothing, the earliest first: the histories that do
// not count have them, or that which counts took nothing of them.
func (s *State) SupersededJobs(t workflow.TaskName) (out []*Attempt) {
	look := func(e *log.Entry) {
		if b := e.Fact.Body.Success; b != nil {
			if a := s.attempts[b.Attempt]; a.Transition() && a.Task.Name == t && a.Success() == e &&
				a.Stands == Superseded {
				out = append(out, a)
			}
		}
	}
	for e := range s.Passed() {
		look(e)
	}
	for e := range s.flow.Line.why {
		look(e)
	}
	slices.SortFunc(out, func(x, y *Attempt) int { return log.ByTime(x.Success(), y.Success()) })
	return out
}

// SupersededStates are what brought a state, or would have, in a history that does not count, the earliest first:
// transitions, compensations, and jumps that were ordered. They brought no state of the history that counts, so Output
// and Input are -1, and so is FiredBy where the state that fired a transition does not count either. Their values are only those that they
// set: what the others were then is a matter of the history that does not count.
func (s *State) SupersededStates() (out []StateView) {
	numbers, aborted := map[dataflow.ID]int{}, map[dataflow.ID]bool{}
	for _, r := range s.flow.Line.Board.History() {
		if r.Brought() {
			numbers[r.ID] = r.Output
		} else {
			aborted[r.ID] = true
		}
	}
	var lost []lostState
	for _, said := range s.flow.said {
		for _, e := range said {
			if s.flow.Line.has[e] && s.flow.Line.why[e] == "" || aborted[dataflow.ID(e.ID)] {
				continue
			}
			if v, brings := s.supersededState(e, numbers); brings {
				lost = append(lost, lostState{e, v})
			}
			if x, ended := s.undoneState(e); ended {
				lost = append(lost, x)
			}
		}
	}
	slices.SortFunc(lost, func(x, y lostState) int { return log.ByTime(x.by, y.by) })
	for _, x := range lost {
		out = append(out, x.StateView)
	}
	return out
}

// lostState is a step of a history that does not count, by a fact.
type lostState struct {
	by *log.Entry
	StateView
}

// Passed are the records of a flow that are of a history that does not count: by the facts they count, and another
// history does.
func (s *State) Passed() map[*log.Entry]bool {
	out := map[*log.Entry]bool{}
	if s.flow == nil || s.flow.Line == nil {
		return out
	}
	all := 0
	for _, said := range s.flow.said {
		all += len(said)
	}
	if all == len(s.flow.Line.has) {
		return out // as nearly always, however long the history
	}
	for _, said := range s.flow.said {
		for _, e := range said {
			if !s.flow.Line.has[e] {
				out[e] = true
			}
		}
	}
	return out
}

// supersededState is what a record that does not count brought; numbers are of the states that count. It reports
// whether such a record brings a state.
func (s *State) supersededState(e *log.Entry, numbers map[dataflow.ID]int) (v StateView, brings bool) {
	v = aside(e)
	switch b := &e.Fact.Body; {
	case b.Success != nil:
		a := s.attempts[b.Success.Attempt]
		if a.Success() != e {
			return v, false
		}
		v.Kind, v.Task, v.Job, v.Began = dataflow.Transition, a.Task.Name, JobOf(a.ID), a.Assigned.Fact.At
		if a.Undoes != nil { // which was ordered: no state fires that
			v.Kind, v.Task = dataflow.Compensation, a.Undoes.Task.Name
		} else if n, counts := numbers[dataflow.ID(a.Assigned.Fact.Body.Fire.State)]; counts {
			v.FiredBy = n
		}
		v.Changed, v.Compensation = b.Success.Outputs, a.compensation()
	case b.Claim != nil && !s.flow.Line.has[e]: // else its rules forbade it, and it was to bring none
		x, err := stepOf(b.Claim)
		if err != nil || !x.Jumps() {
			return v, false
		}
		if v.Kind = dataflow.JumpForward; x.Method == dataflow.MethodBack {
			v.Kind = dataflow.JumpBack
		}
		v.Changed, _ = s.flow.Line.Board.ReadSet(x.Set)
		v.User = e.Speaker().User
	default:
		return v, false
	}
	v.Values = v.Changed
	return v, true
}

// undoneState is what became of what undid a transition, for which such a record is the success that does not count. It
// reports whether that has ended: then it brought no state either, and what it set counts for nothing.
func (s *State) undoneState(e *log.Entry) (out lostState, ended bool) {
	b := e.Fact.Body.Success
	if b == nil {
		return out, false
	}
	a := s.attempts[b.Attempt]
	if a.Success() != e || a.Undo == nil || a.Undo.Start == nil {
		return out, false
	}
	ok, failed := a.Undo.Success(), s.Prevailing(a.Undo.Rulings)
	switch {
	case ok != nil:
		out = lostState{ok, aside(ok)}
		out.Changed = ok.Gave()
		out.Values = out.Changed
	case failed != nil:
		out = lostState{failed.At, aside(failed.At)}
		out.Mark, out.Reason = dataflow.Aborted, ReasonOf(failed.At.Fact.Body.Verdict)
	default:
		return out, false
	}
	out.Kind, out.Task, out.Began = dataflow.Compensation, a.Task.Name, a.Undo.Start.Fact.At
	return out, true
}

// aside is a step by a fact that brought no state of the history that counts.
func aside(e *log.Entry) StateView {
	return StateView{Record: dataflow.Record{
		ID: dataflow.ID(e.ID), FiredBy: -1, Input: -1, Output: -1, Undoes: -1, Began: e.Fact.At, Ended: e.Fact.At,
		Mark: dataflow.Superseded, Status: dataflow.Regular,
	}, EquivalentTo: -1, Partner: e.Fact.Chain.Author}
}
