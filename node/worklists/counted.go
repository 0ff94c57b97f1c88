package worklists

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file remembers, at a node that takes no part in an instance, what its users handed in there and counts. It may
// come not to: a holder may not have heard yet that another had done the task, or that what it stands in for was done
// after all, or it may be put back from an older copy. Nobody tells that to such a node, so it asks now and then, by
// the same word, and puts what does not count any more into the outbox.

// stillCounts is in place of the reason of a result that counts, as its holder said last.
const stillCounts = "it counts"

const (
	// askCountedFirst is after what time it is asked whether a result counts still, each time twice as long, and
	// askCountedMost after how long at most: its holder may have to read all of an instance that has ended.
	askCountedFirst = 5 * time.Minute
	askCountedMost  = 24 * time.Hour
	// soonCounted is how soon it is asked once a partner is connected again, from whom the holder may hear what takes
	// it. Then, and when somebody looks, there lies countedGap between two times at least, each time twice as long
	// until countedGapMost.
	soonCounted    = 10 * time.Second
	countedGap     = 30 * time.Second
	countedGapMost = 30 * time.Minute
	// maxCountedAsks is of how many results it is asked at a time, and countedPause the pause until others are.
	maxCountedAsks = 16
	countedPause   = 30 * time.Second
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
		return cmp.Compare(d.standing[a].RefusedAt, d.standing[b].RefusedAt)
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
	is.noted, is.asks = d.in.Clock.Now().Awake, 0
	is.again = is.noted + askCountedFirst
	d.standing[string(is.refusedKey())] = &is
	d.in.Nudge() // it is asked about from now on
}

// mindCounted asks now and then whether what counted does still.
func (d *Desk) mindCounted(now moment.Now) time.Duration {
	d.mu.Lock()
	next := now.Awake + moment.Never
	for _, k := range d.standing {
		switch at := workflow.PartnerID(k.At); {
		case d.in.Evicted(at):
			next = now.Awake
		case k.again < next && d.in.Peers.Up(at): // of others it is asked once they are back
			next = k.again
		}
	}
	next = max(next, d.standingNext)
	due := len(d.standing) > 0 && now.Awake >= next
	if due {
		d.standingNext = now.Awake + countedPause
	}
	d.mu.Unlock()
	if due {
		d.in.Aside(d.askCounted)
		return countedPause
	}
	return next - now.Awake
}

// lookAtCounted has the holders of what counted be asked soon, as a partner was just connected: they may hear from it
// what takes that from them.
func (d *Desk) lookAtCounted() {
	if d.hasten(soonCounted) {
		d.in.Nudge()
	}
}

// hasten has what counted be asked about after some time, unless it was a moment ago. It reports whether there is any.
func (d *Desk) hasten(after time.Duration) bool {
	now := d.in.Clock.Now().Awake
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, k := range d.standing {
		gap := min(countedGap<<min(k.asks, 8), countedGapMost)
		k.again = min(k.again, max(now+after, k.noted+gap))
	}
	return len(d.standing) > 0
}

// askCounted brings results once more that counted, as far as that is due: the same word counts once, and its holder
// says what it comes to by now. A holder that was evicted says nothing that others believe.
func (d *Desk) askCounted() {
	now := d.in.Clock.Now().Awake
	d.mu.Lock()
	due := map[string]*kept{}
	for _, key := range slices.Sorted(maps.Keys(d.standing)) {
		k, at := d.standing[key], workflow.PartnerID(d.standing[key].At)
		if !d.in.Evicted(at) && (now < k.again || !d.in.Peers.Up(at)) || len(due) >= maxCountedAsks {
			continue
		}
		due[key] = k
		k.noted, k.again = now, now+min(askCountedFirst<<min(k.asks, 10), askCountedMost)
		k.asks++
	}
	d.mu.Unlock()
	mute := map[string]bool{}
	for _, key := range slices.Sorted(maps.Keys(due)) {
		k := due[key]
		if at := workflow.PartnerID(k.At); d.in.Evicted(at) {
			d.countsNoMore(key, k, fmt.Sprintf("%s had taken it, and was removed from the mesh since: it counts only where "+
				"others had heard of it before that", d.in.Name(at)), worklist.ID{})
			continue
		}
		c, err := wire.DecodeSpoken(k.Word)
		if err != nil || mute[k.At] {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), soonPatience)
		done, err := d.bring(ctx, workflow.PartnerID(k.At), c)
		cancel()
		var no refusal
		switch {
		case err == nil && done.Kept != "":
			d.countsNoMore(key, k, "it counted, and does not any more, "+Because(done.Kept)+keptThere, done.Result)
		case err != nil && !errors.As(err, &no):
			mute[k.At] = true
		case err != nil:
			if _, said, is := strings.Cut(no.Error(), noRecord); is {
				d.countsNoMore(key, k, "it counted, and does not any more: "+noRecord+said, worklist.ID{})
			}
		}
	}
}

// countsNoMore puts a result into the outbox that had counted, with why it does not any more, or may not, and as what its
// holder keeps it; zero: it does not.
func (d *Desk) countsNoMore(key string, k *kept, why string, result worklist.ID) {
	no := *k
	no.Refused, no.RefusedAt = why, d.in.Clock.Now().Wall.UnixMilli()
	no.keptAs(result)
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
