package gossip

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

const (
	queuedPackets = 64
	// openTimeout is how long packets wait for a stream, writeTimeout how long a
	// partner may take to accept them; later they would mislead.
	openTimeout  = 3 * time.Second
	writeTimeout = 3 * time.Second
)

// outbox sends packets to one partner over a long-lived stream.
type outbox struct {
	to   workflow.PartnerID
	mesh Mesh

	mu      sync.Mutex
	packets [][]byte
	filled  chan struct{} // capacity 1: there may be packets
}

func newOutbox(m Mesh, to workflow.PartnerID) *outbox {
	return &outbox{to: to, mesh: m, filled: make(chan struct{}, 1)}
}

// put queues a packet and drops the oldest if there are too many.
func (o *outbox) put(packet []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.packets) >= queuedPackets {
		o.packets = append(o.packets[:0], o.packets[1:]...)
	}
	o.packets = append(o.packets, packet)
	select {
	case o.filled <- struct{}{}:
	default:
	}
}

func (o *outbox) take() [][]byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	packets := o.packets
	o.packets = nil
	return packets
}

// run sends until ctx ends. What cannot be sent is dropped: memberlist sends
// again what matters.
func (o *outbox) run(ctx context.Context) {
	var c net.Conn
	for {
		select {
		case <-ctx.Done():
			if c != nil {
				c.Close()
			}
			return
		case <-o.filled:
		}
		c = o.send(ctx, c)
	}
}

// send writes what waits and returns the stream to go on with, nil if it broke.
func (o *outbox) send(ctx context.Context, c net.Conn) net.Conn {
	var buf []byte
	for _, p := range o.take() {
		buf = append(binary.AppendUvarint(buf, uint64(len(p))), p...)
	}
	if c != nil && writeAll(c, buf) {
		return c
	}
	// A stream that broke may have led to a process that is gone: once more.
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	c, err := o.mesh.Open(ctx, o.to, packetProtocol)
	if err != nil || !writeAll(c, buf) {
		return nil
	}
	return c
}

// writeAll writes b, and closes c if that fails.
func writeAll(c net.Conn, b []byte) bool {
	err := c.SetWriteDeadline(time.Now().Add(writeTimeout))
	if err == nil {
		_, err = c.Write(b)
	}
	if err != nil {
		c.Close()
	}
	return err == nil
}
