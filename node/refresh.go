package node

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// What is shown of others' work is as old as their last word (package show). Here they are asked for a new one.

const (
	// refreshWait is how long partners are waited for that are asked what they have.
	refreshWait = 500 * time.Millisecond
	// freshFor is for how long what a partner said is not asked for again.
	freshFor = time.Second
	// aboutToTell is for how long a partner that was asked is taken to be about to tell: what
	// it has may come in several bundles.
	aboutToTell = 5 * time.Second
)

// refresh asks the partners that hold what of an instance is not done, and can
// be reached, what they have, and waits for half a second at most.
func (k *desk) refresh(ctx context.Context, ref string, w seeing) (*api.Refreshed, error) {
	out := &api.Refreshed{Answered: []string{}, Silent: []string{}}
	id, there, err := k.locate(ref)
	switch {
	case there != nil || errors.As(err, new(*onlySummary)): // those are asked for whenever they are shown
		return out, nil
	case k.isElsewhere(ref, err): // so are these
		_, err = w.LookThere(ctx, ref, worklists.Look{What: wire.LookDeciding}, err)
		return out, err
	case err != nil:
		return out, err
	}
	ctx, cancel := context.WithTimeout(ctx, refreshWait)
	defer cancel()
	began := k.clock.Now().Boot
	var asked []workflow.PartnerID
	err = k.do(ctx, id, func(s *shard) error {
		h, err := s.find(id)
		if err != nil || h.sum.Ended != 0 {
			return err
		}
		for _, p := range h.m.Holders() {
			heard, last := h.words[p].Direct, h.asked[p]
			if !k.up(p) || heard+freshFor >= began {
				continue
			}
			asked = append(asked, p)
			if last <= heard || last+aboutToTell < began {
				h.ask(p, began)
				s.sendHeads(p, id, wire.Ask)
			}
		}
		return nil
	})
	if err != nil || len(asked) == 0 {
		return out, nil // what is here can be shown all the same
	}
	silent := asked
	for pause := time.Millisecond; len(silent) > 0 && k.waits() &&
		ctx.Err() == nil; pause = min(2*pause, 50*time.Millisecond) {
		select {
		case <-k.clock.After(pause):
		case <-ctx.Done():
		}
		silent = k.silent(id, asked, began)
	}
	for _, p := range asked {
		if slices.Contains(silent, p) {
			out.Silent = append(out.Silent, k.people.name(p))
		} else {
			out.Answered = append(out.Answered, k.people.name(p))
		}
	}
	return out, nil
}

// silent are those of the asked that have not answered since. The caller may
// give up before its shard has looked, so what that finds comes over a channel.
func (k *desk) silent(id workflow.InstanceID, asked []workflow.PartnerID, since time.Duration) []workflow.PartnerID {
	ctx, cancel := context.WithTimeout(context.Background(), refreshWait)
	defer cancel()
	found := make(chan []workflow.PartnerID, 1)
	err := k.peek(ctx, id, func(h *held) {
		var out []workflow.PartnerID
		for _, p := range asked {
			if h.words[p].Direct < since {
				out = append(out, p)
			}
		}
		found <- out
	})
	if err != nil {
		return asked
	}
	return <-found
}
