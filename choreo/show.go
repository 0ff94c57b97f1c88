package choreo

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// Snapshot is an instance as people see it.
type Snapshot struct {
	State      workflow.InstanceState
	Duplicated bool
	Started    int64 // ms, the initiator's clock
	Partitions []PartitionView
	Tasks      []TaskView
	Data       map[workflow.DataName]workflow.Value
	Conflicts  map[workflow.DataName][]workflow.Value
	Incidents  []IncidentView
}

// PartitionView is one partition of an instance.
type PartitionView struct {
	Name workflow.PartitionName
	// First was given it at the start; Now are those who hold what of it is not done, in
	// the order of the tasks, or who held it, where all is done.
	First workflow.PartnerID
	Now   []workflow.PartnerID
	State workflow.State
	Why   *Why // how it came to First; nil: unknown
}

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
	ReplacedBy    workflow.TaskName
	StandIn       *StandIn // how that stands, where it is a task in the flow as well: what it has here is its own
	TriggerFired  bool
	Reason        string
	// ID names the attempt that is shown. Lease is the last by which a worker had its newest
	// try, and LeasedAt since when, by its holder's clock (ms); nil: none had.
	ID       AttemptID
	Lease    *Lease
	LeasedAt int64
	// PresumedBy said that it had failed, while it goes on here; empty: nobody, or it does not.
	PresumedBy workflow.PartnerID
	Awaits     workflow.TaskName // a contingency that nobody can take yet
	Superseded []SupersededView
	// Why is how it came to its partner, where it was assigned by itself.
	Why *Why
	// Dropped says why it is not needed; nil: it is.
	Dropped *Dropped
	// WaitsFor are the resources that it is to hold and has not got yet.
	WaitsFor []worklist.Lack
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
)

// IncidentView is something that people should look at.
type IncidentView struct {
	At   int64
	What string
	Task workflow.TaskName
	// Who is the partner that it is about, if any.
	Who workflow.PartnerID
}

// Snapshot shows the instance as this replica knows it.
func (m *Machine) Snapshot() Snapshot {
	s := m.state
	out := Snapshot{
		State: s.shownState(), Started: m.log.genesis.fact.At, Data: maps.Clone(s.values),
		Conflicts: map[workflow.DataName][]workflow.Value{},
	}
	for _, name := range s.def.TopoOrder() {
		t := s.def.Task(name)
		switch {
		case t.Whole:
		case t.Condition != nil:
			out.Tasks = append(out.Tasks, s.triggerView(t))
		case t.ContingencyOnly:
			out.Tasks = append(out.Tasks, s.contingencyView(t))
		default:
			out.Tasks = append(out.Tasks, s.slotView(s.bySlot[t.Name]))
		}
	}
	for i := range out.Tasks {
		m.showPresumed(&out.Tasks[i])
	}
	for _, g := range s.genesis.Assign {
		why := s.log.genesis.fact.Body.Annex.of(g.Partition, "")
		out.Partitions = append(out.Partitions, PartitionView{
			Name: g.Partition, First: g.Partner, Now: heldNow(g, out.Tasks),
			State: s.partitionState(g.Partition, out.Tasks), Why: why,
		})
	}
	for i := range out.Tasks {
		v := &out.Tasks[i]
		if why := m.waitsForPerformer(v.Task); why != "" && v.State == workflow.Ready {
			v.also(why)
		}
		if a := s.attempts[v.ID]; a != nil && v.State == workflow.Ready {
			if v.WaitsFor = s.lacking(a); len(v.WaitsFor) > 0 {
				v.also("waits for " + worklist.Lacking(v.WaitsFor))
			}
		}
	}
	for n := range s.conflicts {
		out.Conflicts[n] = s.writesOf(n)
	}
	for _, sl := range s.slots {
		out.Duplicated = out.Duplicated || sl.Duplicated
	}
	if x := s.interruption(); x != nil {
		out.Incidents = append(out.Incidents, IncidentView{At: x.At, Task: x.Task, What: "interrupted: " + x.Cause})
	}
	out.Incidents = append(out.Incidents, s.incidents()...)
	return out
}

// showPresumed shows a task of this node's as it is, which goes on here though somebody presumed that it had failed.
func (m *Machine) showPresumed(v *TaskView) {
	if v.State != workflow.Failed || v.Partner != m.self {
		return
	}
	for _, sl := range m.state.slotsOf(v.Task.Name) {
		a := sl.Current
		if a.Task != v.Task || a.Depth != v.Attempt || !m.goesOnHere(sl) {
			continue
		}
		r := m.state.prevailing(a.rulings)
		v.PresumedBy, v.Ended, v.State = r.at.fact.Chain.Author, 0, workflow.NotReady
		switch {
		case a.start != nil:
			v.State = workflow.Running
		case a.mayStart():
			v.State = workflow.Ready
		}
	}
}

// goesOnHere reports whether this node works on at what somebody presumed to have failed.
func (m *Machine) goesOnHere(sl *Slot) bool {
	return m.atWork(sl) && m.state.prevailing(sl.Current.rulings) != nil
}

// incidents are what people should look at.
func (s *State) incidents() (out []IncidentView) {
	for _, sl := range s.slots {
		if sl.Duplicated {
			out = append(out, IncidentView{
				At: sl.Pick.success().fact.At, Task: sl.Task.Name,
				What: "both sides of a split built upon a success of their own",
			})
		}
		for _, a := range sl.Attempts {
			out = append(out, s.undoIncidents(a)...)
			if x, is := a.missing(); is {
				out = append(out, x)
			}
			if a.tookItself() {
				what := "it presumed that another had failed " + string(a.after.Task.Name) +
					", and gave the contingency to itself"
				task := a.Task.Name
				if a.Task.Whole {
					task, what = "", "it presumed that the holder of the data states was lost, and goes on with them itself"
				}
				out = append(out, IncidentView{At: a.assigned.fact.At, Task: task, Who: a.Partner, What: what})
			}
		}
	}
	out = append(out, s.brokenConstraints()...)
	out = append(out, s.flowIncidents()...)
	out = append(out, s.unitIncidents()...)
	out = append(out, s.uncounted()...)
	for _, h := range s.log.Forks() {
		out = append(out, IncidentView{
			At: s.log.genesis.fact.At, Who: h.Chain.Author,
			What: "two facts with one number: this partner lied or was restored from a backup",
		})
	}
	return out
}

// also adds to the reason why a task stands where it does.
func (v *TaskView) also(why string) { v.Reason = strings.TrimPrefix(v.Reason+"; "+why, "; ") }

// waitsForPerformer says why a person's task here has nobody to perform it; empty:
// it has, or is elsewhere.
func (m *Machine) waitsForPerformer(t *workflow.Task) string {
	for _, sl := range m.state.slotsOf(t.Name) {
		if why := m.nobody[sl.Current.ID]; why != "" && sl.Current.Task == t {
			return why
		}
	}
	return ""
}

// heldNow are the partners that hold what of a partition is not done; where all is done,
// those that held it. What nobody was given yet is for the one that got it at the start.
func heldNow(g Placement, tasks []TaskView) (now []workflow.PartnerID) {
	for _, done := range []bool{false, true} {
		for _, t := range tasks {
			if t.Partition != g.Partition || t.State.Done() != done {
				continue
			}
			if who := cmp.Or(t.Partner, g.Partner); !slices.Contains(now, who) {
				now = append(now, who)
			}
		}
		if len(now) > 0 {
			return now
		}
	}
	return []workflow.PartnerID{g.Partner}
}

// Progress counts the tasks that succeeded or are not needed, and all tasks, and
// names the partners with whom one is ready or runs, in the order of their IDs.
func (m *Machine) Progress() (done, tasks int, at []workflow.PartnerID) {
	for _, sl := range m.state.slots {
		tasks++
		switch {
		case sl.State == workflow.Succeeded || sl.State == workflow.Skipped:
			done++
		case !sl.State.Done() && sl.State != workflow.NotReady:
			at = append(at, sl.Current.Partner)
		}
	}
	slices.Sort(at)
	return done, tasks, slices.Compact(at)
}

// PeoplesWork is how much of people's work a person or a partner has.
type PeoplesWork struct {
	Done     int // tasks that succeeded with it
	Assigned int // that are ready with it
	Selected int // that a person began, or has claimed
}

// PeoplesWork counts people's tasks by the person who has claimed them, or has ended them so, or by those to whom they
// are offered by name; else by the partner that has them, or had them last.
func (m *Machine) PeoplesWork() map[worklist.User]PeoplesWork {
	out := map[worklist.User]PeoplesWork{}
	for _, sl := range m.state.slots {
		if sl.Task.ByNode() {
			continue
		}
		who := worklist.User(sl.Current.Partner)
		h, claimed := m.state.holdOf(sl.Current)
		if claimed {
			who = h.User
		} else if m.Claims() {
			if _, by, taken := m.state.peoples.board.Taken(itemOf(sl.Current.ID)); taken {
				who = by
			}
		}
		if to, _ := m.state.offered(itemOf(sl.Current.ID)); !claimed && sl.State == workflow.Ready && len(to) > 0 {
			for _, u := range to {
				w := out[u]
				w.Assigned++
				out[u] = w
			}
			continue
		}
		w := out[who]
		switch {
		case sl.State == workflow.Succeeded:
			w.Done++
		case sl.State == workflow.Running, sl.State == workflow.Ready && claimed:
			w.Selected++
		case sl.State == workflow.Ready:
			w.Assigned++
		default:
			continue
		}
		out[who] = w
	}
	for _, a := range m.state.peoplesJobs() {
		if h, claimed := m.state.holdOf(a); claimed {
			w := out[h.User]
			w.Selected++
			out[h.User] = w
		} else {
			w := out[worklist.User(a.Partner)]
			w.Assigned++
			out[worklist.User(a.Partner)] = w
		}
	}
	return out
}

// tookItself reports whether an attempt is its holder's by its own word: it judged
// what another had, or chose who follows. That may be right, and is not proved.
func (a *Attempt) tookItself() bool {
	return a.by != nil && !a.by.final && a.assigned.fact.Chain.Author == a.Partner && a.after.Partner != a.Partner
}

// uncounted are the facts that do not count, but for those of forked chains.
func (s *State) uncounted() (out []IncidentView) {
	first := func(a, b refusal) int { return byTime(s.refusals[a].first, s.refusals[b].first) }
	order := slices.SortedFunc(maps.Keys(s.refusals), first)
	for _, r := range order[:min(len(order), maxUncounted)] {
		s.log.steps++
		of := s.refusals[r]
		what := fmt.Sprintf("%d of its facts do not count: %s", of.number, r.why)
		if of.number == 1 {
			what = "one of its facts does not count: " + r.why
		}
		out = append(out, IncidentView{At: of.first.fact.At, Who: r.by, What: what})
	}
	return out
}

// maxUncounted bounds the kinds of facts that do not count that people are shown.
const maxUncounted = 32

// undoIncidents are what people should know of an attempt's compensation.
func (s *State) undoIncidents(a *Attempt) (out []IncidentView) {
	if a.undo == nil {
		return nil
	}
	if r := s.prevailing(a.undo.rulings); r != nil && a.undo.success() == nil {
		out = append(out, IncidentView{
			At: r.at.fact.At, Task: a.Task.Name, Who: a.Partner,
			What: "its compensation failed: " + reasonOf(r.at.fact.Body.Verdict),
		})
	}
	if a.undo.start != nil && a.stands != superseded && !a.toUndo {
		out = append(out, IncidentView{
			At: a.undo.start.fact.At, Task: a.Task.Name, Who: a.Partner,
			What: "it was compensated, and then turned out to have been built upon",
		})
	}
	return out
}

// undoneByOrder says how far the undoing has got that somebody ordered.
var undoneByOrder = map[Compensation]string{
	CompensationWaits: "it is to be undone, by order", CompensationRuns: "it is being undone, by order",
	CompensationDone: "it was undone, by order", CompensationFailed: "it was to be undone by order, and that failed",
}

// compensation is how far the undoing of an attempt that lost has got.
func (a *Attempt) compensation() Compensation {
	switch u := a.undo; {
	case u == nil:
		return NotCompensated
	case u.success() != nil:
		return CompensationDone
	case u.endedByHolder():
		return CompensationFailed
	case u.start != nil:
		return CompensationRuns
	}
	return CompensationWaits
}

// partitionState sums up what is shown of a partition's tasks: what is most alive of
// them. Those that ran in place of others count too. A failure that was released, or of
// what another did in its place, holds up nothing, so what succeeded beside it goes before it.
func (s *State) partitionState(p workflow.PartitionName, tasks []TaskView) workflow.State {
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
	return shown
}

// releasedFailure reports whether a task, or what stood in for it at last, failed, and its
// successors were released.
func (s *State) releasedFailure(t workflow.TaskName) bool {
	return slices.ContainsFunc(s.slotsOf(t), func(sl *Slot) bool {
		return sl.State == workflow.Failed && sl.Outcome != nil && sl.Outcome.action.Kind == workflow.FailRelease
	})
}

// doneInPlaceOf reports whether a contingency succeeded in place of a task.
func (s *State) doneInPlaceOf(t workflow.TaskName) bool {
	return slices.ContainsFunc(s.slotsOf(t), func(sl *Slot) bool { return sl.Pick != nil && sl.Pick.Task.Name != t })
}

func (s *State) slotView(sl *Slot) TaskView {
	a := s.latest(sl.Attempts[0])
	shown := sl.State
	waits := sl.Pending != nil && sl.Pick == nil
	if !shown.Done() && (sl.Current != a || (waits && a.endedByHolder())) {
		shown = workflow.Failed // a contingency is at work in its place, or will be
	}
	v := s.attemptView(a, shown)
	v.Dropped = sl.Dropped
	v.Immediate = s.plan.ResponseImmediate(sl.Task.Name)
	if x := a.assigned.fact.Body.Annex; a.Depth > 1 && x != nil {
		v.Reason = cmp.Or(v.Reason, x.Rejected)
	}
	if by := sl.Current; by.Task != sl.Task {
		v.ReplacedBy = by.Task.Name
		if s.bySlot[by.Task.Name] != nil {
			v.StandIn = &StandIn{by.Partner, s.attemptState(by)}
		}
	}
	if sl.Pick != nil && sl.Pick.Task != a.Task && a.success() == nil {
		v.State = workflow.Failed // what succeeded is what replaced it
	}
	if waits {
		v.Awaits = sl.Pending.action.Task
		v.also("nobody can take the contingency " + string(v.Awaits) + " yet")
	}
	switch {
	case sl.barred && v.State == workflow.Blocked:
		v.also("a strict constraint is broken")
	case sl.Task.Disabled && v.State == workflow.Skipped:
		v.also("it is not enabled")
	case sl.barred && v.State == workflow.Skipped:
		v.also("the data are final")
	}
	for _, x := range sl.Attempts {
		if x.toUndo && x.stands != superseded && x.undo != nil {
			v.also(undoneByOrder[x.compensation()])
		}
		if x.success() != nil && x.stands == superseded {
			v.Superseded = append(v.Superseded,
				SupersededView{
					Task: x.Task.Name, Partner: x.Partner, Attempt: x.Depth, Ended: x.success().fact.At,
					Compensation: x.compensation(),
				})
		}
	}
	return v
}

func (s *State) attemptView(a *Attempt, st workflow.State) TaskView {
	v := TaskView{Task: a.Task, Partition: s.plan.Home(a.Task.Name), Partner: a.Partner, Attempt: a.Depth, State: st}
	if a.byItself() || a.weighed != nil {
		v.Why = a.why()
	}
	v.Started, v.Child, v.ID = s.workedOnSince(a), a.childInstance(), a.ID
	if v.Lease = a.leased(); v.Lease != nil {
		v.LeasedAt = a.lease.fact.At
	}
	if e := a.success(); e != nil {
		v.Ended, v.Outputs = e.fact.At, e.gave()
	} else if r := s.prevailing(a.rulings); r != nil {
		v.Ended, v.Reason = r.at.fact.At, reasonOf(r.at.fact.Body.Verdict)
	} else if a.failed != nil {
		v.Reason = a.failed.fact.Body.TryFailed.Reason
	}
	if a.ready != nil {
		v.TriggerFired = a.ready.fact.Body.Ready.Trigger
	}
	return v
}

// workedOnSince is when an attempt was started, or somebody took it from a worklist, by the clock of its
// holder (ms); 0: neither, or nobody said when.
func (s *State) workedOnSince(a *Attempt) (at int64) {
	if a.start != nil && !a.startUnknown() {
		at = a.start.fact.At
	}
	if s.peoples.board != nil && !a.Task.ByNode() {
		if taken := s.peoples.board.TakenAt(itemOf(a.ID)); !taken.IsZero() && (at == 0 || taken.UnixMilli() < at) {
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
	together := func(e *entry) bool { return e.fact.Prev == a.start.id && e.fact.At == a.start.fact.At }
	return slices.ContainsFunc(a.successes, together) ||
		slices.ContainsFunc(a.rulings, func(r *ruling) bool { return r.final && together(r.at) })
}

func reasonOf(v *Verdict) string {
	if v.Reason != "" {
		return v.Reason
	}
	return string(v.Cause)
}

// contingencyView shows a task that is only a contingency: by the attempt in charge, or else its newest.
func (s *State) contingencyView(t *workflow.Task) TaskView {
	v := TaskView{Task: t, Partition: s.plan.Home(t.Name), State: workflow.NotReady, Attempt: 0}
	slots := s.slotsOf(t.Name)
	over := len(slots) > 0 || s.overall() != workflow.InstanceRunning
	for _, sl := range slots {
		over = over && sl.State.Done()
		a := s.standIn(sl, t.Name)
		if sl.Current.Task == t { // two verdicts may each have been followed by one
			a = sl.Current
		}
		if a != nil {
			v = s.attemptView(a, s.attemptState(a))
			v.ContingencyOf = sl.Task.Name
			return v
		}
	}
	for _, sl := range s.slots {
		for _, a := range sl.Attempts {
			if a.undo == nil || a.undo.Task != t {
				continue
			}
			if a.undo.start != nil {
				return s.attemptView(a.undo, s.attemptState(a.undo))
			}
			over = over && !a.lost()
		}
	}
	if over {
		v.State = workflow.Skipped
	}
	return v
}

// attemptState says where one attempt stands.
func (s *State) attemptState(a *Attempt) workflow.State {
	switch {
	case a.success() != nil:
		return workflow.Succeeded
	case len(a.rulings) > 0:
		return workflow.Failed
	case a.off != nil || s.cancel != nil:
		return workflow.Aborted
	case a.start != nil:
		return workflow.Running
	case a.Slot.Current == a:
		return a.Slot.State
	}
	return workflow.Ready
}

// writesOf are the values that standing successes gave to a data item.
func (s *State) writesOf(n workflow.DataName) []workflow.Value {
	var out []workflow.Value
	for _, sl := range s.slots {
		for _, a := range sl.Attempts {
			if v, ok := a.output(n); ok {
				out = append(out, v)
			}
		}
	}
	return out
}

// FactView is one fact for the log that people read.
type FactView struct {
	Fact    *Fact
	ID      FactID
	Time    uint64
	Counted bool
	// BuiltUpon are, of a start that counts, the slots whose results it consumed.
	BuiltUpon []workflow.TaskName
	// Speaker is, of a claim, the person who said it; empty: nobody, or it is not true.
	Speaker worklist.User
}

// Facts are all facts of the replica, in the order of logical time.
func (m *Machine) Facts() []FactView {
	es := slices.Clone(m.log.order)
	slices.SortFunc(es, byTime)
	out := make([]FactView, len(es))
	for i, e := range es {
		out[i] = FactView{Fact: e.fact, ID: e.id, Time: e.time, Counted: e.counted, Speaker: e.speaker().User}
		if b := e.fact.Body.Start; b != nil && e.counted {
			for from := range m.state.builtOn(m.state.attempts[b.Attempt], e) {
				out[i].BuiltUpon = append(out[i].BuiltUpon, from.Slot.Task.Name)
			}
		}
	}
	return out
}

// Compensates reports whether an attempt is there to undo another.
func (m *Machine) Compensates(id AttemptID) bool {
	a := m.state.attempts[id]
	return a != nil && a.undoes != nil
}

// AttemptTask names the task that an attempt performs, and who holds it.
func (m *Machine) AttemptTask(id AttemptID) (workflow.TaskName, workflow.PartnerID) {
	if a := m.state.attempts[id]; a != nil {
		return a.Task.Name, a.Partner
	}
	return id.Slot, ""
}
