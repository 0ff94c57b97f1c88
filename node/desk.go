package node

import (
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/overview"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// desk is where this node's user begins instances, looks at them and does something with
// them, wherever they are.
type desk struct {
	*instances
	overview  survey
	elections chair
	persons   persons
}

// survey is what others reported to this node as the coordinator.
type survey interface {
	Accounts(workflow.InstanceID) []overview.Account
	Find(prefix string) []workflow.InstanceID
	Elsewhere(all bool, start int64, id workflow.InstanceID, limit int) []api.InstanceSummary
	Witness(overview.Account) api.Witness
}

// persons are those who are at this node, and others by name.
type persons interface {
	Who(ref string) (users.Who, error)
	Anybody(ref string) (users.Who, error)
}

// chair says who coordinates.
type chair interface{ Coordinator() workflow.PartnerID }
