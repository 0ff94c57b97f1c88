package users

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/membership/users"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/ration"
	"github.com/mutirao-mesh/mutirao/node/records"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Clock reads this node's clocks.
type Clock interface{ Now() moment.Now }

// Peers are the members that are connected, and those that may be asked something.
type Peers interface {
	Up(p workflow.PartnerID) bool
	UpPeers() []workflow.PartnerID
	Addrs() []string
	Transmit(p workflow.PartnerID, m *wire.Message)
	Broadcast(m *wire.Message)
	// Refuse counts what was refused of a peer.
	Refuse(why string, p workflow.PartnerID)
	Request(
		ctx context.Context, p workflow.PartnerID, addrs []string, protocol string, req []byte, wait time.Duration,
	) ([]byte, error)
}

// Members is the partner list.
type Members interface {
	All() []membership.Partner
	Get(p workflow.PartnerID) (membership.Partner, bool)
	Known(p workflow.PartnerID) bool
	// Name is what people call a partner.
	Name(p workflow.PartnerID) string
	// Resolve is the partner that people mean by a name, a label or an ID.
	Resolve(ref string) (workflow.PartnerID, error)
}

// Certificates is what this node may do by its own certificate.
type Certificates interface {
	MayAdminister(what string) error
	Issuer() trust.Issuer
}

// Keys are the keys of the users who are signed in at this node, by their IDs.
type Keys interface {
	// Make returns a user's key, and makes it where there is none.
	Make(user string) (ed25519.PrivateKey, error)
	// All are those that are there, and why others, or what lies among them, are not used.
	All() (keys map[string]ed25519.PrivateKey, unfit []error)
	Remove(user string) error
}

// Work is how much people's work somebody has, as far as this node knows.
type Work struct{ Done, Assigned, Selected int }

// Surroundings are what this topic needs of the rest of a node.
type Surroundings struct {
	Self         workflow.PartnerID
	Mesh         trust.Mesh
	Clock        Clock
	Log          *slog.Logger
	Peers        Peers
	Members      Members
	Certificates Certificates
	Keys         Keys
	// Person is who said a word that was signed; it checks all of it that never changes.
	Person func(word []byte, signed [sha256.Size]byte) (users.Person, error)
	// Random gives so many random bytes.
	Random func(n int) []byte
	// Lifetime is how long the certificate of a user's key is valid.
	Lifetime time.Duration
	// Nudge has the node look at once for what is due.
	Nudge func()
	// Publish tells people what happened.
	Publish func(api.Event)
	// Work is that of all users and partners, by whole ID.
	Work func(context.Context) (map[string]Work, error)
	// Waits are the tasks of which a user, by ID, did something here that waits to be handed in.
	Waits func(user string) []string
}

const (
	// retryEvery is how often what was not taken in is asked for again.
	retryEvery = time.Hour
	// renewedAtOnce is how many certificates are renewed each time: each is made durable, and
	// partners wait meanwhile for what this node says else.
	renewedAtOnce = 8
	// renewalPart: a certificate is renewed once a quarter of a lifetime is left.
	renewalPart = 4
)

// takingRation is in records that are verified: all that a node can hold at once, and one
// more each 50 ms.
var takingRation = ration.Ration{Burst: 2 * users.MaxRecords, Each: 50 * time.Millisecond}

// Topic is what partners say to one another of users, and what people do about them here.
type Topic struct {
	*Set
	in       Surroundings
	exchange *records.Exchange
	taking   *ration.Budgets // of records, by who sends them

	retryAt time.Duration // Awake: when what was not taken in is asked for again

	// signing is held while a user signs in or out here, so that no key is used that is
	// about to be removed.
	signing sync.Mutex
	// changing is held while this node says something of users, so that each change sees
	// the last.
	changing sync.Mutex
	tickets  *users.Tickets // guarded by changing

	unfit []error // why what lay among the keys of users was not read

	mu   sync.Mutex // guards here
	here map[users.ID]ed25519.PrivateKey
}

// New reads the sign-in tokens that may still be used, and the keys of users who are signed
// in here.
func New(s *Set, in Surroundings) (*Topic, error) {
	part := func(m *wire.Message) **wire.Records { return &m.Users }
	t := &Topic{
		Set: s, in: in, exchange: records.New(records.Surroundings{
			Set: s, Peers: in.Peers, Clock: in.Clock, Part: part, TooOften: "users-asked-too-often", Nudge: in.Nudge,
		}),
		taking: ration.New(takingRation), tickets: users.NewTickets(in.Self),
		here: map[users.ID]ed25519.PrivateKey{},
	}
	err := s.store.Scan([]byte{PrefixTicket}, func(_, value []byte) error {
		k, err := users.DecodeTicket(value)
		if err != nil {
			return err
		}
		if err := t.tickets.Keep(k); err != nil { // it is no reason not to start
			in.Log.Warn("a sign-in token is not honoured", "error", err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var keys map[string]ed25519.PrivateKey
	keys, t.unfit = in.Keys.All()
	for name, key := range keys {
		id, err := users.ParseID(name)
		if err != nil {
			t.unfit = append(t.unfit, err)
			continue
		}
		t.here[id] = key
	}
	for _, err := range t.unfit { // all else goes on
		in.Log.Warn("what lies among the keys of users is not used", "error", err)
	}
	return t, nil
}

// Greet says which records are known here, if any: a partner that has some says so itself.
func (t *Topic) Greet(_ workflow.PartnerID, m *wire.Message) {
	if len(t.IDs()) > 0 {
		t.exchange.Greet(m)
	}
}

// Take takes in what a peer says about users, passes news on, and answers with what one of
// the two lacks.
func (t *Topic) Take(from workflow.PartnerID, m *wire.Message) {
	t.exchange.Take(from, m, func(list [][]byte) { t.takeList(from, list) })
}

// takeList takes in records from a peer. Each counts at once, even if it cannot be stored:
// then it is fetched again after a restart.
func (t *Topic) takeList(from workflow.PartnerID, list [][]byte) {
	if !t.taking.Spend(from, len(list), t.in.Clock.Now().Awake) {
		t.in.Peers.Refuse("users-too-fast", from)
		return
	}
	var news [][]byte
	var writes []kv.Write
	for _, b := range list {
		r, err := users.DecodeRecord(b)
		fresh, replaced := false, []kv.Write(nil)
		if err == nil {
			fresh, replaced, err = t.add(r)
		}
		if err != nil {
			t.refuse(from, r, err)
		}
		if fresh { // what it replaces may come before it in this list
			news, writes = append(news, b), append(append(writes, write(r)), replaced...)
		}
	}
	if len(news) == 0 {
		return
	}
	if err := kv.CommitAll(t.store, writes); err != nil { // which says nothing about whoever sent them
		t.in.Log.Error("records about users cannot be stored", "error", err)
	}
	t.exchange.Pass(news, from)
	t.publish()
}

// refuse counts a record that was not taken in: against its author where there was no room
// for more of that, else against whoever sent it.
func (t *Topic) refuse(from workflow.PartnerID, r users.Record, err error) {
	reason, whose := "user-record", from
	if errors.Is(err, users.ErrNoRoom) {
		reason = "users-over-share"
		if by := r.Author(); t.in.Members.Known(by) {
			whose = by
		}
	}
	t.in.Peers.Refuse(reason, whose)
	t.in.Log.Warn("record about a user refused", "from", from, "error", err)
}

// Tick compares records now and then, renews certificates, and forgets tokens that ran out.
func (t *Topic) Tick(now moment.Now) time.Duration {
	if now.Awake >= t.retryAt {
		t.retryAt = now.Awake + retryEvery
		t.retry()
	}
	next, compared := t.exchange.Tick(now)
	if compared {
		t.renew(now.Wall)
		t.forgetTickets(now.Wall)
	}
	return next
}

// renew certifies the keys again that near the end of their time, as far as this node may,
// and as far as the partner is not gone at whose node they are.
func (t *Topic) renew(at time.Time) {
	if t.in.Certificates.MayAdminister("renew") != nil {
		return
	}
	t.changing.Lock()
	defer t.changing.Unlock()
	var due []users.Device
	t.ask(func(k *users.Set) { due = k.Due(t.in.Self, t.in.Lifetime/renewalPart, at) })
	for _, d := range due[:min(len(due), renewedAtOnce)] {
		if p, ok := t.in.Members.Get(d.Leaf().Node); !ok || p.State.Gone() {
			continue
		}
		var again users.Device
		var err error
		by, serial := t.in.Certificates.Issuer(), trust.Serial(t.in.Random(16))
		t.ask(func(k *users.Set) { again, err = k.Renew(by, d, t.in.Lifetime, serial, at) })
		if err == nil && again.Leaf().NotAfter <= d.Leaf().NotAfter {
			continue // this node's own end is nearer
		}
		if err == nil {
			err = t.say(users.Record{Device: &again})
		}
		if err != nil {
			t.in.Log.Error("the certificate of a user's key cannot be renewed", "user", d.Account.Name, "error", err)
		}
	}
}

// say makes a record of this node's own durable, and tells everybody.
func (t *Topic) say(r users.Record) error {
	if err := t.make([]users.Record{r}); err != nil {
		return err
	}
	t.tell(r)
	return nil
}

// tell tells everybody of a record of this node's own, which is durable.
func (t *Topic) tell(r users.Record) {
	t.exchange.Share([][]byte{users.EncodeRecord(r)}, "")
	t.publish()
}

func (t *Topic) publish() {
	t.in.Publish(api.Event{At: t.in.Clock.Now().Wall, Kind: "users", Text: "changed"})
}
