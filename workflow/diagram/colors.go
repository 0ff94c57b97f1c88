package diagram

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// stateColor are fills on which black text is readable. States are also
// written out: colour alone says nothing to many readers.
var stateColor = map[workflow.State]string{
	workflow.NotReady:  "#eceff3",
	workflow.Ready:     "#ffe9a8",
	workflow.Running:   "#bcdcff",
	workflow.Succeeded: "#bfe8c5",
	workflow.Failed:    "#ffc2bd",
	workflow.Aborted:   "#e3cdf0",
	workflow.Blocked:   "#f6cfa0",
	workflow.Skipped:   "#d9d9d9",
}

// statesOf are the states that occur in the scene, sorted.
func statesOf(s *scene) []workflow.State {
	var out []workflow.State
	for _, b := range s.boxes {
		if stateColor[b.state] != "" {
			out = append(out, b.state)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
