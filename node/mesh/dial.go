package mesh

import (
	"context"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// protectTag keeps libp2p's connection manager from trimming wanted partners.
const protectTag = "wanted"

// keeper keeps a connection to a wanted partner.
type keeper struct {
	partner *partner
	stop    context.CancelFunc
	awake   chan struct{} // capacity 1: look again
	fresh   chan struct{} // capacity 1: something changed, dial without waiting
	abandon func()        // ends the attempt under way; guarded by mesh.mu
}

// look makes the keeper see whether there still is a connection.
func (k *keeper) look() { poke(k.awake) }

// hurryLocked makes it dial at once, if there is no connection. An attempt that is
// under way is given up: it may be waiting for an address of yesterday.
func (k *keeper) hurryLocked() {
	poke(k.fresh)
	k.abandon()
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Want says whether a connection to p shall be kept. While it shall, the mesh
// dials whenever there is none: at once when p's addresses or ours change, else
// with a growing wait.
func (m *Mesh) Want(p workflow.PartnerID, want bool) error {
	id, err := peerID(p)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || id == m.host.ID() {
		return nil
	}
	to := m.partnerLocked(id)
	if want == (to.wanted != nil) {
		m.forgetLocked(to)
		return nil
	}
	if !want {
		to.wanted.stop()
		to.wanted = nil
		m.host.ConnManager().Unprotect(id, protectTag)
		m.forgetLocked(to)
		return nil
	}
	m.host.ConnManager().Protect(id, protectTag)
	ctx, stop := context.WithCancel(m.ctx)
	k := &keeper{
		partner: to, stop: stop, awake: make(chan struct{}, 1), fresh: make(chan struct{}, 1), abandon: func() {},
	}
	to.wanted = k
	m.spawnLocked(func() { k.run(ctx) })
	return nil
}

// run dials whenever there is no admitted link.
func (k *keeper) run(ctx context.Context) {
	limits := k.partner.mesh.limits
	wait := k.courtesy()
	backoff := limits.BackoffMin
	for ctx.Err() == nil {
		if k.partner.isConnected() {
			backoff = limits.BackoffMin
			wait = k.courtesy()
			if k.partner.roundabout() {
				k.shorten(ctx)
			} else {
				k.sleep(ctx, -1)
			}
			continue
		}
		if hurried := k.sleep(ctx, wait); hurried {
			backoff = limits.BackoffMin
		}
		if k.partner.isConnected() || ctx.Err() != nil {
			continue
		}
		if err := k.attempt(ctx, k.partner.mesh.connect); err != nil {
			k.partner.mesh.cfg.Logger.Debug("cannot connect", "partner", k.partner.id, "error", err)
		}
		wait = backoff/2 + jitter(backoff)
		backoff = min(2*backoff, limits.BackoffMax)
	}
}

// attempt tries once to connect.
func (k *keeper) attempt(ctx context.Context, how func(context.Context, *partner) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := k.partner.mesh
	m.mu.Lock()
	k.abandon = cancel
	m.mu.Unlock()
	return how(ctx, k.partner)
}

// courtesy is the wait before the first attempt: the partner with the greater ID
// lets the other dial first, since two that dial at the same moment get two
// connections, or over TCP sometimes none.
func (k *keeper) courtesy() time.Duration {
	if k.partner.id < k.partner.mesh.id {
		return k.partner.mesh.limits.BackoffMin/2 + jitter(k.partner.mesh.limits.BackoffMin/2)
	}
	return 0
}

// sleep waits, for ever if d is negative, or until there is something to do. It
// says true if that should be done at once.
func (k *keeper) sleep(ctx context.Context, d time.Duration) (hurried bool) {
	var timeout <-chan time.Time
	if d >= 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		timeout = timer.C
	}
	for {
		select {
		case <-ctx.Done():
		case <-timeout:
		case <-k.fresh:
			return true
		case <-k.awake:
			if d >= 0 {
				continue // the connection is lost, which is known
			}
		}
		return false
	}
}

func (p *partner) isConnected() bool {
	p.mesh.mu.RLock()
	defer p.mesh.mu.RUnlock()
	return len(p.admitted) > 0
}

// connect makes a connection with an admitted partner, from the address book.
func (m *Mesh) connect(ctx context.Context, p *partner) error {
	if m.silent.Load() {
		return errSilent
	}
	m.mu.RLock()
	addrs := p.knownLocked()
	m.mu.RUnlock()
	ctx, cancel := context.WithTimeout(ctx, m.limits.DialTimeout)
	defer cancel()
	l, err := m.dial(ctx, p, addrs)
	if err != nil {
		return err
	}
	return l.wait(ctx)
}

// dial returns a live link with p, an existing one if there is. Back-off is ours:
// libp2p's is cleared. Addresses that libp2p learned otherwise are not used when
// there are some in the book: they may be older.
func (m *Mesh) dial(ctx context.Context, p *partner, addrs []ma.Multiaddr) (*link, error) {
	if l := m.liveLink(p.peer); l != nil {
		return l, nil
	}
	m.counters.dials.Add(1)
	store := m.host.Peerstore()
	if len(addrs) > 0 {
		store.ClearAddrs(p.peer)
		store.AddAddrs(p.peer, addrs, peerstore.TempAddrTTL)
	}
	m.host.forgive(p.peer)
	if _, err := m.host.Network().DialPeer(network.WithDialPeerTimeout(ctx, m.limits.DialTimeout), p.peer); err != nil {
		m.counters.dialsFailed.Add(1)
		return nil, fmt.Errorf("mesh: cannot connect to %s at %v: %w", p.id, addrs, err)
	}
	if l := m.liveLink(p.peer); l != nil {
		return l, nil
	}
	m.counters.dialsFailed.Add(1)
	return nil, fmt.Errorf("mesh: the connection to %s ended at once", p.id)
}

// liveLink is the best link with a peer that has not ended: an admitted one, or
// else any.
func (m *Mesh) liveLink(id peer.ID) *link {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if p := m.partners[id]; p != nil {
		if l := p.pickLocked(); l != nil && !l.ended() {
			return l
		}
	}
	for _, l := range m.links {
		if l.partner.peer == id && !l.ended() {
			return l
		}
	}
	return nil
}
