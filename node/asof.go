package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// What a node shows of others' work is as old as their last word. This file says how
// old, and asks for a new one. Nobody is asked how old their own words are: what
// counts is when they came here from their author itself. Of what somebody else passed
// on it is the earlier one of when it came and when its author says it was written, so
// neither of the two can make it newer.

// tellsWithin is within what time a partner in contact tells all that take part what
// it has (compareAll), so what it had not told by then had not happened.
const tellsWithin = antiEntropy + 2*firstPause

// asOf is when it was last known here what a partner has of an instance; the zero time:
// never. old tells that this is longer ago than its last contact explains: of its signs
// of life, of which there are three in a connectionTime, one was missed. Nothing is known as of
// before the instance began: there was nothing to tell.
func (vw *view) asOf(h *held, p workflow.PartnerID) (at time.Time, old bool) {
	now, w := vw.clock.Now(), h.words[p]
	ago := func(boot time.Duration) time.Time { return now.Wall.Add(boot - now.Boot) }
	if w.direct > 0 {
		at = ago(w.direct)
	}
	if t := wire.AtMilli(w.written); w.written > 0 && t.After(at) {
		at = t
	}
	l, up := vw.link(p)
	within, inTouch := vw.people.ConnectionTime(p)/2, false
	if l != nil {
		since, heard := time.Duration(l.contact.since.Load()), time.Duration(l.contact.heard.Load())
		_, refused := h.refused[p]
		if t := ago(heard - tellsWithin); heard-since >= tellsWithin && !refused && t.After(at) {
			at = t
		}
		inTouch = up && now.Boot-heard <= within
	}
	if began := wire.AtMilli(h.sum.Started); !at.IsZero() && at.Before(began) {
		at = began
		if now.Wall.Before(began) { // by the clock of who began it
			at = now.Wall
		}
	}
	return at, !inTouch && now.Wall.Sub(at) > within
}

// known says in words how old something is; empty where it is not old.
func (vw *view) known(at time.Time, old bool) string {
	switch {
	case !old:
		return ""
	case at.IsZero():
		return "nothing was heard of it yet"
	}
	return "as known " + ago(vw.clock.Now().Wall.Sub(at))
}

// ago is how long ago something was, in the greatest unit that says enough.
func ago(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%d s ago", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	}
	return fmt.Sprintf("%d d ago", int(d.Hours()/24))
}

// dateTasks says of tasks that others hold as of when they are known.
func (vw *view) dateTasks(h *held, tasks []state.TaskView, out []api.Task) {
	type dated struct {
		at  *time.Time
		old string
	}
	self, of := vw.member.ID(), map[workflow.PartnerID]dated{}
	for i, t := range tasks {
		if t.Partner == "" || t.Partner == self {
			continue
		}
		d, done := of[t.Partner]
		if !done {
			at, old := vw.asOf(h, t.Partner)
			if !at.IsZero() {
				d.at = &at
			}
			d.old = vw.known(at, old)
			of[t.Partner] = d
		}
		if out[i].AsOf = d.at; !t.State.Done() && h.sum.Ended == 0 {
			out[i].Known = d.old
		}
	}
}

// oldest is as of when an instance is known, by the partner that holds what is not
// done and was not heard for longest. No instant: nobody else holds anything.
func (vw *view) oldest(h *held) (at *time.Time, known string) {
	var stale bool
	for _, p := range h.m.Holders() {
		t, old := vw.asOf(h, p)
		if at == nil || t.Before(*at) {
			at, stale = &t, old
		}
	}
	if at == nil {
		return nil, ""
	}
	if known = vw.known(*at, stale); at.IsZero() {
		return nil, known
	}
	return at, known
}

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
func (k *desk) refresh(ctx context.Context, ref string) (*api.Refreshed, error) {
	out := &api.Refreshed{Answered: []string{}, Silent: []string{}}
	id, there, err := k.locate(ref)
	if err != nil || there != nil { // those are asked for whenever they are shown
		if errors.As(err, new(*onlySummary)) {
			err = nil
		}
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
			w := h.words[p]
			if !k.up(p) || w.direct+freshFor >= began {
				continue
			}
			asked = append(asked, p)
			if w.asked <= w.direct || w.asked+aboutToTell < began {
				h.note(p, func(w *word) { w.asked = began })
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
			if h.words[p].direct < since {
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
