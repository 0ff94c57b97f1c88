package workflow

import (
	"maps"
	"slices"
)

// check reports what does not fit together between tasks.
func (r *reader) check() {
	g := r.def.order()
	looped := r.checkContingencies(g)
	r.checkCycles(g, looped)
	r.checkReach(g)
	r.checkWaits()
	r.checkConditions()
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

// checkCycles reports one cycle for each knot of tasks that wait for each
// other, unless it is one of contingencies, which is reported already.
func (r *reader) checkCycles(g *graph, looped []bool) {
	for _, knot := range g.knots() {
		if looped[knot[0]] {
			continue
		}
		path := r.def.withBetween(g.cycle(knot))
		r.on(r.ruleNode(r.def.Task(path[0])), "one of them must not wait for the others", "a cycle: %s", arrows(path))
	}
}

// withBetween is a path with the tasks of the flow by way of which a contingency comes to stand in.
func (d *Definition) withBetween(path []TaskName) (out []TaskName) {
	for i, name := range path {
		out = append(out, name)
		if i+1 == len(path) {
			break
		}
		next, t := path[i+1], d.Task(name)
		if c := d.standsIn(t); c == nil || c.Name != next || t.Compensate.task() == next {
			continue
		}
		for c := t.Contingency; c != next; c = d.Task(c).Contingency {
			out = append(out, c)
		}
	}
	return out
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

// checkContingencies reports loops of contingencies, chains that are too long,
// and contingencies that wait for what they replace.
func (r *reader) checkContingencies(g *graph) (looped []bool) {
	c := g.contingencies()
	looped = make([]bool, len(g.tasks))
	for i, t := range g.tasks {
		if c.loops[i] && !looped[i] {
			loop := c.loop(i)
			for _, member := range loop {
				looped[member] = true
			}
			r.on(r.contingencyNode(t), "the last one must block or release", "a loop of contingencies: %s",
				arrows(g.names(loop)))
		}
		if c.after[i] > maxContingencies {
			r.on(r.contingencyNode(t), "let the last ones block or release",
				"more than %d contingencies follow one another after %s", maxContingencies, t.Name)
			return looped
		}
	}
	waiting, known := g.waitingForReplaced(c.next)
	for _, i := range waiting {
		t, stands := g.tasks[i], g.tasks[c.next[i]]
		r.on(r.contingencyNode(t), "leave out its after and when: the failure starts it",
			"%s stands in for %s, but its own rule waits for it", stands.Name, t.Name)
	}
	if !known {
		r.on(r.head(r.def), "leave out the after and when of tasks that are a contingency",
			"too many contingencies with rules of their own depend on one another")
	}
	return looped
}

// maxContingencies bounds a chain: more than anybody plans for, and few enough
// that working out worst cases costs little.
const maxContingencies = 32

// chains says of each task which contingencies follow one another after it.
type chains struct {
	next  []int  // its contingency; -1: none
	after []int  // how many follow; 0 for what leads into a loop
	loops []bool // it is part of a loop
}

// contingencies follows every contingency once.
func (g *graph) contingencies() chains {
	n := len(g.tasks)
	c := chains{next: make([]int, n), after: make([]int, n), loops: make([]bool, n)}
	for i, t := range g.tasks {
		c.next[i] = -1
		if at, ok := g.index[t.Contingency]; ok {
			c.next[i] = at
		}
	}
	walk, open := make([]int, n), make([]bool, n) // the walk that came by, from 1; it ended in a loop
	for start := range g.tasks {
		var path []int
		i := start
		for ; i >= 0 && walk[i] == 0; i = c.next[i] {
			g.steps++
			walk[i] = start + 1
			path = append(path, i)
		}
		if i >= 0 && walk[i] == start+1 { // this walk came back to itself
			for m := i; !c.loops[m]; m = c.next[m] {
				c.loops[m] = true
			}
		}
		for _, p := range slices.Backward(path) {
			switch next := c.next[p]; {
			case next < 0:
			case c.loops[p] || c.loops[next] || open[next]:
				open[p] = true
			default:
				c.after[p] = c.after[next] + 1
			}
		}
	}
	return c
}

// loop is a loop of contingencies, beginning and ending with one of its tasks.
func (c chains) loop(first int) []int {
	path := []int{first}
	for i := c.next[first]; ; i = c.next[i] {
		path = append(path, i)
		if i == first {
			return path
		}
	}
}

// waitingForReplaced finds the tasks whose contingency has a rule of its own that
// waits for them. Such a contingency lies on a circle of the order together with
// what it replaces, so only circles are searched; known is false if that took more
// steps than a definition of this size is worth.
func (g *graph) waitingForReplaced(next []int) (found []int, known bool) {
	both := &graph{tasks: g.tasks, before: slices.Clone(g.before)}
	for i, c := range next {
		if c >= 0 && !g.tasks[c].ContingencyOnly {
			both.before[i] = append(slices.Clip(both.before[i]), c)
		}
	}
	limit := maxCircleSteps
	for _, knot := range both.knots() {
		replaced := map[int][]int{} // by contingency
		for _, i := range knot {
			if c := next[i]; c >= 0 && !g.tasks[c].ContingencyOnly {
				replaced[c] = append(replaced[c], i)
			}
		}
		for _, c := range slices.Sorted(maps.Keys(replaced)) {
			before := g.reach(c, knot, &limit)
			if limit < 0 {
				return found, false
			}
			for _, i := range replaced[c] {
				if before[i] {
					found = append(found, i)
				}
			}
		}
	}
	g.steps += both.steps
	slices.Sort(found)
	return found, true
}

// maxCircleSteps bounds the search of all circles together.
const maxCircleSteps = 1 << 20

// reach is which tasks of a knot come before one of them, as far as the limit of
// steps allows.
func (g *graph) reach(from int, knot []int, limit *int) map[int]bool {
	seen := map[int]bool{}
	for queue := []int{from}; len(queue) > 0 && *limit >= 0; queue = queue[1:] {
		for _, p := range g.before[queue[0]] {
			g.steps++
			*limit--
			if _, inside := slices.BinarySearch(knot, p); inside && !seen[p] {
				seen[p] = true
				queue = append(queue, p)
			}
		}
	}
	return seen
}

func (g *graph) names(tasks []int) []TaskName {
	out := make([]TaskName, len(tasks))
	for i, t := range tasks {
		out[i] = g.tasks[t].Name
	}
	return out
}

func (r *reader) contingencyNode(t *Task) *node {
	if n := r.written(t, "contingency"); n != nil {
		return n
	}
	return r.where(t, "on-failure")
}

// checkConditions reports that what is written may have conditions evaluated too often:
// each write of a data item costs one evaluation for each different condition about it.
func (r *reader) checkConditions() {
	writers, readers := map[DataName]int{}, map[DataName]*node{} // where the last is that asks for it
	conditions := map[DataName]map[string]bool{}
	asks := func(e *Expr, at *node) {
		for _, n := range e.names {
			if conditions[n] == nil {
				conditions[n] = map[string]bool{}
			}
			conditions[n][e.String()], readers[n] = true, at
		}
	}
	for _, t := range r.def.Tasks {
		for _, n := range t.Out {
			writers[n]++
		}
		t.Rule.Terms(func(leaf *Rule) {
			if leaf.Op == OpData {
				asks(leaf.Data, r.ruleNode(t))
			}
		})
	}
	for _, c := range r.def.Constraints {
		if c.When != nil {
			asks(c.When, r.written(r.def, "constraints"))
		}
	}
	if r.def.Final != nil {
		asks(r.def.Final, r.written(r.def, "final"))
	}
	sum, most := 0, DataName("")
	for _, n := range slices.Sorted(maps.Keys(conditions)) {
		evaluations := writers[n] * len(conditions[n])
		if sum += evaluations; most == "" || evaluations > writers[most]*len(conditions[most]) {
			most = n
		}
	}
	if sum > MaxEvaluations {
		r.on(readers[most], "have one task work out what the others wait for, into a data item of its own",
			"%d tasks may write %s, and rules have %d different conditions about it: in all data at most %d evaluations are allowed, here it may take %d",
			writers[most], most, len(conditions[most]), MaxEvaluations, sum)
	}
}
