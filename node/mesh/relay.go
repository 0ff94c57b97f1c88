package mesh

import (
	"fmt"
	"strings"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/relay"
	ma "github.com/multiformats/go-multiaddr"
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

// options are the relay's part of making a host.
func (r Relay) options(member func(peer.ID) bool) ([]libp2p.Option, error) {
	if len(r.Via) == 0 && !r.Serve {
		return []libp2p.Option{libp2p.DisableRelay()}, nil
	}
	opts := []libp2p.Option{libp2p.EnableRelay()}
	if len(r.Via) > 0 {
		via, err := relayInfos(r.Via)
		if err != nil {
			return nil, err
		}
		// Somebody who names relays needs them: nothing is to be found out first.
		opts = append(opts, libp2p.EnableAutoRelayWithStaticRelays(via), libp2p.ForceReachabilityPrivate())
	}
	if r.Serve {
		resources := relay.DefaultResources()
		resources.Limit = &relay.RelayLimit{Duration: relayDuration, Data: relayData}
		resources.MaxReservations, resources.MaxCircuits = relayReservations, relayCircuits
		resources.MaxReservationsPerIP, resources.MaxReservationsPerASN = relayReservations, relayReservations
		opts = append(opts, libp2p.EnableRelayService(relay.WithResources(resources), relay.WithACL(membersOnly(member))))
		if len(r.Via) == 0 {
			opts = append(opts, libp2p.ForceReachabilityPublic())
		}
	}
	if r.Punch {
		opts = append(opts, libp2p.EnableHolePunching())
	}
	return opts, nil
}

func relayInfos(addrs []string) ([]peer.AddrInfo, error) {
	all := make([]ma.Multiaddr, 0, len(addrs))
	for _, s := range addrs {
		a, err := ma.NewMultiaddr(s)
		if err != nil {
			return nil, fmt.Errorf("mesh: relay %q is not a multiaddr: %w", s, err)
		}
		all = append(all, a)
	}
	infos, err := peer.AddrInfosFromP2pAddrs(all...)
	if err != nil {
		return nil, fmt.Errorf("mesh: relays %s: want multiaddrs that end in /p2p/ID: %w", strings.Join(addrs, ", "), err)
	}
	return infos, nil
}

// membersOnly lets a relay serve those who have been admitted.
type membersOnly func(peer.ID) bool

func (member membersOnly) AllowReserve(p peer.ID, _ ma.Multiaddr) bool { return member(p) }

func (member membersOnly) AllowConnect(src peer.ID, _ ma.Multiaddr, dest peer.ID) bool {
	return member(src) && member(dest)
}

// relayed tells whether the connection goes by a relay.
func (l *link) relayed() bool { return l.conn.Stat().Limited }
