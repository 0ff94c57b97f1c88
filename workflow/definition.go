package workflow

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Definition is a checked workflow definition (docs/language.md). Parse makes it;
// nobody changes it afterwards.
type Definition struct {
	Name         Name
	Version      int
	Label        string // what people call it; empty: its name
	Doc          string
	Data         []DataDecl
	Applications []ApplicationDecl
	// Tasks, like Data, Applications, Partitions and Resources, are in the order written,
	// with their models merged in. The order is for display: it is not part of
	// the definition's identity, so no state may depend on it (see TopoOrder).
	Tasks       []*Task
	Partitions  []PartitionDecl
	Resources   []ResourceDecl
	Final       *Expr // nil: the default end
	Initial     *Expr // nil: anything may start
	Constraints []Constraint
	Conditions  []Condition // in the order written; they are about data alone
	CreatorRole RoleName
	Responsible UserName
	// Administrators are the role whose users may decide what the responsible user may; empty: nobody else may.
	Administrators RoleName
	Coordination   Coordination
	Distribution   Distribution
	Warnings       []time.Duration
	Transfer       time.Duration

	index     map[TaskName]*Task
	links     links
	features  []FeatureUse
	flow      *Flow
	canonical []byte
	out       []byte // the canonical form with the rounds of loops written out as tasks
	loops     []Loop
	rounds    map[TaskName]Round // what the tasks are that belong to loops
	kept      Kept
	hash      Hash

	flowObstacle string
}

// Task returns the task of that name, or nil.
func (d *Definition) Task(n TaskName) *Task { return d.index[n] }

// Datum returns the declaration of the data of that name, or nil.
func (d *Definition) Datum(n DataName) *DataDecl {
	for i := range d.Data {
		if d.Data[i].Name == n {
			return &d.Data[i]
		}
	}
	return nil
}

// Condition returns the condition of that name, or nil.
func (d *Definition) Condition(n DataName) *Expr {
	for _, c := range d.Conditions {
		if c.Name == n {
			return c.Expr
		}
	}
	return nil
}

// Hash identifies the definition: SHA-256 of Canonical().
func (d *Definition) Hash() Hash { return d.hash }

// Canonical is the definition's canonical form: JSON that Parse accepts and
// that has one spelling for one meaning. It must not be changed.
func (d *Definition) Canonical() []byte { return d.canonical }

// WrittenOut is the canonical form with the rounds of loops written out as tasks, as an instance has them. It must not
// be changed.
func (d *Definition) WrittenOut() []byte { return d.out }

// Loops are the loops of a definition whose tasks wait for tasks, by their last tasks. They must not be changed.
func (d *Definition) Loops() []Loop { return d.loops }

// Round says to which round of which loop a task belongs, or has belonged; false: to none.
func (d *Definition) Round(t TaskName) (Round, bool) {
	x, is := d.rounds[t]
	if !is {
		x, is = d.kept.Tasks[t]
	}
	return x, is
}

// DataType is the type of a data item.
type DataType string

// The types of data items (docs/language.md, data).
const (
	TypeString  DataType = "string"
	TypeInteger DataType = "integer"
	TypeNumber  DataType = "number"
	TypeBoolean DataType = "boolean"
	TypeTime    DataType = "time"
	TypeFile    DataType = "file"
	TypeList    DataType = "list"
	TypeMap     DataType = "map"
	TypeQuery   DataType = "query"

	// anyData is what nobody knows the type of. No definition can say it.
	anyData DataType = "any"
)

// Value is a value of a data item: nil, string, int64, float64, bool,
// []any or map[string]any; a time is its RFC 3339 text in UTC, a file its reference.
type Value = any

// DataDecl declares one data item of an instance's context.
type DataDecl struct {
	Name       DataName
	Type       DataType
	Label      string
	Doc        string
	Required   bool
	Default    Value
	Enum       []Value
	Min, Max   *float64
	FileName   string   // type file: what it is called
	Readers    []string // type file: roles, partners by name or ID, and users by name, who may read it; empty: see node/files
	Database   string   // type query
	Expression string   // type query
}

// ApplicationDecl says what an application needs and where it is at home; what
// the name runs is each node's own configuration.
type ApplicationDecl struct {
	Name      ApplicationName
	Size      int64 // bytes
	OS        string
	CPU       string
	Installer string
	Hosts     []string // in order of preference
}

// TaskType says who or what performs a task.
type TaskType string

// The types of tasks.
const (
	Automatic     TaskType = "automatic"
	SemiAutomatic TaskType = "semi-automatic"
	Manual        TaskType = "manual"
	SubWorkflow   TaskType = "workflow"
)

// The built-in applications, safe on every node.
const (
	AppNoop  ApplicationName = "noop"
	AppSleep ApplicationName = "sleep"
	AppSet   ApplicationName = "set"
	AppFail  ApplicationName = "fail"
)

// Task is one task of a definition, with its model merged in.
type Task struct {
	Name  TaskName
	Label string // what people call it; empty: its name
	Doc   string
	Model string
	Type  TaskType
	// Rule is after and when together; nil: ready at start.
	Rule *Rule
	// After and When keep what was written, for display.
	After []TaskName
	When  string
	when  string // in its canonical spelling

	Application     ApplicationName // automatic without one: noop
	With            With
	Uses            *Use // type workflow
	Role            RoleName
	Needs           []Capability
	In, Out         []DataName
	Form            []DataName    // of Out, those that a person is asked for first, in the author's order (Fields)
	Queries         []Query       // those of Out, which its holder asks before its application begins
	Timeout         time.Duration // 0: none
	TimeToWait      time.Duration // 0: wait for the rule
	Retries         Retries
	OnFailure       FailureAction
	Contingency     TaskName // OnFailure == FailContingency
	Compensate      *Compensation
	Reconcile       Reconcile
	Deadline        *Deadline
	Warnings        []time.Duration
	Transfer        time.Duration
	Priority        int
	Urgency         float64 // more than 0, at most 1; DefaultUrgency unless written
	Suitability     map[string]float64
	Duration        time.Duration
	Offline         bool
	Holds           []ResourceName // a unit of each from when it is ready to its end
	Disabled        bool           // enabled: false
	Repeat          bool
	RepeatTimes     int      // at most so often in one instance; 0: no bound
	OnConflict      Conflict // of a task that repeats
	Produces        Produces
	ContingencyOnly bool  // some task names it as contingency and it has no rule, or it is a flow's trigger: never ready by itself
	Condition       *Expr // of a trigger of the definition's flow: at which data states it fires
	Whole           bool  // it stands for the definition's flow (FlowTask)
}

// Produces is the data set that a task makes. The zero value: none.
type Produces struct {
	Name    string        // in the catalogue
	Valid   time.Duration // from when it was made; 0: for ever
	Readers []string      // roles, and partners by name or ID, who may read it; empty: everybody
}

// ForPeople reports whether a task is for people.
func (d *Definition) ForPeople() bool {
	return slices.ContainsFunc(d.Tasks, func(t *Task) bool { return !t.ByNode() })
}

// ByRole reports whether a task is for people with a role, on whatever partner.
func (t *Task) ByRole() bool {
	return t.Role != "" && (t.Type == Manual || t.Type == SemiAutomatic)
}

// ByNode reports whether the node that holds a task does it, by an application or by another
// workflow. All other tasks are people's.
func (t *Task) ByNode() bool { return t.Type == Automatic || t.Type == SubWorkflow }

// With are the arguments of an application.
type With struct {
	Set    map[DataName]*Expr // for set
	For    time.Duration      // for sleep
	Reason string             // for fail
	Args   map[string]Value   // for configured applications, passed as they are
}

// Values are what set sets in an instance of that age: each of its expressions by the same input, none of which
// sees what another gives; of an application that sets nothing there are none. The error says which cannot be
// told, and why.
func (w With) Values(input map[DataName]Value, instance string, age time.Duration) (map[DataName]Value, error) {
	if len(w.Set) == 0 {
		return nil, nil
	}
	env := Env{Data: input, Instance: instance, Age: age}
	out := make(map[DataName]Value, len(w.Set))
	for _, name := range slices.Sorted(maps.Keys(w.Set)) {
		e := w.Set[name]
		v, err := e.Eval(env)
		if err != nil {
			return nil, fmt.Errorf("set %s to %s: %w", name, e.Source, err)
		}
		out[name] = v
	}
	return out, nil
}

// Failure is the reason for which fail fails.
func (w With) Failure() string { return cmp.Or(w.Reason, "told to fail") }

// Use maps a sub-workflow's inputs.
type Use struct {
	Workflow Name
	Input    map[DataName]*Expr
}

// Retries says how often and when a failed automatic task is tried again
// inside its attempt.
type Retries struct {
	Times   int
	Backoff time.Duration // before the first retry
	Factor  float64
	Max     time.Duration
	Jitter  float64 // 0..1, the part of a pause that is left to chance
}

// FailureAction is what a task's failure does to the rest (docs/language.md, on-failure).
type FailureAction string

// The failure actions.
const (
	FailBlock       FailureAction = "block"
	FailRelease     FailureAction = "release"
	FailContingency FailureAction = "contingency"
)

// Reconcile says which success of a slot counts when several attempts succeeded.
type Reconcile string

// The choices of reconcile (docs/design.md, rule 3).
const (
	KeepFirst       Reconcile = "keep-first"
	KeepOriginal    Reconcile = "keep-original"
	KeepReplacement Reconcile = "keep-replacement"
)

// Compensation undoes a task semantically: an application or a task.
type Compensation struct {
	Application ApplicationName
	Task        TaskName
	With        With
}

// StandsIn reports whether a task is in the chain of contingencies of another: that one itself, what stands in for it,
// what stands in for that, and so on.
func (d *Definition) StandsIn(of, t TaskName) bool {
	x := d.Task(of)
	for i := 0; x != nil && i <= len(d.Tasks); x, i = d.Task(x.Contingency), i+1 {
		if x.Name == t {
			return true
		}
	}
	return false
}

// CompensationOf is the task that undoes t; nil: the author wants none. For an
// application it is one of t's name that may read what t read and wrote, and is
// tried again as t would be.
func (d *Definition) CompensationOf(t *Task) *Task {
	switch c := t.Compensate; {
	case c == nil:
		return nil
	case c.Task != "":
		return d.Task(c.Task)
	default:
		return &Task{Name: t.Name, Type: Automatic, Application: c.Application, With: c.With,
			In: append(slices.Clone(t.In), t.Out...), Out: t.Out, Timeout: t.Timeout, Retries: t.Retries}
	}
}

// Deadline is a fixed span since the task became ready, or an expression that
// gives a time.
type Deadline struct {
	After time.Duration
	Expr  *Expr
}

// PartitionDecl is a partition as written. Partition timeouts that are not
// written are computed by package partition.
type PartitionDecl struct {
	Name    PartitionName
	Label   string
	Tasks   []TaskName
	Partner string // a partner's name or ID that must take it; empty: anyone able
	Roles   []RoleName
	Needs   []Capability
	Timeout time.Duration // 0: computed
}

// ResourceDecl is something of which there is only so much, and which tasks hold while they are done.
type ResourceDecl struct {
	Name      ResourceName
	Capacity  int           // units
	Partition PartitionName // whoever holds it gives the units out
}

// Constraint is an integrity rule over data (When), or a rule of allocation
// (Violated, with a penalty in 0..1; 1 is a hard constraint).
type Constraint struct {
	Name     string
	When     *Expr
	Strict   bool
	Violated *Expr
	Penalty  float64
}

// Condition is a predicate over data with a name, by which expressions may mention it.
type Condition struct {
	Name DataName
	Expr *Expr
}

// Conflict says what becomes of a result that sets data which was changed after the
// state that the task got.
type Conflict string

// The choices of on-conflict (docs/language.md, on-conflict).
const (
	ConflictApply Conflict = "apply"
	ConflictFail  Conflict = "fail"
)

// Coordination is how partners work together.
type Coordination string

// The kinds of coordination.
const (
	Choreography  Coordination = "choreography"
	Orchestration Coordination = "orchestration"
)

// Distribution says how work finds its performers (docs/language.md, distribution).
type Distribution struct {
	Mechanism   string
	Dispatching string
	Notify      string
	NotifyN     int
	// CompensateViolations: constraints of allocation count only as far as
	// somebody could keep them.
	CompensateViolations bool
	// NoLearning: what its instances show of partners' suitability is not learned,
	// nor is what was learned looked at.
	NoLearning bool
	// Patience is how long Sel-push-pull offers a person's task before it gives it to somebody; 0: DefaultPatience.
	Patience time.Duration
	// Relax: the threshold of a mechanism that pulls falls as a person's task comes near its time-out or deadline.
	Relax bool
	// UrgencyGrowth is what a person's task gains in urgency with each minute in which it waits to be taken.
	UrgencyGrowth float64
}

// DefaultPatience is for how long Sel-push-pull offers a person's task where the definition does not say.
const DefaultPatience = 5 * time.Minute
