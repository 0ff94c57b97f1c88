package worklist

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is about work ahead: who has an item that is not ready yet together with what it waits for may do both
// out of reach, one after the other (rules 5 and 9). The result of the later names those that it was made from, by
// the words that its user said. It is put off until they have counted; if one of them does not, it does not either.

// tookAsKnown reports whether the author of a fact knew that a result was taken, or adopted.
func (b *Board) tookAsKnown(of Basis, by *Fact) bool {
	return slices.ContainsFunc(b.words[of.Word], func(r *Fact) bool {
		return r.Body.(Result).Item == of.Item &&
			slices.ContainsFunc(b.takers[r.ID], func(t *Fact) bool { return b.knew(by.ID, t.ID) })
	})
}

// founded reports whether all count that a result was made from.
func (b *Board) founded(r Result) bool {
	return !slices.ContainsFunc(r.Upon, func(of Basis) bool { return !b.counts(of) })
}

// counts reports whether an item ended with the result that a word brought, and its attempt is in charge.
func (b *Board) counts(of Basis) bool {
	it := b.items[of.Item]
	if it == nil || !it.InCharge {
		return false
	}
	e := it.end()
	return e != nil && e.work != nil && !e.Failed && e.work.fact.word() == of.Word
}

// EndedBy is the word that brought the result with which an item ended well; false: it did not, or not by a person's.
func (b *Board) EndedBy(i Item) (word ID, is bool) {
	it := b.items[i]
	if it == nil {
		return ID{}, false
	}
	e := it.end()
	if e == nil || e.work == nil || e.Failed {
		return ID{}, false
	}
	return e.work.fact.word(), true
}

// unfounded reports whether one of those that a result was made from does not count, and will not by itself. Seen says
// so of those that were looked at: several may have been made from one.
func (b *Board) unfounded(r Result, seen map[*work]bool) bool {
	return slices.ContainsFunc(r.Upon, func(of Basis) bool { return b.failed(of, seen) })
}

func (b *Board) failed(of Basis, seen map[*work]bool) bool {
	it := b.items[of.Item]
	if it == nil || b.counts(of) {
		return false
	}
	mayCount, brought := false, false
	for _, w := range it.works {
		if w.fact.word() != of.Word {
			continue
		}
		b.steps++
		brought = true
		lost, known := seen[w]
		if !known {
			seen[w] = true // while it is looked at: what was made from itself never counts
			lost = w.Failed || w.hold == nil || w.void() != "" || w.hold.Ended != "" || b.unfounded(w.Result, seen)
			seen[w] = lost
		}
		mayCount = mayCount || !lost
	}
	over := it.end() != nil || it.placed && (!it.InCharge || it.Over)
	return over || brought && !mayCount
}

// putOff reports whether a result waits for those that it was made from, or for its item to be ready.
func (b *Board) putOff(it *item, w *work) bool {
	if w.hold == nil || w.hold != it.open || w.void() != "" || len(w.Upon) == 0 || b.Takes(w.Result) {
		return false
	}
	counts, why := b.judge(it, w)
	return !counts && why == ""
}

// Waits reports whether the result that a word brought waits for what it was made from.
func (b *Board) Waits(i Item, word ID) bool {
	it := b.items[i]
	return it != nil && slices.ContainsFunc(it.works, func(w *work) bool { return w.fact.word() == word && b.putOff(it, w) })
}

// PutOff reports whether a user brought a result of an item that waits for what it was made from.
func (b *Board) PutOff(i Item, u User) bool {
	it := b.items[i]
	return it != nil && slices.ContainsFunc(it.works, func(w *work) bool { return w.fact.User == u && b.putOff(it, w) })
}

// Unnamed are the tasks that an item still waits for and of which a result names none that it was made from; of an item
// that its user has.
func (b *Board) Unnamed(r Result) (out []workflow.TaskName) {
	it := b.items[r.Item]
	if it == nil || it.Ready || it.open == nil || !it.open.has(r.Grant) {
		return nil
	}
	for _, t := range it.Waits {
		if !slices.ContainsFunc(r.Upon, func(of Basis) bool { return of.Item.Slot == t }) {
			out = append(out, t)
		}
	}
	return out
}

// MayWait reports whether a result would be put off until those have counted that it was made from, and then end
// its item, if nothing else comes before.
func (b *Board) MayWait(r Result) bool {
	it := b.items[r.Item]
	return it != nil && it.placed && it.InCharge && !it.Over && it.end() == nil && len(r.Upon) > 0 &&
		it.open != nil && it.open.Mode != Handed && it.open.has(r.Grant) &&
		(it.Ready || len(it.Waits) > 0) && len(b.Unnamed(r)) == 0 && !b.unfounded(r, map[*work]bool{})
}

// HeldBy are the items that a user has, or that are kept for that one, in one order.
func (b *Board) HeldBy(u User) (out []Item) {
	for i, it := range b.items {
		if b.steps++; it.open != nil && it.open.User == u {
			out = append(out, i)
		}
	}
	slices.SortFunc(out, Item.Compare)
	return out
}
