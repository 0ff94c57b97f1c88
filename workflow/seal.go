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
	writers      map[DataName][]TaskName
	order        []TaskName
}

// seal computes what follows from the parts; afterwards nothing changes.
func (d *Definition) seal(r *reader) error {
	d.links = link(d)
	d.features = r.features()
	if d.out = canonical(d, nil); d.loops == nil {
		d.canonical = d.out
	}
	if n := max(len(d.out), len(d.canonical)); n > MaxSource {
		return fmt.Errorf("with its models and rounds written out the definition has %d bytes: at most %d are allowed",
			n, MaxSource)
	}
	d.hash = sha256.Sum256(d.canonical)
	if d.layFlow(); d.flow != nil {
		d.links = link(d)
	}
	return nil
}

// link costs no more than the rules are long: a task that writes data and one
// that reads it are linked by the name of the data, never one by one.
func link(d *Definition) links {
	l := links{
		predecessors: map[TaskName][]TaskName{}, writers: map[DataName][]TaskName{}, order: d.order().topological(),
	}
	for _, name := range slices.Sorted(maps.Keys(d.index)) {
		t := d.index[name]
		l.predecessors[name] = t.Rule.tasks()
		for _, n := range t.Out {
			l.writers[n] = append(l.writers[n], name)
		}
	}
	return l
}

// Predecessors are the tasks that t's rule mentions, by name. Nobody may change
// the list; so for the one below.
func (d *Definition) Predecessors(t TaskName) []TaskName { return d.links.predecessors[t] }

// Writers are the tasks that may set a data item, by name.
func (d *Definition) Writers(n DataName) []TaskName { return d.links.writers[n] }

// TopoOrder is all tasks in rule order: each after those its rule mentions, a
// contingency or compensation right after what it stands in for or undoes, else
// by name. It is the same for all definitions with one hash.
func (d *Definition) TopoOrder() []TaskName { return d.links.order }
