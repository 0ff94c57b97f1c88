package datasets

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Materialised is a task that is not needed, with the values that take its place.
type Materialised struct {
	dropped fact.Dropped
	values  map[workflow.DataName]workflow.Value
}

// dataPatience is how long a holder of a data set may take to answer.
const dataPatience = 3 * time.Second

// Materialised finds the tasks of a definition whose data sets exist, fit the
// instance's input, and can be read now. missed says of others why they run all the same.
func (ds *Topic) Materialised(
	ctx context.Context, def *workflow.Definition, input map[workflow.DataName]workflow.Value,
) (found []Materialised, missed []string) {
	author, produced := ds.in.Author(def.Hash()), map[workflow.DataName]workflow.Value{}
	for _, name := range def.TopoOrder() {
		t := def.Task(name)
		if t.Produces.Name == "" {
			continue
		}
		holders := ds.holders(t.Produces.Name, author)
		if len(holders) == 0 {
			continue
		}
		x, err := ds.read(ctx, def, t, holders, beginning{input, produced})
		if err != nil {
			missed = append(missed,
				fmt.Sprintf("task %s is not dropped although data set %s exists: %v", name, t.Produces.Name, err))
			continue
		}
		maps.Copy(produced, x.values)
		found = append(found, *x)
	}
	return found, missed
}

// AndMissed adds to a refused start which data sets did not help: a user who
// registered one expects that nobody need be able to produce it.
func AndMissed(err error, missed []string) error {
	var e *api.Error
	if len(missed) == 0 || !errors.As(err, &e) || e.Code != api.Refused {
		return err
	}
	with := *e
	with.Message += "\n" + strings.Join(missed, "\n")
	return &with
}

// offered is a data set at a partner.
type offered struct {
	membership.DataSet
	at   membership.Partner
	self bool
}

// holders are the data sets of a name at the partners that are here, in the order in which
// they are to be read for a workflow of an author: what users registered, and what was made
// for that author or for those whom this node trusts, before what was made for others; of
// these what this node has, then by the names of the partners.
func (ds *Topic) holders(name string, author workflow.PartnerID) []offered {
	var out []offered
	for _, x := range ds.in.Members.All() {
		for _, d := range x.Record.DataSets {
			if self := x.Record.Partner == ds.in.Self; d.Name == name && (self || x.State == membership.Active) {
				out = append(out, offered{d, x, self})
			}
		}
	}
	trusted := map[workflow.PartnerID]bool{}
	for _, d := range out {
		trusted[d.Author] = ds.trusts(d.Author)
	}
	late := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	foreign := func(d offered) int { return late(d.Author != "" && d.Author != author && !trusted[d.Author]) }
	slices.SortFunc(out, func(a, b offered) int {
		return cmp.Or(foreign(a)-foreign(b), late(!a.self)-late(!b.self),
			cmp.Compare(a.at.Record.Name(), b.at.Record.Name()),
			cmp.Compare(a.at.Record.Partner, b.at.Record.Partner),
			late(a.Author != author)-late(b.Author != author), cmp.Compare(a.Author, b.Author))
	})
	return out
}

// read gets the values of a task's data set from the first holder that has what
// fits, and answers.
func (ds *Topic) read(
	ctx context.Context, def *workflow.Definition, t *workflow.Task, holders []offered, b beginning,
) (*Materialised, error) {
	if ok, why := partition.Droppable(def, t); !ok {
		return nil, errors.New(why)
	}
	var errs []error
	for _, h := range holders {
		err := ds.fits(def, t, h, b)
		var content []byte
		if err == nil {
			content, err = ds.content(ctx, h)
		}
		if err == nil {
			var values map[workflow.DataName]workflow.Value
			if values, err = valuesFor(def, t, content); err == nil {
				dropped := fact.Dropped{Task: t.Name, DataSet: h.Name, Hash: h.Hash, Holder: h.at.Record.Partner}
				return &Materialised{dropped, values}, nil
			}
		}
		errs = append(errs, fmt.Errorf("from %s: %w", ds.in.Members.Label(h.at.Record.Partner), err))
	}
	return nil, errors.Join(errs...)
}

// reads reports whether this node is among the readers of a data set.
func (ds *Topic) reads(readers []string) bool {
	return ds.MayRead(ds.in.Self, readers)
}

// fits says why a data set is of no use in place of a task, before it is asked for.
func (ds *Topic) fits(def *workflow.Definition, t *workflow.Task, d offered, b beginning) error {
	now := ds.in.Clock.Now().Wall.UnixMilli()
	oldest := until(d.Made, t.Produces.Valid)
	switch {
	case d.Until != 0 && now >= d.Until: // of what helps nobody any more it does not matter for whom it is
		return fmt.Errorf("it was valid until %s", time.UnixMilli(d.Until).UTC().Format(time.RFC3339))
	case !d.self && !ds.reads(d.Readers):
		return fmt.Errorf("it is for %s", strings.Join(d.Readers, ", "))
	case d.Made != 0 && oldest != 0 && now >= oldest:
		return fmt.Errorf("it was made at %s, and the definition takes what is at most %s old",
			time.UnixMilli(d.Made).UTC().Format(time.RFC3339), workflow.FormatDuration(t.Produces.Valid))
	case len(d.From) == 0:
		return nil
	}
	values := make(map[workflow.DataName]workflow.Value)
	for _, name := range partition.MadeFrom(t) {
		v, known := b.value(def, name)
		if !known {
			return fmt.Errorf("a task made it from %s, which is not known yet", name)
		}
		if v != nil {
			values[name] = v
		}
	}
	if !bytes.Equal(d.From, madeFrom(values)) {
		return errors.New("a task made it from other data")
	}
	return nil
}

// beginning is the data that an instance begins with: its input, and what was
// produced by tasks that are dropped.
type beginning struct {
	input, produced map[workflow.DataName]workflow.Value
}

// value is what every task will read under a name; nil: nothing. It is not known
// where a task will write it.
func (b beginning) value(def *workflow.Definition, name workflow.DataName) (v workflow.Value, known bool) {
	if v, known = b.produced[name]; known {
		return v, true
	}
	if len(def.Writers(name)) > 0 {
		return nil, false
	}
	if v, given := b.input[name]; given {
		return v, true
	}
	if decl := declaration(def, name); decl != nil {
		return decl.Default, true
	}
	return nil, true
}

// content is what a holder has, checked against what its record says.
func (ds *Topic) content(ctx context.Context, from offered) (content []byte, err error) {
	id := []byte(dataID(from.Name, from.Author))
	if from.self {
		content, err = ds.Give(ds.in.Self, id)
	} else {
		at := from.at.Record
		content, err = ds.in.Partner.Request(ctx, at.Partner, at.Addresses, Protocol, id, dataPatience)
	}
	if err == nil && (len(content) > MaxData || sha256.Sum256(content) != from.Hash) {
		err = errors.New("what came is not what its record says: it is being changed")
	}
	return content, err
}

// valuesIn reads a data set that is an object of values by their names; nil: it
// is not one.
func valuesIn(content []byte) map[string]any {
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
	var out map[string]any
	if d.Decode(&out) != nil || d.More() {
		return nil
	}
	return out
}

// valuesFor are the values that a data set gives to what a task would write:
// all of it. A data set without their names is the only value itself, as text.
func valuesFor(
	def *workflow.Definition, t *workflow.Task, content []byte,
) (map[workflow.DataName]workflow.Value, error) {
	given := valuesIn(content)
	out := map[workflow.DataName]workflow.Value{}
	for _, name := range t.Out {
		d := declaration(def, name)
		raw, has := given[string(name)]
		var v workflow.Value
		var err error
		switch {
		case has && raw == nil, !has && len(t.Out) != 1:
			return nil, fmt.Errorf("it has no value for %s, which the task would write", name)
		case !has:
			v, err = workflow.ParseValue(d, strings.TrimSuffix(string(content), "\n"))
		default:
			v, err = workflow.CheckValue(d, raw)
		}
		if err != nil {
			return nil, err
		}
		out[name] = v
	}
	return out, nil
}

// TakenUp enters a dropped task into a genesis, and says so.
func (x Materialised) TakenUp(annex *fact.Annex, input map[workflow.DataName]workflow.Value) string {
	annex.Dropped = append(annex.Dropped, x.dropped)
	maps.Copy(input, x.values)
	return fmt.Sprintf("task %s is dropped: its only purpose, data set %s, exists", x.dropped.Task, x.dropped.DataSet)
}

// Dropped are the tasks that are not needed.
func Dropped(found []Materialised) []workflow.TaskName {
	out := make([]workflow.TaskName, len(found))
	for i, x := range found {
		out[i] = x.dropped.Task
	}
	return out
}

// declaration is what a definition says of data; nil: nothing.
func declaration(def *workflow.Definition, name workflow.DataName) *workflow.DataDecl {
	i := slices.IndexFunc(def.Data, func(d workflow.DataDecl) bool { return d.Name == name })
	if i < 0 {
		return nil
	}
	return &def.Data[i]
}
