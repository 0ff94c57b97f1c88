package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/node/api"
)

const (
	maxStreams   = 64               // event streams at once
	maxBacklog   = 256              // events that wait for a slow reader
	streamAlive  = 15 * time.Second // between two signs of life
	writeTimeout = 10 * time.Second // of one write to a stream
)

// What is sent besides events: a reader that lost the stream comes back after a second, and one that hears nothing for
// longer than streamAlive has lost it.
var (
	streamBegins = []byte("retry: 1000\n\n")
	streamLives  = []byte(": alive\n\n")
)

// backlog holds the events that a reader has not taken yet. When it is full,
// one gap replaces them all: a slow reader costs neither memory nor the node's
// time, and knows that it missed something.
type backlog struct {
	wake chan struct{} // holds one element while there are events

	mu     sync.Mutex // guards events
	events []api.Event
}

func newBacklog() *backlog { return &backlog{wake: make(chan struct{}, 1)} }

func (b *backlog) put(e api.Event) error {
	b.mu.Lock()
	if len(b.events) == maxBacklog {
		b.events = append(b.events[:0], api.Event{
			At: e.At, Kind: api.EventGap, Text: "too slow: some events were left out",
		})
	} else {
		b.events = append(b.events, e)
	}
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
	return nil
}

func (b *backlog) take() []api.Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	events := b.events
	b.events = nil
	return events
}

// events streams what changes until the reader goes away or the node stops.
func (h *handler) events(w http.ResponseWriter, r *http.Request) error {
	if h.o.stopping.Err() != nil { // a reader that comes back at once shall look for the next run of the node
		return api.ErrStopping
	}
	select {
	case h.streams <- struct{}{}:
		defer func() { <-h.streams }()
	default:
		return withStatus(http.StatusServiceUnavailable,
			api.Errorf(api.Refused, "%d programs watch this node already", maxStreams).WithHint("end one of them"))
	}
	ctx, cancel := context.WithCancel(r.Context())
	waiting := newBacklog()
	ended := make(chan error, 1)
	go func() { ended <- h.svc.Watch(ctx, h.sinceMade(r, waiting.put)) }()

	w.Header().Set("Content-Type", "text/event-stream")
	err := h.stream(ctx, w, waiting, ended)
	cancel()
	<-ended
	if err != nil {
		h.o.Logger.Debug("event stream ended", "error", err)
	}
	return nil // the reply has begun: there is no way left to report an error
}

// sinceMade calls fn for what a page is to know that was made a moment ago: not for the gap with which a watch begins
// if nothing happened since.
func (h *handler) sinceMade(r *http.Request, fn func(api.Event) error) func(api.Event) error {
	begun := false
	return func(e api.Event) error {
		first := !begun
		begun = true
		if first && e.Kind == api.EventGap && h.knows(r) {
			return nil
		}
		return fn(e)
	}
}

func (h *handler) stream(ctx context.Context, w http.ResponseWriter, waiting *backlog, ended chan error) error {
	alive := time.NewTicker(streamAlive)
	defer alive.Stop()
	if err := send(w, streamBegins); err != nil {
		return err
	}
	for {
		var text []byte
		select {
		case <-waiting.wake:
			for _, e := range waiting.take() {
				line, err := json.Marshal(e)
				if err != nil {
					return fmt.Errorf("write event: %w", err)
				}
				text = fmt.Appendf(text, "data: %s\n\n", plain.JSON(line))
			}
		case <-alive.C:
			text = streamLives
		case err := <-ended:
			ended <- err // the caller waits for it too
			return err
		case <-h.o.stopping.Done():
			return nil
		case <-ctx.Done():
			return nil
		}
		if over(ctx) != nil { // the token may have been removed meanwhile
			return nil
		}
		if err := send(w, text); err != nil {
			return err
		}
	}
}

// send writes to a reader that has writeTimeout to take it.
func send(w http.ResponseWriter, text []byte) error {
	rc := http.NewResponseController(w)
	if err := rc.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	if _, err := w.Write(text); err != nil {
		return err
	}
	return rc.Flush()
}
