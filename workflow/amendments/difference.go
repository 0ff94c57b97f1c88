package amendments

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Kind says what a part of a definition is.
type Kind string

// The kinds of parts, in the order in which they are listed. What stands at the top of a
// definition by itself (final, version, doc and so on) is one part, the workflow.
const (
	OfWorkflow     Kind = "workflow"
	OfData         Kind = "data"
	OfCondition    Kind = "condition"
	OfConstraint   Kind = "constraint"
	OfApplication  Kind = "application"
	OfResource     Kind = "resource"
	OfTask         Kind = "task"
	OfLoop         Kind = "loop" // by the name of its last task
	OfPartition    Kind = "partition"
	OfDistribution Kind = "distribution"
)

var kinds = []Kind{
	OfWorkflow, OfData, OfCondition, OfConstraint, OfApplication, OfResource, OfTask, OfLoop, OfPartition, OfDistribution,
}

// groups are the keys of a definition under which parts have names.
var groups = map[string]Kind{
	"data": OfData, "applications": OfApplication, "resources": OfResource, "tasks": OfTask, "partitions": OfPartition,
}

// expression is the one key of a condition, which is written without one.
const expression = "expression"

// Part names a part of a definition.
type Part struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"` // empty: there is one of its kind
}

func (p Part) String() string {
	if p.Name == "" {
		return string(p.Kind)
	}
	return plain.Line(string(p.Kind) + " " + p.Name)
}

func (p Part) compare(o Part) int {
	return cmp.Or(slices.Index(kinds, p.Kind)-slices.Index(kinds, o.Kind), cmp.Compare(p.Name, o.Name))
}

// How says what became of a part.
type How string

// What becomes of parts.
const (
	Added   How = "added"
	Removed How = "removed"
	Changed How = "changed"
)

// Change is what became of one part.
type Change struct {
	Part
	How How `json:"change"`
	// Keys are those of its keys whose values differ, by name; of a part that is new, all; of one that is
	// gone, none.
	Keys []Key `json:"keys"`
}

// Key is a key whose value differs. A value is as the canonical form has it, which leaves defaults out.
type Key struct {
	Key string          `json:"key"`
	Was json.RawMessage `json:"was,omitempty"` // left out: it was not written
	Is  json.RawMessage `json:"is,omitempty"`  // left out: it is not written
}

// key is the change of a key of the part; nil: it has not changed.
func (c *Change) key(name string) *Key {
	for i := range c.Keys {
		if c.Keys[i].Key == name {
			return &c.Keys[i]
		}
	}
	return nil
}

// Edition names one edition of a definition.
type Edition struct {
	Workflow workflow.Name `json:"workflow"`
	Version  int           `json:"version"`
	Hash     string        `json:"hash"`
}

// EditionOf names a definition.
func EditionOf(d *workflow.Definition) Edition { return Edition{d.Name, d.Version, d.Hash().String()} }

// Between is what differs between two editions of a definition, in the order of kinds and names.
// It is empty where both mean the same.
func Between(old, changed *workflow.Definition) []Change {
	return compare(partsOf(old), partsOf(changed))
}

// parts are the parts of a definition, each with its keys.
type parts map[Part]map[string]json.RawMessage

// partsOf takes a definition apart, as it is written. What it keeps and does not need nobody wrote.
func partsOf(d *workflow.Definition) parts { return apart(d, d.Kept().StandIns) }

// Written is a definition without the tasks that it keeps as they once stood in for others: what somebody would list.
func Written(d *workflow.Definition) *workflow.Definition {
	if len(d.Kept().StandIns) == 0 || len(d.Kept().Tasks) > 0 {
		return d
	}
	p := partsOf(d)
	out, err := workflow.Parse("amended", p.text(p.constraints(d)))
	if err != nil { // cannot be: nothing that is written asks for them
		return d
	}
	return out
}

// withStandIns is partsOf with the tasks that only stood in for others and are kept: one may come to stand in again.
func withStandIns(d *workflow.Definition) parts { return apart(d, nil) }

// apart takes a definition apart, without some tasks, and without rounds that no loop has any more.
func apart(d *workflow.Definition, without []workflow.TaskName) parts {
	out := partsIn(d.Canonical())
	for _, x := range d.Loops() {
		of := out[Part{OfTask, string(x.Last)}]
		out[Part{OfLoop, string(x.Last)}] = object(of["repeat"])
		delete(of, "repeat")
	}
	kept := d.Kept()
	if len(kept.Tasks)+len(without) == 0 {
		return out
	}
	gone := map[string]bool{}
	for t := range kept.Tasks {
		gone[string(t)] = true
	}
	for _, t := range without {
		gone[string(t)] = true
	}
	for t := range gone {
		delete(out, Part{OfTask, t})
	}
	for _, n := range kept.Data {
		delete(out, Part{OfData, string(n)})
	}
	for p, keys := range out {
		if p.Kind != OfPartition {
			continue
		}
		if all := slices.DeleteFunc(names(keys["tasks"]), func(t string) bool { return gone[t] }); len(all) > 0 {
			keys["tasks"] = written(all)
		} else {
			delete(keys, "tasks")
		}
	}
	return out
}

// writtenOut takes a definition apart as an instance has it: with the rounds of loops as tasks.
func writtenOut(d *workflow.Definition) parts { return partsIn(d.WrittenOut()) }

func partsIn(canonical []byte) parts {
	out := parts{{Kind: OfWorkflow}: {}}
	for key, value := range object(canonical) {
		kind, named := groups[key]
		switch {
		case named:
			for name, body := range object(value) {
				out[Part{kind, name}] = object(body)
			}
		case key == "conditions":
			for name, text := range object(value) {
				out[Part{OfCondition, name}] = map[string]json.RawMessage{expression: text}
			}
		case key == "constraints":
			for _, body := range list(value) {
				keys := object(body)
				name := text(keys["name"])
				delete(keys, "name")
				out[Part{OfConstraint, name}] = keys
			}
		case key == "distribution":
			out[Part{Kind: OfDistribution}] = object(value)
		default:
			out[Part{Kind: OfWorkflow}][key] = value
		}
	}
	return out
}

// order is all parts that either has.
func order(all ...parts) []Part {
	seen := map[Part]bool{}
	for _, p := range all {
		for part := range p {
			seen[part] = true
		}
	}
	return slices.SortedFunc(maps.Keys(seen), Part.compare)
}

func compare(old, changed parts) (out []Change) {
	for _, p := range order(old, changed) {
		was, before := old[p]
		is, after := changed[p]
		c := Change{Part: p, How: Changed, Keys: []Key{}}
		switch {
		case !before:
			c.How = Added
		case !after:
			c.How = Removed
			out = append(out, c)
			continue
		}
		for _, key := range keys(was, is) {
			if !bytes.Equal(was[key], is[key]) {
				c.Keys = append(c.Keys, Key{Key: key, Was: was[key], Is: is[key]})
			}
		}
		if c.How == Added || len(c.Keys) > 0 {
			out = append(out, c)
		}
	}
	return out
}

// keys are all keys that any of some parts has.
func keys(all ...map[string]json.RawMessage) []string {
	seen := map[string]bool{}
	for _, m := range all {
		for key := range m {
			seen[key] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// The canonical form is JSON that this program made, so that it can be read is certain.

func object(b []byte) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	mustRead(b, &out)
	return out
}

func list(b []byte) (out []json.RawMessage) {
	mustRead(b, &out)
	return out
}

// names are a list of names; none where it is not written.
func names(b []byte) (out []string) {
	if len(b) > 0 {
		mustRead(b, &out)
	}
	return out
}

func text(b []byte) (out string) {
	mustRead(b, &out)
	return out
}

func mustRead(b []byte, to any) {
	if err := json.Unmarshal(b, to); err != nil {
		panic(fmt.Sprintf("workflow/amendments: the canonical form: %v", err))
	}
}
