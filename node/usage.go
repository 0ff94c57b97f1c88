package node

import (
	"strconv"
	"sync"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/node/library"
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
	instanceWeight = 9 << 10
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

// namedOf is how much of a limit others may fill with what is beyond its author's share.
func namedOf(limit int64) int64 { return limit / 2 }
