package diagram

import (
	"fmt"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Options add to a plan what is known of an instance. The zero value draws the
// plan alone.
type Options struct {
	States   map[workflow.TaskName]workflow.State
	Partners map[workflow.PartitionName]string // who holds a partition
	Known    map[workflow.TaskName]string      // as of when a state is known, where that is long ago
	Language string                            // of its own words; empty: English, with states as READY
	Tall     bool                              // an SVG for a narrow screen: time goes downwards, and lanes are coloured edges
}

// Formats are the formats that Render knows.
var Formats = []string{"svg", "mermaid", "dot"}

// Render draws d in one of Formats.
func Render(d *workflow.Definition, format string, opt Options) ([]byte, error) {
	s := newScene(d, opt)
	switch format {
	case "svg":
		if opt.Tall {
			return tallSVG(s)
		}
		return svg(s)
	case "mermaid":
		return mermaid(s), nil
	case "dot":
		return dot(s), nil
	}
	return nil, fmt.Errorf("there is no diagram format %q: write svg, mermaid or dot", format)
}
