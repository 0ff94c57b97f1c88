package worklist

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Standing is who has an item, and by what.
type Standing struct {
	User  User
	Grant ID // the last that the user was given
	Mode  Mode
	// Word is by which word of a person it was given (Fact.Word). Joint: together with items of other holders, so
	// that the device which asked for it may give it back by itself.
	Word  ID
	Joint bool
	// From is the partner at whose node that word was signed; empty: it is nobody's.
	From workflow.PartnerID
	// By is who handed it to User, where it is kept for that one to take. Until is when its lease is over, by the holder's
	// clock as it was when it gave the item; zero: it has none.
	By    User
	Until time.Time
	// Ends is when its lease is over (Boot), as far as this device has heard of the grant; 0: it has none.
	Ends time.Duration
}

// Holds is who has an item now; false: nobody.
func (b *Board) Holds(i Item) (Standing, bool) {
	it := b.items[i]
	if it == nil || it.open == nil {
		return Standing{}, false
	}
	s := Standing{
		User: it.open.User, Grant: it.open.leased, Mode: it.open.Mode, Word: b.heldBy(it), Joint: len(it.open.lease.With) > 0,
	}
	f, lease := b.facts[it.open.leased], it.open.lease.Lease
	if f != nil {
		s.From = f.From
	}
	if f != nil && s.Mode == Handed {
		s.By = f.User
	}
	if f != nil && lease > 0 {
		s.Until = f.At.Add(lease)
	}
	if lease > 0 {
		s.Ends = b.heard[it.open.leased] + lease
	}
	return s, true
}

// HeldUntil is till when whoever has an item has it, as things are at a moment: until its lease is over (Standing.Until),
// or for a lock as long as its user is away as announced, and then for the hour in which to hand in what was done
// (deciding.ending). Known tells what the node knows of that user. Zero: for as long as it takes.
func (b *Board) HeldUntil(i Item, known func(User) (Person, bool), now Moment) time.Time {
	s, held := b.Holds(i)
	if !held || s.Mode != Lock || s.Until.IsZero() {
		return s.Until
	}
	h, until := b.items[i].open, s.Until
	if p, is := known(s.User); is && p.Back > now.Boot {
		return later(until, earlier(now.Wall.Add(p.Back-now.Boot), until.Add(MostAway)))
	}
	if h.away <= now.Boot {
		return until
	}
	away := now.Wall.Add(h.away - now.Boot)
	if !h.back { // that is noticed once the lease is over
		away = earlier(away, later(until, now.Wall).Add(backPatience))
	}
	return later(until, away)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Lease is how long the lease lasts by which somebody has an item now that was given by a fact; false: nobody has one by
// it any more.
func (b *Board) Lease(given ID) (lasts time.Duration, runs bool) {
	f := b.facts[given]
	if f == nil {
		return 0, false
	}
	for _, i := range f.Body.about() {
		if it := b.items[i]; it != nil && !it.Over && it.open != nil && it.open.leased == given && it.open.lease.Lease > 0 {
			return it.open.lease.Lease, true
		}
	}
	return 0, false
}

// TakenAt is when whoever has an item took it, or took it last whose result or hold it ended with: by the clock
// of the holder that granted it. The zero time: nobody, or it was only kept for somebody.
func (b *Board) TakenAt(i Item) time.Time {
	it := b.items[i]
	if it == nil {
		return time.Time{}
	}
	h := it.open
	if e := it.end(); e != nil && e.work != nil {
		h = e.work.hold
	} else if e != nil {
		if at := slices.IndexFunc(it.holds, func(h *Hold) bool { return h.By == e.By }); at >= 0 {
			h = it.holds[at]
		}
	}
	if h == nil {
		return time.Time{}
	}
	for _, g := range h.Grants {
		if f := b.facts[g]; f != nil {
			if _, took := f.Body.(Grant); took {
				return f.At
			}
		}
	}
	return time.Time{}
}

// Role is the role for which an item is now; empty: for people at its holder.
func (b *Board) Role(i Item) workflow.RoleName {
	if it := b.items[i]; it != nil {
		return it.roleNow()
	}
	return ""
}

// Given is to whom a grant gave an item, whatever became of it, and whether it is part of what
// the user still has; false: the item was never granted by that fact.
func (b *Board) Given(i Item, grant ID) (to User, open, ever bool) {
	it, f := b.items[i], b.facts[grant]
	if it == nil || f == nil || f.grantee() == "" || !slices.Contains(f.Body.about(), i) {
		return "", false, false
	}
	return f.grantee(), it.open != nil && it.open.has(grant), true
}

// Had are the items that a user ever took, each with the last grant, and those of them that the user
// lost at last. What was adopted of a user is not lost: the user did it after all.
func (b *Board) Had(u User) (had map[Item]ID, lost map[Item]*Loss) {
	had, lost = map[Item]ID{}, map[Item]*Loss{}
	for _, it := range b.items {
		b.steps++
		for _, h := range slices.Backward(it.holds) {
			if h.User != u || h.Mode == Handed {
				continue
			}
			had[it.Item] = h.leased
			if l, is := it.loss(h); is && !it.adopts(u) {
				lost[it.Item] = &l
			}
			break
		}
	}
	return had, lost
}

// Grants are those by which a user ever got an item, the newest first, at most so many: also those that do not count.
func (b *Board) Grants(i Item, u User, most int) (out []ID) {
	it := b.items[i]
	if it == nil {
		return nil
	}
	for _, f := range slices.Backward(it.facts) {
		b.steps++
		if f.grantee() == u && len(out) < most {
			out = append(out, f.ID)
		}
	}
	return out
}

// adopts reports whether an item ended with a result of a user that was adopted.
func (it *item) adopts(u User) bool {
	e := it.end()
	return e != nil && e.Adopted && e.work.fact.User == u && it.InCharge
}

// Took reports whether a user has, or had, some item.
func (b *Board) Took(u User) bool {
	for _, it := range b.items {
		b.steps++
		if slices.ContainsFunc(it.holds, func(h *Hold) bool { return h.User == u && h.Mode != Handed }) {
			return true
		}
	}
	return false
}

// Knows reports whether anything was said of an item.
func (b *Board) Knows(i Item) bool {
	it := b.items[i]
	return it != nil && len(it.facts) > 0
}

// Has reports whether the core has said how an item stands (Set).
func (b *Board) Has(i Item) bool {
	it := b.items[i]
	return it != nil && it.placed
}

// Judged reports whether the result that was written down from a word counts, and why not; empty: nobody has judged
// it yet.
func (b *Board) Judged(i Item, word ID) (counts bool, why string) {
	it := b.items[i]
	if it == nil {
		return false, ""
	}
	for _, w := range slices.Backward(it.works) {
		if w.fact.word() == word {
			return b.judge(it, w)
		}
	}
	return false, ""
}

// BroughtBy is the fact by which a result is kept that was written down from a word, if it may be adopted: no failure.
// Zero: there is none.
func (b *Board) BroughtBy(i Item, word ID) ID {
	it := b.items[i]
	if it == nil {
		return ID{}
	}
	for _, w := range slices.Backward(it.works) {
		if w.fact.word() == word && !w.Failed {
			return w.fact.ID
		}
	}
	return ID{}
}

// Late is the word from which a result was written down that says the same under the same grant, and that did not end
// its item; false: there is none.
func (b *Board) Late(x Result, u User) (word ID, is bool) {
	it := b.items[x.Item]
	if it == nil {
		return ID{}, false
	}
	e, h := it.end(), it.holdOf(x.Grant)
	for _, w := range it.works {
		if h != nil && w.hold == h && w.fact.User == u && w.saysSo(x) && (e == nil || e.work != w) {
			return w.fact.word(), true
		}
	}
	return ID{}, false
}

// Did reports whether a result of a user ended its item, or is about to, that says the same under the same grant.
func (b *Board) Did(x Result, u User) bool {
	it := b.items[x.Item]
	if it == nil {
		return false
	}
	h := it.holdOf(x.Grant)
	if h == nil || h.User != u {
		return false
	}
	if e := it.end(); e != nil {
		return e.work != nil && e.work.hold == h && e.work.saysSo(x) && it.InCharge
	}
	return slices.ContainsFunc(it.works, func(w *work) bool {
		return w.hold == h && w.void() == "" && w.saysSo(x) && (b.Takes(w.Result) || b.putOff(it, w))
	})
}

// saysSo reports whether a result says the same: else it is no retry, and would be lost.
func (w *work) saysSo(x Result) bool {
	return w.Failed == x.Failed && w.Reason == x.Reason && maps.EqualFunc(w.Outputs, x.Outputs, reflect.DeepEqual)
}

// Takes reports whether the holder closes an item with a result, if nothing else comes before.
func (b *Board) Takes(r Result) bool {
	it := b.items[r.Item]
	return it != nil && it.placed && it.InCharge && it.Ready && !it.Over && it.end() == nil &&
		it.open != nil && it.open.Mode != Handed && it.open.has(r.Grant) && b.founded(r)
}

// OnlyHanded reports whether a grant did nothing but keep an item for somebody who has not taken it.
func (b *Board) OnlyHanded(i Item, grant ID) bool {
	it := b.items[i]
	if it == nil {
		return false
	}
	h := it.holdOf(grant)
	return h != nil && h.Mode == Handed
}

// Granted is how many grants a user asked for and got of an item.
func (b *Board) Granted(i Item, u User) (n int) {
	if it := b.items[i]; it != nil {
		for _, h := range it.holds {
			if h.User == u {
				for _, g := range h.Grants {
					if _, asked := b.facts[g].Body.(Grant); asked {
						n++
					}
				}
			}
		}
	}
	return n
}

// Brought is how many results a user has brought of an item that did not end it.
func (b *Board) Brought(i Item, u User) (n int) {
	if it := b.items[i]; it != nil {
		for _, w := range it.works {
			if e := it.end(); w.fact.User == u && (e == nil || e.work != w) {
				n++
			}
		}
	}
	return n
}

// Taken is the result with which an item ended, and who brought it; false: it did not end so.
func (b *Board) Taken(i Item) (Result, User, bool) {
	it := b.items[i]
	if it == nil {
		return Result{}, "", false
	}
	e := it.end()
	if e == nil || e.work == nil {
		return Result{}, "", false
	}
	return e.work.Result, e.work.fact.User, true
}

// About are the facts about an item, in their one order, with why one changes nothing.
func (b *Board) About(i Item, each func(f *Fact, why string)) {
	if it := b.items[i]; it != nil {
		for _, f := range it.facts {
			each(f, it.refused[f.ID])
		}
	}
}

// Lines are what follows from the facts alone, one line for each thing, in one order: two
// boards with the same facts have the same lines.
func (b *Board) Lines() (out []string) {
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if b.notify != nil {
		add("items are offered by %s by=%s", b.Policy(), b.notify.ID)
	}
	for _, s := range b.inParts {
		if len(s.Keepers) > 0 {
			add("resource %s kept by %s", s.Name, s.Keepers[0].Partner)
		}
		for _, of := range slices.SortedFunc(maps.Keys(s.first), given.compare) {
			add("unit of %s for %s %s by=%s", s.Name, of.item.Slot, of.item.Assigned, s.first[of].ID)
		}
	}
	for _, it := range b.inOrder() {
		if len(it.facts) == 0 {
			continue
		}
		add("item %s %s of %s", it.Item.Slot, it.Item.Assigned, it.Holder)
		if it.role != "" && it.role != it.Task.Role {
			add("  passed to role %s", it.role)
		}
		if it.due != nil {
			add("  due after=%s at=%d", it.due.After, it.due.number())
		}
		if !it.offer.IsZero() {
			add("  offered under=%s first=%s all=%t to=%s", it.under, it.offer, it.all, slices.Sorted(maps.Keys(it.to)))
		}
		for _, h := range it.holds {
			add("  hold %s %s %s begun=%t open=%t ended=%q by=%s lost=%t", h.User, h.Mode, names(h.Grants), h.Begun,
				h == it.open, h.Ended, h.By, h.Lost)
		}
		for _, w := range it.works {
			add("  result %s of %s grant=%s failed=%t", w.fact.ID, w.fact.User, w.Grant, w.Failed)
		}
		for _, e := range it.ends {
			add("  end %s failed=%t adopted=%t order=%s", e.By, e.Failed, e.Adopted, e.Order)
		}
		for _, f := range it.facts {
			if why := it.refused[f.ID]; why != "" {
				add("  refused %s: %s", f.ID, why)
			}
		}
	}
	return out
}

func names(ids []ID) string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = id.String()
	}
	return strings.Join(out, ",")
}
