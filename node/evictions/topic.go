package evictions

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// compareEvery is how often evictions are compared again with connected partners.
const compareEvery = time.Minute

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
	in Surroundings

	next time.Duration // Awake: when evictions are compared again

	mu    sync.Mutex    // guards askAt
	askAt time.Duration // Awake at which to ask why nobody is connected; 0: never
}

// New is the topic of what is in a set.
func New(s *Set, in Surroundings) *Topic { return &Topic{Set: s, in: in} }

// Greet says which evictions are known here.
func (t *Topic) Greet(_ workflow.PartnerID, m *wire.Message) { m.Evictions = t.compare() }

// Take takes in what a peer says about evictions, passes news on, and answers with what
// one of the two lacks.
func (t *Topic) Take(from workflow.PartnerID, m *wire.Message) {
	if m.Evictions == nil {
		return
	}
	t.takeList(from, m.Evictions.List)
	if m.Evictions.Asks {
		t.send(from, t.lackedBy(m.Evictions.IDs))
	}
	if ours := t.digest(); len(m.Evictions.Digest) > 0 && !bytes.Equal(m.Evictions.Digest, ours[:]) {
		t.in.Peers.Transmit(from, &wire.Message{Evictions: &wire.Evictions{Asks: true, IDs: t.ids()}})
	}
}

// Tick compares evictions now and then, and asks why nobody is connected.
func (t *Topic) Tick(now moment.Now) time.Duration {
	if now.Awake >= t.next {
		t.next = now.Awake + compareEvery
		if len(t.ids()) > 0 {
			t.in.Peers.Broadcast(&wire.Message{Evictions: t.compare()})
		}
	}
	return min(t.next-now.Awake, t.askDue())
}

// Evict removes a member for good: the eviction is made durable, sent to every connected
// partner, and cuts the connections to those that it concerns. Its errors are for users.
func (t *Topic) Evict(r api.EvictRequest) (*api.Evicted, error) {
	id, err := t.in.Members.ResolveWhole(r.Partner)
	if err != nil {
		return nil, err
	}
	if err := t.mayEvict(id); err != nil {
		return nil, err
	}
	if len(r.Reason) > trust.MaxReason {
		return nil, api.Errorf(api.Invalid, "eviction with a reason of %d bytes: at most %d", len(r.Reason), trust.MaxReason)
	}
	var listed []trust.Chain
	for _, x := range t.in.Members.All() {
		listed = append(listed, x.Record.Chain)
	}
	e := trust.Eviction{Partner: id, Reason: r.Reason, At: trust.WallOf(t.in.Clock.Now().Wall)}
	if e, err = t.make(t.in.Certificates.Issuer(), e, listed, t.in.Issued(id)); err != nil {
		return nil, err
	}
	events := t.in.Members.Review()
	t.share([][]byte{trust.EncodeEviction(e)}, "")
	t.enforce(events)
	out := &api.Evicted{Name: t.in.Members.Name(id), ID: id, Voided: []string{}}
	for _, ev := range events {
		if ev.Kind == membership.EventEvicted && ev.Partner != id {
			out.Voided = append(out.Voided, t.in.Members.Name(ev.Partner))
		}
	}
	return out, nil
}

// mayEvict returns an *api.Error unless this node may evict a partner.
func (t *Topic) mayEvict(id workflow.PartnerID) error {
	if err := t.in.Certificates.MayAdminister("evict"); err != nil {
		return err
	}
	switch id {
	case t.in.Self:
		return api.Errorf(api.Refused, "a node does not evict itself").
			WithHint("stop it, and have another member evict it")
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
	var events []membership.Event
	for _, b := range list {
		e, err := trust.DecodeEviction(b)
		fresh := false
		if err == nil {
			fresh, err = t.add(e)
		}
		if fresh {
			events = append(events, t.in.Members.Review()...)
			news = append(news, b)
			err = t.keep(e)
		}
		if err != nil {
			t.in.Peers.Refuse("eviction", from)
			t.in.Log.Warn("eviction refused", "from", from, "error", err)
		}
	}
	if len(news) > 0 {
		t.share(news, from)
		t.enforce(events)
	}
}

// enforce acts on evictions that were added: the list's events, and the live
// connections of those who are not listed.
func (t *Topic) enforce(events []membership.Event) {
	t.in.Members.Announce(events)
	t.in.Certificates.CutUnwelcome()
	_ = t.in.Certificates.CheckStanding() // noted
}

// share sends encoded evictions to all connected partners but one.
func (t *Topic) share(list [][]byte, but workflow.PartnerID) {
	for _, p := range t.in.Peers.UpPeers() {
		if p != but {
			t.send(p, list)
		}
	}
}

func (t *Topic) send(p workflow.PartnerID, list [][]byte) {
	for len(list) > 0 {
		k, size := 0, 0
		for k < len(list) && (k == 0 || size+len(list[k]) <= maxBytes) {
			size += len(list[k])
			k++
		}
		t.in.Peers.Transmit(p, &wire.Message{Evictions: &wire.Evictions{List: list[:k]}})
		list = list[k:]
	}
}

func (t *Topic) compare() *wire.Evictions {
	d := t.digest()
	return &wire.Evictions{Digest: d[:]}
}
