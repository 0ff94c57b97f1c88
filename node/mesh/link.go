package mesh

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/multiformats/go-multistream"
)

// link is one connection. It is born when libp2p reports the connection, settled
// when the hello is over (admitted or not), and done when it was cut or lost.
type link struct {
	mesh    *Mesh
	conn    network.Conn
	partner *partner
	origin  origin
	// crossing: there was a connection by a relay when this one was made.
	crossing bool
	begin    time.Duration // when it was made (mesh.now)

	begun   atomic.Bool   // a hello has begun
	settled chan struct{} // closed when the hello is over
	refusal error         // why we are not connected with a member; set before settled
	boot    uint64        // the other's boot counter; set before settled
	done    chan struct{} // closed when the link has ended
	cutting sync.Once

	// Guarded by mesh.mu.
	gone     bool           // libp2p said that the connection has ended
	member   bool           // it was admitted
	incoming network.Stream // the partner's frames stream, nil if it has none

	frames  sync.Mutex    // held while a stream's frames are being handled
	control controlWriter // the hello stream, once settled
	probe   chan struct{} // capacity 1: ping now
	heard   atomic.Int64  // when the other was heard of last (mesh.now)
	ponged  atomic.Int64  // when the last ping that was answered was sent
	rtt     atomic.Int64
	faults  atomic.Int32
	shown   atomic.Int32 // by a stranger (lobby.go)
	asking  atomic.Int32 // requests of the other that are waiting, being read or handled
	turn    sync.Mutex   // held while a stranger's request is being read and handled
}

// connected is called by libp2p for each new connection, before its streams.
func (m *Mesh) connected(c network.Conn) {
	l := &link{
		mesh: m, conn: c, origin: originOf(c.RemoteMultiaddr()), begin: m.now(), settled: make(chan struct{}),
		done: make(chan struct{}), probe: make(chan struct{}, 1),
	}
	l.hear()
	m.mu.Lock()
	if m.closed || m.links[c.ID()] != nil {
		m.mu.Unlock()
		return
	}
	l.partner = m.partnerLocked(c.RemotePeer())
	l.partner.links++
	l.crossing = slices.ContainsFunc(l.partner.admitted, (*link).relayed)
	m.links[c.ID()] = l
	surplus := m.surplusLocked(l)
	if l.dialled() {
		m.spawnLocked(l.greet)
	}
	m.mu.Unlock()
	if surplus != nil {
		surplus.cutFor(ReasonTooMany)
	}
	m.spawn(l.expectHello)
	if m.silent.Load() { // it was made while the silence began
		l.cut()
	}
}

// disconnected is called by libp2p when a connection has ended.
func (m *Mesh) disconnected(c network.Conn) {
	m.mu.Lock()
	l := m.links[c.ID()]
	if l == nil {
		m.mu.Unlock()
		return
	}
	delete(m.links, c.ID())
	l.gone = true
	p := l.partner
	p.links--
	p.removeLocked(l)
	if p.wanted != nil {
		p.wanted.look()
	}
	m.forgetLocked(p)
	m.mu.Unlock()
	l.cut()
}

// linkOf is the link of a connection, nil if it has ended.
func (m *Mesh) linkOf(c network.Conn) *link {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.links[c.ID()]
}

// cut ends the link: nothing more is handed over from it, and the connection is
// closed.
func (l *link) cut() {
	l.cutting.Do(func() {
		close(l.done)
		go l.conn.Close() // may wait for the network
		go l.wakeReceivers()
	})
}

// wakeReceivers lets those who wait for OnUp see that the link has ended.
func (l *link) wakeReceivers() {
	l.partner.handling.Lock()
	defer l.partner.handling.Unlock()
	l.partner.changed.Broadcast()
}

func (l *link) cutFor(r Reason) {
	if l.ended() {
		return
	}
	l.mesh.counters.refuse(r)
	level := slog.LevelInfo
	if r == ReasonNoHello { // as of one that refuses this node before it has heard it, or whom this one keeps out
		level = l.mesh.unwanted.level(l.partner.id, string(r), time.Now())
	}
	l.mesh.cfg.Logger.Log(l.mesh.ctx, level, "connection cut", "partner", l.partner.id,
		"address", l.conn.RemoteMultiaddr().String(), "reason", string(r))
	l.cut()
}

func (l *link) ended() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// fault counts something that went wrong and cuts the link if it was too often.
func (l *link) fault(r Reason) {
	l.mesh.counters.refuse(r)
	if int(l.faults.Add(1)) >= l.mesh.limits.Faults {
		l.cutFor(ReasonFaults)
	}
}

// violation is a fault that a correct partner does not have: too many of them, over
// however many connections, keep a member away for a while.
func (l *link) violation(r Reason) {
	l.fault(r)
	if !l.admitted() || int(l.partner.violations.Add(1)) < l.mesh.limits.Faults {
		return
	}
	l.partner.violations.Store(0)
	l.mesh.Distrust(l.partner.id)
}

// admitted reports whether the hello is over and the other is a member.
func (l *link) admitted() bool {
	select {
	case <-l.settled:
		return l.refusal == nil
	default:
		return false
	}
}

// hear notes a sign of life.
func (l *link) hear() { l.heard.Store(int64(l.mesh.now())) }

func (l *link) roundTrip() time.Duration { return time.Duration(l.rtt.Load()) }

// wait waits for the end of a hello and returns the refusal, if any.
func (l *link) wait(ctx context.Context) error {
	select {
	case <-l.settled:
		return l.refusal
	case <-l.done:
		return fmt.Errorf("the connection ended before the hello was over")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// open opens a stream on this very connection. (A host's NewStream takes the
// connection with the most streams, which may be the dead one.)
func (l *link) open(ctx context.Context, proto protocol.ID) (network.Stream, error) {
	s, err := l.conn.NewStream(network.WithAllowLimitedConn(ctx, string(proto)))
	if err != nil {
		return nil, err
	}
	if err := l.negotiate(ctx, s, proto); err != nil {
		s.Reset()
		return nil, fmt.Errorf("protocol %s: %w", proto, err)
	}
	return s, nil
}

// openAsking opens a stream that says at once, before what is written first, which protocol it is meant for: so a
// request and its answer take one round trip instead of two. If the other side does not speak the protocol, reading
// fails.
func (l *link) openAsking(ctx context.Context, proto protocol.ID) (asking, error) {
	s, err := l.conn.NewStream(network.WithAllowLimitedConn(ctx, string(proto)))
	if err != nil {
		return asking{}, err
	}
	if err := s.SetProtocol(proto); err != nil {
		s.Reset()
		return asking{}, fmt.Errorf("protocol %s: %w", proto, err)
	}
	return asking{s, multistream.NewMSSelect(s, proto)}, nil
}

// asking is a stream on which one asks: what is written and read goes through agreed, by which the protocol is said.
type asking struct {
	network.Stream
	agreed io.ReadWriter
}

func (a asking) Read(b []byte) (int, error)  { return a.agreed.Read(b) }
func (a asking) Write(b []byte) (int, error) { return a.agreed.Write(b) }

func (l *link) negotiate(ctx context.Context, s network.Stream, proto protocol.ID) error {
	if err := s.SetProtocol(proto); err != nil {
		return err
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(l.mesh.limits.HelloTimeout)
	}
	if err := s.SetDeadline(deadline); err != nil {
		return err
	}
	if err := multistream.SelectProtoOrFail(proto, s); err != nil {
		return err
	}
	return s.SetDeadline(time.Time{})
}
