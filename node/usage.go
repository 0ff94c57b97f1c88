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
	of  map[workflow.PartnerID]int64
	all int64
}

func newUsage() *usage { return &usage{of: map[workflow.PartnerID]int64{}} }

// change takes away what something weighed and adds what it weighs now.
func (u *usage) change(was, is map[workflow.PartnerID]int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for p, w := range was {
		u.add(p, -w)
	}
	for p, w := range is {
		u.add(p, w)
	}
}

// grow counts what an instance weighs more than it was counted with, and notes that there.
func (u *usage) grow(was map[workflow.PartnerID]int64, h *held) {
	u.mu.Lock()
	defer u.mu.Unlock()
	h.m.Authored(func(p workflow.PartnerID, facts, bytes int) {
		is := int64(facts)*factWeight + int64(bytes)*byteWeight
		if p == h.sum.By {
			is += int64(h.def.weight())
		}
		u.add(p, is-was[p])
		was[p] = is
	})
}

// add adds to what an author's facts weigh. The caller holds u.mu.
func (u *usage) add(p workflow.PartnerID, w int64) {
	u.all += w
	if u.of[p] += w; u.of[p] == 0 {
		delete(u.of, p)
	}
}

// beside is what a member's facts weigh, and those of all but this node itself.
func (u *usage) beside(p, self workflow.PartnerID) (its, others int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.of[p], u.all - u.of[self]
}

// weight is what an instance of a definition weighs without its facts.
func (d *definition) weight() int { return instanceWeight + len(d.def.Tasks)*taskWeight }

// weights are what an instance in memory weighs.
func (h *held) weights() map[workflow.PartnerID]int64 {
	out := map[workflow.PartnerID]int64{}
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
		(shareOf(l.Memory)-mine)/byteWeight, (othersOf(l.Memory)-others)/byteWeight,
		shareOf(l.Disk)-mine-stored, othersOf(l.Disk)-others-storedOthers, math.MaxInt32), 0))
}

// spare is for how many bytes more there is room of what is beyond its author's share,
// and named by others: while all others fill less than half. So two members that lie
// and name each other's facts leave room for a third.
func (x *instances) spare() int {
	l, self := x.config.Limits, x.member.ID()
	_, storedOthers := x.index.stored(self, self)
	_, others := x.usage.beside(self, self)
	return int(max(min((l.Memory/2-others)/byteWeight, l.Disk/2-others-storedOthers, math.MaxInt32), 0))
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
	l := s.n.config.Limits
	m.Limit(choreo.Shares{Facts: shareOf(l.Facts), Bytes: int(shareOf(l.Bytes)), Left: s.n.left, Spare: s.n.spare})
}
