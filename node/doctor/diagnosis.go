package doctor

import (
	"fmt"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// Diagnosis collects findings.
type Diagnosis struct{ findings []api.Finding }

func (d *Diagnosis) add(state, check, what, mend string) {
	d.findings = append(d.findings, api.Finding{Check: check, State: state, What: what, Mend: mend})
}

// OK says that something is as it should be.
func (d *Diagnosis) OK(check, format string, args ...any) {
	d.add(api.FindingOK, check, fmt.Sprintf(format, args...), "")
}

// Warn says what may become a trouble, and what to do about it.
func (d *Diagnosis) Warn(check, what, mend string) { d.add(api.FindingWarning, check, what, mend) }

// Wrong says what is wrong, and what to do about it.
func (d *Diagnosis) Wrong(check, what, mend string) { d.add(api.FindingWrong, check, what, mend) }
