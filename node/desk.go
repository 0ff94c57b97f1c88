package node

import (
	"context"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/assignment"
	"github.com/mutirao-mesh/mutirao/node/datasets"
	"github.com/mutirao-mesh/mutirao/node/index"
	"github.com/mutirao-mesh/mutirao/node/library"
	"github.com/mutirao-mesh/mutirao/node/overview"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// desk is where this node's user begins instances, looks at them and does something with
// them, wherever they are.
type desk struct {
	*contacts
	*crew
	view        *view
	people      *people
	partners    *assignment.Partners
	index       *index.List
	definitions holdings
	library     origins
	data        foundSets
	ledger      givenOut
	filing      taking
	retention   *retention
	wallet      rightful
	self        func() choreo.Self // for which partner new machines act
	overview    survey
	elections   chair
	persons     persons
}

// holdings are the definitions that are here.
type holdings interface {
	Resolve(ref string) (workflow.Hash, error)
	Get(workflow.Hash) (*library.Definition, error)
	Keep(*library.Definition) error
}

// origins say where a definition comes from, as the configuration asks it.
type origins interface {
	OriginOf(*library.Definition) configs.Origin
}

// foundSets are the data that need not be made by a new instance, as they are there.
type foundSets interface {
	Materialised(
		ctx context.Context, def *workflow.Definition, input map[workflow.DataName]workflow.Value,
	) (found []datasets.Materialised, missed []string)
}

// givenOut is the ledger, for what begins.
type givenOut interface {
	Choosing() (end func())
	Give(*choreo.Machine, []partition.Choice)
	TakeBack(workflow.InstanceID)
}

// taking has the content of files among values here, which a user or a task gave.
type taking interface {
	given(
		def *workflow.Definition, instance string, by workflow.PartnerID,
		values map[workflow.DataName]workflow.Value, here bool,
	) error
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
