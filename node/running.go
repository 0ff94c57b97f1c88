package node

import (
	"context"
	"time"

	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/datasets"
	"github.com/mutirao-mesh/mutirao/node/evictions"
	"github.com/mutirao-mesh/mutirao/node/files"
	"github.com/mutirao-mesh/mutirao/node/jobs"
	"github.com/mutirao-mesh/mutirao/node/joining"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/node/worklists"
)

// This file has a node begin, go on and end.

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
	if n.filing.Files != nil {
		n.crew.running.Go(n.filing.Keep)
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
	c.HandleRequest(worklists.ProtocolSight, false, n.worklists.AnswerSight)
	c.HandleRequest(worklists.ProtocolStuck, false, n.worklists.AnswerStuck)
	c.HandleRequest(worklists.ProtocolBasis, false, n.worklists.AnswerBasis)
	c.HandleRequest(worklists.ProtocolAmend, false, n.worklists.AnswerAmend)
	c.HandleRequest(worklists.ProtocolFollow, false, n.worklists.AnswerFollow)
	c.HandleRequest(worklists.ProtocolLoads, false, n.worklists.AnswerLoads)
	c.HandleRequest(worklists.ProtocolKept, false, n.worklists.AnswerKept)
	c.HandleRequest(worklists.ProtocolGiven, false, n.worklists.AnswerGiven)
	c.HandleRequest(worklists.ProtocolReader, false, n.worklists.AnswerReader)
	c.HandleRequest(jobs.Protocol, false, n.jobs.Answer)
	if n.filing.Files != nil {
		c.HandleRequest(files.Protocol, false, n.filing.Files.Answer)
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
				n.departure.depart(membership.GoesDown, 0)
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

// pulse has every topic do what is due, and returns after what time to call it again.
func (n *Node) pulse() time.Duration {
	now, next := n.clock.Now(), moment.Never
	for _, t := range n.topics.turns() {
		next = min(next, t.Tick(now))
	}
	return max(min(next, n.prefetcher.tick(now)), 0)
}

// stop ends what the node does.
func (n *Node) stop() {
	close(n.stopped)
	n.jobs.Close()
	if n.filing.Files != nil {
		n.filing.Files.Stop()
	}
	n.crew.running.Wait()
}
