package node

import (
	"time"

	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/assignment"
	"github.com/mutirao-mesh/mutirao/node/certificates"
	"github.com/mutirao-mesh/mutirao/node/clocks"
	"github.com/mutirao-mesh/mutirao/node/datasets"
	"github.com/mutirao-mesh/mutirao/node/doctor"
	"github.com/mutirao-mesh/mutirao/node/elections"
	"github.com/mutirao-mesh/mutirao/node/evictions"
	"github.com/mutirao-mesh/mutirao/node/filing"
	"github.com/mutirao-mesh/mutirao/node/index"
	"github.com/mutirao-mesh/mutirao/node/jobs"
	"github.com/mutirao-mesh/mutirao/node/joining"
	"github.com/mutirao-mesh/mutirao/node/library"
	"github.com/mutirao-mesh/mutirao/node/overview"
	"github.com/mutirao-mesh/mutirao/node/profile"
	"github.com/mutirao-mesh/mutirao/node/roster"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Node is one partner's node.
type Node struct {
	*contacts
	*crew
	parts Parts

	// What partners talk about (topics).
	roster       *roster.Topic
	evictions    *evictions.Topic
	certificates *certificates.Topic
	elections    *elections.Topic
	clocks       *clocks.Topic
	overview     *overview.Topic
	retention    *retention
	library      *library.Topic
	instances    *instances
	data         *datasets.Topic
	desk         *desk
	joining      *joining.Topic
	users        *users.Topic
	worklists    *worklists.Desk
	filing       *filing.Desk
	jobs         *jobs.Desk
	departure    *departure
	absence      *absence
	prefetcher   *prefetcher
	doctor       *doctor.Doctor

	// What several of these share.
	life        *life
	losses      *losses
	own         *profile.Own
	people      *people
	partners    *assignment.Partners
	definitions *library.Definitions
	index       *index.List

	started time.Time
	begun   chan struct{} // closed by Begin: there is a carrier
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
