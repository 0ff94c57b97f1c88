package worklists

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file remembers what partners said last of the items of users here: for while they cannot be
// asked, and so that not everybody is asked for each command. After a restart nothing of it is known, but for
// what was taken from here (taken.go), as it was then.

const (
	// freshFor is for how long an answer does for taking an item: its holder decides anyway.
	freshFor = 5 * time.Second
	// shownFor is for how long the answer of a partner is shown that cannot be asked.
	shownFor = 7 * 24 * time.Hour
	// maxHeard and maxGone bound the items that are remembered of one partner for one user, and
	// those of them that it does not list any more.
	maxHeard = 200
	maxGone  = 100
)

// heard is what a partner said last of its items, for one user.
type heard struct {
	awake time.Duration // when
	wall  time.Time
	rows  []Row // that it listed
	gone  []Row // that it listed before, the last that went first
}

// holderFor is the partner of which a user has an item, as this device keeps it or saw it taken; "": neither. An
// item has one holder for good, so what another says of it does not count. The caller holds d.mu.
func (d *Desk) holderFor(user, item string) workflow.PartnerID {
	if k := d.kept[string(Prefix)+user+" "+item]; k != nil {
		return workflow.PartnerID(k.At)
	}
	return d.taken[user][item]
}

// counting leaves of what a partner says what it may say. The caller holds d.mu.
func (d *Desk) counting(who users.Who, p workflow.PartnerID, rows []Row) []Row {
	if len(d.kept) == 0 && len(d.taken[who.ID]) == 0 {
		return rows
	}
	return slices.DeleteFunc(rows, func(r Row) bool {
		at := d.holderFor(who.ID, r.ID())
		return at != "" && at != p
	})
}

// remember keeps what a partner says now, of one instance or everywhere.
func (d *Desk) remember(who users.Who, p workflow.PartnerID, only workflow.InstanceID, rows []Row) {
	now := d.in.Clock.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.noteLosses(who.ID, p, rows)
	of := d.heard[who.ID]
	if of == nil {
		of = map[workflow.PartnerID]*heard{}
		d.heard[who.ID] = of
	}
	was := of[p]
	if was == nil {
		was = &heard{awake: now.Awake - freshFor, wall: now.Wall}
	}
	is := &heard{awake: now.Awake, wall: now.Wall}
	about := func(r *Row) bool { return only == everywhere || r.Instance == only }
	if only != everywhere {
		is.awake, is.wall = was.awake, was.wall
		is.rows = make([]Row, 0, len(was.rows)+len(rows))
		for i := range was.rows { // a row is large, and there may be a thousand
			if !about(&was.rows[i]) {
				is.rows = append(is.rows, was.rows[i])
			}
		}
	}
	listed := map[string]bool{}
	for i := range rows {
		listed[rows[i].ID()] = true
	}
	is.rows = append(is.rows, rows[:min(len(rows), max(maxHeard-len(is.rows), 0))]...)
	for _, before := range [][]Row{was.rows, was.gone} {
		for i := range before {
			r := &before[i]
			if about(r) && !listed[r.ID()] && now.Wall.Sub(r.AsOf) < shownFor && len(is.gone) < maxGone {
				listed[r.ID()] = true
				is.gone = append(is.gone, *r)
			}
		}
	}
	for i := range was.gone {
		if r := &was.gone[i]; !about(r) && len(is.gone) < maxGone {
			is.gone = append(is.gone, *r)
		}
	}
	of[p] = is
}

// remembered is an item by its whole ID, as the one partner that lists it said last; nil: it
// is to be looked for. What is known here otherwise decides who holds it.
func (d *Desk) remembered(ctx context.Context, who users.Who, ref string) *Row {
	if d.keptFor(who.ID, ref) != nil {
		return nil
	}
	var found []Row
	d.mu.Lock()
	only := d.holderFor(who.ID, ref)
	for p, is := range d.heard[who.ID] {
		i := slices.IndexFunc(is.rows, func(r Row) bool { return r.ID() == ref })
		if i >= 0 && (only == "" || only == p) {
			found = append(found, is.rows[i])
		}
	}
	d.mu.Unlock()
	if len(found) != 1 {
		return nil
	}
	r := &found[0]
	if r.At != d.in.Self && d.in.Instances.Here(r.Instance) {
		rows, err := d.in.Instances.Items(ctx, worklist.User(who.ID), d.in.Self, r.Instance)
		if err != nil || slices.ContainsFunc(rows, func(x Row) bool { return x.ID() == ref && x.At != r.At }) {
			return nil
		}
	}
	return r
}

// rememberGone keeps an item that a partner does not list any more.
func (d *Desk) rememberGone(who users.Who, r Row) {
	d.mu.Lock()
	defer d.mu.Unlock()
	is := d.heard[who.ID][r.At]
	if is == nil || slices.ContainsFunc(slices.Concat(is.rows, is.gone), func(x Row) bool { return x.ID() == r.ID() }) {
		return
	}
	is.gone = slices.Insert(is.gone, 0, r)
	is.gone = is.gone[:min(len(is.gone), maxGone)]
}

// unlist has an item be one that its holder lists no more: the user has ended it, or given it away, and the holder has
// written that down. What it said before is older, and would be shown while it cannot be asked. The caller holds d.mu.
func (d *Desk) unlist(user string, at workflow.PartnerID, item string) {
	is := d.heard[user][at]
	if is == nil {
		return
	}
	i := slices.IndexFunc(is.rows, func(r Row) bool { return r.ID() == item })
	if i < 0 {
		return
	}
	is.gone = slices.Insert(is.gone, 0, is.rows[i])
	is.gone = is.gone[:min(len(is.gone), maxGone)]
	is.rows = slices.Delete(slices.Clone(is.rows), i, i+1)
}

// heardOf is what is remembered for a user: what partners listed, by partner, and what they list no
// more.
func (d *Desk) heardOf(who users.Who) (listed map[workflow.PartnerID][]Row, gone []Row) {
	now := d.in.Clock.Now().Wall
	listed = map[workflow.PartnerID][]Row{}
	d.mu.Lock()
	defer d.mu.Unlock()
	for p, is := range d.heard[who.ID] {
		gone = append(gone, d.counting(who, p, slices.Clone(is.gone))...)
		if now.Sub(is.wall) < shownFor {
			listed[p] = d.counting(who, p, slices.Clone(is.rows))
		}
	}
	return listed, gone
}

// heardLately reports whether a partner said a moment ago what it has for a user.
func (d *Desk) heardLately(who users.Who, p workflow.PartnerID) bool {
	now := d.in.Clock.Now().Awake
	d.mu.Lock()
	defer d.mu.Unlock()
	is := d.heard[who.ID][p]
	return is != nil && now-is.awake < freshFor
}

// Unanswered are the partners that did not answer when a person's list was asked for last.
func (d *Desk) Unanswered(ref string) ([]string, error) {
	who, err := d.in.People.Who(ref)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	silent := slices.Clone(d.silent[who.ID])
	d.mu.Unlock()
	return d.names(silent), nil
}

// names are what people call partners.
func (d *Desk) names(of []workflow.PartnerID) []string {
	out := []string{}
	for _, p := range of {
		out = append(out, d.in.Name(p))
	}
	slices.Sort(out)
	return out
}

// own are the items of an instance that this node holds, for a person, as they are now.
func (d *Desk) own(ctx context.Context, who users.Who, of workflow.InstanceID) ([]Row, error) {
	rows, err := d.in.Instances.Items(ctx, worklist.User(who.ID), d.in.Self, of)
	if err != nil {
		return nil, err
	}
	rows = slices.DeleteFunc(rows, func(r Row) bool { return r.At != d.in.Self })
	d.remember(who, d.in.Self, of, rows)
	return rows, nil
}

// again asks the holder of an item how that is now. Where it does not answer, or does not
// list the item, known is what is known of it.
func (d *Desk) again(ctx context.Context, who users.Who, known *Row) (*Row, error) {
	var rows []Row
	var err error
	switch {
	case known.At == d.in.Self:
		if rows, err = d.own(ctx, who, known.Instance); err != nil {
			return nil, err
		}
	case d.in.Peers.Up(known.At):
		rows, err = d.askOne(ctx, who, known.At, known.Instance)
	}
	if err == nil {
		for i := range rows {
			if rows[i].ID() == known.ID() {
				return &rows[i], nil
			}
		}
	}
	return known, nil
}

// locate finds items by their IDs or beginnings of them: in what is known here, and of their
// holders where that is old or exact wants what is so now. All partners are asked only for what is
// not known.
func (d *Desk) locate(ctx context.Context, who users.Who, refs []string, exact bool) ([]*Row, error) {
	var known []Row
	var silent []workflow.PartnerID
	looked, asked, ahead := false, false, false
	out := []*Row{}
	for _, ref := range refs {
		var err error
		r := d.remembered(ctx, who, ref)
		if r == nil {
			if !looked {
				looked = true
				if known, err = d.known(ctx, who); err != nil {
					return nil, err
				}
			}
			if r, err = d.find(known, ref); err != nil && !asked {
				asked = true
				if known, silent, err = d.rows(ctx, who, listPatience); err != nil {
					return nil, err
				}
				r, err = d.find(known, ref)
			}
			if err != nil && !ahead { // what is not ready is asked for only then
				ahead = true
				if known, err = d.addAhead(ctx, who, known, d.askAhead(ctx, who, listPatience)); err != nil {
					return nil, err
				}
				r, err = d.find(known, ref)
			}
		}
		switch {
		case err != nil:
			if r = d.findGone(who, ref, err); r == nil {
				return nil, d.notFound(err, ref, silent)
			}
			if r, err = d.again(ctx, who, r); err != nil { // of an instance that has ended it says more when asked
				return nil, err
			}
		case asked:
		case exact || r.At == d.in.Self || !r.free() || !d.heardLately(who, r.At):
			if r, err = d.again(ctx, who, r); err != nil {
				return nil, err
			}
		}
		if slices.ContainsFunc(out, func(x *Row) bool { return x.ID() == r.ID() }) {
			continue // named twice
		}
		out = append(out, r)
	}
	return out, nil
}

// known are all items of a person that are known here, without asking anybody.
func (d *Desk) known(ctx context.Context, who users.Who) ([]Row, error) {
	rows, err := d.said(ctx, who)
	if err != nil {
		return nil, err
	}
	return d.addKept(who, rows, func(workflow.PartnerID) bool { return false }), nil
}

// said are all items of a person as the partners that hold them said last.
func (d *Desk) said(ctx context.Context, who users.Who) ([]Row, error) {
	rows, err := d.in.Instances.Items(ctx, worklist.User(who.ID), d.in.Self, everywhere)
	if err != nil {
		return nil, err
	}
	listed, _ := d.heardOf(who)
	return d.addHeard(rows, listed, func(workflow.PartnerID) bool { return false }), nil
}

// addHeard adds what is remembered of partners that did not answer. What is known here otherwise,
// and is not older, stays.
func (d *Desk) addHeard(rows []Row, listed map[workflow.PartnerID][]Row, answered func(workflow.PartnerID) bool) []Row {
	at := map[string]int{}
	for i := range rows {
		at[rows[i].ID()] = i
	}
	for p, of := range listed {
		if p == d.in.Self || answered(p) {
			continue
		}
		for _, r := range of {
			i, here := at[r.ID()]
			switch {
			case !here:
				rows = append(rows, r)
			case rows[i].At == r.At && rows[i].AsOf.Before(r.AsOf):
				r.Presumed = cmp.Or(r.Presumed, rows[i].Presumed) // which it may not have heard of
				rows[i] = r
			}
		}
	}
	return rows
}

// findGone finds an item that is on no list any more, as err says: its holder says what became of it.
func (d *Desk) findGone(who users.Who, ref string, err error) *Row {
	var e *api.Error
	if !errors.As(err, &e) || e.Code != api.NotFound {
		return nil
	}
	_, gone := d.heardOf(who)
	r, err := d.find(gone, ref)
	if err != nil {
		return nil
	}
	return r
}
