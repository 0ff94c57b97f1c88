package choreo

import (
	"cmp"
	"maps"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// Snapshot is an instance as people see it.
type Snapshot struct {
	State      workflow.InstanceState
	Duplicated bool
	Started    int64 // ms, the initiator's clock
	Partitions []PartitionView
	Tasks      []state.TaskView
	Data       map[workflow.DataName]workflow.Value
	Conflicts  map[workflow.DataName][]workflow.Value
	Incidents  []state.IncidentView
}

// PartitionView is one partition of an instance.
type PartitionView struct {
	Name workflow.PartitionName
	// First was given it at the start; Now are those who hold what of it is not done, in
	// the order of the tasks, or who held it, where all is done.
	First workflow.PartnerID
	Now   []workflow.PartnerID
	State workflow.State
	Why   *fact.Why // how it came to First; nil: unknown
}

// Snapshot shows the instance as this replica knows it.
func (m *Machine) Snapshot() Snapshot {
	s := m.state
	out := Snapshot{
		State: s.ShownState(), Started: m.log.Genesis().Fact.At, Data: maps.Clone(s.Values()),
		Conflicts: map[workflow.DataName][]workflow.Value{},
	}
	for _, name := range s.Definition().TopoOrder() {
		t := s.Definition().Task(name)
		switch {
		case t.Whole:
		case t.Condition != nil:
			out.Tasks = append(out.Tasks, s.TriggerView(t))
		case t.ContingencyOnly && s.Flow() != nil:
			out.Tasks = append(out.Tasks, s.UndoView(t))
		case t.ContingencyOnly:
			out.Tasks = append(out.Tasks, s.ContingencyView(t))
		default:
			out.Tasks = append(out.Tasks, s.SlotView(s.BySlot()[t.Name]))
		}
	}
	out.Tasks = append(out.Tasks, s.DroppedViews()...)
	for i := range out.Tasks {
		m.showPresumed(&out.Tasks[i])
	}
	for _, g := range s.Placements() {
		why := s.Log().Genesis().Fact.Body.Annex.Of(g.Partition, "")
		out.Partitions = append(out.Partitions, PartitionView{
			Name: g.Partition, First: g.Partner, Now: m.heldNow(g.Placement, out.Tasks),
			State: s.PartitionState(g.Partition, out.Tasks), Why: why,
		})
	}
	for i := range out.Tasks {
		v := &out.Tasks[i]
		if why := m.waitsForPerformer(v.Task); why != "" && v.State == workflow.Ready {
			v.Also(why)
		}
		a := s.Attempts()[v.ID]
		if a == nil || v.State != workflow.Ready && v.State != workflow.Running {
			continue
		}
		if v.WaitsFor = s.Lacking(a); len(v.WaitsFor) > 0 {
			v.Also("waits for " + worklist.Lacking(v.WaitsFor))
		}
		v.Shared = s.Shared(a)
		for _, l := range v.Shared {
			v.Also(l.SharedText())
		}
	}
	for n := range s.Conflicts() {
		out.Conflicts[n] = s.WritesOf(n)
	}
	for _, sl := range s.Slots() {
		out.Duplicated = out.Duplicated || sl.Duplicated
	}
	if x := s.Interruption(); x != nil {
		out.Incidents = append(out.Incidents, state.IncidentView{At: x.At, Task: x.Task,
			What: "interrupted: " + x.String()})
	}
	out.Incidents = append(out.Incidents, s.Incidents()...)
	return out
}

// showPresumed shows a task of this node's as it is, which goes on here though somebody presumed that it had failed.
func (m *Machine) showPresumed(v *state.TaskView) {
	if v.State != workflow.Failed || v.Partner != m.self {
		return
	}
	for _, sl := range m.state.SlotsOf(v.Task.Name) {
		a := sl.Current
		if a.Task != v.Task || a.Depth != v.Attempt || !m.goesOnHere(sl) {
			continue
		}
		r := m.state.Prevailing(a.Rulings)
		v.PresumedBy, v.Ended, v.State = r.At.Fact.Chain.Author, 0, m.stateHere(sl)
		v.Started = m.state.WorkedOnSince(a)
	}
}

// stateHere is how a slot's task stands for this node, which may go on with what somebody presumed to have failed.
func (m *Machine) stateHere(sl *state.Slot) workflow.State {
	switch a := sl.Current; {
	case sl.State != workflow.Failed || !m.goesOnHere(sl):
		return sl.State
	case a.Start != nil:
		return workflow.Running
	case a.MayStart():
		return workflow.Ready
	}
	return workflow.NotReady
}

// goesOnHere reports whether this node works on at what somebody presumed to have failed.
func (m *Machine) goesOnHere(sl *state.Slot) bool {
	return m.atWork(sl) && m.state.Prevailing(sl.Current.Rulings) != nil
}

// waitsForPerformer says why a person's task here has nobody to perform it; empty:
// it has, or is elsewhere.
func (m *Machine) waitsForPerformer(t *workflow.Task) string {
	for _, sl := range m.state.SlotsOf(t.Name) {
		if why := m.nobody[sl.Current.ID]; why != "" && sl.Current.Task == t {
			return why
		}
	}
	return ""
}

// heldNow are the partners that hold what of a partition is not done, as far as its holder has said: what others only
// presume to have failed is not; where all is done, those that held it. What nobody was given yet is for the one that
// got it at the start. A flow that is driven by data is held as a whole, also while it is interrupted and none of its
// tasks is under way: whoever did these last is not asked.
func (m *Machine) heldNow(g fact.Placement, tasks []state.TaskView) (now []workflow.PartnerID) {
	if sl := m.state.BySlot()[workflow.FlowTask]; sl != nil && m.state.Plan().Home(workflow.FlowTask) == g.Partition {
		if now = append(now, sl.Current.Partner); !sl.State.Done() {
			return now
		}
	}
	for _, done := range []bool{false, true} {
		for _, t := range tasks {
			if t.Partition != g.Partition || (t.State.Done() && !m.isLeftToHolder(t)) != done {
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

// isLeftToHolder reports whether a task is shown as failed only as others presume, and nothing deals with that: its
// holder, which has not given it up, may go on with it.
func (m *Machine) isLeftToHolder(t state.TaskView) bool {
	a := m.state.Attempts()[t.ID]
	return a != nil && t.State == workflow.Failed && m.state.Unhandled(a) && !a.EndedByHolder()
}

// Progress counts the tasks that succeeded or are not needed, and all tasks, and
// names the partners with whom one is ready or runs, in the order of their IDs; of what goes on here though
// others presumed that it failed, this node.
func (m *Machine) Progress() (done, tasks int, at []workflow.PartnerID) {
	for _, sl := range m.state.Slots() {
		tasks++
		switch {
		case sl.State == workflow.Succeeded || sl.State == workflow.Skipped, sl.Held && m.state.Cancelled() != nil:
			done++
		case !sl.State.Done() && sl.State != workflow.NotReady, sl.State == workflow.Failed && m.goesOnHere(sl):
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

// PeoplesWork counts people's tasks by the person who has claimed them, or whose result counts, or by those to whom
// they are offered by name; else by the partner that has them, or did them.
func (m *Machine) PeoplesWork() map[worklist.User]PeoplesWork {
	out := map[worklist.User]PeoplesWork{}
	for _, sl := range m.state.Slots() {
		if sl.Task.ByNode() {
			continue
		}
		if sl.State == workflow.Succeeded {
			if who := m.performer(sl); who != "" {
				w := out[who]
				w.Done++
				out[who] = w
			}
			continue
		}
		who, stands := worklist.User(sl.Current.Partner), m.stateHere(sl)
		h, claimed := m.state.HoldOf(sl.Current)
		if claimed {
			who = h.User
		}
		if to, _ := m.state.Offered(sl.Current); !claimed && stands == workflow.Ready && len(to) > 0 {
			for _, u := range to {
				w := out[u]
				w.Assigned++
				out[u] = w
			}
			continue
		}
		w := out[who]
		switch {
		case stands == workflow.Running, stands == workflow.Ready && claimed:
			w.Selected++
		case stands == workflow.Ready:
			w.Assigned++
		default:
			continue
		}
		out[who] = w
	}
	for _, a := range m.state.PeoplesJobs() {
		if h, claimed := m.state.HoldOf(a); claimed {
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

// performer is who did a task that has succeeded: whoever brought the result that counts, also by adoption and whoever
// has another attempt, else the partner; empty: nobody did it, as it was not needed.
func (m *Machine) performer(sl *state.Slot) worklist.User {
	a := sl.Pick
	if a == nil {
		return ""
	}
	if ok := a.Success(); ok != nil && ok.Fact.Body.Claim != nil {
		if x, adopts := ok.Fact.Body.Claim.Body().(worklist.Adopt); adopts {
			if r := m.log.ByID()[fact.ID(x.Result)]; r != nil {
				return r.Speaker().User
			}
		}
	}
	if m.Claims() {
		if _, by, taken := m.state.People().Board.Taken(state.ItemOf(a.ID)); taken {
			return by
		}
	}
	return worklist.User(a.Partner)
}

// Facts are all facts of the replica, in the order of logical time.
func (m *Machine) Facts() []state.FactView {
	es := slices.Clone(m.log.Order())
	slices.SortFunc(es, log.ByTime)
	out, passed, amended := make([]state.FactView, len(es)), m.state.Passed(), map[*log.Entry]state.Amendment{}
	for _, a := range m.state.Amendments() {
		amended[a.At] = a
	}
	for i, e := range es {
		out[i] = state.FactView{
			Fact: e.Fact, ID: e.ID, Time: e.Time, Counted: e.Counted, Superseded: passed[e], Late: amended[e].Late,
			Lost: amended[e].Lost, Speaker: e.Speaker().User,
		}
		if e.Fact.Body.Success != nil {
			out[i].Idle = m.state.WhyIdle(e)
		}
		if b := e.Fact.Body.Start; b != nil && e.Counted {
			for from := range m.state.BuiltOn(m.state.Attempts()[b.Attempt], e) {
				out[i].BuiltUpon = append(out[i].BuiltUpon, from.Slot.Task.Name)
			}
		}
	}
	return out
}

// Compensates reports whether an attempt is there to undo another.
func (m *Machine) Compensates(id fact.AttemptID) bool {
	a := m.state.Attempts()[id]
	return a != nil && a.Undoes != nil
}

// AttemptTask names the task that an attempt performs, and who holds it.
func (m *Machine) AttemptTask(id fact.AttemptID) (workflow.TaskName, workflow.PartnerID) {
	if a := m.state.Attempts()[id]; a != nil {
		return a.Task.Name, a.Partner
	}
	return id.Slot, ""
}

// TasksTaken are the tasks of which a person has, or had, an item.
func (m *Machine) TasksTaken(u worklist.User) (out []workflow.TaskName) {
	if !m.Claims() {
		return nil
	}
	had, _ := m.state.People().Board.Had(u)
	for i := range had {
		task, _ := m.AttemptTask(fact.AttemptIDOf(i))
		out = append(out, task)
	}
	return out
}
