package worklists

import (
	"context"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file has a list wait for slow partners only for a moment: what they said last is shown, and what they say later is
// told to whoever watches.

const (
	// soonPatience is how long a list waits for a partner of which it is known what it said last.
	soonPatience = 500 * time.Millisecond
	// maxAsked bounds how often at a time one partner is asked for one user.
	maxAsked = 2
)

// soonAnswer is what a partner answered.
type soonAnswer[T any] struct {
	p     workflow.PartnerID
	value T
	err   error
}

// askSoon asks each partner that is connected for something for a user, some at a time. After a wait it goes on without
// those of which something is known; these are slow, and what they say yet is given to late. silent are those that gave no
// answer.
func askSoon[T any](
	ctx context.Context, d *Desk, user string, wait time.Duration, known func(workflow.PartnerID) bool,
	ask func(context.Context, workflow.PartnerID) (T, error), late func(workflow.PartnerID, T),
) (said map[workflow.PartnerID]T, slow, silent []workflow.PartnerID) {
	said = map[workflow.PartnerID]T{}
	take := func(a soonAnswer[T]) {
		if a.err != nil {
			silent = append(silent, a.p)
		} else {
			said[a.p] = a.value
		}
	}
	if !d.in.Waits() {
		for _, p := range d.in.Peers.UpPeers() {
			value, err := ask(ctx, p)
			take(soonAnswer[T]{p, value, err})
		}
		return said, nil, silent
	}
	answers := make(chan soonAnswer[T])
	waits := d.askAside(context.WithoutCancel(ctx), user, func(on context.Context, p workflow.PartnerID) {
		value, err := ask(on, p)
		answers <- soonAnswer[T]{p, value, err}
	})
	out := 0 // how many answer yet
	for _, asked := range waits {
		if asked {
			out++
		}
	}
	soon, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	last, stop := context.WithTimeout(ctx, listPatience)
	defer stop()
	needed := func() bool { // somebody is worth to be waited for
		for p, asked := range waits {
			if asked && last.Err() == nil && (soon.Err() == nil || !known(p)) {
				return true
			}
		}
		return false
	}
	for over := soon.Done(); needed(); {
		select {
		case a := <-answers:
			out--
			delete(waits, a.p)
			take(a)
		case <-over:
			over = nil
		case <-last.Done():
		}
	}
	for p := range waits {
		slow = append(slow, p)
	}
	if out > 0 {
		go func() {
			for range out {
				if a := <-answers; a.err == nil {
					late(a.p, a.value)
				}
			}
		}()
	}
	return said, slow, silent
}

// askAside begins to ask each partner that is connected, some at a time. It says of each whether it did: none is asked
// for one user by many who look at the same time.
func (d *Desk) askAside(
	ctx context.Context, user string, ask func(context.Context, workflow.PartnerID),
) map[workflow.PartnerID]bool {
	turns := make(chan struct{}, askedAtOnce)
	out := map[workflow.PartnerID]bool{}
	for _, p := range d.in.Peers.UpPeers() {
		of := asker{p, user}
		d.mu.Lock()
		free := d.asked[of] < maxAsked
		if free {
			d.asked[of]++
		}
		d.mu.Unlock()
		if out[p] = free; !free {
			continue
		}
		go func() {
			turns <- struct{}{}
			defer func() {
				<-turns
				d.mu.Lock()
				defer d.mu.Unlock()
				if d.asked[of]--; d.asked[of] == 0 {
					delete(d.asked, of)
				}
			}()
			ask(ctx, p)
		}()
	}
	return out
}

// askAll asks the partners that are connected for their items. Slow ones are waited for so long; what they say later is
// remembered, and told to whoever watches. silent are those without an answer, but for those that gave one a moment ago.
func (d *Desk) askAll(
	ctx context.Context, who users.Who, wait time.Duration,
) (out map[workflow.PartnerID][]Row, silent []workflow.PartnerID) {
	type word struct {
		rows []Row
		news bool // a list without it was another one
	}
	said, slow, silent := askSoon(ctx, d, who.ID, wait,
		func(p workflow.PartnerID) bool { return d.hasHeard(who, p) },
		func(ctx context.Context, p workflow.PartnerID) (w word, err error) {
			was := d.lastOf(who, p)
			w.news = !d.heardLately(who, p)
			w.rows, err = d.askOne(ctx, who, p, everywhere)
			w.news = w.news || gist(was) != gist(w.rows[:min(len(w.rows), maxHeard)])
			return w, err
		},
		func(p workflow.PartnerID, w word) {
			if w.news {
				d.tellLate(p)
			}
		})
	out = make(map[workflow.PartnerID][]Row, len(said))
	for p, w := range said {
		out[p] = w.rows
	}
	for _, p := range slow {
		if !d.heardLately(who, p) {
			silent = append(silent, p)
		}
	}
	slices.Sort(silent)
	return out, silent
}

// tellLate tells whoever watches that a partner has answered that a list did not wait for.
func (d *Desk) tellLate(p workflow.PartnerID) {
	d.in.Publish(api.Event{At: d.in.Clock.Now().Wall, Kind: "worklist", Partner: d.in.Name(p), Text: "answered"})
}

// hasHeard reports whether something is known of what a partner has for a user, and lastOf is what it listed last.
func (d *Desk) hasHeard(who users.Who, p workflow.PartnerID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.heard[who.ID][p] != nil
}

func (d *Desk) lastOf(who users.Who, p workflow.PartnerID) []Row {
	d.mu.Lock()
	defer d.mu.Unlock()
	if is := d.heard[who.ID][p]; is != nil {
		return slices.Clone(is.rows)
	}
	return nil
}
