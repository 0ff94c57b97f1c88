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
				given, has := ok.fact.Body.Success.Outputs[n]
				if author := ok.strand.chain.id.Author; has && given == v && !slices.Contains(by, author) {
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

// Reading is a task that can begin, or runs, and data that it reads.
type Reading struct {
	Task  *workflow.Task
	Item  workflow.DataName
	Value workflow.Value
}

// FilesToRead are the files that tasks read which can begin or run with this partner.
func (m *Machine) FilesToRead() (out []Reading) {
	for _, sl := range m.state.slots {
		a := sl.Current
		if sl.State != workflow.Ready && sl.State != workflow.Running || a.Partner != m.self {
			continue
		}
		for _, n := range inputs(a.Task) {
			v := m.state.values[n]
			if v != nil && slices.ContainsFunc(m.state.def.Data, func(d workflow.DataDecl) bool {
				return d.Name == n && d.Type == workflow.TypeFile
			}) {
				out = append(out, Reading{a.Task, n, v})
			}
		}
	}
	return out
}

// ValueOf is the value of a data item now; nil: it has none.
func (m *Machine) ValueOf(n workflow.DataName) workflow.Value { return m.state.values[n] }
