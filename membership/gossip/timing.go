package gossip

import (
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"

	"github.com/hashicorp/memberlist"
)

// Timing trades traffic for the time until a silent partner is noticed.
type Timing struct {
	Probe        time.Duration // one partner, each in turn, is asked for a sign of life
	ProbeTimeout time.Duration // the wait for it before others are asked to ask
	Suspicion    int           // of silence, in probes, before a verdict
	Gossip       time.Duration // between packets with news of memberlist's own
	PushPull     time.Duration // between exchanges of memberlist's whole state
	Rejoin       time.Duration // between attempts to join somebody it has lost
	Heartbeat    time.Duration // of pubsub: repair of its overlay
}

// LAN notices a silent partner in about five seconds: the suspicion of the first
// who asks in vain makes all others look at once.
func LAN() Timing {
	return Timing{Probe: 3 * time.Second, ProbeTimeout: 500 * time.Millisecond, Suspicion: 3,
		Gossip:   500 * time.Millisecond,
		PushPull: 5 * time.Minute, Rejoin: 15 * time.Second, Heartbeat: 2 * time.Second}
}

// Mobile spares radio time: about a minute.
func Mobile() Timing {
	return Timing{Probe: 20 * time.Second, ProbeTimeout: 4 * time.Second, Suspicion: 3, Gossip: time.Second,
		PushPull: 5 * time.Minute, Rejoin: time.Minute, Heartbeat: 10 * time.Second}
}

// Local is for several nodes on one machine: about two seconds.
func Local() Timing {
	return Timing{Probe: time.Second, ProbeTimeout: 300 * time.Millisecond, Suspicion: 2,
		Gossip:   200 * time.Millisecond,
		PushPull: 30 * time.Second, Rejoin: 5 * time.Second, Heartbeat: time.Second}
}

const (
	// packetSize bounds memberlist's packets: libp2p has no datagrams to fit.
	packetSize = 8 << 10
	// deadTime is how long memberlist remembers the dead. Longer than a cut lasts
	// mostly, so that both sides learn from each other when it heals.
	deadTime = 10 * time.Minute
)

// memberlist is the part of its configuration that does not depend on the node.
func (t Timing) memberlist() *memberlist.Config {
	c := memberlist.DefaultLANConfig()
	c.ProbeInterval, c.ProbeTimeout = t.Probe, t.ProbeTimeout
	c.SuspicionMult, c.GossipInterval, c.PushPullInterval = t.Suspicion, t.Gossip, t.PushPull
	c.TCPTimeout = min(2*t.Probe, 10*time.Second)
	c.GossipToTheDeadTime = deadTime
	c.AwarenessMaxMultiplier = 1 // a wrong suspicion costs one ping; slow probes cost more
	c.RequireNodeNames = true    // synthetic addresses lead nowhere by themselves
	c.DisableTcpPings = true     // a stream goes the same way as a packet
	c.EnableCompression = false  // its tables are the largest idle consumer of heap
	c.UDPBufferSize = packetSize
	return c
}

// MaxNews bounds a piece of news, in bytes.
const MaxNews = 64 << 10

// pubsub is its configuration: signed, small, and without scores, which would
// hold a whole team behind one address for one attacker.
func (t Timing) pubsub() []pubsub.Option {
	p := pubsub.DefaultGossipSubParams()
	p.HeartbeatInterval = t.Heartbeat
	// Few partners: a thin overlay and a short memory. What is missed is pulled.
	p.D, p.Dlo, p.Dhi, p.Dout, p.Dscore, p.Dlazy = 4, 3, 6, 1, 1, 2
	p.HistoryLength, p.HistoryGossip = 3, 2
	return []pubsub.Option{
		pubsub.WithGossipSubParams(p),
		pubsub.WithFloodPublish(true),
		pubsub.WithMessageSignaturePolicy(pubsub.StrictSign),
		pubsub.WithMessageIdFn(contentID),
		pubsub.WithMaxMessageSize(2 * MaxNews),
		pubsub.WithSubscriptionFilter(pubsub.NewAllowlistSubscriptionFilter(topic)),
		pubsub.WithPeerExchange(false),
	}
}
