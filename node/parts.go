package node

import (
	"context"
	"crypto/ed25519"
	"log/slog"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/internal/private"
	"github.com/mutirao-mesh/mutirao/membership/invitation"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/files"
	"github.com/mutirao-mesh/mutirao/node/roster"
	"github.com/mutirao-mesh/mutirao/node/runner"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Store is a durable, ordered key-value store.
type Store interface {
	// Commit makes writes durable as one unit. done is called once they are,
	// or failed, in the order of the calls of Commit; it must not block.
	Commit(writes []kv.Write, done func(error))
	CommitWait(writes []kv.Write) error
	// Get wraps kv.ErrNotFound where there is nothing.
	Get(key []byte) ([]byte, error)
	Scan(prefix []byte, fn func(key, value []byte) error) error
}

// Network is by what a node talks with its partners.
type Network struct {
	Carrier   Carrier
	Requester Requester // nil: this node asks nobody for anything
	Gossip    Gossip    // nil: the node tells its partners itself what is new
}

// Carrier carries frames between members.
type Carrier interface {
	// Addrs are the addresses at which others can reach this node.
	Addrs() []string
	// SetAddrs says where a partner can be reached; Want keeps a connection to it.
	SetAddrs(p workflow.PartnerID, addrs []string) error
	Want(p workflow.PartnerID, want bool) error
	// Send queues a frame for a connected partner and never blocks.
	Send(p workflow.PartnerID, frame []byte) error
	// ClosePeer cuts the connections to a partner.
	ClosePeer(p workflow.PartnerID)
	// Distrust is ClosePeer of a partner that sends what a correct one never does: a
	// carrier may keep it away for a while.
	Distrust(p workflow.PartnerID)
	// HandleRequest answers short requests; of strangers too, if open.
	HandleRequest(protocol string, open bool, fn func(p workflow.PartnerID, req []byte) ([]byte, error))
	// Silence begins or ends a silence, in which nobody is talked to. What was sent before
	// is still delivered, if that takes no longer than a moment.
	Silence(on bool)
	// Relayed are the connected partners to whom frames go by a relay.
	Relayed() []workflow.PartnerID
	// Refused are the totals of what the carrier refused, by reason, for people, and Traffic
	// of what it carried, since it was opened.
	Refused() map[string]uint64
	Traffic() api.Traffic
}

// Runner runs the applications of automatic tasks.
type Runner interface {
	Has(workflow.ApplicationName) bool
	// Start runs a job; done may be called before Start returns.
	Start(j runner.Job, done func(runner.Result))
	Cancel(key string)
}

// Clock reads this node's clocks.
type Clock interface {
	Now() moment.Now
	// BootID names the boot that Now().Boot counts from.
	BootID() string
	// After delivers once d has passed, awake time.
	After(d time.Duration) <-chan time.Time
}

// Parts are what a node is put together from.
type Parts struct {
	Member Member
	Config configs.Config
	Store  Store
	// Ran: the node ran before, so a store without anything in it lost all that it had.
	Ran bool
	// Vouching says what the store lost; nil: it does not know.
	Vouching Vouching
	// Reserve is how many bytes of the store's disk must be free for it to write; 0: it
	// does not say.
	Reserve uint64
	Runner  Runner
	// Instant: the node does noop and set itself, in the round in which they begin; else its runner does.
	Instant bool
	// Asker puts queries to this node's databases; nil: it has none.
	Asker Asker
	// Files is where content of files is kept; nil: the node keeps none.
	Files *files.Store
	Clock Clock
	// Chance draws numbers in [0, 1); nil: at random.
	Chance func() float64
	// Random gives random bytes; nil: the system's.
	Random func(n int) []byte
	// Keys are those of the users who are signed in here; nil: nobody can sign in.
	Keys    users.Keys
	Version string // of the program, for people
	// Space tells how many bytes of the store's disk are free, of how many; nil:
	// nobody knows.
	Space func() (free, total uint64, err error)
	// Battery tells how full the machine's battery is; nil, or it returns nil: nobody knows.
	Battery func() *api.Battery
	// Bare names the network interfaces that are up and have no address; nil:
	// nobody knows.
	Bare func() []string
	// Loose says which of the node's private files others could read or replace;
	// nil: not looked at.
	Loose func() []*private.LooseError
	// Unfit says of each configured application that cannot be run as it is why;
	// nil: not looked at.
	Unfit func() []string
	// Unasked tries all configured databases, and says of each that cannot be asked why; nil: there are none.
	Unasked func(context.Context) []string
	Logger  *slog.Logger
	// Loud: what panics in the machine of an instance ends the node, and does not set that
	// instance aside, and what lists keep of instances is compared with them. For whoever looks for such mistakes.
	Loud bool

	// trust stands before what machines ask about proofs; nil: nothing does. For tests.
	trust func(state.Trust) state.Trust
}

// Member is who this node is: its key, its mesh, and the certificate that
// makes it a member.
type Member struct {
	Key   ed25519.PrivateKey
	Mesh  trust.Mesh
	Chain trust.Chain

	welcome invitation.Welcome // what joining brought, to begin with
	id      workflow.PartnerID // of Key, once worked out: that is dear
	// unanswered: a request to be certified was sent while joining, and no answer came: it
	// may have been granted.
	unanswered bool
}

// ID is the node's partner ID.
func (m Member) ID() workflow.PartnerID {
	if m.id != "" {
		return m.id
	}
	return trust.IDOf(m.Key.Public().(ed25519.PublicKey))
}

// Requester sends one request to a partner at these addresses. What the other side
// refuses is an [invitation.Answer].
type Requester interface {
	Request(ctx context.Context, p workflow.PartnerID, addrs []string, protocol string, req []byte) ([]byte, error)
}

// Asker puts the queries of jobs to databases, and answers with theirs.
type Asker interface {
	Ask(j runner.Job, done func(runner.Result))
}

// Gossip spreads news among all partners.
type Gossip = roster.Gossip

// Vouching is what a store says that knows what it should hold.
type Vouching interface {
	// Damage is what was found lost when the store was opened, until Settle says
	// that what follows from it was made durable.
	Damage() kv.Damage
	Settle() error
	// Verify reads everything again and says what is wrong, if anything.
	Verify() error
}
