package datasets

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/once"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Members is the partner list.
type Members interface {
	All() []membership.Partner
	Get(p workflow.PartnerID) (membership.Partner, bool)
	// Label is what people call a partner in a sentence.
	Label(p workflow.PartnerID) string
}

// Requester asks a partner something, at these addresses where it is not connected.
type Requester interface {
	Request(
		ctx context.Context, p workflow.PartnerID, addrs []string, protocol string, req []byte, wait time.Duration,
	) ([]byte, error)
}

// Surroundings are what this topic needs of the rest of a node.
type Surroundings struct {
	Self    workflow.PartnerID
	Mesh    trust.Mesh
	Clock   Clock
	Log     *slog.Logger
	Members Members
	Partner Requester
	// Author is the partner that lists a definition; empty: nobody does.
	Author func(workflow.Hash) workflow.PartnerID
	// Check returns an error if this node's record could not say what fn changes in it;
	// Announce publishes the record.
	Check    func(fn func(*membership.Record)) error
	Announce func() error
	// Pause is how long this node waits before its record goes out once more on account
	// of what tasks made.
	Pause func() time.Duration
	// Nudge has the node look at once for what is due.
	Nudge func()
}

// Topic is what partners give one another of data sets: those that this node has, and
// those that it asks others for. Partners learn of them with this node's record.
type Topic struct {
	sets *Sets
	in   Surroundings
	made madeNews
}

// New is the topic of these data sets.
func New(s *Sets, in Surroundings) *Topic { return &Topic{sets: s, in: in} }

// Greet: what is here stands in this node's record.
func (ds *Topic) Greet(workflow.PartnerID, *wire.Message) {}

// Take: what others have stands in theirs.
func (ds *Topic) Take(workflow.PartnerID, *wire.Message) {}

// madeNews is what this node has to tell of data sets that tasks made.
type madeNews struct {
	any  atomic.Bool // there is one that no record offers yet
	next time.Duration
}

// Tick publishes what tasks made here. What is not valid any more stays in the record
// until there is a new one: its readers look at the time.
func (ds *Topic) Tick(at moment.Now) time.Duration {
	now := at.Awake
	switch {
	case !ds.made.any.Load():
		return moment.Never
	case now < ds.made.next:
		return ds.made.next - now
	}
	ds.made.any.Store(false)
	ds.made.next = now + ds.in.Pause()
	if err := ds.in.Announce(); err != nil {
		ds.made.any.Store(true)
		ds.in.Log.Error("the data sets that were made here could not be published", "error", err)
	}
	return moment.Never
}

// Add registers a data set, durably, and publishes it.
func (ds *Topic) Add(name string, content []byte, given api.DataTerms) (*api.DataSet, error) {
	if rule := workflow.NameRule(name); rule != "" {
		return nil, api.Errorf(api.Invalid, "data set %q: want %s", name, rule)
	}
	switch {
	case len(content) == 0:
		return nil, api.Errorf(api.Invalid, "data set %s is empty", name)
	case len(content) > MaxData:
		return nil, api.Errorf(api.Invalid,
			"data set %s has %d bytes, at most %d can be registered", name, len(content), MaxData).
			WithHint("its values become part of the instances that read it; register a reference to what is larger")
	case given.Valid < 0:
		return nil, api.Errorf(api.Invalid,
			"data set %s is to be valid for %s: want more than 0, or nothing for ever", name, given.Valid)
	case len(given.Readers) > workflow.MaxReaders:
		return nil, api.Errorf(api.Invalid,
			"data set %s has %d readers: at most %d are allowed", name, len(given.Readers), workflow.MaxReaders).
			WithHint("give them a role in common, and name that")
	}
	for _, reader := range given.Readers {
		if rule := workflow.NameRule(reader); rule != "" {
			return nil, api.Errorf(api.Invalid, "reader %q: want a role, or a partner's name or ID: %s", reader, rule)
		}
	}
	values := valuesIn(content)
	if values != nil {
		if err := once.Check(content); err != nil {
			return nil, api.Errorf(api.Invalid, "data set %s: %v", name, err)
		}
	}
	d := stored{Name: name, Content: content}
	d.Terms = terms{Made: ds.in.Clock.Now().Wall.UnixMilli(), Readers: given.Readers}
	d.Terms.Until = until(d.Terms.Made, given.Valid)
	if err := ds.sets.keep(d, ds.in.Check); err != nil {
		return nil, err
	}
	if err := ds.in.Announce(); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content)
	out := &api.DataSet{
		Name: name, Hash: hex.EncodeToString(sum[:]), Size: len(content), Values: []string{},
		ValidUntil: Moment(d.Terms.Until), Readers: d.Terms.Readers,
	}
	if values != nil {
		out.Values = slices.Sorted(maps.Keys(values))
	}
	return out, nil
}

// until is when something ceases to be valid that was made at a moment, in ms since
// 1970; 0: never.
func until(made int64, valid time.Duration) int64 {
	if valid == 0 {
		return 0
	}
	return made + max(1, valid.Milliseconds())
}

// Moment is a time in ms since 1970 for programs; nil: none.
func Moment(ms int64) *time.Time {
	if ms == 0 {
		return nil
	}
	t := time.UnixMilli(ms).UTC()
	return &t
}

// Remove takes all data sets of a name that this node has off the catalogue. Instances
// that read them keep their values.
func (ds *Topic) Remove(name string) error {
	if err := ds.sets.drop(name); err != nil {
		return err
	}
	return ds.in.Announce()
}

// Protocol asks a member for the content of a data set by its id.
const Protocol = "/mutirao/data/1.0.0"

// Give answers [Protocol]. The asker is the partner that its connection proves.
func (ds *Topic) Give(asker workflow.PartnerID, id []byte) ([]byte, error) {
	content, readers, err := ds.sets.content(string(id))
	if err == nil && asker != ds.in.Self && !ds.MayRead(asker, readers) {
		return nil, errors.New("the data set is for others")
	}
	return content, err
}

// MayRead reports whether a partner is among the readers of a data set, by its role
// or its name, which are those of its certificate, or by its ID.
func (ds *Topic) MayRead(who workflow.PartnerID, readers []string) bool {
	if len(readers) == 0 {
		return true
	}
	x, known := ds.in.Members.Get(who)
	return slices.ContainsFunc(readers, func(r string) bool {
		return r == string(who) || known &&
			(r == x.Record.Name() || x.Record.Chain.Leaf().HasRole(workflow.RoleName(r)))
	})
}

// trusts reports whether what workflows of an author make is read before what others make:
// this node, the founder and the delegates.
func (ds *Topic) trusts(author workflow.PartnerID) bool {
	if author == ds.in.Self || author == ds.in.Mesh.Founder {
		return true
	}
	x, ok := ds.in.Members.Get(author)
	return ok && x.State != membership.Evicted && x.Record.Chain.Leaf().Delegate
}
