package node

import (
	"time"

	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/certificates"
	"github.com/mutirao-mesh/mutirao/node/clocks"
	"github.com/mutirao-mesh/mutirao/node/datasets"
	"github.com/mutirao-mesh/mutirao/node/elections"
	"github.com/mutirao-mesh/mutirao/node/evictions"
	"github.com/mutirao-mesh/mutirao/node/filing"
	"github.com/mutirao-mesh/mutirao/node/joining"
	"github.com/mutirao-mesh/mutirao/node/library"
	"github.com/mutirao-mesh/mutirao/node/overview"
	"github.com/mutirao-mesh/mutirao/node/roster"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// A topic is one of the things that partners talk about. It owns what is known of it,
// with its lock, its entries in the store and its part of a message; what it needs of
// another topic it is given when it is made.
type topic interface {
	// Greet puts into a message what a partner is told that was just connected.
	Greet(p workflow.PartnerID, m *wire.Message)
	// Take takes in what a message of a partner says of it.
	Take(p workflow.PartnerID, m *wire.Message)
	// Tick does what is due, and says after what time it is to be called again.
	Tick(now moment.Now) (next time.Duration)
}

// topics are all of them, with people's tasks and files: these have things to do in their
// turn, but no part of a message.
type topics struct {
	roster       *roster.Topic
	evictions    *evictions.Topic
	certificates *certificates.Topic
	elections    *elections.Topic
	clocks       *clocks.Topic
	overview     *overview.Topic
	retention    *retention
	library      *library.Topic
	instances    *instances
	data         *datasets.Topic
	joining      *joining.Topic
	users        *users.Topic
	worklists    *worklists.Desk
	filing       *filing.Desk
}

// spoken are those in messages, in the order in which partners are told and heard of them: who a
// partner is, and whether it is one, before what it says of work.
func (t *topics) spoken() []topic {
	return []topic{
		t.roster, t.evictions, t.certificates, t.elections, t.clocks, t.overview, t.retention, t.library, t.instances,
		t.data, t.joining, t.users,
	}
}

// turns are the topics in the order in which they do what is due: what is kept here comes
// before elections, by which another may coordinate.
func (t *topics) turns() []topic {
	all := []topic{
		t.roster, t.certificates, t.evictions, t.joining, t.library, t.retention, t.elections, t.overview, t.clocks,
		t.instances, t.data, t.users, t.worklists,
	}
	if t.filing.Files != nil {
		all = append(all, t.filing.Files)
	}
	return all
}
