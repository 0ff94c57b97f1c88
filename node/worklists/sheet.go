package worklists

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// A person who does an item needs to know what it is about. The partner that holds the item says so to
// whoever may take it; the values of the data that the task reads it says to whoever has it.

const (
	// maxSheet bounds the values of a sheet, as JSON, in bytes, and maxSheetText its texts; what is larger is
	// left out. maxFields bounds how much of each kind there is.
	maxSheet     = 64 << 10
	maxSheetText = 16 << 10
	maxFields    = 500
	// MaxGivers is how many partners are named that gave one file.
	MaxGivers = 8
)

// Sheet is what a person needs to do an item.
type Sheet struct {
	Doc    string        `json:"doc,omitempty"`
	Fields []api.Field   `json:"fields,omitempty"`
	Data   []api.Datum   `json:"data,omitempty"`
	After  []api.Earlier `json:"after,omitempty"`
	// Givers are, by data that are files, the partners that gave them: their content can be fetched
	// there as well as from whoever holds the item.
	Givers map[string][]workflow.PartnerID `json:"givers,omitempty"`
	// Brought are those of them that only took a person's result which brought it from another node: they may have its
	// content by now.
	Brought map[string][]workflow.PartnerID `json:"brought,omitempty"`
	// Application is with what it is done; nil: without any. Whether it is here, each device knows of itself.
	Application *api.ItemApplication `json:"application,omitempty"`
	// Asked is the word by which whoever asks for the sheet locked the item at the same node (wire.Spoken); empty: it was not
	// locked there, or its holder does not say.
	Asked []byte `json:"asked,omitempty"`
}

// application is with what an item is done, and whether this device has that; nil: without any.
func (d *Desk) application(s *Sheet) *api.ItemApplication {
	if s == nil || s.Application == nil {
		return nil
	}
	a := *s.Application
	a.Here = d.in.Runs(a.Name)
	return &a
}

// checkApplication says what no partner would truly answer of an application.
func checkApplication(a *api.ItemApplication) error {
	if a == nil {
		return nil
	}
	if !workflow.ValidName(string(a.Name)) || a.Size < 0 ||
		len(a.OS)+len(a.CPU)+len(a.Installer) > maxSheetText {
		return errors.New("an application that there cannot be")
	}
	return nil
}

// Bounded leaves out of a sheet what is too large to be sent along.
func (s *Sheet) Bounded() *Sheet {
	room, text := maxSheet, maxSheetText
	takes := func(v any, room *int) bool {
		b, err := json.Marshal(v)
		if err != nil || len(b) > *room {
			return false
		}
		*room -= len(b)
		return true
	}
	if !takes(s.Doc, &text) {
		s.Doc = ""
	}
	s.Fields, s.Data, s.After = s.Fields[:min(len(s.Fields), maxFields)], s.Data[:min(len(s.Data), maxFields)],
		s.After[:min(len(s.After), maxFields)]
	for i := range s.Data {
		d := &s.Data[i]
		if only := readersOf(d); only != nil {
			d.File = &api.File{OnlyFor: only} // all else is for this node to find out
		} else {
			d.File = nil
		}
		if !takes(d.Doc, &text) {
			d.Doc = ""
		}
		if !takes(d.Value, &room) {
			d.Value, d.Large = nil, true
		}
	}
	for i := range s.Fields {
		f := &s.Fields[i]
		if !takes(f.Doc, &text) {
			f.Doc = ""
		}
		if !takes(f.Value, &room) {
			f.Value = nil
		}
		if !takes(f.Enum, &room) {
			f.Enum = nil // whatever is typed, the holder checks it
		}
	}
	return s
}

// readersOf are those who alone may read a file, where whoever has the item is not among them; nil: it is.
func readersOf(d *api.Datum) []string {
	if d.File == nil {
		return nil
	}
	return d.File.OnlyFor
}

// fieldTypes are those of what can be set.
var fieldTypes = []workflow.DataType{
	workflow.TypeString, workflow.TypeInteger, workflow.TypeNumber, workflow.TypeBoolean, workflow.TypeTime,
	workflow.TypeList, workflow.TypeMap,
	workflow.TypeFile, workflow.TypeQuery,
}

// check says what no partner would truly answer: forms are made of it.
func (s *Sheet) check() error {
	if err := checkApplication(s.Application); err != nil {
		return err
	}
	for _, givers := range []map[string][]workflow.PartnerID{s.Givers, s.Brought} {
		if len(givers) > maxFields {
			return fmt.Errorf("a sheet with givers of %d data", len(givers))
		}
		for _, of := range givers {
			if len(of) > MaxGivers || slices.ContainsFunc(of,
				func(p workflow.PartnerID) bool { return len(p) > workflow.MaxName }) {
				return errors.New("a sheet with givers that there cannot be")
			}
		}
	}
	if len(s.Fields) > maxFields || len(s.Data) > maxFields || len(s.After) > maxFields {
		return fmt.Errorf("a sheet of %d fields, %d data and %d tasks", len(s.Fields), len(s.Data), len(s.After))
	}
	for _, f := range s.Fields {
		if !workflow.ValidName(f.Name) || !labelled(f.Label) || !slices.Contains(fieldTypes, workflow.DataType(f.Type)) {
			return errors.New("a field that there cannot be")
		}
	}
	if slices.ContainsFunc(s.After, func(a api.Earlier) bool { return !labelled(a.Label) }) {
		return errors.New("a task with a label that there cannot be")
	}
	if slices.ContainsFunc(s.Data, func(d api.Datum) bool { return !labelled(d.Label) }) {
		return errors.New("a data item with a label that there cannot be")
	}
	for i := range s.Data {
		only := readersOf(&s.Data[i])
		odd := func(r string) bool { return !workflow.ValidName(r) }
		if len(only) > workflow.MaxReaders || slices.ContainsFunc(only, odd) {
			return errors.New("a file with readers that there cannot be")
		}
	}
	return nil
}

// declared is what a field says of its data, as far as a sheet says it. Values that it cannot read are no bound: the
// holder knows them.
func declared(f *api.Field) workflow.DataDecl {
	d := workflow.DataDecl{Name: workflow.DataName(f.Name), Type: workflow.DataType(f.Type), Min: f.Min, Max: f.Max}
	var only []workflow.Value
	for _, e := range f.Enum {
		v, err := workflow.CheckValue(&workflow.DataDecl{Name: d.Name, Type: d.Type}, e)
		if err != nil {
			return d
		}
		only = append(only, v)
	}
	d.Enum = only
	return d
}

// names are the data that an item reads or sets.
func (s *Sheet) names() (out []string) {
	for _, f := range s.Fields {
		out = append(out, f.Name)
	}
	for _, x := range s.Data {
		out = append(out, x.Name)
	}
	return out
}

// gave are, by data that are files, those of the givers who gave them themselves.
func (s *Sheet) gave() map[string][]workflow.PartnerID {
	out := map[string][]workflow.PartnerID{}
	for name, of := range s.Givers {
		out[name] = slices.DeleteFunc(slices.Clone(of), func(p workflow.PartnerID) bool {
			return slices.Contains(s.Brought[name], p)
		})
	}
	return out
}

// Sheet shows an item with all that is needed to do it, and, by data that are files, the partners that gave them.
func (d *Desk) Sheet(
	ctx context.Context, q api.ItemQuery,
) (out *api.ItemSheet, givers map[string][]workflow.PartnerID, err error) {
	who, err := d.in.People.Who(q.User)
	if err != nil {
		return nil, nil, err
	}
	of, err := d.locate(ctx, who, []string{q.Item}, true)
	if err != nil {
		return nil, nil, err
	}
	r := of[0]
	s := d.askSheet(ctx, who, r)
	var signed *api.PersonSignature // of what waits here
	if k := d.keptFor(who.ID, r.ID()); k != nil {
		if c, err := wire.DecodeSpoken(k.Word); err == nil {
			signed = users.Signed(c.Word)
		}
		if s == nil {
			s = d.sheetUnheard(ctx, who, r, k.more())
		}
		r.Done, r.PutOff = r.Done || len(k.Word) > 0 && !k.putOff, r.PutOff || k.putOff
	}
	if len(r.Awaits) > 0 {
		s = s.withSet(d.setHere(who, r))
		r = d.lessDone(ctx, who, r)
	}
	out = &api.ItemSheet{
		Item: d.item(who, r), Whole: s != nil, Fields: []api.Field{}, Data: []api.Datum{}, After: []api.Earlier{},
	}
	out.Doc, out.Item.Signed = out.Item.Doc, signed
	if s != nil {
		out.Doc, out.Fields, out.Data, out.After = s.Doc, append(out.Fields, s.Fields...), append(out.Data, s.Data...),
			append(out.After, s.After...)
		out.Coming, out.Application = d.coming(who, r, s), d.application(s)
		givers = s.gave()
	}
	return out, givers, nil
}

// sheetUnheard is what is needed to do an item whose holder cannot be asked now: as it is kept. If the holder did not
// say yet that the item is ready, though this node knows so, it is as is known here.
func (d *Desk) sheetUnheard(ctx context.Context, who users.Who, r *Row, m more) *Sheet {
	if len(r.Awaits) > 0 {
		return m.Sheet
	}
	if len(m.Awaits) > 0 {
		_, s, err := d.in.Instances.Sheet(ctx, worklist.User(who.ID), d.in.Self, r.Instance, r.ID())
		if err == nil {
			return s
		}
	}
	return m.Sheet.filled(m.Set)
}

// lessDone is an item as it waits for what was not done here, nor by anybody as is known here: the rest is as good as
// done to its user, who can do it now.
func (d *Desk) lessDone(ctx context.Context, who users.Who, r *Row) *Row {
	done, _, err := d.doneFor(ctx, who, r)
	if err != nil || r.Done || r.PutOff {
		return r
	}
	less := *r
	less.Awaits = slices.DeleteFunc(slices.Clone(r.Awaits), func(t workflow.TaskName) bool {
		_, is := done[t]
		return is
	})
	if len(less.Awaits) == 0 {
		less.HeldUp = ""
	}
	return &less
}

// askSheet asks the holder of an item what is needed to do it; nil: it does not say.
func (d *Desk) askSheet(ctx context.Context, who users.Who, r *Row) *Sheet {
	s, _ := d.askSheetOf(ctx, who, r)
	return s
}

// askSheetOf is askSheet, with the word by which the item was locked at this device (wire.Spoken); empty: it was not, or
// its holder does not say.
func (d *Desk) askSheetOf(ctx context.Context, who users.Who, r *Row) (s *Sheet, asked []byte) {
	if s = d.sheetNow(ctx, who, r); s != nil {
		s.Asked, asked = nil, s.Asked
	}
	return s, asked
}

// sheetNow is what the holder of an item says is needed to do it; nil: it does not say.
func (d *Desk) sheetNow(ctx context.Context, who users.Who, r *Row) *Sheet {
	if r.At == d.in.Self {
		_, s, err := d.in.Instances.Sheet(ctx, worklist.User(who.ID), d.in.Self, r.Instance, r.ID())
		if err != nil {
			return nil
		}
		return s
	}
	if !d.in.Peers.Up(r.At) {
		return nil
	}
	req, err := wire.EncodeItem(wire.Item{User: who.ID, Instance: r.Instance, Item: r.ID()})
	if err != nil {
		return nil
	}
	b, err := d.in.Peers.Request(ctx, r.At, nil, ProtocolItem, req, listPatience)
	if err != nil {
		return nil // it refuses, is of an earlier version, or just gone
	}
	var s Sheet
	if err = json.Unmarshal(b, &s); err == nil {
		err = s.check()
	}
	if err != nil {
		d.in.Peers.Refuse("items-malformed", r.At)
		d.in.Log.Warn("what is needed for an item is refused", "from", r.At, "error", err)
		return nil
	}
	return s.Bounded()
}

// AnswerItem answers a partner what a person at its node needs to do an item that this node holds.
func (d *Desk) AnswerItem(from workflow.PartnerID, req []byte) ([]byte, error) {
	q, err := wire.DecodeItem(req)
	if err != nil {
		return nil, err
	}
	if err := d.admit(from, q.User); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), listPatience)
	defer cancel()
	row, s, err := d.in.Instances.Sheet(ctx, worklist.User(q.User), from, q.Instance, q.Item)
	if err == nil && row.At != d.in.Self {
		err = errors.New("another partner holds it")
	}
	if err != nil {
		d.in.Log.Debug("an item is not shown to a partner", "to", from, "error", err)
		return nil, errCannot
	}
	return json.Marshal(s)
}
