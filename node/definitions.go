package node

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// definitions are the workflows that the mesh shares, as this node knows them.
// Additions and removals spread as stamped entries of which the newer wins.
type definitions struct {
	store Store

	mu      sync.Mutex // guards entries and loading
	entries map[workflow.Hash]*definition
}

// definition is one entry. The definition of a removed entry stays: instances
// of it go on.
type definition struct {
	stamp wire.DefinitionStamp
	added time.Time
	def   *workflow.Definition
	plan  *partition.Plan
}

// storedDefinition is how an entry is kept.
type storedDefinition struct {
	_         struct{} `cbor:",toarray"`
	Stamp     wire.DefinitionStamp
	Added     int64
	Canonical []byte
	// Listed is false for definitions that came only with an instance.
	Listed bool
}

func loadDefinitions(s Store) (*definitions, error) {
	d := &definitions{store: s, entries: map[workflow.Hash]*definition{}}
	return d, s.Scan([]byte{prefixDefinition}, func(_, value []byte) error {
		var sd storedDefinition
		if err := cbor.Unmarshal(value, &sd); err != nil {
			return fmt.Errorf("a stored definition cannot be read: %w", err)
		}
		def, err := parseCanonical(sd.Canonical)
		if err != nil {
			return fmt.Errorf("a stored definition is wrong: %w", err)
		}
		d.entries[def.Hash()] = &definition{stamp: sd.Stamp, added: time.UnixMilli(sd.Added), def: def, plan: partition.New(def)}
		return nil
	})
}

// parseCanonical reads a definition in its canonical form.
func parseCanonical(b []byte) (*workflow.Definition, error) {
	def, err := workflow.Parse("definition", b)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(def.Canonical(), b) {
		return nil, fmt.Errorf("definition %s is not in its canonical form", def.Name)
	}
	return def, nil
}

// get returns a definition by hash, removed or not.
func (d *definitions) get(h workflow.Hash) *definition {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.entries[h]
}

// keep makes a definition that came with an instance durable, without listing it.
func (d *definitions) keep(canonical []byte) (*definition, error) {
	def, err := parseCanonical(canonical)
	if err != nil {
		return nil, err
	}
	if e := d.get(def.Hash()); e != nil {
		return e, nil
	}
	return d.put(def, wire.DefinitionStamp{Hash: def.Hash()}, time.Now())
}

// add lists a definition; again, if it was removed.
// It is kept as its canonical form says, so that every node has the tasks in
// the same order.
func (d *definitions) add(def *workflow.Definition) (*definition, error) {
	def, err := parseCanonical(def.Canonical())
	if err != nil {
		return nil, err
	}
	stamp := wire.DefinitionStamp{Hash: def.Hash(), Edit: 1}
	old := d.get(def.Hash())
	if old != nil {
		if old.listed() {
			return old, nil
		}
		stamp.Edit = old.stamp.Edit + 1
	}
	return d.put(def, stamp, time.Now())
}

func (e *definition) listed() bool { return e.stamp.Edit > 0 && !e.stamp.Removed }

func (d *definitions) remove(e *definition) error {
	_, err := d.put(e.def, wire.DefinitionStamp{Hash: e.stamp.Hash, Edit: e.stamp.Edit + 1, Removed: true}, e.added)
	return err
}

// merge takes in an entry from a peer and tells whether it was news.
func (d *definitions) merge(w wire.Definition) (bool, error) {
	old := d.get(w.Stamp.Hash)
	if old != nil && !w.Stamp.Newer(old.stamp) {
		return false, nil
	}
	var def *workflow.Definition
	switch {
	case len(w.Canonical) > 0:
		parsed, err := parseCanonical(w.Canonical)
		if err != nil {
			return false, err
		}
		if parsed.Hash() != w.Stamp.Hash {
			return false, fmt.Errorf("definition %s came under the name of another", parsed.Name)
		}
		def = parsed
	case old != nil:
		def = old.def
	default:
		return false, nil // the removal of what was never here
	}
	_, err := d.put(def, w.Stamp, time.Now())
	return err == nil, err
}

func (d *definitions) put(def *workflow.Definition, stamp wire.DefinitionStamp, added time.Time) (*definition, error) {
	sd := storedDefinition{Stamp: stamp, Added: added.UnixMilli(), Canonical: def.Canonical(), Listed: stamp.Edit > 0}
	if err := d.store.CommitWait([]kv.Write{{Key: definitionKey(def.Hash()), Value: encode(sd)}}); err != nil {
		return nil, err
	}
	e := &definition{stamp: stamp, added: added, def: def, plan: partition.New(def)}
	d.mu.Lock()
	d.entries[def.Hash()] = e
	d.mu.Unlock()
	return e, nil
}

// stamps says what this node knows, for peers to compare.
func (d *definitions) stamps() []wire.DefinitionStamp {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []wire.DefinitionStamp
	for _, e := range d.entries {
		if e.stamp.Edit > 0 {
			out = append(out, e.stamp)
		}
	}
	slices.SortFunc(out, func(a, b wire.DefinitionStamp) int { return bytes.Compare(a.Hash[:], b.Hash[:]) })
	return out
}

// newer are the entries that somebody with these stamps lacks.
func (d *definitions) newer(have []wire.DefinitionStamp) []wire.Definition {
	known := make(map[workflow.Hash]wire.DefinitionStamp, len(have))
	for _, h := range have {
		known[h.Hash] = h
	}
	var out []wire.Definition
	for _, s := range d.stamps() {
		if h, ok := known[s.Hash]; !ok || s.Newer(h) {
			out = append(out, d.get(s.Hash).wire())
		}
	}
	return out
}

func (e *definition) wire() wire.Definition {
	w := wire.Definition{Stamp: e.stamp}
	if !e.stamp.Removed {
		w.Canonical = e.def.Canonical()
	}
	return w
}

// list are the listed definitions, by name, newest version first.
func (d *definitions) list() []*definition {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []*definition
	for _, e := range d.entries {
		if e.listed() {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b *definition) int {
		return cmp.Or(cmp.Compare(a.def.Name, b.def.Name), cmp.Compare(b.def.Version, a.def.Version),
			b.added.Compare(a.added), bytes.Compare(a.stamp.Hash[:], b.stamp.Hash[:]))
	})
	return out
}

// find resolves NAME, NAME@VERSION and NAME@HASHPREFIX.
func (d *definitions) find(ref string) (*definition, error) {
	name, at, pinned := strings.Cut(ref, "@")
	var names []string
	for _, e := range d.list() {
		if string(e.def.Name) != name {
			names = append(names, string(e.def.Name))
			continue
		}
		if !pinned || strconv.Itoa(e.def.Version) == at || (len(at) >= 4 && strings.HasPrefix(e.stamp.Hash.String(), at)) {
			return e, nil
		}
	}
	err := api.Errorf(api.NotFound, "no workflow %q here", ref)
	if len(names) == 0 {
		return nil, err.WithHint("add one: mutirao workflow add FILE")
	}
	return nil, err.WithHint("there are: %s", strings.Join(slices.Compact(names), ", "))
}

// apiWorkflow shows an entry.
func (e *definition) apiWorkflow(whole bool) *api.Workflow {
	w := &api.Workflow{Name: e.def.Name, Version: e.def.Version, Hash: e.stamp.Hash.String(), Doc: e.def.Doc, Tasks: len(e.def.Tasks), Added: e.added}
	for _, p := range e.plan.Partitions() {
		w.Partitions = append(w.Partitions, string(p.Name))
	}
	if whole {
		w.Definition = e.def.Canonical()
	}
	return w
}
