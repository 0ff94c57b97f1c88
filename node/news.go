package node

import (
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// How the partner list stays the same everywhere: a changed record goes to all
// by gossip; beats go straight to those that are connected, and no further,
// since each of them would be N messages more; a partner whose beats stay out
// is asked for at others (hearsay.go); on contact and now and then lists are
// compared.

// Gossip spreads news among all partners, those without a connection to this
// node included. It may lose some. Its methods never block.
type Gossip interface {
	Publish(news []byte)
	// Follow says which partners may take part, Met that there is a new
	// connection.
	Follow(p workflow.PartnerID, follow bool)
	Met(p workflow.PartnerID)
}

// direct is what a node does without gossip: it tells connected partners, and
// those that hear news tell others (passOn).
type direct struct{ n *Node }

func (d direct) Publish(news []byte) {
	for _, p := range d.n.upPeers() {
		if err := d.n.carrier.Send(p, news); err != nil {
			d.n.count("unsent", 1)
		}
	}
}

func (direct) Follow(workflow.PartnerID, bool) {}
func (direct) Met(workflow.PartnerID)          {}

// tellAll has news reach everybody.
func (n *Node) tellAll(m *wire.Message) {
	news, err := wire.Encode(m)
	if err != nil {
		n.log.Error("news of ours cannot be spread", "error", err)
		return
	}
	n.gossip.Publish(news)
}

// passOn spreads what a partner told this node and what was new here: it may
// come from where news does not. What everybody has heard spreads no further.
func (n *Node) passOn(_ workflow.PartnerID, news *wire.Message) {
	if len(news.Records) > 0 {
		n.tellAll(news)
	}
}

// OnNews is called by gossip with what a partner published.
func (n *Node) OnNews(author workflow.PartnerID, news []byte) {
	if !n.talks() {
		return
	}
	m, err := wire.Decode(news)
	if err != nil {
		n.refuse("news-malformed", author)
		n.log.Warn("news refused", "author", author, "error", err)
		n.distrust(author) // it signed them, no matter which partner passed them on
		return
	}
	n.takeRecords(author, m, false)
}

// OnVerdict is called by gossip when partners agree that p is silent, or not
// any more. Without a connection nothing can be sent, whatever others say.
func (n *Node) OnVerdict(p workflow.PartnerID, reachable bool) {
	if n.talks() && reachable == n.up(p) {
		n.people.reach(p, reachable)
	}
}

// met validates this node at a partner that was just connected: it may have
// been taken for gone.
func (n *Node) met(p workflow.PartnerID) {
	n.gossip.Met(p)
	n.transmit(p, &wire.Message{Beats: [][]byte{n.beat(n.ledger.say())}})
}
