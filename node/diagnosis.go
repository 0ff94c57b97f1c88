package node

import (
	"fmt"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// diagnosis collects findings.
type diagnosis struct{ findings []api.Finding }

func (d *diagnosis) add(state, check, what, mend string) {
	d.findings = append(d.findings, api.Finding{Check: check, State: state, What: what, Mend: mend})
}

func (d *diagnosis) ok(check, format string, args ...any) {
	d.add(api.FindingOK, check, fmt.Sprintf(format, args...), "")
}
func (d *diagnosis) warn(check, what, mend string)  { d.add(api.FindingWarning, check, what, mend) }
func (d *diagnosis) wrong(check, what, mend string) { d.add(api.FindingWrong, check, what, mend) }

// findings are a diagnosis for topics in packages of their own.
type findings struct{ *diagnosis }

func (f findings) OK(check, format string, args ...any) { f.ok(check, format, args...) }

func (f findings) Warn(check, what, mend string) { f.warn(check, what, mend) }

func (f findings) Wrong(check, what, mend string) { f.wrong(check, what, mend) }
