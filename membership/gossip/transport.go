package gossip

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// The protocols that memberlist's traffic goes under. The bytes under one ID
// never change.
const (
	// packetProtocol: frames (uvarint length, packet), written by the opener only.
	packetProtocol = "/mutirao/swim-packets/1.0.0"
	// streamProtocol: memberlist's exchange of states.
	streamProtocol = "/mutirao/swim-stream/1.0.0"
)

// Mesh is what gossip needs of the connections between members.
type Mesh interface {
	ID() workflow.PartnerID
	// Open opens a stream to a connected partner, HandleStreams serves theirs.
	Open(ctx context.Context, p workflow.PartnerID, protocol string) (net.Conn, error)
	HandleStreams(protocol string, fn func(p workflow.PartnerID, c net.Conn))
	// Connected reports whether there is a connection; Doubt has it prove that it is
	// alive, or dials if there is none.
	Connected(p workflow.PartnerID) bool
	Doubt(p workflow.PartnerID)
}

// transport carries memberlist's packets and streams over the mesh.
//
// Writing a packet never blocks and never fails: memberlist reads, answers and
// acknowledges in one goroutine, and a plain error would disable its failure
// detection without a word.
type transport struct {
	mesh    Mesh
	packets chan *memberlist.Packet
	streams chan net.Conn
	heard   func(workflow.PartnerID) // told of each packet; must not block

	ctx    context.Context // ends with Shutdown
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu      sync.Mutex
	outbox  map[workflow.PartnerID]*outbox
	byAddr  map[string]workflow.PartnerID // synthetic addresses, for calls without a name
	stopped bool
}

func newTransport(m Mesh, heard func(workflow.PartnerID)) *transport {
	t := &transport{
		mesh: m, heard: heard, packets: make(chan *memberlist.Packet, queuedPackets), streams: make(chan net.Conn),
		outbox: map[workflow.PartnerID]*outbox{}, byAddr: map[string]workflow.PartnerID{},
	}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	m.HandleStreams(packetProtocol, t.readPackets)
	m.HandleStreams(streamProtocol, t.serveStream)
	return t
}

// FinalAdvertiseAddr is the node's own synthetic address.
func (t *transport) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return syntheticIP(t.mesh.ID()), port, nil
}

// WriteTo is WriteToAddress for a synthetic address without a name.
func (t *transport) WriteTo(b []byte, addr string) (time.Time, error) {
	return t.WriteToAddress(b, memberlist.Address{Addr: addr})
}

// WriteToAddress queues a packet; the slice stays the caller's.
func (t *transport) WriteToAddress(b []byte, to memberlist.Address) (time.Time, error) {
	if o := t.outboxOf(t.partner(to)); o != nil {
		o.put(append([]byte(nil), b...))
	}
	return time.Now(), nil
}

func (t *transport) partner(a memberlist.Address) workflow.PartnerID {
	if a.Name != "" {
		return workflow.PartnerID(a.Name)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byAddr[a.Addr]
}

// know lets packets go to p: memberlist may name nobody else.
func (t *transport) know(p workflow.PartnerID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped || t.outbox[p] != nil {
		return
	}
	o := newOutbox(t.mesh, p)
	t.outbox[p] = o
	t.byAddr[address(p).String()] = p
	t.work.Go(func() { o.run(t.ctx) })
}

func (t *transport) outboxOf(p workflow.PartnerID) *outbox {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.outbox[p]
}

// PacketCh and StreamCh are where memberlist takes what came in.
func (t *transport) PacketCh() <-chan *memberlist.Packet { return t.packets }

// StreamCh: see PacketCh.
func (t *transport) StreamCh() <-chan net.Conn { return t.streams }

// DialTimeout is DialAddressTimeout for a synthetic address without a name.
func (t *transport) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	return t.DialAddressTimeout(memberlist.Address{Addr: addr}, timeout)
}

// DialAddressTimeout opens a stream over the connection that exists.
func (t *transport) DialAddressTimeout(to memberlist.Address, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(t.ctx, max(timeout, time.Millisecond))
	defer cancel()
	p := t.partner(to)
	c, err := t.mesh.Open(ctx, p, streamProtocol)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: address(p), Err: err}
	}
	return stream{c, t.mesh.ID(), p}, nil
}

// Shutdown ends all that runs.
func (t *transport) Shutdown() error {
	t.mu.Lock()
	t.stopped = true
	t.mu.Unlock()
	t.cancel()
	t.work.Wait()
	return nil
}

// readPackets hands a partner's packets to memberlist.
func (t *transport) readPackets(p workflow.PartnerID, c net.Conn) {
	defer c.Close()
	defer context.AfterFunc(t.ctx, func() { c.Close() })()
	r := bufio.NewReaderSize(c, 512)
	for {
		b, err := readPacket(r)
		if err != nil {
			return
		}
		t.heard(p)
		select {
		case t.packets <- &memberlist.Packet{Buf: b, From: address(p), Timestamp: time.Now()}:
		case <-t.ctx.Done():
			return
		}
	}
}

// maxPacket bounds what is accepted: somewhat more than is sent.
const maxPacket = 2 * packetSize

// readPacket reads one frame into a fresh slice, which memberlist keeps.
func readPacket(r *bufio.Reader) ([]byte, error) {
	n, err := binary.ReadUvarint(r)
	if err != nil {
		return nil, err
	}
	if n == 0 || n > maxPacket {
		return nil, fmt.Errorf("packet of %d bytes: 1 to %d are possible", n, maxPacket)
	}
	b := make([]byte, n)
	_, err = io.ReadFull(r, b)
	return b, err
}

// serveStream hands a stream to memberlist, which closes it.
func (t *transport) serveStream(p workflow.PartnerID, c net.Conn) {
	select {
	case t.streams <- stream{c, t.mesh.ID(), p}:
	case <-t.ctx.Done():
		c.Close()
	}
}

// stream has synthetic addresses, as memberlist expects.
type stream struct {
	net.Conn
	self, peer workflow.PartnerID
}

func (s stream) LocalAddr() net.Addr  { return address(s.self) }
func (s stream) RemoteAddr() net.Addr { return address(s.peer) }
