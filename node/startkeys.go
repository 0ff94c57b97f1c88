package node

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"sync"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/users"
)

// This file has a start that is asked for twice with one key happen once, whatever came in between. The nonce of what is
// begun so follows from the request, and is known of an instance as long as its summary is: what is remembered is durable
// with what it is about, and goes with it.

// nonce is that of the genesis of an instance that somebody starts.
func (k *desk) nonce(by users.Who, r api.StartRequest) [16]byte {
	if r.Key == "" {
		return [16]byte(k.random(16))
	}
	r.User = by.ID
	b, _ := json.Marshal(r) // texts and flags encode
	h := sha256.Sum256(append([]byte("mutirao/start/1\x00"), b...))
	return [16]byte(h[:16])
}

// asked is what was started when the same was asked for with the same key; nil: nothing. Until over is called nobody else
// who asks for that is answered.
func (k *desk) asked(ctx context.Context, r api.StartRequest) (was *api.Started, over func(), err error) {
	by, err := k.starter(r.User)
	if err != nil {
		return nil, nil, err
	}
	nonce := k.nonce(by, r)
	over, err = k.starts.turn(ctx, nonce)
	if err != nil {
		return nil, nil, err
	}
	id, began := k.index.Begun(k.member.ID(), nonce)
	if !began {
		return nil, over, nil
	}
	over()
	was = &api.Started{ID: id.String(), Already: true, HeldOnlyHere: true}
	err = k.peek(ctx, id, func(h *held) { was.HeldOnlyHere = !h.isElsewhere() })
	return was, nil, err
}

// starts are those under way that were asked for with a key, by their nonces; each is closed when it is over.
type starts struct {
	mu sync.Mutex // guards by
	by map[[16]byte]chan struct{}
}

// turn waits until nothing is started with a nonce, and has others wait until over is called.
func (x *starts) turn(ctx context.Context, nonce [16]byte) (over func(), err error) {
	for {
		x.mu.Lock()
		before := x.by[nonce]
		if before == nil {
			is := make(chan struct{})
			if x.by == nil {
				x.by = map[[16]byte]chan struct{}{}
			}
			x.by[nonce] = is
			x.mu.Unlock()
			return func() {
				x.mu.Lock()
				defer x.mu.Unlock()
				delete(x.by, nonce)
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
