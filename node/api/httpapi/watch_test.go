package httpapi

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// watched is a Service of which only Watch is used.
type watched struct {
	api.Service
	watch func(ctx context.Context, fn func(api.Event) error) error
}

func (w watched) Watch(ctx context.Context, fn func(api.Event) error) error { return w.watch(ctx, fn) }

// say is a watch that tells of these events, after the gap with which it begins, and then of nothing more.
func say(texts ...string) watched {
	return watched{watch: func(ctx context.Context, fn func(api.Event) error) error {
		if err := fn(api.Event{Kind: api.EventGap}); err != nil {
			return err
		}
		for _, s := range texts {
			if err := fn(api.Event{Kind: "instance", Text: s}); err != nil {
				return err
			}
		}
		<-ctx.Done()
		return ctx.Err()
	}}
}

func mustServe(t *testing.T, dir string, svc api.Service) *Server {
	t.Helper()
	s, err := Serve(dir, "127.0.0.1:0", svc, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustClose(t *testing.T, s *Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

func quickClient(t *testing.T, dir string) *Client {
	t.Helper()
	c, err := Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	c.pause, c.give = time.Millisecond, 50*time.Millisecond
	return c
}

// Stopping the node ends its streams at once; a watch goes on when the node is
// back, at another address and with another token, and says that it missed
// something; it ends when the node stays away.
func TestWatchOutlivesARestart(t *testing.T) {
	dir := t.TempDir()
	first := mustServe(t, dir, say("one"))
	c := quickClient(t, dir)
	c.give = time.Second
	events, result := make(chan api.Event), make(chan error, 1)
	go func() {
		result <- c.Watch(t.Context(), func(e api.Event) error { events <- e; return nil })
	}()
	expect := func(kind, text string) {
		t.Helper()
		if e := <-events; e.Kind != kind || (text != "" && e.Text != text) {
			t.Fatalf("got %+v, want %s %s", e, kind, text)
		}
	}
	expect(api.EventGap, "")
	expect("instance", "one")
	mustClose(t, first)
	second := mustServe(t, dir, say("two"))
	expect(api.EventGap, "")
	expect("instance", "two")
	mustClose(t, second)
	var gone *api.Error
	if err := <-result; !errors.As(err, &gone) || gone.Code != api.NoNode {
		t.Errorf("the watch of a node that stays away ended with %v", err)
	}
}

func TestWatchEnds(t *testing.T) {
	dir := t.TempDir()
	s := mustServe(t, dir, say("one", "two"))
	c := quickClient(t, dir)

	enough := errors.New("enough")
	if err := c.Watch(t.Context(), func(api.Event) error { return enough }); err != enough {
		t.Errorf("when fn says so: got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := c.Watch(ctx, func(e api.Event) error {
		if e.Text == "two" {
			cancel()
		}
		return nil
	}); !errors.Is(err, context.Canceled) {
		t.Errorf("when ctx ends: got %v", err)
	}
	absent := &Client{dir: dir, conn: Access{Address: "127.0.0.1:1", URL: "http://127.0.0.1:1"}.connect()}
	mustClose(t, s)
	var gone *api.Error
	if err := absent.Watch(t.Context(), nil); !errors.As(err, &gone) || gone.Code != api.NoNode {
		t.Errorf("without a node: got %v", err)
	}
}

// A reader that takes nothing costs a bounded amount of memory, never the
// service's time, and learns that it missed something.
func TestSlowReader(t *testing.T) {
	b := newBacklog()
	for i := range 10 * maxBacklog {
		if err := b.put(api.Event{Kind: "instance", Text: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
		if len(b.events) > maxBacklog {
			t.Fatalf("%d events wait", len(b.events))
		}
	}
	got := b.take()
	if got[0].Kind != api.EventGap {
		t.Errorf("the first event is %+v, want a gap", got[0])
	}
	if last := got[len(got)-1]; last.Kind != api.EventGap && last.Text != fmt.Sprint(10*maxBacklog-1) {
		t.Errorf("the last event is %+v", last)
	}
	if again := b.take(); len(again) != 0 {
		t.Errorf("taken twice: %v", again)
	}
}

func TestStreamsAreLimited(t *testing.T) {
	dir := t.TempDir()
	s := mustServe(t, dir, say())
	defer mustClose(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	connected := make(chan struct{})
	for range maxStreams {
		c := quickClient(t, dir)
		go func() { _ = c.Watch(ctx, func(api.Event) error { connected <- struct{}{}; return nil }) }()
	}
	for range maxStreams {
		<-connected
	}
	var refused *api.Error
	if err := quickClient(t, dir).Watch(t.Context(), nil); !errors.As(err, &refused) || refused.Code != api.Refused {
		t.Errorf("one stream too many: got %v", err)
	}
}
