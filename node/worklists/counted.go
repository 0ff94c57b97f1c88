package worklists

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file remembers, at a node that takes no part in an instance, what its users handed in there and counts. It may
// come not to: a holder may not have heard yet that another had done the task, or that what it stands in for was done
// after all. Nobody tells that to such a node, so it asks now and then, by the same word, and puts what does not count
// any more into the outbox.

// stillCounts is in place of the reason of a result that counts, as its holder said last.
const stillCounts = "it counts"

const (
	// askCountedEvery is how often it is asked what counts still, soonCounted how soon once a partner is connected again,
	// from whom a holder may hear what takes it, countedPause the least time between, and maxCountedAsks of how many results
	// each time: in turn.
	askCountedEvery = 5 * time.Minute
	soonCounted     = 10 * time.Second
	countedPause    = 30 * time.Second
	maxCountedAsks  = 16
	// countedFor is for how long it is asked, maxCounted of how many results at most, the newest.
	countedFor = 7 * 24 * time.Hour
	maxCounted = 256
)

// noteCounted notes, durably, that a result counts at its holder. If that fails its user does not hear here if it comes
// not to.
func (d *Desk) noteCounted(k *kept) {
	if r := k.row(); k.What != Completed || !d.elsewhere(&r) {
		return
	}
	is := *k
	is.setPutOff(false)
	is.Refused, is.RefusedAt = stillCounts, d.in.Clock.Now().Wall.UnixMilli()
	d.mu.Lock()
	defer d.mu.Unlock()
	writes := []kv.Write{{Key: is.refusedKey(), Value: is.write().Value}}
	old := slices.SortedFunc(maps.Keys(d.standing), func(a, b string) int {
		return int(d.standing[a].RefusedAt - d.standing[b].RefusedAt)
	})
	left := len(old)
	for _, key := range old {
		if left < maxCounted && is.RefusedAt-d.standing[key].RefusedAt <= countedFor.Milliseconds() {
			break
		}
		writes = append(writes, kv.Write{Key: []byte(key), Delete: true})
		left--
	}
	if err := d.in.Store.CommitWait(writes); err != nil {
		d.in.Log.Warn("it cannot be noted that a result counts", "task", k.Task, "error", err)
		return
	}
	for _, w := range writes[1:] {
		delete(d.standing, string(w.Key))
	}
	d.standing[string(is.refusedKey())] = &is
	d.in.Nudge() // it is asked about from now on
}

// resultOf is what a user handed in of an item just now.
func (d *Desk) resultOf(who users.Who, r *Row, c wire.Spoken) (*kept, error) {
	word, err := wire.EncodeSpoken(c)
	if err != nil {
		return nil, err
	}
	k := keptOf(who, r, r.AsOf, nil)
	k.Word, k.What, k.Done = word, Completed, d.in.Clock.Now().Wall.UnixMilli()
	return k, nil
}

// mindCounted asks now and then whether what counted does still.
func (d *Desk) mindCounted(now moment.Now) time.Duration {
	d.mu.Lock()
	some := len(d.standing) > 0
	due := some && now.Awake >= d.standingNext
	if due || !some {
		d.standingNext = now.Awake + askCountedEvery
	}
	left := d.standingNext - now.Awake
	d.mu.Unlock()
	switch {
	case !some:
		return moment.Never
	case due:
		d.in.Aside(d.askCounted)
	}
	return left
}

// lookAtCounted has the holders of what counted be asked soon, as a partner was just connected: they may hear from it
// what takes that from them.
func (d *Desk) lookAtCounted() {
	now := d.in.Clock.Now().Awake
	d.mu.Lock()
	some := len(d.standing) > 0
	if some {
		d.standingNext = min(d.standingNext, max(now+soonCounted, d.standingAsked+countedPause))
	}
	d.mu.Unlock()
	if some {
		d.in.Nudge()
	}
}

// seeCounted is askCounted where somebody looks, unless that was asked a moment ago.
func (d *Desk) seeCounted() {
	d.mu.Lock()
	fresh := len(d.standing) == 0 || d.standingAsked > 0 && d.in.Clock.Now().Awake-d.standingAsked < countedPause
	d.mu.Unlock()
	if !fresh {
		d.askCounted()
	}
}

// askCounted brings results once more that counted, in turn: the same word counts once, and its holder says what it comes
// to by now.
func (d *Desk) askCounted() {
	now := d.in.Clock.Now().Awake
	d.mu.Lock()
	d.standingAsked = now
	var keys, before []string
	for _, key := range slices.Sorted(maps.Keys(d.standing)) {
		switch {
		case !d.in.Peers.Up(workflow.PartnerID(d.standing[key].At)):
		case key <= d.standingLast:
			before = append(before, key)
		default:
			keys = append(keys, key)
		}
	}
	keys = append(keys, before...)
	keys = keys[:min(len(keys), maxCountedAsks)]
	all := maps.Clone(d.standing)
	if len(keys) > 0 {
		d.standingLast = keys[len(keys)-1]
	}
	d.mu.Unlock()
	mute := map[string]bool{}
	for _, key := range keys {
		k := all[key]
		if mute[k.At] {
			continue
		}
		c, err := wire.DecodeSpoken(k.Word)
		if err != nil {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), soonPatience)
		done, err := d.bring(ctx, workflow.PartnerID(k.At), c)
		cancel()
		switch {
		case err == nil && done.Kept != "":
			d.countsNoMore(key, k, done)
		case err != nil && !errors.As(err, new(refusal)):
			mute[k.At] = true
		}
	}
}

// countsNoMore puts a result into the outbox that had counted, with why it does not any more.
func (d *Desk) countsNoMore(key string, k *kept, done choreo.Claimed) {
	no := *k
	no.Refused, no.RefusedAt = "it counted, and does not any more, "+Because(done.Kept)+keptThere,
		d.in.Clock.Now().Wall.UnixMilli()
	no.keptAs(done.Result)
	d.mu.Lock()
	if d.standing[key] != k {
		d.mu.Unlock()
		return
	}
	err := d.in.Store.CommitWait([]kv.Write{{Key: []byte(key), Value: no.write().Value}})
	if err == nil {
		delete(d.standing, key)
		d.refusals[key] = &no
	}
	d.mu.Unlock()
	if err != nil {
		d.in.Log.Warn("it cannot be kept that a result does not count any more", "task", k.Task, "error", err)
		return // once more, later
	}
	d.tellHandedIn(k, "refused")
}
