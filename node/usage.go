package node

import (
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/node/library"
	"github.com/mutirao-mesh/mutirao/node/quota"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// What instances in memory weigh, by the authors of their facts, in bytes. It is an
// estimate of what they take: a fact weighs its bytes twice, as they came and decoded,
// and what is kept beside them; an instance what its tasks need, which counts for its
// initiator.
//
// What was taken in has room to go on: with an instance a node takes in what the holders of
// its tasks will write (expect). The initiator pays for that, out of its share: so facts
// within what is expected of their author go in although its share is full, and nobody's
// geneses take of another's share. Else instances that were begun at once could grow in
// lockstep until the share of the partner that performs most of their tasks is full, and
// none of them would ever end and make room. What an author writes beyond that, and all
// that it writes into what has ended, is its own.
const (
	factWeight     = 1 << 10
	taskWeight     = 2 << 10
	instanceWeight = 8 << 10
	byteWeight     = 2
	// heldWeight is what a holder is expected to write about one task, its start and its
	// success: those of a task with a short result weigh 2.8 KiB.
	heldWeight = 4 << 10
)

// usage is what the instances in memory weigh.
type usage struct {
	mu  sync.Mutex // guards what follows
	of  map[workflow.PartnerID]weight
	all weight
}

// weight is what there is in memory that counts for a member.
type weight struct {
	all int64
	// wrote is what it wrote itself, without what made instances and what was expected: what a liar
	// may tell each partner otherwise. An instance has one genesis.
	wrote int64
	// open is what is expected in the instances that it began, and not there yet.
	open int64
}

func (w weight) plus(o weight) weight {
	return weight{w.all + o.all, w.wrote + o.wrote, w.open + o.open}
}
func (w weight) less(o weight) weight {
	return weight{w.all - o.all, w.wrote - o.wrote, w.open - o.open}
}

// reserved is how much of a member's share is taken, or promised to instances that it began.
func (w weight) reserved() int64 { return w.all + w.open }

func newUsage() *usage { return &usage{of: map[workflow.PartnerID]weight{}} }

// change takes away what something weighed and adds what it weighs now.
func (u *usage) change(was, is map[workflow.PartnerID]weight) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for p, w := range was {
		u.add(p, weight{}.less(w))
	}
	for p, w := range is {
		u.add(p, w)
	}
}

// grow counts what an instance weighs more than it was counted with, and notes that there.
func (u *usage) grow(was map[workflow.PartnerID]weight, h *held) {
	u.mu.Lock()
	defer u.mu.Unlock()
	by := h.sum.By
	initiator := weight{all: int64(weightOf(h.def)), open: h.expected.all}
	h.m.Authored(func(p workflow.PartnerID, facts, bytes int) {
		all := factsWeigh(facts, bytes)
		if p == by {
			genesis := factsWeigh(1, h.m.GenesisSize())
			all -= genesis
			initiator.all += genesis
		}
		within := min(all, h.expected.of[p])
		initiator = initiator.plus(weight{all: within, open: -within})
		beyond := weight{all: all - within, wrote: all - within}
		if p == by {
			initiator = initiator.plus(beyond)
			return
		}
		u.add(p, beyond.less(was[p]))
		was[p] = beyond
	})
	if !h.running() {
		initiator.open = 0
	}
	u.add(by, initiator.less(was[by]))
	was[by] = initiator
}

// running reports whether an instance has not ended, as was known in the last round.
func (h *held) running() bool { return h.sum.State == "" || h.sum.State == workflow.InstanceRunning }

// expected is what others that take part in an instance from its start are to write, by
// partner and in all.
type expected struct {
	of  map[workflow.PartnerID]int64
	all int64
}

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

// begunWeight is what an instance weighs as it begins.
func begunWeight(def *library.Definition, m *choreo.Machine) int64 {
	return int64(weightOf(def)) + factsWeigh(1, m.GenesisSize())
}

// factsWeigh is what so many facts with so many bytes weigh.
func factsWeigh(facts, bytes int) int64 { return int64(facts)*factWeight + int64(bytes)*byteWeight }

// add adds to what counts for a member. The caller holds u.mu.
func (u *usage) add(p workflow.PartnerID, w weight) {
	u.all = u.all.plus(w)
	is := u.of[p].plus(w)
	if is == (weight{}) {
		delete(u.of, p)
		return
	}
	u.of[p] = is
}

// beside is what counts for a member, and for all but this node itself.
func (u *usage) beside(p, self workflow.PartnerID) (its, others weight) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.of[p], u.all.less(u.of[self])
}

// most is the most that counts for a member, this node itself apart.
func (u *usage) most(self workflow.PartnerID) (most int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for p, w := range u.of {
		if p != self {
			most = max(most, w.reserved())
		}
	}
	return most
}

// weightOf is what an instance of a definition weighs without its facts.
func weightOf(d *library.Definition) int { return instanceWeight + len(d.Def.Tasks)*taskWeight }

// weights are what an instance in memory weighs.
func (h *held) weights() map[workflow.PartnerID]weight {
	out := map[workflow.PartnerID]weight{}
	newUsage().grow(out, h)
	return out
}

// sizes are the bytes of each of the audience, as a summary has them.
func (h *held) sizes(audience []workflow.PartnerID) string {
	of := map[workflow.PartnerID]int{}
	h.m.Authored(func(p workflow.PartnerID, _, bytes int) { of[p] = bytes })
	var b []byte
	for _, p := range audience {
		b = strconv.AppendInt(append(b, ' '), int64(of[p]), 10)
	}
	return string(b)
}

// maxStrangers bounds how many partners the summary of an ended instance names that are
// not on the partner list and wrote nothing.
const maxStrangers = 64

// named are those of an instance's audience whom its summary names. Whoever takes part can
// bring in as many partners as it likes that do not exist, and each fact that comes after
// the end has the summary stored once more. A partner that is left out though it exists is compared
// with all the same, since its digest differs.
func (h *held) named(audience []workflow.PartnerID, known func(workflow.PartnerID) bool) (out []workflow.PartnerID) {
	strangers := 0
	for _, p := range audience {
		if facts, _ := h.m.AuthoredBy(p); facts == 0 && !known(p) {
			if strangers++; strangers > maxStrangers {
				continue
			}
		}
		out = append(out, p)
	}
	return out
}

// weighed is what an instance was weighed with.
type weighed struct {
	facts int
	runs  bool
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
	delete(s.held, id)
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

// namedOf is how much of a limit others may fill with what is beyond its author's share.
func namedOf(limit int64) int64 { return limit / 2 }

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
