package election

import (
	"crypto/ed25519"
	"time"

	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Config is what an [Election] needs to know.
type Config struct {
	Mesh        trust.Mesh
	Key         ed25519.PrivateKey
	Incarnation trust.Incarnation
	// Auto makes this node stand when it has heard of no coordinator for a
	// lease and a random part of another.
	Auto bool
	// MayPropose tells whose lists this node countersigns: those who
	// administer the mesh. Nil is the founder alone.
	MayPropose func(workflow.PartnerID) bool
	// Seed spreads the candidates' waiting times. Any random number.
	Seed uint64
}

// Ballot is what a node must never forget: what it voted for, the highest
// term it used or voted in, the successor that it consented to, and the
// highest mandate that it knows of, below which it follows nobody.
type Ballot struct {
	Voted    Office             `cbor:"1,keyasint"`
	VotedFor workflow.PartnerID `cbor:"2,keyasint"`
	Highest  uint64             `cbor:"3,keyasint"`
	Signed   *Consented         `cbor:"4,keyasint,omitempty"`
	Known    Mandate            `cbor:"5,keyasint"`
}

// Ready says what to do, in this order: make Ballot and Lineage durable where
// they are set, in one commit; then send; then act upon Events; then call
// [Election.Tick] after Wake, unless there was another call before. If it
// cannot be made durable, the node must stop without sending.
type Ready struct {
	Ballot  *Ballot
	Lineage Lineage
	Send    []Envelope
	Events  []Event
	Wake    time.Duration
}

// EventKind says what happened in an election.
type EventKind string

// What can happen.
const (
	BecameCoordinator EventKind = "became-coordinator" // this node, until StoppedBeing
	StoppedBeing      EventKind = "stopped-being-coordinator"
	NotElected        EventKind = "not-elected" // this node stood in vain
	CoordinatorKnown  EventKind = "coordinator-known"
	ElectorateChanged EventKind = "electorate-changed"
	ProposalFailed    EventKind = "proposal-failed"
)

// Event is something that people or the node want to know.
type Event struct {
	Kind    EventKind
	Partner workflow.PartnerID // the coordinator that it is about, if any
	Office  Office
	Reason  error // nil: there is none
}
