package node

import (
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file says which participants an ended instance waits for.

// unanswered is how long a partner is connected, or not on the partner list, until
// it is not waited for any more.
const unanswered = time.Hour

// mindSilence notes, every now and then (antiEntropy), who does not answer about an
// ended instance, and has the instance looked at when it waits for somebody less.
func (s *shard) mindSilence(h *held) {
	if h.sum.State == "" || h.sum.State == workflow.InstanceRunning {
		h.silent, h.excused = nil, 0
		return
	}
	excused := 0
	for _, p := range h.m.Audience() {
		switch {
		case p == s.n.member.ID():
		case s.n.people.Evicted(p):
			excused++
		case !h.m.Behind(p):
			delete(h.silent, p)
		default:
			if s.n.up(p) || !s.n.people.Known(p) {
				if h.silent == nil {
					h.silent = map[workflow.PartnerID]time.Duration{}
				}
				h.silent[p] = min(h.silent[p]+antiEntropy, unanswered)
			}
			if h.silent[p] >= unanswered {
				excused++
			}
		}
	}
	if excused != h.excused {
		h.excused = excused
		s.touch(h)
	}
}

// awaited reports whether a participant that may lack something of an ended instance
// is waited for, and whether it is only not waited for as it does not answer.
func (s *shard) awaited(h *held, p workflow.PartnerID) (yes, unheard bool) {
	_, closed := h.closedBy[p]
	if p == s.n.member.ID() || closed || !h.m.Behind(p) || s.n.people.Evicted(p) {
		return false, false
	}
	unheard = h.silent[p] >= unanswered
	return !unheard, unheard
}
