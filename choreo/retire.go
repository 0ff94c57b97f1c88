package choreo

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Unsettled reports why the facts of an instance that has ended must be kept, even if
// everybody has them; empty: nothing is to be expected of it any more. gone reports
// whether a partner is waited for no longer.
func (m *Machine) Unsettled(gone func(workflow.PartnerID) bool) string {
	out := func(a *state.Attempt) bool { return gone(a.Partner) || m.state.WrittenOff()[a.Partner] != nil }
	for _, sl := range m.state.Slots() {
		switch {
		case sl.Duplicated:
			return "two executions of a task were both built upon"
		case slices.ContainsFunc(sl.Attempts, func(a *state.Attempt) bool {
			return (a.Lost() || a.Undoing()) &&
				!out(a)
		}):
			return "a compensation is outstanding"
		case slices.ContainsFunc(sl.Attempts, func(a *state.Attempt) bool { return a.Runs() && !out(a) }):
			return "somebody may still be at work on it"
		}
	}
	if len(m.state.Conflicts()) > 0 {
		return "data were given different values at the same time"
	}
	return ""
}
