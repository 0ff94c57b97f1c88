package workflow

import (
	"fmt"
	"maps"
	"slices"
)

// transitions has all triggers of a transition undone alike. The transition of a trigger is its application with the
// arguments: what undoes it belongs to that, so one trigger that says it speaks for all that share the transition, and
// two that say it unlike are a mistake. What is built in makes no transition that tasks share.
func (r *reader) transitions() {
	if !slices.ContainsFunc(r.def.Tasks, func(t *Task) bool { return t.Repeat }) {
		return
	}
	said := map[string]*Task{} // by the transition, the first that says what undoes it
	for _, t := range r.def.Tasks {
		name, shared := transitionOf(t)
		if !shared || t.Compensate == nil {
			continue
		}
		first := said[name]
		switch {
		case first == nil:
			said[name] = t
		case string(encode(canonicalCompensation(first.Compensate))) != string(encode(canonicalCompensation(t.Compensate))):
			r.on(r.where(t, "compensate"), "leave it out here: what undoes it is said once, and holds for both",
				"what undoes %s is said otherwise at %s, in line %d, and both are the transition %s", t.Name, first.Name,
				r.where(first, "compensate").line, t.Application)
		}
	}
	for _, t := range r.def.Tasks {
		name, shared := transitionOf(t)
		if of := said[name]; shared && of != nil && t.Compensate == nil && of.Compensate.Task != t.Name {
			t.Compensate = of.Compensate
			r.fits(t, of)
		}
	}
}

// fits reports data that the compensation writes which a task has from another, although the task does not own up to it.
func (r *reader) fits(t, from *Task) {
	for _, name := range slices.Sorted(maps.Keys(t.Compensate.With.Set)) {
		if !slices.Contains(t.Out, name) {
			r.on(r.head(t), "add it to out:",
				"%s is undone as task %s says in line %d, as both are the transition %s: set writes %s there, which is not in out of %s",
				t.Name, from.Name, r.where(from, "compensate").line, t.Application, name, t.Name)
		}
	}
}

// transitionOf names the transition of a trigger; false: the task shares none.
func transitionOf(t *Task) (name string, shared bool) {
	if t.Type != Automatic || t.Application == "" || builtIn(t.Application) || t.ContingencyOnly && !t.Repeat {
		return "", false
	}
	return fmt.Sprintf("%s %s", t.Application, encode(canonicalWith(t.With))), true
}
