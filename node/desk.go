package node

import (
	"github.com/mutirao-mesh/mutirao/membership/election"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// desk is where this node's user begins instances, looks at them and does something with
// them, wherever they are.
type desk struct {
	*instances
	overview survey
	office   chair
}

// survey is what others reported to this node as the coordinator.
type survey interface {
	accounts(workflow.InstanceID) []account
	find(office election.Office, prefix string) []workflow.InstanceID
	elsewhere(list []api.InstanceSummary, all bool) []api.InstanceSummary
	witness(account) api.Witness
}

// chair says who coordinates.
type chair interface {
	Coordinator() workflow.PartnerID
	Leads() (election.Mandate, bool)
}
