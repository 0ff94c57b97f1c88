package meaning

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// Round is a task that comes by an amendment which does not name it: a part of a loop, what its patch says of that, and
// into which partition it goes.
type Round struct {
	Task workflow.TaskName
	What string
	Home workflow.PartitionName
}

// Amend says how the definition is made with patches, in their order, and which rounds come with the last of them.
func (h *History) Amend(amended func(patches []string) *workflow.Definition, rounds func(patches []string) []Round) {
	h.amended, h.rounds = amended, rounds
}

// setting is what a patch says of a key of a part, as far as it matters here.
type setting struct {
	Kind  string            `json:"kind"`
	Name  workflow.TaskName `json:"name"`
	Key   string            `json:"key"`
	Value any               `json:"value"`
}

// patched is a patch that counts, and the fact that says it.
type patched struct {
	by   int
	text string
}

// changing are the keys of a task that was there which matter here.
var changing = []string{
	"enabled", "in", "on-failure", "contingency", "retries", "compensate", "timeout", "time-to-wait",
}

// amend takes in what an amendment adds, leaves out or sets, for those who knew of it. No two add one name in a
// simulation, and nothing that was there is to wait for what is added, so the other rules stay as they were.
func (m *Meaning) amend(i int, x worklist.Amend) {
	placed := map[any]workflow.PartnerID{}
	for _, p := range x.At { // partitions that it adds: in a simulation none moves
		placed[string(p.Partition)] = p.Partner
		m.joined[p.Partner] = append(m.joined[p.Partner], i)
	}
	var raw []json.RawMessage
	if m.h.amended == nil || json.Unmarshal([]byte(x.Patch), &raw) != nil {
		return
	}
	says := map[workflow.TaskName][]byte{}
	homes, changes := map[workflow.TaskName]any{}, false
	for _, b := range raw {
		var s setting
		if json.Unmarshal(b, &s) != nil {
			return
		}
		changes = changes || s.Kind == "task" && slices.Contains(changing, s.Key) || s.Kind == "condition" ||
			s.Kind == "constraint" || s.Key == "add"
		if s.Kind != "task" {
			continue
		}
		if says[s.Name] = append(append(says[s.Name], ','), b...); s.Key == "add-to" {
			homes[s.Name] = s.Value
		}
	}
	if len(homes) == 0 && !changes {
		return
	}
	m.patches = append(m.patches, patched{i, x.Patch})
	m.def = m.made(m.patches)
	for name, home := range homes {
		if home == "" { // it only stands in for others
			continue
		}
		text := "[" + string(bytes.TrimPrefix(says[name], []byte(","))) + "]"
		if at, is := placed[home]; is {
			text += " at " + string(at)
		}
		m.adds(i, name, text, fmt.Sprint(home), placed[home])
	}
	known := append(m.textsKnown(i), x.Patch)
	for _, r := range m.h.rounds(known) {
		m.adds(i, r.Task, r.What, string(r.Home), "")
	}
}

// adds takes in a task that an amendment adds, with what makes its first attempt, at whoever has its partition.
func (m *Meaning) adds(i int, name workflow.TaskName, what, home string, holder workflow.PartnerID) {
	id := fact.AttemptID{Fact: fact.ID(sha256.Sum256([]byte("a task that is added: " + what))), Slot: name}
	m.added[id] = append(m.added[id], i)
	t := m.def.Task(name)
	if m.bySlot[name] != nil || t == nil {
		return
	}
	for _, a := range m.genesis.Assign {
		if string(a.Partition) == home {
			holder = a.Partner
		}
	}
	sl := &Slot{Task: t, State: workflow.NotReady, place: len(m.slots)}
	m.slots, m.bySlot[name] = append(m.slots, sl), sl
	m.attempt(sl, id, sl.Task, holder, i)
}

// textsKnown are the patches that a fact's author knew.
func (m *Meaning) textsKnown(i int) (out []string) {
	for _, p := range m.patches {
		if p.by != i && m.h.knew(i, p.by) {
			out = append(out, p.text)
		}
	}
	return out
}

// made is the definition with some patches.
func (m *Meaning) made(with []patched) *workflow.Definition {
	if len(with) == 0 {
		return m.h.def
	}
	texts := make([]string, len(with))
	for i, p := range with {
		texts[i] = p.text
	}
	return m.h.amended(texts)
}

// Definition is the instance's, with all patches that count.
func (m *Meaning) Definition() *workflow.Definition { return m.def }

// under is the definition by which a fact's author went: with the patches that it knew.
func (m *Meaning) under(i int) *workflow.Definition {
	if len(m.patches) == 0 {
		return m.def
	}
	return m.made(slices.DeleteFunc(slices.Clone(m.patches), func(p patched) bool { return !m.h.knew(i, p.by) }))
}

// as is the task of an attempt as a definition has it, which others may have amended since.
func (a *Attempt) as(def *workflow.Definition) *workflow.Task {
	if t := def.Task(a.task.Name); t != nil && !a.beside() {
		return t
	}
	return a.task
}

// undoing is what undoes an attempt that is no transition, by a definition; nil: nothing does.
func (a *Attempt) undoing(def *workflow.Definition) *workflow.Task {
	return def.CompensationOf(a.as(def))
}

// undoBegins has a compensation begin as its holder knew it. It reports whether there was one, as that knew.
func (m *Meaning) undoBegins(id fact.AttemptID, i int) bool {
	a := m.successOf[id.Fact]
	if len(m.patches) == 0 || a == nil || a.fired != nil || a.ID.Slot != id.Slot {
		return true
	}
	if a.undo != nil && a.undo.start != none {
		return true
	}
	t := a.undoing(m.under(i))
	if t == nil {
		return false
	}
	m.undoneBy(a, t, m.h.index[id.Fact])
	return true
}

// undoneBy has a task undo an attempt that has succeeded, at last by fact i.
func (m *Meaning) undoneBy(a *Attempt, t *workflow.Task, i int) {
	id := m.h.facts[i].id
	if a.undo == nil {
		a.undo = &Attempt{
			ID: fact.AttemptID{Fact: id, Slot: a.ID.Slot}, Partner: a.Partner, slot: a.slot,
			undoes:   a,
			assigned: i, ready: none, start: none, base: none, off: none, kept: none, failed: map[int]bool{},
		}
	}
	if a.undo.start == none {
		a.undo.task = t
	}
	m.attempts[fact.AttemptID{Fact: id, Slot: a.ID.Slot}] = a.undo
}

// newest has all tasks be as the definition has them by now: what is limited and tried again goes by that, and so does what
// undoes others and has not begun.
func (m *Meaning) newest() {
	if len(m.patches) == 0 {
		return
	}
	for _, sl := range m.bySlot {
		for _, a := range sl.Attempts {
			if a.task = a.as(m.def); a.beside() {
				continue
			}
			t := a.undoing(m.def)
			switch {
			case a.undo != nil && a.undo.start != none:
			case t != nil && len(a.successes) > 0:
				for _, i := range a.successes {
					m.undoneBy(a, t, i)
				}
			case a.undo != nil:
				for _, i := range a.successes {
					delete(m.attempts, fact.AttemptID{Fact: m.h.facts[i].id, Slot: a.ID.Slot})
				}
				a.undo = nil
			}
		}
	}
}

// order puts the slots in the order of the rules, with those that were added.
func (m *Meaning) order() {
	if len(m.patches) == 0 {
		return
	}
	m.newest()
	m.slots = m.slots[:0]
	for _, name := range m.def.TopoOrder() {
		if sl := m.bySlot[name]; sl != nil {
			sl.Task, sl.place = m.def.Task(name), len(m.slots)
			m.slots = append(m.slots, sl)
		}
	}
}
