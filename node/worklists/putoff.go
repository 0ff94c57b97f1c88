package worklists

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file keeps results that their holder has, and has put off until those count that they were made from. One of
// them may come not to count, so it stays in the outbox until its holder says what it came to: that is asked by
// bringing the same word once more, which counts once.

const (
	// askPutOff is after what time that is asked again, each time twice as long, and askPutOffMost after how long at
	// most.
	askPutOff     = 5 * time.Second
	askPutOffMost = 5 * time.Minute
)

// notePutOff notes, durably, that the holder of an item has what a user did of it, and put it off. If that does not
// outlast a crash, it is brought once more.
func (d *Desk) notePutOff(k *kept) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !k.still(d.kept[string(k.key())]) {
		return // its user did it again meanwhile
	}
	is := *d.kept[string(k.key())]
	if !is.putOff {
		is.setPutOff(true)
		if err := d.in.Store.CommitWait([]kv.Write{is.write()}); err != nil {
			d.in.Log.Warn("it cannot be noted that a result was handed in, and put off", "task", k.Task, "error", err)
		}
	}
	d.kept[string(is.key())] = &is
	d.againLater(&is)
}

// againLater has what is kept be brought again later, each time after twice as long. The caller holds d.mu.
func (d *Desk) againLater(k *kept) {
	k.again = d.in.Clock.Now().Awake + min(askPutOff<<min(k.asks, 8), askPutOffMost)
	k.asks++
}

// bringLater is againLater of what was read of what is kept, unless its user did it again meanwhile.
func (d *Desk) bringLater(k *kept) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.kept[string(k.key())]
	if !k.still(now) {
		return
	}
	is := *now
	d.againLater(&is)
	d.kept[string(is.key())] = &is
}

// keepPutOff keeps what a user handed in just now, and its holder put off. If that fails, the user does not hear here
// if it comes not to count.
func (d *Desk) keepPutOff(who users.Who, r *Row, c wire.Spoken, body worklist.Result) {
	k, err := d.doneNow(who, r, c, body)
	if err == nil {
		k.setPutOff(true)
		k.again = d.in.Clock.Now().Awake + askPutOff
		err = d.keepDone(who, k, c, body)
	}
	if err != nil {
		d.in.Log.Warn("a result that was handed in, and put off, cannot be kept in the outbox", "task", r.Task, "error", err)
		d.noteDone(who, r, c, body)
		return
	}
	d.in.Nudge() // it is asked about from now on
}

// askSoon has the holder of what was put off be asked soon what it came to, as it lists the item otherwise by now.
func (d *Desk) askSoon(k *kept) {
	d.mu.Lock()
	if now := d.kept[string(k.key())]; now != nil && now.putOff {
		now.again, now.asks, d.next = 0, 0, 0
	}
	d.mu.Unlock()
	d.in.Nudge()
}

// askPutOffs asks the holders of what was put off what it came to, unless they were asked a moment ago: somebody looks.
func (d *Desk) askPutOffs(ctx context.Context) {
	of := map[workflow.PartnerID][]*kept{}
	for _, k := range d.allKept("") {
		if p := workflow.PartnerID(k.At); k.putOff && len(of[p]) < maxRefusedAsks {
			of[p] = append(of[p], k)
		}
	}
	now := d.in.Clock.Now().Awake
	d.mu.Lock()
	fresh := d.putOffAsked > 0 && now-d.putOffAsked < freshFor
	if !fresh && len(of) > 0 {
		d.putOffAsked = now
	}
	d.mu.Unlock()
	if fresh || len(of) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, soonPatience)
	defer cancel()
	d.handInAll(ctx, of)
}

// changesPutOff refuses another result of an item of which one waits at its holder: of two the first that can count
// does, and the other would be lost. Its holder is asked before whether that waits still. The same once more is no
// other.
func (d *Desk) changesPutOff(ctx context.Context, who users.Who, r *Row, in api.ItemResult) error {
	k := d.keptFor(who.ID, r.ID())
	if k == nil || !k.putOff || k.Grant != r.Grant || !in.Failed && maps.Equal(k.outputs(), in.Outputs) {
		return nil
	}
	if err := d.handIn(ctx, k); err == nil {
		if k = d.keptFor(who.ID, r.ID()); k == nil || !k.putOff {
			return nil
		}
	}
	return api.Errorf(api.Refused,
		"what was done of %s is with %s already, and cannot be changed: it counts when what it was made from does",
		r.called(), d.in.Name(r.At)).
		WithHint("mutirao outbox shows it; whoever decides can have the task done again once it counts")
}

// lostTrack is why nobody knows what became of a result that was put off.
func lostTrack(why string) string {
	return fmt.Sprintf("it was handed in, and what came of it is not known here: %s", why)
}

// refusedOfThose are the tasks of which a result was refused here that another was made from: their holders have not
// written it down, so whoever has the other never hears that it does not count.
func (d *Desk) refusedOfThose(k *kept) (tasks []string) {
	upon := k.upon()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, no := range d.refusals {
		if of, did := no.done(); did && no.User == k.User && slices.Contains(upon, of) {
			tasks = append(tasks, string(of.Item.Slot))
		}
	}
	slices.Sort(tasks)
	return slices.Compact(tasks)
}

// madeFrom are the tasks that a result was made from, with what people call them.
func (k *kept) madeFrom(m more) (tasks []string, labels map[string]string) {
	for _, of := range k.upon() {
		t := of.Item.Slot
		tasks = append(tasks, string(t))
		if label := m.TaskLabels[t]; label != "" {
			if labels == nil {
				labels = map[string]string{}
			}
			labels[string(t)] = label
		}
	}
	slices.Sort(tasks)
	return tasks, labels
}
