package node

import (
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// draw draws an instance: its definition, the partner of each partition and
// the state of each task.
func (n *Node) draw(def *workflow.Definition, in *api.Instance, format string) ([]byte, error) {
	return nil, api.Errorf(api.Failed, "no diagrams of %s yet: %s %s", def.Name, in.ID, format)
}
