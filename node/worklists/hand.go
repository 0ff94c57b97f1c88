package worklists

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/codec"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
	"github.com/mutirao-mesh/mutirao/worklist/own"
)

// This file keeps how users ordered their lists by hand (worklist.Hand).

// PrefixSpot begins the keys of moves: the user's whole ID and the item's follow.
const PrefixSpot = 'h'

// spot is a move as it is stored.
type spot struct {
	_        struct{} `cbor:",toarray"`
	Instance workflow.InstanceID
	Assigned [32]byte
	Slot     string
	Row      int64
	Part     string
	Count    uint64
	By       string
}

// DecodesSpot returns an error for what cannot be read of the store.
func DecodesSpot(b []byte) error {
	var s spot
	return codec.Decode(b, &s)
}

func spotOf(s worklist.Spot) spot {
	return spot{
		Instance: s.Instance, Assigned: s.Item.Assigned, Slot: string(s.Item.Slot), Row: s.Row, Part: s.Part,
		Count: s.Count, By: string(s.By),
	}
}

func (s spot) spot() worklist.Spot {
	return worklist.Spot{
		Instance: s.Instance, Item: worklist.Item{Assigned: s.Assigned, Slot: workflow.TaskName(s.Slot)},
		Row: s.Row, Part: s.Part, Count: s.Count, By: workflow.PartnerID(s.By),
	}
}

func spotKey(user string, s worklist.Spot) []byte {
	return fmt.Appendf([]byte{PrefixSpot}, "%s %s", user, ItemID(s.Instance, s.Item))
}

// loadHands reads the moves of all users.
func (d *Desk) loadHands() error {
	return d.in.Store.Scan([]byte{PrefixSpot}, func(key, value []byte) error {
		var s spot
		if err := codec.Decode(value, &s); err != nil {
			return err
		}
		user, _, _ := bytes.Cut(key[1:], []byte(" "))
		d.handOf(string(user)).Merge(s.spot())
		return nil
	})
}

// handOf is the order of a user. The caller holds d.mu, but for New.
func (d *Desk) handOf(user string) *worklist.Hand {
	h := d.hands[user]
	if h == nil {
		h = worklist.NewHand()
		d.hands[user] = h
	}
	return h
}

// sortedByHand are rows in a user's own order.
func (d *Desk) sortedByHand(who users.Who, rows []Row) []*Row {
	d.mu.Lock()
	defer d.mu.Unlock()
	return byHand(d.handOf(who.ID), pointers(rows))
}

func byHand(h *worklist.Hand, rows []*Row) []*Row {
	entries := make([]worklist.Entry, len(rows))
	for i, r := range rows {
		entries[i] = r.entry()
	}
	out := make([]*Row, len(rows))
	for i, at := range h.Order(entries) {
		out[i] = rows[at]
	}
	return out
}

// entry is a row as an order by hand sees it.
func (r *Row) entry() worklist.Entry {
	return worklist.Entry{Instance: r.Instance, Item: r.Item, Arrived: r.Since}
}

// Move puts an item elsewhere in a user's list as it is ordered by hand. It returns when that is durable.
func (d *Desk) Move(ctx context.Context, in api.MoveRequest) ([]api.Item, error) {
	ways := 0
	for _, given := range []bool{in.Before != "", in.Top, in.Bottom} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		return nil, api.Errorf(api.Invalid, "where to: want one of before an item, to the top, or to the bottom")
	}
	who, err := d.in.People.Who(in.User)
	if err != nil {
		return nil, err
	}
	rows, silent, err := d.rows(ctx, who, listPatience)
	if err != nil {
		return nil, err
	}
	if rows, err = d.offered(ctx, rows, silent); err != nil {
		return nil, err
	}
	moved, err := d.find(rows, in.Item)
	if err != nil {
		return nil, d.notFound(err, in.Item, silent)
	}
	before := ""
	if in.Before != "" {
		b, err := d.find(rows, in.Before)
		if err != nil {
			return nil, d.notFound(err, in.Before, silent)
		}
		before = b.ID()
	}
	if before == moved.ID() {
		return nil, api.Errorf(api.Invalid, "%s cannot be moved before itself", moved.called())
	}
	ordered, err := d.move(who, rows, moved, before, in.Top)
	if err != nil {
		return nil, err
	}
	d.in.Nudge()
	return d.items(who, d.lessDoneOf(ctx, who, ordered)), nil
}

// move puts a row before another, or to the top or the bottom, durably, and returns the rows as they are ordered then.
func (d *Desk) move(who users.Who, rows []Row, moved *Row, before string, top bool) ([]*Row, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	was := d.handOf(who.ID)
	next := was.Clone() // it counts when it is durable
	ordered := byHand(was, pointers(rows))
	rest := slices.DeleteFunc(slices.Clone(ordered), func(r *Row) bool { return r.ID() == moved.ID() })
	at := len(rest)
	if top {
		at = 0
	} else if before != "" {
		at = slices.IndexFunc(rest, func(r *Row) bool { return r.ID() == before })
	}
	var above, below *worklist.Entry
	if at > 0 {
		e := rest[at-1].entry()
		above = &e
	}
	if at < len(rest) {
		e := rest[at].entry()
		below = &e
	}
	e := moved.entry()
	s := next.Move(&e, above, below, d.in.Self)
	writes := []kv.Write{{Key: spotKey(who.ID, s), Value: codec.Encode(spotOf(s))}}
	for _, oldest := range next.Trim(own.MaxSpots) {
		writes = append(writes, kv.Write{Key: spotKey(who.ID, oldest), Delete: true})
	}
	if err := d.in.Store.CommitWait(writes); err != nil {
		return nil, err
	}
	d.hands[who.ID] = next
	d.follow.changed(who.ID)
	return byHand(next, ordered), nil // one of many is elsewhere, so they are sorted soon
}
