package node

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/node/refusals"
	"github.com/mutirao-mesh/mutirao/node/show"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// contacts are the connections with members: who is there, what goes to them, and what
// was refused of them.
type contacts struct {
	*tools
	carrier   Carrier   // nil before Begin
	requester Requester // nil before Begin, and where this node asks nobody
	refusals  *refusals.Counts

	mu    sync.Mutex // guards what follows
	links map[workflow.PartnerID]*link
	isUp  map[workflow.PartnerID]bool
}

// newContacts needs to know who is on the partner list.
func newContacts(t *tools, listed func(workflow.PartnerID) bool) *contacts {
	return &contacts{
		tools: t, refusals: refusals.New(listed), links: map[workflow.PartnerID]*link{},
		isUp: map[workflow.PartnerID]bool{},
	}
}

// begin notes that a member is connected; end, that it is not any more.
func (c *contacts) begin(p workflow.PartnerID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isUp[p] = true
	if c.links[p] == nil {
		c.links[p] = &link{}
	}
	c.links[p].contact.begin(c.clock.Now().Boot)
}

func (c *contacts) end(p workflow.PartnerID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.isUp, p)
}

// link is the conversation with a member, and whether it is connected now; nil: it never was.
func (c *contacts) link(p workflow.PartnerID) (l *link, up bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.links[p], c.isUp[p]
}

func (c *contacts) up(p workflow.PartnerID) bool {
	_, up := c.link(p)
	return up
}

// upPeers are the partners that are connected now.
func (c *contacts) upPeers() []workflow.PartnerID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.isUp))
}

// transmit sends a message. What does not get through is sent again when it
// was not acknowledged, so an error is only counted.
func (c *contacts) transmit(p workflow.PartnerID, m *wire.Message) {
	_ = c.send(p, m) // counted
}

// send sends a message, or says that it was not sent.
func (c *contacts) send(p workflow.PartnerID, m *wire.Message) error {
	frame, err := wire.Encode(m)
	if err != nil {
		c.log.Error("a message of ours cannot be sent", "to", p, "error", err)
		return err
	}
	c.count("sent.frames", 1)
	c.count("sent.bundles", uint64(len(m.Facts)))
	c.count("sent.heads", uint64(len(m.Heads)))
	c.count("sent.definitions", uint64(len(m.Definitions)))
	if err = c.carrier.Send(p, frame); err != nil {
		c.count("unsent", 1)
	}
	return err
}

// broadcast sends a message to all who are connected.
func (c *contacts) broadcast(m *wire.Message) {
	for _, p := range c.upPeers() {
		c.transmit(p, m)
	}
}

var errNoRequests = errors.New("this node cannot ask for it")

// request asks a partner something, at these addresses where it is not connected. What
// it refuses is an [invitation.Answer].
func (c *contacts) request(
	ctx context.Context, p workflow.PartnerID, addrs []string, protocol string, req []byte, wait time.Duration,
) ([]byte, error) {
	if !c.asks() {
		return nil, errNoRequests
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return c.requester.Request(ctx, p, addrs, protocol, req)
}

// asks reports whether requests can be made.
func (c *contacts) asks() bool { return c.requester != nil }

// refuse counts what was refused of a peer, in all and, of a member, by its ID.
// Reasons are few constants: never a text or a number of the peer's.
func (c *contacts) refuse(reason string, p workflow.PartnerID) {
	c.count("refused."+reason, 1)
	c.refusals.Count(p, reason, c.clock.Now().Wall)
}

// shown is for how long a partner has been connected, for people.
func (c *contacts) shown(p workflow.PartnerID) (out show.Contact) {
	if l, up := c.link(p); l != nil {
		out.Ever, out.Up = true, up
		out.Since, out.Heard = time.Duration(l.contact.since.Load()), time.Duration(l.contact.heard.Load())
	}
	return out
}

// peers are the contacts for topics in packages of their own.
type peers struct{ *contacts }

func (p peers) UpPeers() []workflow.PartnerID { return p.upPeers() }

func (p peers) Up(who workflow.PartnerID) bool { return p.up(who) }

func (p peers) Heard(who workflow.PartnerID) time.Duration { return p.shown(who).Heard }

func (p peers) Transmit(to workflow.PartnerID, m *wire.Message) { p.transmit(to, m) }

func (p peers) Broadcast(m *wire.Message) { p.broadcast(m) }

func (p peers) Refuse(why string, of workflow.PartnerID) { p.refuse(why, of) }

func (p peers) Count(what string, by uint64) { p.count(what, by) }

func (p peers) ClosePeer(who workflow.PartnerID) { p.carrier.ClosePeer(who) }

func (p peers) Asks() bool { return p.asks() }

func (p peers) Request(
	ctx context.Context, to workflow.PartnerID, addrs []string, protocol string, req []byte, wait time.Duration,
) ([]byte, error) {
	return p.request(ctx, to, addrs, protocol, req, wait)
}

func (p peers) Met(who workflow.PartnerID) bool {
	l, _ := p.link(who)
	return l != nil
}

func (p peers) Distrust(who workflow.PartnerID) { p.carrier.Distrust(who) }

func (p peers) Begun() bool { return p.carrier != nil }

func (p peers) Addrs() []string { return p.carrier.Addrs() }

func (p peers) SetAddrs(who workflow.PartnerID, addrs []string) error {
	return p.carrier.SetAddrs(who, addrs)
}

func (p peers) Want(who workflow.PartnerID, want bool) error { return p.carrier.Want(who, want) }

// direct is what a node does without gossip: it tells connected partners, and
// those that hear news tell others.
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
