package node

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/assignment"
	"github.com/mutirao-mesh/mutirao/node/datasets"
	"github.com/mutirao-mesh/mutirao/node/filing"
	"github.com/mutirao-mesh/mutirao/node/index"
	"github.com/mutirao-mesh/mutirao/node/library"
	"github.com/mutirao-mesh/mutirao/node/lineup"
	"github.com/mutirao-mesh/mutirao/node/overview"
	"github.com/mutirao-mesh/mutirao/node/show"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// instances are those in which this node takes part: their facts go to the shards that
// own them, and what the shards need of the node they find here.
type instances struct {
	*contacts
	*crew
	view        *show.View
	runner      Runner
	instant     bool                                // Parts.Instant
	served      func(workflow.ApplicationName) bool // by workers
	life        *life
	people      *people
	wallet      rightful
	own         patient
	partners    *assignment.Partners
	definitions *library.Definitions
	library     reading
	roster      introducing
	retention   *retention
	index       *index.List
	usage       *usage
	lineup      *lineup.Lines
	ledger      *assignment.Ledger
	learned     *assignment.Learned
	losses      *losses
	data        materials
	restoration rebirth
	chief       func() overview.Chief // who holds the office
	credentials credentials
	trust       state.Trust // what machines ask of the credentials
	verifier    verifier
	faults      *faults
	filing      contents
	nested      *nested
	// mayHaveBegun is users.Topic.MayBegin.
	mayHaveBegun func(word []byte, signed [sha256.Size]byte, from workflow.PartnerID, role workflow.RoleName) error
	followed     func() // people's work changed: lists at other nodes follow it
	bootID       string // of the machine's present boot
}

// reading is what instances need of definitions that they do not have, and of where those
// come from that they have.
type reading interface {
	ReadAhead(workflow.PartnerID, *wire.Facts)
	OriginOf(*library.Definition) configs.Origin
}

// introducing makes known who was a member, to a node that joined later.
type introducing interface {
	Miss(author workflow.PartnerID)
	Introduce(to, who workflow.PartnerID)
}

// rightful is what this node may do by its certificate, and why nobody would admit it.
type rightful interface {
	proof
	HasRole(workflow.RoleName) bool
}

// proof is this node's certificate, and why nobody would admit it.
type proof interface {
	Chain() trust.Chain
	Standing() error
}

// contents are the files of instances, as far as this node keeps files.
type contents interface {
	Concerns(*workflow.Definition) bool
	FetchAhead(*filing.Held)
	Alone(*filing.Held) []index.Alone
}

// rebirth is what follows where this node's store lacks what it has said.
type rebirth interface {
	rolledBack(by workflow.PartnerID)
	forgot()
	outrun(membership.Version)
	beginIncarnation() error
}

// patient says how long others may go without hearing of this node.
type patient interface{ ConnectionTime() time.Duration }

// materials are the data sets that are there, and those that tasks make.
type materials interface {
	Materialised(
		ctx context.Context, def *workflow.Definition, input map[workflow.DataName]workflow.Value,
	) (found []datasets.Materialised, missed []string)
	Register(made choreo.Made, of workflow.Hash) (writes []kv.Write, registered func(error))
}

// self says for which partner machines act.
func (x *instances) self() choreo.Self {
	return choreo.Self{
		Partner: x.member.ID(), Incarnation: x.life.incarnation(), Trust: x.trust, Instant: x.instant, Served: x.served,
	}
}
