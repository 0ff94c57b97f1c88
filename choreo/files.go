package choreo

import (
	"maps"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file says who has to do with the files that are among an instance's data
// (workflow.File). The facts carry references only; node/files keeps and fetches content.

// GivenBy are the partners that ever gave a data item this file, each once: who started
// the instance with it, and who ended a task with it, whether or not that counts now. So they
// may have the content; whoever takes part may say so of a reference that it read, so it
// gives nobody a right.
func (m *Machine) GivenBy(n workflow.DataName, file string) (by []workflow.PartnerID) {
	if initiator := m.log.Genesis().Strand.Chain.ID.Author; m.state.Genesis().Input[n] == file &&
		state.IsFile(m.state.Declarations()[n]) {
		by = append(by, initiator)
	}
	for _, p := range m.state.Givers()[state.FileGiven{Item: n, File: file}] {
		if m.log.Steps++; !slices.Contains(by, p) {
			by = append(by, p)
		}
	}
	return by
}

// BroughtTo reports whether a partner has a file, as far as the facts say, only as it took a person's result that
// brought it from another node: the content comes from there.
func (m *Machine) BroughtTo(p workflow.PartnerID, n workflow.DataName, file string) bool {
	return slices.ContainsFunc(m.state.Brought(p), func(r state.Reading) bool {
		m.log.Steps++
		return r.Item == n && r.File.String() == file
	})
}

// Handed is a file that somebody gave with a person's task.
type Handed = state.Handed

// HandedHere are the files that were given at this node with people's tasks, each once.
func (m *Machine) HandedHere() (out []Handed) {
	seen := map[state.FileGiven]bool{}
	for _, sl := range m.state.Slots() {
		for _, a := range sl.Attempts {
			m.log.Steps++
			if a.Task.ByNode() {
				continue
			}
			for _, ok := range a.Successes {
				for _, h := range m.state.Handed(a, ok) {
					if h.At == m.self && !seen[h.FileGiven] {
						seen[h.FileGiven], out = true, append(out, h)
					}
				}
			}
		}
	}
	return out
}

// Reads reports whether a partner has, or had, a task that reads a data item. With a role
// only a task counts that may says the partner could begin: whoever takes part can give
// itself another's contingency, and only shows its role when it starts.
func (m *Machine) Reads(p workflow.PartnerID, n workflow.DataName, may func(workflow.RoleName) bool) bool {
	return slices.ContainsFunc(m.state.Slots(), func(sl *state.Slot) bool {
		return slices.ContainsFunc(sl.Attempts, func(a *state.Attempt) bool {
			return a.Partner == p && slices.Contains(state.Inputs(a.Task), n) && (a.Task.Role == "" || may(a.Task.Role))
		})
	})
}

// ReadsWith reports whether a person has an item whose task reads a data item, until the item has ended: also where
// others presume that the task failed, as it goes on, and its result may come to count.
func (m *Machine) ReadsWith(u worklist.User, n workflow.DataName) bool {
	if !m.Claims() || m.state.Cancelled() != nil {
		return false
	}
	return slices.ContainsFunc(m.state.People().Board.HeldBy(u), func(i worklist.Item) bool {
		m.log.Steps++
		a := m.state.Attempts()[fact.AttemptIDOf(i)]
		return a != nil && a.Success() == nil && !a.EndedByHolder() && slices.Contains(a.Task.In, n)
	})
}

// FilesToRead are the files that tasks read which can begin or run with this partner, whatever others presume of them,
// in the order of their items. They are not to be changed.
func (m *Machine) FilesToRead() []state.Reading {
	r := &m.look().reading
	if refiled := m.state.TakeRefiled(); r.known && !refiled {
		return r.files
	}
	r.files, r.known = nil, true
	for _, n := range slices.Sorted(maps.Keys(r.tasks)) {
		m.log.Steps++
		if f, given := m.file(n); given {
			r.files = append(r.files, state.Reading{Item: n, File: f})
		}
	}
	return r.files
}

// FilesBrought are the files that people brought from elsewhere with results of what this partner holds, and whose
// content is at their nodes. They are not to be changed.
func (m *Machine) FilesBrought() []state.Reading { return m.state.Brought(m.self) }

// PeopleRead are the people's tasks that can begin or run with this partner and read a data item, by name.
func (m *Machine) PeopleRead(n workflow.DataName) (out []workflow.TaskName) {
	for _, t := range m.look().reading.by {
		if !t.ByNode() && slices.Contains(state.Inputs(t), n) {
			out = append(out, t.Name)
		}
	}
	slices.Sort(out)
	return out
}

// FilesOf are the files that a task reads, as they are now.
func (m *Machine) FilesOf(t *workflow.Task) (out []state.Reading) {
	for _, n := range state.Inputs(t) {
		if f, given := m.file(n); given {
			out = append(out, state.Reading{Item: n, File: f})
		}
	}
	return out
}

// file is the file that a data item is now; false: it is none, or was not given.
func (m *Machine) file(n workflow.DataName) (f workflow.File, given bool) {
	text, given := m.state.Values()[n].(string)
	if !given || !state.IsFile(m.state.Declarations()[n]) {
		return f, false
	}
	f, err := workflow.ParseFile(text)
	return f, err == nil // a fact with anything else would not count
}

// ValueOf is the value of a data item now; nil: it has none.
func (m *Machine) ValueOf(n workflow.DataName) workflow.Value { return m.state.Values()[n] }

// Giving is that a partner gave a file to an instance, whether or not it counts now.
type Giving struct {
	Item workflow.DataName
	File workflow.File
	// By is whoever wrote that it gave it; empty: it was adopted, from people's words.
	By workflow.PartnerID
}

// FilesGiven are all files that an instance ever had among its data, each once for each
// partner that gave it.
func (m *Machine) FilesGiven() (out []Giving) {
	seen := map[Giving]bool{}
	take := func(values map[workflow.DataName]workflow.Value, by workflow.PartnerID) {
		for n, v := range values {
			text, is := v.(string)
			if !state.IsFile(m.state.Declarations()[n]) || !is {
				continue
			}
			f, err := workflow.ParseFile(text)
			if g := (Giving{n, f, by}); err == nil && !seen[g] {
				seen[g], out = true, append(out, g)
			}
		}
	}
	take(m.state.Genesis().Input, m.log.Genesis().Strand.Chain.ID.Author)
	for _, sl := range m.state.Slots() {
		for _, a := range sl.Attempts {
			for _, ok := range a.Successes {
				var by workflow.PartnerID
				if ok.Fact.Body.Success != nil {
					by = ok.Strand.Chain.ID.Author
				}
				take(ok.Gave(), by)
			}
		}
	}
	return out
}
