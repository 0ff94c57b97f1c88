package worklist

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// State is how an item stands, for people.
type State string

// The states of an item.
const (
	Waiting  State = "WAITING"  // it is not ready, or lacks a resource
	Open     State = "READY"    // whoever sees it may take it
	Selected State = "SELECTED" // somebody has it
	Locked   State = "LOCKED"   // somebody has it, and may be offline
	IsDone   State = "DONE"
	IsOver   State = "OVER" // it ended without a result, or another attempt is in charge
)

// View is an item as it stands.
type View struct {
	Item    Item
	State   State
	Holder  User // who has it, or has done it
	Partner workflow.PartnerID
	Begun   bool
	Grant   ID   // the last that Holder has, while it counts
	Handed  User // it is kept for this one to take
	Role    workflow.RoleName
	All     bool
	To      []User
	Due     Due
	Since   time.Duration
	End     *End
	Rounds  int
	Works   []Work
	Task    Task
	// Asks is set while the responsible user is to decide: a failure that the definition
	// does not handle.
	Asks bool
	// Lacks says for which resource it waits, and Beyond that it has one of which there are
	// not enough.
	Lacks  string
	Beyond []Resource
}

// Work is a result that somebody brought.
type Work struct {
	ID   ID
	User User
	Result
	// Counts: the item ended with it. Why says why not; empty: nobody has judged it yet.
	Counts bool
	Why    string
}

// View is how an item stands; false: it is not known here.
func (b *Board) View(i Item) (View, bool) {
	it := b.items[i]
	if it == nil || !it.placed {
		return View{}, false
	}
	e := it.end()
	v := View{
		Item: i, State: b.stateOf(it), Partner: it.Holder, Role: it.roleNow(),
		All: it.all, To: slices.Sorted(maps.Keys(it.to)),
		Due: it.deadline(), Since: it.Since, End: e, Rounds: it.rounds, Task: it.Task, Asks: b.asks(it),
	}
	switch h := it.open; {
	case e != nil && e.work != nil:
		v.Holder = e.work.fact.User
	case h != nil && h.Mode == Handed:
		v.Handed, v.Grant = h.User, h.leased
	case h != nil:
		v.Holder, v.Begun, v.Grant = h.User, h.Begun, h.leased
	}
	for _, w := range it.works {
		counts, why := b.judge(it, w)
		v.Works = append(v.Works, Work{w.fact.ID, w.fact.User, w.Result, counts, why})
	}
	if b.needs(it) && !b.reserved(it) {
		v.Lacks = Lacking(b.lacks(it))
	}
	b.countUnits()
	for _, r := range it.Task.Holds {
		if s := b.stores[r]; s != nil && s.beyond[it] {
			v.Beyond = append(v.Beyond, r)
		}
	}
	return v, true
}

// Items are all items that are known, in one order.
func (b *Board) Items() (out []Item) {
	for _, it := range b.inOrder() {
		if it.placed {
			out = append(out, it.Item)
		}
	}
	return out
}

func (b *Board) stateOf(it *item) State {
	switch h := it.open; {
	case it.end() != nil && it.InCharge:
		return IsDone
	case it.Over || !it.InCharge:
		return IsOver
	case h != nil && h.Mode == Lock:
		return Locked
	case h != nil && h.Mode == Select:
		return Selected
	case b.waits(it):
		return Open
	}
	return Waiting
}

// judge says whether a result counts, and why not.
func (b *Board) judge(it *item, w *work) (counts bool, why string) {
	e := it.end()
	switch h := w.hold; {
	case e != nil && e.work == w && (it.InCharge || it.failedBy(w.hold)): // what failed is done once more
		return true, ""
	case h == nil:
		return false, neverCounted
	case h.Ended != "" && h.Ended != "done": // what came first stays the reason, whatever came of the item
		return false, h.Ended
	case !it.InCharge:
		return false, it.whyGone()
	case w.void() != "":
		return false, w.void()
	case e != nil && e.work != nil && e.work.hold == h:
		return false, "the same user had ended the item before"
	case e != nil:
		return false, "the item ended otherwise"
	case h.Ended == "done":
		return false, "the task was done once more"
	case it.Over:
		return false, cmp.Or(it.Why, "the task is over")
	case !it.Ready && it.Why != "":
		return false, it.Why
	}
	if b.unfounded(w.Result, map[*work]bool{}) {
		return false, "it was made from a result that does not count"
	}
	return false, ""
}

// failedBy reports whether an item ended as whoever had it by a hold said that it failed, as its holder then did: that
// counted, whatever came after it.
func (it *item) failedBy(h *Hold) bool {
	e := it.end()
	return it.GivenUp && e != nil && e.work != nil && e.work.hold == h && e.work.Failed
}

// whyGone is why another attempt is in charge.
func (it *item) whyGone() string { return cmp.Or(it.Why, "the task was given to another partner") }

// asks reports whether the responsible user has still to decide about a failure.
func (b *Board) asks(it *item) bool {
	if !it.InCharge || !it.Unhandled {
		return false
	}
	e, by := it.end(), it.Failure
	if e != nil {
		by = e.By
	}
	return !slices.ContainsFunc(it.orders, func(o *Fact) bool {
		return by.IsZero() || e != nil && o.ID == e.Order || b.knew(o.ID, by)
	})
}

// Answered reports whether somebody who may has decided about the failure of an item.
func (b *Board) Answered(i Item) bool {
	it := b.items[i]
	return it != nil && it.Unhandled && !b.asks(it)
}

// Stopped is the order by which an item was closed as failed; false: it was not.
func (b *Board) Stopped(i Item) (Order, bool) {
	it := b.items[i]
	if it == nil {
		return Order{}, false
	}
	e := it.end()
	if e == nil || e.Order.IsZero() {
		return Order{}, false
	}
	o, is := b.facts[e.Order].Body.(Order)
	return o, is
}

// Loss tells somebody who had an item that it is no longer theirs, and what is kept of the work.
type Loss struct {
	Item  Item
	User  User
	Why   string
	By    ID // the fact that ended the hold; zero: another attempt has the task, or did it, or it is over
	Works []ID
	// Whose word it was, if a person's; At is when, by its author's clock; the zero time where By is.
	Whose User
	At    time.Time
	// Over: the item is over, or not needed any more; else it was taken from the user.
	Over bool
}

// Passed reports whether somebody else passed the item on, or put it back, by hand, or it passed as its deadline was
// near.
func (l Loss) Passed() bool {
	return l.Why == string(ByDeadline) || l.Whose != "" && l.Whose != l.User && passedOn(l.Why)
}

// wasStopped is why somebody lost an item of which it was ordered that it be stopped.
const wasStopped = "the task was stopped"

// Losses are what a user has to be told: holds that others ended.
func (b *Board) Losses(u User) (out []Loss) {
	for _, it := range b.inOrder() {
		for _, h := range it.holds {
			b.steps++
			if l, lost := it.loss(h); lost && h.User == u {
				out = append(out, l)
			}
		}
	}
	return out
}

// Unneeded are the losses of all users of items whose attempts are not needed any more, or ended while the user had the
// item, as with their instance, or which somebody else passed on: each user's last of each item.
func (b *Board) Unneeded() (out []Loss) {
	for _, it := range b.inOrder() {
		told := map[User]bool{}
		for _, h := range slices.Backward(it.holds) {
			b.steps++
			if h.Mode == Handed || told[h.User] {
				continue
			}
			told[h.User] = true
			if l, lost := it.loss(h); lost && (l.Over && it.placed || l.Passed()) {
				out = append(out, l)
			}
		}
	}
	return out
}

// loss says what a hold's user lost, unless it gave the item back, has done it, or had
// nothing but the choice to take it.
func (it *item) loss(h *Hold) (l Loss, lost bool) {
	l = Loss{Item: it.Item, User: h.User, Why: h.Ended, By: h.By}
	switch {
	case h.Mode == Handed || h.self || it.failedBy(h):
		return l, false
	case h.Ended != "" && h.Ended != "done": // what came first stays the reason, whatever came of the item
	case it.placed && !it.InCharge:
		l.Why, l.By = it.whyGone(), ID{}
	case it.endedOtherwise(h):
		l.Why = "another end stands"
	case it.placed && it.Over && h == it.open: // it ended, and nobody took it from its user before
		l.Why = cmp.Or(it.Why, "the task is over")
	default:
		return l, false
	}
	switch l.Over = l.By.IsZero(); {
	case it.stopped(h):
		l.Why, l.Over = wasStopped, true
	case it.adoptedFrom(h):
		l.Over = true
	}
	for _, w := range it.works {
		if w.hold == h {
			l.Works = append(l.Works, w.fact.ID)
		}
	}
	for _, f := range it.facts {
		if f.ID == l.By {
			l.Whose, l.At = f.User, f.At
		}
	}
	return l, true
}

// stopped reports whether a hold ended as its item was stopped by an order.
func (it *item) stopped(h *Hold) bool {
	e := it.end()
	return e != nil && !e.Order.IsZero() && h.By == e.By
}

// adoptedFrom reports whether a hold ended as another's result of its item was adopted.
func (it *item) adoptedFrom(h *Hold) bool {
	e := it.end()
	return e != nil && e.Adopted && h.By == e.By
}

// Remark is what somebody said who gave an item back, or passed it on.
type Remark struct {
	User   User
	Reason string
	At     time.Time // by the clock of the partner that wrote it down
	Passed bool      // it was passed on
}

// Remark is what was said last by whoever gave an item back, or passed it on; false: nothing was, or without a reason.
func (b *Board) Remark(i Item) (r Remark, said bool) {
	it := b.items[i]
	if it == nil {
		return r, false
	}
	for _, f := range slices.Backward(it.facts) {
		b.steps++
		if it.refused[f.ID] != "" {
			continue
		}
		switch x := f.Body.(type) {
		case Release:
			return Remark{f.User, x.Reason, f.At, false}, x.Reason != ""
		case Transfer:
			return Remark{f.User, x.Reason, f.At, true}, x.Reason != ""
		}
	}
	return r, false
}

// PassedOn is when an item was passed on last, by the clock of the partner that wrote it down; zero: it never was.
func (b *Board) PassedOn(i Item) (at time.Time) {
	it := b.items[i]
	if it == nil {
		return at
	}
	for _, f := range slices.Backward(it.facts) {
		b.steps++
		if _, passes := f.Body.(Transfer); passes && it.refused[f.ID] == "" {
			return f.At
		}
	}
	return at
}

// endedOtherwise reports whether a hold's result was taken, and another end stands.
func (it *item) endedOtherwise(h *Hold) bool {
	return slices.ContainsFunc(it.ends, func(e *End) bool { return e.work != nil && e.work.hold == h }) &&
		(it.end().work == nil || it.end().work.hold != h)
}

// Refused are facts that changed nothing, with the reason: for people, and for an audit.
func (b *Board) Refused() map[ID]string {
	out := maps.Clone(b.refused)
	for _, it := range b.items {
		for id, why := range it.refused {
			out[id] = why
		}
	}
	return out
}
