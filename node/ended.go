package node

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/node/closings"
	"github.com/mutirao-mesh/mutirao/node/ration"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Instances that have ended and that all are known to have whole are not in
// memory, and nobody compares them any more. A store that was put back from a
// backup may hold one of them as it was before the end. So with every contact,
// and at intervals, two partners compare a digest of all ended instances that they
// share; where it differs they compare the newest of them as they would any other. What
// differs although it was compared may do so for good, as where one of them has an instance
// set aside: it is compared again ever less often, until one of the digests changes.

// maxCompared bounds how many ended instances one contact has compared.
const maxCompared = 256

// ended is an ended instance that is shared with a partner.
type ended struct {
	id  workflow.InstanceID
	sum summary
}

// over reports whether an instance has ended, as far as something is known of it.
func (sum *summary) over() bool { return sum.State != "" && sum.State != workflow.InstanceRunning }

// shared are the ended instances in which a partner takes part, the newest first, at most so many.
func (x *index) shared(p workflow.PartnerID, most int) (out []ended) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.roll.ended.Ascend(func(at rank) bool {
		x.steps++
		if sum := x.all[at.id]; slices.Contains(strings.Fields(sum.With), string(p)) {
			out = append(out, ended{at.id, sum})
		}
		return len(out) < most
	})
	return out
}

// change changes what is known of an instance, and with it the digests and where it stands in lists. The
// caller holds x.mu.
func (x *index) change(id workflow.InstanceID, fn func()) {
	x.digest(id)
	was := x.all[id]
	x.roll.leave(id, was)
	x.countPart(id, -1)
	if was.By == "" {
		x.countParts(id, -1) // it may become known who began it
	}
	fn()
	if was.By == "" {
		x.countParts(id, 1)
	}
	x.countPart(id, 1)
	x.digest(id)
	if sum, listed := x.all[id]; listed {
		_, aside := x.aside[id]
		x.roll.enter(id, sum, x.open(id), aside)
	}
}

// digest adds an instance to the digests, or takes it out of them again. One that is set
// aside is to be compared, and so left out, unless this program failed at it: then what is
// stored of it is whole.
func (x *index) digest(id workflow.InstanceID) {
	sum := x.all[id]
	q, aside := x.aside[id]
	if aside && (!q.fault || q.Lost) || !sum.over() {
		return
	}
	for _, p := range strings.Fields(sum.With) {
		x.digests[workflow.PartnerID(p)] = closings.Xored(x.digests[workflow.PartnerID(p)], sum.Facts)
	}
}

// gone adds the instances of which only summaries are kept: partners may have all of
// them, and the digests are to be the same.
func (x *index) gone(digests map[workflow.PartnerID]closings.Digest) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for p, d := range digests {
		x.digests[p] = closings.Xored(x.digests[p], d)
	}
}

// endedWith is the digest of the ended instances that are shared with a partner.
func (x *index) endedWith(p workflow.PartnerID) []byte {
	x.mu.Lock()
	defer x.mu.Unlock()
	d := x.digests[p]
	return d[:]
}

// Greet says which ended instances are shared with a partner, as a digest.
func (t *retention) Greet(p workflow.PartnerID, m *wire.Message) { m.Ended = t.index.endedWith(p) }

// Take compares what a partner says of the ended instances that it shares
// with this node.
func (t *retention) Take(p workflow.PartnerID, m *wire.Message) {
	l, _ := t.link(p)
	if len(m.Ended) == 0 || l == nil || !l.differs(t.index.endedWith(p), m.Ended, t.clock.Now().Awake) {
		return
	}
	for _, x := range t.index.shared(p, maxCompared) {
		if !t.mayCompare(p, x.sum) {
			l.compareSoon()
			return // the digests differ still when it tells its own again
		}
		s := t.crew.shardOf(x.id)
		t.crew.post(s, event{
			of: x.id, from: p, apply: func(s *shard) error { return s.compare(p, x.id) },
			after: s.n.logRefusal(p, x.id),
		})
	}
}

// differing are two digests of the ended instances shared with a partner, which differ.
type differing struct {
	ours, its string
	due       time.Duration // Awake from which on the instances are compared again
	pause     time.Duration // from comparing them until then
}

// The pause after ended instances were compared, doubled each time while both digests stay
// as they are.
const (
	firstEndedPause = antiEntropy
	maxEndedPause   = time.Hour
)

// differs reports whether digests differ and it is time to compare what they are of.
func (l *link) differs(ours, its []byte, now time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if bytes.Equal(ours, its) {
		l.ended = nil
		return false
	}
	d := l.ended
	if d == nil || d.ours != string(ours) || d.its != string(its) {
		l.ended = &differing{string(ours), string(its), now + firstEndedPause, firstEndedPause}
		return true
	}
	if now < d.due {
		return false
	}
	d.pause = min(2*d.pause, maxEndedPause)
	d.due = now + d.pause
	return true
}

// compareSoon has no pause kept, as not all could be compared.
func (l *link) compareSoon() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = nil
}

// compare has an ended instance read again and compared with a partner.
func (s *shard) compare(p workflow.PartnerID, id workflow.InstanceID) error {
	h, err := s.find(id)
	if err != nil {
		return err
	}
	s.sendHeads(p, id, wire.Ask)
	s.touch(h)
	return nil
}

// mayCompare reports whether a partner may have an ended instance read now.
func (t *retention) mayCompare(p workflow.PartnerID, sum summary) bool {
	much := min(1+int(sum.Number/comparingFacts), maxCompared)
	if t.comparing.Spend(p, much, t.clock.Now().Awake) {
		return true
	}
	t.refuse("comparisons-too-fast", p)
	return false
}

// comparingRation is in ended instances, and in facts of them by comparingFacts.
var comparingRation = ration.Ration{Burst: 4 * maxCompared, Each: 100 * time.Millisecond}

// comparingFacts is how many facts of an ended instance are one more to be paid.
const comparingFacts = 64
