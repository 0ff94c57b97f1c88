package mesh

import (
	"bufio"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
)

// After the hello its stream carries pings and pongs of nine bytes: the kind, and
// eight bytes that a pong repeats (the pinger's clock). It is apart from the
// frames, so that a partner that takes no frames for a while is not thought dead.
// Any sign of life saves a ping, so on an idle connection one side pings.
const (
	kindPing    = 1
	kindPong    = 2
	controlSize = 9
	// maxPings is how many pings a partner may send per PingEvery.
	maxPings = 16
)

// controlWriter writes pings and pongs of several goroutines.
type controlWriter struct {
	mu     sync.Mutex
	stream network.Stream
}

func (w *controlWriter) write(kind byte, payload uint64, timeout time.Duration) error {
	var b [controlSize]byte
	b[0] = kind
	binary.BigEndian.PutUint64(b[1:], payload)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.stream.SetWriteDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	_, err := w.stream.Write(b[:])
	return err
}

// answerPings reads the control stream until it ends, which ends the link: without
// it silence could not be noticed.
func (l *link) answerPings(r *bufio.Reader) {
	defer l.cut()
	var b [controlSize]byte
	var window time.Duration
	pings := 0
	for {
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return
		}
		l.hear()
		payload := binary.BigEndian.Uint64(b[1:])
		switch b[0] {
		case kindPong:
			l.measure(time.Duration(payload))
		case kindPing:
			if now := l.mesh.now(); now-window > l.mesh.limits.PingEvery {
				window, pings = now, 0
			}
			if pings++; pings > maxPings {
				l.cutFor(ReasonMalformed)
				return
			}
			if err := l.control.write(kindPong, payload, l.mesh.limits.PingTimeout); err != nil {
				return
			}
		default:
			l.cutFor(ReasonMalformed)
			return
		}
	}
}

// measure takes a pong's payload, which a partner could have made up.
func (l *link) measure(sent time.Duration) {
	if rtt := l.mesh.now() - sent; sent >= 0 && rtt > 0 && rtt <= l.mesh.limits.PingTimeout {
		l.rtt.Store(int64(rtt))
	}
}

// watchSilence pings when nothing was heard for a while, and cuts the link when
// that is not answered. The first ping, at once, measures the round trip.
func (l *link) watchSilence() {
	limits := l.mesh.limits
	timer := time.NewTimer(0)
	defer timer.Stop()
	for first := true; ; first = false {
		patience := limits.PingTimeout
		select {
		case <-l.done:
			return
		case <-l.probe:
			patience = limits.ProbeTimeout
		case <-timer.C:
			if idle := l.idle(); !first && idle < limits.PingEvery {
				timer.Reset(limits.PingEvery - idle + jitter(limits.PingEvery/10))
				continue
			}
		}
		if !l.ping(patience) {
			l.cutFor(ReasonSilent)
			return
		}
		timer.Reset(limits.PingEvery + jitter(limits.PingEvery/10))
	}
}

// idle is for how long nothing was heard.
func (l *link) idle() time.Duration { return l.mesh.now() - time.Duration(l.heard.Load()) }

// ping asks for a sign of life and waits for it.
func (l *link) ping(patience time.Duration) bool {
	sent := l.mesh.now()
	if err := l.control.write(kindPing, uint64(sent), patience); err != nil {
		return false
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-l.done:
		return true // nothing left to watch
	case <-timer.C:
		return time.Duration(l.heard.Load()) >= sent
	}
}

// doubt makes the link prove soon that it is alive.
func (l *link) doubt() {
	select {
	case l.probe <- struct{}{}:
	default:
	}
}

// jitter is a random time below limit, so that two sides, or a whole team, do not
// act at one moment.
func jitter(limit time.Duration) time.Duration { return rand.N(max(limit, 1)) }
