package node

import (
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// How the partner list stays the same everywhere: a changed record goes to all
// by gossip; beats go straight to those who are connected, and no further,
// since each of them would be N messages more; a partner whose beats stay out
// is asked for at others, who pass on what they hear of it, and say how old that
// is; on contact and now and then lists are compared.

// Gossip spreads news among all partners, those without a connection to this
// node included. It may lose some. Its methods never block.
type Gossip interface {
	Publish(news []byte)
	// Follow says who may take part, Met that there is a new connection.
	Follow(p workflow.PartnerID, follow bool)
	Met(p workflow.PartnerID)
}

// direct is what a node does without gossip: it tells who is connected, and who
// hears news tells others (passOn).
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
		return
	}
	n.learn(author, m)
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
	n.transmit(p, &wire.Message{Beats: [][]byte{n.beat(n.ledger.load())}})
}

// compareEvery is how often a node asks somebody for what it may have missed,
// if nothing makes it doubt.
const compareEvery = 2 * time.Minute

// Others are asked for a partner's signs of life after that share of its
// connectionTime of silence, sooner where it is out of reach and nobody has told of
// it yet, and again each askEvery-th part of it: who hears them passes them on as
// they come, for wantedFor connectionTimes.
const (
	askShare      = 0.65
	askShareFirst = 0.4
	askEvery      = 16
	wantedFor     = 4
)

// catchUp asks connected partners for what is not known here: when somebody has
// been silent for a good part of its connectionTime whoever told of it last, else
// one after the other, and somebody when nobody was asked for a while. It returns
// after what time to call it again.
func (n *Node) catchUp(now time.Duration) time.Duration {
	silent, next := n.people.silent()
	up := n.upPeers()
	if len(up) == 0 || (len(silent) == 0 && now < n.nextPull) {
		return next
	}
	anybody := up[n.turn%len(up)]
	n.turn++
	wanted := map[workflow.PartnerID][]workflow.PartnerID{}
	for _, id := range silent {
		by := n.people.teller(id)
		if !slices.Contains(up, by) {
			by = anybody
		}
		wanted[by] = append(wanted[by], id)
	}
	if now >= n.nextPull {
		n.nextPull = now + max(compareEvery, n.connectionTime())
		wanted[anybody] = append([]workflow.PartnerID(nil), wanted[anybody]...)
	}
	for _, p := range up {
		if of, ask := wanted[p]; ask {
			n.transmit(p, &wire.Message{Digest: n.people.digest(), Wanted: of, Ended: n.index.endedWith(p)})
		}
	}
	return next
}

// passBeat passes a fresh beat on to those who do not hear its author themselves.
func (n *Node) passBeat(from workflow.PartnerID, b membership.Beat) {
	for _, p := range n.people.wantedBy(b.Partner) {
		if p != from && n.up(p) {
			n.transmit(p, &wire.Message{Beats: [][]byte{membership.EncodeBeat(b)}, Ages: []uint64{n.people.age(b.Partner)}})
		}
	}
}

// hearsay is who told of a partner's signs of life, and who wants to be told.
type hearsay struct {
	some   bool                                 // somebody told
	teller workflow.PartnerID                   // the last
	wanted map[workflow.PartnerID]time.Duration // until when (Awake)
}

// told notes that a partner told of a sign of life of another that was new here.
func (p *people) told(by, of workflow.PartnerID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.hearsayOf(of)
	h.some, h.teller = true, by
}

// hearsayOf must be called with mu held, for somebody who is listed.
func (p *people) hearsayOf(id workflow.PartnerID) *hearsay {
	if p.hearsay[id] == nil {
		p.hearsay[id] = &hearsay{wanted: map[workflow.PartnerID]time.Duration{}}
	}
	return p.hearsay[id]
}

// teller is who told last of a partner, so most likely knows more; empty: nobody.
// It is given once: who then tells nothing new is not asked again.
func (p *people) teller(of workflow.PartnerID) (by workflow.PartnerID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h := p.hearsay[of]; h != nil {
		by, h.teller = h.teller, ""
	}
	return by
}

// want notes that a partner wants the beats of others passed on.
func (p *people) want(by workflow.PartnerID, of []workflow.PartnerID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now().Awake
	for _, id := range of {
		if x, ok := p.list.Get(id); ok && id != by && id != p.member.ID() {
			p.hearsayOf(id).wanted[by] = now + wantedFor*x.Record.ConnectionTime
		}
	}
}

// wantedBy is who wants the beats of a partner passed on.
func (p *people) wantedBy(id workflow.PartnerID) (by []workflow.PartnerID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.hearsay[id]
	if h == nil {
		return nil
	}
	now := p.clock.Now().Awake
	for who, until := range h.wanted {
		if now >= until {
			delete(h.wanted, who)
			continue
		}
		by = append(by, who)
	}
	slices.Sort(by)
	return by
}

// silent are those that have not been validated for a good part of their
// connectionTime, and after what time to look again.
func (p *people) silent() (silent []workflow.PartnerID, next time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next = time.Minute
	wall := p.clock.Now().Wall
	for _, x := range p.list.Partners() {
		id, ct := x.Record.Partner, x.Record.ConnectionTime
		if x.State.Gone() || id == p.member.ID() {
			continue
		}
		least := askShare
		if h := p.hearsay[id]; x.State == membership.Unreachable && (h == nil || !h.some) {
			least = askShareFirst
		}
		if float64(wall.Sub(x.Validated.Time())) > least*float64(ct) {
			silent = append(silent, id)
		}
		next = min(next, max(ct/askEvery, 500*time.Millisecond))
	}
	return silent[:min(len(silent), wire.MaxRecords)], next
}
