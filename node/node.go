package node

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/assignment"
	"github.com/mutirao-mesh/mutirao/node/certificates"
	"github.com/mutirao-mesh/mutirao/node/clocks"
	"github.com/mutirao-mesh/mutirao/node/datasets"
	"github.com/mutirao-mesh/mutirao/node/doctor"
	"github.com/mutirao-mesh/mutirao/node/elections"
	"github.com/mutirao-mesh/mutirao/node/evictions"
	"github.com/mutirao-mesh/mutirao/node/files"
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
	filing       *filing
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

// New loads a node from its store. It talks to nobody before Begin.
func New(p Parts) (*Node, error) {
	n := &Node{parts: p, begun: make(chan struct{}), crew: newCrew(), index: index.New()}
	t := newTools(p)
	turn := int(t.chance() * math.MaxUint16)
	n.started = t.clock.Now().Wall
	n.contacts = newContacts(t, func(p workflow.PartnerID) bool { return n.people.Known(p) })
	n.losses = &losses{tools: t, vouching: p.Vouching}
	if err := errors.Join(n.losses.recall(), mayComeBack(t.store)); err != nil {
		return nil, err
	}
	reborn := n.losses.assess(p.Ran)
	unread, err := n.losses.sift()
	if err != nil {
		return nil, err
	}
	if err := n.load(t, turn, reborn || unread); err != nil {
		return nil, err
	}
	return n, n.instances.loadInstances(reborn || unread)
}

// Hello is what this node shows a peer first: its certificate chain.
func (n *Node) Hello() []byte { return trust.EncodeChain(n.certificates.Chain()) }

// Evicted reports whether a key is kept out whatever certificate it shows.
func (n *Node) Evicted(p workflow.PartnerID) bool { return n.evictions.KeyEvicted(p) }

// Begin has the node talk: it announces itself, follows its partners and goes on with
// its instances. Run must follow.
func (n *Node) Begin(to Network) error {
	n.talkBy(to)
	if err := n.begin(); err != nil {
		return err
	}
	for _, s := range n.shards {
		n.crew.running.Go(func() { s.run(n.stopped) })
	}
	if n.filing.files != nil {
		n.crew.running.Go(n.filing.keepFiles)
	}
	n.followAll()
	return nil
}

// talkBy takes what the node is given to talk by.
func (n *Node) talkBy(to Network) {
	n.carrier, n.requester = to.Carrier, to.Requester
	if to.Gossip != nil {
		n.roster.Spread(to.Gossip)
	}
}

// begin has the node answer, and puts it on its own list of partners: what its instances
// do next may be to give themselves work.
func (n *Node) begin() error {
	close(n.begun)
	c := n.carrier
	if _, away := n.absence.away(); away {
		c.Silence(true)
	}
	c.HandleRequest(joining.ProtocolHello, true, n.joining.Offer)
	c.HandleRequest(joining.ProtocolProof, true, n.joining.Redeem)
	c.HandleRequest(joining.ProtocolPass, true, n.joining.Pass)
	c.HandleRequest(joining.ProtocolPassed, false, n.joining.Passed)
	c.HandleRequest(evictions.Protocol, true, n.evictions.Tell)
	c.HandleRequest(datasets.Protocol, false, n.data.Give)
	c.HandleRequest(users.ProtocolSignIn, false, n.users.Redeem)
	c.HandleRequest(users.ProtocolPass, false, n.users.Pass)
	c.HandleRequest(protocolLook, false, n.desk.tellLook)
	c.HandleRequest(protocolDefinition, false, n.desk.giveDefinition)
	c.HandleRequest(worklists.ProtocolItems, false, n.worklists.AnswerItems)
	c.HandleRequest(worklists.ProtocolAhead, false, n.worklists.AnswerAhead)
	c.HandleRequest(worklists.ProtocolChanged, false, n.worklists.AnswerChanged)
	c.HandleRequest(worklists.ProtocolItem, false, n.worklists.AnswerItem)
	c.HandleRequest(worklists.ProtocolClaim, false, n.worklists.AnswerClaim)
	c.HandleRequest(worklists.ProtocolTarget, false, n.worklists.AnswerTarget)
	c.HandleRequest(worklists.ProtocolKept, false, n.worklists.AnswerKept)
	c.HandleRequest(jobs.Protocol, false, n.jobs.Answer)
	if n.filing.files != nil {
		c.HandleRequest(files.Protocol, false, n.filing.files.Answer)
	}
	n.evictions.Alone()
	return n.roster.Announce()
}

// followAll looks after the partners that the node knew when it stopped.
func (n *Node) followAll() {
	for _, p := range n.people.All() {
		if p.State == membership.Left {
			p.State = membership.Unreachable // it may be back, and think the same of us
		}
		n.roster.Follow(p)
	}
}

// Run keeps the node going until ctx ends, and goes down in good order.
func (n *Node) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			if n.departure.left() == membership.Staying {
				n.departure.depart(membership.GoesDown)
			}
			n.stop()
			return nil
		case <-n.departure.hasLeft:
			n.stop()
			return nil
		case <-n.clock.After(n.pulse()):
		case <-n.nudged:
		}
	}
}

// stop ends what the node does.
func (n *Node) stop() {
	close(n.stopped)
	n.jobs.Close()
	if n.filing.files != nil {
		n.filing.files.Stop()
	}
	n.crew.running.Wait()
}

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
