package filing

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/files"
	"github.com/mutirao-mesh/mutirao/node/index"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// Desk is what instances have to do with files: who may read them, where their content
// may be, and that it comes here when a task needs it. Files is nil where this node keeps none.
type Desk struct {
	Surroundings
	Files *files.Topic
}

// Surroundings are what it needs of its node.
type Surroundings struct {
	Self      workflow.PartnerID
	Clock     Clock
	Log       *slog.Logger
	Index     *index.List
	Instances Instances
	People    People
	Partners  Partners
	Data      Data
	// Definition is one that is here; nil: it cannot be read.
	Definition func(workflow.Hash) *workflow.Definition
	// NoData says that a definition has no such data, and which may be meant.
	NoData func(def *workflow.Definition, text string) error
	// Up reports whether a partner is connected.
	Up func(workflow.PartnerID) bool
	// MayAsk returns an error if a user is not at a partner's node.
	MayAsk func(user string, from workflow.PartnerID) error
	// Keeps reports whether an item of an instance is kept here for when it is out of reach.
	Keeps func(workflow.InstanceID) bool
	// Gives reports whether a user here gave a file with a result for an item that a partner holds.
	Gives func(to workflow.PartnerID, id workflow.InstanceID, item workflow.DataName, f workflow.File) bool
	// Vouched asks those that a user here gave a file for whether another partner may read it, too. given is false
	// where nobody here gave it with a result.
	Vouched func(ctx context.Context, reader workflow.PartnerID, user string, id workflow.InstanceID,
		item workflow.DataName, f workflow.File) (given bool, err error)
	// Go does something that the node waits for when it stops, which closes Stopped.
	Go      func(func())
	Stopped <-chan struct{}
}

// New makes a desk, of a node that keeps no files as yet.
func New(s Surroundings) *Desk { return &Desk{Surroundings: s} }

// Held is an instance that is here.
type Held struct {
	M   *choreo.Machine
	Def *workflow.Definition // as it was when the instance began
	By  workflow.PartnerID   // who began it
	// Ended is when it did (ms), by the clock of whoever ended it; 0: not yet.
	Ended int64
}

// Instances are those that are here: each is read by the goroutine that owns it.
type Instances interface {
	Peek(ctx context.Context, id workflow.InstanceID, read func(*Held)) error
	// Visit is Peek for what does more than to read.
	Visit(ctx context.Context, id workflow.InstanceID, do func(*Held)) error
	// Look is Peek of one as a user names it.
	Look(ctx context.Context, ref string, read func(*Held)) error
}

// Clock tells the time.
type Clock interface {
	Now() moment.Now
	After(time.Duration) <-chan time.Time
}

// People are the partners.
type People interface {
	All() []membership.Partner
	// Gone reports whether a partner is expired, has left or was evicted; GoneForGood, whether it will not be back.
	Gone(workflow.PartnerID) bool
	GoneForGood(workflow.PartnerID) bool
}

// Partners are who has which role, and what users are called.
type Partners interface {
	HasRole(workflow.PartnerID, workflow.RoleName) bool
	Person(worklist.User) (worklist.Person, bool)
	Called(worklist.User) string
}

// Data says who is among the readers of data.
type Data interface {
	MayRead(who workflow.PartnerID, readers []string) bool
}

// ErrNone is the answer of a node that keeps no files.
var ErrNone = api.Errorf(api.Refused, "this node keeps no files")

// initiator is who began an instance, as files.Store counts: empty for this node.
func (k *Desk) initiator(by workflow.PartnerID) workflow.PartnerID {
	if by == k.Self {
		return ""
	}
	return by
}

// Concerns reports whether this node keeps files and a definition has some among its data.
func (k *Desk) Concerns(def *workflow.Definition) bool { return k.Files != nil && HasFiles(def) }

// HasFiles reports whether a definition has data that are files.
func HasFiles(def *workflow.Definition) bool {
	return slices.ContainsFunc(def.Data, func(d workflow.DataDecl) bool { return d.Type == workflow.TypeFile })
}

// UntilStopped is a context that ends when the node stops.
func (k *Desk) UntilStopped() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		select {
		case <-k.Stopped:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// IsStopping reports whether the node is.
func (k *Desk) IsStopping() bool {
	select {
	case <-k.Stopped:
		return true
	default:
		return false
	}
}
