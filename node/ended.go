package node

import (
	"bytes"
	"cmp"
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
// share; where it differs they compare the newest of them as they would any other.

// maxCompared bounds how many ended instances one contact has compared.
const maxCompared = 256

// ended is an ended instance that is shared with a partner.
type ended struct {
	id  workflow.InstanceID
	sum summary
}

// shared are the ended instances in which a partner takes part, in any order.
func (x *index) shared(p workflow.PartnerID) []ended {
	x.mu.Lock()
	defer x.mu.Unlock()
	var out []ended
	for id, sum := range x.all {
		if _, aside := x.aside[id]; !aside && sum.State != workflow.InstanceRunning && slices.Contains(strings.Fields(sum.With), string(p)) {
			out = append(out, ended{id, sum})
		}
	}
	return out
}

// change changes what is known of an instance, and the digests with it. The caller
// holds x.mu.
func (x *index) change(id workflow.InstanceID, fn func()) {
	x.digest(id)
	fn()
	x.digest(id)
}

// digest adds an instance to the digests, or takes it out of them again.
func (x *index) digest(id workflow.InstanceID) {
	sum := x.all[id]
	if _, aside := x.aside[id]; aside || sum.State == "" || sum.State == workflow.InstanceRunning {
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
	digest := m.Ended
	if len(digest) == 0 || bytes.Equal(digest, t.index.endedWith(p)) {
		return
	}
	all := t.index.shared(p)
	slices.SortFunc(all, func(a, b ended) int { // the newest first
		return cmp.Or(cmp.Compare(b.sum.Ended, a.sum.Ended), a.id.Compare(b.id))
	})
	for _, x := range all[:min(len(all), maxCompared)] {
		if !t.mayCompare(p, x.sum) {
			return // the digests differ still when it tells its own again
		}
		t.crew.post(t.crew.shardOf(x.id), event{apply: func(s *shard) error { return s.compare(p, x.id) }, after: t.logRefusal(p)})
	}
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
