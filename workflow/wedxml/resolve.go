package wedxml

import (
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// key is a name as names are looked for: without white space, which printed files put
// where a line ends.
func key(name string) string { return strings.Join(strings.Fields(name), "") }

// index finds things by their names.
type index map[string]int

// indexed reports names that are there twice.
func (p *parser) indexed(what string, n int, name func(int) (string, position)) index {
	out := index{}
	for i := range n {
		s, at := name(i)
		if _, there := out[key(s)]; there && s != "" {
			p.fail(at, "give each its own name", "the %s %q is defined twice", what, shorten(s))
			continue
		}
		out[key(s)] = i
	}
	return out
}

// known brings a name to the spelling of its definition, or reports that there is none.
func (p *parser) known(name *string, at position, what string, of index, spelled func(int) string) {
	if *name == "" {
		return // reported already, or left out
	}
	i, found := of[key(*name)]
	if !found {
		p.fail(at, "define it, or correct the name", "there is no %s %q", what, shorten(*name))
		return
	}
	*name = spelled(i)
}

// resolve checks that all names are known, and reads the conditions.
func (p *parser) resolve() {
	d := p.document
	attributes := p.indexed("attribute", len(d.Attributes),
		func(i int) (string, position) { return d.Attributes[i].Name, d.Attributes[i].at })
	conditions := p.indexed("condition", len(d.Conditions),
		func(i int) (string, position) { return d.Conditions[i].Name, d.Conditions[i].at })
	transitions := p.indexed("transition", len(d.Transitions),
		func(i int) (string, position) { return d.Transitions[i].Name, d.Transitions[i].at })
	p.indexed("flow", len(d.Flows), func(i int) (string, position) { return d.Flows[i].Name, d.Flows[i].at })
	p.indexed("compensation of", len(d.Compensations),
		func(i int) (string, position) { return d.Compensations[i].For, d.Compensations[i].at })
	condition := func(i int) string { return d.Conditions[i].Name }
	transition := func(i int) string { return d.Transitions[i].Name }
	for _, list := range [][]Transition{d.Transitions, d.Compensations} {
		for i := range list {
			t := &list[i]
			for j := range t.Updates {
				p.known(&t.Updates[j], t.at, "attribute", attributes,
					func(i int) string { return d.Attributes[i].Name })
			}
			slices.Sort(t.Updates)
			t.Updates = slices.Compact(t.Updates)
			p.known(&t.For, t.at, "transition", transitions, transition)
		}
	}
	for i := range d.Flows {
		f := &d.Flows[i]
		p.known(&f.Final, f.at, "condition", conditions, condition)
		for j := range f.Triggers {
			t := &f.Triggers[j]
			p.known(&t.Condition, t.at, "condition", conditions, condition)
			p.known(&t.Transition, t.at, "transition", transitions, transition)
		}
		switch n := len(f.Triggers); {
		case n == 0:
			p.fail(f.at, "write <Trigger CondName=… TransName=…/>", "the flow %q has no trigger", shorten(f.Name))
		case n > workflow.MaxTasks:
			p.fail(f.at, "split the flow", "the flow has %d triggers: at most %d are allowed", n, workflow.MaxTasks)
		}
	}
	seen := map[string]bool{}
	for i := range d.Constraints {
		c := &d.Constraints[i]
		p.known(&c.Condition, c.at, "condition", conditions, condition)
		if seen[c.Condition] {
			p.fail(c.at, "leave one out", "the constraint %q is there twice", shorten(c.Condition))
		}
		seen[c.Condition] = true
	}
	reader := newConditions(p, attributes)
	for i := range d.Conditions {
		reader.read(&d.Conditions[i])
	}
}
