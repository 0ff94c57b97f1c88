package mesh

import (
	"fmt"
	"net/netip"
	"sync"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

// rationed is the resource manager, with rations of what all share until it is
// known whose it is: handshakes for each address, streams for each stranger. Else
// some could take all of it, and nobody else would get as far as to show its
// identity.
type rationed struct {
	network.ResourceManager
	mesh *Mesh

	mu         sync.Mutex // guards what follows
	handshakes map[origin]int
}

func newRationed(r network.ResourceManager, m *Mesh) *rationed {
	return &rationed{ResourceManager: r, mesh: m, handshakes: map[origin]int{}}
}

// handshakesPerOrigin is the share of all connections that may be handshakes under
// way with one address.
const handshakesPerOrigin = 8

// OpenConnection is asked for each connection, before its handshake.
func (r *rationed) OpenConnection(d network.Direction, fd bool, a ma.Multiaddr) (network.ConnManagementScope, error) {
	if d == network.DirOutbound {
		return r.ResourceManager.OpenConnection(d, fd, a)
	}
	from := originOf(a)
	if !r.begin(from) {
		r.mesh.counters.refuse(ReasonTooMany)
		return nil, fmt.Errorf("handshakes with %s: %w", netip.Prefix(from), network.ErrResourceLimitExceeded)
	}
	scope, err := r.ResourceManager.OpenConnection(d, fd, a)
	if err != nil {
		r.end(from)
		return nil, err
	}
	return &handshake{ConnManagementScope: scope, over: sync.OnceFunc(func() { r.end(from) })}, nil
}

func (r *rationed) begin(from origin) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.handshakes[from] >= max(r.mesh.limits.Connections/handshakesPerOrigin, 1) {
		return false
	}
	r.handshakes[from]++
	return true
}

func (r *rationed) end(from origin) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.handshakes[from]--; r.handshakes[from] == 0 {
		delete(r.handshakes, from)
	}
}

// handshake is the scope of a connection, which says when its handshake is over.
type handshake struct {
	network.ConnManagementScope
	over func()
}

// SetPeer is called when the key is known.
func (h *handshake) SetPeer(p peer.ID) error {
	h.over()
	return h.ConnManagementScope.SetPeer(p)
}

// Done is called when the connection has ended, or never came about.
func (h *handshake) Done() {
	h.over()
	h.ConnManagementScope.Done()
}

// strangerStreams is how many streams a stranger may have open: for its hello, a
// request, and libp2p's own.
const strangerStreams = 16

// OpenStream is asked for each stream, before it is known what it is for.
func (r *rationed) OpenStream(p peer.ID, d network.Direction) (network.StreamManagementScope, error) {
	if d == network.DirInbound && r.mesh.memberLink(p) == nil && r.inbound(p) >= strangerStreams {
		r.mesh.counters.refuse(ReasonTooMany)
		return nil, network.ErrResourceLimitExceeded
	}
	return r.ResourceManager.OpenStream(p, d)
}

// inbound is how many streams p has open here; none if it is not known.
func (r *rationed) inbound(p peer.ID) (n int) {
	_ = r.ViewPeer(p, func(s network.PeerScope) error { n = s.Stat().NumStreamsInbound; return nil })
	return n
}
