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
type direct struct{ *contacts }

func (d direct) Publish(news []byte) {
	for _, p := range d.upPeers() {
		if err := d.carrier.Send(p, news); err != nil {
			d.count("unsent", 1)
		}
	}
}

func (direct) Follow(workflow.PartnerID, bool) {}
func (direct) Met(workflow.PartnerID)          {}

// tellAll has news reach everybody.
func (ro *roster) tellAll(m *wire.Message) {
	news, err := wire.Encode(m)
	if err != nil {
		ro.log.Error("news of ours cannot be spread", "error", err)
		return
	}
	ro.gossip.Publish(news)
}

// passOn spreads what a partner told this node and what was new here: it may
// come from where news does not. What everybody has heard spreads no further.
func (ro *roster) passOn(news *wire.Message) {
	if len(news.Records) > 0 {
		ro.tellAll(news)
	}
}

// heard takes in what a partner published by gossip.
func (ro *roster) heard(author workflow.PartnerID, news []byte) {
	m, err := wire.Decode(news)
	if err != nil {
		ro.refuse("news-malformed", author)
		ro.log.Warn("news refused", "author", author, "error", err)
		ro.distrust(author) // it signed them, no matter which partner passed them on
		return
	}
	ro.takeRecords(author, m, false)
}

// agreed takes in that partners agree that p is silent, or not any more. Without a
// connection nothing can be sent, whatever others say.
func (ro *roster) agreed(p workflow.PartnerID, reachable bool) {
	if reachable == ro.up(p) {
		ro.people.reach(p, reachable)
	}
}

// met validates this node at a partner that was just connected: it may have
// been taken for gone.
func (ro *roster) met(p workflow.PartnerID) {
	ro.gossip.Met(p)
	ro.transmit(p, &wire.Message{Beats: [][]byte{ro.beat(ro.ledger.say())}})
}
