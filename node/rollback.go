package node

import (
	"encoding/binary"
	"errors"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// errRestored ends what was under way when it turned out that the store had
// been put back.
var errRestored = errors.New("the node's store was restored from a backup and its instances are being loaded again: look, and try once more")

// rolledBack reacts to a peer that knows more of this node than it does
// itself: the store went back in time. A new incarnation begins, so that no
// number is used twice; instances are loaded again under it. That can be so
// only once in a process, whatever peers say.
func (n *Node) rolledBack() {
	n.restoring.Lock()
	defer n.restoring.Unlock()
	if n.restored {
		return
	}
	inc := choreo.Incarnation(n.random(len(n.inc)))
	if err := n.store.CommitWait([]kv.Write{{Key: metaKey(metaIncarnation), Value: inc[:]}}); err != nil {
		return // the next word of a peer will be another reason to try
	}
	n.restored = true
	n.mu.Lock()
	n.inc = inc
	n.mu.Unlock()
	n.people.reborn(membership.Incarnation(inc))
	n.count("rolled-back", 1)
	n.log.Warn("a partner knows facts of this node that its store lacks: the store was restored or lost writes; a new incarnation begins", "incarnation", inc)
	n.office.reload()
	for _, s := range n.shards {
		n.side(func() { n.post(s, event{apply: (*shard).reload}) })
	}
}

// reload loads all instances again, under the node's present incarnation. What
// this round did under the former one is dropped.
func (s *shard) reload() error {
	b := s.batch
	s.batch = batch{}
	s.lose(b, errRestored)
	s.each(func(id workflow.InstanceID, h *held) {
		delete(s.held, id)
		if again, err := s.load(id, h.sum); err == nil {
			s.touch(again)
		} else if !errors.Is(err, kv.ErrNotFound) {
			s.log.Error("an instance cannot be loaded again yet", "instance", id, "error", err)
			s.loadAgain(id)
		}
	})
	for _, p := range s.n.upPeers() {
		s.greet(p)
	}
	return nil
}

// outrun raises the boot counter above the one that a peer knows, or nobody
// would take this node's records and heartbeats for new.
func (n *Node) outrun(known membership.Version) {
	n.restoring.Lock()
	boot := max(known.Boot, n.Boot()) + 1
	err := n.store.CommitWait([]kv.Write{{Key: metaKey(metaBoot), Value: binary.BigEndian.AppendUint64(nil, boot)}})
	if err == nil {
		n.mu.Lock()
		n.boot = boot
		n.mu.Unlock()
		n.people.rebooted(boot)
	}
	n.restoring.Unlock()
	if err == nil {
		err = n.announce(n.carrier.Addrs())
	}
	if err != nil {
		n.log.Error("the node's record is older than what partners have, and could not be renewed", "error", err)
	}
}
