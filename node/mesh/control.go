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
		l.ponged.Store(int64(sent))
	}
}

// watchSilence pings when nothing was heard for a while, or when there is doubt,
// and cuts the link when nothing is heard in time after that. In doubt it goes on
// until there is a pong: what is heard may have been waiting here since before the
// other's end. The first ping, at once, measures the round trip.
func (l *link) watchSilence() {
	limits := l.mesh.limits
	asked, doubting := l.ping(limits.PingTimeout), false // asked 0: no answer is awaited
	timer := time.NewTimer(limits.PingTimeout)
	defer timer.Stop()
	for {
		select {
		case <-l.done:
			return
		case <-l.probe:
			asked, doubting = l.ping(limits.ProbeTimeout), true
			timer.Reset(limits.ProbeTimeout)
			continue
		case <-timer.C:
		}
		heard := time.Duration(l.heard.Load())
		doubting = doubting && time.Duration(l.ponged.Load()) < asked
		switch idle := l.mesh.now() - heard; {
		case asked > 0 && heard < asked:
			l.cutFor(ReasonSilent)
			return
		case doubting:
			asked = l.ping(limits.ProbeTimeout)
			timer.Reset(limits.ProbeTimeout)
		case idle < limits.PingEvery:
			asked = 0
			timer.Reset(limits.PingEvery - idle + jitter(limits.PingEvery/10))
		default:
			asked = l.ping(limits.PingTimeout)
			timer.Reset(limits.PingTimeout)
		}
	}
}

// ping asks for a sign of life and returns when it did. That it cannot even ask
// shows soon enough.
func (l *link) ping(patience time.Duration) time.Duration {
	now := l.mesh.now()
	if err := l.control.write(kindPing, uint64(now), patience); err != nil {
		l.mesh.cfg.Logger.Debug("cannot ping", "partner", l.partner.id, "error", err)
	}
	return now
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
