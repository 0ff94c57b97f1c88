package amendments

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Standing is how far an instance has got that is to be changed.
type Standing struct {
	State workflow.InstanceState
	Tasks map[workflow.TaskName]Work
	// Data are the values that are set.
	Data map[workflow.DataName]workflow.Value
}

// Work is where a task stands. Taken: somebody or something began it, though it may count as READY. Asked: nobody did,
// and its holder wrote down that it is READY, so that it waits for nothing any more.
type Work struct {
	State        workflow.State
	Taken, Asked bool
}

// stage is how much of a task can still be changed.
type stage uint8

const (
	untouched stage = iota // nobody has begun it: all of it can be changed
	underWay               // somebody does it, by what it said when that began
	over                   // it has a result, or has failed
)

// Ended reports whether the instance has.
func (s *Standing) Ended() bool {
	return slices.Contains([]workflow.InstanceState{
		workflow.InstanceCancelled, workflow.InstanceSucceeded, workflow.InstanceFailed,
	}, s.State)
}

// stage says it of a task. What data states fire is fired again and again, so that it is never over; nor is what only
// undoes others.
func (s *Standing) stage(def *workflow.Definition, n workflow.TaskName) stage {
	w := s.Tasks[n]
	fires := false
	if t := def.Task(n); t != nil {
		fires = t.Condition != nil || onlyUndoes(def, n)
	}
	switch w.State {
	case workflow.Succeeded, workflow.Failed, workflow.Aborted:
		if fires {
			return untouched
		}
		return over
	case workflow.Running:
		return underWay
	case workflow.Ready:
		if w.Taken || w.Asked || fires { // its job is given out with the state that fired it
			return underWay
		}
	}
	return untouched
}

// Finding is what an instance does with a change that it does not simply take.
type Finding struct {
	Part
	Key string `json:"key,omitempty"` // empty: the part as a whole
	// Refused: the instance cannot be changed so, and none of the other changes counts for it either. Otherwise
	// the change has no effect on this instance, and counts for those that are started later.
	Refused bool   `json:"refused"`
	Why     string `json:"why"`
	Next    string `json:"next,omitempty"` // what to do instead; empty of what is not refused
}

func (f Finding) String() string {
	where := f.Part.String()
	if f.Key != "" {
		where += ", " + f.Key
	}
	if f.Next != "" {
		return fmt.Sprintf("%s: %s (%s)", where, f.Why, f.Next)
	}
	return where + ": " + f.Why
}

// Refused are the findings that refuse.
func Refused(list []Finding) []Finding {
	return slices.DeleteFunc(slices.Clone(list), func(f Finding) bool { return !f.Refused })
}

// Judge says which changes an instance that stands so refuses, and which have no effect on it, in the order of the
// changes. All others take effect. Old is the definition by which it runs.
func Judge(old, changed *workflow.Definition, at *Standing) []Finding {
	j := judge{old: old, changed: changed, at: at}
	if old.Name != changed.Name {
		j.refuse(Part{Kind: OfWorkflow}, "",
			fmt.Sprintf("the instance is one of %s, and the file defines %s", old.Name, changed.Name),
			"start an instance of that")
		return j.found
	}
	if at.Ended() {
		j.refuse(Part{Kind: OfWorkflow}, "", fmt.Sprintf("the instance has ended: it is %s", at.State),
			"start the workflow again")
		return j.found
	}
	j.flow()
	j.ends()
	changes := Between(old, changed)
	tasks := j.tasks(changes)
	for _, c := range changes {
		switch c.Kind {
		case OfWorkflow:
			j.settings(&c)
		case OfDistribution:
			const why = "how its work is distributed is settled when an instance is started"
			if c.How != Changed {
				j.later(c.Part, "", why)
				continue
			}
			for _, k := range c.Keys {
				j.later(c.Part, k.Key, why)
			}
		case OfData:
			j.data(&c)
		case OfTask, OfLoop:
			j.found = append(j.found, tasks[c.Part]...)
		case OfPartition:
			j.partition(&c)
		case OfResource:
			j.resource(&c)
		}
	}
	return j.found
}

// Alike reports whether an instance that runs by one definition does as another says: nothing of it is left to be
// amended, but for what counts when an instance is started. So a task that was taken out while the instance ran, and that
// stays there without being done, is no difference.
func Alike(ran, said *workflow.Definition) bool {
	found := Judge(ran, said, &Standing{State: workflow.InstanceRunning})
	if len(Refused(found)) > 0 {
		return false
	}
	p, refused := PatchOf(ran, said, found)
	return len(p) == 0 && len(refused) == 0
}

type judge struct {
	old, changed *workflow.Definition
	at           *Standing
	found        []Finding
}

func (j *judge) refuse(p Part, key, why, next string) {
	j.found = append(j.found, Finding{Part: p, Key: key, Refused: true, Why: why, Next: next})
}

func (j *judge) later(p Part, key, why string) {
	j.found = append(j.found, Finding{Part: p, Key: key, Why: why})
}

func (j *judge) stage(n workflow.TaskName) stage { return j.at.stage(j.old, n) }

// flow judges whether the instance stays one that is driven by its data, or by its tasks.
func (j *judge) flow() {
	whole := Part{Kind: OfWorkflow}
	switch was, is := j.old.Flow() != nil, j.changed.Flow() != nil; {
	case was && !is:
		j.refuse(whole, "", "the instance is driven by its data, and no task of the file has repeat",
			"leave repeat at one task")
	case !was && is:
		j.refuse(whole, "", "the instance follows its tasks, and in the file a task has repeat",
			"leave repeat out, or start an instance of the changed workflow")
	case was && j.old.Flow().Partition != j.changed.Flow().Partition:
		j.refuse(Part{OfPartition, string(j.old.Flow().Partition)}, "tasks",
			"who holds it keeps the data states of the instance, so they cannot be in another partition",
			"leave the name of the partition as it is")
	}
}

// ends judges whether the state of an instance that is driven by its data would be final with several transitions under
// way: no result of one of them could be taken that leaves it so.
func (j *judge) ends() {
	if j.old.Flow() == nil || j.changed.Flow() == nil || j.final(j.old) || !j.final(j.changed) {
		return
	}
	var pending []string
	for _, t := range j.old.Flow().Triggers {
		if s := j.at.Tasks[t.Name].State; s == workflow.Ready || s == workflow.Running {
			pending = append(pending, called(j.old, t.Name))
		}
	}
	if len(pending) > 1 {
		j.refuse(Part{Kind: OfWorkflow}, "final", "its state would be final while several transitions are pending, "+
			"of which none could bring one that is: "+strings.Join(pending, ", "),
			"wait until all but one have ended and amend it then; mutirao task stop ends one too, and interrupts the "+
				"instance: after the amendment mutirao recover goes on with it")
	}
}

// atStart are the settings that count when an instance is started, with what they are for.
var atStart = map[string]string{
	"initial":        "it was asked when the instance was started",
	"creator-role":   "it was asked when the instance was started",
	"responsible":    "who answers for an instance is settled when it is started",
	"administrators": "who decides about an instance is settled when it is started",
	"coordination":   "how partners work together is settled when an instance is started",
}

func (j *judge) settings(c *Change) {
	for _, k := range c.Keys {
		if why := atStart[k.Key]; why != "" {
			j.later(c.Part, k.Key, why)
		}
	}
}

func (j *judge) data(c *Change) {
	name := workflow.DataName(c.Name)
	value := j.at.Data[name]
	switch c.How {
	case Removed:
		if value != nil {
			j.refuse(c.Part, "", "it has a value, and what somebody gave is not thrown away",
				"leave it declared; tasks need not use it")
		}
		return
	case Added:
		if c.key("required") != nil {
			j.later(c.Part, "required", "nobody is asked for it when the instance runs: it is null until a task sets it, or has its default")
		}
		return
	}
	was, is := j.old.Datum(name), j.changed.Datum(name)
	if was.Type != is.Type || was.Database != is.Database || was.Expression != is.Expression {
		by, used := j.user(name)
		switch {
		case value != nil:
			j.refuse(c.Part, j.first(c, "type", "database", "expression"), "it has a value of the other kind",
				"declare data of another name beside it")
		case used:
			j.refuse(c.Part, j.first(c, "type", "database", "expression"),
				fmt.Sprintf("%s has begun, and counts on it as it was", called(j.old, by)), "declare data of another name beside it")
		}
	} else if value != nil {
		if _, err := workflow.CheckValue(is, value); err != nil {
			j.refuse(c.Part, j.first(c, "enum", "min", "max"), "what it is now would not be allowed: "+err.Error(),
				"allow that value as well")
		}
	}
	for _, key := range []string{"default", "required"} {
		if c.key(key) != nil {
			j.later(c.Part, key, "it was looked at when the instance was started")
		}
	}
}

// first is the first of some keys that has changed.
func (j *judge) first(c *Change, keys ...string) string {
	for _, k := range keys {
		if c.key(k) != nil {
			return k
		}
	}
	return ""
}

// user is a task that has begun and reads or writes some data, by name; false: there is none.
func (j *judge) user(n workflow.DataName) (workflow.TaskName, bool) {
	for _, name := range j.old.TopoOrder() {
		t := j.old.Task(name)
		if !t.Whole && j.stage(name) != untouched && (slices.Contains(t.In, n) || slices.Contains(t.Out, n)) {
			return name, true
		}
	}
	return "", false
}

// begunBy are the keys by which a task began, so that they cannot be changed under way: what it waits for, who or
// what does it, and what it reads and brings.
var begunBy = []string{
	"after", "when", "type", "application", "with", "uses", "role", "needs", "in", "out", "form", "holds", "repeat",
	"produces",
}

// onFailure are the keys that a failure asks for, and toTheEnd those that count to the end of an instance.
var (
	onFailure = []string{"on-failure", "contingency"}
	toTheEnd  = []string{"compensate", "reconcile", "label", "doc"}
)

func (j *judge) task(c *Change) {
	name := workflow.TaskName(c.Name)
	at := j.stage(name)
	if c.How == Added || at == untouched || c.How == Removed && onlyUndoes(j.old, name) { // what it undoes is undone
		return
	}
	state, fires := j.at.Tasks[name].State, j.old.Flow() != nil
	whenOver := func(next string) string {
		if fires {
			return "amend it once its job is over"
		}
		return next
	}
	if c.How == Removed {
		next := "leave it in"
		if at == underWay {
			next = "leave it in; mutirao task stop ends it"
		}
		j.refuse(c.Part, "", begun(at, state)+": what was done is not forgotten", next)
		return
	}
	for _, k := range c.Keys {
		switch {
		case k.Key == "after" || k.Key == "when":
			j.refuse(c.Part, k.Key, begun(at, state)+", and can wait for nothing else any more"+j.tooLate(&k),
				whenOver("have a task wait that has not begun"))
		case slices.Contains(begunBy, k.Key):
			j.refuse(c.Part, k.Key, begun(at, state)+", by what it said then",
				whenOver("add another task that does it so"))
		case at == underWay && k.Key == "enabled" && j.old.Flow() == nil:
			j.later(c.Part, k.Key, "it has begun, and is done to its end")
		case at == underWay && k.Key == "time-to-wait":
			j.later(c.Part, k.Key, "it has begun, so nothing waits any more")
		case at == underWay, slices.Contains(toTheEnd, k.Key):
		case slices.Contains(onFailure, k.Key) && state != workflow.Succeeded:
			j.refuse(c.Part, k.Key, begun(at, state)+", and that was answered by what it said then",
				"leave it; mutirao recover shows what can be decided about the failure")
		default:
			j.later(c.Part, k.Key, begun(at, state))
		}
	}
}

// tooLate names the tasks of a rule for which a task that has begun would have had to wait.
func (j *judge) tooLate(k *Key) string {
	var waits []string
	if k.Key == "after" {
		for _, n := range without(names(k.Is), names(k.Was)) {
			if j.at.Tasks[workflow.TaskName(n)].State != workflow.Succeeded {
				waits = append(waits, n)
			}
		}
	}
	if len(waits) == 0 {
		return ""
	}
	return ": the result of " + strings.Join(waits, ", ") + " is not there"
}

// begun says of a task how far it is.
func begun(at stage, s workflow.State) string {
	if at == underWay {
		return "it has begun"
	}
	return "it is " + string(s) + " already"
}

// placement are the keys of a partition that say who can have it.
var placement = []string{"partner", "roles", "needs"}

func (j *judge) partition(c *Change) {
	name := workflow.PartitionName(c.Name)
	var was, is []workflow.TaskName
	if p := j.old.Partition(name); p != nil {
		was = p.Tasks
	}
	if p := j.changed.Partition(name); p != nil {
		is = p.Tasks
	}
	for _, t := range was {
		if !slices.Contains(is, t) && j.changed.Task(t) != nil && j.stage(t) != untouched {
			j.refuse(c.Part, "tasks", fmt.Sprintf("%s has begun at whoever holds the partition, and stays there", called(j.old, t)),
				"leave it in this partition")
		}
	}
	if c.How != Changed {
		return
	}
	i := slices.IndexFunc(was, func(t workflow.TaskName) bool { return j.stage(t) != untouched })
	for _, k := range c.Keys {
		if i >= 0 && slices.Contains(placement, k.Key) {
			j.refuse(c.Part, k.Key, fmt.Sprintf("%s has begun there, so the partition has its place", called(j.old, was[i])),
				"put the tasks that have not begun into a partition of their own")
		}
	}
}

func (j *judge) resource(c *Change) {
	if c.How != Changed || c.key("partition") == nil {
		return
	}
	for _, name := range j.old.TopoOrder() {
		if t := j.old.Task(name); slices.Contains(t.Holds, workflow.ResourceName(c.Name)) && j.stage(name) == underWay {
			j.refuse(c.Part, "partition",
				fmt.Sprintf("%s holds a unit of it, which whoever holds the partition gave out", called(j.old, name)),
				"wait until the unit is given back")
			return
		}
	}
}
