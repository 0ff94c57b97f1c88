package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/dataflow"
	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/assignment"
	"github.com/mutirao-mesh/mutirao/node/filing"
	"github.com/mutirao-mesh/mutirao/node/index"
	"github.com/mutirao-mesh/mutirao/node/runner"
	"github.com/mutirao-mesh/mutirao/node/show"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// peoplesItems are the people's tasks of the instances here, for worklists.
type peoplesItems struct {
	*desk
	filing *filing.Desk
}

// Items are the tasks of people that this node knows of and that a person at a partner's node
// has, had, or may take: in one instance, or, with the zero ID, in all.
func (k peoplesItems) Items(
	ctx context.Context, person worklist.User, at workflow.PartnerID, only workflow.InstanceID,
) ([]worklists.Row, error) {
	return k.rows(ctx, person, at, only, ready, (*choreo.Machine).ItemsFor)
}

// Ahead are those that a person at a partner's node may lock before they are ready, together with what they wait for.
func (k peoplesItems) Ahead(
	ctx context.Context, person worklist.User, at workflow.PartnerID, only workflow.InstanceID,
) ([]worklists.Row, error) {
	return k.rows(ctx, person, at, only, ahead, func(m *choreo.Machine, _ worklist.User) (out []choreo.ItemFor) {
		for _, v := range m.Ahead() {
			out = append(out, choreo.ItemFor{ItemView: v})
		}
		return out
	})
}

// maxLately bounds the ended instances in which is looked for items that a person lost.
const maxLately = 16

// LostLately are the items that a person at this node had since a moment in instances that have ended: of the newest 16.
func (k peoplesItems) LostLately(ctx context.Context, person worklist.User, since time.Time) (out []worklists.Row, err error) {
	for _, id := range k.index.Lately(person, since.UnixMilli(), maxLately) {
		rows, err := k.Items(ctx, person, k.member.ID(), id)
		if err != nil {
			return nil, err
		}
		out = append(out, rows...)
	}
	return out, nil
}

// itemsFor lists items of an instance for a person.
type itemsFor func(*choreo.Machine, worklist.User) []choreo.ItemFor

func (k peoplesItems) rows(
	ctx context.Context, person worklist.User, at workflow.PartnerID, only workflow.InstanceID, kind listing, list itemsFor,
) ([]worklists.Row, error) {
	who, known := k.partners.Person(person)
	if !known {
		return nil, k.noPerson(person)
	}
	now := k.clock.Now()
	if only != (workflow.InstanceID{}) {
		var found []worklists.Row // whoever stops waiting leaves it to the shard
		err := k.peek(ctx, only, func(h *held) { found = k.addItems(nil, h, who, at, now, list) })
		if err != nil && !errors.Is(err, kv.ErrNotFound) {
			return nil, err
		}
		return append([]worklists.Row{}, found...), nil
	}
	room := k.roomFor(kind)
	found, err := lookAt(ctx, k.crew, func(s *shard) []worklists.Row {
		out := room.of(s)
		s.all(func(_ workflow.InstanceID, h *held) { out = k.addItems(out, h, who, at, now, list) })
		s.listed[kind].Store(int64(len(out)))
		return out
	})
	if err != nil {
		return nil, err
	}
	return room.joined(found), nil
}

// room is one array for what the shards list, with a part for each as long as its last list: rows are large, and most
// often there are as many as then.
type room struct {
	all  []worklists.Row
	ends []int // of the parts, by shard
}

func (k peoplesItems) roomFor(kind listing) room {
	r, total := room{ends: make([]int, len(k.crew.shards))}, 0
	for i, s := range k.crew.shards {
		total += int(s.listed[kind].Load())
		r.ends[i] = total
	}
	r.all = make([]worklists.Row, total)
	return r
}

// of is the part of a shard, with nothing in it. What does not fit is put elsewhere.
func (r room) of(s *shard) []worklists.Row {
	from := r.begin(s.number)
	return r.all[from:from:r.ends[s.number]]
}

func (r room) begin(shard int) int {
	if shard == 0 {
		return 0
	}
	return r.ends[shard-1]
}

// joined are the rows of all shards. Where each filled its part they are not moved.
func (r room) joined(found [][]worklists.Row) []worklists.Row {
	for i, rows := range found {
		if len(rows) != r.ends[i]-r.begin(i) {
			if r.all = slices.Concat(found...); r.all == nil {
				r.all = []worklists.Row{}
			}
			break
		}
	}
	return r.all
}

// noPerson says that somebody is asked for who is nobody here: by name, if that is known still.
func (d *desk) noPerson(person worklist.User) error {
	return api.Errorf(api.NotAllowed, "this node knows no such person as %s, or it was removed", d.partners.Called(person))
}

// addItems adds the items of one instance.
func (k peoplesItems) addItems(
	out []worklists.Row, h *held, who worklist.Person, at workflow.PartnerID, now moment.Now, list itemsFor,
) []worklists.Row {
	views := list(h.m, who.User)
	if len(views) == 0 {
		return out
	}
	shown, about, dues := h.shown(), h.subject(), h.m.Dues(choreo.Moment{Boot: now.Boot, Wall: now.Wall}, k.partners)
	dated := deadlinesOf(k.view.Deadlines(shown, now))
	for i, v := range views {
		r := worklists.Row{
			Instance: h.m.Instance(), Workflow: h.def.Def.Name, Task: v.Task.Name, Item: v.Item, Role: v.Role,
			Priority: v.Task.Priority, Offline: v.Task.Offline, Since: now.Wall, Grant: v.Last, Grants: v.Grants,
			Over: v.Over, At: v.Partner, AsOf: now.Wall,
			Place: i, Doc: show.Short(v.Task.Doc, worklists.MaxDoc), Subject: about,
			Label: v.Task.Label, WorkflowLabel: h.m.Definition().Label,
		}
		if a := applicationOf(h.m.Definition(), v.Task); a != nil {
			r.Application = a.Name
		}
		r.WaitsFor, r.Shared, r.Partition, r.Awaits, r.Undoes = v.WaitsFor, v.Shared, v.Partition, v.Awaits, v.Undoes
		r.TaskLabels = workflow.LabelsOf[workflow.TaskName](h.m.Definition(), r.Named())
		r.PutOff = v.PutOff && v.Holder == who.User
		if v.HeldUp != nil {
			r.HeldUp = plain.CutBytes(k.heldUp(h, v.HeldUp), worklists.MaxHeldUp)
		}
		if v.Remark != nil && !v.Over {
			said := *v.Remark
			said.Reason = plain.CutBytes(said.Reason, worklist.MaxBack)
			r.Remark = &said
		}
		if !v.Over {
			r.Presumed = plain.CutBytes(v.Presumed, worklist.MaxBack)
		}
		if v.Begun > 0 && !v.Over {
			r.Begun = time.UnixMilli(v.Begun)
		}
		for _, d := range dues.Tasks[v.Task.Name] {
			if r.Ends == "" || d.Left < r.Left {
				r.Ends, r.Left, r.Until = string(d.Kind), d.Left, now.Wall.Add(d.Left)
			}
		}
		if d := dated.of(v.Item); d != nil && !v.Over {
			r.Due, r.DueLeft, r.Warnings, r.DueAt = d.Due, d.Left, d.Warnings, now.Wall.Add(d.Left)
			if _, passes := d.Passes(); passes || d.Passed && v.Lost != nil {
				r.Transfer, r.TransferTo = d.Transfer, h.m.Responsible()
			}
		}
		r.Size, r.Local = k.filing.Needed(h.filed(), v.Task, who.User, at)
		if v.Arrival > 0 {
			r.Since = time.UnixMilli(v.Arrival)
		}
		switch {
		case v.Holder == who.User && v.Mode == worklist.Handed:
			r.Handed, r.KeptFor = v.HandedBy, max(v.Until.Sub(now.Wall), 0)
		case v.Holder == who.User:
			r.Mine, r.From = v.Mode, v.From
			if r.At == k.member.ID() && v.LeaseEnds > 0 {
				r.Leased = max(v.LeaseEnds-now.Boot, 0)
			}
		case v.Holder != "":
			if r.Other = v.Holder; v.Mode == worklist.Handed {
				r.KeptFor = max(v.Until.Sub(now.Wall), 1)
			}
		}
		if until := k.heldUntil(h, v, now); until.After(now.Wall) {
			r.LeaseLeft, r.LeaseAt, r.Longer = v.Until.Sub(now.Wall), v.Until, until.Sub(v.Until)
		}
		if v.Holder != "" {
			r.Held = v.Grant
		}
		if v.Holder == who.User || v.Over {
			r.Word, r.Joint = v.Word, v.Joint
		}
		if r.At != k.member.ID() {
			r.AsOf, _ = k.view.AsOf(shown, r.At)
		}
		if v.Lost != nil {
			r.Adoptable = len(v.Lost.Works) > 0 && h.m.MayAdopt(v.Item, who.User)
			switch {
			case v.Lost.Passed():
				r.Unneeded, r.Made = v.Lost.At, len(v.Lost.Works) > 0
			case v.Lost.Over:
				r.Unneeded, r.Made = h.m.UnneededSince(v.Item), len(v.Lost.Works) > 0
			}
			if r.Lost, r.LostBy, r.LostAt = v.Lost.Why, v.Lost.Whose, v.Lost.At; r.LostAt.IsZero() {
				r.LostAt = now.Wall
				if !r.Unneeded.IsZero() && r.Unneeded.Before(now.Wall) {
					r.LostAt = r.Unneeded
				}
			}
		}
		sees := v.Holder != "" || v.Over || v.ToAll || h.m.Sees(v.Item, who.User) // else it is offered to others
		switch may := sees && entitled(v.Role, who, at, r.At); {
		case !may && !r.Last():
			continue
		case !may && r.Mine == "":
			r.Over = true // but for what the person still brings
		}
		out = append(out, r)
	}
	return out
}

// heldUp says why an item that somebody has cannot be done as things are.
func (k peoplesItems) heldUp(h *held, x *choreo.HeldUp) string {
	task := h.m.Definition().WithLabel
	awaits, failed, at := task(x.Awaits), task(x.Failed), k.people.label(x.At)
	direct, why := x.Awaits == x.Failed, x.Why
	if p, known := k.people.Get(x.At); known && x.Presumed && p.State.Gone() {
		why = assignment.WhyGone(p)
	}
	switch {
	case x.Presumed && direct:
		return fmt.Sprintf("waits for %s, presumed to have failed at %s, which may still do it: %s", awaits, at, why)
	case x.Presumed:
		return fmt.Sprintf("waits for %s, and that for %s, presumed to have failed at %s, which may still do it: %s", awaits,
			failed, at, why)
	case direct:
		return fmt.Sprintf("waits for %s, which failed at %s, and whoever decides may have it done again: %s", awaits, at, why)
	}
	return fmt.Sprintf("waits for %s, and that for %s, which failed at %s, and whoever decides may have it done again: %s",
		awaits, failed, at, why)
}

// heldUntil is till when whoever has an item has it, before others may take it; zero: for as long as it takes, or nobody has
// it, or it is only kept for somebody.
func (k peoplesItems) heldUntil(h *held, v choreo.ItemFor, now moment.Now) time.Time {
	switch {
	case v.Mode == worklist.Handed:
		return time.Time{}
	case v.Mode != worklist.Lock || v.Until.IsZero():
		return v.Until
	}
	return h.m.HeldUntil(v.Item, choreo.Moment{Boot: now.Boot, Wall: now.Wall}, k.partners)
}

// deadlines are those of an instance, to be found by what they are about.
type deadlines struct {
	all []state.Deadline
	at  map[worklist.Item]int // where each is; nil: so few are looked through more quickly
}

// fewDeadlines are looked through.
const fewDeadlines = 8

func deadlinesOf(all []state.Deadline) deadlines {
	d := deadlines{all: all}
	if len(all) > fewDeadlines {
		d.at = make(map[worklist.Item]int, len(all))
		for i := range all {
			d.at[all[i].Item] = i
		}
	}
	return d
}

// of is the deadline of an item; nil: it has none.
func (d deadlines) of(i worklist.Item) *state.Deadline {
	at, has := d.at[i]
	if d.at == nil {
		at = slices.IndexFunc(d.all, func(x state.Deadline) bool { return x.Item == i })
		has = at >= 0
	}
	if !has {
		return nil
	}
	return &d.all[at]
}

// Sheet is an item that a person at a partner's node has, had, or may take, with what is needed to do it.
func (k peoplesItems) Sheet(
	ctx context.Context, person worklist.User, at workflow.PartnerID, id workflow.InstanceID, item string,
) (found *worklists.Row, sheet *worklists.Sheet, err error) {
	who, known := k.partners.Person(person)
	if !known {
		return nil, nil, k.noPerson(person)
	}
	var row *worklists.Row // whoever stops waiting leaves it to the shard
	var of *worklists.Sheet
	err = k.peek(ctx, id, func(h *held) {
		for _, r := range k.addItems(nil, h, who, at, k.clock.Now(), (*choreo.Machine).ItemsFor) {
			if r.ID() == item {
				row, of = &r, k.sheetOf(h, &r, person, at)
			}
		}
	})
	if err != nil {
		return nil, nil, err
	}
	if row == nil {
		return nil, nil, api.Errorf(api.NotFound, "there is no item %q for this person any more", item)
	}
	return row, of, nil
}

// sheetOf is what a person at a partner's node needs to do an item. The values of data are for whoever has it.
func (k peoplesItems) sheetOf(
	h *held, r *worklists.Row, person worklist.User, at workflow.PartnerID,
) *worklists.Sheet {

	out := &worklists.Sheet{}
	t := h.m.Definition().Task(r.Task)
	if t == nil {
		return out
	}
	values := h.m.Snapshot().Data
	out.Doc, out.Application = t.Doc, applicationOf(h.m.Definition(), t)
	decl := map[workflow.DataName]*workflow.DataDecl{}
	def := h.m.Definition()
	for i := range def.Data {
		decl[def.Data[i].Name] = &def.Data[i]
	}
	for _, name := range t.Fields() {
		f := field(decl[name])
		if f.Value = nil; r.Mine != "" {
			f.Value = values[name]
		}
		out.Fields = append(out.Fields, f)
	}
	for _, name := range t.In {
		if r.Mine != "" {
			out.Data = append(out.Data, api.Datum{
				Name: string(name), Type: string(decl[name].Type), Label: decl[name].Label,
				Doc: decl[name].Doc, Value: values[name],
			})
			if v := values[name]; decl[name].Type == workflow.TypeFile && v != nil {
				by := h.m.GivenBy(name, fmt.Sprint(v))
				by = by[:min(len(by), worklists.MaxGivers)]
				if out.Givers == nil {
					out.Givers, out.Brought = map[string][]workflow.PartnerID{}, map[string][]workflow.PartnerID{}
				}
				out.Givers[string(name)] = by
				for _, p := range by {
					if h.m.BroughtTo(p, name, fmt.Sprint(v)) {
						out.Brought[string(name)] = append(out.Brought[string(name)], p)
					}
				}
				if only := k.filing.OnlyFor(h.filed(), at, string(person), name, fmt.Sprint(v)); only != nil {
					out.Data[len(out.Data)-1].File = &api.File{OnlyFor: only}
				}
			}
		}
	}
	for _, was := range k.view.Instance(h.shown()).Tasks {
		if slices.Contains(t.After, was.Name) && was.State == workflow.Succeeded {
			out.After = append(out.After,
				api.Earlier{Task: string(was.Name), Label: was.Label, By: cmp.Or(was.PerformedBy, was.Partner), Ended: was.Ended})
		}
	}
	if r.Mine == worklist.Lock && r.From == at {
		if c := h.m.SaidBy(r.Grant); c != nil {
			out.Asked, _ = wire.EncodeSpoken(wire.Spoken{Instance: r.Instance, Says: c.Says, Nonce: c.Nonce, Word: c.Word})
		}
	}
	return out.Bounded()
}

// applicationOf is with what people do a task, and what the definition says of that; nil: without any.
func applicationOf(def *workflow.Definition, t *workflow.Task) *api.ItemApplication {
	if t.Application == "" || runner.BuiltIn(t.Application) { // these start no program
		return nil
	}
	out := &api.ItemApplication{Name: t.Application}
	for _, d := range def.Applications {
		if d.Name == t.Application {
			out.Size, out.OS, out.CPU, out.Installer = d.Size, d.OS, d.CPU, d.Installer
		}
	}
	return out
}

// field is a declaration of data for people.
func field(d *workflow.DataDecl) api.Field {
	return api.Field{
		Name: string(d.Name), Type: string(d.Type), Label: d.Label, Doc: d.Doc, Required: d.Required, Enum: d.Enum,
		Min: d.Min, Max: d.Max, Value: d.Default,
	}
}

// entitled reports whether a person at a partner's node may take a task for a role that another holds.
func entitled(role workflow.RoleName, who worklist.Person, at, holder workflow.PartnerID) bool {
	if role == "" {
		return at == holder
	}
	for _, r := range who.Roles {
		if r == role {
			return true
		}
	}
	return false
}

// Claim has this node as the holder write down a person's word from a partner's node, and returns when that is durable,
// and whoever watches has seen that.
func (k peoplesItems) Claim(
	ctx context.Context, from workflow.PartnerID, id workflow.InstanceID, c *fact.Claim, watch *worklists.Watch,
) (choreo.Claimed, error) {
	return k.claim(ctx, from, id, c, workflow.Hash{}, watch)
}

// Amend is Claim of an amendment that was compared with a definition. Where the instance runs by another by now it is
// refused, unless it was written down before.
func (k peoplesItems) Amend(
	ctx context.Context, from workflow.PartnerID, id workflow.InstanceID, c *fact.Claim, of workflow.Hash,
) (choreo.Claimed, error) {
	return k.claim(ctx, from, id, c, of, nil)
}

func (k peoplesItems) claim(
	ctx context.Context, from workflow.PartnerID, id workflow.InstanceID, c *fact.Claim, of workflow.Hash,
	watch *worklists.Watch,
) (out choreo.Claimed, err error) {
	var done choreo.Claimed // whoever stops waiting leaves it to the shard
	err = k.doAndRead(ctx, id, k.watching(watch, from), func(s *shard) error {
		h, err := s.find(id)
		if err != nil {
			return err
		}
		def := h.m.Definition()
		if err := k.reaches(h, c); err != nil {
			return err
		}
		if !of.IsZero() && of != def.Hash() && !h.m.WrittenDown(c) {
			return api.Errorf(api.Refused, "the definition by which the instance runs has changed meanwhile; nothing is changed").
				WithHint("look again what differs: mutirao amend %s FILE --dry-run", id)
		}
		if r, ok := c.Body().(worklist.Result); ok && !r.Failed {
			if err := checkGiven(h.m.Definition(), r.Outputs); err != nil {
				return api.Errorf(api.Invalid, "%s: %v", h.m.CalledItem(r.Item), err)
			}
			if err := k.filing.Given(h.m.Definition(), id.String(), h.sum.By, r.Outputs, from == k.member.ID()); err != nil {
				return err
			}
		}
		if x, ok := c.Body().(worklist.Order); ok && x.What == worklist.Recover {
			if step, err := dataflow.DecodeStep(x.Reason); err == nil { // else the machine says so
				if err := stepGiven(h.m.Definition(), step); err != nil {
					return err
				}
			}
		}
		done, err = h.m.Claim(c, s.moment(), k.partners)
		if r, is := c.Body().(worklist.Result); is && err == nil && done.Already && done.Kept == "" {
			done.Adopted = h.m.WasAdopted(r.Item, fact.WordOf(id, c.Says, c.Nonce))
		}
		s.touch(h)
		var no *worklist.Refusal
		if errors.As(err, &no) {
			return k.refusedClaim(err, h.m.CalledItem(no.Item), def, h.m.Cancellable())
		}
		return k.refusedClaim(err, "", def, h.m.Cancellable())
	})
	var at *choreo.Elsewhere
	_, orders := c.Body().(worklist.Order)
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return choreo.Claimed{}, api.Errorf(api.Refused,
			"the instance has ended, and its facts are deleted; nothing is kept")
	case orders && errors.As(err, &at):
		return choreo.Claimed{}, k.heldByOneGone(at)
	}
	if err != nil {
		return choreo.Claimed{}, err
	}
	return done, nil
}

// watching reads what whoever watches at a partner's node wants to see; nil: nobody does.
func (k peoplesItems) watching(watch *worklists.Watch, at workflow.PartnerID) func(*held) {
	if watch == nil {
		return nil
	}
	return func(h *held) {
		who, known := k.partners.Person(watch.Person)
		if !known {
			return
		}
		rows := k.addItems(nil, h, who, at, k.clock.Now(), (*choreo.Machine).ItemsFor)
		watch.Sees(rows, func(r *worklists.Row) *worklists.Sheet { return k.sheetOf(h, r, who.User, at) })
	}
}

// heldByOneGone says of an order that only the holder of a task can carry out, and which came here, why the holder
// cannot, and which orders need no holder.
func (k peoplesItems) heldByOneGone(at *choreo.Elsewhere) error {
	x, known := k.people.Get(at.Partner)
	if !known || !x.State.Gone() {
		return at
	}
	return api.Errorf(api.Refused, "task %s is held by %s, and only its holder can carry that out: %s", at.Task,
		k.people.label(at.Partner), assignment.WhyGone(x)).
		WithHint("what needs no holder is to have it done once more by another, or to leave it out: mutirao task again, mutirao task skip")
}

// reaches refuses to hand an item to somebody who cannot take it: of a task that names no role, whoever is
// not at this node, which holds it.
func (k peoplesItems) reaches(h *held, c *fact.Claim) error {
	x, ok := c.Body().(worklist.Transfer)
	if !ok || x.To == "" || len(c.About()) == 0 || k.partners.At(x.To, k.member.ID()) {
		return nil
	}
	name, _ := h.m.AttemptTask(c.About()[0])
	if t := h.m.Definition().Task(name); t == nil || t.Role != "" {
		return nil
	}
	return api.Errorf(api.Refused, "%s: its task names no role, so it is for people at %s, where %s is not", h.m.Definition().WithLabel(name),
		k.people.label(k.member.ID()), k.partners.Called(x.To))
}

// Over are those items of an instance that can be done no more, as far as is known here.
func (k peoplesItems) Over(ctx context.Context, id workflow.InstanceID, of []worklist.Item) ([]worklist.Item, error) {
	if !k.Here(id) {
		return nil, nil
	}
	var over []worklist.Item // whoever stops waiting leaves it to the shard
	err := k.peek(ctx, id, func(h *held) {
		over = slices.DeleteFunc(slices.Clone(of), func(i worklist.Item) bool { return !h.m.ItemOver(i) })
	})
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return nil, err
	}
	return append([]worklist.Item{}, over...), nil
}

// MadeBy are, of these tasks of an instance, the results of people that count, as far as is known here.
func (k peoplesItems) MadeBy(
	ctx context.Context, id workflow.InstanceID, of []workflow.TaskName,
) ([]worklist.Basis, error) {
	if !k.Here(id) {
		return nil, nil
	}
	var made []worklist.Basis // whoever stops waiting leaves it to the shard
	err := k.peek(ctx, id, func(h *held) { made = h.m.MadeBy(of) })
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return nil, err
	}
	return slices.Clone(made), nil
}

// Here reports whether something of an instance is kept here.
func (k peoplesItems) Here(id workflow.InstanceID) bool {
	_, err := k.store.Get(index.Key(id))
	return err == nil
}

// notDeciding refuses what a person says about an instance who does not decide about it; def is its definition, nil:
// not known here. That each partner may cancel it is said where that can be done.
func (k *desk) notDeciding(responsible worklist.User, def *workflow.Definition, cancellable bool) error {
	name := k.partners.Called(responsible)
	switch by, gone := administrators(def), k.nobodyAnswers(responsible); {
	case gone && by != "":
		no := api.Errorf(api.NotAllowed, "%s, who answered for the instance, is not here any more: that is decided by who has the role %s",
			name, by)
		if !cancellable {
			return no.WithHint("ask them: mutirao user list shows who has the role")
		}
		return no.WithHint("ask them (mutirao user list); each partner that takes part may cancel the instance, as the user of its own name")
	case gone:
		no := api.Errorf(api.NotAllowed, "%s, who answered for the instance, is not here any more, and its definition names no administrators: nobody decides that",
			name)
		if !cancellable {
			return no.WithHint("what is still to be done can be started once more")
		}
		return no.WithHint("each partner that takes part may cancel the instance, as the user of its own name: mutirao cancel ID")
	case by != "":
		return api.Errorf(api.NotAllowed, "%s answers for the instance: that is decided by %s, or by who has the role %s", name,
			name, by).
			WithHint("ask them: mutirao user list shows who has the role")
	case def != nil:
		return api.Errorf(api.NotAllowed, "%s answers for the instance: that is decided by %s alone, as its definition names no administrators",
			name, name).
			WithHint("ask %s; a workflow can say who else may decide: administrators, in docs/language.md", name)
	}
	return api.Errorf(api.NotAllowed, "%s answers for the instance: that is decided by %s, or by administrators that its definition names",
		name, name).
		WithHint("ask them; a workflow says who else may decide: administrators, in docs/language.md")
}

// administrators is the role of those who decide about each instance of a definition; empty: it names none, or is not
// known here.
func administrators(def *workflow.Definition) workflow.RoleName {
	if def == nil {
		return ""
	}
	return def.Administrators
}

// refusedClaim says in words for people why something about an item was not written down.
func (k peoplesItems) refusedClaim(err error, item string, def *workflow.Definition, cancellable bool) error {
	var nobody *choreo.NoPerson
	if errors.As(err, &nobody) {
		if k.partners.NowhereSignedIn(nobody.Person) {
			return api.Errorf(api.Refused, "%s is signed in at no node: no worklist would show the item",
				k.partners.Called(nobody.Person)).
				WithHint("who has the token signs in first: mutirao user sign-in TOKEN")
		}
		return api.Errorf(api.Refused, "%s", nobody.Calling(k.partners.Called(nobody.Person)))
	}
	var was *choreo.Decided
	if errors.As(err, &was) {
		return api.Errorf(api.Refused, "%s", was.Calling(k.partners.Called(was.By)))
	}
	var no *worklist.Refusal
	if !errors.As(err, &no) {
		return err
	}
	code, text := api.Refused, no.Text
	switch no.Why {
	case worklist.NotDeciding:
		return k.notDeciding(no.By, def, cancellable)
	case worklist.NotPassing:
		others := ""
		if by := administrators(def); by != "" {
			others = ", or by who has the role " + string(by)
		}
		return api.Errorf(api.NotAllowed,
			"%s: it is passed on by whoever has it, or by %s, who answers for the instance%s", item, k.partners.Called(no.By), others).
			WithHint("ask them; who has its role can take it first, where nobody has it: mutirao worklist select")
	case worklist.Kept, worklist.NotForThem, worklist.NotReady:
		if no.By == "" {
			break
		}
		text = strings.ReplaceAll(text, string(no.By), k.partners.Called(no.By))
	case worklist.Taken:
		text = k.partners.Called(no.By) + " has it"
	case worklist.Done:
		if no.By != "" {
			text = k.partners.Called(no.By) + " has done it"
		}
	case worklist.NotEntitled:
		code = api.NotAllowed
	case worklist.Unknown:
		code = api.NotFound
	}
	return api.Errorf(code, "%s: %s", item, text).WithHint("mutirao worklist shows what is free")
}

// known says in words how old something is that a partner holds; empty where it is not old.
func (k peoplesItems) known(at time.Time) string {
	now := k.clock.Now().Wall
	if at.IsZero() {
		return "nothing was heard of it yet"
	}
	if now.Sub(at) < time.Minute {
		return ""
	}
	return "as known " + show.Ago(now.Sub(at))
}
