package node

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// feed hands events to those that watch. A watcher that does not keep up misses
// events, which only say that something changed.
type feed struct {
	happened atomic.Uint64 // how much happened, watched or not
	mu       sync.Mutex    // guards watchers
	watchers map[chan api.Event]struct{}
}

// feedSize is how many events may wait for a watcher.
const feedSize = 256

func newFeed() *feed { return &feed{watchers: map[chan api.Event]struct{}{}} }

func (f *feed) publish(e api.Event) {
	f.happened.Add(1)
	f.mu.Lock()
	defer f.mu.Unlock()
	for w := range f.watchers {
		select {
		case w <- e:
		default:
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

// watch calls fn for every event until ctx ends or fn returns an error.
func (f *feed) watch(ctx context.Context, fn func(api.Event) error) error {
	ch := make(chan api.Event, feedSize)
	f.mu.Lock()
	f.watchers[ch] = struct{}{}
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.watchers, ch)
		f.mu.Unlock()
	}()
	for {
		select {
		case e := <-ch:
			if err := fn(e); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
