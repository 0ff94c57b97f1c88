package filing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/files"
	"github.com/mutirao-mesh/mutirao/node/index"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// Put keeps a file at this node, to be given to an instance within a day.
func (k *Desk) Put(ctx context.Context, name string, content io.Reader) (*api.File, error) {
	if k.Files == nil {
		return nil, ErrNone
	}
	f, err := k.Files.Put(ctx, name, content, k.Clock.Now().Wall)
	if err != nil {
		no := api.Errorf(api.Refused, "file %s is not kept: %v", name, err)
		switch {
		case !files.IsFull(err):
			return nil, no
		case k.Files.ByLimit():
			return nil, no.WithHint("raise limits.files in config.yaml and start the node again, or wait until instances that " +
				"have files are over (mutirao doctor says more)")
		}
		return nil, no.WithHint("free space on the disk of the node's folder (mutirao doctor says more)")
	}
	return &api.File{Name: f.Name, Size: f.Size, Value: f.String()}, nil
}

// Describe shows a file that is among an instance's data.
func (k *Desk) Describe(h *Held, item workflow.DataName, value string) *api.File {
	f, err := workflow.ParseFile(value)
	if err != nil {
		return nil
	}
	out := &api.File{Name: f.Name, Size: f.Size, Value: value}
	if k.Files == nil {
		return out
	}
	_, out.Here = k.Files.Path(f)
	if !out.Here {
		out.OnlyFor = k.OnlyFor(h, k.Self, "", item, value)
	}
	if _, _, waited := k.Files.Progress(h.M.Instance(), f); waited && out.OnlyFor == nil {
		out.Waits = k.WaitsFor(h, item, f)
	}
	if !out.Here && out.Waits == "" {
		out.Gone = k.gone(slices.DeleteFunc(h.M.GivenBy(item, value), func(p workflow.PartnerID) bool {
			return h.M.BroughtTo(p, item, value) // its content comes from whoever brought it
		}))
	}
	out.OnlyHere = k.FileOnlyHere(h, item, f)
	return out
}

// gone are the names of those who gave a file, if none of them is active any more.
func (k *Desk) gone(by []workflow.PartnerID) (names []string) {
	for _, p := range by {
		if p == k.Self || !k.People.Gone(p) {
			return nil
		}
		names = append(names, k.Partners.Called(worklist.User(p)))
	}
	return names
}

// FileOnlyHere reports whether the content of a file is here, was given at this node, and is with no other that may
// read it, as far as is known. Who took a result that brought the file may not have its content yet.
func (k *Desk) FileOnlyHere(h *Held, item workflow.DataName, f workflow.File) bool {
	by := h.M.GivenBy(item, f.String())
	return slices.Contains(by, k.Self) && k.OnlyHere(f) &&
		!slices.ContainsFunc(by, func(p workflow.PartnerID) bool {
			return p != k.Self && h.M.Participates(p) && !h.M.BroughtTo(p, item, f.String())
		})
}

// OnlyHere reports whether a file is here that no partner is known to have whole.
func (k *Desk) OnlyHere(f workflow.File) bool {
	return k.Has(f) && !k.Files.Elsewhere(f)
}

// Elsewhere reports whether a partner has said that it has all of a file.
func (k *Desk) Elsewhere(f workflow.File) bool { return k.Files != nil && k.Files.Elsewhere(f) }

// Got notes that a partner says that it has all of a file.
func (k *Desk) Got(f workflow.File, by workflow.PartnerID) {
	if k.Files != nil {
		k.Files.Gave(f, by)
	}
}

// Alone are the files that people gave at this node with tasks of an instance, and that are with no other partner yet.
func (k *Desk) Alone(h *Held) (out []index.Alone) {
	if !h.Def.ForPeople() || !k.Concerns(h.Def) {
		return nil
	}
	for _, x := range h.M.HandedHere() {
		if f, err := workflow.ParseFile(x.File); err == nil && k.FileOnlyHere(h, x.Item, f) {
			out = append(out, index.Alone{
				Item: x.Item, File: x.File, Task: x.Task.Name, User: x.User, At: x.Time, Readers: k.readers(h, x.Item, f),
			})
		}
	}
	return out
}

// readers are the other partners that take part in an instance and may read a file.
func (k *Desk) readers(h *Held, item workflow.DataName, f workflow.File) (out []workflow.PartnerID) {
	for _, p := range h.M.Participants() {
		if p != k.Self && k.mayRead(h, p, "", item, f) == nil {
			out = append(out, p)
		}
	}
	return out
}

// Get gives the content of a file that is among an instance's data.
func (k *Desk) Get(ctx context.Context, ref string, item workflow.DataName) (*api.File, io.ReadCloser, error) {
	f, w, err := k.wanted(ctx, ref, item)
	if err != nil {
		return nil, nil, err
	}
	r, err := k.read(ctx, f, w)
	if err != nil {
		return nil, nil, err
	}
	return &api.File{Name: f.Name, Size: f.Size, Value: f.String(), Here: true}, r, nil
}

// wanted is the file that a data item of an instance is now, if this node may read it.
func (k *Desk) wanted(
	ctx context.Context, ref string, item workflow.DataName,
) (f workflow.File, w files.Want, err error) {
	if k.Files == nil {
		return f, w, ErrNone
	}
	var problem error
	err = k.Instances.Look(ctx, ref, func(h *Held) {
		d, v := h.Def.Datum(item), h.M.ValueOf(item)
		switch {
		case d == nil:
			problem = k.NoData(h.Def, string(item))
		case d.Type != workflow.TypeFile:
			problem = api.Errorf(api.Invalid, "%s is no file but %s", item, d.Type)
		case v == nil:
			problem = api.Errorf(api.NotFound, "nobody has given file %s yet", item)
		default:
			if f, problem = workflow.ParseFile(fmt.Sprint(v)); problem == nil {
				problem = k.notForHere(h, item, f)
			}
			w = k.Want(h.M.Instance(), h.By, item, f)
		}
	})
	if err == nil && problem != nil && !errors.As(problem, new(*api.Error)) {
		problem = api.Judge(api.NotAllowed, problem)
	}
	return f, w, errors.Join(err, problem)
}

// notForHere refuses a file that this node may not read, and says by which item a user here gets it who may; nil: it
// may.
func (k *Desk) notForHere(h *Held, item workflow.DataName, f workflow.File) error {
	err := k.mayRead(h, k.Self, "", item, f)
	if err == nil {
		return nil
	}
	var no *api.Error
	if !errors.As(api.Judge(api.NotAllowed, err), &no) {
		return err
	}
	return no.WithHint("%s", k.withItem(h, item, f))
}

// withItem says how people get a file that this node may not read by itself: by which item a user here who may, or else
// that whoever may does.
func (k *Desk) withItem(h *Held, item workflow.DataName, f workflow.File) string {
	for _, v := range h.M.Items() {
		u := string(v.Holder)
		if u == "" || !slices.Contains(v.Task.In, item) || k.mayRead(h, k.Self, u, item, f) != nil {
			continue
		}
		name := k.Partners.Called(v.Holder)
		return fmt.Sprintf("%s gets it with the item: mutirao worklist open %s --to DIR --user %s", name,
			worklists.ItemID(h.M.Instance(), v.Item), name)
	}
	return "whoever may read it and has a task that needs it gets it with the item: mutirao worklist open ITEM --to DIR"
}

// WaitsFor says what a file waits for that a task of an instance reads; empty: it is here. What this node may not read
// by itself, and a person's task here reads, comes with the word of whoever has that: it is said so, and not who
// refuses it.
func (k *Desk) WaitsFor(h *Held, item workflow.DataName, f workflow.File) string {
	words := k.Files.Waits(h.M.Instance(), f)
	if words == "" || len(h.M.PeopleRead(item)) == 0 {
		return words
	}
	if err := k.mayRead(h, k.Self, "", item, f); err != nil && !errors.Is(err, files.ErrNotHere) {
		return k.withItem(h, item, f)
	}
	return words
}

// Needed is how many bytes the files have that a task reads, as far as they were given, and whether all of them are
// here that a person at a partner's node may read.
func (k *Desk) Needed(
	h *Held, t *workflow.Task, person worklist.User, at workflow.PartnerID,
) (size int64, here bool) {

	here = true
	if len(t.In) == 0 || !HasFiles(h.Def) {
		return 0, true
	}
	for _, name := range t.In {
		v := h.M.ValueOf(name)
		if d := h.Def.Datum(name); v == nil || d == nil || d.Type != workflow.TypeFile {
			continue
		}
		f, err := workflow.ParseFile(fmt.Sprint(v))
		if err != nil {
			continue
		}
		size += f.Size
		here = here && (k.Has(f) || k.OnlyFor(h, at, string(person), name, f.String()) != nil)
	}
	return size, here
}

// Has reports whether all of a file is here.
func (k *Desk) Has(f workflow.File) bool {
	if k.Files == nil {
		return false
	}
	_, here := k.Files.Path(f)
	return here
}

// Lacks is how many bytes of a file are not here.
func (k *Desk) Lacks(f workflow.File) int64 {
	if k.Files == nil {
		return f.Size
	}
	here, _ := k.Files.Have(f)
	return f.Size - here
}

// NoRoom is how many bytes of room there lack here for what is missing of files that items of this node's users need; 0:
// none, as far as is known.
func (k *Desk) NoRoom(of []worklists.Content) int64 {
	if k.Files == nil || len(of) == 0 {
		return 0
	}
	coming := make([]files.Coming, len(of))
	for i, c := range of {
		coming[i] = files.Coming{File: c.File, By: string(k.Payer(c))}
	}
	lacks, _, err := k.Files.Lacks(coming)
	if err != nil {
		k.Log.Warn("how much room there is for files is not known", "error", err)
	}
	return lacks
}

// DescribeSheet says of the data of an item that are files where their content is; givers are by data who gave them.
func (k *Desk) DescribeSheet(sheet *api.ItemSheet, givers map[string][]workflow.PartnerID) {
	lack, gone := 0, 0
	for i, x := range sheet.Data {
		if x.Type != string(workflow.TypeFile) || x.Value == nil {
			continue
		}
		f, err := workflow.ParseFile(fmt.Sprint(x.Value))
		if err != nil {
			continue
		}
		of := &api.File{Name: f.Name, Size: f.Size, Value: f.String(), Here: k.Has(f)}
		if !of.Here && x.File != nil {
			of.OnlyFor = x.File.OnlyFor
		}
		if !of.Here && of.OnlyFor == nil {
			lack++
			if of.Gone = k.gone(givers[x.Name]); of.Gone != nil {
				gone++
			}
		}
		sheet.Data[i].File = of
	}
	if sheet.Coming != nil && lack > 0 && gone == lack {
		sheet.Coming.Advice = api.AdviceGone
	}
}

// OfItem gives the content of a file that an item needs.
func (k *Desk) OfItem(
	ctx context.Context, q api.ItemQuery, name string,
	find func(context.Context, api.ItemQuery, string) (worklists.Content, error),
) (*api.File, io.ReadCloser, error) {
	c, err := find(ctx, q, name)
	if err != nil {
		return nil, nil, err
	}
	if k.Files == nil {
		return nil, nil, ErrNone
	}
	r, err := k.read(ctx, c.File, k.contentWant(c))
	if err != nil {
		return nil, nil, err
	}
	return &api.File{Name: c.File.Name, Size: c.File.Size, Value: c.File.String(), Here: true}, r, nil
}
