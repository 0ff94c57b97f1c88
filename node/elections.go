package node

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// elections is this node's part in elections. It drives membership.Election in
// the order that its Ready asks for: what it says is durable first, then sent,
// then acted upon. If it cannot be made durable, the machine is dropped and
// started again from the store, as after a restart.
type elections struct {
	*contacts
	people voters
	rights authorized
	own    patient
	life   *life
	driver driver

	mu      sync.Mutex // guards what follows
	machine *membership.Election
	next    time.Duration // Awake at which the machine has something to do; 0: never
	since   time.Time     // since when the highest mandate is known
	waiting map[chan membership.ElectionEvent]struct{}
}

// voters is what elections ask about members.
type voters interface {
	get(workflow.PartnerID) (membership.Partner, bool)
	administers(workflow.PartnerID) bool
	resolve(string) (workflow.PartnerID, error)
	name(workflow.PartnerID) string
	label(workflow.PartnerID) string
	say(error) string
}

// authorized says whether this node may do what only administrators may.
type authorized interface{ MayAdminister(what string) error }

// patient says how long a silence of this node is borne.
type patient interface{ ConnectionTime() time.Duration }

// driver says whether somebody acts while one waits, and until when.
type driver interface {
	waits() bool
	stopping() <-chan struct{}
}

const (
	metaBallot  = "ballot"
	metaLineage = "lineage"
	metaSince   = "coordinator-since" // ms since 1970
)

// officePause is the wait before a machine that was lost is started again.
const officePause = time.Second

func newElections(c *contacts, p voters, r authorized, own patient, l *life, d driver) (*elections, error) {
	o := &elections{contacts: c, people: p, rights: r, own: own, life: l, driver: d, waiting: map[chan membership.ElectionEvent]struct{}{}}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o, o.load()
}

// load starts the machine from what is stored. In the founder's store, the
// first time, it makes the first electorate: the founder alone.
func (o *elections) load() error {
	ballot, err := stored(o.store, metaBallot, membership.DecodeBallot)
	if err != nil {
		return err
	}
	lineage, err := stored(o.store, metaLineage, membership.DecodeLineage)
	if err != nil {
		return err
	}
	since, err := stored(o.store, metaSince, decodeMoment)
	if err != nil {
		return err
	}
	if len(lineage) == 0 && o.member.ID() == o.member.Mesh.Founder {
		if lineage, err = o.found(); err != nil {
			return err
		}
	}
	cfg := membership.ElectionConfig{
		Mesh: o.member.Mesh, Key: o.member.Key, Incarnation: o.life.incarnation(), Auto: o.config.Candidate,
		MayPropose: o.people.administers, Seed: binary.BigEndian.Uint64(o.random(8)),
	}
	now := o.clock.Now()
	m, err := membership.NewElection(cfg, ballot, lineage, now)
	if err != nil {
		return err
	}
	o.machine, o.since, o.next = m, since, now.Awake
	return nil
}

// stored reads a single value; its zero value if there is none.
func stored[T any](s Store, name string, decode func([]byte) (T, error)) (T, error) {
	var zero T
	b, err := s.Get(metaKey(name))
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return zero, nil
	case err != nil:
		return zero, err
	}
	v, err := decode(b)
	if err != nil {
		return zero, fmt.Errorf("the store's %s cannot be read: %w", name, err)
	}
	return v, nil
}

func decodeMoment(b []byte) (time.Time, error) {
	if len(b) != 8 {
		return time.Time{}, fmt.Errorf("%d bytes, want 8", len(b))
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(b))), nil
}

// found makes the mesh's first electorate durable. Its lease is the founder's
// connectionTime: both say how long a silence is borne.
func (o *elections) found() (membership.Lineage, error) {
	voter := membership.Voter{Partner: o.member.ID(), Incarnation: o.life.incarnation()}
	lease := min(max(o.own.ConnectionTime(), membership.MinLease), membership.MaxLease)
	lineage, err := membership.FoundElectorate(o.member.Mesh, o.member.Key, []membership.Voter{voter}, lease, nil, 0)
	if err != nil {
		return nil, err
	}
	return lineage, o.store.CommitWait([]kv.Write{{Key: metaKey(metaLineage), Value: membership.EncodeLineage(lineage)}})
}

var errOffice = api.Errorf(api.Failed, "elections stand still: what this node says in them cannot be stored").WithHint("mutirao doctor says what is wrong with the store")

// step has the machine do something and carries out what it asks for.
func (o *elections) step(fn func(*membership.Election, membership.Now) (membership.Ready, error)) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.machine == nil {
		return errOffice
	}
	now := o.clock.Now()
	r, err := fn(o.machine, now)
	if perr := o.persist(r, now); perr != nil {
		o.troubled(perr)
		o.log.Error("elections stand still until the store takes writes again", "error", perr)
		o.machine, o.next = nil, now.Awake+officePause
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
func (o *elections) persist(r membership.Ready, now membership.Now) error {
	var writes []kv.Write
	if r.Ballot != nil {
		writes = append(writes, kv.Write{Key: metaKey(metaBallot), Value: membership.EncodeBallot(*r.Ballot)})
	}
	if r.Lineage != nil {
		writes = append(writes, kv.Write{Key: metaKey(metaLineage), Value: membership.EncodeLineage(r.Lineage)})
	}
	if slices.ContainsFunc(r.Events, func(e membership.ElectionEvent) bool { return e.Kind == membership.CoordinatorKnown }) {
		o.since = now.Wall
		writes = append(writes, kv.Write{Key: metaKey(metaSince), Value: binary.BigEndian.AppendUint64(nil, uint64(now.Wall.UnixMilli()))})
	}
	if len(writes) == 0 {
		return nil
	}
	return o.store.CommitWait(writes)
}

func (o *elections) send(e membership.Envelope) {
	m := &wire.Message{Election: [][]byte{membership.EncodeMessage(e.Message)}}
	o.count("election.sent", 1)
	switch {
	case e.To == "":
		o.broadcast(m)
	case o.up(e.To):
		o.transmit(e.To, m)
	}
}

// happened tells people, and callers that wait for the outcome.
func (o *elections) happened(e membership.ElectionEvent) {
	text := string(e.Kind)
	if e.Reason != nil {
		text += ": " + o.people.say(e.Reason)
	}
	o.log.Info("election", "event", text, "office", e.Office.String(), "partner", e.Partner)
	ev := api.Event{At: o.clock.Now().Wall, Kind: "coordinator", Text: text}
	if e.Partner != "" {
		ev.Partner = o.people.name(e.Partner)
	}
	o.events.publish(ev)
	for w := range o.waiting {
		select {
		case w <- e:
		default: // it has been told enough to look
		}
	}
}

// Tick does what is due, and says after what time to call again.
func (o *elections) Tick(membership.Now) time.Duration {
	o.mu.Lock()
	now := o.clock.Now().Awake
	if o.machine == nil && now >= o.next {
		if err := o.load(); err != nil {
			o.troubled(err)
			o.next = now + officePause
		}
	}
	due := o.machine != nil && o.next > 0 && now >= o.next
	o.mu.Unlock()
	if due {
		// An error is in the log; the machine is started again after a pause.
		_ = o.step(func(e *membership.Election, now membership.Now) (membership.Ready, error) { return e.Tick(now), nil })
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.next == 0 {
		return never
	}
	return max(o.next-o.clock.Now().Awake, 0)
}

// reload starts the machine again, for another incarnation.
func (o *elections) reload() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.machine, o.next = nil, 0
	o.nudge()
}

// Greet asks a new contact to show its electorate, if it is another, and the coordinator.
func (o *elections) Greet(_ workflow.PartnerID, to *wire.Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.machine == nil {
		return
	}
	var want membership.WantClaim
	if head, lineage := o.machine.Electorate(); len(lineage) > 0 {
		want.List = head.Hash()
	}
	to.Election = [][]byte{membership.EncodeMessage(membership.Message{WantClaim: &want})}
}

// Take takes in messages from a partner.
func (o *elections) Take(from workflow.PartnerID, w *wire.Message) {
	for _, b := range w.Election {
		m, err := membership.DecodeMessage(b)
		if err == nil {
			err = o.step(func(e *membership.Election, now membership.Now) (membership.Ready, error) {
				return e.Step(from, m, now)
			})
		}
		switch {
		case err == nil, errors.Is(err, errOffice):
		case errors.Is(err, membership.ErrLowerOffice), errors.Is(err, membership.ErrHeld), errors.Is(err, membership.ErrNoElectorate):
			o.count("election.outdated", 1) // honest, but behind
			o.log.Debug("election message not followed", "from", from, "error", err)
		default:
			o.refuse("election", from)
			o.log.Warn("election message refused", "from", from, "error", err)
		}
	}
	if len(w.Election) > 0 {
		o.nudge()
	}
}

// known returns the mandate of the coordinator as far as this node
// knows; ok is false when it knows of none.
func (o *elections) known() (m membership.Mandate, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.machine == nil {
		return m, false
	}
	return o.machine.Coordinator(o.clock.Now())
}

// leads reports whether this node holds the office at this moment, and by which
// mandate. Ask it before each act in office.
func (o *elections) leads() (m membership.Mandate, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.machine == nil {
		return m, false
	}
	return o.machine.Leads(o.clock.Now())
}

// administers reports whether a partner may change the electorate: the founder,
// or a delegate in good standing.
func (p *people) administers(id workflow.PartnerID) bool {
	if id == p.member.Mesh.Founder {
		return true
	}
	x, ok := p.get(id)
	return ok && x.State != membership.Evicted && x.Record.Chain.Leaf().Delegate
}

// listen returns what happens in elections from now on, until done is called.
func (o *elections) listen() (events chan membership.ElectionEvent, done func()) {
	const enough = 64
	events = make(chan membership.ElectionEvent, enough)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting[events] = struct{}{}
	return events, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.waiting, events)
	}
}

// coordinator is the partner that holds the office, as far as this node knows; empty: nobody.
func (o *elections) coordinator() workflow.PartnerID {
	m, ok := o.known()
	if !ok {
		return ""
	}
	return m.Holder
}

// holds is the office that this node holds at this moment, as a fact carries it;
// nil: none, or none that it could prove in a fact.
func (o *elections) holds() *choreo.Office {
	c, leads := o.credentials()
	if !leads {
		return nil
	}
	proof, fits := c.Encode()
	if !fits {
		return nil
	}
	return &choreo.Office{Office: c.Mandate.Office, Proof: proof}
}

// credentials are those of this node, if it holds the office at this moment.
func (o *elections) credentials() (c membership.Credentials, leads bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.machine == nil {
		return c, false
	}
	c.Mandate, leads = o.machine.Leads(o.clock.Now())
	_, c.Lineage = o.machine.Electorate()
	return c, leads
}
