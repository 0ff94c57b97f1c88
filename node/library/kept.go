package library

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Keep makes the definition of an instance durable, without listing it. The instance
// is in the index already, so that what is kept for it is not swept away.
func (d *Definitions) Keep(e *Definition) error {
	d.changing.Lock()
	defer d.changing.Unlock()
	l := d.listing(e.Hash)
	switch {
	case l == nil:
		l = newListing(e)
	case !l.bare:
		return nil
	}
	return d.put(change{l, e, nil})
}

// RoomBeside reports whether there is room for a definition that nobody may list,
// beside those of the instances that its bringer began, and of those that all others did.
// Both are in brings: by member, how many instances there are of each definition. There
// may be as many as may be listed, and as many bytes as four members'. One that
// administers may fill all of it. What a member lists takes that member's room.
func (d *Definitions) RoomBeside(
	e *Definition, by workflow.PartnerID, administers bool, brings map[workflow.PartnerID]map[workflow.Hash]int,
) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if l := d.entries[e.Hash]; by == d.self || l != nil && l.isListed() {
		return true
	}
	size := len(e.canonical())
	all, its := load{1, size}, load{1, size}
	add := func(to *load, of map[workflow.Hash]int) {
		for h := range of {
			if l := d.entries[h]; h != e.Hash && l != nil && !l.isListed() {
				to.n, to.bytes = to.n+1, to.bytes+l.size
			}
		}
	}
	if add(&its, brings[by]); !administers && (its.n > d.room.One || its.bytes > maxAuthorBytes) {
		return false
	}
	for p, of := range brings {
		if p != d.self {
			add(&all, of)
		}
	}
	return all.n <= d.room.All && all.bytes <= d.room.Shares*maxAuthorBytes
}

// isListed reports whether anybody lists a definition.
func (l *listing) isListed() bool {
	for _, c := range l.claims {
		if c.listed() {
			return true
		}
	}
	return false
}

// Sweep deletes the definitions that nobody lists and no instance uses. The uses are
// asked for when no other can be kept; nil: it is not known what is used.
func (d *Definitions) Sweep(uses func() func(workflow.Hash) bool) error {
	for {
		d.changing.Lock()
		more, err := d.sweepSome(uses)
		d.changing.Unlock()
		if !more || err != nil {
			return err
		}
	}
}

// sweepSome deletes as many definitions as one commit takes, and reports whether there
// are more. The caller holds d.changing.
func (d *Definitions) sweepSome(uses func() func(workflow.Hash) bool) (more bool, err error) {
	var idle, swept []*listing
	d.mu.Lock()
	for _, l := range d.entries {
		if !l.isListed() && (!l.bare || len(l.claims) == 0) {
			idle = append(idle, l)
		}
	}
	d.mu.Unlock()
	if len(idle) == 0 {
		return false, nil
	}
	used := uses()
	if used == nil {
		return false, nil
	}
	var writes []kv.Write
	for _, l := range idle {
		if used(l.hash) {
			continue
		}
		end := kv.Write{Key: listingKey(l.hash), Delete: true}
		if len(l.claims) > 0 {
			end = l.asBare().write()
		}
		next := append(writes, end, kv.Write{Key: definitionKey(l.hash), Delete: true})
		if more = !kv.Fits(next); more {
			break
		}
		writes, swept = next, append(swept, l)
	}
	if len(writes) == 0 {
		return false, nil
	}
	if err := d.store.CommitWait(writes); err != nil {
		return false, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range swept {
		if d.leave(l); len(l.claims) > 0 {
			d.enter(l.asBare())
		}
	}
	return more, nil
}

// asBare is a listing of which only the notices are kept.
func (l *listing) asBare() *listing {
	return &listing{hash: l.hash, bare: true, size: l.size, about: l.about, claims: l.claims}
}

// forget unlearns the oldest removals if there are more than are worth remembering:
// a partner that was away for all that time may bring one back. All others fill as
// much as the node's limit, one member, unless it administers, a share of it, and
// this node's user as much besides.
func (d *Definitions) forget() error {
	type old struct {
		l *listing
		c *claim
	}
	var removed []old
	d.mu.Lock()
	clear(d.away) // there may be room for them now
	for _, l := range d.entries {
		for _, c := range l.claims {
			if !c.listed() {
				removed = append(removed, old{l, c})
			}
		}
	}
	slices.SortFunc(removed, func(a, b old) int { return b.c.edited.Compare(a.c.edited) }) // the newest first
	var others int
	of := map[workflow.PartnerID]load{}
	removed = slices.DeleteFunc(removed, func(x old) bool { // those that are remembered
		its, bytes := of[x.c.author], 0
		for _, n := range x.c.notices {
			bytes += len(n)
		}
		its = load{its.n + 1, its.bytes + bytes}
		switch {
		case x.c.author == d.self && its.n > d.room.All, x.c.author != d.self && others == d.room.All:
			return false
		case x.c.author != d.self && !d.administers(x.c.first) && (its.n > d.room.One || its.bytes > maxRemovedBytes):
			return false
		case x.c.author != d.self:
			others++
		}
		of[x.c.author] = its
		return true
	})
	d.mu.Unlock()
	for _, x := range removed {
		if err := d.put(change{d.listing(x.l.hash), nil, &claim{author: x.c.author}}); err != nil {
			return err
		}
	}
	return nil
}
