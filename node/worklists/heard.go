package worklists

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/membership/moment"
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
	return d.taken[user][item].at
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

// remember keeps what a partner says now, of one instance or everywhere, that was asked at a moment (Awake).
func (d *Desk) remember(
	who users.Who, p workflow.PartnerID, only workflow.InstanceID, rows []Row, asked time.Duration,
) {
	now := d.in.Clock.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.noteLosses(who.ID, p, rows)
	of := d.heard[who.ID]
	if of == nil {
		of = map[workflow.PartnerID]*heard{}
		d.heard[who.ID] = of
	}
	is := of[p]
	if is == nil {
		is = &heard{awake: now.Awake - freshFor, wall: now.Wall}
		of[p] = is
	}
	if only == everywhere {
		is.awake, is.wall = now.Awake, now.Wall
	}
	is.say(only, rows, now, asked)
}

// say has a partner list these rows, of one instance or everywhere, instead of those that it listed before, but for what
// was heard since it was asked for them. Rows are large, so those of other instances stay where they are. Where there is
// no room, what is free gives way to what the user had, and that to what the user has.
func (h *heard) say(only workflow.InstanceID, rows []Row, now moment.Now, asked time.Duration) {
	about := func(r *Row) bool { return only == everywhere || r.Instance == only }
	at := h.known(rows)
	said, gone := make([]bool, len(rows)), []Row(nil)
	goes := func(r *Row) {
		if now.Wall.Sub(r.AsOf) < shownFor && len(gone) < maxGone {
			gone = append(gone, *r)
		}
	}
	for i := 0; i < len(h.rows); i++ {
		r := &h.rows[i]
		if !about(r) {
			continue
		}
		n, listed := at[r.names()]
		switch newer := r.heard > asked; {
		case listed && !said[n]:
			if said[n] = true; !newer {
				*r, r.heard = rows[n], now.Awake
			}
			continue
		case newer && !listed:
			continue
		case !listed:
			goes(r)
		}
		last := len(h.rows) - 1
		*r, h.rows[last] = h.rows[last], Row{}
		h.rows = h.rows[:last]
		i--
	}
	fast := -1 // to what concerns the user no more than this nothing gives way
	for i := range rows {
		if said[i] || rows[i].concern() <= fast {
			continue
		}
		n := len(h.rows)
		if n < maxHeard {
			h.rows = append(h.rows, rows[i])
		} else if n = givesWay(h.rows, &rows[i]); n >= 0 {
			h.rows[n] = rows[i]
		}
		if n < 0 {
			fast = rows[i].concern()
			continue
		}
		h.rows[n].heard = now.Awake
	}
	h.gone = slices.Concat(gone, h.stillGone(about, at, gone, now.Wall))
	h.gone = h.gone[:min(len(h.gone), maxGone)]
}

// known is where those of rows are that were listed before, now or until lately. There may be very many rows.
func (h *heard) known(rows []Row) map[named]int {
	out := map[named]int{}
	for _, before := range [][]Row{h.rows, h.gone} {
		for i := range before {
			out[before[i].names()] = -1
		}
	}
	for i := range rows {
		name := rows[i].names()
		if _, is := out[name]; is {
			out[name] = i
		}
	}
	maps.DeleteFunc(out, func(_ named, i int) bool { return i < 0 })
	return out
}

// givesWay is the last of rows that concerns the user less than another one; -1: none does.
func givesWay(rows []Row, to *Row) int {
	n := len(rows) - 1
	for n >= 0 && rows[n].concern() >= to.concern() {
		n--
	}
	return n
}

// stillGone are those of what was listed before that are not listed again: first what the partner spoke of just now, as
// long as it is to be shown.
func (h *heard) stillGone(about func(*Row) bool, listed map[named]int, but []Row, now time.Time) (out []Row) {
	for i := range h.gone {
		r := &h.gone[i]
		if _, again := listed[r.names()]; about(r) && !again && rowOf(but, r.ID()) < 0 && now.Sub(r.AsOf) < shownFor {
			out = append(out, *r)
		}
	}
	for i := range h.gone {
		if r := &h.gone[i]; !about(r) {
			out = append(out, *r)
		}
	}
	return out
}

// rowOf is where an item is among rows; -1: nowhere. None of them is copied for that.
func rowOf(rows []Row, item string) int {
	for i := range rows {
		if rows[i].ID() == item {
			return i
		}
	}
	return -1
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
		i := rowOf(is.rows, ref)
		if i >= 0 && (only == "" || only == p) {
			found = append(found, is.rows[i])
			d.takenHere(who.ID, p, found[len(found)-1:])
		}
	}
	d.mu.Unlock()
	if len(found) != 1 {
		return nil
	}
	r := &found[0]
	if d.isElsewhere(ctx, who, r) {
		return nil
	}
	return r
}

// rememberGone keeps an item that a partner does not list any more.
func (d *Desk) rememberGone(who users.Who, r Row) {
	d.mu.Lock()
	defer d.mu.Unlock()
	is := d.heard[who.ID][r.At]
	if is == nil || rowOf(is.rows, r.ID()) >= 0 || rowOf(is.gone, r.ID()) >= 0 {
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
	i := rowOf(is.rows, item)
	if i < 0 {
		return
	}
	is.gone = slices.Insert(is.gone, 0, is.rows[i])
	is.gone = is.gone[:min(len(is.gone), maxGone)]
	is.rows = slices.Delete(is.rows, i, i+1)
}

// heardOf is what is remembered for a user: what partners listed, by partner, and what they list no
// more.
func (d *Desk) heardOf(who users.Who) (listed map[workflow.PartnerID][]Row, gone []Row) {
	now := d.in.Clock.Now().Wall
	listed = map[workflow.PartnerID][]Row{}
	d.mu.Lock()
	defer d.mu.Unlock()
	for p, is := range d.heard[who.ID] {
		rows, past := d.withUnrecorded(who.ID, p, d.counting(who, p, slices.Clone(is.rows)),
			d.counting(who, p, slices.Clone(is.gone)))
		gone = append(gone, past...)
		if now.Sub(is.wall) < shownFor {
			d.takenHere(who.ID, p, rows)
			listed[p] = rows
		}
	}
	return listed, gone
}

// takenHere says of what a partner said to be free that another user has it by now, who took it from this device: while the
// partner cannot be asked nobody says so. The caller holds d.mu.
func (d *Desk) takenHere(user string, p workflow.PartnerID, rows []Row) {
	type has struct {
		user  string
		since time.Duration // Awake
	}
	by := map[named]has{}
	note := func(name named, h has) {
		if was, noted := by[name]; !noted || was.since < h.since {
			by[name] = h
		}
	}
	for o, of := range d.heard {
		if is := of[p]; o != user && is != nil {
			for i := range is.rows {
				if r := &is.rows[i]; r.Mine != "" {
					note(r.names(), has{o, r.heard})
				}
			}
		}
	}
	for _, k := range d.kept {
		if k.User != user && k.At == string(p) && k.Refused == "" {
			note(named{k.Instance, worklist.Item{Assigned: k.Assigned, Slot: workflow.TaskName(k.Slot)}}, has{k.User, k.noted})
		}
	}
	for i := range rows {
		if r := &rows[i]; r.free() {
			if h, taken := by[r.names()]; taken && h.since > r.heard {
				r.Other = worklist.User(h.user)
			}
		}
	}
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
	d.remember(who, d.in.Self, of, rows, d.in.Clock.Now().Awake)
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
			if r = d.findGone(ctx, who, ref, err); r == nil {
				if r = d.findEarly(who, ref, err); r != nil {
					return nil, d.inWords(r, nil, errAway)
				}
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
	return d.addKept(who, rows, func(*kept) bool { return false }), nil
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

// findGone finds an item that is on no list any more, as err says: its holder says what became of it. What this node holds
// itself it knows of instances that have ended, also after it was started again.
func (d *Desk) findGone(ctx context.Context, who users.Who, ref string, err error) *Row {
	var e *api.Error
	if !errors.As(err, &e) || e.Code != api.NotFound {
		return nil
	}
	_, gone := d.heardOf(who)
	r, err := d.find(gone, ref)
	if err == nil {
		return r
	}
	ended, err := d.in.Instances.LostLately(ctx, worklist.User(who.ID), d.in.Clock.Now().Wall.Add(-shownLost))
	if err != nil {
		return nil
	}
	if r, err = d.find(ended, ref); err != nil {
		return nil
	}
	return r
}
