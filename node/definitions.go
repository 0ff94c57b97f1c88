package node

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"weak"

	"github.com/fxamacker/cbor/v2"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// definitions are the workflows that the mesh shares, as this node knows them.
// Additions and removals spread as stamped entries of which the newer wins. In
// memory is what a list needs of each; a definition itself is read when it is
// used, and kept for as long as it is.
type definitions struct {
	store Store
	limit int // listed ones, and as many removed ones

	// changing is held while an entry changes, so that each change sees the last.
	changing sync.Mutex

	mu      sync.Mutex // guards what follows
	entries map[workflow.Hash]*listing
	recent  [16]*definition // those read last, kept for those who come for them again
	next    int             // of recent
	// away are those that others list and that there was no room for here: they
	// are not asked for again.
	away map[workflow.Hash]wire.DefinitionStamp
}

// listing is what is always in memory of a definition. That of a removed one
// stays: instances of it go on.
type listing struct {
	stamp  wire.DefinitionStamp
	edited time.Time
	about  api.Workflow // without the definition
	parsed weak.Pointer[definition]
}

// definition is one that is in use.
type definition struct {
	hash workflow.Hash
	def  *workflow.Definition
	plan *partition.Plan
}

// storedDefinition is how an entry is kept.
type storedDefinition struct {
	_         struct{} `cbor:",toarray"`
	Stamp     wire.DefinitionStamp
	Edited    int64
	Canonical []byte
	// Listed is false for definitions that came only with an instance.
	Listed bool
}

// loadDefinitions reads what is stored; unknown is told of each that cannot be read,
// which partners tell again.
func loadDefinitions(s Store, limit int, unknown func(error)) (*definitions, error) {
	d := &definitions{store: s, limit: limit, entries: map[workflow.Hash]*listing{}, away: map[workflow.Hash]wire.DefinitionStamp{}}
	return d, s.Scan([]byte{prefixDefinition}, func(_, value []byte) error {
		sd, e, err := readDefinition(value)
		if err != nil {
			unknown(err)
			return nil
		}
		d.entries[e.hash] = newListing(e, sd.Stamp, time.UnixMilli(sd.Edited))
		return nil
	})
}

// readDefinition reads what put wrote.
func readDefinition(value []byte) (sd storedDefinition, e *definition, err error) {
	if err := cbor.Unmarshal(value, &sd); err != nil {
		return sd, nil, fmt.Errorf("a stored definition cannot be read: %w", err)
	}
	if e, err = decodeDefinition(sd.Canonical); err != nil {
		return sd, nil, fmt.Errorf("a stored definition is wrong: %w", err)
	}
	return sd, e, nil
}

func newListing(e *definition, stamp wire.DefinitionStamp, edited time.Time) *listing {
	w := api.Workflow{Name: e.def.Name, Version: e.def.Version, Hash: e.hash.String(), Doc: brief(e.def.Doc), Tasks: len(e.def.Tasks), Added: edited}
	for _, p := range e.plan.Partitions() {
		w.Partitions = append(w.Partitions, string(p.Name))
	}
	return &listing{stamp: stamp, edited: edited, about: w, parsed: weak.Make(e)}
}

// brief is as much of a text as a list shows.
func brief(text string) string {
	const enough = 1000
	if len(text) <= enough {
		return text
	}
	return strings.ToValidUTF8(text[:enough], "") + "…"
}

// decodeDefinition reads a definition in its canonical form. It is the one check of
// what this node lists and takes of others: what it refuses of them it refuses of
// its own user, in the same words.
func decodeDefinition(canonical []byte) (*definition, error) {
	switch {
	case len(canonical) > wire.MaxDefinition:
		return nil, fmt.Errorf("the definition has a canonical form of %d bytes: at most %d can be spread; cut it into sub-workflows",
			len(canonical), wire.MaxDefinition)
	case !json.Valid(canonical): // before anything dearer is done with it
		return nil, errors.New("the definition is not in its canonical form, which is JSON")
	}
	def, err := workflow.Parse("definition", canonical)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(def.Canonical(), canonical) {
		return nil, fmt.Errorf("definition %s is not in its canonical form", def.Name)
	}
	plan := partition.New(def)
	if err := plan.Err(); err != nil {
		return nil, fmt.Errorf("definition %s is refused: %w", def.Name, err)
	}
	return &definition{hash: def.Hash(), def: def, plan: plan}, nil
}

// CheckDefinition says why no node would list a definition; nil: any would.
func CheckDefinition(def *workflow.Definition) error {
	_, err := decodeDefinition(def.Canonical())
	return err
}

// listing returns the entry of a definition, removed or not; nil: it is not known.
func (d *definitions) listing(h workflow.Hash) *listing {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.entries[h]
}

// get returns a definition by hash, removed or not. The error wraps
// kv.ErrNotFound if it is not known.
func (d *definitions) get(h workflow.Hash) (*definition, error) {
	l := d.listing(h)
	if l == nil {
		return nil, fmt.Errorf("definition %s: %w", h, kv.ErrNotFound)
	}
	d.mu.Lock()
	e := l.parsed.Value()
	d.mu.Unlock()
	if e == nil {
		value, err := d.store.Get(definitionKey(h))
		if err != nil {
			return nil, fmt.Errorf("read definition %s: %w", h, err)
		}
		if _, e, err = readDefinition(value); err != nil {
			return nil, err
		}
	}
	d.used(l, e)
	return e, nil
}

// used keeps a definition in memory for a while.
func (d *definitions) used(l *listing, e *definition) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l.parsed = weak.Make(e)
	if !slices.Contains(d.recent[:], e) {
		d.recent[d.next] = e
		d.next = (d.next + 1) % len(d.recent)
	}
}

// keep makes a definition that came with an instance durable, without listing it.
func (d *definitions) keep(e *definition) error {
	d.changing.Lock()
	defer d.changing.Unlock()
	if d.listing(e.hash) != nil {
		return nil
	}
	_, err := d.put(e, wire.DefinitionStamp{Hash: e.hash}, time.Now())
	return err
}

// add lists a definition; again, if it was removed.
// It is kept as its canonical form says, so that every node has the tasks in
// the same order.
func (d *definitions) add(def *workflow.Definition) (*listing, error) {
	e, err := decodeDefinition(def.Canonical())
	if err != nil {
		return nil, api.Errorf(api.Invalid, "%v", err)
	}
	d.changing.Lock()
	defer d.changing.Unlock()
	stamp := wire.DefinitionStamp{Hash: e.hash, Edit: 1}
	if old := d.listing(e.hash); old != nil {
		if old.listed() {
			return old, nil
		}
		stamp.Edit = old.stamp.Edit + 1
	}
	if stamp.Edit > maxEdit {
		return nil, api.Errorf(api.Refused, "workflow %s was added and removed as often as it can be", def.Name).WithHint("give it another version")
	}
	if !d.room() {
		return nil, api.Errorf(api.Refused, "this node lists %d workflows, as many as it may", d.limit).
			WithHint("remove some that are not used any more: mutirao workflow remove NAME; or raise limits.workflows")
	}
	return d.put(e, stamp, time.Now())
}

// room tells whether another definition can be listed.
func (d *definitions) room() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for _, l := range d.entries {
		if l.listed() {
			n++
		}
	}
	return n < d.limit
}

func (l *listing) listed() bool { return l.stamp.Edit > 0 && !l.stamp.Removed }

// remove takes a definition off the list. Of two with the same number the removal
// is the newer one, so there is always a number for it.
func (d *definitions) remove(l *listing) (wire.Definition, error) {
	d.changing.Lock()
	defer d.changing.Unlock()
	l = d.listing(l.stamp.Hash)
	if !l.listed() {
		return wire.Definition{Stamp: l.stamp}, nil // by somebody else, just now
	}
	stamp := wire.DefinitionStamp{Hash: l.stamp.Hash, Edit: min(l.stamp.Edit+1, maxEdit), Removed: true}
	e, err := d.get(stamp.Hash)
	if err == nil {
		_, err = d.put(e, stamp, time.Now())
	}
	if err == nil {
		err = d.forget()
	}
	return wire.Definition{Stamp: stamp}, err
}

// forget unlearns the oldest removals if there are more than are worth
// remembering: whoever was away for all that time may bring one back.
func (d *definitions) forget() error {
	d.mu.Lock()
	clear(d.away) // there may be room for them now
	var removed []*listing
	for _, l := range d.entries {
		if l.stamp.Removed {
			removed = append(removed, l)
		}
	}
	d.mu.Unlock()
	slices.SortFunc(removed, func(a, b *listing) int { return a.edited.Compare(b.edited) })
	for _, l := range removed[:max(len(removed)-d.limit, 0)] {
		e, err := d.get(l.stamp.Hash)
		if err == nil {
			_, err = d.put(e, wire.DefinitionStamp{Hash: l.stamp.Hash}, l.edited)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// maxEdit bounds how often a definition can have been added and removed.
const maxEdit = 1 << 32

// errNoRoom is returned for a definition that a partner lists, and that there is
// no room for here.
var errNoRoom = errors.New("a partner lists more workflows than this node may: remove some, or raise limits.workflows")

// merge takes in an entry from a peer and tells whether it was news.
func (d *definitions) merge(w wire.Definition) (bool, error) {
	d.changing.Lock()
	defer d.changing.Unlock()
	old := d.listing(w.Stamp.Hash)
	switch {
	case w.Stamp.Edit > maxEdit:
		return false, fmt.Errorf("definition %s was edited %d times, at most %d can be", w.Stamp.Hash, w.Stamp.Edit, maxEdit)
	case old != nil && !w.Stamp.Newer(old.stamp):
		return false, nil
	case w.Stamp.Removed && (old == nil || old.stamp.Edit == 0):
		d.notAway(w.Stamp)
		return false, nil // the removal of what was never listed here, or is forgotten
	}
	var e *definition
	var err error
	if w.Stamp.Removed {
		e, err = d.get(w.Stamp.Hash)
	} else {
		e, err = decodeDefinition(w.Canonical)
	}
	switch {
	case err != nil:
		return false, err
	case e.hash != w.Stamp.Hash:
		return false, fmt.Errorf("definition %s came under the name of another", e.def.Name)
	case !w.Stamp.Removed && (old == nil || !old.listed()) && !d.room():
		return false, d.turnAway(w.Stamp)
	}
	if _, err = d.put(e, w.Stamp, time.Now()); err == nil && w.Stamp.Removed {
		err = d.forget()
	}
	return err == nil, err
}

// turnAway notes a definition that there is no room for.
func (d *definitions) turnAway(s wire.DefinitionStamp) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.away) < d.limit {
		d.away[s.Hash] = s
	}
	return errNoRoom
}

// notAway notes that a definition that there was no room for was removed.
func (d *definitions) notAway(s wire.DefinitionStamp) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if old, ok := d.away[s.Hash]; ok && s.Newer(old) {
		delete(d.away, s.Hash)
	}
}

// trouble says what is wrong; empty: nothing.
func (d *definitions) trouble() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.away) == 0 {
		return ""
	}
	return errNoRoom.Error()
}

func (d *definitions) put(e *definition, stamp wire.DefinitionStamp, edited time.Time) (*listing, error) {
	sd := storedDefinition{Stamp: stamp, Edited: edited.UnixMilli(), Canonical: e.def.Canonical(), Listed: stamp.Edit > 0}
	if err := d.store.CommitWait([]kv.Write{{Key: definitionKey(e.hash), Value: encode(sd)}}); err != nil {
		return nil, err
	}
	l := newListing(e, stamp, edited)
	d.mu.Lock()
	d.entries[e.hash] = l
	delete(d.away, e.hash)
	d.mu.Unlock()
	d.used(l, e)
	return l, nil
}

// stamps says what this node knows, for peers to compare, and what they need not
// send.
func (d *definitions) stamps() []wire.DefinitionStamp {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := slices.Collect(maps.Values(d.away))
	for _, l := range d.entries {
		if l.stamp.Edit > 0 {
			out = append(out, l.stamp)
		}
	}
	slices.SortFunc(out, func(a, b wire.DefinitionStamp) int { return bytes.Compare(a.Hash[:], b.Hash[:]) })
	return out
}

// newer are the entries that somebody with these stamps lacks, one after the
// other; an error is about one of them.
func (d *definitions) newer(have []wire.DefinitionStamp) iter.Seq2[wire.Definition, error] {
	known := make(map[workflow.Hash]wire.DefinitionStamp, len(have))
	for _, h := range have {
		known[h.Hash] = h
	}
	return func(yield func(wire.Definition, error) bool) {
		for _, s := range d.stamps() {
			h, ok := known[s.Hash]
			l := d.listing(s.Hash)
			if l == nil || (ok && !s.Newer(h)) {
				continue
			}
			w, err := d.wire(l)
			if !yield(w, err) {
				return
			}
		}
	}
}

// wire is an entry as it is sent.
func (d *definitions) wire(l *listing) (wire.Definition, error) {
	w := wire.Definition{Stamp: l.stamp}
	if l.stamp.Removed {
		return w, nil
	}
	e, err := d.get(l.stamp.Hash)
	if err == nil {
		w.Canonical = e.def.Canonical()
	}
	return w, err
}

// list are the listed definitions, by name, newest version first.
func (d *definitions) list() []*listing {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []*listing
	for _, l := range d.entries {
		if l.listed() {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b *listing) int {
		return cmp.Or(cmp.Compare(a.about.Name, b.about.Name), cmp.Compare(b.about.Version, a.about.Version),
			b.edited.Compare(a.edited), bytes.Compare(a.stamp.Hash[:], b.stamp.Hash[:]))
	})
	return out
}

// find resolves NAME, NAME@VERSION and NAME@HASHPREFIX.
func (d *definitions) find(ref string) (*listing, error) {
	name, at, pinned := strings.Cut(ref, "@")
	var names []string
	for _, l := range d.list() {
		if string(l.about.Name) != name {
			names = append(names, string(l.about.Name))
			continue
		}
		if !pinned || strconv.Itoa(l.about.Version) == at || (len(at) >= 4 && strings.HasPrefix(l.about.Hash, at)) {
			return l, nil
		}
	}
	err := api.Errorf(api.NotFound, "no workflow %q here", ref)
	if len(names) == 0 {
		return nil, err.WithHint("add one: mutirao workflow add FILE")
	}
	return nil, err.WithHint("there are: %s", strings.Join(slices.Compact(names), ", "))
}

// whole is an entry with its definition.
func (d *definitions) whole(l *listing) (*api.Workflow, error) {
	e, err := d.get(l.stamp.Hash)
	if err != nil {
		return nil, err
	}
	w := l.about
	w.Doc, w.Definition = e.def.Doc, e.def.Canonical()
	return &w, nil
}
