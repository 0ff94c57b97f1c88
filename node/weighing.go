package node

import (
	"math"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/node/library"
	"github.com/mutirao-mesh/mutirao/node/quota"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file says for how much more there is room in memory, by what the instances there weigh (usage.go).

// expect estimates how much the other partners will write into an instance. Each partner that
// takes part from the start gets heldWeight for each task that it holds at first, and heldWeight
// once more for its verdicts, its cancellation and what it passes on. If the sum and the
// instance itself would be more than what is kept for it on its turn (partKept), all amounts
// are made smaller alike, so that they fit.
func (x *instances) expect(def *library.Definition, m *choreo.Machine) expected {
	g, parts, self := m.Genesis().Body.Genesis, def.Plan.Partitions(), x.member.ID()
	of, all := make(map[workflow.PartnerID]int64, len(g.Succession)), int64(0)
	add := func(p workflow.PartnerID, tasks int) {
		if p != self {
			of[p] += int64(tasks)
			all += int64(tasks)
		}
	}
	for _, p := range g.Succession {
		add(p, 1)
	}
	for i, a := range g.Assign { // in the order of the plan
		add(a.Partner, len(parts[i].Tasks))
	}
	free := max(x.partKept()-begunWeight(def, m), 0)
	each := min(heldWeight, free/max(all, 1))
	for p := range of {
		of[p] *= each
	}
	return expected{of, all * each}
}

// weigh counts what an instance weighs now, if it has more facts than before, or has ended.
func (s *shard) weigh(h *held) {
	id, before := h.m.Instance(), h.weighed
	if h.weighed = (weighed{h.m.Len(), h.running()}); h.weighed == before {
		return
	}
	if was := s.weighed[id]; before.facts > 0 && was != nil {
		s.n.usage.grow(was, h)
		return
	}
	is := h.weights() // it was loaded just now, perhaps with less than it had
	s.n.usage.change(s.weighed[id], is)
	s.weighed[id] = is
}

// unload takes an instance out of memory. What it weighed is free at once: ended instances are
// read again to be compared, and let go, and what comes of one of them a moment later must not
// find the room full of the others.
func (s *shard) unload(id workflow.InstanceID) {
	s.unlist(id)
	s.n.usage.change(s.weighed[id], nil)
	delete(s.weighed, id)
}

// weighAgain counts what this node wrote itself since. What was refused for want of room is
// taken as soon as there is room.
func (s *shard) weighAgain() {
	for id, h := range s.held {
		s.contained(id, func() { s.weigh(h) })
	}
	refuses := func(h *held) bool { return h.m.Refuses() }
	s.refuses = false
	s.only(refuses, func(_ workflow.InstanceID, h *held) { s.takeAgain(h.m) })
}

// weighEvery is how often all instances in memory are weighed.
const weighEvery = time.Second

// left is for how many bytes more there is room that count for a member: within its own share
// of memory and disk, and what all others together may fill.
func (x *instances) left(p workflow.PartnerID) int { return x.leftBeside(p, 0) }

// partKept is how much of a member's share of memory, and of disk where that is less, is kept
// for those of its instances whose turn it is (lineup). None may need more.
func (x *instances) partKept() int64 {
	l := x.config.Limits
	return quota.Kept(min(quota.Share(l.Memory), quota.Share(l.Disk)))
}

// roomFor tells, by an error, why there is no room for one more instance that a member began
// and that needs so much: out of turn without what is kept for those whose turn it is.
func (x *instances) roomFor(by workflow.PartnerID, next bool, needs int64) error {
	kept := x.partKept()
	if by == x.member.ID() {
		return nil
	}
	if needs > kept {
		return &quota.NoRoom{Why: wire.RefusedLarge, By: by}
	}
	if next {
		kept = 0
	}
	if int64(x.leftBeside(by, kept)) < needs/byteWeight {
		return &quota.NoRoom{Why: wire.RefusedHeavy, By: by}
	}
	return nil
}

// crowded reports whether somebody fills half of what its instances may fill out of turn. Then
// what has ended is to leave the memory soon.
func (x *instances) crowded() bool {
	return x.usage.most(x.member.ID()) > x.partKept()/2
}

// leftBeside is left beside so much that is kept.
func (x *instances) leftBeside(p workflow.PartnerID, kept int64) int {
	l, self := x.config.Limits, x.member.ID()
	stored, storedOthers := x.index.Stored(p, self)
	its, others := x.usage.beside(p, self)
	mine, all := its.reserved()+kept, others.reserved()+kept
	return int(max(min(
		(quota.Share(l.Memory)-mine)/byteWeight, (quota.Others(l.Memory)-all)/byteWeight,
		quota.Share(l.Disk)-mine-stored, quota.Others(l.Disk)-all-storedOthers, math.MaxInt32), 0))
}

// leftAmong is for how many bytes more of a member's facts there is room in an instance of
// so many partners: as left says, and within its part of what may be named by others. It may
// tell each of them something else, and what all of them took in so has to fit at each,
// beside what the rest of them say. One largest fact goes in all the same.
func (x *instances) leftAmong(p workflow.PartnerID, partners int) int {
	mine, _ := x.usage.beside(p, x.member.ID())
	apart := max(choreo.PartOf(namedOf(x.config.Limits.Memory), partners), factsWeigh(1, fact.MaxFact))
	return min(x.left(p), int(max((apart-mine.wrote)/byteWeight, 0)))
}

// spare is for how many bytes more there is room of what is beyond its author's share,
// and named by others: while all others fill less than half, and without what is expected.
// So two members that lie and name each other's facts leave room for a third.
func (x *instances) spare() int {
	l, self := x.config.Limits, x.member.ID()
	_, stored := x.index.Stored(self, self)
	_, others := x.usage.beside(self, self)
	most := func(limit int64) int64 { return min(namedOf(limit)-others.all, quota.Others(limit)-others.reserved()) }
	return int(max(min(most(l.Memory)/byteWeight, most(l.Disk)-stored, math.MaxInt32), 0))
}

// tooLarge refuses what would make an instance larger than this node takes: beyond
// that nobody's facts are taken in, since two members that lie can name each other's.
func (s *shard) tooLarge(h *held, from workflow.PartnerID, facts []fact.Received) *quota.NoRoom {
	l, all, bytes := s.n.config.Limits, h.m.Len(), 0
	h.m.Authored(func(_ workflow.PartnerID, _, of int) { bytes += of })
	for _, f := range facts {
		if !h.m.Has(f.ID) {
			all, bytes = all+1, bytes+len(f.Raw)
		}
	}
	if all <= l.Facts && int64(bytes) <= l.Bytes {
		return nil
	}
	return &quota.NoRoom{Why: wire.RefusedLarge, By: from}
}

// limit sets what an instance takes in of its authors now.
func (s *shard) limit(h *held) {
	l, partners := s.n.config.Limits, len(h.m.Genesis().Body.Genesis.Succession)
	h.m.Limit(choreo.Shares{
		Facts: min(quota.Share(l.Facts), choreo.PartOf(l.Facts, partners)),
		Bytes: int(min(quota.Share(l.Bytes), max(choreo.PartOf(l.Bytes, partners), fact.MaxFact))),
		Left:  func(p workflow.PartnerID) int { return s.leftIn(h, p, partners) },
		Spare: s.n.spare,
		Each:  factWeight / byteWeight,
	})
}

// leftIn is for how many bytes more of a member's facts there is room in an instance: as
// leftAmong says, and for what is expected of it there, as long as it runs.
func (s *shard) leftIn(h *held, p workflow.PartnerID, partners int) int {
	left, comes := s.n.leftAmong(p, partners), h.expected.of[p]
	if comes == 0 || !h.running() {
		return left
	}
	wrote := factsWeigh(h.m.AuthoredBy(p))
	if p == h.sum.By {
		wrote -= factsWeigh(1, h.m.GenesisSize())
	}
	return left + int(max(comes-wrote, 0)/byteWeight)
}
