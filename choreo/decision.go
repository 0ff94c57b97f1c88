package choreo

import (
	"fmt"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/contingency/waits"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file says how a decision adds facts of this node's own, and how it waits.

// append adds a fact of our own. More heads than one fact takes, or than fit beside
// what is said, go into `seen` facts of ours before it. An error says which limit
// the fact is beyond (choreo/fact/limits.go); then nothing was added, and it is among what
// Decide reports.
func (d *decision) append(b fact.Body) (*log.Entry, error) {
	e, err := d.say(b, d.log.Unseen(d.own))
	if err == nil {
		return e, nil
	}
	if err = d.fits(b); err == nil {
		if err = d.sayHeads(); err == nil {
			e, err = d.say(b, nil)
		}
	}
	if err != nil {
		d.beyond = append(d.beyond, err)
	}
	return e, err
}

// sayHeads names all heads that this node has seen and not named, in as many facts
// as that takes.
func (d *decision) sayHeads() error {
	for heads := d.log.Unseen(d.own); len(heads) > 0; heads = d.log.Unseen(d.own) {
		if _, err := d.say(fact.Body{Seen: &fact.Seen{}}, heads[:min(len(heads), fact.MaxHeadsSeen)]); err != nil {
			return err
		}
	}
	return nil
}

// say adds our next fact, which has seen those heads, or says which limit it is
// beyond.
func (d *decision) say(b fact.Body, seen []fact.Head) (*log.Entry, error) {
	f := d.next(b, seen)
	raw, id, err := f.Encode()
	if err != nil {
		return nil, err
	}
	return d.enter(f, raw, id), nil
}

// fits says which limit a fact of ours would be beyond, heads aside.
func (d *decision) fits(b fact.Body) error {
	one := []fact.Head{d.log.Genesis().Head()} // for a first fact, which must have seen something
	_, _, err := d.next(b, one).Encode()
	return err
}

// next is our next fact, if it has seen those heads.
func (d *decision) next(b fact.Body, seen []fact.Head) *fact.Fact {
	f := &fact.Fact{
		Format: fact.Format, Instance: d.log.Instance(), Chain: d.chain, Seq: 1, Seen: seen, At: wall(d.now.Wall),
		Body: b,
	}
	if d.own != nil {
		f.Seq, f.Prev = d.own.Fact.Seq+1, d.own.ID
	}
	return f
}

// enter puts a fact of ours into the log.
func (d *decision) enter(f *fact.Fact, raw []byte, id fact.ID) *log.Entry {
	e, err := d.log.Insert(f, raw, id, nil)
	if err != nil || e == nil {
		panic(fmt.Sprintf("choreo: our own fact does not fit our own log: %v", err)) // our bug
	}
	d.own = e
	d.unsaved = append(d.unsaved, e)
	d.fold([]*log.Entry{e})
	return e
}

// claim writes down what this node says itself of people's work. It reports whether it added a fact.
func (d *decision) claim(body worklist.Body, why *fact.Annex) (added bool) {
	says, err := worklist.Encode(body)
	if err != nil {
		d.beyond = append(d.beyond, err)
		return false
	}
	e, err := d.append(fact.Body{Claim: &fact.Claim{Says: says}, Annex: why})
	return err == nil && e.Counted
}

// ask has a peer asked what it has.
func (d *decision) ask(p workflow.PartnerID) {
	if len(d.out.Ask) >= manySlots || !slices.Contains(d.out.Ask, p) { // of many one may be named twice
		d.out.Ask = append(d.out.Ask, p)
	}
}

const manySlots = 32 // or partitions and participants

// waited is for how long the time-out of an attempt of our own has run.
func (o outlook) waited(a *state.Attempt) time.Duration {
	if c := o.clocks.Get(waits.Key{Kind: waits.Timeout, Name: a.ID.String()}); c != nil {
		return min(c.Read(o.now.Boot), a.Task.Timeout)
	}
	return 0
}

// runs runs an own clock about a slot, and reports whether it is over: if not, the slot
// is looked at when it will be.
func (d *decision) runs(k waits.Key, from, total time.Duration, of *slotClocks) (over bool) {
	c := &d.clocks
	c.OwnLasts(total)
	of.keys = append(of.keys, k)
	t := c.RunFrom(from, k, true, d.now.Boot)
	if t >= total && d.now.Boot >= c.calm {
		return true
	}
	of.wake(d.now.Boot + max(total-t, 0))
	return false
}

// over reports whether a wait of that length is over; if not it asks to be woken.
func (d *decision) over(elapsed, total time.Duration, running bool) bool {
	d.clocks.Lasts(total)
	calm := d.clocks.calm
	switch {
	case elapsed >= total && d.now.Boot >= calm:
		return true
	case elapsed >= total:
		d.out.wake(calm)
	case running:
		d.out.wake(max(d.now.Boot+total-elapsed, calm))
	}
	return false
}
