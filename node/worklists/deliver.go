package worklists

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// deliverEvery is how often it is tried to hand in what waits for that.
const deliverEvery = 5 * time.Second

// Greet and Take: partners say nothing of worklists but what they are asked.
func (d *Desk) Greet(workflow.PartnerID, *wire.Message) {}

// Take takes nothing.
func (d *Desk) Take(workflow.PartnerID, *wire.Message) {}

// Tick hands in what users did out of reach, as far as the partners are here that wait for it.
func (d *Desk) Tick(now moment.Now) time.Duration {
	d.mu.Lock()
	next, waits := d.nextDelivery()
	due := waits && !d.delivering && now.Awake >= next
	if due {
		d.next, d.delivering = now.Awake+deliverEvery, true
		next, _ = d.nextDelivery()
	}
	left := max(next-now.Awake, 0)
	rests := !waits || left == 0 // what is under way wakes the node when it has ended
	d.mu.Unlock()
	if due {
		d.in.Aside(func() {
			d.deliver()
			d.mu.Lock()
			d.delivering = false
			next, waits := d.nextDelivery()
			d.mu.Unlock()
			if waits && d.in.Clock.Now().Awake >= next {
				d.in.Nudge() // nobody wakes for it any more
			}
		})
	}
	soon := min(d.mindAlarm(now), d.mindChanges(now), d.mindFollow(now), d.mindGave(now), d.mindRefused(now),
		d.mindCounted(now), d.mindLoads(now), d.mindDoubts(now))
	if rests {
		return soon
	}
	return min(soon, left)
}

// nextDelivery is from when on (Awake) something is to be handed in, or asked about; false: nothing is. The caller
// holds d.mu.
func (d *Desk) nextDelivery() (at time.Duration, waits bool) {
	waits = len(d.joints) > 0
	for _, k := range d.kept {
		switch {
		case len(k.Word) == 0:
		case waits:
			at = min(at, k.again)
		default:
			at, waits = k.again, true
		}
	}
	return max(d.next, at), waits
}

// Met is told that a partner is connected: what waits for it is handed in now, its users' lists are compared,
// it is told how much people have to do here, and is asked whether it gave locks that are not kept.
func (d *Desk) Met(p workflow.PartnerID) {
	d.followAt(p)
	d.meetLoads(p)
	d.mu.Lock()
	waits := false
	for _, k := range d.kept {
		if len(k.Word) > 0 && workflow.PartnerID(k.At) == p {
			waits, k.again, k.asks = true, 0, 0
		}
	}
	d.mu.Unlock()
	if waits {
		d.nudge()
	}
	d.lookAtGave(p)
	d.lookAtRefused(p)
	d.lookAtCounted()
	d.doubtsMet(p)
}

// nudge has what waits be handed in soon.
func (d *Desk) nudge() {
	d.mu.Lock()
	d.next = 0
	d.mu.Unlock()
	d.in.Nudge()
}

// deliver gives back what joint locks left, and hands in what waits, at each partner in the order in which it was done.
// A partner that does not answer is asked no more this time, and keeps nobody else's work waiting.
func (d *Desk) deliver() {
	d.settleAll()
	waits := map[workflow.PartnerID][]*kept{}
	now := d.in.Clock.Now().Awake
	for _, k := range d.allKept("") {
		at := workflow.PartnerID(k.At)
		switch {
		case len(k.Word) == 0 || now < k.again:
		case d.in.Gone(at) && k.putOff:
			d.keepRefused(k, lostTrack(d.in.Name(at)+" is gone for good"), worklist.ID{}, nil)
		case d.in.Gone(at):
			d.keepRefused(k, fmt.Sprintf("%s, who held it, is gone for good and takes nothing any more", d.in.Name(at)),
				worklist.ID{}, nil)
		default:
			waits[at] = append(waits[at], k)
		}
	}
	d.handInAll(context.Background(), waits)
}

// handInAll hands in what waits for this node itself and for partners that are connected.
func (d *Desk) handInAll(ctx context.Context, waits map[workflow.PartnerID][]*kept) {
	handIn := func(p workflow.PartnerID) error {
		for _, k := range waits[p] {
			if err := d.handIn(ctx, k); err != nil {
				return err
			}
		}
		return nil
	}
	if err := handIn(d.in.Self); err != nil {
		d.in.Log.Warn("what was done here is not written down", "error", err) // once more, later
	}
	d.askEach(handIn)
}

// handIn hands in what a user did, and forgets it when it is durable where it belongs; what its holder puts off, when
// it counts. An error: there was no answer.
func (d *Desk) handIn(ctx context.Context, k *kept) error {
	why, isKept, result := "", false, worklist.ID{}
	c, err := wire.DecodeSpoken(k.Word)
	switch {
	case err != nil:
		why = "it cannot be read any more"
	case d.isEarly(k, c):
		return nil // once more, later
	default:
		done, err := d.bring(ctx, workflow.PartnerID(k.At), c)
		var no refusal
		switch err = d.refused(k.At, err); {
		case err == nil && done.Kept == "" && done.Waits:
			if d.notePutOff(k); !k.putOff {
				d.arrived(k)
			}
			return nil
		case err == nil && done.Kept == "":
			d.drop(k)
			d.mu.Lock()
			d.unlist(k.User, workflow.PartnerID(k.At), k.id())
			d.mu.Unlock()
			d.arrived(k)
			d.noteCounted(k)
			return nil
		case err == nil:
			why, isKept, result = "it does not count, "+Because(done.Kept)+keptThere, true, done.Result
		case errors.As(err, &no) && !k.putOff && d.awaitsUnnamed(k, c):
			d.bringLater(k) // the definition was changed meanwhile: it may count once that is done
			return nil
		case errors.As(err, &no) && k.putOff:
			why = lostTrack(no.said.Message)
		case errors.As(err, &no):
			why = no.said.Message
		default:
			return err // once more, later
		}
	}
	d.keepRefused(k, why, result, d.stillHas(k, isKept))
	return nil
}

// arrived notes that the holder of an item has what a user did of it.
func (d *Desk) arrived(k *kept) {
	d.mended(k)
	d.took(k, k.outputs())
	d.tellHandedIn(k, "handed in")
}

// keepRefused puts what a user did into the outbox for good (refuse), and tells that.
func (d *Desk) keepRefused(k *kept, why string, result worklist.ID, has *Row) {
	if err := d.refuse(k, why, result, has); err != nil { // it is handed in once more, later
		d.in.Log.Warn("it cannot be kept that what a user did was refused", "task", k.Task, "why", why, "error", err)
		return
	}
	d.tellHandedIn(k, "refused")
	d.in.Nudge() // it is asked about from now on
}

// isEarly reports whether the holder of an item has still to hear that something was done for which the item waits, of
// which this node knows, and which the result does not name, as a program did it, say: it would refuse the result.
func (d *Desk) isEarly(k *kept, c wire.Spoken) bool {
	unnamed := unnamedBy(c)
	return unnamed != nil && !k.putOff && slices.ContainsFunc(k.more().Awaits, unnamed) && d.awaitsUnnamed(k, c)
}

// unnamedBy tells tasks that a success does not name as what it was made from; nil: it is none.
func unnamedBy(c wire.Spoken) func(workflow.TaskName) bool {
	body, err := worklist.Decode(c.Says)
	x, is := body.(worklist.Result)
	if err != nil || !is || x.Failed {
		return nil
	}
	return func(t workflow.TaskName) bool {
		return !slices.ContainsFunc(x.Upon, func(of worklist.Basis) bool { return of.Item.Slot == t })
	}
}

// awaitsUnnamed reports whether the holder of an item says that its user has it, and that it waits for something which
// a result does not name.
func (d *Desk) awaitsUnnamed(k *kept, c wire.Spoken) bool {
	unnamed := unnamedBy(c)
	who, err := d.in.People.Who(k.User)
	if unnamed == nil || err != nil {
		return false
	}
	rows, err := d.askOne(context.Background(), who, workflow.PartnerID(k.At), k.Instance)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(rows, func(r Row) bool {
		return r.ID() == k.id() && r.Mine != "" && slices.ContainsFunc(r.Awaits, unnamed)
	})
}

// tellHandedIn tells those who watch that something was handed in, or refused: at a node that takes no part in the
// instance nothing else does.
func (d *Desk) tellHandedIn(k *kept, text string) {
	d.in.Publish(api.Event{At: d.in.Clock.Now().Wall, Kind: "worklist", Instance: k.Instance.String(), Text: text})
}
