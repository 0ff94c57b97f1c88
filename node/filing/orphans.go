package filing

import (
	"fmt"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/node/files"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// A file that no task to come reads is fetched by nobody. While a partner that gave it is there, or may come back,
// so is its content. When all who gave it are gone for good, or their disk has lost it, one that takes part and may
// read it looks after it: it fetches it from whoever has it, or finds that nobody has it any more, which people see.

// remembered is for how long after the end of an instance its files are looked after: so long everybody keeps them
// (node/files). Later nobody can tell what is lost from what was not needed any more.
const remembered = 24 * time.Hour

// Orphans are the files among the data of an instance that this node looks after, as nobody who gave them is left.
func (k *Desk) Orphans(h *Held) (out []files.Ref) {
	if !k.Concerns(h.Def) {
		return nil
	}
	over := k.forgotten(h)
	for _, d := range h.M.Definition().Data {
		text, given := h.M.ValueOf(d.Name).(string)
		if d.Type != workflow.TypeFile || !given {
			continue
		}
		f, err := workflow.ParseFile(text)
		if err != nil || k.Has(f) || over && k.Files.Lost(h.M.Instance(), f) == nil {
			continue
		}
		by := h.M.GivenBy(d.Name, text)
		left := func(p workflow.PartnerID) bool { return p != k.Self && !k.People.GoneForGood(p) }
		if len(by) > 0 && !slices.ContainsFunc(by, left) && k.looksAfter(h, d.Name, f) {
			out = append(out, files.Ref{Item: d.Name, File: f})
		}
	}
	return out
}

// forgotten reports whether an instance is over for so long that its files may have been removed.
func (k *Desk) forgotten(h *Held) bool {
	switch h.M.Overall() {
	case workflow.InstanceSucceeded, workflow.InstanceFailed, workflow.InstanceCancelled:
		return k.Clock.Now().Wall.Sub(time.UnixMilli(h.Ended)) > remembered
	}
	return false
}

// looksAfter reports whether it is this node that looks after a file: who began the instance or, if that one is gone,
// the first of the others who may read it.
func (k *Desk) looksAfter(h *Held, item workflow.DataName, f workflow.File) bool {
	for _, p := range append([]workflow.PartnerID{h.By}, h.M.Participants()...) {
		if (p == k.Self || !k.People.Gone(p)) && k.mayRead(h, p, "", item, f) == nil {
			return p == k.Self
		}
	}
	return false
}

// LostData are the files among the data of an instance that nobody has any more, and that no task here reads, as far
// as this node looks after them, or was brought them. Its owner calls it, as FetchAhead.
func (k *Desk) LostData(h *Held) (out []Lost) {
	if !k.Concerns(h.Def) {
		return nil
	}
	refs := k.Orphans(h)
	if len(refs) > 0 {
		k.FetchAhead(h) // of an instance that has ended nobody did when its giver went
	}
	for _, r := range h.M.FilesBrought() {
		refs = append(refs, files.Ref{Item: r.Item, File: r.File})
	}
	var reads []files.Ref
	for _, r := range h.M.FilesToRead() {
		reads = append(reads, files.Ref{Item: r.Item, File: r.File})
	}
	for i, r := range refs {
		read := slices.Contains(reads, r)
		if is := k.Files.Lost(h.M.Instance(), r.File); is != nil && !read && !slices.Contains(refs[:i], r) {
			out = append(out, Lost{Item: r.Item, What: fmt.Sprintf("%s: %s", r.Item, is.Why), At: is.At})
		}
	}
	return out
}

// Lost is a file among an instance's data that nobody has any more.
type Lost struct {
	Item workflow.DataName
	What string // for people
	At   time.Time
}
