package node

import (
	"strings"

	"github.com/mutirao-mesh/mutirao/node/closings"
	"github.com/mutirao-mesh/mutirao/node/filing"
	"github.com/mutirao-mesh/mutirao/node/index"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// summarise says how the instance stands, for lists and for the next start.
func (s *shard) summarise(h *held) index.Summary {
	sum := h.sum
	if sum.Settled && h.settledAt == h.m.Len() {
		return sum
	}
	sum.State, sum.Uses = h.m.Overall(), usedBy(h.m)
	sum.Filed = filing.HasFiles(h.m.Definition()) && !filing.HasFiles(h.def.Def)
	if sum.State == workflow.InstanceRunning {
		sum.Ended, sum.Age, sum.Settled, sum.Facts, sum.With, sum.Number, sum.Open = 0, 0, false, closings.Digest{}, "",
			0, false
		sum.Sizes, sum.Late, sum.Unanswered = "", false, false
		sum.Done, sum.Tasks, sum.Needs, sum.Holders, sum.People, sum.Subject = 0, 0, "", "", "", ""
		return sum
	}
	sum.Subject = h.subject()
	needs, holders := s.n.view.Standing(h.shown())
	sum.Needs, sum.Holders = index.StoreNeeds(needs), strings.Join(texts(holders), " ")
	audience := h.m.Audience()
	ended := sum.Ended
	if h.digested != h.m.Len() || ended == 0 { // these follow from its facts alone
		h.digested = h.m.Len()
		sum.Done, sum.Tasks, _ = h.m.Progress()
		sum.People = index.StoreDone(h.m.PeoplesWork())
		with := h.named(audience, s.n.people.Known)
		sum.Facts, sum.With, sum.Number = h.m.Digest(), strings.Join(texts(with), " "), uint64(h.m.Len())
		sum.Sizes = h.sizes(with)
		ended = min(max(h.m.Ended(), 1), wire.MaxWall)
	}
	// A block or a failure may lift in the round in which all is done: that is the end which counts.
	if sum.Ended == 0 || sum.State != h.sum.State || sum.Done != h.sum.Done {
		sum.Age = s.n.retention.closings.Age()
	}
	sum.Ended = ended
	if !sum.Late && h.late(s.n.people.Evicted) {
		sum.Late, sum.Age = true, s.n.retention.closings.Age()
	}
	sum.Open = h.m.Unsettled(s.n.people.Evicted) != ""
	_, part := index.ReadPart(sum.Of)
	// Its holder may yet be gone, which ends its try; or go on, and people are told of its deadline.
	undecided := (part && sum.By == s.n.member.ID() || h.m.Dated()) && s.mayGoOn(h)
	sum.Settled, sum.Unanswered = !h.m.GoesOn() && !undecided, false
	for _, p := range audience {
		waits, unheard := s.awaited(h, p)
		sum.Settled = sum.Settled && !waits
		sum.Unanswered = sum.Unanswered || unheard
	}
	if sum.Settled {
		sum.Uses = ""
	}
	return sum
}
