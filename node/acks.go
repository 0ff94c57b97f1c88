package node

import (
	"maps"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file says when a partner hears that what it sent of an instance is durable here. Facts of this node that have seen
// it say so as well (choreo.Bundle.SaysAll), and where work goes to and fro such facts follow soon. So an acknowledgement
// waits for them a little, unless somebody may wait for it.

// ackPause is how long an acknowledgement waits for facts that say it: far less than firstPause, after which the partner
// would send again what it sent.
const ackPause = 100 * time.Millisecond

// ackTo is a partner that sent something of an instance.
type ackTo struct {
	h  *held
	to workflow.PartnerID
	// now: it waits for the acknowledgement, as it sends the rest only then, does not know yet that the instance is held
	// here, or has sent it all before.
	now bool
}

// acknowledgements are those that wait.
type acknowledgements struct {
	owed  map[workflow.InstanceID][]workflow.PartnerID
	queue []dueAck // in the order in which they are due
}

// dueAck is when (Awake) what is still owed of an instance is told.
type dueAck struct {
	at time.Duration
	of workflow.InstanceID
}

// owe notes that a partner is to hear what is here of an instance.
func (a *acknowledgements) owe(id workflow.InstanceID, p workflow.PartnerID, now time.Duration) {
	if slices.Contains(a.owed[id], p) {
		return
	}
	if len(a.owed[id]) == 0 {
		a.queue = append(a.queue, dueAck{now + ackPause, id})
	}
	if a.owed == nil {
		a.owed = map[workflow.InstanceID][]workflow.PartnerID{}
	}
	a.owed[id] = append(a.owed[id], p)
}

// said notes that a partner is told what is here of an instance.
func (a *acknowledgements) said(id workflow.InstanceID, p workflow.PartnerID) {
	rest := slices.DeleteFunc(a.owed[id], func(x workflow.PartnerID) bool { return x == p })
	if len(rest) == 0 {
		delete(a.owed, id)
		return
	}
	a.owed[id] = rest
}

// pause is after what time the next one is due, at most so long.
func (a *acknowledgements) pause(now, most time.Duration) time.Duration {
	if len(a.queue) == 0 {
		return most
	}
	return min(a.queue[0].at-now, most)
}

// due takes out the instances of which those that are owed it are to be told now.
func (a *acknowledgements) due(now time.Duration) (out []workflow.InstanceID) {
	n := 0
	for ; n < len(a.queue) && a.queue[n].at <= now; n++ {
		if len(a.owed[a.queue[n].of]) > 0 {
			out = append(out, a.queue[n].of)
		}
	}
	a.queue = slices.Delete(a.queue, 0, n)
	return out
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
