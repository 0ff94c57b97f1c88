package mesh

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
)

// sendLoop sends over one link after the other until none is left.
func (p *partner) sendLoop() {
	for {
		p.mesh.mu.Lock()
		l := p.pickLocked()
		if l == nil || p.mesh.closed || p.mesh.silent.Load() {
			p.sending = false
			p.mesh.forgetLocked(p)
			p.mesh.mu.Unlock()
			return
		}
		p.mesh.mu.Unlock()
		p.sendOver(l)
	}
}

// sendOver sends over one link until its stream breaks or it ends. A stream that
// breaks while the link lives is a fault, so this ends.
func (p *partner) sendOver(l *link) {
	ctx, cancel := context.WithTimeout(p.mesh.ctx, p.mesh.limits.HelloTimeout)
	defer cancel()
	s, err := l.open(ctx, framesProtocol)
	if err != nil {
		p.broken(l, err)
		return
	}
	ended := make(chan struct{})
	p.setFarewell(ended)
	p.begin(l)
	err = p.writeFrames(s, untilClosed(s))
	s.Reset()
	p.end()
	p.setFarewell(nil)
	close(ended)
	if err != errFarewell {
		p.broken(l, err)
	}
}

func (p *partner) setFarewell(ended chan struct{}) {
	p.mesh.mu.Lock()
	defer p.mesh.mu.Unlock()
	p.farewell = ended
}

// farewellTime is how long Close, or a silence, waits for partners to take what is queued.
const farewellTime = time.Second

// errFarewell ends a stream because the mesh closes, or falls silent.
var errFarewell = errors.New("the mesh ends its conversations")

// awaitFarewells waits until what is queued was taken.
func (m *Mesh) awaitFarewells() {
	m.mu.RLock()
	var pending []chan struct{}
	for _, p := range m.partners {
		if p.farewell != nil {
			pending = append(pending, p.farewell)
		}
	}
	m.mu.RUnlock()
	timeout := time.NewTimer(farewellTime)
	defer timeout.Stop()
	for _, ended := range pending {
		select {
		case <-ended:
		case <-timeout.C:
			return
		}
	}
}

// bow ends a stream such that all that was written arrives: the other side ends
// it too when it has read everything. Closing the connection at once would throw
// away what is on the way.
func bow(s network.Stream, closed <-chan struct{}) error {
	if err := s.CloseWrite(); err != nil {
		return err
	}
	timeout := time.NewTimer(farewellTime)
	defer timeout.Stop()
	select {
	case <-closed:
	case <-timeout.C:
	}
	return errFarewell
}

// broken waits for the end of a link that has lost its connection, or counts a
// fault against one that has not.
func (p *partner) broken(l *link, err error) {
	if l.conn.IsClosed() || p.mesh.ctx.Err() != nil {
		l.cut()
	}
	if !l.ended() {
		p.mesh.cfg.Logger.Debug("frames stream broken", "partner", p.id, "error", err)
		l.fault(ReasonFaults)
		pause(p.mesh.ctx, p.mesh.limits.BackoffMin)
	}
	p.mesh.drop(l)
}

// drop removes a link that has ended from those that can be sent on, before libp2p
// reports its end.
func (m *Mesh) drop(l *link) {
	if !l.ended() {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	l.partner.removeLocked(l)
}

// untilClosed returns a channel that is closed when the other side ends the
// stream, on which it never writes.
func untilClosed(s network.Stream) <-chan struct{} {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		var b [1]byte
		s.Read(b[:])
	}()
	return closed
}

var errStreamClosed = errors.New("the partner closed the stream")

// writeFrames writes what is queued until the stream ends.
func (p *partner) writeFrames(s network.Stream, closed <-chan struct{}) error {
	w := &packer{w: deadlineWriter{s, p.mesh.limits.WriteTimeout}, plain: p.mesh.cfg.Plain}
	ends := p.mesh.ends()
	var batch [][]byte
	for leaving := false; ; {
		select {
		case <-closed:
			return errStreamClosed
		case <-p.queue.filled:
		case <-ends:
			leaving = true
		}
		for batch = p.queue.take(batch); len(batch) > 0; batch = p.queue.take(batch) {
			bytes, err := writeBatch(w, batch)
			if err != nil {
				return err
			}
			p.queue.written(len(batch), bytes)
			wrote := w.taken()
			p.sent(len(batch), wrote)
			p.mesh.counters.sent(len(batch), wrote)
			clear(batch)
		}
		if leaving {
			return bow(s, closed)
		}
	}
}

// writeBatch writes frames in few writes and returns the sum of their lengths.
func writeBatch(w *packer, frames [][]byte) (bytes int, err error) {
	var length [binary.MaxVarintLen64]byte
	for _, f := range frames {
		bytes += len(f)
		for _, b := range [][]byte{appendLength(length[:0], len(f)), f} {
			if _, err := w.Write(b); err != nil {
				return bytes, err
			}
		}
	}
	return bytes, w.flush()
}

// deadlineWriter gives each write its own deadline.
type deadlineWriter struct {
	network.Stream
	timeout time.Duration
}

func (w deadlineWriter) Write(b []byte) (int, error) {
	if err := w.SetWriteDeadline(time.Now().Add(w.timeout)); err != nil {
		return 0, err
	}
	return w.Stream.Write(b)
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
