package files

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file says how slowly a file may come. As long as bytes come a chunk goes on, over a link of a few kB a second
// too. What counts is all that comes from a partner, whatever of it is for which file: several share its link. A
// partner that gives less than it could (or nothing) costs a file some seconds where another may have it, and others
// a turn for no longer than while there are turns to lend.

const (
	// askWait is how long nothing may come of what was asked for.
	askWait = 20 * time.Second
	// slowest is how many bytes a second a partner has to give, after askWait.
	slowest = 1 << 10
	// slowestCrowded is how many it has to, after muteAfter, where others wait for the turn.
	slowestCrowded = 2 << 10
	// pieceWait is how long a piece may take in any case: of several that share a link of 8 kB/s, too.
	pieceWait = 20 * time.Minute
	// slowFor is for how long a partner is asked after others that needed longer than askWait for a chunk while
	// another partner might have had it.
	slowFor = time.Hour
	// slowPieces are how many pieces come at once from one partner whose chunks take longer than muteAfter. More
	// would take the places that its other requests need there.
	slowPieces = 2
)

// intake is what comes from one partner. Topic.mu guards its fields, which are for those who are asked now.
type intake struct {
	flights int
	bytes   int64
	at      time.Duration // (Awake) something came last
	slow    bool
	waiting int           // flights that wait for a chunk now
	wait    waiting       // the first of them, or since others did without a break
	places  chan struct{} // for its pieces, while it is slow
}

// takeIn begins a flight from a partner; the other function ends it.
func (t *Topic) takeIn(from workflow.PartnerID) (in *intake, end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	in = t.intakes[from]
	if in == nil {
		in = &intake{places: make(chan struct{}, slowPieces), slow: t.slow[from] > 0}
		t.intakes[from] = in
	}
	in.flights++
	return in, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if in.flights--; in.flights == 0 {
			delete(t.intakes, from)
		}
	}
}

// place waits for one of the places that the pieces of a slow partner have, and returns what gives it back.
func (t *Topic) place(ctx context.Context, in *intake) (back func(), err error) {
	t.mu.Lock()
	slow := in.slow
	t.mu.Unlock()
	if !slow {
		return func() {}, nil
	}
	select {
	case in.places <- struct{}{}:
		return func() { <-in.places }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// watched has what comes of a request counted.
func (t *Topic) watched(ctx context.Context, in *intake) context.Context {
	return wire.WithCame(ctx, func(bytes int) {
		t.mu.Lock()
		defer t.mu.Unlock()
		in.bytes += int64(bytes)
		in.at = t.in.Clock.Now().Awake
	})
}

// silent is for how long a partner gave nothing, of what it was asked for at a moment.
func (t *Topic) silent(ctx context.Context, in *intake, began time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	silent := t.in.Clock.Now().Awake - max(began, in.at)
	switch why, slow := context.Cause(ctx), (*tooSlow)(nil); {
	case errors.Is(why, errSlower), errors.Is(why, errYield):
		return 0 // it is not mute
	case errors.Is(why, errSilent), errors.As(why, &slow):
		return max(silent, muteAfter)
	}
	return silent
}

// errSlower: another partner may give a file sooner.
var errSlower = errors.New("gives it slowly, and another partner may give it sooner")

// tooSlow is why a chunk is not waited for any longer.
type tooSlow struct{ why string }

func (e *tooSlow) Error() string { return e.why }

// waiting is since when a chunk is waited for.
type waiting struct {
	since time.Duration // (Awake)
	had   int64         // of intake.bytes then
}

// answered waits for what a partner was asked for that has said that it has the file. Where that takes long
// others have the turn meanwhile. It returns why it is not waited for any longer; nil: it came, or will not.
func (t *Topic) answered(o *order, f *flight, done <-chan struct{}) error {
	defer t.takeBack(o)
	t.mu.Lock()
	c := waiting{since: t.in.Clock.Now().Awake, had: f.in.bytes}
	if f.in.waiting++; f.in.waiting == 1 {
		f.in.wait = c
	}
	t.mu.Unlock()
	defer t.note(func() { f.in.waiting-- })
	for {
		select {
		case <-done:
			return nil
		case <-t.in.Clock.After(patience):
		}
		mayGoOn := t.lend(o)
		if err := t.judge(o, f, c, mayGoOn); err != nil {
			return err
		}
	}
}

// judge is why a chunk is not waited for any longer; nil: it is. Others wait for the turn unless mayGoOn.
func (t *Topic) judge(o *order, f *flight, c waiting, mayGoOn bool) error {
	others := f.others != nil && f.others()
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.in.Clock.Now().Awake
	waited, silent := now-c.since, now-max(c.since, f.in.at)
	rate := int64(float64(f.in.bytes-c.had) / waited.Seconds())
	if waited >= muteAfter {
		f.in.slow = true
	}
	switch {
	case silent >= askWait:
		return &tooSlow{fmt.Sprintf("gave nothing for %s", workflow.FormatDuration(askWait))}
	case waited >= askWait && rate < slowest:
		return &tooSlow{fmt.Sprintf("gives %d bytes a second, %d are the least", rate, slowest)}
	case waited >= askWait && others:
		t.markSlow(f.from, now)
		return errSlower
	case waited >= muteAfter && !mayGoOn && rate < slowestCrowded:
		return errSilent
	case waited >= muteAfter && !mayGoOn && !t.keepsTurn(o):
		return errYield
	}
	return nil
}

// keepsTurn reports whether an order whose chunk comes slowly keeps its turn while others wait for one. Members have
// as many turns for such as for what comes in vain: the others are for those whose files come fast. Whoever has to
// let go begins when one of these is free, and then has it until a chunk is here. The caller holds t.mu.
func (t *Topic) keepsTurn(o *order) bool {
	if o.lent || o.in.of.by == "" {
		return true
	}
	o.slow, o.in.vain = true, true
	if !o.vain {
		if t.vain >= vainTurns {
			return false
		}
		o.vain = true
		t.vain++
	}
	return true
}

// paced notes how long a chunk took that is as it should be.
func (t *Topic) paced(f *flight, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if took < muteAfter {
		f.in.slow = false
		delete(t.slow, f.from)
	}
}

// markSlow has a partner asked after others. The caller holds t.mu.
func (t *Topic) markSlow(p workflow.PartnerID, now time.Duration) {
	if len(t.slow) >= remembered {
		maps.DeleteFunc(t.slow, func(_ workflow.PartnerID, until time.Duration) bool { return until <= now })
	}
	if len(t.slow) < remembered {
		t.slow[p] = now + slowFor
	}
}

// isSlow reports whether a partner gave a file slowly lately. The caller holds t.mu.
func (t *Topic) isSlow(p workflow.PartnerID) bool { return t.slow[p] > t.in.Clock.Now().Awake }

// others reports whether a partner that is not known to be slow or mute may have the file, too.
func (s *search) others() bool {
	for {
		select {
		case a := <-s.answers:
			s.asked--
			s.ready = append(s.ready, a)
			continue
		default:
		}
		break
	}
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	for _, a := range s.ready {
		if a.err == nil && !s.t.isSlow(a.from) {
			return true
		}
	}
	for _, p := range s.left {
		if s.t.mutes[p] == nil && !s.t.isSlow(p) && s.t.in.Partner.Up(p) && !s.t.in.Gone(p) {
			return true
		}
	}
	return false
}
