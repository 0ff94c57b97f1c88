// Package turns lets one at a time do what is about the same thing, and others wait for it.
//
// Promises: of those who wait for a thing one has the next turn, in no order; whoever stops waiting has none. It
// remembers what is under way, and nothing else.
//
// It imports no other package of ours; node and node/worklists import it.
package turns

import (
	"context"
	"sync"
)

// Of are turns at things by what names them. The zero value has none under way.
type Of[K comparable] struct {
	mu sync.Mutex          // guards by
	by map[K]chan struct{} // those under way, each closed when it is over
}

// Take waits until nobody has a turn at a thing, and has it then until over is called. It returns the cause of the end
// of ctx if that comes first.
func (x *Of[K]) Take(ctx context.Context, thing K) (over func(), err error) {
	for {
		x.mu.Lock()
		before := x.by[thing]
		if before == nil {
			is := make(chan struct{})
			if x.by == nil {
				x.by = map[K]chan struct{}{}
			}
			x.by[thing] = is
			x.mu.Unlock()
			return func() {
				x.mu.Lock()
				defer x.mu.Unlock()
				delete(x.by, thing)
				close(is)
			}, nil
		}
		x.mu.Unlock()
		select {
		case <-before:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
