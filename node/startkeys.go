package node

import (
	"context"
	"crypto/sha256"
	"encoding/json"

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
	over, err = k.starts.Take(ctx, nonce)
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
