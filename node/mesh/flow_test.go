package mesh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// connected starts two nodes and waits until both are up.
func connected(t testing.TB, listen []string, change ...func(*Config)) (a, b *node) {
	t.Helper()
	a, b = start(t, listen, change...), start(t, listen, change...)
	a.knows(t, b)
	a.untilUp(t, b)
	b.untilUp(t, a)
	return a, b
}

// A partner that does not take frames stops only what is sent to it: its sender's
// queue fills up, others are served, pings are answered, and afterwards all that
// was accepted arrives.
func TestBackPressure(t *testing.T) {
	transports(t, func(t *testing.T, listen []string) {
		small := func(c *Config) {
			c.Limits.QueueFrames = 50
			c.Limits.PingEvery, c.Limits.PingTimeout = 200*time.Millisecond, time.Second
		}
		a, slow := connected(t, listen, small)
		quick := start(t, listen, small)
		a.knows(t, quick)
		a.untilUp(t, quick)
		release := make(chan struct{})
		slow.recorder.mu.Lock()
		slow.block = release
		slow.recorder.mu.Unlock()
		frame := bytes.Repeat([]byte("x"), 100_000)
		accepted, full, enough, deadline := 0, 0, time.Now().Add(2*time.Second), time.Now().Add(patience)
		for now := time.Now(); full == 0 && now.Before(deadline) || full < 100 && now.Before(enough); now = time.Now() {
			if err := a.Send(slow.ID(), frame); errors.Is(err, ErrQueueFull) {
				full++
				a.send(t, quick, "on time")
				quick.until(t, "the other partner served", func() bool { return len(quick.frames(a)) >= full })
				continue
			} else if err != nil {
				t.Fatal(err)
			}
			accepted++
		}
		if accepted > 1000 {
			t.Fatalf("%d frames of 100 kB were accepted for a partner that takes none", accepted)
		}
		if n := a.Counters().Refused[ReasonQueueFull]; n == 0 {
			t.Fatal("no full queue was counted")
		}
		close(release)
		slow.until(t, "all that was accepted", func() bool { return slow.count("frame", a.ID()) == accepted })
		if n := a.count("down", slow.ID()); n != 0 {
			t.Fatalf("the slow partner was cut %d times", n)
		}
	})
}

func TestGreatestFrame(t *testing.T) {
	a, b := connected(t, overBoth)
	big := strings.Repeat("b", 1<<20)
	for range 3 {
		a.send(t, b, big)
		a.send(t, b, "s")
	}
	b.until(t, "the frames", func() bool { return len(b.frames(a)) == 6 })
	for i, f := range b.frames(a) {
		if want := []string{big, "s"}[i%2]; f != want {
			t.Fatalf("frame %d has %d bytes, want %d", i, len(f), len(want))
		}
	}
	for _, frame := range [][]byte{nil, make([]byte, 1<<20+1)} {
		if err := a.Send(b.ID(), frame); !errors.Is(err, ErrFrameSize) {
			t.Errorf("a frame of %d bytes: %v, want ErrFrameSize", len(frame), err)
		}
	}
}

// Garbage on a frames stream is counted and ends the stream; repeated, it ends the
// connection. The partner's handler never sees it.
func TestGarbageFrames(t *testing.T) {
	for name, garbage := range map[string][]byte{
		"too long":             inBlock([]byte{0x81, 0x80, 0x40, 'x'}),
		"empty":                inBlock([]byte{0}),
		"endless length":       inBlock([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}),
		"padded length":        inBlock([]byte{0x81, 0x00, 'x'}),
		"block too long":       {0x82, 0x80, 0x08, 'x'},
		"empty block":          {0},
		"block of no length":   {0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		"padded block":         {0x82, 0x00, 'x'},
		"packed in more":       append(appendLength(appendLength(nil, 3<<1|1), 3), "abc"...),
		"not what a packer is": append(appendLength(appendLength(nil, 300<<1|1), 5), "\xff\xff\xff\xff\xff"...),
	} {
		t.Run(name, func(t *testing.T) {
			a, b := connected(t, overBoth)
			l := a.liveLink(b.host.ID())
			b.until(t, "the connection cut", func() bool {
				s, err := l.open(t.Context(), framesProtocol)
				if err != nil {
					return b.count("down", a.ID()) > 0
				}
				s.SetDeadline(time.Now().Add(patience))
				s.Write(garbage)
				s.CloseWrite()
				s.Read(make([]byte, 1)) // until it is reset
				return false
			})
			if n := b.Counters().Refused[ReasonMalformed]; n < 1 {
				t.Errorf("%d malformed frames counted", n)
			}
			if len(b.frames(a)) != 0 {
				t.Errorf("the handler got %q", b.frames(a))
			}
		})
	}
}

func TestPingFloodIsCut(t *testing.T) {
	a, b := connected(t, overBoth)
	l := a.liveLink(b.host.ID())
	for range 2 * maxPings {
		if l.control.write(kindPing, 0, time.Second) != nil {
			break
		}
	}
	b.until(t, "the connection cut", func() bool {
		return b.Counters().Refused[ReasonMalformed] == 1 && b.count("down", a.ID()) == 1
	})
}

// A stream that breaks on a living connection is made again; the handler hears of
// the gap.
func TestBrokenStreamIsReplaced(t *testing.T) {
	a, b := connected(t, overBoth)
	a.send(t, b, "before")
	b.until(t, "the first frame", func() bool { return len(b.frames(a)) == 1 })
	for _, s := range b.host.Network().ConnsToPeer(a.host.ID())[0].GetStreams() {
		if s.Protocol() == framesProtocol {
			s.Reset()
		}
	}
	a.until(t, "down and up", func() bool { return a.count("down", b.ID()) >= 1 && a.isUp(b.ID()) })
	a.send(t, b, "after")
	b.until(t, "the second frame", func() bool { return len(b.frames(a)) == 2 })
}

func TestRequest(t *testing.T) {
	a, b := start(t, overBoth), start(t, overBoth)
	b.HandleRequest("/test/echo/1", false, func(p workflow.PartnerID, req []byte) ([]byte, error) {
		return fmt.Appendf(nil, "%s: %s", p, req), nil
	})
	b.HandleRequest("/test/fail/1", false, func(workflow.PartnerID, []byte) ([]byte, error) {
		return nil, errors.New("no\x1b[31m" + strings.Repeat("!", 1000))
	})
	b.HandleRequest("/test/huge/1", false, func(workflow.PartnerID, []byte) ([]byte, error) {
		return make([]byte, 2<<20), nil
	})
	got, err := a.Request(t.Context(), b.ID(), b.Addrs(), "/test/echo/1", []byte("hi"))
	if err != nil || string(got) != string(a.ID())+": hi" {
		t.Fatalf("echo: %q, %v", got, err)
	}
	if got, err := a.Request(t.Context(), b.ID(), nil, "/test/echo/1", nil); err != nil ||
		string(got) != string(a.ID())+": " {
		t.Fatalf("an empty request: %q, %v", got, err)
	}
	for _, n := range []int{
		32<<10 - 1, 32 << 10, 32<<10 + 1, 512 << 10, 1<<20 - 1,
	} { // a long answer is written in two parts
		long := bytes.Repeat([]byte{byte(n), 7}, (n+1)/2)[:n]
		b.HandleRequest(fmt.Sprint("/test/long/", n), false,
			func(workflow.PartnerID, []byte) ([]byte, error) { return long, nil })
		if got, err := a.Request(t.Context(), b.ID(), nil, fmt.Sprint("/test/long/", n), nil); err != nil ||
			!bytes.Equal(got, long) {
			t.Fatalf("an answer of %d bytes comes as %d: %v", n, len(got), err)
		}
	}
	var told *RequestError
	if _, err := a.Request(t.Context(), b.ID(), nil, "/test/fail/1", nil); !errors.As(err, &told) ||
		!strings.HasPrefix(told.Text, "no?[31m!") || len(told.Text) != maxReason {
		t.Fatalf("a failing handler: %v", err)
	}
	if _, err := a.Request(t.Context(), b.ID(), nil, "/test/huge/1", nil); !errors.As(err, &told) ||
		!strings.Contains(told.Text, "at most") {
		t.Fatalf("an answer that is too long: %v", err)
	}
	if _, err := a.Request(t.Context(), b.ID(), nil, "/test/none/1", nil); err == nil {
		t.Fatal("an unknown protocol was answered")
	}
	if _, err := a.Request(t.Context(), b.ID(), nil, "/test/echo/1", make([]byte, 1<<20)); err == nil ||
		!strings.Contains(err.Error(), "at most") {
		t.Fatalf("a request that is too long: %v", err)
	}
	if _, err := a.Request(t.Context(), a.ID(), nil, "/test/echo/1", nil); !errors.Is(err, ErrNotConnected) {
		t.Fatalf("a request to oneself: %v", err)
	}
}

func TestRequestEndsWithItsContext(t *testing.T) {
	a, b := start(t, overBoth), start(t, overBoth)
	asked, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	b.HandleRequest("/test/slow/1", false, func(workflow.PartnerID, []byte) ([]byte, error) {
		close(asked)
		<-release
		return nil, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	if _, err := a.Request(ctx, b.ID(), b.Addrs(), "/test/slow/1", nil); !errors.Is(err, context.Canceled) {
		t.Fatalf("request: %v, want Canceled", err)
	}
}

// Somebody who was not admitted may ask only what is open to strangers.
func TestStrangerMayJoin(t *testing.T) {
	member := start(t, overBoth, refuses)
	member.HandleRequest("/test/join/1", true, func(p workflow.PartnerID, req []byte) ([]byte, error) {
		return append([]byte("welcome "), req...), nil
	})
	member.HandleRequest("/test/inside/1", false, func(workflow.PartnerID, []byte) ([]byte, error) {
		return []byte("secret"), nil
	})
	stranger := start(t, overBoth)
	for range 2 {
		got, err := stranger.Request(t.Context(), member.ID(), member.Addrs(), "/test/join/1", []byte("me"))
		if err != nil || string(got) != "welcome me" {
			t.Fatalf("join: %q, %v", got, err)
		}
		if got, err := stranger.Request(t.Context(), member.ID(), member.Addrs(), "/test/inside/1", nil); err == nil {
			t.Fatalf("a stranger was told %q", got)
		}
	}
	if n := member.Counters().Refused[ReasonStranger]; n != 2 {
		t.Fatalf("%d requests of strangers counted, want 2", n)
	}
}

// A newcomer asks again as soon as it has the answer, which may be before the other side knows
// that it was written: the next request waits for the end of the one before, a third is too many.
func TestAStrangersNextRequestWaits(t *testing.T) {
	member, stranger := start(t, overBoth, refuses), start(t, overBoth)
	began, release := make(chan struct{}, 2), make(chan struct{})
	member.HandleRequest("/test/join/1", true, func(workflow.PartnerID, []byte) ([]byte, error) {
		began <- struct{}{}
		<-release
		return []byte("welcome"), nil
	})
	results := make(chan error, 3)
	ask := func() {
		_, err := stranger.Request(t.Context(), member.ID(), member.Addrs(), "/test/join/1", nil)
		results <- err
	}
	go ask()
	<-began
	for range 2 {
		go ask()
	}
	if err := <-results; err == nil {
		t.Fatal("a stranger's third request was taken")
	}
	select {
	case <-began:
		t.Fatal("two requests of a stranger were handled at a time")
	default:
	}
	close(release)
	for range 2 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if n := member.Counters().Refused[ReasonTooMany]; n != 1 {
		t.Errorf("%d requests too many counted, want 1", n)
	}
}

func TestRequestsAreLimited(t *testing.T) {
	a, b := start(t, overBoth), start(t, overBoth, func(c *Config) { c.Limits.Requests = 2 })
	var busy sync.WaitGroup
	busy.Add(2)
	release := make(chan struct{})
	b.HandleRequest("/test/slow/1", false, func(workflow.PartnerID, []byte) ([]byte, error) {
		busy.Done()
		<-release
		return []byte("done"), nil
	})
	results := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := a.Request(t.Context(), b.ID(), b.Addrs(), "/test/slow/1", nil)
			results <- err
		}()
	}
	busy.Wait()
	if _, err := a.Request(t.Context(), b.ID(), nil, "/test/slow/1", nil); err == nil {
		t.Fatal("a third request was taken")
	}
	close(release)
	for range 2 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if n := b.Counters().Refused[ReasonTooMany]; n != 1 {
		t.Errorf("%d requests too many counted, want 1", n)
	}
}

// Close tells the handler, then nothing more happens.
func TestClose(t *testing.T) {
	a, b := connected(t, overBoth)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if a.count("down", b.ID()) != 1 {
		t.Fatalf("events after Close: %v", a.all())
	}
	b.until(t, "a gone", func() bool { return b.count("down", a.ID()) == 1 })
	if err := a.Send(b.ID(), []byte("x")); !errors.Is(err, ErrNotConnected) {
		t.Errorf("send: %v, want ErrNotConnected", err)
	}
	if err := a.Want(b.ID(), true); err != nil {
		t.Errorf("want: %v", err)
	}
	if _, err := a.Request(t.Context(), b.ID(), b.Addrs(), "/x/1", nil); err == nil {
		t.Error("a closed mesh asked")
	}
	if err := a.Close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
}

// What was sent before Close arrives at a partner that stays.
func TestCloseSendsWhatIsQueued(t *testing.T) {
	transports(t, func(t *testing.T, listen []string) {
		a, b := start(t, listen), start(t, listen)
		a.knows(t, b)
		a.untilUp(t, b)
		b.untilUp(t, a)
		const frames = 500
		for range frames {
			a.send(t, b, "the last words of somebody who has much to say")
		}
		a.Close()
		for deadline := time.After(patience); b.count("frame", a.ID()) < frames; {
			select {
			case <-deadline:
				t.Fatalf("%d of %d frames arrived", b.count("frame", a.ID()), frames)
			case <-time.After(5 * time.Millisecond):
			}
		}
	})
}

// A partner that takes nothing does not keep Close from closing.
func TestCloseDoesNotWaitForTheDeaf(t *testing.T) {
	a, b := start(t, overQUIC), start(t, overQUIC)
	a.knows(t, b)
	a.untilUp(t, b)
	b.untilUp(t, a)
	deaf := make(chan struct{})
	b.recorder.mu.Lock()
	b.block = deaf
	b.recorder.mu.Unlock()
	a.send(t, b, "what b will not be done with before a has gone")
	began := time.Now()
	a.Close()
	if took := time.Since(began); took > patience { // b is deaf until then
		t.Errorf("Close took %v", took)
	}
	close(deaf)
}
