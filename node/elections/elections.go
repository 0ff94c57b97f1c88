// Package elections is a node's part in elections: it drives the pure machine
// [election.Election], shows how elections stand, and carries out what users ask for.
//
// Promises: what the machine says is durable first, then sent, then acted upon. If it
// cannot be made durable, the machine is dropped and started again from the store, as
// after a restart. A [Topic] is asked by many goroutines at once; while it holds its lock
// it asks the partner list what people call partners, and who administers.
//
// What it needs of the rest of a node it names in small interfaces; nothing but the node
// puts it together.
//
// It imports choreo/fact, membership, membership/election, membership/moment, membership/trust,
// node/api, node/codec, node/store/kv, node/wire and workflow; node imports it.
package elections

import (
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/election"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/codec"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

const (
	// KeyBallot is the key under which is stored what this node promised, KeyLineage who may
	// vote, and KeySince since when the coordinator is known (ms since 1970), as the node's
	// keys for single values are.
	KeyBallot  = "mballot"
	KeyLineage = "mlineage"
	KeySince   = "mcoordinator-since"

	// pause is the wait before a machine that was lost is started again.
	pause = time.Second
	// lookAgain is how often those that wait for an outcome look for one without an event.
	lookAgain = 200 * time.Millisecond
)

// Store keeps what this node says in elections.
type Store interface {
	CommitWait(writes []kv.Write) error
	Get(key []byte) ([]byte, error)
}

// Clock reads this node's clocks.
type Clock interface {
	Now() moment.Now
	After(d time.Duration) <-chan time.Time
}

// Peers are the members that are connected.
type Peers interface {
	Up(p workflow.PartnerID) bool
	Transmit(p workflow.PartnerID, m *wire.Message)
	Broadcast(m *wire.Message)
	// Refuse counts what was refused of a peer, Count what people may want to know.
	Refuse(why string, p workflow.PartnerID)
	Count(what string, by uint64)
}

// Members is the partner list.
type Members interface {
	Get(p workflow.PartnerID) (membership.Partner, bool)
	// Administers reports whether a partner may change the electorate: the founder, or a
	// delegate in good standing.
	Administers(p workflow.PartnerID) bool
	// Resolve finds the partner that a user names, and ResolveWhole does for what cannot be
	// taken back; Name is what people call it, Label that in a sentence, and Say an error
	// in words for people.
	Resolve(ref string) (workflow.PartnerID, error)
	ResolveWhole(ref string) (workflow.PartnerID, error)
	Name(p workflow.PartnerID) string
	Label(p workflow.PartnerID) string
	Say(err error) string
}

// Driver says whether somebody acts while one waits, and until when.
type Driver interface {
	Waits() bool
	Stopping() <-chan struct{}
}

// Surroundings are what this topic needs of the rest of a node.
type Surroundings struct {
	Self      workflow.PartnerID
	Mesh      trust.Mesh
	Key       ed25519.PrivateKey
	Candidate bool // this node stands for election by itself
	Store     Store
	Clock     Clock
	Log       *slog.Logger
	Peers     Peers
	Members   Members
	Driver    Driver
	// Random gives so many random bytes.
	Random func(n int) []byte
	// Incarnation is that of this node's store.
	Incarnation func() trust.Incarnation
	// ConnectionTime is how long others may go without hearing of this node.
	ConnectionTime func() time.Duration
	// MayAdminister returns an error for users unless this node may do that.
	MayAdminister func(what string) error
	// Troubled notes that the store did not take what this node says.
	Troubled func(error)
	// Publish tells people what happened.
	Publish func(api.Event)
	// Nudge has the node look at once for what is due.
	Nudge func()
}

// Topic is this node's part in elections.
type Topic struct {
	in Surroundings

	mu      sync.Mutex // guards what follows
	machine *election.Election
	next    time.Duration // Awake at which the machine has something to do; 0: never
	since   time.Time     // since when the highest mandate is known
	waiting map[chan election.Event]struct{}
}

// New begins with what is stored.
func New(in Surroundings) (*Topic, error) {
	o := &Topic{in: in, waiting: map[chan election.Event]struct{}{}}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o, o.load()
}

// load starts the machine from what is stored. In the founder's store, the
// first time, it makes the first electorate: the founder alone.
func (o *Topic) load() error {
	ballot, err := codec.Read(o.in.Store, []byte(KeyBallot), election.DecodeBallot)
	if err != nil {
		return err
	}
	lineage, err := codec.Read(o.in.Store, []byte(KeyLineage), election.DecodeLineage)
	if err != nil {
		return err
	}
	since, err := codec.Read(o.in.Store, []byte(KeySince), DecodeSince)
	if err != nil {
		return err
	}
	if len(lineage) == 0 && o.in.Self == o.in.Mesh.Founder {
		if lineage, err = o.found(); err != nil {
			return err
		}
	}
	cfg := election.Config{
		Mesh: o.in.Mesh, Key: o.in.Key, Incarnation: o.in.Incarnation(), Auto: o.in.Candidate,
		MayPropose: o.in.Members.Administers, Seed: binary.BigEndian.Uint64(o.in.Random(8)),
	}
	now := o.in.Clock.Now()
	m, err := election.New(cfg, ballot, lineage, now)
	if err != nil {
		return err
	}
	o.machine, o.since, o.next = m, since, now.Awake
	return nil
}

// DecodeSince reads what is stored under KeySince.
func DecodeSince(b []byte) (time.Time, error) {
	if len(b) != 8 {
		return time.Time{}, fmt.Errorf("%d bytes, want 8", len(b))
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(b))), nil
}

// found makes the mesh's first electorate durable. Its lease is the founder's
// connectionTime: both say how long a silence is borne.
func (o *Topic) found() (election.Lineage, error) {
	voter := election.Voter{Partner: o.in.Self, Incarnation: o.in.Incarnation()}
	lease := min(max(o.in.ConnectionTime(), election.MinLease), election.MaxLease)
	lineage, err := election.FoundElectorate(o.in.Mesh, o.in.Key, []election.Voter{voter}, lease, nil, 0)
	if err != nil {
		return nil, err
	}
	return lineage, o.in.Store.CommitWait([]kv.Write{{Key: []byte(KeyLineage), Value: election.EncodeLineage(lineage)}})
}

var errOffice = api.Errorf(api.Failed, "elections stand still: what this node says in them cannot be stored").
	WithHint("mutirao doctor says what is wrong with the store")

// step has the machine do something and carries out what it asks for.
func (o *Topic) step(fn func(*election.Election, moment.Now) (election.Ready, error)) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.machine == nil {
		return errOffice
	}
	now := o.in.Clock.Now()
	r, err := fn(o.machine, now)
	if perr := o.persist(r, now); perr != nil {
		o.in.Troubled(perr)
		o.in.Log.Error("elections stand still until the store takes writes again", "error", perr)
		o.machine, o.next = nil, now.Awake+pause
		return errOffice
	}
	for _, e := range r.Send {
		o.send(e)
	}
	for _, e := range r.Events {
		o.happened(e)
	}
	o.next = 0
	if r.Wake > 0 {
		o.next = now.Awake + r.Wake
	}
	return err
}

// persist makes what the machine says durable, in one commit.
func (o *Topic) persist(r election.Ready, now moment.Now) error {
	var writes []kv.Write
	if r.Ballot != nil {
		writes = append(writes, kv.Write{Key: []byte(KeyBallot), Value: election.EncodeBallot(*r.Ballot)})
	}
	if r.Lineage != nil {
		writes = append(writes, kv.Write{Key: []byte(KeyLineage), Value: election.EncodeLineage(r.Lineage)})
	}
	known := func(e election.Event) bool { return e.Kind == election.CoordinatorKnown }
	if slices.ContainsFunc(r.Events, known) {
		o.since = now.Wall
		since := binary.BigEndian.AppendUint64(nil, uint64(now.Wall.UnixMilli()))
		writes = append(writes, kv.Write{Key: []byte(KeySince), Value: since})
	}
	if len(writes) == 0 {
		return nil
	}
	return o.in.Store.CommitWait(writes)
}

func (o *Topic) send(e election.Envelope) {
	m := &wire.Message{Election: [][]byte{election.EncodeMessage(e.Message)}}
	o.in.Peers.Count("election.sent", 1)
	switch {
	case e.To == "":
		o.in.Peers.Broadcast(m)
	case o.in.Peers.Up(e.To):
		o.in.Peers.Transmit(e.To, m)
	}
}

// happened tells people, and callers that wait for the outcome.
func (o *Topic) happened(e election.Event) {
	text := string(e.Kind)
	if e.Reason != nil {
		text += ": " + o.in.Members.Say(e.Reason)
	}
	o.in.Log.Info("election", "event", text, "office", e.Office.String(), "partner", e.Partner)
	ev := api.Event{At: o.in.Clock.Now().Wall, Kind: "coordinator", Text: text}
	if e.Partner != "" {
		ev.Partner = o.in.Members.Name(e.Partner)
	}
	o.in.Publish(ev)
	for w := range o.waiting {
		select {
		case w <- e:
		default: // it has been told enough to look
		}
	}
}

// Tick does what is due, and says after what time to call again.
func (o *Topic) Tick(moment.Now) time.Duration {
	o.mu.Lock()
	now := o.in.Clock.Now().Awake
	if o.machine == nil && now >= o.next {
		if err := o.load(); err != nil {
			o.in.Troubled(err)
			o.next = now + pause
		}
	}
	due := o.machine != nil && o.next > 0 && now >= o.next
	o.mu.Unlock()
	if due {
		// An error is in the log; the machine is started again after a pause.
		_ = o.step(func(e *election.Election, now moment.Now) (election.Ready, error) { return e.Tick(now), nil })
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.next == 0 {
		return moment.Never
	}
	return max(o.next-o.in.Clock.Now().Awake, 0)
}

// Reload starts the machine again, for another incarnation.
func (o *Topic) Reload() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.machine, o.next = nil, 0
	o.in.Nudge()
}

// Greet asks a new contact to show its electorate, if it is another, and the coordinator.
func (o *Topic) Greet(_ workflow.PartnerID, to *wire.Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.machine == nil {
		return
	}
	var want election.WantClaim
	if head, lineage := o.machine.Electorate(); len(lineage) > 0 {
		want.List = head.Hash()
	}
	to.Election = [][]byte{election.EncodeMessage(election.Message{WantClaim: &want})}
}

// Take takes in messages from a partner.
func (o *Topic) Take(from workflow.PartnerID, w *wire.Message) {
	for _, b := range w.Election {
		m, err := election.DecodeMessage(b)
		if err == nil {
			err = o.step(func(e *election.Election, now moment.Now) (election.Ready, error) {
				return e.Step(from, m, now)
			})
		}
		switch {
		case err == nil, errors.Is(err, errOffice):
		case errors.Is(err, election.ErrLowerOffice), errors.Is(err, election.ErrHeld),
			errors.Is(err, election.ErrNoElectorate):
			o.in.Peers.Count("election.outdated", 1) // honest, but behind
			o.in.Log.Debug("election message not followed", "from", from, "error", err)
		default:
			o.in.Peers.Refuse("election", from)
			o.in.Log.Warn("election message refused", "from", from, "error", err)
		}
	}
	if len(w.Election) > 0 {
		o.in.Nudge()
	}
}

// Known returns the mandate of the coordinator as far as this node
// knows; ok is false when it knows of none.
func (o *Topic) Known() (m election.Mandate, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.machine == nil {
		return m, false
	}
	return o.machine.Coordinator(o.in.Clock.Now())
}

// Leads reports whether this node holds the office at this moment, and by which
// mandate. Ask it before each act in office.
func (o *Topic) Leads() (m election.Mandate, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.machine == nil {
		return m, false
	}
	return o.machine.Leads(o.in.Clock.Now())
}

// listen returns what happens in elections from now on, until done is called.
func (o *Topic) listen() (events chan election.Event, done func()) {
	const enough = 64
	events = make(chan election.Event, enough)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting[events] = struct{}{}
	return events, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.waiting, events)
	}
}

// Coordinator is the partner that holds the office, as far as this node knows; empty: nobody.
func (o *Topic) Coordinator() workflow.PartnerID {
	m, ok := o.Known()
	if !ok {
		return ""
	}
	return m.Holder
}

// Holds is the office that this node holds at this moment, as a fact carries it;
// nil: none, or none that it could prove in a fact.
func (o *Topic) Holds() *fact.Office {
	c, leads := o.credentials()
	if !leads {
		return nil
	}
	proof, fits := c.Encode()
	if !fits {
		return nil
	}
	return &fact.Office{Office: c.Mandate.Office, Proof: proof}
}

// credentials are those of this node, if it holds the office at this moment.
func (o *Topic) credentials() (c election.Credentials, leads bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.machine == nil {
		return c, false
	}
	c.Mandate, leads = o.machine.Leads(o.in.Clock.Now())
	_, c.Lineage = o.machine.Electorate()
	return c, leads
}

// StandDown gives the office up, if this node holds it, as it goes down, so that nobody waits for its lease
// to run out.
func (o *Topic) StandDown() {
	err := o.step((*election.Election).GoDown)
	if err != nil && !errors.Is(err, election.ErrNotCoordinator) {
		o.in.Log.Warn("the office was not given up", "error", err)
	}
}
