package choreo

import (
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/contingency/waits"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file says for how long a person's task has waited to be taken, and for how much longer it may (pulling.go).

func untaken(a *state.Attempt) waits.Key { return waits.Key{Kind: waits.Untaken, Name: a.ID.String()} }

func offeredSince(a *state.Attempt) waits.Key {
	return waits.Key{Kind: waits.Offered, Name: a.ID.String()}
}

// awaitsTaker reports whether an attempt here waits to be taken, so that no performer is sought for it; until, in how
// long that may be otherwise; 0: it does not end by itself.
func (o outlook) awaitsTaker(a *state.Attempt) (waits bool, until time.Duration) {
	if !o.state.Pulled(a) {
		return false, 0
	}
	if o.state.Mechanism() != aptitude.SelPushPull {
		return true, 0
	}
	offered, is := o.offeredFor(a)
	patience := partition.PatienceOf(o.state.Definition())
	if !is {
		return true, 0 // there is nobody yet to whom it could be given either
	}
	return offered < patience, max(0, patience-offered)
}

// offeredFor is for how long an attempt of ours has been offered to somebody, by whatever policy; false: it was not.
// Once this node has made all offers that it may, what is ready is for all.
func (o outlook) offeredFor(a *state.Attempt) (time.Duration, bool) {
	board := o.state.People().Board
	if board == nil {
		return 0, false
	}
	offered := board.WasOffered(state.ItemOf(a.ID))
	switch c := o.clocks.Get(offeredSince(a)); {
	case c != nil:
		return c.Read(o.now.Boot), true
	case offered:
		return 0, true
	}
	return o.noticedFor(a), board.Spent(o.self)
}

// untakenFor is for how long an attempt of ours can be taken.
func (o outlook) untakenFor(a *state.Attempt) time.Duration {
	if c := o.clocks.Get(untaken(a)); c != nil {
		return c.Read(o.now.Boot)
	}
	return o.noticedFor(a) + a.WaitedBefore()
}

// waiting is for how long an attempt has waited to be taken, and when it is overdue.
func (o outlook) waiting(a *state.Attempt) partition.Waiting {
	w := partition.Waiting{}
	w.Offered, _ = o.offeredFor(a)
	w.For = max(o.untakenFor(a), w.Offered)
	ends := func(left time.Duration, runs bool) {
		if runs && (!w.Ends || left < w.Left) {
			w.Left, w.Ends = max(left, 0), true
		}
	}
	ends(o.timeoutLeft(a))
	if a.Noticed != 0 {
		ends(o.state.DueOf(a).Left(o.now.Boot-w.For, worklist.Moment{Boot: o.now.Boot, Wall: o.now.Wall}))
	}
	return w
}
