package worklists

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about items that are not ready: those that a user may lock all the same, and what is done of them out
// of reach, one after the other. What is made of one names the words by which those it waits for were done here.

// findEarly is an item that a partner listed ahead when it answered last, where it is not found now: it did not answer.
// nil: no partner did.
func (d *Desk) findEarly(who users.Who, ref string, err error) *Row {
	if e := (*api.Error)(nil); !errors.As(err, &e) || e.Code != api.NotFound {
		return nil
	}
	var listed []Row
	d.mu.Lock()
	for of, rows := range d.early {
		if of.user == who.ID {
			listed = append(listed, d.counting(who, of.at, slices.Clone(rows))...)
		}
	}
	d.mu.Unlock()
	r, err := d.find(listed, ref)
	if err != nil {
		return nil
	}
	return r
}

// addAhead adds to a list the items that are not ready and that a person may lock together with what they wait for: those
// of this node, and what partners say that they have ahead.
func (d *Desk) addAhead(ctx context.Context, who users.Who, rows, ahead []Row) ([]Row, error) {
	listed, heldBy := map[string]int{}, map[string]workflow.PartnerID{}
	for i := range rows {
		listed[rows[i].ID()] = i
	}
	here, err := d.in.Instances.Ahead(ctx, worklist.User(who.ID), d.in.Self, everywhere)
	if err != nil {
		return nil, err
	}
	for i := range here {
		heldBy[here[i].ID()] = here[i].At
	}
	here = slices.DeleteFunc(here, func(r Row) bool { return r.At != d.in.Self })
	for _, r := range append(here, ahead...) {
		if at, known := heldBy[r.ID()]; known && at != r.At {
			continue // nobody says of another's what is better known here
		}
		switch i, is := listed[r.ID()]; {
		case !is:
			listed[r.ID()] = len(rows)
			rows = append(rows, r)
		case rows[i].Over && rows[i].At == r.At: // the person had it, and can have it again
			r.Grant = rows[i].Grant
			rows[i] = r
		}
	}
	return rows, nil
}

// startAhead begins to ask for those, and gives what waits for the answers.
func (d *Desk) startAhead(ctx context.Context, who users.Who, wait time.Duration) func() []Row {
	out := make(chan []Row, 1)
	go func() { out <- d.askAhead(ctx, who, wait) }()
	return func() []Row { return <-out }
}

// askAhead asks the partners that are connected for those. Of one that does not answer after a wait it is what it said
// last; what it says later is remembered, and told to whoever watches.
func (d *Desk) askAhead(ctx context.Context, who users.Who, wait time.Duration) (out []Row) {
	req, err := wire.EncodeItems(wire.Items{User: who.ID})
	if err != nil {
		return nil
	}
	before := func(p workflow.PartnerID) (rows []Row, known bool) {
		d.mu.Lock()
		defer d.mu.Unlock()
		rows, known = d.early[asker{p, who.ID}]
		return d.counting(who, p, slices.Clone(rows)), known
	}
	type word struct {
		rows []Row
		news bool // a list without it was another one
	}
	said, slow, _ := askSoon(ctx, d, "ahead "+who.ID, wait,
		func(p workflow.PartnerID) bool { _, known := before(p); return known },
		func(ctx context.Context, p workflow.PartnerID) (w word, err error) {
			was, _ := before(p)
			b, err := d.in.Peers.Request(ctx, p, nil, ProtocolAhead, req, listPatience)
			if err != nil {
				return w, err // it refuses, is of an earlier version, or just gone
			}
			rows, err := d.read(p, b)
			if err != nil {
				d.in.Peers.Refuse("items-malformed", p)
				d.in.Log.Warn("a list of items is refused", "from", p, "error", err)
				return w, err
			}
			rows = slices.DeleteFunc(rows, func(r Row) bool { return len(r.Awaits) == 0 })
			d.mu.Lock()
			defer d.mu.Unlock()
			w.rows = d.counting(who, p, rows)
			if len(d.early) >= maxTold { // each is asked for again
				clear(d.early)
			}
			d.early[asker{p, who.ID}] = w.rows[:min(len(w.rows), maxHeard)]
			w.news = gist(was) != gist(w.rows[:min(len(w.rows), maxHeard)])
			return w, nil
		},
		func(p workflow.PartnerID, w word) {
			if w.news {
				d.tellLate(p)
			}
		})
	for _, w := range said {
		out = append(out, w.rows...)
	}
	for _, p := range slow {
		rows, _ := before(p)
		out = append(out, rows...)
	}
	slices.SortFunc(out, func(a, b Row) int { return cmp.Compare(a.ID(), b.ID()) })
	return out
}

// upon is what an item waits for, or waited for as its holder knew last, by the words by which that was done: the
// result of the item was made from it. An error: not all of it was done here.
func (d *Desk) upon(ctx context.Context, who users.Who, r *Row) (out []worklist.Basis, err error) {
	done, count, err := d.doneFor(ctx, who, r)
	if err != nil {
		return nil, err
	}
	for _, t := range r.Awaits {
		of, is := done[t]
		if !is {
			return nil, d.notDone(ctx, who, r, t)
		}
		count[t] = of
	}
	return slices.SortedFunc(maps.Values(count), func(a, b worklist.Basis) int { return a.Item.Compare(b.Item) }), nil
}

// doneFor is by which words that was done, by task, for which an item waits: by its user here, or by anybody as is
// known here. The latter count: to these belongs also what its holder may not have heard of yet, though this node knows
// that the item is ready.
func (d *Desk) doneFor(
	ctx context.Context, who users.Who, r *Row,
) (done, count map[workflow.TaskName]worklist.Basis, err error) {
	done, count = map[workflow.TaskName]worklist.Basis{}, map[workflow.TaskName]worklist.Basis{}
	waits := slices.Clone(r.Awaits)
	if k := d.keptFor(who.ID, r.ID()); k != nil {
		m := k.more()
		waits = append(waits, m.Awaits...)
		for _, of := range m.Did {
			done[of.Item.Slot] = of
			waits = append(waits, of.Item.Slot)
		}
	}
	if len(waits) == 0 {
		return done, count, nil
	}
	for _, k := range d.allKept(who.ID) {
		if of, is := k.done(); is && k.Instance == r.Instance {
			done[of.Item.Slot] = of
		}
	}
	slices.Sort(waits)
	made, err := d.in.Instances.MadeBy(ctx, r.Instance, slices.Compact(waits))
	for _, of := range made {
		done[of.Item.Slot], count[of.Item.Slot] = of, of
	}
	return done, count, err
}

// notDone is why an item cannot be handed in that waits for a task which its user has not done here: the user may do that
// first, or it is with others, as after a failure.
func (d *Desk) notDone(ctx context.Context, who users.Who, r *Row, t workflow.TaskName) error {
	const later = "keep %s: it can be handed in when that is done, and mutirao worklist shows it without (after %s)"
	failed := func(k *kept) bool {
		return k.Instance == r.Instance && k.row().Item.Slot == t && len(k.Word) > 0 && k.What != Completed
	}
	if slices.ContainsFunc(d.allKept(who.ID), failed) {
		return api.Errorf(api.Refused, "%s waits for %s, which failed, as %s said here: another does it, or what stands in for it",
			r.called(), t, who.Name).WithHint(later, r.called(), t)
	}
	rows, _, err := d.rows(ctx, who, listPatience)
	theirs := func(x Row) bool {
		return x.Instance == r.Instance && x.Item.Slot == t && (x.Mine != "" || x.free())
	}
	if err == nil && !slices.ContainsFunc(rows, theirs) {
		return api.Errorf(api.Refused, "%s waits for %s, which %s does not have: another does it, or what stands in for it",
			r.called(), t, who.Name).WithHint(later, r.called(), t)
	}
	return api.Errorf(api.Refused, "%s waits for %s, which %s has not done here", r.called(), t, who.Name).
		WithHint("complete %s first; if somebody else does it, mutirao worklist shows when %s can be done", t, r.called())
}

// done is by which word a user did an item well that waits to be handed in.
func (k *kept) done() (of worklist.Basis, is bool) {
	if len(k.Word) == 0 || k.What != Completed {
		return of, false
	}
	c, err := wire.DecodeSpoken(k.Word)
	if err != nil {
		return of, false
	}
	return worklist.Basis{Item: k.row().Item, Word: fact.WordOf(c.Instance, c.Says, c.Nonce)}, true
}

// upon is what a result that waits to be handed in was made from; none: nothing, or none waits.
func (k *kept) upon() []worklist.Basis {
	c, err := wire.DecodeSpoken(k.Word)
	if len(k.Word) == 0 || err != nil {
		return nil
	}
	body, _ := worklist.Decode(c.Says)
	r, _ := body.(worklist.Result)
	return r.Upon
}

// noteDone notes with the items that a user keeps here and that wait for one that it was done, by which word. If that
// does not outlast a crash, they can be done when their holder says that they are ready.
func (d *Desk) noteDone(who users.Who, r *Row, c wire.Spoken, body worklist.Result) {
	d.mu.Lock()
	defer d.mu.Unlock()
	of := worklist.Basis{Item: r.Item, Word: fact.WordOf(c.Instance, c.Says, c.Nonce)}
	writes, did := d.notedLocked(who, c.Instance, of, body)
	if len(writes) == 0 {
		return
	}
	if err := d.in.Store.CommitWait(writes); err != nil {
		d.in.Log.Warn("it cannot be kept what a user did of what others wait for", "task", r.Task, "error", err)
		return
	}
	did()
}

// notedLocked is what is written for noteDone, of all but the item that was done, which is written with its word; did
// takes it over once that is durable. The caller holds d.mu.
func (d *Desk) notedLocked(
	who users.Who, id workflow.InstanceID, of worklist.Basis, body worklist.Result,
) (writes []kv.Write, did func()) {
	next := []*kept{}
	for _, k := range d.kept {
		if k.User != who.ID || k.Instance != id || len(k.Word) > 0 || k.row().Item == of.Item {
			continue
		}
		m := k.more()
		awaits := slices.Contains(m.Awaits, of.Item.Slot)
		if awaits {
			m.Did = slices.DeleteFunc(m.Did, func(was worklist.Basis) bool { return was.Item.Slot == of.Item.Slot })
			m.Did = append(m.Did, of)
		}
		if len(m.Awaits) == 0 || !m.takeOver(body) && !awaits {
			continue
		}
		is := *k
		is.see(m)
		next = append(next, &is)
		writes = append(writes, is.write())
	}
	return writes, func() {
		for _, k := range next {
			d.kept[string(k.key())] = k
		}
	}
}

// without is what is kept of an item less what was refused of those that it waits for: nothing can be made from that
// any more. It is the same where nothing is.
func (k *kept) without(refused []*kept) *kept {
	m := k.more()
	did, set := slices.Clone(m.Did), maps.Clone(m.Set)
	for _, no := range refused {
		of, was := no.done()
		if !was || !slices.Contains(did, of) {
			continue
		}
		did = slices.DeleteFunc(did, func(x worklist.Basis) bool { return x == of })
		for name, text := range no.outputs() {
			if set[name] == text {
				delete(set, name)
			}
		}
	}
	if len(did) == len(m.Did) {
		return k
	}
	is := *k
	m.Did, m.Set = did, set
	is.see(m)
	return &is
}

// takeOver notes what a result sets of what an item reads or sets. It reports whether there was any.
func (m *more) takeOver(r worklist.Result) (any bool) {
	if m.Sheet == nil {
		return false
	}
	for _, name := range m.Sheet.names() {
		text, set := r.Outputs[workflow.DataName(name)].(string)
		if !set || len(text) > workflow.MaxValue {
			continue
		}
		m.Set = maps.Clone(m.Set)
		if m.Set == nil {
			m.Set = map[string]string{}
		}
		m.Set[name], any = text, true
	}
	return any
}

// setHere is what a user set here in other items of the instance, as text: what waits to be handed in, also where the
// item is this node's own, of which nothing is kept; and what was noted with one that is kept.
func (d *Desk) setHere(who users.Who, r *Row) map[string]string {
	set := map[string]string{}
	for _, k := range d.allKept(who.ID) {
		if _, did := k.done(); did && k.Instance == r.Instance {
			maps.Copy(set, k.outputs())
		}
	}
	if k := d.keptFor(who.ID, r.ID()); k != nil {
		maps.Copy(set, k.more().Set)
	}
	return set
}

// withSet is a sheet with what its user set here in items that its own waits for, which its holder may not know yet.
func (s *Sheet) withSet(set map[string]string) *Sheet {
	return s.valued(set, true)
}

// filled is withSet where its holder said that there is no value: it said so before that was handed in.
func (s *Sheet) filled(set map[string]string) *Sheet {
	return s.valued(set, false)
}

// valued is a sheet with the values of these texts where it has none or, with over, also in place of what it has.
func (s *Sheet) valued(set map[string]string, over bool) *Sheet {
	if s == nil || len(set) == 0 {
		return s
	}
	value := func(name, kind string, was any) any {
		text, is := set[name]
		if !is || was != nil && !over {
			return was
		}
		v, err := workflow.ParseValue(&workflow.DataDecl{Name: workflow.DataName(name), Type: workflow.DataType(kind)},
			text)
		if err != nil {
			return was
		}
		return v
	}
	out := *s
	out.Fields, out.Data = slices.Clone(s.Fields), slices.Clone(s.Data)
	for i := range out.Fields {
		out.Fields[i].Value = value(out.Fields[i].Name, out.Fields[i].Type, out.Fields[i].Value)
	}
	for i := range out.Data {
		if out.Data[i].Large && !over {
			continue
		}
		out.Data[i].Value = value(out.Data[i].Name, out.Data[i].Type, out.Data[i].Value)
	}
	return &out
}

// keepDone makes durable what a user did of an item, and, with the same write, that those which wait for it can be
// done.
func (d *Desk) keepDone(who users.Who, k *kept, c wire.Spoken, body worklist.Result) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := string(k.key())
	if d.kept[key] == nil && d.fullLocked(1) {
		return errKeepsEnough
	}
	writes, did := []kv.Write{k.write()}, func() {}
	if was := d.kept[key]; body.Failed && was != nil { // nothing is made any more from what it did before
		others := d.lessOf(was)
		for _, x := range others {
			writes = append(writes, x.write())
		}
		did = func() {
			for _, x := range others {
				d.kept[string(x.key())] = x
			}
		}
	}
	if !body.Failed {
		var more []kv.Write
		of := worklist.Basis{Item: body.Item, Word: fact.WordOf(c.Instance, c.Says, c.Nonce)}
		more, did = d.notedLocked(who, c.Instance, of, body)
		writes = append(writes, more...)
	}
	if err := d.in.Store.CommitWait(writes); err != nil {
		return err
	}
	did()
	d.kept[key] = k
	return nil
}

// keepNews keeps for what an item still waits, another deadline, to whom it passes before that, what others presume,
// what keeps it from being ready, and which others use a resource of it, as its holder says it now.
func (d *Desk) keepNews(was *kept, r *Row) {
	is, m := *was, was.more()
	fewer := len(m.Awaits) > len(r.Awaits)
	due := r.Due.After != m.Due.After || !r.Due.At.Equal(m.Due.At) || r.Transfer != m.Transfer ||
		r.TransferTo != m.TransferTo
	same := func(x, y worklist.Lack) bool { return x.SharedText() == y.SharedText() }
	if !fewer && !due && r.Presumed == m.Presumed && r.HeldUp == m.HeldUp && slices.EqualFunc(r.Shared, m.Shared, same) {
		return
	}
	m.Presumed, m.HeldUp, m.Shared = r.Presumed, r.HeldUp, r.Shared
	if fewer {
		m.Awaits = r.Awaits
	}
	if due {
		m.Due, m.DueAt, m.Warnings, m.Transfer, m.TransferTo = r.Due, r.DueAt, r.Warnings, r.Transfer, r.TransferTo
	}
	is.see(m)
	if err := d.keepOver(was, &is); err != nil {
		d.in.Log.Warn("what is new of an item cannot be kept", "task", r.Task, "error", err)
	}
}
