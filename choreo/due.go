package choreo

import (
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/contingency/waits"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// DueKind says what happens when time is up.
type DueKind string

// What may happen.
const (
	DueTimeout DueKind = "timeout" // the task or partition fails
	DueTrigger DueKind = "trigger" // the emergency task starts without what it waits for
	DueVerdict DueKind = "verdict" // this node judges what another gave no result of
	// DueDeadline is among those of Deadlines, and not of Dues.
	DueDeadline DueKind = "deadline" // nothing: people are told
	DueTransfer DueKind = "transfer" // the item passes to the responsible user; likewise
)

// Due says how much time is left.
type Due struct {
	Kind DueKind
	Left time.Duration
	// Held: the clock is another's, and this is when it ran out if it began when this
	// node heard that it could.
	Held bool
}

// Dues are the clocks that run for tasks and partitions, as far as this node knows.
type Dues struct {
	Tasks      map[workflow.TaskName][]Due // by the task that is performed
	Partitions map[workflow.PartitionName][]Due
}

// Dues shows what this node clocks itself, and what others clock as far as it can
// be known here.
func (m *Machine) Dues(now Moment, partners Partners) Dues {
	o, out := m.looking(now, partners), Dues{}
	if o.state.Overall() != workflow.InstanceRunning && !o.goesOn() {
		return out
	}
	for _, sl := range o.state.Slots() {
		if sl.Dropped != nil || !o.state.Wanted(sl.Current) || sl.State == workflow.Blocked {
			continue
		}
		t := sl.Current.Task.Name
		switch left, runs := o.triggerLeft(sl); {
		case runs:
			out.ofTask(t, Due{DueTrigger, left, sl.Current.Partner != o.self})
		case sl.State == workflow.Ready || sl.State == workflow.Running || o.goesOnHere(sl):
			if left, runs := o.timeoutLeft(sl.Current); runs {
				out.ofTask(t, Due{DueTimeout, left, sl.Current.Partner != o.self})
			}
		}
	}
	for _, g := range o.state.Placements() {
		if d, runs := o.partitionDue(g); runs {
			if out.Partitions == nil {
				out.Partitions = map[workflow.PartitionName][]Due{}
			}
			out.Partitions[g.Partition] = append(out.Partitions[g.Partition], d)
		}
	}
	return out
}

// ofTask adds a clock of a task. Most instances have none, so there is no map until then.
func (ds *Dues) ofTask(t workflow.TaskName, d Due) {
	if ds.Tasks == nil {
		ds.Tasks = map[workflow.TaskName][]Due{}
	}
	ds.Tasks[t] = append(ds.Tasks[t], d)
}

// TimeLeft is how long an attempt that runs here may go on: until the time-out of its task, or of its partition where
// that is here, whichever comes first. False: it may take as long as it likes.
func (m *Machine) TimeLeft(id fact.AttemptID, now Moment) (left time.Duration, limited bool) {
	o, a := m.looking(now, nil), m.state.Attempts()[id]
	if a == nil {
		return 0, false
	}
	left, limited = o.timeoutLeft(a)
	home := o.state.Plan().Home(a.Task.Name)
	for _, g := range o.state.Placements() {
		if g.Partition != home || g.Partner != o.self {
			continue
		}
		if d, runs := o.partitionDue(g); runs && (!limited || d.Left < left) {
			left, limited = d.Left, true
		}
	}
	return left, limited
}

// triggerLeft is after what time a slot's emergency trigger fires.
func (o outlook) triggerLeft(sl *state.Slot) (left time.Duration, runs bool) {
	if !o.state.Armed(sl) {
		return 0, false
	}
	if c := o.clocks.Get(waits.Key{Kind: waits.Trigger, Name: string(sl.Task.Name)}); c != nil {
		return max(sl.Task.TimeToWait-c.Read(o.now.Boot), 0), true
	}
	for _, p := range o.state.Definition().Predecessors(sl.Task.Name) {
		for _, from := range o.state.SlotsOf(p) {
			if from.State != workflow.NotReady {
				left, runs = max(left, o.noticedFor(from.Current)), true
			}
		}
	}
	if runs {
		return max(sl.Task.TimeToWait-left, 0), true
	}
	age := o.clocks.Get(waits.Key{Kind: waits.WorstCase})
	begins, known := o.state.Plan().WaitStart(sl.Task.Name)
	if age == nil || !known {
		return 0, false
	}
	return max(begins+sl.Task.TimeToWait-age.Read(o.now.Boot), 0), true
}

// noticedFor is for how long an attempt is known here to be able to begin.
func (o outlook) noticedFor(a *state.Attempt) time.Duration {
	if a.Noticed == 0 { // it was just told, and nothing was decided since
		return 0
	}
	return o.now.Boot - a.Noticed
}

// timeoutLeft is after what time an attempt that is ready or runs is overdue.
func (o outlook) timeoutLeft(a *state.Attempt) (left time.Duration, runs bool) {
	total := a.Task.Timeout
	if total == 0 {
		return 0, false
	}
	if a.Partner != o.self {
		return max(total-a.WaitedBefore()-o.noticedFor(a), 0), true
	}
	c := o.clocks.Get(waits.Key{Kind: waits.Timeout, Name: a.ID.String()})
	if c == nil {
		return 0, false
	}
	return max(total-c.Read(o.now.Boot), 0), true
}

// partitionDue is after what time a partition of ours is overdue, or this node
// judges what is left of another's.
func (o outlook) partitionDue(g state.Placement) (d Due, runs bool) {
	kind, key := DueTimeout, waits.Key{Kind: waits.Partition, Name: string(g.Partition)}
	total := o.state.Plan().Partition(g.Partition).Timeout
	if g.Partner != o.self {
		kind, key.Kind = DueVerdict, waits.Answer
		answer := o.state.AnswerTime(g.Partition, o.unfinishedIn(g.Partition))
		total = answer + waits.Slack(answer) + o.judgesBefore()*waits.GuardianTimeout
	}
	c := o.clocks.Get(key)
	if c == nil || !c.Running() {
		return Due{}, false
	}
	return Due{Kind: kind, Left: max(total-c.Read(o.now.Boot), 0)}, true
}
