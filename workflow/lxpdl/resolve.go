package lxpdl

import "strings"

// resolve checks that all names are known and that no task comes before
// itself, and fills in what refers to tasks.
func (p *parser) resolve() {
	tasks := p.taskNames()
	p.process.Start = p.known("<start> names", p.starts, tasks)
	p.process.End = p.known("<end> names", p.ends, tasks)
	for _, t := range p.transitions {
		if len(p.known("the transition mentions", []named{t.source, t.destination}, tasks)) == 2 {
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

// known keeps the names that are tasks, and reports the others: what says them,
// and where. A name that is missing is reported already.
func (p *parser) known(what string, ns []named, tasks map[string]bool) []string {
	var names []string
	for _, n := range ns {
		switch {
		case n.name == "":
		case tasks[n.name]:
			names = append(names, n.name)
		default:
			p.fail(n.at, "define it under <tasks>, or correct the name", "%s %q, which is not a task", what, shorten(n.name))
		}
	}
	return names
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
