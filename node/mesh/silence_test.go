package mesh

import (
	"errors"
	"testing"
	"time"
)

// In a silence nobody is talked to, whoever dials; what was queued before arrives. When it
// ends, partners are found again.
func TestSilence(t *testing.T) {
	transports(t, func(t *testing.T, listen []string) {
		a, b := start(t, listen), start(t, listen)
		a.knows(t, b)
		b.knows(t, a)
		a.untilUp(t, b)
		b.untilUp(t, a)
		a.send(t, b, "goodbye")
		a.Silence(true)
		a.Silence(true) // twice is once
		b.until(t, "goodbye, then down", func() bool { return len(b.frames(a)) == 1 && !b.isUp(a.ID()) })
		if a.isUp(b.ID()) {
			t.Error("a does not know that it is alone")
		}
		ups, dials := b.count("up", a.ID()), a.Counters().Dials
		time.Sleep(300 * time.Millisecond)
		if got := b.count("up", a.ID()); got != ups {
			t.Errorf("b was connected %d times during the silence", got-ups)
		}
		if got := a.Counters().Dials; got != dials || len(a.host.Network().Conns()) > 0 {
			t.Errorf("a dialled %d times, and has %d connections", got-dials, len(a.host.Network().Conns()))
		}
		if err := a.Send(b.ID(), []byte("x")); !errors.Is(err, ErrNotConnected) {
			t.Errorf("send: %v, want ErrNotConnected", err)
		}
		a.Silence(false)
		a.until(t, "up again", func() bool { return a.isUp(b.ID()) })
		b.until(t, "up again", func() bool { return b.isUp(a.ID()) })
		b.send(t, a, "hello")
		a.until(t, "hello", func() bool { return len(a.frames(b)) == 1 })
	})
}

// A mesh that begins in silence is not there for anybody; it can be closed in it.
func TestBeginsInSilence(t *testing.T) {
	a := start(t, overBoth, func(c *Config) { c.Silent = true })
	b := start(t, overBoth)
	b.knows(t, a)
	a.knows(t, b)
	time.Sleep(300 * time.Millisecond)
	if a.isUp(b.ID()) || b.isUp(a.ID()) || a.Counters().Dials > 0 {
		t.Error("they met in the silence")
	}
	a.Silence(false)
	a.untilUp(t, b)
	a.Silence(true)
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	a.Silence(false) // nothing happens to what is closed
}
