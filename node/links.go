package node

import (
	"errors"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/closings"
	"github.com/mutirao-mesh/mutirao/node/library"
	"github.com/mutirao-mesh/mutirao/node/quota"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

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

// takeFacts takes in facts of one instance from a peer.
func (s *shard) takeFacts(from workflow.PartnerID, f *wire.Facts, facts []fact.Received) error {
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
			h.words.Heard(from, now.Boot)
		}
		h.words.Came(facts, now.Wall.UnixMilli())
	}
	if h.m.AheadOfUs(nil) {
		s.n.restoration.rolledBack(from)
	}
	switch {
	case errors.Is(err, choreo.ErrNoRoom): // it is sent again after a while
	case errors.Is(err, log.ErrMissingPast):
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
func (s *shard) instanceOf(from workflow.PartnerID, f *wire.Facts, facts []fact.Received) (*held, error) {
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
func mayTell(m *choreo.Machine, p workflow.PartnerID, facts []fact.Received) bool {
	return m.Involved(p) || m.BringsIn(p, facts)
}

// adopt opens an instance that is new here. Its first fact must be its genesis. Its
// initiator and the sender may be in order, and this node take no part all the same:
// then nobody would ever tell it more, and it would take the room of its initiator.
func (s *shard) adopt(from workflow.PartnerID, f *wire.Facts, facts []fact.Received) (*held, error) {
	if len(facts) == 0 || facts[0].Fact.Body.Genesis == nil || fact.InstanceOf(facts[0].ID) != f.Instance {
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
	// before anything dear is done
	if err := s.n.index.Room(f.Instance, s.n.config.Limits, by, self, next); err != nil {
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
	if m.Genesis().Chain == (fact.Chain{Author: self, Incarnation: s.n.life.incarnation()}) {
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
	from workflow.PartnerID, facts []fact.Received, next bool,
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
		h.words.Heard(from, now.Boot)
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
