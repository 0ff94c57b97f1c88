package mesh

import (
	"errors"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	"github.com/libp2p/go-libp2p/p2p/net/connmgr"
	"github.com/libp2p/go-libp2p/x/rate"
)

// newHost makes the libp2p host: QUIC and TCP only, no DHT, and without libp2p's own ping: control.go has one.
func (m *Mesh) newHost() (*parts, error) {
	c := m.cfg
	key, err := privateKey(c.Key)
	if err != nil {
		return nil, fmt.Errorf("mesh: the key cannot be used: %w", err)
	}
	relays, err := c.Relay.relaying(m.relays, m.isMember)
	if err != nil {
		return nil, err
	}
	resources, err := resourceManager(c.Limits)
	if err != nil {
		return nil, fmt.Errorf("mesh: resource limits: %w", err)
	}
	connections, err := connmgr.NewConnManager(c.Limits.Connections*3/4, c.Limits.Connections,
		connmgr.WithGracePeriod(c.Limits.HelloTimeout))
	if err != nil {
		return nil, fmt.Errorf("mesh: connection limits: %w", err)
	}
	h, err := putTogether(key, managers{newRationed(resources, m), connections, m.gate}, relays)
	if err != nil {
		return nil, fmt.Errorf("mesh: no libp2p host: %w", err)
	}
	if err := listen(h, c); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// connectionsPerPeer leaves room for a live connection, stale ones, and the
// parallel attempts of one dial.
const connectionsPerPeer = 8

// resourceManager has explicit limits, the same on every machine. Addresses are
// not limited more than the whole: a team often shares one address. Transient is
// what is not known to be anybody's yet; connectionRate and rationed keep one
// address from taking all of that.
func resourceManager(l Limits) (network.ResourceManager, error) {
	streams := rcmgr.LimitVal(l.Connections * 4)
	perPeer := rcmgr.LimitVal(l.StreamsPerPeer)
	conns := rcmgr.LimitVal(l.Connections)
	limits := rcmgr.PartialLimitConfig{
		System: rcmgr.ResourceLimits{
			Conns: conns, ConnsInbound: conns, ConnsOutbound: conns, FD: conns,
			Streams: 2 * streams, StreamsInbound: streams, StreamsOutbound: streams,
			Memory: rcmgr.LimitVal64(l.Memory),
		},
		Transient: rcmgr.ResourceLimits{
			Conns: conns, ConnsInbound: conns * 3 / 4, ConnsOutbound: conns / 2, FD: conns * 3 / 4,
			Streams: streams, StreamsInbound: streams / 2, StreamsOutbound: streams / 2,
			Memory: rcmgr.LimitVal64(l.Memory / 4),
		},
		PeerDefault: rcmgr.ResourceLimits{
			Conns: connectionsPerPeer, ConnsInbound: connectionsPerPeer, ConnsOutbound: connectionsPerPeer,
			FD:      connectionsPerPeer,
			Streams: 2 * perPeer, StreamsInbound: perPeer, StreamsOutbound: perPeer,
			Memory: rcmgr.LimitVal64(l.Memory / 2),
		},
		ProtocolDefault: rcmgr.ResourceLimits{Streams: 2 * streams, StreamsInbound: streams, StreamsOutbound: streams},
		Protocol: map[protocol.ID]rcmgr.ResourceLimits{
			helloProtocol:  {Streams: 2 * streams, StreamsInbound: streams, StreamsOutbound: streams},
			framesProtocol: {Streams: 2 * streams, StreamsInbound: streams, StreamsOutbound: streams},
		},
	}
	return rcmgr.NewResourceManager(
		rcmgr.NewFixedLimiter(limits.Build(rcmgr.DefaultLimits.Scale(l.Memory, l.Connections))),
		rcmgr.WithMetricsDisabled(),
		rcmgr.WithLimitPerSubnet(
			[]rcmgr.ConnLimitPerSubnet{{PrefixLength: 32, ConnCount: l.Connections}},
			[]rcmgr.ConnLimitPerSubnet{{PrefixLength: 56, ConnCount: l.Connections}},
		),
		rcmgr.WithConnRateLimiters(connectionRate(l)),
	)
}

// connectionRate lets a team connect at one moment from one address, and slows
// down an address that goes on making connections.
func connectionRate(l Limits) *rate.Limiter {
	perSubnet := rate.Limit{RPS: 10, Burst: l.Connections / 4}
	return &rate.Limiter{SubnetRateLimiter: rate.SubnetLimiter{
		IPv4SubnetLimits: []rate.SubnetLimit{{PrefixLength: 32, Limit: perSubnet}},
		IPv6SubnetLimits: []rate.SubnetLimit{{PrefixLength: 56, Limit: perSubnet}},
		GracePeriod:      time.Minute,
	}}
}
