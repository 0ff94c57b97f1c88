package workflow

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
)

// links are what the core asks of a definition again and again. All lists
// depend on the definition's meaning alone, never on the order in which it was
// written.
type links struct {
	predecessors map[TaskName][]TaskName
	successors   map[TaskName][]TaskName
	affected     map[TaskName][]TaskName
	readers      map[DataName][]TaskName
	writers      map[DataName][]TaskName
	order        []TaskName
}

// seal computes what follows from the parts; afterwards nothing changes.
func (d *Definition) seal(r *reader) error {
	d.links = link(d)
	d.features = r.features()
	d.canonical = canonical(d)
	if len(d.canonical) > MaxSource {
		return fmt.Errorf("with its models written out the definition has %d bytes: at most %d are allowed", len(d.canonical), MaxSource)
	}
	d.hash = sha256.Sum256(d.canonical)
	return nil
}

func link(d *Definition) links {
	l := links{
		predecessors: map[TaskName][]TaskName{}, successors: map[TaskName][]TaskName{}, affected: map[TaskName][]TaskName{},
		readers: map[DataName][]TaskName{}, writers: map[DataName][]TaskName{}, order: d.order().topological(),
	}
	standsFor := map[TaskName][]TaskName{}
	names := slices.Sorted(maps.Keys(d.index))
	for _, name := range names {
		t := d.index[name]
		l.predecessors[name] = t.Rule.tasks()
		for _, p := range l.predecessors[name] {
			l.successors[p] = append(l.successors[p], name)
		}
		for _, n := range t.Rule.data() {
			l.readers[n] = append(l.readers[n], name)
		}
		for _, n := range t.Out {
			l.writers[n] = append(l.writers[n], name)
		}
		if t.Contingency != "" {
			standsFor[t.Contingency] = append(standsFor[t.Contingency], name)
		}
	}
	for _, name := range names {
		l.affected[name] = l.affects(d.index[name], standsFor)
	}
	return l
}

// affects are the tasks whose rule may come to something else when t changes:
// those that mention it or a slot in which it stands, and those that mention
// data it may write.
func (l *links) affects(t *Task, standsFor map[TaskName][]TaskName) []TaskName {
	found, slots := map[TaskName]bool{}, map[TaskName]bool{}
	var stand func(TaskName)
	stand = func(slot TaskName) {
		if slots[slot] {
			return
		}
		slots[slot] = true
		for _, s := range l.successors[slot] {
			found[s] = true
		}
		for _, replaced := range standsFor[slot] {
			stand(replaced)
		}
	}
	stand(t.Name)
	for _, n := range t.Out {
		for _, reader := range l.readers[n] {
			found[reader] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// Predecessors are the tasks that t's rule mentions, by name. Nobody may change
// the list; so for those below.
func (d *Definition) Predecessors(t TaskName) []TaskName { return d.links.predecessors[t] }

// Successors are the tasks whose rule mentions t, by name.
func (d *Definition) Successors(t TaskName) []TaskName { return d.links.successors[t] }

// Mentions are the tasks whose rule must be evaluated again when t changes its
// state, by name: its successors, the successors of every task for which it may
// stand in, and the tasks whose rule mentions data that t may write.
func (d *Definition) Mentions(t TaskName) []TaskName { return d.links.affected[t] }

// Readers are the tasks whose rule mentions a data item, by name.
func (d *Definition) Readers(n DataName) []TaskName { return d.links.readers[n] }

// Writers are the tasks that may set a data item, by name.
func (d *Definition) Writers(n DataName) []TaskName { return d.links.writers[n] }

// TopoOrder is all tasks in rule order: each after those its rule mentions, a
// contingency or compensation right after what it stands in for or undoes, else
// by name. It is the same for all definitions with one hash.
func (d *Definition) TopoOrder() []TaskName { return d.links.order }
