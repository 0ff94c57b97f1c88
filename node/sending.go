package node

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// send has p brought up to date on an instance, as far as it is not under way.
func (s *shard) send(out *outbox, h *held, p workflow.PartnerID) {
	if !s.n.up(p) {
		h.m.Away(p) // until it greets
		return
	}
	if h.wantsNoMore(p, s.now.Awake) {
		return
	}
	b := h.m.Outgoing(p, wire.MaxFacts/2, s.moment())
	if b == nil {
		return
	}
	if s.n.log.Enabled(context.Background(), slog.LevelDebug) {
		s.n.log.Debug("send", "to", s.n.people.name(p), "facts", len(b.Facts), "newest", b.Describe(), "first", b.First)
	}
	if b.SaysAll {
		s.acks.said(b.Instance, p)
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
		if f := h.pending[p]; s.n.up(p) && !h.wantsNoMore(p, s.now.Awake) && s.forget(h, p, f) {
			s.n.count("resent", 1)
			s.send(out, h, p)
		}
	}
}

// compareAll tells connected partners what is here of every instance that is to be
// compared with them.
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

// compareOne tells those what is here of an instance with whom it is to be compared, as far as they are meant.
func (s *shard) compareOne(out *outbox, id workflow.InstanceID, h *held, meant func(workflow.PartnerID) bool) {
	for _, p := range h.m.Audience() {
		if p != s.n.member.ID() && meant(p) && s.n.up(p) && h.m.Compares(p) && !h.wantsNoMore(p, s.now.Awake) {
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

// tellHeads tells p what is durable here of these instances.
func (s *shard) tellHeads(out *outbox, p workflow.PartnerID, ids []workflow.InstanceID, mode wire.HeadsMode) {
	for _, id := range each(ids) {
		w := wire.Heads{Instance: id, Incarnation: s.n.life.incarnation(), Mode: mode}
		whole := s.contained(id, func() {
			if h := s.held[id]; h != nil && h.m.Involved(p) {
				w.Heads = h.m.Heads()
			}
		})
		if whole {
			s.acks.said(id, p)
			out.heads(p, w)
		}
	}
}

// acknowledge says to a partner, after the commit, what is durable here of an instance; facts may do so before.
func (s *shard) acknowledge(h *held, p workflow.PartnerID, now bool) {
	s.batch.acks = append(s.batch.acks, ackTo{h, p, now})
}

// acknowledgeAll has nobody wait any longer.
func (s *shard) acknowledgeAll() {
	s.those(maps.Keys(s.acks.owed), func(id workflow.InstanceID, h *held) {
		for _, p := range s.acks.owed[id] {
			s.acknowledge(h, p, true)
		}
	})
}

// tellOwed tells all who are owed it what is durable here of an instance.
func (s *shard) tellOwed(out *outbox, id workflow.InstanceID) {
	owed := s.acks.owed[id]
	delete(s.acks.owed, id)
	if s.held[id] == nil {
		return // it was set aside, or lost: the partner sends again what it sent
	}
	for _, p := range owed {
		s.tellHeads(out, p, []workflow.InstanceID{id}, wire.Acknowledge)
	}
}

// oweThose notes who is to hear what is durable since this round, before facts are sent that may say it.
func (s *shard) oweThose(b *batch) {
	for _, x := range b.acks {
		s.acks.owe(x.h.id, x.to, s.now.Awake)
	}
	for _, x := range b.ready {
		if x.ended {
			s.contained(x.h.id, func() { s.oweEnd(x.h) })
		}
	}
}

// tellOwedNow tells those who are owed it and wait for it. Of what has ended all hear: nothing is written about it that
// would say so, and it may leave the memory.
func (s *shard) tellOwedNow(out *outbox, b *batch) {
	for _, x := range b.acks {
		if x.now || !x.h.running() {
			s.tellOwed(out, x.h.id)
		}
	}
	for _, x := range b.ready {
		if !x.h.running() {
			s.tellOwed(out, x.h.id)
		}
	}
}

// oweEnd has all who take part hear that this node knows of an instance's end. Each has it leave its memory when it has
// heard so of all others: if they had to ask, it would be read again for that where it has left already.
func (s *shard) oweEnd(h *held) {
	for _, p := range h.m.Audience() {
		if p != s.n.member.ID() && s.n.up(p) && !h.wantsNoMore(p, s.now.Awake) {
			s.acks.owe(h.id, p, s.now.Awake)
		}
	}
}

// tellDue tells those for whom no facts came that would have said it.
func (s *shard) tellDue(now time.Duration) {
	ids := s.acks.due(now)
	if len(ids) == 0 {
		return
	}
	out := s.n.newOutbox()
	for _, id := range ids {
		s.tellOwed(out, id)
	}
	out.flush()
}

// compare has an ended instance read again and compared with a partner.
func (s *shard) compare(p workflow.PartnerID, id workflow.InstanceID) error {
	h, err := s.find(id)
	if err != nil {
		return err
	}
	s.sendHeads(p, id, wire.Ask)
	s.touch(h)
	return nil
}
