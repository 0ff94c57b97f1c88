package node

import (
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/node/quota"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// A partner is not sent again for refusedPause what it has no room for. What its
// initiator has written may leave the memory there as soon as the instances that have
// ended were compared (antiEntropy): so of that the first pauses are shorter, each
// twice the one before, and so they are where the user who began it may not, as far as is known there.
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

// refuseBeginning tells the initiator that its instance is not taken in, as the user who began it may not any more.
func (s *shard) refuseBeginning(to workflow.PartnerID, id workflow.InstanceID, err error) {
	s.n.refuse("instance-not-to-be-begun", to)
	s.log.Warn("instance refused", "from", to, "instance", id, "error", err)
	s.batch.refusals = append(s.batch.refusals, refusalTo{to, wire.Refusal{Instance: id, Why: wire.RefusedBeginner}})
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
	case why == wire.RefusedHeavy, why == wire.RefusedBeginner: // news of users may be on its way there
		pause = min(max(2*was.pause, heavyPause), refusedPause)
	}
	since := now.Wall
	if was.why == why && !was.since.IsZero() {
		since = was.since
	}
	h.refused[from] = refusedAt{why, now.Wall, since, pause, now.Awake + pause + s.n.spread(pause/4)}
	h.tellElsewhere()
}

// beginAgain sends an instance again to those that refused it as its user may not begin it: that may have changed.
func (s *shard) beginAgain(h *held) {
	for p, r := range h.refused {
		if r.why == wire.RefusedBeginner && s.n.up(p) {
			s.sendAgain(h, p)
		}
	}
}

// takeAgain tells those whose facts were refused for want of room that there is room now.
func (s *shard) takeAgain(m *choreo.Machine) {
	for _, t := range m.Takes() {
		s.batch.refusals = append(s.batch.refusals,
			refusalTo{t.From, wire.Refusal{Instance: m.Instance(), Why: wire.TakesFacts, Author: t.Author}})
	}
	s.refuses = s.refuses || m.Refuses()
}
