package node

import (
	"time"

	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// A topic is one of the things that partners talk about. It owns what is known of it,
// with its lock, its entries in the store and its part of a message; what it needs of
// another topic it is given when it is made.
type topic interface {
	// Greet puts into a message what a partner is told that was just connected.
	Greet(p workflow.PartnerID, m *wire.Message)
	// Take takes in what a message of a partner says of it.
	Take(p workflow.PartnerID, m *wire.Message)
	// Tick does what is due, and says after what time it is to be called again.
	Tick(now moment.Now) (next time.Duration)
}

// topics are all of them, in the order in which partners are told and heard of them: who a
// partner is, and whether it is one, before what it says of work.
func (n *Node) topics() []topic {
	return []topic{
		n.roster, n.evictions, n.certificates, n.elections, n.clocks, n.overview, n.retention, n.library, n.instances,
		n.data, n.joining, n.users,
	}
}

// turns are the topics in the order in which they do what is due: what is kept here comes
// before elections, by which another may coordinate.
func (n *Node) turns() []topic {
	all := []topic{
		n.roster, n.certificates, n.evictions, n.joining, n.library, n.retention, n.elections, n.overview, n.clocks,
		n.instances, n.data, n.users, n.worklists,
	}
	if n.filing.Files != nil {
		all = append(all, n.filing.Files)
	}
	return all
}

// OnUp is called by the carrier when a member is connected.
func (n *Node) OnUp(p workflow.PartnerID) {
	if !n.talks() {
		return
	}
	n.contacts.begin(p)
	n.people.Reach(p, true)
	var m wire.Message
	for _, t := range n.topics() {
		t.Greet(p, &m)
	}
	n.transmit(p, &m)
	n.roster.Met(p)
	n.instances.met(p)
	n.worklists.Met(p)
}

// OnDown is called by the carrier when the last connection to a member is gone.
func (n *Node) OnDown(p workflow.PartnerID) {
	n.contacts.end(p)
	n.certificates.Forget(p)
	n.evictions.Alone()
	n.people.Reach(p, false)
}

// OnFrame is called by the carrier with each frame of a member; while it does
// not return, no further frame of that connection comes.
func (n *Node) OnFrame(p workflow.PartnerID, frame []byte) {
	if !n.talks() {
		return
	}
	m, err := wire.Decode(frame)
	if err != nil {
		n.refuse("frame-malformed", p)
		n.log.Warn("frame refused", "from", p, "error", err)
		n.carrier.Distrust(p)
		return
	}
	if l, _ := n.link(p); l != nil {
		l.contact.hear(n.clock.Now().Boot)
	}
	for _, t := range n.topics() {
		t.Take(p, m)
	}
}

// pulse has every topic do what is due, and returns after what time to call it again.
func (n *Node) pulse() time.Duration {
	now, next := n.clock.Now(), moment.Never
	for _, t := range n.turns() {
		next = min(next, t.Tick(now))
	}
	return max(min(next, n.prefetcher.tick(now)), 0)
}
