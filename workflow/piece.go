package workflow

import (
	"crypto/sha256"
	"fmt"
	"slices"
)

// PieceKind says what a piece is.
type PieceKind string

// The kinds of pieces, as they are written in names such as model/visit.
const (
	PieceModel       PieceKind = "model"
	PieceApplication PieceKind = "application"
)

// Piece is a model, or what an application needs, by itself: definitions may take it without
// having it (docs/language.md, Models and applications by themselves).
type Piece struct {
	Kind PieceKind
	Name string

	body        *node // of a model
	application ApplicationDecl
	canonical   []byte
}

// Ref names the piece among those of all kinds: model/visit.
func (p *Piece) Ref() string { return string(p.Kind) + "/" + p.Name }

// Canonical is the one spelling of a piece: a file with it alone, in JSON with sorted keys.
func (p *Piece) Canonical() []byte { return p.canonical }

// Hash names the piece: SHA-256 of its canonical form.
func (p *Piece) Hash() Hash { return sha256.Sum256(p.canonical) }

// Shared finds a piece that definitions may take without having it; nil: there is none.
type Shared func(kind PieceKind, name string) *Piece

// pieceKeys are the keys at the top of a file that holds pieces.
var pieceKeys = []key[Definition]{{"models", kept[Definition]}, {"applications", kept[Definition]}}

// HoldsPieces reports whether a source is a file of models and applications by themselves, and no
// definition: it has one of these keys at its top, and neither workflow nor tasks.
func HoldsPieces(src []byte) bool {
	root := readSource(src, &problems{})
	if root == nil || root.kind != mapNode {
		return false
	}
	return (root.get("models") != nil || root.get("applications") != nil) && root.get("workflow") == nil &&
		root.get("tasks") == nil
}

// ParsePieces reads and checks a file of pieces. File is its name in messages. A file with
// mistakes gives Errors with all of them. Expressions are read where a definition takes a model:
// what data there are is known there.
func ParsePieces(file string, src []byte) ([]*Piece, error) {
	return parsePieces(file, src, func(r *reader, model *Task) {
		if r.written(model, "type") != nil { // else the task that takes it may say which
			r.checkRetries(model)
		}
	})
}

// parsePieces reads pieces; check reports what else does not fit together in a model.
func parsePieces(file string, src []byte, check func(*reader, *Task)) ([]*Piece, error) {
	pr := &problems{file: file}
	r := newReader(pr)
	var out []*Piece
	if root := readSource(src, pr); root != nil {
		out = r.pieces(root, check)
	}
	if len(pr.list) > 0 {
		return nil, pr.list.sorted()
	}
	return out, nil
}

func (r *reader) pieces(root *node, check func(*reader, *Task)) (out []*Piece) {
	r.apart = true
	readMap(r, root, pieceKeys, r.def)
	if n := r.written(r.def, "models"); n != nil && !n.isNull() {
		for _, e := range r.named(n, "models") {
			if t := r.model(e); t != nil {
				check(r, t)
			}
			out = append(out, &Piece{
				Kind: PieceModel, Name: e.key.text, body: e.value,
				canonical: encode(object{"models": object{e.key.text: e.value.plain()}}),
			})
		}
	}
	r.applications()
	for _, a := range r.def.Applications {
		out = append(out, &Piece{
			Kind: PieceApplication, Name: string(a.Name), application: a,
			canonical: encode(object{"applications": object{string(a.Name): canonicalApplication(a)}}),
		})
	}
	if len(out) == 0 && len(r.list) == 0 {
		r.on(root, "write models: {name: {…}} or applications: {name: {…}}",
			"the file has no models and no applications")
	}
	return out
}

// model checks what can be told of a model by itself.
func (r *reader) model(e entry) *Task {
	if e.value.isNull() {
		return nil
	}
	t := &Task{Type: Automatic}
	r.heads[t] = e.key
	readMap(r, e.value, taskKeys, t)
	if m := r.written(t, "model"); m != nil {
		r.on(m, "write out what it takes from there", "a model cannot take another model")
	}
	return t
}

// plain is a value of the document as JSON has it.
func (n *node) plain() any {
	switch n.kind {
	case listNode:
		out := make([]any, len(n.items))
		for i, item := range n.items {
			out[i] = item.plain()
		}
		return out
	case mapNode:
		out := map[string]any{}
		for _, e := range n.entries {
			out[e.key.text] = e.value.plain()
		}
		return out
	}
	return n.value
}

// at is a copy of a value that stands in another text, as if all of it stood at one place here.
func (n *node) at(place *node) *node {
	out := *n
	out.line, out.col, out.place = place.line, place.col, nil
	out.items = make([]*node, len(n.items))
	for i, item := range n.items {
		out.items[i] = item.at(place)
	}
	out.entries = make([]entry, len(n.entries))
	for i, e := range n.entries {
		out.entries[i] = entry{e.key.at(place), e.value.at(place)}
	}
	return &out
}

// shareModels adds the models that tasks take and the definition does not have. Mistakes in one
// of them are reported where a task takes it first.
func (r *reader) shareModels(tasks []entry, models map[string]*node) {
	for _, e := range tasks {
		taken := e.value.get("model")
		if taken == nil || r.shared == nil || models[taken.text] != nil {
			continue
		}
		if p := r.shared(PieceModel, taken.text); p != nil {
			models[taken.text] = p.body.at(taken)
		}
	}
}

// shareApplications adds what is known of the applications that tasks use and the definition
// says nothing of.
func (r *reader) shareApplications() {
	if r.shared == nil {
		return
	}
	take := func(name ApplicationName) {
		if name == "" || builtIn(name) ||
			slices.ContainsFunc(r.def.Applications, func(a ApplicationDecl) bool { return a.Name == name }) {
			return
		}
		if p := r.shared(PieceApplication, string(name)); p != nil {
			r.def.Applications = append(r.def.Applications, p.application)
		}
	}
	for _, t := range r.def.Tasks {
		take(t.Application)
		if t.Compensate != nil {
			take(t.Compensate.Application)
		}
	}
}

// ParsePiece reads a piece in its canonical form.
func ParsePiece(canonical []byte) (*Piece, error) {
	// One that was listed by an earlier version is read as before: its mistake is told where a task takes it.
	all, err := parsePieces("piece", canonical, func(*reader, *Task) {})
	if err != nil {
		return nil, err
	}
	if len(all) != 1 || string(all[0].canonical) != string(canonical) {
		return nil, fmt.Errorf("a piece is not in its canonical form")
	}
	return all[0], nil
}
