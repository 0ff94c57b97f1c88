package mesh

import (
	"context"
	"fmt"
	"net"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Open opens a stream of another protocol to a connected partner; it never
// dials. Only what is read proves that the other end is there: set deadlines.
func (m *Mesh) Open(ctx context.Context, p workflow.PartnerID, proto string) (net.Conn, error) {
	id, err := peerID(p)
	if err != nil {
		return nil, err
	}
	l := m.memberLink(id)
	if l == nil {
		return nil, fmt.Errorf("mesh: %s: %w", p, ErrNotConnected)
	}
	s, err := l.open(ctx, protocol.ID(proto))
	if err != nil {
		return nil, fmt.Errorf("mesh: no stream to %s: %w", p, err)
	}
	return &streamConn{Stream: s, link: l}, nil
}

// HandleStreams has fn serve the streams that members open under a protocol.
// Each call has its own goroutine and closes the stream in the end. Before
// members can be admitted (Config.Prepare) is the time to call it: a partner
// that meets no handler may not ask again.
func (m *Mesh) HandleStreams(proto string, fn func(p workflow.PartnerID, c net.Conn)) {
	m.handleMembers(protocol.ID(proto), func(s network.Stream) {
		l := m.linkOf(s.Conn())
		if l == nil {
			s.Reset()
			return
		}
		m.spawn(func() { fn(l.partner.id, &streamConn{Stream: s, link: l}) })
	})
}

// handleMembers has streams of strangers refused before handler sees them.
func (m *Mesh) handleMembers(proto protocol.ID, handler network.StreamHandler) {
	m.host.SetStreamHandler(proto, func(s network.Stream) {
		if l := m.linkOf(s.Conn()); l == nil || !l.permits(false) {
			s.Reset()
			return
		}
		handler(s)
	})
}

// Doubt makes a partner's connections prove soon that they are alive, because
// somebody else could not reach it; with none, it is dialled at once.
func (m *Mesh) Doubt(p workflow.PartnerID) {
	id, err := peerID(p)
	if err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if to := m.partners[id]; to != nil {
		if len(to.admitted) == 0 && to.wanted != nil {
			to.wanted.hurryLocked()
		}
		for _, l := range to.admitted {
			l.doubt()
		}
	}
}

// Connected reports whether there is an admitted connection to p.
func (m *Mesh) Connected(p workflow.PartnerID) bool {
	id, err := peerID(p)
	return err == nil && m.memberLink(id) != nil
}

// streamConn is a stream as a net.Conn.
type streamConn struct {
	network.Stream
	link *link
}

// Read notes the sign of life.
func (c *streamConn) Read(b []byte) (int, error) {
	n, err := c.Stream.Read(b)
	if n > 0 {
		c.link.hear()
	}
	return n, err
}

func (c *streamConn) LocalAddr() net.Addr  { return streamAddr(c.link.mesh.id) }
func (c *streamConn) RemoteAddr() net.Addr { return streamAddr(c.link.partner.id) }

// streamAddr names an end of a stream.
type streamAddr workflow.PartnerID

func (streamAddr) Network() string  { return "libp2p" }
func (a streamAddr) String() string { return string(a) }
