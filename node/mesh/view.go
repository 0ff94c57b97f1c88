package mesh

import (
	"context"
	"fmt"
	"slices"
	"sync"

	libp2pevent "github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
)

// view is the host as libraries of others see it (pubsub is made from a host):
// members only, over connections that exist. A peer "is identified" when it
// has been admitted, and streams of strangers are refused before the library
// sees them.
type view struct {
	host.Host
	mesh *Mesh
	bus  libp2pevent.Bus
	met  libp2pevent.Emitter

	mu        sync.Mutex
	protocols []protocol.ID // with a handler, which members have too
}

func newView(m *Mesh) (*view, error) {
	v := &view{Host: m.host, mesh: m, bus: eventbus.NewBus()}
	var err error
	if v.met, err = v.bus.Emitter(new(libp2pevent.EvtPeerProtocolsUpdated)); err != nil {
		return nil, fmt.Errorf("mesh: event bus: %w", err)
	}
	return v, nil
}

// Members is a libp2p host that sees members only, for libraries that need one.
// It neither dials nor closes. Use it in Config.Prepare.
func (m *Mesh) Members() host.Host { return m.view }

// admitted tells the library of a new member.
func (v *view) admitted(p peer.ID) {
	v.mu.Lock()
	protocols := slices.Clone(v.protocols)
	v.mu.Unlock()
	if len(protocols) == 0 {
		return
	}
	if err := v.met.Emit(libp2pevent.EvtPeerProtocolsUpdated{Peer: p, Added: protocols}); err != nil {
		v.mesh.cfg.Logger.Debug("nobody told of a new member", "partner", p, "error", err)
	}
}

func (v *view) EventBus() libp2pevent.Bus { return v.bus }
func (v *view) Network() network.Network  { return membersNetwork{v.Host.Network(), v.mesh} }
func (v *view) Close() error              { return nil }

func (v *view) SetStreamHandler(p protocol.ID, h network.StreamHandler) {
	v.mu.Lock()
	v.protocols = append(v.protocols, p)
	v.mu.Unlock()
	v.mesh.handleMembers(p, h)
}

func (v *view) SetStreamHandlerMatch(p protocol.ID, _ func(protocol.ID) bool, h network.StreamHandler) {
	v.SetStreamHandler(p, h)
}

func (v *view) Connect(_ context.Context, to peer.AddrInfo) error {
	if v.mesh.memberLink(to.ID) == nil {
		return fmt.Errorf("mesh: %s: %w", to.ID, ErrNotConnected)
	}
	return nil
}

// NewStream opens a stream with the first of the protocols: all members speak
// the same.
func (v *view) NewStream(ctx context.Context, p peer.ID, protocols ...protocol.ID) (network.Stream, error) {
	l := v.mesh.memberLink(p)
	if l == nil || len(protocols) == 0 {
		return nil, fmt.Errorf("mesh: %s: %w", p, ErrNotConnected)
	}
	ctx, cancel := context.WithTimeout(ctx, v.mesh.limits.HelloTimeout)
	defer cancel()
	return l.open(ctx, protocols[0])
}

// membersNetwork shows the connections with members.
type membersNetwork struct {
	network.Network
	mesh *Mesh
}

func (n membersNetwork) Connectedness(p peer.ID) network.Connectedness {
	if n.mesh.memberLink(p) == nil {
		return network.NotConnected
	}
	return network.Connected
}

func (n membersNetwork) Peers() []peer.ID {
	n.mesh.mu.RLock()
	defer n.mesh.mu.RUnlock()
	var all []peer.ID
	for id, p := range n.mesh.partners {
		if len(p.admitted) > 0 {
			all = append(all, id)
		}
	}
	slices.Sort(all)
	return all
}

func (n membersNetwork) ConnsToPeer(id peer.ID) []network.Conn {
	n.mesh.mu.RLock()
	defer n.mesh.mu.RUnlock()
	var all []network.Conn
	if p := n.mesh.partners[id]; p != nil {
		for _, l := range p.admitted {
			all = append(all, l.conn)
		}
	}
	return all
}

// memberLink is the best live link with an admitted peer, nil if there is none.
func (m *Mesh) memberLink(id peer.ID) *link {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if p := m.partners[id]; p != nil {
		if l := p.pickLocked(); l != nil && !l.ended() {
			return l
		}
	}
	return nil
}
