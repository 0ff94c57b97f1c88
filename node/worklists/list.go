package worklists

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// List lists what a person has and may take.
func (d *Desk) List(ctx context.Context, q api.WorklistQuery) ([]api.Item, error) {
	var by func(a, b *Row) int
	switch q.Order {
	case "", api.OrderArrival:
		by = byArrival
	case api.OrderPriority:
		by = func(a, b *Row) int { return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Since.Compare(b.Since)) }
	case api.OrderDeadline:
		by = func(a, b *Row) int { return cmp.Or(byDeadline(a, b), a.Since.Compare(b.Since)) }
	case api.OrderSize:
		by = func(a, b *Row) int { return cmp.Or(cmp.Compare(a.Size, b.Size), a.Since.Compare(b.Since)) }
	case api.OrderHere:
		by = func(a, b *Row) int { return cmp.Or(hereFirst(a, b), a.Since.Compare(b.Since)) }
	case api.OrderHand:
	default:
		return nil, api.Errorf(api.Invalid, "the order %q: want one of %s", q.Order, strings.Join(api.Orders, ", "))
	}
	who, err := d.in.People.Who(q.User)
	if err != nil {
		return nil, err
	}
	early := func() []Row { return nil }
	if q.Ahead && d.in.Waits() { // both are asked for at a time, so that nobody waits for one after the other
		early = d.startAhead(ctx, who, soonPatience)
	} else if q.Ahead {
		early = func() []Row { return d.askAhead(ctx, who, soonPatience) }
	}
	rows, silent, err := d.rows(ctx, who, soonPatience)
	ahead := early()
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	d.silent[who.ID] = silent
	d.mu.Unlock()
	if q.Ahead {
		still, cancel := context.WithTimeout(context.WithoutCancel(ctx), listPatience)
		defer cancel() // who waits no longer for partners waits for what is here
		if rows, err = d.addAhead(still, who, rows, ahead); err != nil {
			return nil, err
		}
	}
	if rows, err = d.offered(ctx, rows, silent); err != nil {
		return nil, err
	}
	for i := range rows {
		rows[i].here = q.Order == api.OrderHere && d.isHere(who, &rows[i])
	}
	if by == nil {
		return d.items(who, d.lessDoneOf(ctx, who, d.sortedByHand(who, rows))), nil
	}
	return d.items(who, d.lessDoneOf(ctx, who, sorted(rows, by))), nil
}

// lessDoneOf are rows of which each that its user has waits only for what is still to be done (lessDone).
func (d *Desk) lessDoneOf(ctx context.Context, who users.Who, rows []*Row) []*Row {
	for i, r := range rows {
		if r.Mine != "" && len(r.Awaits) > 0 {
			rows[i] = d.lessDone(ctx, who, r)
		}
	}
	return rows
}

// offered are the rows that a list has: what the person has, and what the person may take, now or once its holder can be
// asked again. So nothing is offered whose holder is gone for good, or that is known here to be over while its holder
// says nothing: silent are those that are connected and did not answer.
func (d *Desk) offered(ctx context.Context, rows []Row, silent []workflow.PartnerID) ([]Row, error) {
	asked := map[workflow.InstanceID][]worklist.Item{}
	unheard := func(r *Row) bool {
		return r.At != d.in.Self && r.Mine == "" && (!d.in.Peers.Up(r.At) || slices.Contains(silent, r.At))
	}
	for i := range rows {
		if r := &rows[i]; r.free() && unheard(r) {
			asked[r.Instance] = append(asked[r.Instance], r.Item)
		}
	}
	over := map[workflow.InstanceID][]worklist.Item{}
	for id, of := range asked {
		list, err := d.in.Instances.Over(ctx, id, of)
		if err != nil {
			return nil, err
		}
		over[id] = list
	}
	return slices.DeleteFunc(rows, func(r Row) bool {
		dead := unheard(&r) && (d.in.Gone(r.At) || slices.Contains(over[r.Instance], r.Item))
		return r.Mine == "" && (!r.free() || dead)
	}), nil
}

// byDeadline puts first what is due first, and last what has no deadline.
func byDeadline(a, b *Row) int {
	if a.DueAt.IsZero() != b.DueAt.IsZero() {
		if a.DueAt.IsZero() {
			return 1
		}
		return -1
	}
	return a.DueAt.Compare(b.DueAt)
}

// hereFirst puts first what is on this device already.
func hereFirst(a, b *Row) int {
	if a.here == b.here {
		return 0
	}
	if a.here {
		return -1
	}
	return 1
}

// isHere reports whether this device has all that an item needs: its files, as far as they were given, and its application.
func (d *Desk) isHere(who users.Who, r *Row) bool {
	return (r.Application == "" || d.in.Runs(r.Application)) && (r.Size == 0 || d.prefetched(who, r))
}

func byArrival(a, b *Row) int { return a.Since.Compare(b.Since) }

// pointers are to each of the rows, which are large: so none is moved.
func pointers(rows []Row) []*Row {
	out := make([]*Row, len(rows))
	for i := range rows {
		out[i] = &rows[i]
	}
	return out
}

// sorted are the rows sorted by what is wanted, and for the rest in one way at all nodes.
func sorted(rows []Row, by func(a, b *Row) int) []*Row {
	out := pointers(rows)
	slices.SortFunc(out, func(a, b *Row) int {
		if n := by(a, b); n != 0 {
			return n
		}
		if n := a.Instance.Compare(b.Instance); n != 0 {
			return n
		}
		return cmp.Or(cmp.Compare(a.Place, b.Place), cmp.Compare(a.ID(), b.ID()))
	})
	return out
}

// rows are all items of which a person has, had, or may take one: of each partner as it
// says now or, if it cannot be asked or has not answered after a wait, as it said last or is known here. silent are those
// that are connected, did not answer, and were not heard a moment ago.
func (d *Desk) rows(
	ctx context.Context, who users.Who, wait time.Duration,
) (out []Row, silent []workflow.PartnerID, err error) {
	asked := d.in.Clock.Now().Awake
	known, err := d.in.Instances.Items(ctx, worklist.User(who.ID), d.in.Self, everywhere)
	if err != nil {
		return nil, nil, err
	}
	answers, silent := d.askAll(ctx, who, wait)
	d.remember(who, d.in.Self, everywhere, heldHere(d.in.Self, known), d.in.Clock.Now().Awake)
	answered := func(p workflow.PartnerID) bool {
		_, said := answers[p]
		return said || p == d.in.Self
	}
	judges := func(k *kept) bool { return answered(workflow.PartnerID(k.At)) && k.noted <= asked } // else it came after that
	listed, _ := d.heardOf(who)
	if delete(listed, d.in.Self); len(answers)+len(listed) == 0 {
		return d.addKept(who, known, judges), silent, nil
	}
	heldBy := make(map[string]workflow.PartnerID, len(known))
	for i := range known {
		heldBy[known[i].ID()] = known[i].At
	}
	out = slices.DeleteFunc(known, func(r Row) bool { _, said := answers[r.At]; return said })
	for p, rows := range answers {
		for _, r := range rows {
			if at, here := heldBy[r.ID()]; !here || at == p { // nobody says of another's what is better known here
				out = append(out, r)
			}
		}
	}
	for p, of := range listed { // as of the answers of now
		listed[p] = slices.DeleteFunc(of, func(r Row) bool {
			at, here := heldBy[r.ID()]
			return here && at != p
		})
	}
	return d.addKept(who, d.addHeard(out, listed, answered), judges), silent, nil
}

// heldHere are the rows of what this node holds.
func heldHere(self workflow.PartnerID, rows []Row) []Row {
	for i := range rows { // rows are large, and seldom is one of them elsewhere
		if rows[i].At != self {
			return slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return r.At != self })
		}
	}
	return rows
}

// askEach asks each partner that is connected, some at a time. silent are those without an answer.
func (d *Desk) askEach(ask func(workflow.PartnerID) error) (silent []workflow.PartnerID) {
	var (
		mu    sync.Mutex // guards silent
		asked sync.WaitGroup
		turns = make(chan struct{}, askedAtOnce)
	)
	one := func(p workflow.PartnerID) {
		if ask(p) != nil {
			mu.Lock()
			defer mu.Unlock()
			silent = append(silent, p)
		}
	}
	for _, p := range d.in.Peers.UpPeers() {
		if !d.in.Waits() {
			one(p)
			continue
		}
		asked.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			one(p)
		})
	}
	asked.Wait()
	slices.Sort(silent)
	return silent
}

// everywhere is instead of the one instance that somebody asks about.
var everywhere workflow.InstanceID

// askOne asks a partner what it holds for a person, of one instance or everywhere, and
// remembers it.
func (d *Desk) askOne(
	ctx context.Context, who users.Who, p workflow.PartnerID, only workflow.InstanceID,
) ([]Row, error) {
	req, err := wire.EncodeItems(wire.Items{User: who.ID, Only: only})
	if err != nil {
		return nil, err
	}
	asked := d.in.Clock.Now().Awake
	b, err := d.in.Peers.Request(ctx, p, nil, ProtocolItems, req, listPatience)
	if err != nil {
		return nil, err // it refuses, is of an earlier version, or just gone
	}
	rows, err := d.read(p, b)
	if err != nil {
		d.malformed(p, err)
		return nil, err
	}
	rows = d.noteRows(who, p, only, rows, asked)
	d.noticeLocks(who, p, rows)
	return rows, nil
}

// malformed counts that a partner lists items as none can be.
func (d *Desk) malformed(p workflow.PartnerID, err error) {
	d.in.Peers.Refuse("items-malformed", p)
	d.in.Log.Warn("a list of items is refused", "from", p, "error", err)
}

// noteRows notes what a partner says now that it holds for a person, of one instance or everywhere, that was asked at a
// moment (Awake), and returns what of it counts.
func (d *Desk) noteRows(
	who users.Who, p workflow.PartnerID, only workflow.InstanceID, rows []Row, asked time.Duration,
) []Row {
	if only != everywhere {
		rows = slices.DeleteFunc(rows, func(r Row) bool { return r.Instance != only })
	}
	d.mu.Lock()
	rows = d.counting(who, p, rows)
	d.compareGrants(who.ID, rows)
	d.mu.Unlock()
	d.remember(who, p, only, rows, asked)
	for i := range rows { // also when only messages are read: they go by what is kept
		r := &rows[i]
		if k := d.keptFor(who.ID, r.ID()); k != nil && k.At == string(p) && len(k.Word) == 0 && r.Mine != "" {
			d.keepNews(k, r)
		}
	}
	return rows
}

// read reads what a partner holds.
func (d *Desk) read(p workflow.PartnerID, b []byte) (rows []Row, err error) {
	if err := json.Unmarshal(b, &rows); err != nil {
		return nil, err
	}
	rows = rows[:min(len(rows), maxRows)]
	return rows, checkRows(rows, p, d.in.Clock.Now().Wall)
}

// checkRows says what no partner would truly say that it holds, and notes of all that it said so now.
func checkRows(rows []Row, at workflow.PartnerID, now time.Time) error {
	for i := range rows {
		rows[i].At, rows[i].AsOf = at, now
		if err := rows[i].check(now); err != nil {
			return err
		}
	}
	return nil
}

// elsewhere reports whether this node takes no part in the instance of an item.
func (d *Desk) elsewhere(r *Row) bool { return r.At != d.in.Self && !d.in.Instances.Here(r.Instance) }

// wordedAtOnce is how many rows are put in words by one goroutine, where there may be several.
const wordedAtOnce = 1000

// items are rows for people.
func (d *Desk) items(who users.Who, rows []*Row) []api.Item {
	out, now := make([]api.Item, len(rows)), d.in.Clock.Now().Wall
	word := func(from, to int) {
		for i, r := range rows[from:to] {
			out[from+i] = d.itemAt(who, r, now)
		}
	}
	if len(rows) <= wordedAtOnce || !d.in.Waits() {
		word(0, len(rows))
		return out
	}
	var worded sync.WaitGroup
	for from := 0; from < len(rows); from += wordedAtOnce {
		worded.Go(func() { word(from, min(from+wordedAtOnce, len(rows))) })
	}
	worded.Wait()
	return out
}

// item is a row for people.
func (d *Desk) item(who users.Who, r *Row) api.Item { return d.itemAt(who, r, d.in.Clock.Now().Wall) }

// heldUntil is till when whoever has an item has it; zero: that is not known, or it is for as long as it takes. Of what is
// locked here its holder waits until this node is back as it announced when it went, which the holder said nothing of
// before.
func (d *Desk) heldUntil(r *Row) time.Time {
	if r.LeaseAt.IsZero() {
		return r.LeaseAt
	}
	longer := r.Longer
	if back := d.in.Until(); back != nil && r.Mine == worklist.Lock && r.At != d.in.Self {
		longer = max(longer, min(back.Sub(r.LeaseAt), worklist.MostAway))
	}
	return r.LeaseAt.Add(longer)
}

func (d *Desk) itemAt(who users.Who, r *Row, now time.Time) api.Item {
	out := api.Item{
		ID: r.ID(), Instance: r.Instance.String(), Workflow: string(r.Workflow), Task: string(r.Task),
		State:   api.ItemReady,
		Partner: d.in.Name(r.At), Role: string(r.Role), Priority: r.Priority, Offline: r.Offline, Since: r.Since,
		AsOf:      r.AsOf,
		Delivered: true, Size: r.Size, Prefetched: d.prefetched(who, r),
	}
	if r.At != d.in.Self { // what this node holds is as of now
		out.Known, out.Away, out.Unreachable = d.in.Known(r.AsOf), d.in.Absent(r.At), !d.in.Peers.Up(r.At)
	}
	if out.Undoes = string(r.Undoes); r.Task != r.Item.Slot && r.Undoes == "" {
		out.InPlaceOf = string(r.Item.Slot)
	}
	out.Elsewhere = d.elsewhere(r)
	out.Doc, out.Subject, out.Label, out.WorkflowLabel = r.Doc, r.Subject, r.Label, r.WorkflowLabel
	if !r.Until.IsZero() {
		out.Due = &api.Due{
			Kind: r.Ends, At: r.Until.Round(time.Second).UTC(),
			Left: max(r.Until.Sub(now), 0).Round(time.Second).String(), About: r.At != d.in.Self,
		}
	}
	if !r.DueAt.IsZero() {
		at := r.DueAt.Round(time.Second).UTC()
		out.Deadline = &at
		if left := r.DueAt.Sub(now); out.Due == nil || left > 0 && r.DueAt.Before(r.Until) {
			out.Due = &api.Due{
				Kind: "deadline", At: at, Left: max(left, 0).Round(time.Second).String(),
				About: r.At != d.in.Self && r.Due.At.IsZero(),
			}
		}
	}
	if at, is := r.passes(); is {
		out.Transfer = &api.Passing{
			At: at.Round(time.Second).UTC(), Left: max(at.Sub(now), 0).Round(time.Second).String(),
			To: d.in.People.Called(r.TransferTo), About: r.At != d.in.Self && r.Due.At.IsZero(),
		}
	}
	if at := d.heldUntil(r); (r.Mine != "" || r.Other != "") && !r.Done && at.After(now) {
		at = at.Round(time.Second).UTC()
		out.LeaseUntil = &at
	}
	out.WaitsFor, out.Shared = Lacks(r.WaitsFor), Shared(r.Shared)
	if !r.Begun.IsZero() && r.Mine == "" && r.Other == "" {
		at := r.Begun.UTC()
		out.Begun = &at
	}
	if x := r.Remark; x != nil {
		out.Said = &api.Said{By: d.in.People.Called(x.User), Why: x.Reason, At: x.At.UTC(), Passed: x.Passed}
	}
	out.Presumed = r.Presumed
	if r.Mine == "" {
		if out.Over = r.Over || r.At != d.in.Self && d.in.Gone(r.At); r.Other != "" {
			out.TakenBy = d.in.People.Called(r.Other)
			if r.keptForOther() {
				until := r.AsOf.Add(r.KeptFor).Round(time.Second).UTC()
				out.KeptUntil = &until
			}
		}
	}
	if name := who.Name; r.Mine != "" {
		out.Holder, out.State = &name, api.ItemSelected
		if r.Mine == worklist.Lock {
			out.State = api.ItemLocked
		}
	}
	if r.Handed != "" {
		until := r.AsOf.Add(r.KeptFor).Round(time.Second).UTC()
		out.HandedBy, out.KeptUntil = d.in.People.Called(r.Handed), &until
	}
	for _, t := range r.Awaits {
		out.Awaits = append(out.Awaits, string(t))
	}
	out.HeldUp = r.HeldUp
	for t, label := range r.TaskLabels {
		if out.TaskLabels == nil {
			out.TaskLabels = map[string]string{}
		}
		out.TaskLabels[string(t)] = label
	}
	if len(out.Awaits) > 0 && out.State == api.ItemReady {
		out.State = api.ItemNotReady
	}
	if r.PutOff {
		out.State = api.ItemDone
	}
	if r.Done {
		out.State, out.Delivered = api.ItemDone, false
	}
	return out
}
