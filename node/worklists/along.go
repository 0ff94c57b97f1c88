package worklists

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file says what a device needs with it when it goes out of reach.

// Along is an item that somebody at this node has, and what it needs out of reach.
type Along struct {
	Item   api.Item
	Locked bool
	Own    bool // this node holds it
	// Leased is for how much longer its user has it while nothing is heard of the user, where this node holds it.
	Leased time.Duration
	Files  []Content
	// Lacks is the application with which it is done and that this device is not known to have; empty: it lacks none.
	Lacks workflow.ApplicationName
	// Withheld are files that its user may not read: they do not come.
	Withheld []Content
}

// Content is a file that an item needs, for whom, and who gives it.
type Content struct {
	Instance workflow.InstanceID
	Name     workflow.DataName
	File     workflow.File
	User     string // whole ID
	At       workflow.PartnerID
	Givers   []workflow.PartnerID // partners that gave it
	AtMost   int64                // how many bytes a second may come; 0: all that the link gives
	OnlyFor  []string             // who alone may read it, where its user is not among them; nil: its user may
}

// NotForUser says which files do not come.
func (a Along) NotForUser() (out []api.Withheld) {
	for _, c := range a.Withheld {
		w := api.Withheld{
			Item: a.Item.ID, Task: a.Item.Task, Label: a.Item.Label, Data: string(c.Name), File: c.File.Name,
			OnlyFor: c.OnlyFor,
		}
		if a.Item.Holder != nil {
			w.User = *a.Item.Holder
		}
		out = append(out, w)
	}
	return out
}

// Along are the items that people at this node have, in the order of their lists. What is
// locked is kept on the device as its partners say now, also what was locked at another.
func (d *Desk) Along(ctx context.Context) (out []Along, err error) {
	for _, who := range d.in.People.Here() {
		of, err := d.alongOf(ctx, who)
		if err != nil {
			return nil, err
		}
		out = append(out, of...)
	}
	return out, nil
}

// Untaken are the items of which this node is the holder and that people here may take, and nobody has: while it is out
// of reach nobody else can do them, and partners judge them.
func (d *Desk) Untaken(ctx context.Context) (out []api.Item, err error) {
	known := map[string]bool{}
	for _, who := range d.in.People.Here() {
		rows, err := d.in.Instances.Items(ctx, worklist.User(who.ID), d.in.Self, everywhere)
		if err != nil {
			return nil, err
		}
		for _, r := range sorted(heldHere(d.in.Self, rows), byArrival) {
			if r.free() && !r.Done && !known[r.ID()] {
				known[r.ID()] = true
				out = append(out, d.item(who, r))
			}
		}
	}
	return out, nil
}

// alongOf is Along for one person.
func (d *Desk) alongOf(ctx context.Context, who users.Who) (out []Along, err error) {
	rows, _, err := d.rows(ctx, who, listPatience)
	if err != nil {
		return nil, err
	}
	for _, r := range sorted(rows, byArrival) {
		if r.Mine == "" || r.Done || r.PutOff {
			continue
		}
		s, err := d.fresh(ctx, who, r)
		if err != nil {
			return nil, err
		}
		come, withheld := d.readable(s.contents(who, r))
		var lacks workflow.ApplicationName
		if a := d.application(s); a != nil && !a.Here {
			lacks = a.Name
		}
		out = append(out, Along{
			Item: d.item(who, r), Locked: r.Mine == worklist.Lock, Own: r.At == d.in.Self,
			Leased: r.Leased, Files: come, Lacks: lacks, Withheld: withheld,
		})
	}
	d.needed(who, out)
	return out, nil
}

// fresh is what is needed to do an item that a person has. Of a locked one it is kept as the
// holder says it now; where that does not answer, as it was kept.
func (d *Desk) fresh(ctx context.Context, who users.Who, r *Row) (*Sheet, error) {
	s := d.askSheet(ctx, who, r)
	if r.Mine != worklist.Lock || r.At == d.in.Self {
		return s, nil
	}
	was := d.keptFor(who.ID, r.ID())
	if was != nil && (s == nil || len(was.Word) > 0) {
		return was.more().Sheet, nil
	}
	now := keptOf(who, r, r.AsOf, s).carry(was)
	if was != nil && bytes.Equal(was.More, now.More) && was.Grant == now.Grant {
		return s, nil
	}
	if err := d.keepOver(was, now); err != nil {
		return nil, api.Errorf(api.Failed,
			"%s is locked, but this device cannot keep it for when it is out of reach: %w", r.called(), err)
	}
	return s, nil
}

// contents are the files that a sheet names. One of an earlier version does not say which
// data are files: they look like one.
func (s *Sheet) contents(who users.Who, r *Row) (out []Content) {
	if s == nil {
		return nil
	}
	for _, x := range s.Data {
		if x.Value == nil || x.Type != "" && x.Type != string(workflow.TypeFile) {
			continue
		}
		if f, err := workflow.ParseFile(fmt.Sprint(x.Value)); err == nil {
			out = append(out, Content{
				Instance: r.Instance, Name: workflow.DataName(x.Name), File: f, User: who.ID, At: r.At,
				Givers: s.Givers[x.Name], OnlyFor: readersOf(&x),
			})
		}
	}
	return out
}

// readable are the files among these that are here, or that their users may read; withheld are the others. What is here
// is for whoever is at this node.
func (d *Desk) readable(all []Content) (of, withheld []Content) {
	for _, c := range all {
		if c.OnlyFor != nil && !d.in.Has(c.File) {
			withheld = append(withheld, c)
		} else {
			of = append(of, c)
		}
	}
	return of, withheld
}

// Keeps reports whether an item of an instance is kept here for when its holder is out of
// reach, or what was refused, or a file for the holder to fetch: the content of its files stays as long.
func (d *Desk) Keeps(id workflow.InstanceID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, k := range d.kept {
		if k.Instance == id {
			return true
		}
	}
	for _, k := range d.refusals {
		if k.Instance == id {
			return true
		}
	}
	for _, g := range d.gave {
		if g.Instance == id {
			return true
		}
	}
	return false
}

// prefetched reports whether all is here that an item needs. Of what another partner holds
// that is known where the item is kept.
func (d *Desk) prefetched(who users.Who, r *Row) bool {
	if r.At == d.in.Self {
		return r.Local
	}
	k := d.keptFor(who.ID, r.ID())
	if k == nil {
		d.mu.Lock()
		needs, known := d.needs[who.ID][r.ID()]
		d.mu.Unlock()
		return known && !slices.ContainsFunc(needs, func(f workflow.File) bool { return !d.in.Has(f) })
	}
	s := k.more().Sheet
	if s == nil {
		return false
	}
	files, _ := d.readable(s.contents(who, r))
	return !slices.ContainsFunc(files, func(c Content) bool { return !d.in.Has(c.File) })
}

// Content is a file among the data of an item that a user has: the one of that name.
func (d *Desk) Content(ctx context.Context, q api.ItemQuery, name string) (c Content, err error) {
	who, err := d.in.People.Who(q.User)
	if err != nil {
		return c, err
	}
	of, err := d.locate(ctx, who, []string{q.Item}, true)
	if err != nil {
		return c, err
	}
	if of[0].Mine == "" {
		return c, d.notTheirs(ctx, who, of[0])
	}
	s, err := d.fresh(ctx, who, of[0])
	if err != nil {
		return c, err
	}
	for _, c := range s.contents(who, of[0]) {
		if string(c.Name) != name {
			continue
		}
		if _, withheld := d.readable([]Content{c}); withheld != nil {
			return c, api.Errorf(api.NotAllowed, "%s may not read file %s (%s), which task %s reads: only %s may", who.Name,
				name, c.File.Name, of[0].called(), strings.Join(c.OnlyFor, ", ")).
				WithHint("ask one of them what is in it, or have somebody do the task who may read it: " +
					"mutirao worklist transfer; the workflow says who may (readers)")
		}
		return c, nil
	}
	return c, api.Errorf(api.NotFound, "task %s reads no file %q that was given yet", of[0].called(), name).
		WithHint("mutirao worklist open %s shows what it reads", of[0].ID())
}
