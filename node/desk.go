package node

import (
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// desk is where this node's user begins instances, looks at them and does something with
// them, wherever they are.
type desk struct {
	*instances
	overview *overview
	office   chair
}

// chair says who coordinates.
type chair interface {
	Coordinator() workflow.PartnerID
	Leads() (membership.Mandate, bool)
}
