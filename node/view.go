package node

import (
	"time"

	"github.com/mutirao-mesh/mutirao/node/assignment"
	"github.com/mutirao-mesh/mutirao/node/jobs"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// view is how people see instances.
type view struct {
	*contacts
	people   *people
	partners *assignment.Partners
	filing   *filing
	jobs     *jobs.Desk
	// ahead is how far this node's clock is ahead of a partner's, as far as that is known.
	ahead func(workflow.PartnerID) time.Duration
}
