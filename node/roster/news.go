package roster

import (
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// How the partner list stays the same everywhere: a changed record goes to all
// by gossip; beats go straight to those that are connected, and no further,
// since each of them would be N messages more; a partner whose beats stay out
// is asked for at others (hearsay.go); on contact and now and then lists are
// compared.

// tellAll has news reach everybody.
func (ro *Topic) tellAll(m *wire.Message) {
	news, err := wire.Encode(m)
	if err != nil {
		ro.in.Log.Error("news of ours cannot be spread", "error", err)
		return
	}
	ro.in.Gossip.Publish(news)
}

// passOn spreads what a partner told this node and what was new here: it may
// come from where news does not. What everybody has heard spreads no further.
func (ro *Topic) passOn(news *wire.Message) {
	if len(news.Records) > 0 {
		ro.tellAll(news)
	}
}

// Heard takes in what a partner published by gossip.
func (ro *Topic) Heard(author workflow.PartnerID, news []byte) {
	m, err := wire.Decode(news)
	if err != nil {
		ro.in.Peers.Refuse("news-malformed", author)
		ro.in.Log.Warn("news refused", "author", author, "error", err)
		ro.in.Peers.Distrust(author) // it signed them, no matter which partner passed them on
		return
	}
	ro.takeRecords(author, m, false)
}

// Agreed takes in that partners agree that p is silent, or not any more. Without a
// connection nothing can be sent, whatever others say.
func (ro *Topic) Agreed(p workflow.PartnerID, reachable bool) {
	if reachable == ro.in.Peers.Up(p) {
		ro.list.Reach(p, reachable)
	}
}

// Met validates this node at a partner that was just connected: it may have
// been taken for gone.
func (ro *Topic) Met(p workflow.PartnerID) {
	ro.in.Gossip.Met(p)
	ro.in.Peers.Transmit(p, &wire.Message{Beats: [][]byte{ro.beat(ro.in.Work.Say())}})
}
