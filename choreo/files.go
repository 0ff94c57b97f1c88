package choreo

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file says who has to do with the files that are among an instance's data
// (workflow.File). The facts carry references only; node/files keeps and fetches content.

// GivenBy are the partners that ever gave a data item this value, each once: who started
// the instance with it, and who ended a task with it, whether or not that counts now.
// None: nobody did.
func (m *Machine) GivenBy(n workflow.DataName, v workflow.Value) (by []workflow.PartnerID) {
	if m.state.genesis.Input[n] == v && v != nil {
		by = append(by, m.log.genesis.strand.chain.id.Author)
	}
	for _, sl := range m.state.slots {
		if !slices.Contains(sl.Task.Out, n) && len(sl.Attempts) < 2 {
			continue
		}
		for _, a := range sl.Attempts {
			for _, ok := range a.successes {
				given, has := ok.gave()[n]
				if author := givenAt(a, ok); has && given == v && !slices.Contains(by, author) {
					by = append(by, author)
				}
			}
		}
	}
	return by
}

// Reads reports whether a partner has, or had, a task that reads a data item.
func (m *Machine) Reads(p workflow.PartnerID, n workflow.DataName) bool {
	return slices.ContainsFunc(m.state.slots, func(sl *Slot) bool {
		return slices.ContainsFunc(sl.Attempts, func(a *Attempt) bool {
			return a.Partner == p && slices.Contains(inputs(a.Task), n)
		})
	})
}

// Reading is a task that can begin, or runs, and a file that it reads.
type Reading struct {
	Task *workflow.Task
	Item workflow.DataName
	File workflow.File
}

// FilesToRead are the files that tasks read which can begin or run with this partner.
func (m *Machine) FilesToRead() (out []Reading) {
	for _, sl := range m.state.slots {
		a := sl.Current
		if sl.State != workflow.Ready && sl.State != workflow.Running || a.Partner != m.self {
			continue
		}
		for _, n := range inputs(a.Task) {
			text, given := m.state.values[n].(string)
			if d := m.state.decls[n]; d == nil || d.Type != workflow.TypeFile || !given {
				continue
			}
			if f, err := workflow.ParseFile(text); err == nil { // a fact with anything else would not count
				out = append(out, Reading{a.Task, n, f})
			}
		}
	}
	return out
}

// ValueOf is the value of a data item now; nil: it has none.
func (m *Machine) ValueOf(n workflow.DataName) workflow.Value { return m.state.values[n] }
