package meaning

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// Amend says how the definition is made with patches, in their order.
func (h *History) Amend(amended func(patches []string) *workflow.Definition) { h.amended = amended }

// setting is what a patch says of a key of a part, as far as it matters here.
type setting struct {
	Kind  string            `json:"kind"`
	Name  workflow.TaskName `json:"name"`
	Key   string            `json:"key"`
	Value any               `json:"value"`
}

// amend takes in the tasks and data that an amendment adds, for those who knew of it, or leaves out. No two add one name in a
// simulation, and nothing that was there is to wait for them, so the other rules stay as they were.
func (m *Meaning) amend(i int, x worklist.Amend) {
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
		changes = changes || s.Key == "enabled" || s.Kind == "condition" || s.Kind == "constraint" || s.Key == "add"
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
	m.patches = append(m.patches, x.Patch)
	m.def = m.h.amended(m.patches)
	for name, home := range homes {
		text := "[" + string(bytes.TrimPrefix(says[name], []byte(","))) + "]"
		id := fact.AttemptID{Fact: fact.ID(sha256.Sum256([]byte("a task that is added: " + text))), Slot: name}
		m.added[id] = append(m.added[id], i)
		if m.bySlot[name] != nil {
			continue
		}
		holder := workflow.PartnerID("")
		for _, a := range m.genesis.Assign {
			if string(a.Partition) == home {
				holder = a.Partner
			}
		}
		sl := &Slot{Task: m.def.Task(name), State: workflow.NotReady, place: len(m.slots)}
		m.slots, m.bySlot[name] = append(m.slots, sl), sl
		m.attempt(sl, id, sl.Task, holder, i)
	}
}

// order puts the slots in the order of the rules, with those that were added.
func (m *Meaning) order() {
	if len(m.patches) == 0 {
		return
	}
	m.slots = m.slots[:0]
	for _, name := range m.def.TopoOrder() {
		if sl := m.bySlot[name]; sl != nil {
			sl.Task, sl.place = m.def.Task(name), len(m.slots)
			m.slots = append(m.slots, sl)
		}
	}
}
