package mesh

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peerstore"
)

// directEvery is how often a partner that only relays lead to is dialled directly,
// beside soon after its addresses or ours change: a way may have opened, and the
// relay has others to serve.
const directEvery = 2 * time.Minute

// roundabout reports whether all connections with the partner go by relays.
func (p *partner) roundabout() bool {
	p.mesh.mu.RLock()
	defer p.mesh.mu.RUnlock()
	for _, l := range p.admitted {
		if !l.relayed() {
			return false
		}
	}
	return len(p.admitted) > 0
}

// shorten waits for a while, or until something changed, and then tries to connect
// directly with a partner that only relays lead to.
func (k *keeper) shorten(ctx context.Context) {
	d := directEvery + jitter(directEvery/4)
	for k.nap(ctx, d) && k.partner.mesh.cfg.Relay.Punch {
		d = 4 * punchTime // punching comes first: it would be told of a dial in vain as its own
	}
	if ctx.Err() != nil || !k.partner.roundabout() {
		return
	}
	err := k.attempt(ctx, k.partner.mesh.dialDirectly)
	if err != nil {
		err = k.attempt(ctx, k.partner.mesh.punch)
	}
	if err != nil {
		k.partner.mesh.cfg.Logger.Debug("only a relay leads there", "partner", k.partner.id, "error", err)
	}
}

var errNoPunch = errors.New("mesh: no hole is punched from here")

// punch has libp2p punch holes to a partner that a relay leads to. A dial alone does
// not get through two NATs: nobody's record tells the addresses outside of them, and
// both have to send at one moment. The side that was called by the relay begins, as
// libp2p wants it.
func (m *Mesh) punch(ctx context.Context, p *partner) error {
	if m.puncher == nil || len(m.host.publicAddrs()) == 0 || !p.calledByRelay() {
		return errNoPunch
	}
	done := make(chan error, 1)
	// DirectConnect cannot be cancelled; it ends with the service.
	go func() { done <- m.puncher.DirectConnect(p.peer) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// calledByRelay reports whether the partner connected with us by a relay.
func (p *partner) calledByRelay() bool {
	p.mesh.mu.RLock()
	defer p.mesh.mu.RUnlock()
	return slices.ContainsFunc(p.admitted, func(l *link) bool {
		return l.relayed() && l.conn.Stat().Direction == network.DirInbound
	})
}

// nap waits, at most d, and reports whether addresses changed.
func (k *keeper) nap(ctx context.Context, d time.Duration) (fresh bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-k.awake:
	case <-k.fresh:
		return true
	}
	return false
}

// dialDirectly dials a partner at its own addresses. Once admitted, the connection
// takes the place of those by relays.
func (m *Mesh) dialDirectly(ctx context.Context, p *partner) error {
	m.mu.RLock()
	addrs := p.knownLocked()
	m.mu.RUnlock()
	m.host.Peerstore().AddAddrs(p.peer, addrs, peerstore.TempAddrTTL)
	m.host.forgive(p.peer)
	ctx = network.WithForceDirectDial(network.WithDialPeerTimeout(ctx, m.limits.DialTimeout),
		"a relay leads there already")
	if _, err := m.host.Network().DialPeer(ctx, p.peer); err != nil {
		return fmt.Errorf("mesh: cannot connect directly to %s at %v: %w", p.id, addrs, err)
	}
	return nil
}
