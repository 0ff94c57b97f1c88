package dataflow

import (
	"cmp"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Flow is what a definition says about its data-state flow, as boards ask of it. It does not change.
type Flow struct {
	def      *workflow.Definition
	triggers []*workflow.Task          // by name
	of       map[workflow.TaskName]int // their places
	condOf   map[workflow.TaskName]int // their conditions
	conds    []*condition
	mentions map[workflow.DataName][]int // the conditions that mention a data item
	final    int                         // its place among the conditions; -1: there is none
	bases    int                         // how many conditions equivalence asks for: these come first
	bits     int                         // how many answers that are: one of each, and one more for each of its ages
	aged     []int                       // the conditions that ask for the instance's age
	ages     []time.Duration             // at which they may come out otherwise, ascending
}

// condition is an expression that states satisfy or not, one for all that have it.
type condition struct {
	expr     *workflow.Expr
	ages     []time.Duration // at which it may come out otherwise
	later    int             // how many ages the conditions before it have
	triggers []int           // whose condition it is
	strict   bool            // some strict constraint
	rule     bool            // some constraint
	names    []string        // of the constraints
}

// New prepares the flow of a definition; nil: it has none.
func New(def *workflow.Definition) *Flow {
	d := def.Flow()
	if d == nil {
		return nil
	}
	f := &Flow{
		def: def, triggers: d.Triggers, of: map[workflow.TaskName]int{}, condOf: map[workflow.TaskName]int{},
		mentions: map[workflow.DataName][]int{}, final: -1,
	}
	at := map[string]int{}
	add := func(e *workflow.Expr) *condition {
		i, known := at[e.String()]
		if !known {
			i = len(f.conds)
			at[e.String()] = i
			f.conds = append(f.conds, &condition{expr: e, ages: e.Ages(), later: f.bits})
			f.bits += len(e.Ages())
			for _, n := range e.Names() {
				f.mentions[n] = append(f.mentions[n], i)
			}
			if ages := f.conds[i].ages; len(ages) > 0 {
				f.aged, f.ages = append(f.aged, i), append(f.ages, ages...)
			}
		}
		return f.conds[i]
	}
	for i, t := range f.triggers {
		f.of[t.Name] = i
		c := add(t.Condition)
		f.condOf[t.Name] = at[t.Condition.String()]
		c.triggers = append(c.triggers, i)
	}
	named := slices.Clone(def.Conditions)
	slices.SortFunc(named, func(a, b workflow.Condition) int { return cmp.Compare(a.Name, b.Name) })
	for _, c := range named {
		add(c.Expr)
	}
	if def.Final != nil {
		add(def.Final)
		f.final = at[def.Final.String()]
	}
	f.bases = len(f.conds)
	f.bits += f.bases
	for _, r := range def.Constraints {
		if r.When == nil {
			continue
		}
		c := add(r.When)
		c.rule, c.strict = true, c.strict || r.Strict
		c.names = append(c.names, r.Name)
	}
	slices.Sort(f.ages)
	f.ages = slices.Compact(f.ages)
	return f
}

// Rejects says why no instance may begin with these data; empty: one may. An initial state must
// satisfy the definition's initial condition, and either fire a trigger or be final.
func (f *Flow) Rejects(data map[workflow.DataName]workflow.Value) string {
	if e := f.def.Initial; e != nil && !Holds(e, data) {
		return "its initial condition does not hold: " + e.Source
	}
	for _, c := range f.conds {
		if c.strict && !Holds(c.expr, data) {
			return "its initial state breaks the constraint " + c.text()
		}
	}
	if f.final >= 0 && Holds(f.conds[f.final].expr, data) {
		return ""
	}
	for _, t := range f.triggers {
		if !t.Disabled && (Holds(t.Condition, data) || holdsLater(t, data, "", f.ages)) {
			return ""
		}
	}
	return "its initial state fires no trigger, and is not final: nothing would ever happen"
}

func (c *condition) text() string {
	if len(c.names) > 0 && c.names[0] != "" {
		return c.names[0] + ": " + c.expr.Source
	}
	return c.expr.Source
}

// holds reports whether a condition is true of data at an age: neither false nor unknown.
func holds(e *workflow.Expr, data map[workflow.DataName]workflow.Value, instance string, age time.Duration) bool {
	v, err := e.Eval(workflow.Env{Data: data, Instance: instance, Age: age})
	yes, ok := v.(bool)
	return ok && yes && err == nil
}

// holdsLater reports whether a trigger's condition is true of data at one of some ages.
func holdsLater(
	t *workflow.Task, data map[workflow.DataName]workflow.Value, instance string, ages []time.Duration,
) bool {
	return len(t.Condition.Ages()) > 0 &&
		slices.ContainsFunc(ages, func(age time.Duration) bool { return holds(t.Condition, data, instance, age) })
}

// Holds reports whether a condition is true of data when an instance begins: neither false nor unknown.
func Holds(e *workflow.Expr, data map[workflow.DataName]workflow.Value) bool {
	return holds(e, data, "", 0)
}
