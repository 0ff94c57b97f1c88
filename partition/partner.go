package partition

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Partner is what assignment knows of a partner that is in the process. Those
// that left, expired or were evicted are not offered to it.
type Partner struct {
	ID           workflow.PartnerID
	Name         string
	Label        string // what people are shown for it, where others bear its name too; empty: its name
	Roles        []workflow.RoleName
	Capabilities []workflow.Capability
	Applications []workflow.ApplicationName // besides the built-in ones, which everybody has
	Databases    []workflow.DatabaseName    // that it can ask
	// Load is how busy it is: 0: idle, to 1. The plain rule looks at its order; for a
	// mechanism it is what is not in InHand and Backlog, and counts in whole tenths.
	Load      float64
	Reachable bool
	Down      bool // it said that it goes down: until it is back it gets only what is pinned to it
	// Until is about when it is back, for people, where it announced that; empty: it did not.
	Until string

	// What follows is for the mechanisms of aptitude-based distribution.

	// Rested is its availability with nothing to do, in [0, 1]; 0: absent.
	Rested float64
	// InHand is the unfinished work that costs it availability, by kind: what the
	// mechanisms of the Sel-push family have given it, as far as is known.
	InHand map[Kind]InHand
	// Backlog is all unfinished work that it holds, as far as is known; more than
	// nothing: it is busy.
	Backlog InHand
	// LastFlow is the flow time of the piece of work that it was given last: from
	// start to end, as long as it is not finished the time expected; 0: none.
	LastFlow time.Duration
	// Suitability is how apt it holds itself, by task, role, capability or application.
	Suitability map[string]float64
	// Learned are factors for what is stated of its suitability, by task; absent: 1.
	Learned map[workflow.TaskName]float64

	faced faced // by the unit that is weighed
}

// Closed is a partner that is known and takes no new work: a pin to it is refused.
type Closed struct {
	ID    workflow.PartnerID
	Name  string
	Label string // as of a Partner
	Why   string // what it is or did: "was evicted"
}

// TakesNothing is why a partner is closed, or cannot be pinned to, that is here. Both
// reasons are the same to others: it says that its availability is none.
const TakesNothing = "takes nothing new on: it is leaving, or its availability is none"

// InHand is unfinished work, by its expected time.
type InHand struct {
	Ready time.Duration // of what can be done now
	All   time.Duration // of all, with what will be ready later
	// Wait is how long it takes until the work that is not ready is expected to be: the
	// mean, weighed by its time. 0 where that is not known.
	Wait time.Duration
}

// Plus is both together.
func (h InHand) Plus(o InHand) InHand {
	out := InHand{Ready: h.Ready + o.Ready, All: h.All + o.All}
	if later := out.later().Seconds(); later > 0 {
		wait := (h.Wait.Seconds()*h.later().Seconds() + o.Wait.Seconds()*o.later().Seconds()) / later
		out.Wait = time.Duration(wait * float64(time.Second))
	}
	return out
}

// Minus is what is left without o, at least nothing.
func (h InHand) Minus(o InHand) InHand {
	return InHand{max(0, h.Ready-o.Ready), max(0, h.All-o.All), h.Wait}
}

// later is the work that is not ready.
func (h InHand) later() time.Duration { return max(0, h.All-h.Ready) }

// faced is what a unit finds at a partner.
type faced struct {
	taken   float64       // the share of its availability that work in hand costs
	alike   float64       // the work in hand of the unit's kind, in seconds
	backlog time.Duration // the work in hand
}

// String is what people are shown for the partner: its label or its name, or its ID if it has neither.
func (p Partner) String() string { return cmp.Or(p.Label, p.called()) }

// called is what a definition calls the partner: its name, or its ID if it has none.
func (p Partner) called() string { return cmp.Or(p.Name, string(p.ID)) }

// runs reports whether the partner has an application.
func (p Partner) runs(a workflow.ApplicationName) bool {
	return builtIn(a) || slices.Contains(p.Applications, a)
}

func builtIn(a workflow.ApplicationName) bool {
	switch a {
	case "", workflow.AppNoop, workflow.AppSleep, workflow.AppSet, workflow.AppFail:
		return true
	}
	return false
}

// unit is what one partner takes as a whole: a partition, a contingency, a P′.
type unit struct {
	name    string // for messages: "partition engine", "task c"
	demands []demand
	people  []workflow.RoleName // the role of each task that a person performs
	tasks   []*workflow.Task
	later   bool // it cannot begin yet when its instance starts
	// awaited are the roles of tasks that wait at whoever holds the unit: nobody has them, or the tasks are taken from
	// worklists.
	awaited []workflow.RoleName
	// ofUsers are roles that people have who are no partners, and so hold no unit.
	ofUsers []workflow.RoleName
}

// demand is one thing that the holder of a unit must have.
type demand struct {
	what string   // "role crew", "capability radio", "application file-report", "database depot"
	by   []string // who asks for it: "the partition", task names
	get  string   // how a partner gets it
	met  func(Partner) bool
}

// unitOf collects what a partition asks of its holder (docs/language.md,
// partitions): the roles and needs that it lists, the needs of all its tasks, and
// the applications of its automatic tasks, with the databases that these ask. The role of
// a person's task is no demand: the task is offered to that role's users wherever they are.
func (p *Plan) unitOf(part *Partition) *unit {
	u := &unit{name: "partition " + string(part.Name)}
	u.addListed(part)
	u.addTasks(p, part.Tasks)
	u.later = !slices.ContainsFunc(u.tasks,
		func(t *workflow.Task) bool { return len(p.graph.preds[p.graph.index[t.Name]]) == 0 })
	return u
}

// addListed adds what a partition lists.
func (u *unit) addListed(part *Partition) {
	for _, r := range part.Roles {
		u.demand(roleDemand(r), "the partition", joinAs(r), func(p Partner) bool { return slices.Contains(p.Roles, r) })
	}
	for _, n := range part.Needs {
		u.need(n, "the partition")
	}
}

func roleDemand(r workflow.RoleName) string { return "role " + string(r) }

func (u *unit) addTasks(p *Plan, tasks []workflow.TaskName) {
	for _, name := range tasks {
		if slices.Contains(p.dropped, name) {
			continue
		}
		t := p.graph.tasks[p.graph.index[name]]
		u.tasks = append(u.tasks, t)
		u.addTask(t)
		if flow := p.def.Flow(); t.Whole && flow != nil {
			u.addTriggers(flow)
		}
		if c := p.def.CompensationOf(t); c != nil {
			u.addTask(c) // the partner that did a task undoes it
		}
	}
}

// addTriggers adds what the tasks of a flow need, which the task that stands for the flow needs for them: whoever reads
// what is lacking knows their names alone.
func (u *unit) addTriggers(flow *workflow.Flow) {
	for _, t := range flow.Triggers {
		for _, n := range t.Needs {
			u.need(n, string(t.Name))
		}
	}
}

func (u *unit) addTask(t *workflow.Task) {
	if !t.Whole { // else see addTriggers
		for _, n := range t.Needs {
			u.need(n, string(t.Name))
		}
	}
	switch t.Type {
	case workflow.Manual, workflow.SemiAutomatic:
		if t.Role != "" {
			u.people = append(u.people, t.Role)
		}
	case workflow.SubWorkflow: // runs as an instance of its own
	default:
		if a := t.Application; !builtIn(a) {
			u.demand("application "+string(a), string(t.Name), getApplication(a), func(p Partner) bool { return p.runs(a) })
		}
		for _, q := range t.Queries {
			u.demand("database "+string(q.Database), string(t.Name), getDatabase,
				func(p Partner) bool { return slices.Contains(p.Databases, q.Database) })
		}
	}
}

// need demands a capability or an application: both are written under needs.
func (u *unit) need(n workflow.Capability, by string) {
	u.demand("capability "+string(n), by, getCapability(n), func(p Partner) bool {
		return slices.Contains(p.Capabilities, n) || p.runs(workflow.ApplicationName(n))
	})
}

func (u *unit) demand(what, by, get string, met func(Partner) bool) {
	for i := range u.demands {
		if d := &u.demands[i]; d.what == what {
			if !slices.Contains(d.by, by) {
				d.by = append(d.by, by)
			}
			return
		}
	}
	u.demands = append(u.demands, demand{what, []string{by}, get, met})
}

// lacks lists what a partner would still have to get before it can take the unit.
func (u *unit) lacks(p Partner) []demand {
	return slices.DeleteFunc(slices.Clone(u.demands), func(d demand) bool { return d.met(p) })
}

// suits counts the people's tasks of the unit whose role the partner has.
func (u *unit) suits(p Partner) int {
	n := 0
	for _, r := range u.people {
		if slices.Contains(p.Roles, r) {
			n++
		}
	}
	return n
}

func (d demand) String() string { return fmt.Sprintf("%s (%s)", d.what, strings.Join(d.by, ", ")) }

// list joins phrases as people do: a, b and c.
func list[T fmt.Stringer](items []T) string {
	var b strings.Builder
	for i, item := range items {
		switch {
		case i > 0 && i == len(items)-1:
			b.WriteString(" and ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(item.String())
	}
	return b.String()
}
