package mesh

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// partner is another node: somebody we want, know an address of, or have a
// connection with.
type partner struct {
	mesh  *Mesh
	peer  peer.ID
	id    workflow.PartnerID
	queue *queue
	traffic
	violations atomic.Int32 // since it was distrusted last

	// Guarded by mesh.mu.
	admitted []*link       // live, in order of admission
	links    int           // all live ones
	current  *link         // the one that is sent on, between OnUp and OnDown
	sending  bool          // sendLoop runs
	farewell chan struct{} // of a stream that is sent on: closed when that ends
	wanted   *keeper       // nil: not wanted
	addrs    []ma.Multiaddr
	seen     []ma.Multiaddr // on the local network, by the partner that said so (discover.go)

	// handling is held while the handler is called, so that it hears of one thing
	// at a time.
	handling sync.Mutex
	changed  *sync.Cond // of up, and of a link's end
	up       bool       // OnUp was called, OnDown not yet
}

// partnerLocked returns the partner, which it makes if need be.
func (m *Mesh) partnerLocked(id peer.ID) *partner {
	p := m.partners[id]
	if p == nil {
		p = &partner{mesh: m, peer: id, id: partnerID(id), queue: newQueue(m.limits)}
		p.changed = sync.NewCond(&p.handling)
		m.partners[id], m.byID[p.id] = p, p
	}
	return p
}

// forgetLocked drops a partner of which there is nothing to know.
func (m *Mesh) forgetLocked(p *partner) {
	if p.links == 0 && p.wanted == nil && len(p.addrs) == 0 && !p.sending {
		delete(m.partners, p.peer)
		delete(m.byID, p.id)
	}
}

// admit makes a link one that the partner's frames go over, and cuts those that
// lead to an earlier process of it, or round by a relay where this one is direct.
func (m *Mesh) admit(l *link) {
	m.mu.Lock()
	p := l.partner
	if l.gone || m.closed {
		m.mu.Unlock()
		return
	}
	l.member = true
	var stale []*link
	for _, other := range p.admitted {
		if other.boot < l.boot || other.relayed() && !l.relayed() {
			stale = append(stale, other)
		}
	}
	p.admitted = append(p.admitted, l)
	if !p.sending {
		p.sending = true
		m.spawnLocked(p.sendLoop)
	}
	m.mu.Unlock()
	for _, s := range stale {
		s.cutFor(ReasonStale)
	}
	m.view.admitted(p.peer)
}

// pickLocked chooses the link to send on: of the newest process, if possible the
// one that the partner sends on, else the youngest.
func (p *partner) pickLocked() *link {
	var best *link
	better := func(l *link) bool {
		switch {
		case best == nil:
			return true
		case l.boot != best.boot:
			return l.boot > best.boot
		case (l.incoming != nil) != (best.incoming != nil):
			return l.incoming != nil
		}
		return true
	}
	for _, l := range p.admitted {
		if better(l) {
			best = l
		}
	}
	return best
}

func (p *partner) removeLocked(l *link) {
	p.admitted = slices.DeleteFunc(p.admitted, func(other *link) bool { return other == l })
}

// begin opens the queue and tells the handler.
func (p *partner) begin(l *link) {
	p.handling.Lock()
	defer p.handling.Unlock()
	p.mesh.mu.Lock()
	p.current = l
	p.mesh.mu.Unlock()
	p.queue.setOpen(true)
	p.mesh.cfg.Handler.OnUp(p.id)
	p.up = true
	p.changed.Broadcast()
}

// end closes the queue and tells the handler.
func (p *partner) end() {
	p.queue.setOpen(false)
	p.mesh.mu.Lock()
	p.current = nil
	p.mesh.mu.Unlock()
	p.handling.Lock()
	defer p.handling.Unlock()
	p.up = false
	p.mesh.cfg.Handler.OnDown(p.id)
}

// receive hands a frame to the handler, after OnUp. It says false when the link
// has ended.
func (p *partner) receive(l *link, frame []byte) bool {
	p.handling.Lock()
	defer p.handling.Unlock()
	for !p.up && !l.ended() {
		p.changed.Wait()
	}
	if l.ended() {
		return false
	}
	p.mesh.cfg.Handler.OnFrame(p.id, frame)
	return true
}

// info describes a connected partner; the caller holds mesh.mu.
func (p *partner) info() PeerInfo {
	l := p.current
	frames, bytes := p.queue.waiting()
	return PeerInfo{
		ID: p.id, Addr: l.conn.RemoteMultiaddr().String(), Since: l.conn.Stat().Opened,
		RTT: l.roundTrip(), Boot: l.boot,
		FramesIn: p.framesIn.Load(), FramesOut: p.framesOut.Load(),
		BytesIn: p.bytesIn.Load(), BytesOut: p.bytesOut.Load(),
		QueueFrames: frames, QueueBytes: bytes,
	}
}
