package node

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/node/lineup"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file has instances of this node sent to each partner in their turn (node/lineup).

// call has those instances sent again whose turn has come.
func (x *instances) call(called []lineup.Call) {
	for _, c := range called {
		s := x.shardOf(c.ID)
		x.postOwn(s, event{of: c.ID, apply: func(s *shard) error {
			if h := s.held[c.ID]; h != nil {
				s.sendAgain(h, c.To)
			}
			return nil
		}})
	}
}

// sendAgain sends a partner an instance that it refused before.
func (s *shard) sendAgain(h *held, p workflow.PartnerID) {
	delete(h.refused, p)
	delete(h.pending, p)
	h.m.Forget(p)
	s.supply(h, p)
}

// lineUp has the partners that are to have an instance of this node's own take it in in turn.
func (s *shard) lineUp(h *held) {
	self := s.n.member.ID()
	if h.sum.By != self || h.sum.Settled {
		return
	}
	others := slices.DeleteFunc(h.m.Audience(), func(p workflow.PartnerID) bool { return p == self })
	s.n.lineup.Put(h.m.Instance(), h.sum.Began, others)
}

// isNext reports, as a bundle is sent, whether it is the instance's turn at a partner.
func (s *shard) isNext(h *held, p workflow.PartnerID, b *choreo.Bundle) bool {
	if !b.First || h.sum.By != s.n.member.ID() {
		return false
	}
	next, called := s.n.lineup.Next(p, b.Instance, s.now.Awake)
	s.n.call(called)
	return next
}

// waitsForRoom reports whether a refusal is about room that instances which run have taken.
func waitsForRoom(why wire.RefusedWhy) bool {
	return why == wire.RefusedShare || why == wire.RefusedFull || why == wire.RefusedHeavy
}
