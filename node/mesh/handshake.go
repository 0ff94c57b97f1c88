package mesh

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
)

// The hello, on the first stream of a connection, which the dialler opens; each
// message is a frame:
//
//	dialler              listener
//	hello      ──▶
//	           ◀──       verdict, and after a yes: hello
//	verdict    ──▶
//
// After two yeses both sides use the stream for pings. After a no the connection
// lives on for Limits.StrangerTime, for requests that are open to strangers.

// greet is the dialler's side.
func (l *link) greet() {
	if l.yields() {
		l.awaitHello(l.mesh.limits.HelloTimeout / 2)
	}
	if !l.begun.CompareAndSwap(false, true) {
		return
	}
	ctx, cancel := context.WithTimeout(l.mesh.ctx, l.mesh.limits.HelloTimeout)
	defer cancel()
	s, err := l.open(ctx, helloProtocol)
	if err != nil {
		l.brokenHello(err)
		return
	}
	l.shakeHands(s, l.dial)
}

// yields reports whether the hello is the other's to begin, though we dialled: when
// two who met by a relay punch through to each other, both have dialled, and the
// lesser ID begins. If the other has not, after all, it will not begin.
func (l *link) yields() bool {
	return l.dialled() && l.crossing && l.partner.id < l.mesh.id
}

func (l *link) dialled() bool { return l.conn.Stat().Direction == network.DirOutbound }

// awaitHello waits until the hello is over, at most d.
func (l *link) awaitHello(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-l.settled:
	case <-l.done:
	case <-timer.C:
	}
}

// acceptHello is the listener's side.
func (m *Mesh) acceptHello(s network.Stream) {
	l := m.linkOf(s.Conn())
	if l == nil || l.dialled() && !l.yields() || !l.begun.CompareAndSwap(false, true) {
		m.counters.refuse(ReasonMalformed)
		s.Reset()
		return
	}
	m.spawn(func() { l.shakeHands(s, l.listen) })
}

// shakeHands runs one side of the exchange and what follows from it.
func (l *link) shakeHands(s network.Stream, side func(network.Stream, *bufio.Reader) (refusal, err error)) {
	r := bufio.NewReaderSize(s, 512)
	err := s.SetDeadline(time.Now().Add(l.mesh.limits.HelloTimeout))
	var refusal error
	if err == nil {
		refusal, err = side(s, r)
	}
	if err == nil {
		err = s.SetDeadline(time.Time{})
	}
	switch {
	case err != nil:
		s.Reset()
		l.brokenHello(err)
	case refusal != nil:
		s.Close()
		l.settle(refusal)
	default:
		l.control.stream = s
		l.settle(nil)
		l.answerPings(r)
		s.Reset()
	}
}

func (l *link) dial(s network.Stream, r *bufio.Reader) (refusal, err error) {
	if err := l.sayHello(s); err != nil {
		return nil, err
	}
	if refusal, err := l.readVerdict(r); refusal != nil || err != nil {
		return refusal, err
	}
	refusal, err = l.judge(r)
	if err != nil {
		return nil, err
	}
	return refusal, write(s, encodeVerdict(refusal))
}

func (l *link) listen(s network.Stream, r *bufio.Reader) (refusal, err error) {
	refusal, err = l.judge(r)
	if err != nil {
		return nil, err
	}
	if err := write(s, encodeVerdict(refusal)); refusal != nil || err != nil {
		return refusal, err
	}
	if err := l.sayHello(s); err != nil {
		return nil, err
	}
	return l.readVerdict(r)
}

func write(s network.Stream, message []byte) error {
	_, err := s.Write(appendFrame(nil, message))
	return err
}

func (l *link) sayHello(s network.Stream) error {
	h := hello{boot: l.mesh.cfg.Boot, credentials: l.mesh.cfg.Hello()}
	if len(h.credentials) > l.mesh.limits.Hello {
		return fmt.Errorf("our credentials have %d bytes, at most %d are possible", len(h.credentials),
			l.mesh.limits.Hello)
	}
	return write(s, h.encode())
}

// judge reads the other's hello and decides.
func (l *link) judge(r *bufio.Reader) (refusal, err error) {
	b, err := readFrame(r, helloHeader+l.mesh.limits.Hello)
	if err != nil {
		return nil, err
	}
	h, err := decodeHello(b)
	if err != nil {
		l.mesh.counters.refuse(ReasonMalformed)
		return err, nil
	}
	l.shows(shownHello)
	if err := l.mesh.cfg.Admit(l.partner.id, h.credentials, h.boot); err != nil {
		l.mesh.counters.refuse(ReasonNotAdmitted)
		return err, nil
	}
	l.boot = h.boot
	return nil, nil
}

func (l *link) readVerdict(r *bufio.Reader) (refusal, err error) {
	b, err := readFrame(r, maxVerdict)
	if err != nil {
		return nil, err
	}
	return decodeVerdict(b)
}

// settle ends the hello: with a member (nil) or a stranger.
func (l *link) settle(refusal error) {
	l.hear()
	l.refusal = refusal
	close(l.settled)
	if refusal == nil {
		l.mesh.admit(l)
		l.mesh.spawn(l.watchSilence)
		return
	}
	level := l.mesh.unwanted.level(l.partner.id, refusal.Error(), time.Now())
	l.mesh.cfg.Logger.Log(l.mesh.ctx, level, "partner not admitted", "partner", l.partner.id,
		"address", l.conn.RemoteMultiaddr().String(), "reason", refusal)
}

// brokenHello cuts a connection whose hello did not come to an end.
func (l *link) brokenHello(err error) {
	l.mesh.cfg.Logger.Debug("hello failed", "partner", l.partner.id, "error", err)
	if errors.Is(err, errMalformed) {
		l.mesh.counters.refuse(ReasonMalformed)
	}
	l.cutFor(ReasonNoHello)
}

// expectHello cuts a connection without a hello in time, and later one of a
// stranger.
func (l *link) expectHello() {
	timer := time.NewTimer(l.mesh.limits.HelloTimeout)
	defer timer.Stop()
	select {
	case <-l.done:
		return
	case <-timer.C:
		l.cutFor(ReasonNoHello)
		return
	case <-l.settled:
	}
	if l.refusal == nil {
		return
	}
	timer.Reset(l.mesh.limits.StrangerTime)
	select {
	case <-l.done:
	case <-timer.C:
		l.cut()
	}
}

// permits waits for a hello that is under way and reports whether a stream may be
// answered: after the hello, if the other is a member or strangers are welcome.
func (l *link) permits(strangers bool) bool {
	if !l.begun.Load() {
		l.mesh.counters.refuse(ReasonNoHello)
		return false
	}
	select {
	case <-l.settled:
	case <-l.done:
		return false
	}
	if l.refusal != nil && !strangers {
		l.mesh.counters.refuse(ReasonStranger)
		return false
	}
	return true
}
