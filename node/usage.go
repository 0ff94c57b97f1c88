package node

import (
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// What instances in memory weigh, by the authors of their facts, in bytes. It is an
// estimate of what they take: a fact weighs its bytes twice, as they came and decoded,
// and what is kept beside them; an instance what its tasks need, which counts for its
// initiator.
const (
	factWeight     = 1 << 10
	taskWeight     = 2 << 10
	instanceWeight = 8 << 10
	byteWeight     = 2
)

// usage is what the instances in memory weigh.
type usage struct {
	mu  sync.Mutex // guards what follows
	of  map[workflow.PartnerID]weight
	all int64
}

// weight is what there is of an author in memory, and of that its facts without those that
// made instances: what a liar may tell each partner otherwise. An instance has one genesis.
type weight struct{ all, told int64 }

func (w weight) less(o weight) weight { return weight{w.all - o.all, w.told - o.told} }

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
	h.m.Authored(func(p workflow.PartnerID, facts, bytes int) {
		all := factsWeigh(facts, bytes)
		is := weight{all, all}
		if p == h.sum.By {
			is.all += int64(h.def.weight())
			is.told -= factsWeigh(1, h.m.GenesisSize())
		}
		u.add(p, is.less(was[p]))
		was[p] = is
	})
}

// factsWeigh is what so many facts with so many bytes weigh.
func factsWeigh(facts, bytes int) int64 { return int64(facts)*factWeight + int64(bytes)*byteWeight }

// add adds to what an author's facts weigh. The caller holds u.mu.
func (u *usage) add(p workflow.PartnerID, w weight) {
	u.all += w.all
	is := u.of[p]
	if is = (weight{is.all + w.all, is.told + w.told}); is == (weight{}) {
		delete(u.of, p)
		return
	}
	u.of[p] = is
}

// beside is what a member's facts weigh, and those of all but this node itself.
func (u *usage) beside(p, self workflow.PartnerID) (its weight, others int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.of[p], u.all - u.of[self].all
}

// weight is what an instance of a definition weighs without its facts.
func (d *definition) weight() int { return instanceWeight + len(d.def.Tasks)*taskWeight }

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

// weigh counts what an instance weighs now, if it has more facts than before.
func (s *shard) weigh(h *held) {
	id, before := h.m.Instance(), h.weighed
	if h.weighed = h.m.Len(); h.weighed == before {
		return
	}
	if was := s.weighed[id]; before > 0 && was != nil {
		s.n.usage.grow(was, h)
		return
	}
	is := h.weights() // it was loaded just now, perhaps with less than it had
	s.n.usage.change(s.weighed[id], is)
	s.weighed[id] = is
}

// weighAgain counts the instances that are no more in memory, and what this node
// wrote itself since. What was refused for want of room is taken as soon as there is room.
func (s *shard) weighAgain() {
	for id, was := range s.weighed {
		if s.held[id] == nil {
			s.n.usage.change(was, nil)
			delete(s.weighed, id)
		}
	}
	for _, h := range s.held {
		s.weigh(h)
	}
	refuses := func(h *held) bool { return h.m.Refuses() }
	s.only(refuses, func(_ workflow.InstanceID, h *held) { s.takeAgain(h.m) })
}

// weighEvery is how often all instances in memory are weighed.
const weighEvery = time.Second

// left is for how many bytes more of a member's facts there is room: within its own share of
// memory and disk, and what all others together may fill.
func (x *instances) left(p workflow.PartnerID) int {
	l, self := x.config.Limits, x.member.ID()
	stored, storedOthers := x.index.stored(p, self)
	mine, others := x.usage.beside(p, self)
	return int(max(min(
		(shareOf(l.Memory)-mine.all)/byteWeight, (othersOf(l.Memory)-others)/byteWeight,
		shareOf(l.Disk)-mine.all-stored, othersOf(l.Disk)-others-storedOthers, math.MaxInt32), 0))
}

// leftAmong is for how many bytes more of a member's facts there is room in an instance of
// so many partners: as left says, and within its part of what may be named by others. It may
// tell each of them something else, and what all of them took in so has to fit at each,
// beside what the rest of them say. One largest fact goes in all the same.
func (x *instances) leftAmong(p workflow.PartnerID, partners int) int {
	mine, _ := x.usage.beside(p, x.member.ID())
	apart := max(choreo.PartOf(namedOf(x.config.Limits.Memory), partners), factsWeigh(1, choreo.MaxFact))
	return min(x.left(p), int(max((apart-mine.told)/byteWeight, 0)))
}

// namedOf is how much of a limit others may fill with what is beyond its author's share.
func namedOf(limit int64) int64 { return limit / 2 }

// spare is for how many bytes more there is room of what is beyond its author's share,
// and named by others: while all others fill less than half. So two members that lie
// and name each other's facts leave room for a third.
func (x *instances) spare() int {
	l, self := x.config.Limits, x.member.ID()
	_, storedOthers := x.index.stored(self, self)
	_, others := x.usage.beside(self, self)
	return int(max(min((namedOf(l.Memory)-others)/byteWeight, namedOf(l.Disk)-others-storedOthers, math.MaxInt32), 0))
}

// tooLarge refuses what would make an instance larger than this node takes: beyond
// that nobody's facts are taken in, since two members that lie can name each other's.
func (s *shard) tooLarge(h *held, from workflow.PartnerID, facts []choreo.Received) *noRoom {
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
	return &noRoom{wire.RefusedLarge, from}
}

// limit sets what an instance takes in of its authors now.
func (s *shard) limit(m *choreo.Machine) {
	l, partners := s.n.config.Limits, len(m.Genesis().Body.Genesis.Succession)
	m.Limit(choreo.Shares{
		Facts: min(shareOf(l.Facts), choreo.PartOf(l.Facts, partners)),
		Bytes: int(min(shareOf(l.Bytes), max(choreo.PartOf(l.Bytes, partners), choreo.MaxFact))),
		Left:  func(p workflow.PartnerID) int { return s.n.leftAmong(p, partners) },
		Spare: s.n.spare,
	})
}
