package node

import (
	"errors"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
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
		h.cameAt(facts, now.Wall.UnixMilli())
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
	if h.m.ShowsMore(from) {
		s.taken(h, from)
		s.answered(h, from, wire.Acknowledge, true)
	}
	s.acknowledge(h, from, err != nil || added == 0 || f.More || len(f.Definition) > 0)
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
	case errors.Is(err, errMayNotBegin):
		s.refuseBeginning(from, f.Instance, err)
		return nil, nil
	case errors.Is(err, errUnfit):
		s.batch.refusals = append(s.batch.refusals,
			refusalTo{from, wire.Refusal{Instance: f.Instance, Why: wire.RefusedUnfit}})
		return nil, err
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
		s.taken(h, from)
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

// taken notes that a peer holds an instance.
func (s *shard) taken(h *held, p workflow.PartnerID) {
	delete(h.refused, p)
	s.n.call(s.n.lineup.Leave(p, h.id))
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
		if h.m.Incarnation() != s.n.life.incarnation() {
			return nil, nil // it is loaded again
		}
		return h, nil // somebody else signs with this key: nothing more is written, and others get what is here
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
	if more && h.unshared {
		s.tellShared(h)
	}
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

// takeRefusal notes that a partner has no room for an instance: it is sent again
// later, and people see it meanwhile.
func (s *shard) takeRefusal(from workflow.PartnerID, r wire.Refusal) error {
	h := s.held[r.Instance]
	if h == nil && r.Why == wire.TakesFacts {
		return s.takesNow(from, r.Instance)
	}
	if h == nil || !h.m.Involved(from) {
		return nil
	}
	if r.Why == wire.RefusedClosed {
		return s.takeClosing(from, h, r)
	}
	if r.Why == wire.RefusedFacts {
		h.m.Refused(from, r.Author, s.moment())
		s.touch(h)
		return nil
	}
	if r.Why == wire.TakesFacts {
		if h.m.Taken(from, r.Author) {
			s.lacks(h, from, h.pending[from])
		}
		return nil
	}
	if r.Why == wire.RefusedLives {
		if h.m.Lives(s.n.member.ID()) >= fact.MaxChains { // else it is not so
			s.n.retention.tooManyLives(h, from)
		}
		return nil
	}
	s.refusedFor(h, from, r.Why)
	return nil
}

// takesNow has an ended instance that is not in memory any more compared with a partner that
// now has room for what it had refused.
func (s *shard) takesNow(from workflow.PartnerID, id workflow.InstanceID) error {
	sum, known := s.n.index.Get(id)
	if !known || !sum.Settled || s.putOff(id) || !s.n.retention.mayCompare(from, sum) {
		return nil
	}
	return s.compare(from, id)
}

// proveAgain is how long a peer that names facts of ours which are not here is not
// asked for them once more.
const proveAgain = 30 * time.Second

// doubt deals with a peer that names facts of this node's own which are not here.
// If that is true, this store went back in time; but saying so costs a liar
// nothing. So the peer is told what is here, which has the holders of the facts
// send them: only our own signature proves that we wrote them.
func (s *shard) doubt(h *held, from workflow.PartnerID) {
	now := s.n.clock.Now().Awake
	asked, before := h.doubts[from]
	if before && now < asked+proveAgain {
		return
	}
	if before {
		s.n.refuse("claim-unproved", from)
	}
	if h.doubts == nil {
		h.doubts = map[workflow.PartnerID]time.Duration{}
	}
	h.doubts[from] = now
	s.sendHeads(from, h.m.Instance(), wire.Ask)
}
