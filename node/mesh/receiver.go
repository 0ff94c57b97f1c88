package mesh

import (
	"bufio"
	"errors"

	"github.com/libp2p/go-libp2p/core/network"
)

// readBuffer is what is read ahead of the handler on a frames stream, beside
// libp2p's own windows.
const readBuffer = 32 << 10

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
	r := bufio.NewReaderSize(s, readBuffer)
	for {
		frame, err := readFrame(r, l.mesh.limits.Frame)
		if errors.Is(err, errMalformed) {
			l.mesh.cfg.Logger.Warn("malformed frame", "partner", l.partner.id, "error", err)
			l.fault(ReasonMalformed)
		}
		if err != nil {
			return
		}
		l.hear()
		l.partner.received(len(frame))
		l.mesh.counters.received(len(frame))
		if !l.partner.receive(l, frame) {
			return
		}
	}
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
