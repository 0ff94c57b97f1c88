package workflow

import "slices"

// check reports what does not fit together between tasks.
func (r *reader) check() {
	g := r.def.order()
	looped := r.checkContingencies(g)
	r.checkCycles(g, looped)
	r.checkReach()
	r.checkWaits()
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

// data are the data items that a rule mentions, each once, by name.
func (r *Rule) data() []DataName {
	var out []DataName
	r.Terms(func(leaf *Rule) {
		if leaf.Op == OpData {
			out = append(out, leaf.Data.names...)
		}
	})
	slices.Sort(out)
	return slices.Compact(out)
}

// checkCycles reports one cycle for each knot of tasks that wait for each
// other, unless it is one of contingencies, which is reported already.
func (r *reader) checkCycles(g *graph, looped map[TaskName]bool) {
	for _, knot := range g.knots() {
		path := g.cycle(knot)
		if looped[path[0]] {
			continue
		}
		r.on(r.ruleNode(r.def.Task(path[0])), "one of them must not wait for the others", "a cycle: %s", arrows(path))
	}
}

// arrows prints a path in the direction of work: a -> b, b waits for a.
func arrows(path []TaskName) string { return joined(path, " -> ") }

// ruleNode is where a task's rule is written, or else its name.
func (r *reader) ruleNode(t *Task) *node {
	if n := r.written(t, "when"); n != nil {
		return n
	}
	return r.where(t, "after")
}

// checkContingencies reports loops of contingencies, and contingencies that
// wait for what they replace.
func (r *reader) checkContingencies(g *graph) (looped map[TaskName]bool) {
	looped = map[TaskName]bool{}
	for _, t := range r.def.Tasks {
		if loop := r.def.contingencyLoop(t); loop != nil && !looped[loop[0]] {
			for _, name := range loop {
				looped[name] = true
			}
			r.on(r.contingencyNode(r.def.Task(loop[0])), "the last one must block or release", "a loop of contingencies: %s", arrows(loop))
		}
		if n := r.def.chained(t); n > maxContingencies {
			r.on(r.contingencyNode(t), "let the last ones block or release", "more than %d contingencies follow one another after %s", maxContingencies, t.Name)
			return looped
		}
		c := r.def.Task(t.Contingency)
		if c != nil && !c.ContingencyOnly && len(r.list) < maxProblems && g.waitsFor(c.Name, t.Name) {
			r.on(r.contingencyNode(t), "leave out its after and when: the failure starts it",
				"%s stands in for %s, but its own rule waits for it", c.Name, t.Name)
		}
	}
	return looped
}

// maxContingencies bounds a chain: more than anybody plans for, and few enough
// that working out worst cases costs little.
const maxContingencies = 32

// chained counts the contingencies that may stand in for t one after another, up
// to one more than allowed; it is 0 for what ends in a loop.
func (d *Definition) chained(t *Task) int {
	seen := map[TaskName]bool{t.Name: true}
	for c := d.Task(t.Contingency); c != nil && len(seen) <= maxContingencies+1; c = d.Task(c.Contingency) {
		if seen[c.Name] {
			return 0
		}
		seen[c.Name] = true
	}
	return len(seen) - 1
}

// contingencyLoop follows the contingencies of t; if they come back to t it is
// the way round.
func (d *Definition) contingencyLoop(t *Task) []TaskName {
	path := []TaskName{t.Name}
	for c := d.Task(t.Contingency); c != nil && len(path) <= len(d.Tasks); c = d.Task(c.Contingency) {
		path = append(path, c.Name)
		if c == t {
			return path
		}
	}
	return nil
}

func (r *reader) contingencyNode(t *Task) *node {
	if n := r.written(t, "contingency"); n != nil {
		return n
	}
	return r.where(t, "on-failure")
}
