package lxpdl

// resolve checks that all names are known, tells the transitions that go back from those that go forward, and
// fills in what refers to tasks.
func (p *parser) resolve() {
	tasks := p.taskNames()
	if len(p.tasks) > 0 && len(p.starts) == 0 {
		p.fail(p.around, `add <start name="…"/> with the task that comes first`, "<tasks> has no <start>")
	}
	p.process.Start = p.known("<start> names", p.starts, tasks)
	p.process.End = p.known("<end> names", p.ends, tasks)
	for _, t := range p.transitions {
		if len(p.known("the transition mentions", []named{t.source, t.destination}, tasks)) == 2 {
			p.process.Transitions = append(p.process.Transitions, Transition{t.source.name, t.destination.name})
		}
	}
	if p.problems.Number() == 0 {
		p.loops()
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
			p.fail(n.at, "define it under <tasks>, or correct the name", "%s %q, which is not a task", what,
				shorten(n.name))
		}
	}
	return names
}
