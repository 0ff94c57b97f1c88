package mesh

import (
	"bufio"
	"errors"
	"io"
	"net"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
)

// readBuffer is what is read ahead of the handler on a frames stream, beside a block and
// libp2p's own windows; roomKept what is kept of a frame for the next.
const (
	readBuffer = 8 << 10
	roomKept   = 32 << 10
)

// acceptFrames reads a partner's frames and hands them to the handler.
func (m *Mesh) acceptFrames(s network.Stream) {
	l := m.linkOf(s.Conn())
	if l == nil || !l.permits(false) {
		s.Reset()
		return
	}
	m.spawn(func() {
		defer s.Reset()
		l.readFrames(s)
	})
}

// readFrames handles one stream's frames. A second stream on the same link takes
// the place of the first, which the partner gave up.
func (l *link) readFrames(s network.Stream) {
	if former := l.setIncoming(s); former != nil {
		former.Reset()
	}
	defer l.incomingEnded(s)
	l.frames.Lock()
	defer l.frames.Unlock()
	r := newFrameReader(s)
	defer r.blocks.drop()
	var room []byte // for small frames, one after the other
	for {
		frame, err := l.nextFrame(s, r, room)
		if errors.Is(err, errMalformed) {
			l.mesh.cfg.Logger.Warn("malformed frame", "partner", l.partner.id, "error", err)
			l.violation(ReasonMalformed)
		}
		if err != nil {
			return
		}
		l.hear()
		read := r.blocks.taken()
		l.partner.received(read)
		l.mesh.counters.received(read)
		if !l.partner.receive(l, frame) {
			return
		}
		if cap(frame) <= roomKept {
			room = frame
		}
	}
}

// nextFrame waits for a frame, for as long as there is none, and reads it. One that
// has begun must come to its end: Limits.FrameTime bounds it. It is in room, if that is large enough.
func (l *link) nextFrame(s network.Stream, r *frameReader, room []byte) ([]byte, error) {
	if err := r.await(); err != nil {
		return nil, err
	}
	if frameBuffered(r.Reader) {
		return readFrameInto(room, r.Reader, l.mesh.limits.Frame)
	}
	if err := s.SetReadDeadline(time.Now().Add(l.mesh.limits.FrameTime)); err != nil {
		return nil, err
	}
	frame, err := readFrameInto(room, r.Reader, l.mesh.limits.Frame)
	if timedOut(err) {
		l.violation(ReasonSlow)
	}
	if err == nil {
		err = s.SetReadDeadline(time.Time{})
	}
	return frame, err
}

// frameReader reads a stream's frames out of its blocks.
type frameReader struct {
	*bufio.Reader
	blocks *unpacker
}

func newFrameReader(s io.Reader) *frameReader {
	u := &unpacker{r: bufio.NewReaderSize(s, readBuffer)}
	return &frameReader{bufio.NewReaderSize(u, readBuffer), u}
}

// await waits until more has come.
func (r *frameReader) await() error {
	if r.Buffered() > 0 || r.blocks.block != nil {
		return nil
	}
	_, err := r.blocks.r.Peek(1)
	return err
}

// timedOut reports whether a deadline passed. QUIC's streams return an
// os.ErrDeadlineExceeded, those over TCP only what a net.Error is.
func timedOut(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

func (l *link) setIncoming(s network.Stream) (former network.Stream) {
	l.mesh.mu.Lock()
	defer l.mesh.mu.Unlock()
	former, l.incoming = l.incoming, s
	return former
}

func (l *link) incomingEnded(s network.Stream) {
	l.mesh.mu.Lock()
	defer l.mesh.mu.Unlock()
	if l.incoming == s {
		l.incoming = nil
	}
}
