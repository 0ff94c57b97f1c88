package workflow

// Limits of resources.
const (
	// MaxResources bounds the resources of a definition, and MaxHolds those that one task holds.
	MaxResources = 64
	MaxHolds     = 16
	// MaxCapacity bounds the units of one resource.
	MaxCapacity = 1_000_000
)

var resourceKeys = []key[ResourceDecl]{
	{"capacity", func(r *reader, n *node, x *ResourceDecl) { x.Capacity = int(r.integer(n, 1, MaxCapacity)) }},
	{"partition", func(r *reader, n *node, x *ResourceDecl) { x.Partition = PartitionName(r.name(n)) }},
}

// resources reads the resources, and checks what tasks hold of them.
func (r *reader) resources() {
	known := map[ResourceName]bool{}
	var names []string
	if n := r.written(r.def, "resources"); n != nil && !n.isNull() {
		entries := r.named(n, "resources")
		if len(entries) > MaxResources {
			r.on(n, "cut it into sub-workflows", "there are %d resources: at most %d are allowed", len(entries),
				MaxResources)
		}
		for _, e := range entries {
			x := &ResourceDecl{Name: ResourceName(e.key.text)}
			r.heads[x] = e.key
			if readMap(r, e.value, resourceKeys, x) {
				r.checkResource(x)
			}
			known[x.Name], names = true, append(names, e.key.text)
			r.def.Resources = append(r.def.Resources, *x)
		}
	}
	undoes := r.undoing()
	for _, t := range r.def.Tasks {
		r.checkHolds(t, known, names, undoes[t.Name])
	}
}

func (r *reader) checkResource(x *ResourceDecl) {
	if r.written(x, "capacity") == nil {
		r.on(r.head(x), "write capacity: 1, or how many tasks may have it at once",
			"the resource %s does not say how much there is of it", x.Name)
	}
	n := r.written(x, "partition")
	if n == nil {
		r.on(r.head(x), "write partition: NAME: whoever holds that gives the resource out",
			"the resource %s is in no partition", x.Name)
		return
	}
	var all []string
	for _, p := range r.def.Partitions {
		if p.Name == x.Partition {
			return
		}
		all = append(all, string(p.Name))
	}
	if x.Partition != "" {
		r.on(n, r.scope.memory.didYouMean(string(x.Partition), all), "there is no partition %q", x.Partition)
	}
}

// checkHolds reports what a task cannot hold.
func (r *reader) checkHolds(t *Task, known map[ResourceName]bool, names []string, undoes bool) {
	n := r.written(t, "holds")
	if n == nil || n.isNull() {
		return
	}
	for _, item := range n.list() {
		if item.kind == scalarNode && !item.isNull() && ValidName(item.text) && !known[ResourceName(item.text)] {
			hint := r.scope.memory.didYouMean(item.text, names)
			if hint == "" {
				hint = "declare it under resources:"
			}
			r.on(item, hint, "there is no resource %q", item.text)
		}
	}
	if len(t.Holds) > MaxHolds {
		r.on(n, "make one resource of those that go together", "%s holds %d resources: at most %d are allowed", t.Name,
			len(t.Holds), MaxHolds)
	}
	if undoes && len(t.Holds) > 0 {
		r.on(n, "leave it out", "%s undoes what another task did, and that waits for no resource", t.Name)
	}
}

// undoing are the tasks that only undo what others did.
func (r *reader) undoing() map[TaskName]bool {
	out := map[TaskName]bool{}
	for _, t := range r.def.Tasks {
		if t.Compensate != nil {
			out[t.Compensate.Task] = true
		}
	}
	return out
}
