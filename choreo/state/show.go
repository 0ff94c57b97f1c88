package state

import (
	"cmp"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/amendments"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// StandIn is how a contingency stands that is a task in the flow as well.
type StandIn struct {
	Partner workflow.PartnerID
	State   workflow.State
}

// TaskView is one task of an instance.
type TaskView struct {
	Task      *workflow.Task
	Partition workflow.PartitionName
	Partner   workflow.PartnerID // empty: nobody yet
	Attempt   int
	State     workflow.State
	Immediate bool
	// Started is when work on it began: a program's start, or when a person took it from a
	// worklist (ms, its holder's clock); 0: not yet, or nobody said when.
	Started       int64
	Ended         int64
	Outputs       map[workflow.DataName]workflow.Value
	ContingencyOf workflow.TaskName
	Undoes        workflow.TaskName // what it undid, or is to undo
	ReplacedBy    workflow.TaskName
	StandIn       *StandIn // how that stands, where it is a task in the flow as well: what it has here is its own
	TriggerFired  bool
	Reason        string
	// ID names the attempt that is shown. Lease is the last by which a worker had its newest
	// try, and LeasedAt since when, by its holder's clock (ms); nil: none had.
	ID       fact.AttemptID
	Lease    *fact.Lease
	LeasedAt int64
	// PresumedBy said that it had failed, while it goes on here; empty: nobody, or it does not.
	PresumedBy workflow.PartnerID
	Awaits     workflow.TaskName // a contingency that nobody can take yet
	Superseded []SupersededView
	// Why is how it came to its partner, where it was assigned by itself.
	Why *fact.Why
	// Dropped says why it is not needed; nil: it is.
	Dropped *fact.Dropped
	// WaitsFor are the resources that it is to hold and has not got yet, and Shared those that others use with it though
	// there is not enough for all.
	WaitsFor, Shared []worklist.Lack
	// Child is the instance that does it; zero: none, as far as is known.
	Child workflow.InstanceID
}

// SupersededView is a finished execution that does not count.
type SupersededView struct {
	Task         workflow.TaskName
	Partner      workflow.PartnerID
	Attempt      int
	Ended        int64
	Compensation Compensation
}

// Compensation says how far the undoing of an execution has got.
type Compensation string

// What becomes of an execution that does not count.
const (
	NotCompensated     Compensation = ""        // none is defined
	CompensationWaits  Compensation = "waiting" // until everybody is known to know that it does not count
	CompensationRuns   Compensation = "running"
	CompensationDone   Compensation = "done"
	CompensationFailed Compensation = "failed"
	// calledOff is of a compensation that was ordered: a jump forward, or that the instance was cancelled, ended it.
	calledOff Compensation = "called off"
)

// Also adds to the reason why a task stands where it does.
func (v *TaskView) Also(why string) { v.Reason = strings.TrimPrefix(v.Reason+"; "+why, "; ") }

// undoneByOrder says how far the undoing has got that somebody ordered.
var undoneByOrder = map[Compensation]string{
	CompensationWaits: "it is to be undone, by order", CompensationRuns: "it is being undone, by order",
	CompensationDone: "it was undone, by order", CompensationFailed: "it was to be undone by order, and that failed",
	calledOff: "it was to be undone by order, and that was called off",
}

// compensation is how far the undoing of an attempt that lost has got.
func (a *Attempt) compensation() Compensation {
	switch u := a.Undo; {
	case u == nil:
		return NotCompensated
	case u.Success() != nil:
		return CompensationDone
	case u.EndedByHolder():
		return CompensationFailed
	case u.Start != nil:
		return CompensationRuns
	}
	return CompensationWaits
}

// PartitionState sums up what is shown of a partition's tasks: what is most alive of
// them. Those that ran in place of others count too. A failure that was released, or of
// what another did in its place, holds up nothing, so what succeeded beside it goes before it.
func (s *State) PartitionState(p workflow.PartitionName, tasks []TaskView) workflow.State {
	order := []workflow.State{
		workflow.Running, workflow.Ready, workflow.NotReady, workflow.Failed, workflow.Blocked, workflow.Aborted,
		workflow.Succeeded, workflow.Skipped,
	}
	last := slices.Index(order, workflow.Succeeded)
	shown, best := workflow.Skipped, 2*len(order)
	for _, t := range tasks {
		if t.Partition != p {
			continue
		}
		rank := 2 * slices.Index(order, t.State)
		if t.State == workflow.Failed && (s.releasedFailure(t.Task.Name) || s.doneInPlaceOf(t.Task.Name)) {
			rank = 2*last + 1
		}
		if rank < best {
			shown, best = t.State, rank
		}
	}
	if s.endedWell(p) && slices.Contains([]workflow.State{workflow.Failed, workflow.Blocked, workflow.Aborted}, shown) {
		return workflow.Succeeded
	}
	return shown
}

// endedWell reports whether data states that ended in a final one are all that a partition is about: what came to
// nothing on the way there was recovered.
func (s *State) endedWell(p workflow.PartitionName) bool {
	return s.flow != nil && s.plan.Home(workflow.FlowTask) == p && s.Overall() == workflow.InstanceSucceeded
}

// releasedFailure reports whether a task, or what stood in for it at last, failed, and its
// successors were released.
func (s *State) releasedFailure(t workflow.TaskName) bool {
	return slices.ContainsFunc(s.SlotsOf(t), func(sl *Slot) bool {
		return sl.State == workflow.Failed && sl.Outcome != nil && sl.Outcome.Action.Kind == workflow.FailRelease
	})
}

// doneInPlaceOf reports whether a contingency succeeded in place of a task.
func (s *State) doneInPlaceOf(t workflow.TaskName) bool {
	return slices.ContainsFunc(s.SlotsOf(t), func(sl *Slot) bool { return sl.Pick != nil && sl.Pick.Task.Name != t })
}

// doneItself reports whether what counts for a slot is its own task, and nothing in its place.
func (sl *Slot) doneItself() bool {
	return sl.Pick != nil && sl.Pick.Task.Name == sl.Task.Name && !sl.Duplicated
}

func (s *State) SlotView(sl *Slot) TaskView {
	a := s.latest(s.root(sl))
	if p := sl.Pick; p != nil && p.Task.Name == a.Task.Name && (a.Success() == nil || a.Stands == Superseded) {
		a = p // as where the result of an attempt counts after which another had begun
	}
	shown := sl.State
	waits := sl.Pending != nil && sl.Pick == nil
	if !shown.Done() && (sl.Current != a || (waits && a.EndedByHolder())) {
		shown = workflow.Failed // a contingency is at work in its place, or will be
	}
	v := s.attemptView(a, shown)
	v.Dropped = sl.Dropped
	v.Immediate = s.plan.ResponseImmediate(sl.Task.Name)
	if x := a.Assigned.Fact.Body.Annex; a.Depth > 1 && x != nil {
		v.Reason = cmp.Or(v.Reason, x.Rejected)
	}
	if by := sl.Current; by.Task.Name != sl.Task.Name && !sl.doneItself() {
		v.ReplacedBy = by.Task.Name
		if s.bySlot[by.Task.Name] != nil {
			v.StandIn = &StandIn{by.Partner, s.attemptState(by)}
		}
	}
	if sl.Pick != nil && sl.Pick.Task.Name != a.Task.Name && a.Success() == nil {
		v.State = workflow.Failed // what succeeded is what replaced it
	}
	if v.State == workflow.Failed && a.Success() != nil && sl.Pick == nil {
		v.Also("it was done after all, which counts unless what stands in for it is done, too")
	}
	if waits {
		v.Awaits = sl.Pending.Action.Task
		v.Also("nobody can take the contingency " + string(v.Awaits) + " yet")
	}
	switch {
	case sl.barred && v.State == workflow.Blocked:
		v.Also("a strict constraint is broken")
	case sl.Task.Disabled && v.State == workflow.Skipped:
		v.Also("it is not enabled")
	case sl.barred && v.State == workflow.Skipped:
		v.Also("the data are final")
	}
	for _, x := range sl.Attempts {
		if x.toUndo && x.Stands != Superseded && x.Undo != nil {
			v.Also(undoneByOrder[x.compensation()])
		}
		if x.Success() != nil && x.Stands == Superseded {
			v.Superseded = append(v.Superseded,
				SupersededView{
					Task: x.Task.Name, Partner: x.Partner, Attempt: x.Depth, Ended: x.Success().Fact.At,
					Compensation: x.compensation(),
				})
		}
	}
	return v
}

func (s *State) attemptView(a *Attempt, st workflow.State) TaskView {
	v := TaskView{Task: a.Task, Partition: s.plan.Home(a.Task.Name), Partner: a.Partner, Attempt: a.Depth, State: st}
	if a.ByItself() || a.Weighed != nil {
		v.Why = a.why()
	}
	v.Started, v.Child, v.ID = s.WorkedOnSince(a), a.ChildInstance(), a.ID
	if v.Lease = a.leased(); v.Lease != nil {
		v.LeasedAt = a.lease.Fact.At
	}
	if e := a.Success(); e != nil {
		v.Ended, v.Outputs = e.Fact.At, e.Gave()
	} else if r := s.Prevailing(a.Rulings); r != nil {
		v.Ended, v.Reason = r.At.Fact.At, a.WhyFailed(r)
		if s.begunAfter(a, r, v.Started) {
			v.Started = 0 // it began after all, and does not count yet: what is shown as ended did not begin after that
		}
	} else if a.Failed != nil {
		v.Reason = a.Failed.Fact.Body.TryFailed.Reason
	}
	if before := a.after; a.Skips && before != nil {
		if r := s.Prevailing(before.Rulings); r != nil { // which people want to know still
			v.Also("it had failed: " + before.WhyFailed(r))
		}
	}
	if a.Ready != nil {
		v.TriggerFired = a.Ready.Fact.Body.Ready.Trigger
	}
	return v
}

// WhyFailed is why an attempt failed by the ruling that prevails and, where that is only what others presume, by the word
// of its holder too, which somebody may have typed.
func (a *Attempt) WhyFailed(prevails *Ruling) string {
	why := ReasonOf(prevails.At.Fact.Body.Verdict)
	if prevails.Final {
		return why
	}
	for _, r := range a.Rulings {
		v := r.At.Fact.Body.Verdict
		if r.Final && !r.Void && v.Cause == fact.CauseReported && v.Reason != "" && v.Reason != why {
			return why + "; its holder gave it up: " + v.Reason
		}
	}
	return why
}

// begunAfter reports whether work on an attempt began, at a moment (ms), only after a ruling had ended it. For a start
// its author's knowledge says so, since clocks differ; for a person who took it from its holder the moments do.
func (s *State) begunAfter(a *Attempt, r *Ruling, began int64) bool {
	switch {
	case began <= r.At.Fact.At:
		return false
	case a.Start != nil && a.Start.Fact.At == began:
		return s.log.Knew(a.Start, r.At)
	}
	return true
}

// WorkedOnSince is when an attempt was started, or somebody took it from a worklist, by the clock of its
// holder (ms); 0: neither, or nobody said when.
func (s *State) WorkedOnSince(a *Attempt) (at int64) {
	// A compensation begins by its holder's word, before anybody works on it.
	if a.Start != nil && a.Undoes == nil && !a.startUnknown() {
		at = a.Start.Fact.At
	}
	if s.peoples.Board != nil && !a.Task.ByNode() {
		if taken := s.peoples.Board.TakenAt(ItemOf(a.ID)); !taken.IsZero() && (at == 0 || taken.UnixMilli() < at) {
			at = taken.UnixMilli()
		}
	}
	return at
}

// startUnknown reports whether a person's task was only said to have begun in one
// breath with its end: nobody knows when.
func (a *Attempt) startUnknown() bool {
	if a.Task.ByNode() {
		return false
	}
	together := func(e *log.Entry) bool { return e.Fact.Prev == a.Start.ID && e.Fact.At == a.Start.Fact.At }
	return slices.ContainsFunc(a.Successes, together) ||
		slices.ContainsFunc(a.Rulings, func(r *Ruling) bool { return r.Final && together(r.At) })
}

// ContingencyView shows a task that is only a contingency: by the attempt in charge, or else its newest.
func (s *State) ContingencyView(t *workflow.Task) TaskView {
	v := TaskView{Task: t, Partition: s.plan.Home(t.Name), State: workflow.NotReady, Attempt: 0}
	slots := slices.Clone(s.SlotsOf(t.Name))
	kept := slices.Contains(s.def.Kept().StandIns, t.Name) // nothing begins it any more
	over := len(slots) > 0 || kept || s.Overall() != workflow.InstanceRunning
	slices.SortStableFunc(slots, func(x, y *Slot) int { // what is in charge first
		return AsInt(y.Current.Task.Name == t.Name) - AsInt(x.Current.Task.Name == t.Name)
	})
	for _, sl := range slots {
		over = over && sl.State.Done()
		a := s.standIn(sl, t.Name)
		if sl.Current.Task.Name == t.Name { // two verdicts may each have been followed by one
			a = sl.Current
		}
		if a != nil {
			v = s.attemptView(a, s.attemptState(a))
			v.ContingencyOf = sl.Task.Name
			switch why := a.doneElse(); {
			case why != "" && a.Success() != nil:
				v.Also("its result does not count: " + why)
			case why != "":
				v.Also(why)
			}
			return v
		}
	}
	for _, sl := range s.slots {
		for _, a := range sl.Attempts {
			// Where an application undoes it that one has the task's name.
			if a.Undo == nil || a.Undo.Task.Name != t.Name || a.Task.Name == t.Name {
				continue
			}
			if a.Undo.Start != nil {
				v = s.attemptView(a.Undo, a.Undo.undoingState())
				v.Undoes = a.Task.Name
				return v
			}
			over = over && !a.Lost()
		}
	}
	if over {
		v.State = workflow.Skipped
	}
	return v
}

// undoingState says where the compensation stands of what does not count, or that an order has undone of a graph: it goes
// on whatever becomes of the instance. Its holder's start has a person's task offered.
func (a *Attempt) undoingState() workflow.State {
	switch {
	case a.Success() != nil:
		return workflow.Succeeded
	case len(a.Rulings) > 0:
		return workflow.Failed
	case a.Start == nil:
		return workflow.NotReady
	case a.Task.ByNode():
		return workflow.Running
	}
	return workflow.Ready
}

// attemptState says where one attempt stands.
func (s *State) attemptState(a *Attempt) workflow.State {
	switch {
	case a.Success() != nil:
		return workflow.Succeeded
	case len(a.Rulings) > 0:
		return workflow.Failed
	case a.Off != nil || s.cancel != nil:
		return workflow.Aborted
	case a.Start != nil:
		return workflow.Running
	case a.Slot.Pick != nil && a.Slot.Pick != a:
		return workflow.Skipped // another has done it
	case a.Slot.Current == a:
		return a.Slot.State
	}
	return workflow.Skipped // another is in charge
}

// WritesOf are the values that standing successes gave to a data item.
func (s *State) WritesOf(n workflow.DataName) []workflow.Value {
	var out []workflow.Value
	for _, sl := range s.slots {
		for _, a := range sl.Attempts {
			if v, ok := a.Output(n); ok {
				out = append(out, v)
			}
		}
	}
	return out
}

// FactView is one fact for the log that people read.
type FactView struct {
	Fact    *fact.Fact
	ID      fact.ID
	Time    uint64
	Counted bool
	// Superseded: it counts, and is of a history of data states that does not (flow.go).
	Superseded bool
	// Late: it counts, and is an amendment that came after the data states had ended (Late).
	Late bool
	// Idle is why a success that counts changes nothing of the data states; empty: it does.
	Idle string
	// Lost is, of an amendment that counts, what of it does not, as another that was made side by side does.
	Lost amendments.Patch
	// BuiltUpon are, of a start that counts, the slots whose results it consumed.
	BuiltUpon []workflow.TaskName
	// Speaker is, of a claim, the person who said it; empty: nobody, or it is not true.
	Speaker worklist.User
}
