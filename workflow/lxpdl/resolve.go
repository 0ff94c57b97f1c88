package lxpdl

import "strings"

// resolve checks that all names are known and that no task comes before
// itself, and fills in what refers to tasks.
func (p *parser) resolve() {
	tasks := p.taskNames()
	markers := make(map[string]bool)
	p.process.Start = p.markers(p.starts, tasks, markers)
	p.process.End = p.markers(p.ends, tasks, markers)
	for _, t := range p.transitions {
		from, to := p.end(t.source, tasks, markers), p.end(t.destination, tasks, markers)
		if from && to {
			p.process.Transitions = append(p.process.Transitions, Transition{t.source.name, t.destination.name})
		}
	}
	if len(p.problems) == 0 {
		p.checkCycle()
	}
}

// taskNames indexes the tasks, each of which must have its own name.
func (p *parser) taskNames() map[string]bool {
	names := make(map[string]bool, len(p.process.Tasks))
	for i, t := range p.process.Tasks {
		if t.Name != "" && names[t.Name] {
			p.fail(p.tasks[i], "give each task its own name", "task %q is defined twice", shorten(t.Name))
		}
		names[t.Name] = true
	}
	return names
}

// markers separates <start> and <end> that name tasks from those that stand
// for themselves, which it adds to the set.
func (p *parser) markers(ns []named, tasks, set map[string]bool) []string {
	var names []string
	for _, n := range ns {
		if tasks[n.name] {
			names = append(names, n.name)
		} else {
			set[n.name] = true
		}
	}
	return names
}

// end reports whether one end of a transition is a task.
func (p *parser) end(n named, tasks, markers map[string]bool) bool {
	if n.name != "" && !tasks[n.name] && !markers[n.name] {
		p.fail(n.at, "define it under <tasks>, or correct the name", "the transition mentions %q, which is not a task", shorten(n.name))
	}
	return tasks[n.name]
}

// checkCycle reports a task that comes before itself. Tasks are removed as
// soon as nothing is left before them; what remains is on a cycle or behind one.
func (p *parser) checkCycle() {
	left := make(map[string]int)
	after := make(map[string][]string)
	for _, t := range p.process.Transitions {
		left[t.Destination]++
		after[t.Source] = append(after[t.Source], t.Destination)
	}
	var free []string
	for _, t := range p.process.Tasks {
		if left[t.Name] == 0 {
			free = append(free, t.Name)
		}
	}
	for len(free) > 0 {
		for _, next := range after[free[0]] {
			if left[next]--; left[next] == 0 {
				free = append(free, next)
			}
		}
		free = free[1:]
	}
	for i, t := range p.process.Tasks {
		if left[t.Name] > 0 {
			p.fail(p.tasks[i], "remove one of its transitions: a process must not go back",
				"the transitions form a cycle: %s", strings.Join(p.cycle(t.Name, left), " → "))
			return
		}
	}
}

// cycle follows predecessors that never became free until one comes again.
func (p *parser) cycle(from string, left map[string]int) []string {
	before := p.process.Predecessors()
	place := make(map[string]int)
	var trail []string
	for at := from; ; {
		if i, seen := place[at]; seen {
			loop := []string{shorten(at)}
			for j := len(trail) - 1; j >= i; j-- {
				loop = append(loop, shorten(trail[j]))
			}
			return loop
		}
		place[at] = len(trail)
		trail = append(trail, at)
		for _, b := range before[at] {
			if left[b] > 0 {
				at = b
				break
			}
		}
	}
}
