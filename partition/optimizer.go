package partition

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is the Optimizer (docs/systems.md, Agents): which tasks are not
// needed where the data that they would produce exists already.

// Droppable reports whether the only purpose of a task is a data set that other
// tasks read, so that it may be dropped where the data set exists. why says what
// else it is there for; it is empty for a task that produces no data set.
//
// A task has another purpose if it does anything besides (it can be undone, runs
// again and again, waits for an emergency, stands in for or undoes another), if
// others write what it writes, or if another task waits for it without reading
// what it writes, or for something else than its success.
func Droppable(def *workflow.Definition, t *workflow.Task) (ok bool, why string) {
	if t.Produces.Name == "" {
		return false, ""
	}
	for _, x := range []struct {
		is  bool
		why string
	}{
		{len(t.Out) == 0, "it names no data under out through which others would read the data set"},
		{t.Compensate != nil, "it has an effect that can be compensated"},
		{t.Repeat, "it repeats"},
		{t.TimeToWait > 0, "it is an emergency task"},
		{t.Type == workflow.SubWorkflow, "it is a workflow of its own"},
		{t.ContingencyOnly || standsFor(def, t), "it stands in for, or undoes, another task"},
	} {
		if x.is {
			return false, x.why
		}
	}
	for _, n := range t.Out {
		if w := def.Writers(n); len(w) != 1 {
			return false, fmt.Sprintf("others write %s, too", n)
		}
	}
	if why := otherConsumer(def, t); why != "" {
		return false, why
	}
	return true, ""
}

// standsFor reports whether a task is another's contingency or compensation.
func standsFor(def *workflow.Definition, t *workflow.Task) bool {
	return slices.ContainsFunc(def.Tasks, func(o *workflow.Task) bool {
		return o.Contingency == t.Name || o.Compensate != nil && o.Compensate.Task == t.Name
	})
}

// otherConsumer names a task that needs another for more than the data that it
// writes.
func otherConsumer(def *workflow.Definition, t *workflow.Task) string {
	readers := 0
	for _, o := range def.Tasks {
		if o == t {
			continue
		}
		reads := slices.ContainsFunc(t.Out, func(n workflow.DataName) bool { return slices.Contains(read(o), n) })
		if reads {
			readers++
		}
		why := ""
		o.Rule.Terms(func(r *workflow.Rule) {
			switch {
			case r.Op != workflow.OpTask || r.Task != t.Name:
			case r.Transition != workflow.BecameSucceeded:
				why = fmt.Sprintf("the rule of task %s asks for more than its success", o.Name)
			case !reads:
				why = fmt.Sprintf("task %s waits for it without reading what it writes", o.Name)
			}
		})
		if why != "" {
			return why
		}
	}
	for _, c := range def.Constraints {
		if c.Violated != nil && strings.Contains(c.Violated.String(), fmt.Sprintf("performer(%q)", t.Name)) {
			return fmt.Sprintf("constraint %s asks who performed it", c.Name)
		}
	}
	if readers == 0 {
		return "no task reads what it writes"
	}
	return ""
}

// read is the data that a task needs: what it is made from, and what its rule
// mentions.
func read(t *workflow.Task) []workflow.DataName {
	names := MadeFrom(t)
	t.Rule.Terms(func(r *workflow.Rule) {
		if r.Op == workflow.OpData {
			names = append(names, r.Data.Names()...)
		}
	})
	return names
}

// MadeFrom is the data on which it depends what a task makes: its input, and what
// its arguments mention. Sorted, each once.
func MadeFrom(t *workflow.Task) []workflow.DataName {
	names := slices.Clone(t.In)
	for _, e := range t.With.Set {
		names = append(names, e.Names()...)
	}
	if t.Uses != nil {
		for _, e := range t.Uses.Input {
			names = append(names, e.Names()...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// BeforeStart is the plan as far as it is known without what its instance is started with: the
// constraints of allocation that ask for data which must come with the start are left out.
func (p *Plan) BeforeStart() *Plan {
	comes := func(n workflow.DataName) bool {
		i := slices.IndexFunc(p.def.Data, func(d workflow.DataDecl) bool { return d.Name == n })
		return i >= 0 && p.def.Data[i].Required && p.def.Data[i].Default == nil
	}
	open := func(c workflow.Constraint) bool {
		return c.Violated != nil && slices.ContainsFunc(c.Violated.Names(), comes)
	}
	if !slices.ContainsFunc(p.def.Constraints, open) {
		return p
	}
	out, def := *p, *p.def
	def.Constraints = slices.DeleteFunc(slices.Clone(def.Constraints), open)
	out.def = &def
	return &out
}

// Without is the plan as far as it matters to who can take what, with some of
// the tasks left out: nothing is asked of anybody for their sake.
func (p *Plan) Without(tasks []workflow.TaskName) *Plan {
	if len(tasks) == 0 {
		return p
	}
	out := *p
	out.dropped = tasks
	return &out
}
