package node

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// feed hands events to those that watch. A watcher that does not keep up misses
// events, which only say that something changed, and is told that it did.
type feed struct {
	clock    Clock
	happened atomic.Uint64 // how much happened, watched or not
	mu       sync.Mutex    // guards watchers
	watchers map[*watcher]struct{}
}

// watcher is one that watches.
type watcher struct {
	events chan api.Event
	missed atomic.Bool // there was no room for an event since it was told so last
}

// feedSize is how many events may wait for a watcher.
const feedSize = 256

func newFeed(c Clock) *feed { return &feed{clock: c, watchers: map[*watcher]struct{}{}} }

func (f *feed) publish(e api.Event) {
	f.happened.Add(1)
	f.mu.Lock()
	defer f.mu.Unlock()
	for w := range f.watchers {
		select {
		case w.events <- e:
		default:
			w.missed.Store(true)
		}
	}
}

// unwatched notes that something happened while nobody watches: whoever has begun to look, and watches in a moment, is
// to know.
func (f *feed) unwatched() { f.happened.Add(1) }

// watched reports whether anybody watches.
func (f *feed) watched() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.watchers) > 0
}

// watch calls fn for every event until ctx ends or fn returns an error, and for a gap first and wherever events are
// missing.
func (f *feed) watch(ctx context.Context, fn func(api.Event) error) error {
	w := &watcher{events: make(chan api.Event, feedSize)}
	f.mu.Lock()
	f.watchers[w] = struct{}{}
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.watchers, w)
		f.mu.Unlock()
	}()
	if err := fn(api.Event{At: f.clock.Now().Wall, Kind: api.EventGap, Text: "what happened before is not told"}); err != nil {
		return err
	}
	for {
		select {
		case e := <-w.events:
			if w.missed.CompareAndSwap(true, false) {
				gap := api.Event{At: e.At, Kind: api.EventGap, Text: "too slow: some events were left out"}
				if err := fn(gap); err != nil {
					return err
				}
			}
			if err := fn(e); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
