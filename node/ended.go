package node

import (
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

// Greet says which ended instances are shared with a partner, as a digest.
func (t *retention) Greet(p workflow.PartnerID, m *wire.Message) { m.Ended = t.index.EndedWith(p) }

// Take compares what a partner says of the ended instances that it shares
// with this node.
func (t *retention) Take(p workflow.PartnerID, m *wire.Message) {
	l, _ := t.link(p)
	if len(m.Ended) == 0 || l == nil || !l.differs(t.index.EndedWith(p), m.Ended, t.clock.Now().Awake) {
		return
	}
	for _, x := range t.index.Shared(p, maxCompared) {
		if !t.mayCompare(p, x.Sum) {
			l.compareSoon()
			return // the digests differ still when it tells its own again
		}
		s := t.crew.shardOf(x.ID)
		t.crew.post(s, event{
			of: x.ID, from: p, apply: func(s *shard) error { return s.compare(p, x.ID) },
			after: s.n.logRefusal(p, x.ID),
		})
	}
}
