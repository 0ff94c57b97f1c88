package choreo

import (
	"fmt"

	"github.com/mutirao-mesh/mutirao/dataflow"
)

// ForeseeRecovery says what a step of recovery would lead to, as far as that is known here; or why it is not
// allowed. It changes nothing.
func (m *Machine) ForeseeRecovery(x dataflow.Step) (dataflow.Outlook, error) {
	if m.Interrupted() == nil {
		return dataflow.Outlook{}, fmt.Errorf("%w: the instance is not interrupted", ErrNotNow)
	}
	out, why := m.state.flow.line.board.Foresee(x)
	if why != "" {
		return out, fmt.Errorf("%w: %s", ErrNotNow, why)
	}
	return out, nil
}
