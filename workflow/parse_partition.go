package workflow

// mainPartition holds everything when no partitions are written.
const mainPartition PartitionName = "main"

// partitions reads the cut.
func (r *reader) partitions() {
	n := r.written(r.def, "partitions")
	if n == nil || n.isNull() {
		r.wholePartition()
		return
	}
	for _, e := range r.named(n, "partitions") {
		p := &PartitionDecl{Name: PartitionName(e.key.text)}
		r.heads[p] = e.key
		if e.value.kind == mapNode {
			readMap(r, e.value, partitionKeys, p)
		} else if !e.value.isNull() {
			p.Tasks = names[TaskName](r, e.value, (*reader).name)
			r.places[p] = map[string]*node{"tasks": e.value}
		}
		if len(p.Tasks) == 0 {
			r.on(e.key, "name its tasks, or leave it out", "the partition %s has no tasks", p.Name)
		}
		r.partitionTasks(p)
		r.def.Partitions = append(r.def.Partitions, *p)
	}
	if n.kind == mapNode {
		r.checkCut(n)
	}
}

var partitionKeys = []key[PartitionDecl]{
	{"label", func(r *reader, n *node, p *PartitionDecl) { p.Label = r.label(n) }},
	{"tasks", func(r *reader, n *node, p *PartitionDecl) { p.Tasks = names[TaskName](r, n, (*reader).name) }},
	{"partner", func(r *reader, n *node, p *PartitionDecl) { p.Partner = r.name(n) }},
	{"roles", func(r *reader, n *node, p *PartitionDecl) { p.Roles = names[RoleName](r, n, (*reader).name) }},
	{"needs", func(r *reader, n *node, p *PartitionDecl) { p.Needs = names[Capability](r, n, (*reader).name) }},
	{"timeout", func(r *reader, n *node, p *PartitionDecl) { p.Timeout = r.span(n) }},
}

// wholePartition is the cut of a definition that has none. A task that is only
// a contingency is left for any partner that is available when it is needed.
func (r *reader) wholePartition() {
	p := PartitionDecl{Name: mainPartition}
	for _, t := range r.def.Tasks {
		if !t.ContingencyOnly {
			p.Tasks = append(p.Tasks, t.Name)
		}
	}
	r.def.Partitions = []PartitionDecl{p}
}

// partitionTasks reports tasks that are not there.
func (r *reader) partitionTasks(p *PartitionDecl) {
	n := r.written(p, "tasks")
	if n == nil {
		return
	}
	for _, item := range n.list() {
		if item.kind == scalarNode && r.def.Task(TaskName(item.text)) == nil && ValidName(item.text) {
			r.on(item, r.scope.memory.didYouMean(item.text, r.scope.tasks), "there is no task %q", item.text)
		}
	}
}

// checkCut reports tasks that are in two partitions, or in none.
func (r *reader) checkCut(n *node) {
	in := map[TaskName]PartitionName{}
	for _, e := range n.entries {
		tasks := e.value
		if t := tasks.get("tasks"); t != nil {
			tasks = t
		}
		name := PartitionName(e.key.text)
		for _, item := range tasks.list() {
			task := TaskName(item.text)
			if other, taken := in[task]; taken && other != name && item.kind == scalarNode {
				r.on(item, "a task is in exactly one partition", "%s is already in the partition %s", task, other)
				continue
			}
			in[task] = name
		}
	}
	for _, t := range r.def.Tasks {
		if _, placed := in[t.Name]; !placed && !t.ContingencyOnly {
			r.on(r.head(t), "add it to one of them", "%s is in no partition", t.Name)
		}
	}
}
