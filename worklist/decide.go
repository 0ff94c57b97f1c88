package worklist

import (
	"container/heap"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Effects are what a node is to do about the people's work of an instance.
type Effects struct {
	// Write are facts that this node is to write, in this order. Each is about one item.
	Write []Body
	// Got are the items that have got all units which they are to hold.
	Got []Item
	// Cancel is an order by which the instance is to be cancelled; zero: none.
	Cancel ID
	// Wake is the next moment (Boot) at which Decide should be called again even if nothing
	// happens; 0: none.
	Wake time.Duration
}

// desk is what Decide has still to look at.
type desk struct {
	todo  map[*item]bool
	clock wakes
	// wanting are items that may lack a resource; units: some may be free since units were last
	// given away.
	wanting map[*item]bool
	units   bool
	got     []Item // that have got all that they hold since Decide was last asked
}

func newDesk() desk { return desk{todo: map[*item]bool{}, wanting: map[*item]bool{}} }

// changed has an item looked at, and units counted if it may have got or lost one.
func (b *Board) changed(it *item) {
	b.desk.todo[it] = true
	if len(b.upon) > 0 {
		for _, w := range it.works { // what was made from them may count now, or never
			for _, later := range b.upon[w.fact.word()] {
				b.steps++
				b.desk.todo[later] = true
			}
		}
	}
	b.count(it)
	if len(it.Task.Holds) == 0 {
		return
	}
	if needed := (unitsFor{b.needs(it), it.rounds, it.rank()}); needed != it.units {
		it.units = needed
		b.units(it)
	}
}

func (b *Board) allChanged() {
	for _, it := range b.items {
		b.changed(it)
	}
}

// Changed tells the board that something about people is not as it was when Decide asked:
// who came, who went, or whose roles changed. Empty: anything may have.
func (b *Board) Changed(role workflow.RoleName, users ...User) {
	for _, it := range b.items {
		b.steps++
		switch {
		case role == "" && len(users) == 0, it.open == nil && (it.roleNow() == "" || it.roleNow() == role):
			b.changed(it)
		case it.open != nil && slices.Contains(users, it.open.User):
			b.changed(it)
		}
	}
}

// deciding is a decision on its way.
type deciding struct {
	b      *Board
	self   workflow.PartnerID
	people People
	now    Moment
	out    Effects
	given  map[User]int // how many items it has offered to each by name
	said   offering     // what it has said of that, and is not entered yet
}

// Decide says what this node is to write as the holder of attempts, as the keeper of
// resources, and when it wants to be asked again. It looks only at what has changed, and
// at what is due.
func (b *Board) Decide(self workflow.PartnerID, people People, now Moment) Effects {
	d := &deciding{b: b, self: self, people: people, now: now, given: map[User]int{}}
	b.desk.due(now.Boot)
	b.countUnits()
	d.out.Got, b.desk.got = b.desk.got, nil
	todo := make([]*item, 0, len(b.desk.todo))
	for it := range b.desk.todo {
		todo = append(todo, it)
	}
	clear(b.desk.todo)
	slices.SortFunc(todo, func(x, y *item) int { return x.Item.Compare(y.Item) })
	for _, it := range todo {
		b.steps++
		it.wake = 0
		if body := d.next(it); body != nil {
			d.out.Write = append(d.out.Write, body)
			b.desk.todo[it] = true // there may be more
		}
	}
	for _, o := range b.cancels {
		if o.Partner == self && d.out.Cancel.IsZero() {
			d.out.Cancel = o.ID
		}
	}
	d.reserve()
	if next := b.desk.next(); next > 0 {
		d.out.Wake = next
	}
	return d.out
}

// next is the next fact that this node is to write of an item; nil: none.
func (d *deciding) next(it *item) Body {
	if it.Holder != d.self || !it.placed || !it.InCharge {
		return nil
	}
	if body := d.ordered(it); body != nil {
		return body
	}
	if it.end() != nil || it.Over {
		return nil
	}
	if it.Ready {
		if body := d.closing(it); body != nil {
			return body
		}
		if body := d.passing(it); body != nil {
			return body
		}
	}
	if it.open != nil {
		return d.ending(it)
	}
	if d.b.waits(it) {
		return d.offer(it)
	}
	return nil
}

// ordered carries out the orders about an item that were not yet (rule 11).
func (d *deciding) ordered(it *item) Body {
	for _, o := range it.orders {
		if it.used[o.ID] || it.cannot[o.ID] {
			continue
		}
		e := it.end()
		switch o.Body.(Order).What {
		case Cancel:
			if d.out.Cancel.IsZero() && !it.Over {
				d.out.Cancel = o.ID
			}
		case Stop:
			if e == nil && !it.Over {
				return Close{Item: it.Item, Order: o.ID}
			}
		case Again, Skip:
			if it.Unhandled || e != nil && e.Failed {
				return Reopen{Item: it.Item, Order: o.ID}
			}
		}
	}
	return nil
}

// Unfollowed is the first order to do an item once more, or to leave it out, that a partner wrote down and has not
// carried out yet; nil: there is none, or it cannot be carried out as the item stands.
func (b *Board) Unfollowed(i Item, by workflow.PartnerID) *Fact {
	it := b.items[i]
	if it == nil {
		return nil
	}
	for _, o := range it.orders {
		what := o.Body.(Order).What
		if o.Partner == by && (what == Again || what == Skip) && !it.used[o.ID] && !it.cannot[o.ID] {
			return o
		}
	}
	return nil
}

// CannotFollow notes that an order cannot be carried out as the item stands: those that came after it are
// looked at, until the item stands otherwise.
func (b *Board) CannotFollow(i Item, order ID) {
	it := b.items[i]
	if it == nil {
		return
	}
	if it.cannot == nil {
		it.cannot = map[ID]bool{}
	}
	it.cannot[order] = true
	b.changed(it)
}

// closing takes the result of whoever holds an item. It is looked for before anything ends
// the grant: what has arrived in time counts (rule 8).
func (d *deciding) closing(it *item) Body {
	for _, w := range it.works {
		if it.open == nil || w.hold != it.open || w.void() != "" {
			continue
		}
		if d.b.founded(w.Result) {
			return Close{Item: it.Item, Result: w.fact.ID}
		}
	}
	return nil
}

// clockPatience is how late it may be noticed that somebody set the wall clock on, by which a deadline comes
// that is a point in time.
const clockPatience = 10 * time.Minute

// passing passes an item to the responsible user as its deadline is near (rule 10).
func (d *deciding) passing(it *item) Body {
	left, has := d.left(it)
	to := d.b.terms.Responsible
	if !has || it.Task.Transfer == 0 || to == "" || it.passed || it.open != nil && it.open.User == to {
		return nil
	}
	if left > it.Task.Transfer {
		wait := left - it.Task.Transfer
		if !it.deadline().At.IsZero() { // somebody may set the clock by which it comes
			wait = min(wait, clockPatience)
		}
		d.wake(it, d.now.Boot+wait)
		return nil
	}
	if _, known := d.people.Known(to); !known {
		return nil // it would be taken from that user at once
	}
	return NewDueTransfer(it.Item, to)
}

// ending revokes a grant whose lease is over, or whose user is no longer entitled (rule 6), but for a clock that may be
// wrong. A lock does not end before the absence is over that its user's device announced.
func (d *deciding) ending(it *item) Body {
	h := it.open
	p, known := d.people.Known(h.User)
	if !known && !p.Unsure || !it.maydo(d.b, h.User, p.Roles) {
		return Revoke{Item: it.Item, Grant: h.leased, Cause: ByRemoval}
	}
	if h.lease.Lease == 0 {
		return nil
	}
	end := d.b.heard[h.leased] + h.lease.Lease
	over := end
	if h.Mode == Lock { // it is done out of reach: who announced that for longer than the lease is waited for
		switch {
		case p.Back > d.now.Boot:
			h.away, h.back = min(p.Back, end+MostAway), false
		case h.away > d.now.Boot && !h.back: // what was done meanwhile is yet to be handed in
			h.away, h.back = min(h.away, d.now.Boot+backPatience), true
		}
		over = max(end, h.away)
	}
	if d.now.Boot >= over {
		return Revoke{Item: it.Item, Grant: h.leased, Cause: ByLease}
	}
	d.wake(it, max(end, min(over, d.now.Boot+backPatience))) // the device may be back sooner
	return nil
}

// MostAway is for how long at most a lock outlasts its lease as its user is away: whoever announces one absence after
// the other keeps an item from others no longer than that. backPatience is how late it is noticed at most that the user
// is back, and how long the user then has to hand in what was done.
const (
	MostAway     = 8 * 24 * time.Hour
	backPatience = time.Hour
)

// wake has an item looked at again at a moment, unless that is to be earlier.
func (d *deciding) wake(it *item, at time.Duration) {
	if it.wake == 0 || at < it.wake {
		it.wake = at
		heap.Push(&d.b.desk.clock, waking{at, it})
	}
}

// waking is a moment at which an item is to be looked at; it is void if the item names another.
type waking struct {
	at time.Duration
	it *item
}

// wakes is a heap of them, the earliest first.
type wakes []waking

func (w wakes) Len() int           { return len(w) }
func (w wakes) Less(i, j int) bool { return w[i].at < w[j].at }
func (w wakes) Swap(i, j int)      { w[i], w[j] = w[j], w[i] }
func (w *wakes) Push(x any)        { *w = append(*w, x.(waking)) }
func (w *wakes) Pop() any {
	last := len(*w) - 1
	x := (*w)[last]
	*w = (*w)[:last]
	return x
}

// due moves what is due to what is to be looked at.
func (d *desk) due(now time.Duration) {
	for len(d.clock) > 0 && (d.clock[0].at <= now || d.clock[0].at != d.clock[0].it.wake) {
		w := heap.Pop(&d.clock).(waking)
		if w.at == w.it.wake {
			d.todo[w.it] = true
		}
	}
}

// next is the earliest moment that counts; 0: none.
func (d *desk) next() time.Duration {
	for len(d.clock) > 0 {
		if w := d.clock[0]; w.at == w.it.wake {
			return w.at
		}
		heap.Pop(&d.clock)
	}
	return 0
}
