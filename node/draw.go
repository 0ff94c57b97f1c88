package node

import (
	"strings"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/diagram"
)

// draw draws an instance: its definition, the partner of each partition and
// the state of each task.
func draw(def *workflow.Definition, in *api.Instance, format string) ([]byte, error) {
	opt := diagram.Options{States: map[workflow.TaskName]workflow.State{}, Partners: map[workflow.PartitionName]string{}, Known: map[workflow.TaskName]string{}}
	for _, t := range in.Tasks {
		opt.States[t.Name] = t.State
		if t.Known != "" {
			opt.Known[t.Name] = t.Known
		}
	}
	for _, p := range in.Partitions {
		opt.Partners[p.Name] = strings.Join(p.Holders(), ", ")
	}
	if of, ok := strings.CutSuffix(format, "-"+diagram.Portuguese); ok {
		format, opt.Language = of, diagram.Portuguese
	}
	b, err := diagram.Render(def, format, opt)
	if err != nil {
		return nil, api.Judge(api.Invalid, err)
	}
	return b, nil
}
