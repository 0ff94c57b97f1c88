package node

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/closings"
	"github.com/mutirao-mesh/mutirao/node/library"
	"github.com/mutirao-mesh/mutirao/node/quota"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// link is this node's side of the conversation with one partner.
type link struct {
	contact contact
	// reading has the partner's facts verified one bundle at a time, however many
	// connections it has.
	reading sync.Mutex

	mu sync.Mutex // guards what follows, as frames may come over two connections
	// waiting is how many bytes of the partner's facts wait for their shards, freed is
	// closed when that becomes less; nil: nobody waits for it.
	waiting int
	freed   chan struct{}
	// ended is how the digests of ended instances differed last (ended.go); nil: they did not.
	ended *differing
}

// read verifies facts of the partner.
func (l *link) read(f *wire.Facts, v wire.Verifier) ([]choreo.Received, error) {
	l.reading.Lock()
	defer l.reading.Unlock()
	return wire.DecodeFacts(f, v)
}

// maxWaiting bounds how many bytes of one partner's facts wait for their shards; what
// comes beyond that waits on the connection.
const maxWaiting = 2 << 20

// queue waits until there is room for so many bytes of a partner's facts, and takes it.
// False: the node stops.
func (l *link) queue(size int, d driver) bool {
	for {
		l.mu.Lock()
		if !d.waits() || l.waiting == 0 || l.waiting+size <= maxWaiting {
			l.waiting += size
			l.mu.Unlock()
			return true
		}
		if l.freed == nil {
			l.freed = make(chan struct{})
		}
		freed := l.freed
		l.mu.Unlock()
		select {
		case <-freed:
		case <-d.stopping():
			return false
		}
	}
}

// done gives the room back.
func (l *link) done(size int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting -= size
	if l.freed != nil {
		close(l.freed)
		l.freed = nil
	}
}

// outbox collects what one round sends, one message a peer. Facts of our own
// are signed together, once.
type outbox struct {
	n        *contacts
	messages map[workflow.PartnerID]*wire.Message
	sizes    map[workflow.PartnerID]int
	unsigned []*choreo.Outgoing
	bundles  []addressed
}

type addressed struct {
	to   workflow.PartnerID
	b    *choreo.Bundle
	d    *library.Definition
	next bool // it is the instance's turn there (lineup)
}

func (c *contacts) newOutbox() *outbox {
	return &outbox{n: c, messages: map[workflow.PartnerID]*wire.Message{}, sizes: map[workflow.PartnerID]int{}}
}

func (o *outbox) message(p workflow.PartnerID) *wire.Message {
	m := o.messages[p]
	if m == nil {
		m = &wire.Message{}
		o.messages[p] = m
	}
	return m
}

// heads adds what is known of one instance, in parts if there is much of it.
func (o *outbox) heads(p workflow.PartnerID, all wire.Heads) {
	for _, h := range all.Parts() {
		size := 64
		for _, x := range h.Heads {
			size += len(x.Chain.Author) + 64
		}
		if len(o.message(p).Heads) == wire.MaxInstances || o.sizes[p]+size > wire.MaxFacts {
			o.post(p)
		}
		m := o.message(p)
		m.Heads = append(m.Heads, h)
		o.sizes[p] += size
	}
}

// refusal adds that an instance was not taken in.
func (o *outbox) refusal(p workflow.PartnerID, r wire.Refusal) {
	m := o.message(p)
	if len(m.Refusals) == wire.MaxInstances {
		o.post(p)
		m = o.message(p)
	}
	m.Refusals = append(m.Refusals, r)
}

// facts adds what a peer lacks of one instance.
func (o *outbox) facts(a addressed) {
	for _, f := range a.b.Facts {
		if f.Mine {
			o.unsigned = append(o.unsigned, f)
		}
	}
	o.bundles = append(o.bundles, a)
}

// flush signs and sends.
func (o *outbox) flush() {
	o.sign()
	for _, a := range o.bundles {
		o.pack(a)
	}
	for _, p := range slices.Sorted(maps.Keys(o.messages)) {
		o.post(p)
	}
}

// sign attests all unsigned facts with one signature.
func (o *outbox) sign() {
	slices.SortFunc(o.unsigned, func(a, b *choreo.Outgoing) int { return compareIDs(a.ID(), b.ID()) })
	o.unsigned = slices.CompactFunc(o.unsigned, func(a, b *choreo.Outgoing) bool { return a.ID() == b.ID() })
	ids := make([]choreo.FactID, len(o.unsigned))
	for i, f := range o.unsigned {
		ids[i] = f.ID()
	}
	key := o.n.member.Key
	for i, att := range choreo.Attest(ids,
		func(domain string, msg []byte) []byte { return trust.Sign(key, domain, msg) }) {
		o.unsigned[i].Attest(att)
	}
}

func compareIDs(a, b choreo.FactID) int { return slices.Compare(a[:], b[:]) }

// pack puts a bundle into the peer's message, sending what is full.
func (o *outbox) pack(a addressed) {
	w := wire.Facts{Instance: a.b.Instance, Facts: make([]wire.Fact, 0, len(a.b.Facts)), More: a.b.More, Next: a.next}
	size := 256
	if a.b.First {
		w.Definition = a.d.Def.Canonical()
		size += len(w.Definition)
	}
	for _, f := range a.b.Facts {
		w.Facts = append(w.Facts, wire.Fact{Raw: f.Raw(), Att: f.Attestation()})
		size += len(f.Raw()) + 16
		if att := f.Attestation(); att != nil {
			size += att.Size()
		}
	}
	if m := o.message(a.to); len(m.Facts) == wire.MaxInstances || o.sizes[a.to]+size > wire.MaxFacts {
		o.post(a.to)
	}
	m := o.message(a.to)
	m.Facts = append(m.Facts, w)
	o.sizes[a.to] += size
}

// post sends a peer's message as it stands.
func (o *outbox) post(p workflow.PartnerID) {
	m := o.messages[p]
	delete(o.messages, p)
	delete(o.sizes, p)
	if m != nil {
		o.n.transmit(p, m)
	}
}

// send has p brought up to date on an instance, as far as it is not under way.
func (s *shard) send(out *outbox, h *held, p workflow.PartnerID) {
	if !s.n.up(p) {
		h.m.Away(p) // until it greets
		return
	}
	if s.wantsNoMore(h, p) {
		return
	}
	b := h.m.Outgoing(p, wire.MaxFacts/2, s.moment())
	if b == nil {
		return
	}
	if s.n.log.Enabled(context.Background(), slog.LevelDebug) {
		s.n.log.Debug("send", "to", s.n.people.name(p), "facts", len(b.Facts), "newest", b.Describe(), "first", b.First)
	}
	next := s.isNext(h, p, b)
	out.facts(addressed{p, b, h.def, next})
	f := h.pending[p]
	if f == nil {
		f = &inflight{pause: firstPause, askPause: firstPause}
		h.pending[p] = f
	}
	s.underWay[b.Instance] = true
	f.more, f.idle, f.next = b.More, false, next
	if !f.asked { // else it would be put off for ever where much is sent
		s.wait(f)
	}
}

// wait has what is under way be taken to be so for a while.
func (s *shard) wait(f *inflight) {
	now := s.now.Awake
	f.due, f.askDue = now+f.pause+s.n.spread(f.pause/4), now+f.askPause
}

// over reports whether an acknowledgement is overdue, and whether it is time for what the
// peer asked for.
func (f *inflight) over(now time.Duration) (overdue, asked bool) {
	return !f.idle && now >= f.due, f.asked && now >= f.askDue
}

// forget has all that p lacks be sent again, if it is time for that. The next time comes
// after twice as long.
func (s *shard) forget(h *held, p workflow.PartnerID, f *inflight) bool {
	overdue, asked := f.over(s.now.Awake)
	if overdue {
		f.pause = min(2*f.pause, maxPause)
	}
	if asked {
		f.askPause = min(2*f.askPause, maxPause)
	}
	if overdue || asked {
		f.asked = false
		s.wait(f)
		h.m.Forget(p)
	}
	return overdue || asked
}

// unacknowledged reports whether something of an instance is due to be sent again, and
// whether an acknowledgement, or its time, is waited for. Of one that is not held nothing is.
func (h *held) unacknowledged(now time.Duration) (isDue, waits bool) {
	if h == nil {
		return false, false
	}
	for _, f := range h.pending {
		overdue, asked := f.over(now)
		isDue = isDue || overdue || asked
		waits = waits || !f.idle || f.asked
	}
	return isDue, waits
}

// retry sends again what was not acknowledged in time, or was asked for meanwhile.
func (s *shard) retry() {
	var due []workflow.InstanceID
	for id := range s.underWay {
		isDue, waits := s.held[id].unacknowledged(s.now.Awake)
		if !waits {
			delete(s.underWay, id)
		}
		if isDue {
			due = append(due, id)
		}
	}
	slices.SortFunc(due, workflow.InstanceID.Compare)
	out := s.n.newOutbox()
	for _, id := range due {
		h := s.held[id]
		s.contained(id, func() { s.resend(out, h) })
	}
	out.flush()
}

// resend sends again what of an instance is due.
func (s *shard) resend(out *outbox, h *held) {
	for _, p := range slices.Sorted(maps.Keys(h.pending)) {
		if f := h.pending[p]; s.n.up(p) && !s.wantsNoMore(h, p) && s.forget(h, p, f) {
			s.n.count("resent", 1)
			s.send(out, h, p)
		}
	}
}

// compareAll tells connected partners what is here of every instance of
// which they are not known to have all.
func (s *shard) compareAll() {
	if len(s.aside) > 0 {
		for _, p := range s.n.upPeers() {
			s.askForAside(p)
		}
	}
	out, now := s.n.newOutbox(), s.now.Awake
	s.each(func(id workflow.InstanceID, h *held) {
		maps.DeleteFunc(h.pending, func(_ workflow.PartnerID, f *inflight) bool {
			return f.idle && !f.asked && now >= max(f.due, f.askDue)
		})
		s.compareOne(out, id, h, anybody)
		s.mindSilence(h)
	})
	out.flush()
}

// compareOne tells those who are not known to have all of an instance what is here of it, as
// far as they are meant.
func (s *shard) compareOne(out *outbox, id workflow.InstanceID, h *held, meant func(workflow.PartnerID) bool) {
	for _, p := range h.m.Audience() {
		if p != s.n.member.ID() && meant(p) && s.n.up(p) && h.m.Behind(p) && !s.wantsNoMore(h, p) {
			s.tellHeads(out, p, []workflow.InstanceID{id}, wire.Ask)
		}
	}
}

func anybody(workflow.PartnerID) bool { return true }

// endedEvery is how long the acknowledgements of an instance's end are waited for, and then
// the questions of others, before it is compared before its turn.
const endedEvery = 100 * time.Millisecond

// compareEnded compares instances that have ended, once and before their turn: they can leave
// the memory as soon as all are known to have them, and somebody's room gets short. Else what
// one member runs in half a minute would have to fit in its share. Of two partners the one
// whose ID comes first asks first, since both know enough when one has asked.
func (s *shard) compareEnded() {
	const asksFirst, asksAll = 2, 3 // the times it was looked at: at first its end was only seen
	out := s.n.newOutbox()
	s.ended = false
	s.only(func(h *held) bool { return !h.running() && h.early < asksAll }, func(id workflow.InstanceID, h *held) {
		switch h.early++; h.early {
		case asksFirst:
			s.compareOne(out, id, h, func(p workflow.PartnerID) bool { return s.n.member.ID() < p })
		case asksAll:
			s.compareOne(out, id, h, anybody)
		}
		s.ended = s.ended || h.early < asksAll
	})
	out.flush()
}

// greet starts the conversation about all instances with a partner that was
// just connected: nothing is under way any more, and both say what they have.
func (s *shard) greet(p workflow.PartnerID) {
	if p == s.reports.to.Partner {
		s.reportAll(s.reports.to)
	}
	s.askForAside(p)
	s.each(func(id workflow.InstanceID, h *held) {
		h.m.Here(p)
		if !h.m.Involved(p) {
			return
		}
		delete(h.pending, p)
		delete(h.refused, p)
		s.n.lineup.Meet(p, id)
		h.m.Greet(p)
		s.sendHeads(p, id, wire.Ask)
		if h.m.Owes(p) {
			s.supply(h, p)
		}
	})
}

// supply sends p, after the commit, what it lacks of an instance.
func (s *shard) supply(h *held, p workflow.PartnerID) {
	s.batch.supplies = append(s.batch.supplies, supply{h, p})
}

// takeFacts takes in facts of one instance from a peer.
func (s *shard) takeFacts(from workflow.PartnerID, f *wire.Facts, facts []choreo.Received) error {
	if s.putOff(f.Instance) {
		return nil
	}
	h, err := s.instanceOf(from, f, facts)
	if h == nil || err != nil {
		return err
	}
	s.limit(h)
	added, err := h.m.Receive(from, facts)
	s.weigh(h)
	s.refuseFacts(from, h.m)
	for author, n := range h.m.Uncounted() {
		for range n {
			s.n.refuse("facts-not-counted", author)
		}
	}
	now := s.moment()
	h.m.Heard(now)
	if err == nil {
		if !f.More { // else what it has is not all here
			h.heard(from, now.Boot)
		}
		h.came(facts, now.Wall.UnixMilli())
	}
	if h.m.AheadOfUs(nil) {
		s.n.restoration.rolledBack(from)
	}
	switch {
	case errors.Is(err, choreo.ErrNoRoom): // it is sent again after a while
	case errors.Is(err, choreo.ErrMissingPast):
		if s.lost == 0 { // what comes now could not be made durable either: see loadAgain
			s.sendHeads(from, f.Instance, wire.Ask)
		}
	case err != nil:
		s.n.refuse("facts-invalid", from)
		s.log.Warn("facts refused", "from", from, "instance", f.Instance, "error", err)
	}
	if s.putBack(h) || added > 0 || h.was != nil {
		s.touch(h)
	}
	s.sendHeads(from, f.Instance, wire.Acknowledge)
	return nil
}

// instanceOf is the instance that facts from a peer are for: one that is here, comes out of
// quarantine, or is new. Nil: they are not taken in, and who should hear why was told.
func (s *shard) instanceOf(from workflow.PartnerID, f *wire.Facts, facts []choreo.Received) (*held, error) {
	h, err := s.find(f.Instance)
	if _, aside := s.aside[f.Instance]; aside {
		h, err = s.readmit(from, f, facts)
	} else if errors.Is(err, kv.ErrNotFound) {
		h, err = s.adopt(from, f, facts)
	}
	if err == nil && !mayTell(h.m, from, facts) {
		err = errNoParticipant
	}
	var over *closedHere
	var full *quota.NoRoom
	switch {
	case errors.As(err, &over):
		s.refuseClosed(from, over.closing)
		return nil, nil
	case errors.As(err, &full):
		s.refuseInstance(from, f.Instance, full)
		return nil, nil
	case errors.Is(err, errNoParticipant):
		s.n.refuse("facts-from-no-participant", from)
		return nil, nil
	case errors.Is(err, errNoPart):
		s.n.refuse("instance-of-others", from)
		return nil, nil
	case err != nil:
		return nil, err
	}
	if large := s.tooLarge(h, from, facts); large != nil {
		s.refuseInstance(from, f.Instance, large)
		return nil, nil
	}
	return h, nil
}

// refuseFacts counts what was not taken in of a sender's facts, and tells the sender
// what it should know of that.
func (s *shard) refuseFacts(from workflow.PartnerID, m *choreo.Machine) {
	tell := func(why wire.RefusedWhy, author workflow.PartnerID) {
		s.batch.refusals = append(s.batch.refusals,
			refusalTo{from, wire.Refusal{Instance: m.Instance(), Why: why, Author: author}})
	}
	for _, d := range m.Declined() {
		for range d.Facts {
			s.n.refuse("facts-beyond-"+d.Why, d.Author)
		}
		switch {
		case d.Why == choreo.TooManyChains && d.Author == from:
			tell(wire.RefusedLives, "")
		case d.NoRoom():
			tell(wire.RefusedFacts, d.Author)
		}
	}
	s.takeAgain(m)
}

// takeAgain tells those whose facts were refused for want of room that there is room now.
func (s *shard) takeAgain(m *choreo.Machine) {
	for _, t := range m.Takes() {
		s.batch.refusals = append(s.batch.refusals,
			refusalTo{t.From, wire.Refusal{Instance: m.Instance(), Why: wire.TakesFacts, Author: t.Author}})
	}
	s.refuses = s.refuses || m.Refuses()
}

// mayTell reports whether p takes part in an instance, if need be by these facts:
// a partner that a participant's verdict chose may be the first to tell of it.
func mayTell(m *choreo.Machine, p workflow.PartnerID, facts []choreo.Received) bool {
	return m.Involved(p) || m.BringsIn(p, facts)
}

// adopt opens an instance that is new here. Its first fact must be its genesis. Its
// initiator and the sender may be in order, and this node take no part all the same:
// then nobody would ever tell it more, and it would take the room of its initiator.
func (s *shard) adopt(from workflow.PartnerID, f *wire.Facts, facts []choreo.Received) (*held, error) {
	if len(facts) == 0 || facts[0].Fact.Body.Genesis == nil || choreo.InstanceOf(facts[0].ID) != f.Instance {
		return nil, errUnknownInstance
	}
	if c, found, err := s.n.retention.closings.Of(f.Instance); err != nil || found {
		return nil, errors.Join(err, &closedHere{c})
	}
	by, self := facts[0].Fact.Chain.Author, s.n.member.ID()
	was, again := s.n.index.Get(f.Instance) // one that was set aside was never given up
	if !again && s.n.retention.closings.MayBeDropped(by, facts[0].Fact.At) {
		return nil, &closedHere{closings.Closing{Instance: f.Instance}}
	}
	next := f.Next && from == by
	if err := s.n.index.Room(f.Instance, s.n.config.Limits, by, self, next); err != nil { // before anything dear is done
		return nil, err
	}
	def, m, err := s.openNew(from, facts, next)
	if err != nil {
		return nil, err
	}
	needs := begunWeight(def, m) + s.n.expect(def, m).all
	if err := s.n.roomFor(by, next, needs); err != nil {
		return nil, err
	}
	outOfTurn := s.n.index.Room(f.Instance, s.n.config.Limits, by, self, false) == nil &&
		s.n.roomFor(by, false, needs) == nil
	if err := s.n.index.Begin(f.Instance, s.n.config.Limits, by, self, next, def.Hash); err != nil {
		return nil, err
	}
	beside := func(brings map[workflow.PartnerID]map[workflow.Hash]int) bool {
		return s.n.definitions.RoomBeside(def, by, s.n.people.administers(by), brings)
	}
	if !again && !s.n.index.RoomBeside(beside) {
		err = &quota.NoRoom{Why: wire.RefusedWorkflows, By: by}
	} else {
		err = s.n.definitions.Keep(def)
	}
	if err != nil {
		s.n.index.Forget(f.Instance)
		return nil, err
	}
	if m.Genesis().Chain == (choreo.Chain{Author: self, Incarnation: s.n.life.incarnation()}) {
		s.n.restoration.rolledBack(from) // this node began it, and its store knows nothing of that
	}
	m.Adopt()
	m.Gap(s.n.clock.Now().Boot + moment.Grace(s.n.own.ConnectionTime())) // what others concluded may be under way
	h := s.create(m, def, max(was.Began, m.Genesis().At))
	s.touch(h)
	if !outOfTurn {
		s.tellTaken(h, from)
	}
	return h, nil
}

// openNew reads the definition of an instance that is new here, and opens its machine, if there is
// room for each, and it is for this node to take in.
func (s *shard) openNew(
	from workflow.PartnerID, facts []choreo.Received, next bool,
) (*library.Definition, *choreo.Machine, error) {
	genesis := facts[0].Fact
	by, least := genesis.Chain.Author, factsWeigh(1, len(facts[0].Raw))
	if err := s.n.roomFor(by, next, instanceWeight+least); err != nil { // before its definition is read
		return nil, nil, err
	}
	def, err := s.n.definitions.Get(genesis.Body.Genesis.Definition)
	if errors.Is(err, kv.ErrNotFound) {
		if def = s.n.definitions.Fresh(genesis.Body.Genesis.Definition); def != nil { // see library.Topic.ReadAhead
			err = nil
		}
	}
	if err != nil {
		return nil, nil, err
	}
	if err := s.n.roomFor(by, next, int64(weightOf(def))+least); err != nil { // before it is opened
		return nil, nil, err
	}
	m, err := choreo.Open(s.n.self(), def.Def, def.Plan, facts[0])
	switch {
	case err != nil:
		return nil, nil, err
	case !mayTell(m, from, facts):
		return nil, nil, errNoParticipant
	case !mayTell(m, s.n.member.ID(), facts):
		return nil, nil, errNoPart
	}
	return def, m, nil
}

// tellTaken tells those that take part that an instance is here now, which was refused to
// those of them that sent it before its turn.
func (s *shard) tellTaken(h *held, from workflow.PartnerID) {
	for _, p := range h.m.Audience() {
		if p != from && p != s.n.member.ID() && s.n.up(p) {
			s.sendHeads(p, h.m.Instance(), wire.Ask)
		}
	}
}

var (
	errNoParticipant   = errors.New("facts of an instance in which the sender takes no part")
	errNoPart          = errors.New("an instance in which this node takes no part")
	errUnknownInstance = errors.New("facts of an instance that is not known here, without its genesis")
)

// sendHeads says to a peer, after the commit, what is durable here of an instance.
func (s *shard) sendHeads(p workflow.PartnerID, id workflow.InstanceID, mode wire.HeadsMode) {
	if s.batch.heads == nil {
		s.batch.heads = map[headsKey][]workflow.InstanceID{}
	}
	k := headsKey{p, mode}
	s.batch.heads[k] = append(s.batch.heads[k], id)
}

// telling are heads of one instance of which not all parts have come yet.
type telling struct {
	so   wire.Heads
	next uint8
}

// whole puts together what a peer tells of an instance in parts; nil: more parts
// follow, or some were lost. Of each peer one statement is put together at a time: it
// will tell again what was lost.
func (s *shard) whole(from workflow.PartnerID, w *wire.Heads) *wire.Heads {
	t := s.tellings[from]
	switch {
	case w.Part == 0 && !w.More:
		return w
	case w.Part == 0:
		t = &telling{so: *w}
	case t == nil || t.next != w.Part || t.so.Instance != w.Instance || t.so.Incarnation != w.Incarnation ||
		t.so.Mode != w.Mode:
		return nil
	default:
		t.so.Heads = append(t.so.Heads, w.Heads...)
	}
	t.next = w.Part + 1
	if w.More {
		s.tellings[from] = t
		return nil
	}
	delete(s.tellings, from)
	return &t.so
}

// takeHeads takes in what a peer says that it has of one instance.
func (s *shard) takeHeads(from workflow.PartnerID, w *wire.Heads) error {
	if w = s.whole(from, w); w == nil {
		return nil
	}
	h, err := s.toldOf(from, w)
	if h == nil || err != nil {
		return err
	}
	var more bool
	if w.Mode == wire.Acknowledge {
		more = h.m.Acknowledge(from, w.Incarnation, w.Heads)
	} else {
		more = h.m.Restate(from, w.Incarnation, w.Heads)
	}
	if len(w.Heads) > 0 {
		delete(h.refused, from)
		s.n.call(s.n.lineup.Leave(from, w.Instance))
	}
	now := s.moment()
	if h.m.HasAll(w.Heads) {
		h.heard(from, now.Boot)
	}
	h.m.Heard(now)
	if w.Mode == wire.Ask {
		s.sendHeads(from, w.Instance, wire.Answer)
	}
	s.answered(h, from, w.Mode, more)
	s.touch(h)
	return nil
}

// toldOf is the instance that a peer tells its heads of, as far as it may. Nil: there is
// nothing to do with them, and a question was answered.
func (s *shard) toldOf(from workflow.PartnerID, w *wire.Heads) (*held, error) {
	if sum, known := s.n.index.Get(w.Instance); known && sum.Settled && s.held[w.Instance] == nil &&
		!s.n.retention.mayCompare(from, sum) {
		return nil, nil
	}
	if s.putOff(w.Instance) {
		return nil, nil
	}
	h, err := s.find(w.Instance)
	_, aside := s.aside[w.Instance]
	if aside || errors.Is(err, kv.ErrNotFound) {
		return nil, s.tellOfMissing(from, w)
	}
	if err != nil {
		return nil, err
	}
	if !h.m.Hears(from, w.Heads) {
		s.n.refuse("heads-from-no-participant", from)
		if w.Mode == wire.Ask {
			// A verdict that is not here may have brought it in, and its author be
			// gone: then the answer, that nothing is here, has it send the proof.
			s.sendHeads(from, w.Instance, wire.Answer)
		}
		return nil, nil
	}
	if h.m.AheadOfUs(nil) {
		s.n.restoration.rolledBack(from) // it could not be made durable when it was proved
		return nil, nil
	}
	if h.m.AheadOfUs(w.Heads) {
		s.doubt(h, from)
		return nil, nil // if it is true, nothing may be written under the old incarnation
	}
	return h, nil
}

// tellOfMissing answers who asks about an instance of which nothing is here: it was closed,
// or is lacking.
func (s *shard) tellOfMissing(from workflow.PartnerID, w *wire.Heads) error {
	if w.Mode != wire.Ask {
		return nil
	}
	c, closed, err := s.n.retention.closings.Of(w.Instance)
	switch {
	case closed:
		s.refuseClosed(from, c)
	case err == nil:
		s.sendHeads(from, w.Instance, wire.Answer) // nothing of it is here
	}
	return err
}

// answered looks, once a peer has said what it has of an instance, at what is under way
// to it and at what it lacks.
func (s *shard) answered(h *held, from workflow.PartnerID, mode wire.HeadsMode, more bool) {
	f, owes, asks := h.pending[from], h.m.Owes(from), mode != wire.Acknowledge
	if f != nil && more {
		f.pause, f.askPause = firstPause, firstPause
		f.due = min(f.due, s.now.Awake+f.pause)
	}
	if f != nil && f.more && !asks {
		f.more = false
		s.supply(h, from) // what did not fit into the bundle that arrived
	}
	switch {
	case !h.m.Behind(from):
		if f != nil {
			f.idle, f.asked = true, false
		}
	case asks || owes && (f == nil || f.idle): // it may have lost what it had
		s.lacks(h, from, f)
	}
	if f != nil && !owes {
		f.idle = true
	}
}

// lacks brings a peer up to date that says that it lacks something. What is under way to
// it is not sent again before its time.
func (s *shard) lacks(h *held, p workflow.PartnerID, f *inflight) {
	if f == nil {
		f = &inflight{pause: firstPause, askPause: firstPause, idle: true}
		h.pending[p] = f
		s.wait(f)
		h.m.Forget(p)
		s.supply(h, p)
		return
	}
	f.asked, s.underWay[h.m.Instance()] = true, true
	if s.forget(h, p, f) || !f.more { // else it gets the rest when it acknowledges
		s.supply(h, p)
	}
}
