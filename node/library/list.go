package library

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// list are the listed definitions, by name, newest version first, each with its author.
func (d *Definitions) list() []*listing {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []*listing
	for name, all := range d.named {
		o := d.ownerLocked(name, nil)
		for _, l := range all {
			if d.shownLocked(l, o) != nil {
				out = append(out, l)
			}
		}
	}
	slices.SortFunc(out, func(a, b *listing) int {
		return cmp.Or(cmp.Compare(a.about.Name, b.about.Name), cmp.Compare(b.about.Version, a.about.Version),
			b.about.Added.Compare(a.about.Added), bytes.Compare(a.hash[:], b.hash[:]))
	})
	return out
}

// Resolve finds what NAME, NAME@VERSION and NAME@HASHPREFIX name, as find does.
func (d *Definitions) Resolve(ref string) (workflow.Hash, error) {
	l, err := d.find(ref)
	if err != nil {
		return workflow.Hash{}, err
	}
	if l.about.Kind != "" {
		return workflow.Hash{}, api.Errorf(api.Refused, "%s is no workflow: definitions take it", l.about.Name)
	}
	return l.hash, nil
}

// Piece is the piece that is listed under a name, as definitions take it; nil: none is.
func (d *Definitions) Piece(kind workflow.PieceKind, name string) *workflow.Piece {
	l, err := d.find(string(kind) + "/" + name)
	if err != nil {
		return nil
	}
	e, err := d.get(l.hash)
	if err != nil {
		return nil
	}
	return e.piece
}

// find resolves NAME, NAME@VERSION and NAME@HASHPREFIX: of several editions the one
// that was added last.
func (d *Definitions) find(ref string) (*listing, error) {
	all, err := d.editions(ref)
	if err != nil {
		return nil, err
	}
	return d.newest(all), nil
}

// newest is the edition that was added last, by the moment that its author signed: when
// each came here would differ from node to node.
func (d *Definitions) newest(all []*listing) *listing {
	if len(all) == 1 {
		return all[0]
	}
	at := map[*listing]trust.Wall{}
	for _, l := range all {
		if c := d.shown(l); c != nil {
			at[l] = c.at()
		}
	}
	return slices.MaxFunc(all, func(a, b *listing) int {
		return cmp.Or(cmp.Compare(at[a], at[b]), cmp.Compare(a.about.Version, b.about.Version),
			bytes.Compare(a.hash[:], b.hash[:]))
	})
}

// ref is how one of several editions is named: by its version or, where another has the
// same, and of pieces, which have none, by the beginning of its hash.
func (l *listing) ref(editions []*listing) string {
	if l.about.Kind != "" {
		return fmt.Sprintf("%s@%.10s", l.about.Name, l.about.Hash)
	}
	for _, o := range editions {
		if o != l && o.about.Version == l.about.Version {
			return fmt.Sprintf("%s@%.10s", l.about.Name, l.about.Hash)
		}
	}
	return fmt.Sprintf("%s@%d", l.about.Name, l.about.Version)
}

// editions are the listed definitions that NAME, NAME@VERSION or NAME@HASHPREFIX
// names: at least one.
func (d *Definitions) editions(ref string) ([]*listing, error) {
	name, at, pinned := strings.Cut(ref, "@")
	var found []*listing
	var names, labels, versions []string
	for _, l := range d.list() {
		if string(l.about.Name) != name {
			names, labels = append(names, string(l.about.Name)), append(labels, l.about.Label)
			continue
		}
		if !pinned || strconv.Itoa(l.about.Version) == at || (len(at) >= 4 && strings.HasPrefix(l.about.Hash, at)) {
			found = append(found, l)
		} else {
			versions = append(versions, fmt.Sprintf("%s@%d", name, l.about.Version))
		}
	}
	if len(found) == 0 {
		return nil, d.notFound(ref, names, labels, versions)
	}
	return found, nil
}

// hidden names those of some editions that are not listed any more.
func (d *Definitions) hidden(editions []*listing) (names []string) {
	for _, l := range editions {
		if now := d.listing(l.hash); now == nil || d.shown(now) == nil {
			names = append(names, l.ref(editions))
		}
	}
	return names
}

// notFound says what there is instead of a workflow that is not there: its other
// versions, the nearest of the other names, or the names.
func (d *Definitions) notFound(ref string, names, labels, versions []string) error {
	err := api.Errorf(api.NotFound, "no workflow %q here", ref)
	name, _, _ := strings.Cut(ref, "@")
	near := workflow.Meant(name, names, labels)
	if i := slices.IndexFunc(names, func(n string) bool { return strings.HasSuffix(n, "/"+name) }); near == "" && i >= 0 {
		near = names[i] // a model, or what is an application, by its own name
	}
	switch {
	case name == "":
		return api.Errorf(api.Invalid, "the name of the workflow is missing").
			WithHint("mutirao workflow list shows them")
	case len(versions) > 0:
		return err.WithHint("there are: %s", strings.Join(slices.Compact(versions), ", "))
	case near != "":
		return err.WithHint("did you mean %s?", near)
	case len(names) == 0:
		return err.WithHint("add one: mutirao workflow add FILE")
	}
	return err.WithHint("there are: %s", strings.Join(slices.Compact(names), ", "))
}

// author is the partner that listed a definition that is shown; empty: nobody.
func (d *Definitions) author(l *listing) workflow.PartnerID {
	if c := d.shown(l); c != nil {
		return c.author
	}
	return ""
}

// AuthorOf is the partner that lists a definition; empty: nobody does.
func (d *Definitions) AuthorOf(h workflow.Hash) workflow.PartnerID {
	if l := d.listing(h); l != nil {
		return d.author(l)
	}
	return ""
}

// ListedAs is the definition that is listed as one by which an instance runs: itself, or one of its name and version that
// is alike; nil: none is.
func (d *Definitions) ListedAs(def *workflow.Definition, alike func(ran, said *workflow.Definition) bool) *Definition {
	if d.AuthorOf(def.Hash()) != "" {
		return &Definition{Def: def, Hash: def.Hash()}
	}
	for _, l := range d.list() {
		if l.about.Kind != "" || l.about.Name != def.Name || l.about.Version != def.Version {
			continue
		}
		if e, err := d.Get(l.hash); err == nil && alike(def, e.Def) {
			return e
		}
	}
	return nil
}

// whole is an entry with its definition.
func (d *Definitions) whole(l *listing) (*api.Workflow, error) {
	e, err := d.get(l.hash)
	if err != nil {
		return nil, err
	}
	w := l.about
	if w.Definition = e.canonical(); e.Def != nil {
		w.Doc = e.Def.Doc
	}
	return &w, nil
}

// origin says where a definition comes from, for the allow list of an application:
// who ever listed it, and whether that is this node, the founder or a delegate.
func (d *Definitions) origin(e *Definition) configs.Origin {
	o := configs.Origin{Workflow: e.Def.Name, Hash: e.Hash.String()}
	d.mu.Lock()
	defer d.mu.Unlock()
	if l := d.entries[e.Hash]; l != nil {
		for _, c := range l.claims {
			o.Authors = append(o.Authors, string(c.author))
			o.Trusted = o.Trusted || c.author == d.self || d.administers(c.first)
		}
	}
	return o
}
