package node

import (
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/node/quota"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// A partner is not sent again for refusedPause what it has no room for. What its
// initiator has written may leave the memory there as soon as the instances that have
// ended were compared (antiEntropy): so of that the first pauses are shorter, each
// twice the one before.
const (
	refusedPause = 5 * time.Minute
	heavyPause   = 5 * time.Second
)

// refuseInstance tells the sender why an instance is not taken in. It counts against
// its initiator: others only pass it on.
func (s *shard) refuseInstance(to workflow.PartnerID, id workflow.InstanceID, e *quota.NoRoom) {
	s.n.refuse(e.Reason(), e.By)
	s.batch.refusals = append(s.batch.refusals, refusalTo{to, wire.Refusal{Instance: id, Why: e.Why}})
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

// refusedFor notes that a partner does not take an instance in for now. If its turn has come
// there since it was sent, it is sent again at once.
func (s *shard) refusedFor(h *held, from workflow.PartnerID, why wire.RefusedWhy) {
	if id := h.m.Instance(); !waitsForRoom(why) {
		s.n.call(s.n.lineup.Leave(from, id))
	} else if f := h.pending[from]; s.n.lineup.Refuse(from, id) && (f == nil || !f.next) {
		s.sendAgain(h, from)
		return
	}
	if h.refused == nil {
		h.refused = map[workflow.PartnerID]refusedAt{}
	}
	now, was, pause := s.now, h.refused[from], refusedPause
	switch {
	case why == wire.RefusedHeavy && now.Awake < was.until:
		return // it answers what was under way
	case why == wire.RefusedHeavy:
		pause = min(max(2*was.pause, heavyPause), refusedPause)
	}
	h.refused[from] = refusedAt{why, now.Wall, pause, now.Awake + pause + s.n.spread(pause/4)}
}

// wantsNoMore reports whether a partner said that it keeps only an instance's summary, or
// lately that it has no room for it.
func (s *shard) wantsNoMore(h *held, p workflow.PartnerID) bool {
	if _, closed := h.closedBy[p]; closed {
		return true
	}
	return len(h.refused) > 0 && s.now.Awake < h.refused[p].until
}
