package node

import (
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/election"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/jobs"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Node is one partner's node. It hands on what the carrier says, and has its topics take
// their turns; what it can be asked is its service.
type Node struct {
	*contacts
	*crew
	topics
	service *service

	// What people, workers and this node's user do here.
	desk       *desk
	jobs       *jobs.Desk
	departure  *departure
	absence    *absence
	prefetcher *prefetcher

	// What several of these share, and the node asks as well.
	life   *life
	people *people

	begun chan struct{} // closed by Begin: there is a carrier
}

// Service is what this node can be asked.
func (n *Node) Service() api.Service { return n.service }

// Happened counts what Watch tells, also what happened while nobody watched: a page that was made before it watches
// learns by it whether it is out of date already.
func (n *Node) Happened() uint64 { return n.events.happened.Load() }

// Ready is closed when the node goes on with all its instances, and knows which of their jobs workers have.
func (n *Node) Ready() <-chan struct{} { return n.crew.ready }

// Boot is this node's boot counter: how often it was started.
func (n *Node) Boot() uint64 { return n.life.bootCount() }

// Leads reports whether this node holds the office at this moment, and by which
// mandate.
func (n *Node) Leads() (m election.Mandate, ok bool) { return n.elections.Leads() }

// Left says how the node left, if it did; else membership.Staying.
func (n *Node) Left() membership.Going { return n.departure.left() }

// Away reports whether this node is out of contact on purpose: it begins in silence.
func (n *Node) Away() bool {
	_, away := n.absence.away()
	return away
}

// Hello is what this node shows a peer first: its certificate chain.
func (n *Node) Hello() []byte { return trust.EncodeChain(n.certificates.Chain()) }

// Evicted reports whether a key is kept out whatever certificate it shows.
func (n *Node) Evicted(p workflow.PartnerID) bool { return n.evictions.KeyEvicted(p) }

// talks waits until the node may talk; a carrier may be there earlier.
func (n *Node) talks() bool {
	select {
	case <-n.begun:
		return true
	case <-n.stopped:
		return false
	}
}

// OnUp is called by the carrier when a member is connected.
func (n *Node) OnUp(p workflow.PartnerID) {
	if !n.talks() {
		return
	}
	n.contacts.begin(p)
	n.people.Reach(p, true)
	var m wire.Message
	for _, t := range n.topics.spoken() {
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
	for _, t := range n.topics.spoken() {
		t.Take(p, m)
	}
}

// OnAddrs is called by the carrier when this node's addresses changed.
func (n *Node) OnAddrs(addrs []string) {
	if n.talks() {
		n.roster.Moved(addrs)
	}
}

// OnNews is called by gossip with what a partner published.
func (n *Node) OnNews(author workflow.PartnerID, news []byte) {
	if n.talks() {
		n.roster.Heard(author, news)
	}
}

// OnVerdict is called by gossip when partners agree that p is silent, or not any more.
func (n *Node) OnVerdict(p workflow.PartnerID, reachable bool) {
	if n.talks() {
		n.roster.Agreed(p, reachable)
	}
}

// Admit judges what a peer showed.
func (n *Node) Admit(p workflow.PartnerID, hello []byte, _ uint64) error {
	return n.certificates.Admit(p, hello)
}

// explain is Explain with partners by the names that people call them here.
func (n *Node) explain(err error) error { return Explain(err, n.people.label) }
