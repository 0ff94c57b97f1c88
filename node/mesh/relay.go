package mesh

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/host/autonat"
	"github.com/libp2p/go-libp2p/p2p/host/autorelay"
	"github.com/libp2p/go-libp2p/p2p/host/observedaddrs"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/relay"
	"github.com/libp2p/go-libp2p/p2p/protocol/holepunch"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Relay says how partners that cannot connect directly find each other.
type Relay struct {
	// Via are members that relay for this node: multiaddrs that end in /p2p/ID.
	Via []string
	// Serve has this node relay for members. It should be reachable from wherever
	// they are.
	Serve bool
	// Punch has two nodes that met by a relay try to connect directly.
	Punch bool
}

// What a relay gives to members: enough for a team's facts, not for the loss of
// the relay's own link.
const (
	relayDuration     = time.Hour
	relayData         = 256 << 20 // bytes, per direction and circuit
	relayReservations = 128
	relayCircuits     = 32 // per partner
)

// askRelayEvery is how often a relay that refused, or was not there, is asked
// again: members come and go.
const askRelayEvery = 5 * time.Second

// punchTime is how long libp2p tries to connect directly before it punches, and
// then each time: longer than a handshake in vain (5 s), whose outcome the first
// punches would otherwise be given as their own.
const punchTime = 8 * time.Second

// believeOne has libp2p believe a single peer that tells at which address it sees
// us: a team may have one relay, and a wrong address costs an attempt in vain.
var believeOne = sync.OnceFunc(func() { observedaddrs.ActivationThresh = 1 })

// relaying is the relay's part of making a host.
type relaying struct {
	dial      bool               // connections are made by relays
	via       []autorelay.Option // how relays are asked; nil: none is
	serve     []relay.Option     // how this node relays; nil: it does not
	reachable []autonat.Option   // what is known beforehand about where it can be reached
}

// relaying says what these settings mean for a host.
func (r Relay) relaying(via []ma.Multiaddr, member func(peer.ID) bool) (relaying, error) {
	c := relaying{dial: len(r.Via) > 0 || r.Serve}
	if len(r.Via) > 0 {
		infos, err := peer.AddrInfosFromP2pAddrs(via...)
		if err != nil {
			return c, err
		}
		// Somebody who names relays needs them: nothing is to be found out first.
		c.reachable = append(c.reachable, autonat.WithReachability(network.ReachabilityPrivate))
		c.via = append(c.via, autorelay.WithStaticRelays(infos), autorelay.WithBootDelay(0),
			autorelay.WithMinInterval(askRelayEvery), autorelay.WithBackoff(askRelayEvery))
	}
	if r.Serve {
		resources := relay.DefaultResources()
		resources.Limit = &relay.RelayLimit{Duration: relayDuration, Data: relayData}
		resources.MaxReservations, resources.MaxCircuits = relayReservations, relayCircuits
		resources.MaxReservationsPerIP, resources.MaxReservationsPerASN = relayReservations, relayReservations
		c.serve = append(c.serve, relay.WithResources(resources), relay.WithACL(membersOnly(member)))
		if len(r.Via) == 0 {
			c.reachable = append(c.reachable, autonat.WithReachability(network.ReachabilityPublic))
		}
	}
	if r.Punch && c.dial {
		believeOne()
	}
	return c, nil
}

// newPuncher has libp2p punch holes for a host that uses relays. libp2p's own option
// would do so only once for each meeting by a relay.
func (r Relay) newPuncher(h *parts) (*holepunch.Service, error) {
	if !r.Punch || len(r.Via) == 0 && !r.Serve {
		return nil, nil
	}
	s, err := holepunch.NewService(h, h.IDService(), h.publicAddrs, holepunch.DirectDialTimeout(punchTime))
	if err != nil {
		return nil, fmt.Errorf("mesh: hole punching: %w", err)
	}
	return s, nil
}

// parseRelays reads multiaddrs that end in /p2p/ID.
func parseRelays(addrs []string) ([]ma.Multiaddr, error) {
	all := make([]ma.Multiaddr, 0, len(addrs))
	for _, s := range addrs {
		a, err := ma.NewMultiaddr(s)
		if err != nil {
			return nil, fmt.Errorf("mesh: relay %q is not a multiaddr: %w", s, err)
		}
		if _, id := peer.SplitAddr(a); id == "" {
			return nil, fmt.Errorf("mesh: relay %s: want a multiaddr that ends in /p2p/ID", s)
		}
		all = append(all, a)
	}
	return all, nil
}

// membersOnly lets a relay serve those who have been admitted.
type membersOnly func(peer.ID) bool

func (member membersOnly) AllowReserve(p peer.ID, _ ma.Multiaddr) bool { return member(p) }

func (member membersOnly) AllowConnect(src peer.ID, _ ma.Multiaddr, dest peer.ID) bool {
	return member(src) && member(dest)
}

// isMember waits for a hello that is due or under way, and reports whether it was a
// member's: a member asks for a relay's service at once.
func (m *Mesh) isMember(id peer.ID) bool {
	l := m.liveLink(id)
	if l == nil {
		return false
	}
	l.awaitHello(m.limits.HelloTimeout)
	return m.memberLink(id) != nil
}

// Relayed are the connected partners to whom frames go by a relay.
func (m *Mesh) Relayed() []workflow.PartnerID {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var all []workflow.PartnerID
	for _, p := range m.partners {
		if p.current != nil && p.current.relayed() {
			all = append(all, p.id)
		}
	}
	slices.Sort(all)
	return all
}

// relayed reports whether the connection goes by a relay.
func (l *link) relayed() bool { return l.conn.Stat().Limited }
