package mesh

import (
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/connmgr"
	"github.com/libp2p/go-libp2p/core/control"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// gate is what libp2p asks about each connection: the owner of the key is known
// before there is anything to talk over.
type gate struct {
	mesh *Mesh

	mu   sync.Mutex                // guards what follows
	shut map[peer.ID]time.Duration // for whom, and until when
}

var _ connmgr.ConnectionGater = (*gate)(nil)

func newGate(m *Mesh) *gate { return &gate{mesh: m, shut: map[peer.ID]time.Duration{}} }

// InterceptPeerDial keeps us from dialling those whom we would not let in.
func (g *gate) InterceptPeerDial(p peer.ID) bool {
	if g.mesh.silent.Load() {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mesh.now() >= g.shut[p]
}

// InterceptAddrDial permits all addresses.
func (g *gate) InterceptAddrDial(peer.ID, ma.Multiaddr) bool { return true }

// InterceptAccept permits all, but in a silence: rationed counts what was begun.
func (g *gate) InterceptAccept(network.ConnMultiaddrs) bool { return !g.mesh.silent.Load() }

// InterceptSecured refuses keys that the gate is shut for. Of our own dials
// InterceptPeerDial was asked.
func (g *gate) InterceptSecured(d network.Direction, p peer.ID, _ network.ConnMultiaddrs) bool {
	return !g.mesh.silent.Load() && (d == network.DirOutbound || g.opens(p))
}

// InterceptUpgraded permits what InterceptSecured did.
func (g *gate) InterceptUpgraded(network.Conn) (bool, control.DisconnectReason) { return true, 0 }

// opens reports whether p may connect. Somebody evicted may once in a while: it may
// not know yet, and can only ask those that refuse it.
func (g *gate) opens(p peer.ID) bool {
	evicted := g.mesh.cfg.Evicted(partnerID(p))
	now := g.mesh.now()
	g.mu.Lock()
	defer g.mu.Unlock()
	until, shut := g.shut[p]
	switch {
	case now < until:
		g.mesh.counters.refuse(ReasonShut)
		return false
	case evicted:
		g.shut[p] = now + g.mesh.limits.PenaltyTime
	case shut:
		delete(g.shut, p)
	}
	return true
}

// Distrust cuts all connections with p, and lets none come about for
// Limits.PenaltyTime: it sends what a correct partner never does, and would go on
// if it could come back at once.
func (m *Mesh) Distrust(p workflow.PartnerID) {
	id, err := peerID(p)
	if err != nil {
		return
	}
	m.gate.mu.Lock()
	m.gate.shut[id] = m.now() + m.limits.PenaltyTime
	m.gate.mu.Unlock()
	m.ClosePeer(p)
}
