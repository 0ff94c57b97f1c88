package workflow

import (
	"slices"
	"strings"
)

// check reports what does not fit together between tasks.
func (r *reader) check() {
	r.checkCycles()
	r.checkContingencies()
	r.checkReach()
	r.checkWaits()
}

// before are the tasks that come before t in the order of the definition: those
// that its rule mentions and, for a task that is never ready by itself, those
// for which it stands in or that it undoes.
func (d *Definition) before() map[TaskName][]TaskName {
	out := make(map[TaskName][]TaskName, len(d.Tasks))
	for _, t := range d.Tasks {
		out[t.Name] = append(out[t.Name], t.Rule.tasks()...)
		names := []TaskName{t.Contingency}
		if t.Compensate != nil {
			names = append(names, t.Compensate.Task)
		}
		for _, name := range names {
			if c := d.Task(name); c != nil && c.ContingencyOnly {
				out[name] = append(out[name], t.Name)
			}
		}
	}
	return out
}

// tasks are the tasks that a rule mentions, each once, by name.
func (r *Rule) tasks() []TaskName {
	var out []TaskName
	r.Terms(func(leaf *Rule) {
		if leaf.Op == OpTask {
			out = append(out, leaf.Task)
		}
	})
	slices.Sort(out)
	return slices.Compact(out)
}

// checkCycles reports one cycle for each knot of tasks that wait for each other.
func (r *reader) checkCycles() {
	before := r.def.before()
	for _, knot := range components(r.def.Tasks, before) {
		path := cycle(knot, before)
		if path == nil {
			continue
		}
		r.on(r.where(r.def.Task(path[0]), "when"), "one of them must not wait for the others", "a cycle: %s", arrows(path))
	}
}

// arrows prints a cycle in the direction of work: a -> b, b waits for a.
func arrows(path []TaskName) string { return joined(path, " -> ") }

// checkContingencies reports loops of contingencies, and contingencies that
// wait for what they replace.
func (r *reader) checkContingencies() {
	before := r.def.before()
	looped := map[TaskName]bool{}
	for _, t := range r.def.Tasks {
		path := []TaskName{t.Name}
		for c := r.def.Task(t.Contingency); c != nil && !looped[t.Name]; c = r.def.Task(c.Contingency) {
			if i := slices.Index(path, c.Name); i >= 0 {
				for _, name := range path {
					looped[name] = true
				}
				r.on(r.contingencyNode(r.def.Task(path[i])), "the last one must block or release",
					"a loop of contingencies: %s", arrows(append(path[i:], c.Name)))
				break
			}
			path = append(path, c.Name)
		}
		c := r.def.Task(t.Contingency)
		if c != nil && !c.ContingencyOnly && reaches(c.Name, t.Name, before) {
			r.on(r.contingencyNode(t), "leave out its after and when: the failure starts it",
				"%s stands in for %s, but its own rule waits for it", c.Name, t.Name)
		}
	}
}

func (r *reader) contingencyNode(t *Task) *node {
	if n := r.written(t, "contingency"); n != nil {
		return n
	}
	return r.where(t, "on-failure")
}

// reaches tells whether the rules lead from a task back to another.
func reaches(from, to TaskName, before map[TaskName][]TaskName) bool {
	seen := map[TaskName]bool{}
	var walk func(TaskName) bool
	walk = func(t TaskName) bool {
		for _, p := range before[t] {
			if p == to {
				return true
			}
			if !seen[p] {
				seen[p] = true
				if walk(p) {
					return true
				}
			}
		}
		return false
	}
	return walk(from)
}

// checkWaits reports emergency triggers whose worst case is not finite: a
// task before them has no timeout. Behind another trigger nothing is asked, as
// that one is checked itself.
func (r *reader) checkWaits() {
	for _, t := range r.def.Tasks {
		if t.TimeToWait == 0 {
			continue
		}
		if open := r.def.withoutTimeout(t); len(open) > 0 {
			r.on(r.where(t, "time-to-wait"), "give each of them a timeout, so that the longest wait is known",
				"time-to-wait needs a timeout on every path before %s: there is none at %s", t.Name, strings.TrimSpace(joined(open, ", ")))
		}
	}
}

// withoutTimeout are the tasks before t that may take for ever, with the
// contingencies that may take their place.
func (d *Definition) withoutTimeout(t *Task) []TaskName {
	seen := map[TaskName]bool{t.Name: true}
	var open []TaskName
	var walk func(*Task)
	visit := func(name TaskName) {
		if p := d.Task(name); p != nil && !seen[name] {
			seen[name] = true
			walk(p)
		}
	}
	walk = func(p *Task) {
		if p != t && p.Timeout == 0 {
			open = append(open, p.Name)
		}
		if p != t {
			visit(p.Contingency)
		}
		if p == t || p.TimeToWait == 0 {
			for _, q := range p.Rule.tasks() {
				visit(q)
			}
		}
	}
	walk(t)
	slices.Sort(open)
	return open
}
