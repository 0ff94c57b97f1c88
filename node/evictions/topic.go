package evictions

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/records"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Peers are the members that are connected, and those that may be asked something.
type Peers interface {
	UpPeers() []workflow.PartnerID
	Transmit(p workflow.PartnerID, m *wire.Message)
	Broadcast(m *wire.Message)
	// Refuse counts what was refused of a peer.
	Refuse(why string, p workflow.PartnerID)
	// Asks reports whether requests can be made; Request makes one.
	Asks() bool
	Request(
		ctx context.Context, p workflow.PartnerID, addrs []string, protocol string, req []byte, wait time.Duration,
	) ([]byte, error)
}

// Members is the partner list.
type Members interface {
	All() []membership.Partner
	Get(p workflow.PartnerID) (membership.Partner, bool)
	// Review looks again at everybody's certificates, and Announce tells of what it found.
	Review() []membership.Event
	Announce(events []membership.Event)
	// ResolveWhole finds the partner that a user names, for what cannot be taken back;
	// Name is what people call it.
	ResolveWhole(ref string) (workflow.PartnerID, error)
	Name(p workflow.PartnerID) string
}

// Certificates is what this node may do by its own certificate, and what it holds of
// those of others.
type Certificates interface {
	MayAdminister(what string) error
	Issuer() trust.Issuer
	// CutUnwelcome ends the connections of those who would not be admitted now, and
	// CheckStanding notes as trouble what keeps others from admitting this node.
	CutUnwelcome()
	CheckStanding() error
}

// Clock reads this node's clocks.
type Clock interface{ Now() moment.Now }

// Surroundings are what this topic needs of the rest of a node.
type Surroundings struct {
	Self         workflow.PartnerID
	Mesh         trust.Mesh
	Peers        Peers
	Members      Members
	Certificates Certificates
	Clock        Clock
	Log          *slog.Logger
	// Issued are the serials of what an administrator said of users.
	Issued func(workflow.PartnerID) []trust.Serial
	// Unseen are the certificates of those who joined by this node, were never seen, and are named so.
	Unseen func(ref string) []trust.Chain
	// Chance is a number in [0, 1).
	Chance func() float64
	// Nudge has the node look at once for what is due.
	Nudge func()
	// Aside does something beside what goes on.
	Aside func(fn func())
}

// Topic is what partners say to one another of evictions.
type Topic struct {
	*Set
	in       Surroundings
	exchange *records.Exchange

	mu    sync.Mutex    // guards askAt
	askAt time.Duration // Awake at which to ask why nobody is connected; 0: never
}

// New is the topic of what is in a set.
func New(s *Set, in Surroundings) *Topic {
	part := func(m *wire.Message) **wire.Records { return &m.Evictions }
	return &Topic{Set: s, in: in, exchange: records.New(records.Surroundings{
		Set: s, Peers: in.Peers, Clock: in.Clock, Part: part, TooOften: "evictions-asked-too-often", Nudge: in.Nudge,
	})}
}

// Greet says which evictions are known here.
func (t *Topic) Greet(_ workflow.PartnerID, m *wire.Message) { t.exchange.Greet(m) }

// Take takes in what a peer says about evictions, passes news on, and answers with what
// one of the two lacks.
func (t *Topic) Take(from workflow.PartnerID, m *wire.Message) {
	t.exchange.Take(from, m, func(list [][]byte) { t.takeList(from, list) })
}

// Tick compares evictions now and then, and asks why nobody is connected.
func (t *Topic) Tick(now moment.Now) time.Duration {
	next, _ := t.exchange.Tick(now)
	return min(next, t.askDue())
}

// Evict removes a member for good: the eviction is made durable, sent to every connected
// partner, and cuts the connections to those that it concerns. Its errors are for users.
func (t *Topic) Evict(r api.EvictRequest) (*api.Evicted, error) {
	id, unseen, err := t.whom(r.Partner)
	if err != nil {
		return nil, err
	}
	out := &api.Evicted{Name: t.in.Members.Name(id), ID: id, Voided: []string{}}
	if unseen != nil {
		out.Name, out.Unseen = unseen.Leaf().Name, true
	}
	if err := t.mayEvict(id); err != nil {
		return nil, err
	}
	if len(r.Reason) > trust.MaxReason {
		return nil, api.Errorf(api.Invalid, "eviction with a reason of %d bytes: at most %d", len(r.Reason),
			trust.MaxReason)
	}
	if t.evicted(id) { // once is enough: every eviction is kept by everybody, for good
		out.Already = true
	}
	if out.Already || r.Check {
		return out, nil
	}
	var listed []trust.Chain
	if unseen != nil {
		listed = append(listed, unseen)
	}
	for _, x := range t.in.Members.All() {
		listed = append(listed, x.Record.Chain)
	}
	e := trust.Eviction{Partner: id, Reason: r.Reason, At: trust.WallOf(t.in.Clock.Now().Wall)}
	if e, err = t.make(t.in.Certificates.Issuer(), e, listed, t.in.Issued(id)); err != nil {
		return nil, err
	}
	events := t.in.Members.Review()
	t.exchange.Share([][]byte{trust.EncodeEviction(e)}, "")
	t.enforce(events)
	for _, ev := range events {
		if ev.Kind == membership.EventEvicted && ev.Partner != id {
			out.Voided = append(out.Voided, t.in.Members.Name(ev.Partner))
		}
	}
	return out, nil
}

// whom finds the partner that a user wants to evict: on the partner list, or else, with its certificate, among
// those who joined by this node and were never seen. Of several of one name only one can be meant that is not
// evicted yet.
func (t *Topic) whom(ref string) (workflow.PartnerID, trust.Chain, error) {
	id, err := t.in.Members.ResolveWhole(ref)
	if err == nil {
		return id, nil, nil
	}
	found := t.in.Unseen(ref)
	if in := slices.DeleteFunc(slices.Clone(found),
		func(ch trust.Chain) bool { return t.KeyEvicted(ch.Leaf().Partner) }); len(in) > 0 {
		found = in
	}
	if len(found) == 0 {
		return "", nil, err
	}
	if len(found) > 1 {
		var ids []string
		for _, ch := range found {
			ids = append(ids, string(ch.Leaf().Partner))
		}
		return "", nil, api.Errorf(api.Invalid, "%d partners joined as %q and were never seen: %s", len(found), ref,
			strings.Join(ids, ", ")).
			WithHint("name one by its whole ID")
	}
	return found[0].Leaf().Partner, found[0], nil
}

// evicted reports whether another eviction of a partner would change nothing: one by the
// founder counts for good, one by a delegate as long as the founder leaves it that.
func (t *Topic) evicted(id workflow.PartnerID) bool {
	if t.KeyEvicted(id) {
		return true
	}
	x, listed := t.in.Members.Get(id)
	return listed && x.State == membership.Evicted && t.Proof(id) != nil && !t.in.Certificates.Issuer().IsFounder()
}

// mayEvict returns an *api.Error unless this node may evict a partner.
func (t *Topic) mayEvict(id workflow.PartnerID) error {
	if err := t.in.Certificates.MayAdminister("evict"); err != nil {
		return err
	}
	switch id {
	case t.in.Self:
		err := api.Errorf(api.Refused, "a node does not evict itself")
		if id == t.in.Mesh.Founder {
			return err.WithHint("nor does anybody else evict the founder; to have another founder, found another mesh")
		}
		return err.WithHint("leave for good (mutirao leave --for-good), or stop it and have the founder evict it")
	case t.in.Mesh.Founder:
		return api.Errorf(api.NotAllowed, "nobody evicts the founder").
			WithHint("to have another founder, found another mesh")
	}
	return nil
}

// takeList takes in evictions from a peer. Each counts at once, even if it cannot be
// stored: then it is fetched again after a restart.
func (t *Topic) takeList(from workflow.PartnerID, list [][]byte) {
	var news [][]byte
	var fresh []trust.Eviction
	var events []membership.Event
	for _, b := range list {
		e, err := trust.DecodeEviction(b)
		isNew := false
		if err == nil {
			isNew, err = t.add(e)
		}
		if err != nil {
			t.in.Peers.Refuse("eviction", from)
			t.in.Log.Warn("eviction refused", "from", from, "error", err)
		}
		if isNew {
			events = append(events, t.in.Members.Review()...)
			news, fresh = append(news, b), append(fresh, e)
		}
	}
	if len(news) == 0 {
		return
	}
	if err := t.keep(fresh); err != nil { // which says nothing about whoever sent them
		t.in.Log.Error("evictions cannot be stored", "error", err)
	}
	t.exchange.Pass(news, from)
	t.enforce(events)
}

// enforce acts on evictions that were added: the list's events, and the live
// connections of those who are not listed.
func (t *Topic) enforce(events []membership.Event) {
	t.in.Members.Announce(events)
	t.in.Certificates.CutUnwelcome()
	_ = t.in.Certificates.CheckStanding() // noted
}
