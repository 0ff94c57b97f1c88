package node

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// In orchestration the coordinator takes part in every instance that is started
// so while it holds the office: immediate reports go to it, and it releases the
// successors (choreo/route.go). It is never needed for progress.

// coordination reads how an instance is to be coordinated, and puts the
// coordinator first in its succession. notes say what the user should know.
func (k *desk) coordination(
	def *workflow.Definition, asked string, succession []workflow.PartnerID,
) (workflow.Coordination, []workflow.PartnerID, []string, error) {
	kind := def.Coordination
	switch workflow.Coordination(asked) {
	case "":
	case workflow.Choreography, workflow.Orchestration:
		kind = workflow.Coordination(asked)
	default:
		return "", nil, nil, api.Errorf(api.Invalid, "--coordination %s: want choreography or orchestration", asked)
	}
	if kind != workflow.Orchestration {
		return workflow.Choreography, succession, nil, nil
	}
	c := k.elections.Coordinator()
	if c == "" {
		return kind, succession, []string{"no coordinator is known: the instance goes by choreography; elect one with: mutirao coordinator elect"}, nil
	}
	others := slices.DeleteFunc(slices.Clone(succession), func(p workflow.PartnerID) bool { return p == c })
	return kind, append([]workflow.PartnerID{c}, others...), []string{"orchestrated by " + k.people.label(c)}, nil
}
