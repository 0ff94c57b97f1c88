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
	standsFor    map[TaskName][]TaskName // the tasks that name it as their contingency
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

// link costs no more than the rules are long: a task that writes data and one
// that reads it are linked by the name of the data, never one by one.
func link(d *Definition) links {
	l := links{
		predecessors: map[TaskName][]TaskName{}, successors: map[TaskName][]TaskName{}, standsFor: map[TaskName][]TaskName{},
		readers: map[DataName][]TaskName{}, writers: map[DataName][]TaskName{}, order: d.order().topological(),
	}
	for _, name := range slices.Sorted(maps.Keys(d.index)) {
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
			l.standsFor[t.Contingency] = append(l.standsFor[t.Contingency], name)
		}
	}
	return l
}

// Predecessors are the tasks that t's rule mentions, by name. Nobody may change
// the list; so for those below.
func (d *Definition) Predecessors(t TaskName) []TaskName { return d.links.predecessors[t] }

// Successors are the tasks whose rule mentions t, by name.
func (d *Definition) Successors(t TaskName) []TaskName { return d.links.successors[t] }

// Mentions are the tasks whose rule must be evaluated again when t changes its
// state, by name: its successors, the successors of every task for which it may
// stand in, and the tasks whose rule mentions data that t may write. They are
// found when they are asked for: written out for all tasks they may be as many as
// the square of the tasks.
func (d *Definition) Mentions(t TaskName) []TaskName {
	found, slots := map[TaskName]bool{}, map[TaskName]bool{}
	for stands := []TaskName{t}; len(stands) > 0; stands = stands[1:] {
		slot := stands[0]
		if slots[slot] {
			continue
		}
		slots[slot] = true
		for _, s := range d.links.successors[slot] {
			found[s] = true
		}
		stands = append(stands, d.links.standsFor[slot]...)
	}
	if task := d.Task(t); task != nil {
		for _, n := range task.Out {
			for _, reader := range d.links.readers[n] {
				found[reader] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// Readers are the tasks whose rule mentions a data item, by name.
func (d *Definition) Readers(n DataName) []TaskName { return d.links.readers[n] }

// Writers are the tasks that may set a data item, by name.
func (d *Definition) Writers(n DataName) []TaskName { return d.links.writers[n] }

// TopoOrder is all tasks in rule order: each after those its rule mentions, a
// contingency or compensation right after what it stands in for or undoes, else
// by name. It is the same for all definitions with one hash.
func (d *Definition) TopoOrder() []TaskName { return d.links.order }
