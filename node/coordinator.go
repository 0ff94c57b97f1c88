package node

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// office is this node's part in elections. It drives membership.Election in
// the order that its Ready asks for: what it says is durable first, then sent,
// then acted upon. If it cannot be made durable, the machine is dropped and
// started again from the store, as after a restart.
type office struct {
	n *Node

	mu      sync.Mutex // guards what follows
	machine *membership.Election
	next    time.Duration // Awake at which the machine has something to do; 0: never
	since   time.Time     // since when the highest mandate is known
	waiting map[chan membership.ElectionEvent]struct{}
}

const (
	metaBallot  = "ballot"
	metaLineage = "lineage"
	metaSince   = "coordinator-since" // ms since 1970
)

// officePause is the wait before a machine that was lost is started again.
const officePause = time.Second

func newOffice(n *Node) (*office, error) {
	o := &office{n: n, waiting: map[chan membership.ElectionEvent]struct{}{}}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o, o.load()
}

// load starts the machine from what is stored. In the founder's store, the
// first time, it makes the first electorate: the founder alone.
func (o *office) load() error {
	ballot, err := stored(o.n.store, metaBallot, membership.DecodeBallot)
	if err != nil {
		return err
	}
	lineage, err := stored(o.n.store, metaLineage, membership.DecodeLineage)
	if err != nil {
		return err
	}
	since, err := stored(o.n.store, metaSince, decodeMoment)
	if err != nil {
		return err
	}
	if len(lineage) == 0 && o.n.member.ID() == o.n.member.Mesh.Founder {
		if lineage, err = o.found(); err != nil {
			return err
		}
	}
	cfg := membership.ElectionConfig{
		Mesh: o.n.member.Mesh, Key: o.n.member.Key, Incarnation: o.n.incarnation(), Auto: o.n.config.Candidate,
		MayPropose: o.n.people.administers, Seed: binary.BigEndian.Uint64(o.n.random(8)),
	}
	now := o.n.clock.Now()
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
func (o *office) found() (membership.Lineage, error) {
	voter := membership.Voter{Partner: o.n.member.ID(), Incarnation: o.n.incarnation()}
	lease := min(max(o.n.connectionTime(), membership.MinLease), membership.MaxLease)
	lineage, err := membership.FoundElectorate(o.n.member.Mesh, o.n.member.Key, []membership.Voter{voter}, lease, nil, 0)
	if err != nil {
		return nil, err
	}
	return lineage, o.n.store.CommitWait([]kv.Write{{Key: metaKey(metaLineage), Value: membership.EncodeLineage(lineage)}})
}

var errOffice = api.Errorf(api.Failed, "elections stand still: what this node says in them cannot be stored").WithHint("mutirao doctor says what is wrong with the store")

// step has the machine do something and carries out what it asks for.
func (o *office) step(fn func(*membership.Election, membership.Now) (membership.Ready, error)) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.machine == nil {
		return errOffice
	}
	now := o.n.clock.Now()
	r, err := fn(o.machine, now)
	if perr := o.persist(r, now); perr != nil {
		o.n.troubled(perr)
		o.n.log.Error("elections stand still until the store takes writes again", "error", perr)
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
func (o *office) persist(r membership.Ready, now membership.Now) error {
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
	return o.n.store.CommitWait(writes)
}

func (o *office) send(e membership.Envelope) {
	m := &wire.Message{Election: [][]byte{membership.EncodeMessage(e.Message)}}
	o.n.count("election.sent", 1)
	switch {
	case e.To == "":
		o.n.broadcast(m)
	case o.n.up(e.To):
		o.n.transmit(e.To, m)
	}
}

// happened tells people, and callers that wait for the outcome.
func (o *office) happened(e membership.ElectionEvent) {
	text := string(e.Kind)
	if e.Reason != nil {
		text += ": " + o.n.people.say(e.Reason)
	}
	o.n.log.Info("election", "event", text, "office", e.Office.String(), "partner", e.Partner)
	ev := api.Event{At: o.n.clock.Now().Wall, Kind: "coordinator", Text: text}
	if e.Partner != "" {
		ev.Partner = o.n.people.name(e.Partner)
	}
	o.n.events.publish(ev)
	for w := range o.waiting {
		select {
		case w <- e:
		default: // it has been told enough to look
		}
	}
}

// tick does what is due, and says after what time to call again.
func (o *office) tick() time.Duration {
	o.mu.Lock()
	now := o.n.clock.Now().Awake
	if o.machine == nil && now >= o.next {
		if err := o.load(); err != nil {
			o.n.troubled(err)
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
		return time.Hour
	}
	return max(o.next-o.n.clock.Now().Awake, 0)
}

// reload starts the machine again, for another incarnation.
func (o *office) reload() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.machine, o.next = nil, 0
	o.n.nudge()
}

// greeting is what a new contact is asked: to show its electorate, if it is
// another, and the coordinator.
func (o *office) greeting() [][]byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.machine == nil {
		return nil
	}
	var want membership.WantClaim
	if head, lineage := o.machine.Electorate(); len(lineage) > 0 {
		want.List = head.Hash()
	}
	return [][]byte{membership.EncodeMessage(membership.Message{WantClaim: &want})}
}

// take takes in messages from a partner.
func (o *office) take(from workflow.PartnerID, messages [][]byte) {
	for _, b := range messages {
		m, err := membership.DecodeMessage(b)
		if err == nil {
			err = o.step(func(e *membership.Election, now membership.Now) (membership.Ready, error) {
				return e.Step(from, m, now)
			})
		}
		switch {
		case err == nil, errors.Is(err, errOffice):
		case errors.Is(err, membership.ErrLowerOffice), errors.Is(err, membership.ErrHeld), errors.Is(err, membership.ErrNoElectorate):
			o.n.count("election.outdated", 1) // honest, but behind
			o.n.log.Debug("election message not followed", "from", from, "error", err)
		default:
			o.n.refuse("election", from)
			o.n.log.Warn("election message refused", "from", from, "error", err)
		}
	}
	if len(messages) > 0 {
		o.n.nudge()
	}
}

// nudge has the node look at once for what is due.
func (n *Node) nudge() {
	select {
	case n.nudged <- struct{}{}:
	default:
	}
}

// Coordinator returns the mandate of the coordinator as far as this node
// knows; ok is false when it knows of none.
func (n *Node) Coordinator() (m membership.Mandate, ok bool) {
	n.office.mu.Lock()
	defer n.office.mu.Unlock()
	if n.office.machine == nil {
		return m, false
	}
	return n.office.machine.Coordinator(n.clock.Now())
}

// Leads reports whether this node holds the office at this moment, and by which
// mandate. Ask it before each act in office.
func (n *Node) Leads() (m membership.Mandate, ok bool) {
	n.office.mu.Lock()
	defer n.office.mu.Unlock()
	if n.office.machine == nil {
		return m, false
	}
	return n.office.machine.Leads(n.clock.Now())
}

// Follows reports whether a request made in an office is to be followed: no
// higher office is known. The error wraps membership.ErrLowerOffice.
func (n *Node) Follows(in membership.Office) error {
	n.office.mu.Lock()
	defer n.office.mu.Unlock()
	if n.office.machine == nil {
		return errOffice
	}
	return n.office.machine.Admit(in)
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
func (o *office) listen() (events chan membership.ElectionEvent, done func()) {
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
