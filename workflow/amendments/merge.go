package amendments

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Conflict is where two changes of one definition do not go together.
type Conflict struct {
	Part
	// Key is where they differ; empty: it is about the part as a whole.
	Key string `json:"key,omitempty"`
	// Base, One and Other are its values; left out: it is not written there.
	Base  json.RawMessage `json:"base,omitempty"`
	One   json.RawMessage `json:"one,omitempty"`
	Other json.RawMessage `json:"other,omitempty"`
	// Why says it in words.
	Why string `json:"why"`
}

func (c Conflict) String() string {
	if c.Key == "" {
		return c.Part.String() + ": " + c.Why
	}
	return c.Part.String() + ", " + c.Key + ": " + c.Why
}

// Merge makes one definition of two that were made of base, with the changes of both. Where they conflict there is
// none, and all conflicts are said. It does not matter which is one and which is other: the result is the same, and
// so are the conflicts but for the words that name the two.
//
// A key that only one of them has changed is as that one has it. One that both have changed must be alike, but for
// lists of names of which the order means nothing: there what either added or removed counts. Of two versions the
// higher one counts. A part of one name that both add must be alike in all its keys.
func Merge(base, one, other *workflow.Definition) (*workflow.Definition, []Conflict) {
	m := merger{base: partsOf(base), one: partsOf(one), other: partsOf(other), out: parts{}}
	for _, p := range order(m.base, m.one, m.other) {
		m.part(p)
	}
	m.loops()
	if len(m.conflicts) > 0 {
		return nil, m.conflicts
	}
	constraints := placedConstraints(base, one, other)
	def, err := workflow.Parse("merged", m.out.text(constraints))
	if err != nil {
		return nil, wholeConflicts(err)
	}
	return def, nil
}

// wholeConflicts are what is wrong with a definition that both changes make together.
func wholeConflicts(err error) (out []Conflict) {
	var problems workflow.Errors
	if errors.As(err, &problems) {
		for _, p := range problems {
			out = append(out, Conflict{Part: Part{Kind: OfWorkflow}, Why: "together they are no definition: " + p.Message})
		}
		return out
	}
	return []Conflict{{Part: Part{Kind: OfWorkflow}, Why: "together they are no definition: " + err.Error()}}
}

type merger struct {
	base, one, other parts
	out              parts
	conflicts        []Conflict
}

// part merges one part.
func (m *merger) part(p Part) {
	base, inBase := m.base[p]
	one, inOne := m.one[p]
	other, inOther := m.other[p]
	switch {
	case !inOne && !inOther: // both removed it
		return
	case inBase && !inOne:
		m.removed(p, base, other, "the first removes what the second changes")
		return
	case inBase && !inOther:
		m.removed(p, base, one, "the second removes what the first changes")
		return
	case !inOne:
		m.out[p] = other
		return
	case !inOther:
		m.out[p] = one
		return
	}
	m.out[p] = map[string]json.RawMessage{}
	for _, key := range keys(base, one, other) {
		if !inBase && p.Name != "" && !bytes.Equal(one[key], other[key]) {
			m.unlike(p, key, nil, one[key], other[key])
			continue
		}
		m.key(p, key, base[key], one[key], other[key])
	}
}

// unlike notes that both say a key of a part unlike.
func (m *merger) unlike(p Part, key string, base, one, other json.RawMessage) {
	m.conflicts = append(m.conflicts, Conflict{
		Part: p, Key: key, Base: base, One: one, Other: other,
		Why: fmt.Sprintf("the first says %s, the second %s; before it was %s", Shown(one), Shown(other), Shown(base)),
	})
}

// loops finds the loops whose last task one side takes out: what the other says of such a loop goes nowhere.
func (m *merger) loops() {
	for _, p := range order(m.out) {
		if p.Kind != OfLoop || m.out[Part{OfTask, p.Name}] != nil {
			continue
		}
		why := "the first removes the task with which it ends"
		if m.one[Part{OfTask, p.Name}] != nil {
			why = "the second removes the task with which it ends"
		}
		m.conflicts = append(m.conflicts, Conflict{Part: p, Why: why})
	}
}

// removed merges a part that one side removed: it is gone if the other side left it as it was.
func (m *merger) removed(p Part, base, kept map[string]json.RawMessage, why string) {
	if !maps.EqualFunc(base, kept, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
		m.conflicts = append(m.conflicts, Conflict{Part: p, Why: why})
	}
}

// key merges one key of a part that both sides have.
func (m *merger) key(p Part, key string, base, one, other json.RawMessage) {
	value := one
	switch {
	case bytes.Equal(one, other), bytes.Equal(other, base):
	case bytes.Equal(one, base):
		value = other
	case isSet(p.Kind, key):
		value = mergeNames(names(base), names(one), names(other))
	case p.Kind == OfWorkflow && key == "version":
		if number(other) > number(one) {
			value = other
		}
	default:
		m.unlike(p, key, base, one, other)
		return
	}
	if len(value) > 0 {
		m.out[p][key] = value
	}
}

// mergeNames is a list with what either side added and without what either removed; nil: it is empty.
func mergeNames(base, one, other []string) json.RawMessage {
	out := slices.DeleteFunc(slices.Clone(base),
		func(n string) bool { return !slices.Contains(one, n) || !slices.Contains(other, n) })
	out = append(append(out, without(one, base)...), without(other, base)...)
	slices.Sort(out)
	if out = slices.Compact(out); len(out) == 0 {
		return nil
	}
	return written(out)
}

func number(raw json.RawMessage) (n int) {
	if len(raw) > 0 {
		mustRead(raw, &n)
	}
	return n
}

// placedConstraints are the names of constraints in an order: those of the base as it has them, then those that are
// new, by name.
func placedConstraints(base, one, other *workflow.Definition) (out []string) {
	var added []string
	for _, c := range base.Constraints {
		out = append(out, c.Name)
	}
	for _, d := range []*workflow.Definition{one, other} {
		for _, c := range d.Constraints {
			if !slices.Contains(out, c.Name) {
				added = append(added, c.Name)
			}
		}
	}
	slices.Sort(added)
	return append(out, slices.Compact(added)...)
}

// text is a definition that has these parts.
func (p parts) text(constraints []string) []byte {
	top := map[string]any{}
	for key, value := range p[Part{Kind: OfWorkflow}] {
		top[key] = value
	}
	if d := p[Part{Kind: OfDistribution}]; d != nil {
		top["distribution"] = d
	}
	into := func(key string, kind Kind, body func(string, map[string]json.RawMessage) any) {
		all := map[string]any{}
		for part, keys := range p {
			if part.Kind == kind {
				all[part.Name] = body(part.Name, keys)
			}
		}
		if len(all) > 0 {
			top[key] = all
		}
	}
	for key, kind := range groups {
		into(key, kind, func(_ string, keys map[string]json.RawMessage) any { return keys })
	}
	into("tasks", OfTask, func(name string, keys map[string]json.RawMessage) any {
		loop := p[Part{OfLoop, name}]
		if loop == nil {
			return keys
		}
		keys = maps.Clone(keys)
		keys["repeat"] = written(loop)
		return keys
	})
	into("conditions", OfCondition, func(_ string, keys map[string]json.RawMessage) any { return keys[expression] })
	var list []any
	for _, name := range constraints {
		if keys := p[Part{OfConstraint, name}]; keys != nil {
			body := maps.Clone(keys)
			body["name"] = written(name)
			list = append(list, body)
		}
	}
	if len(list) > 0 {
		top["constraints"] = list
	}
	return written(top)
}

// written writes what was read before, or names, as the canonical form does: each character as it is.
func written(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("workflow/amendments: write a definition: %v", err))
	}
	return bytes.TrimSpace(b.Bytes())
}
