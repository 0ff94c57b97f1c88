package node

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Instances that have ended and that all are known to have whole are not in
// memory, and nobody compares them any more. A store that was put back from a
// backup may hold one of them as it was before the end. So with every contact,
// and at intervals, two partners compare a digest of all ended instances that they
// share; where it differs they compare the newest of them as they would any other.

// endedDigest is the size of a digest of an instance's facts, and of many.
const endedDigest = wire.EndedDigest

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

// endedWith is the digest of the ended instances that are shared with a partner.
func (x *index) endedWith(p workflow.PartnerID) []byte {
	out := make([]byte, endedDigest)
	for _, s := range x.shared(p) {
		for i, b := range s.sum.Facts {
			out[i] ^= b
		}
	}
	return out
}

// takeEnded compares what a partner says of the ended instances that it shares
// with this node.
func (n *Node) takeEnded(p workflow.PartnerID, digest []byte) {
	if len(digest) == 0 || bytes.Equal(digest, n.index.endedWith(p)) {
		return
	}
	all := n.index.shared(p)
	slices.SortFunc(all, func(a, b ended) int { // the newest first
		return cmp.Or(cmp.Compare(b.sum.Ended, a.sum.Ended), compareInstances(a.id, b.id))
	})
	for _, x := range all[:min(len(all), maxCompared)] {
		n.post(n.shardOf(x.id), event{apply: func(s *shard) error {
			h, err := s.find(x.id)
			if err != nil {
				return err
			}
			s.tell(p, x.id, wire.Ask)
			s.touch(h)
			return nil
		}, after: n.logRefusal(p)})
	}
}
