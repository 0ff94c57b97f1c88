package library

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
	"weak"

	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Definitions are the workflows that the mesh shares, as this node knows them. An
// author's notices say that it lists a definition, or took it off the list. They
// spread, and of the notices of one author about one definition the longer list wins.
// In memory, and read at a start, is what a list needs of each; a definition itself
// is read when it is used.
//
// A definition is kept while somebody lists it, or an instance that is here uses it
// (Sweep). Those that nobody lists take the room of the instances' initiators; what
// is left of one that was taken off the list are its notices, of which the oldest are
// forgotten (forget).
//
// A name belongs to the founder and the delegates, once one of them has listed
// something under it, else to the author with the earliest notice. What others list
// under it is not shown, not passed on and not started by its name.
type Definitions struct {
	store  Store
	room   Room
	mesh   trust.Mesh
	self   workflow.PartnerID
	rights Rights

	// changing is held while an entry changes, so that each change sees the last.
	changing sync.Mutex

	mu      sync.Mutex // guards what follows
	entries map[workflow.Hash]*listing
	named   map[workflow.Name][]*listing
	listed  map[workflow.PartnerID]load // by author
	recent  [16]*Definition             // those read last, kept for those that come for them again
	next    int                         // of recent
	// away are claims that are not taken in: they are not asked for again. True: there
	// was no room for it; false: its name is another's.
	away map[wire.DefinitionStamp]bool
}

// Store is where definitions are kept, and what is listed.
type Store interface {
	CommitWait(writes []kv.Write) error
	Get(key []byte) ([]byte, error)
	Scan(prefix []byte, fn func(key, value []byte) error) error
}

// Rights are what this node may say in its own name, and whose word counts.
type Rights interface {
	// Issuer is this node as one that signs.
	Issuer() trust.Issuer
	// Good reports whether a certificate chain was not evicted since.
	Good(trust.Chain) bool
}

// Room is for how many definitions there is room.
type Room struct {
	All int // listed ones of others, as many of this node's user, and as many removed ones
	One int // of these, of one member
	// Shares is how many shares of one member, in bytes, all others together may fill
	// with definitions that nobody lists and their instances use.
	Shares int
}

// listing is what is always in memory of a definition. It stays when nobody lists it
// any more while instances of it go on, and after that without the definition (bare)
// while the notices that took it off the list are remembered.
type listing struct {
	hash   workflow.Hash
	bare   bool
	size   int          // of the canonical form
	about  api.Workflow // without the definition
	claims map[workflow.PartnerID]*claim
	parsed weak.Pointer[Definition]
}

// load is how many definitions are listed, and how many bytes that are.
type load struct{ n, bytes int }

const (
	// maxAuthorBytes bounds the definitions that one member, unless it administers,
	// lists, and as much again those that nobody lists and its instances use.
	maxAuthorBytes = 16 << 20
	// maxRemovedBytes bounds the notices of one member, unless it administers, about
	// what is not on the list any more.
	maxRemovedBytes = 1 << 20
)

// claim is what one author says of a definition.
type claim struct {
	author  workflow.PartnerID
	first   trust.Notice
	notices [][]byte
	edited  time.Time // when the last came
}

func (c *claim) listed() bool { return c != nil && len(c.notices)%2 == 1 }

func (c *claim) stamp(h workflow.Hash) wire.DefinitionStamp {
	return wire.DefinitionStamp{Claim: wire.ClaimOf(h, c.author), Number: uint64(len(c.notices))}
}

// Definition is one that is in use, or a piece that definitions take. Of a piece Def and Plan
// are nil: Get returns none.
type Definition struct {
	Hash  workflow.Hash
	Def   *workflow.Definition
	Plan  *partition.Plan
	piece *workflow.Piece
}

func (e *Definition) name() workflow.Name {
	if e.piece != nil {
		return workflow.Name(e.piece.Ref())
	}
	return e.Def.Name
}

func (e *Definition) canonical() []byte {
	if e.piece != nil {
		return e.piece.Canonical()
	}
	return e.Def.Canonical()
}

// Due is the latest moment, since its start, at which an instance should have
// ended: the worst case of its time-outs; ok is false when there is none.
func (e *Definition) Due() (d time.Duration, ok bool) {
	for _, t := range e.Def.Tasks {
		end, bounded := e.Plan.WorstEnd(t.Name)
		if !bounded {
			return 0, false
		}
		d = max(d, end)
	}
	return d, true
}

// Load reads the listings, and none of the definitions; unknown is told of each that
// cannot be read, which partners tell again.
func Load(s Store, room Room, r Rights, unknown func(error)) (*Definitions, error) {
	d := &Definitions{
		store: s, room: room, mesh: r.Issuer().Mesh, self: r.Issuer().ID(), rights: r,
		entries: map[workflow.Hash]*listing{}, named: map[workflow.Name][]*listing{},
		listed: map[workflow.PartnerID]load{}, away: map[wire.DefinitionStamp]bool{},
	}
	return d, s.Scan([]byte{PrefixListing}, func(key, value []byte) error {
		l, err := readListing(key, value)
		if err != nil {
			unknown(fmt.Errorf("a stored listing cannot be read: %w", err))
			return nil
		}
		d.enter(l)
		return nil
	})
}

// enter puts a listing among those in memory. The caller holds d.mu, or is the only
// one that knows d.
func (d *Definitions) enter(l *listing) {
	d.entries[l.hash] = l
	d.named[l.about.Name] = append(d.named[l.about.Name], l)
	for _, c := range l.claims {
		if c.listed() {
			was := d.listed[c.author]
			d.listed[c.author] = load{was.n + 1, was.bytes + l.size}
		}
	}
}

func newListing(e *Definition) *listing {
	if p := e.piece; p != nil {
		return &listing{
			hash: e.Hash, size: len(p.Canonical()), claims: map[workflow.PartnerID]*claim{}, parsed: weak.Make(e),
			about: api.Workflow{Name: e.name(), Kind: string(p.Kind), Hash: e.Hash.String(), Partitions: []string{}},
		}
	}
	w := api.Workflow{
		Name: e.Def.Name, Version: e.Def.Version, Hash: e.Hash.String(), Label: e.Def.Label, Doc: brief(e.Def.Doc),
		Tasks: len(e.Def.Written()),
	}
	for _, p := range e.Plan.Partitions() {
		if len(w.Partitions) == shownPartitions {
			w.Partitions = append(w.Partitions, "…")
			break
		}
		w.Partitions = append(w.Partitions, string(p.Name))
	}
	return &listing{
		// The rounds of loops count as they are in memory: a few bytes of text may be thousands of tasks.
		hash: e.Hash, size: max(len(e.Def.Canonical()), len(e.Def.WrittenOut())), about: w, claims: map[workflow.PartnerID]*claim{},
		parsed: weak.Make(e),
	}
}

// shownPartitions is how many partitions a list names.
const shownPartitions = 64

// brief is as much of a text as a list shows.
func brief(text string) string { return plain.CutBytes(text, 1000) }

// decode reads a definition in its canonical form. It is the one check of
// what this node lists and takes of others: what it refuses of them it refuses of
// its own user, in the same words.
func decode(canonical []byte) (*Definition, error) {
	switch {
	case len(canonical) > wire.MaxDefinition:
		return nil, fmt.Errorf(
			"the definition has a canonical form of %d bytes: at most %d can be spread; cut it into sub-workflows",
			len(canonical), wire.MaxDefinition)
	case !json.Valid(canonical): // before anything dearer is done with it
		return nil, errors.New("the definition is not in its canonical form, which is JSON")
	}
	if isPiece(canonical) {
		p, err := workflow.ParsePiece(canonical)
		if err != nil {
			return nil, err
		}
		return &Definition{Hash: p.Hash(), piece: p}, nil
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
	return &Definition{Hash: def.Hash(), Def: def, Plan: plan}, nil
}

// isPiece reports whether a canonical form is not that of a definition, which has a name.
func isPiece(canonical []byte) bool {
	var keys map[string]json.RawMessage
	if json.Unmarshal(canonical, &keys) != nil {
		return false
	}
	return keys["workflow"] == nil && keys["tasks"] == nil && (keys["models"] != nil || keys["applications"] != nil)
}

// Decode reads a definition that came from elsewhere in its canonical form, as decode does.
func Decode(canonical []byte) (*Definition, error) {
	e, err := decode(canonical)
	if err == nil && e.piece != nil {
		return nil, fmt.Errorf("%s is no definition", e.name())
	}
	return e, err
}

// Check says why no node would list a definition; nil: any would.
func Check(def *workflow.Definition) error {
	_, err := decode(def.Canonical())
	return err
}

// listing returns the entry of a definition, listed or not; nil: it is not known.
func (d *Definitions) listing(h workflow.Hash) *listing {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.entries[h]
}

// Label is what people call a definition that is here; empty: by its name, or it is not here.
func (d *Definitions) Label(h workflow.Hash) string {
	if l := d.listing(h); l != nil {
		return l.about.Label
	}
	return ""
}

// Labels are what people call a definition that is here, and tasks of it, by name: of what is left out by its name.
func (d *Definitions) Labels(h workflow.Hash, tasks []workflow.TaskName) (label string, of map[string]string) {
	if len(tasks) == 0 {
		return d.Label(h), nil
	}
	if e, err := d.Get(h); err == nil {
		return e.Def.Label, workflow.LabelsOf[string](e.Def, tasks)
	}
	return d.Label(h), nil
}

// has reports whether a definition is kept here, listed or not.
func (d *Definitions) has(h workflow.Hash) bool {
	l := d.listing(h)
	return l != nil && !l.bare
}

// Get returns a definition by hash, listed or not. The error wraps
// kv.ErrNotFound if it is not known, or is a piece.
func (d *Definitions) Get(h workflow.Hash) (*Definition, error) {
	e, err := d.get(h)
	if err == nil && e.piece != nil {
		return nil, fmt.Errorf("%s is no definition: %w", e.name(), kv.ErrNotFound)
	}
	return e, err
}

// get is Get of pieces, too.
func (d *Definitions) get(h workflow.Hash) (*Definition, error) {
	l := d.listing(h)
	if l == nil || l.bare {
		return nil, fmt.Errorf("definition %s: %w", h, kv.ErrNotFound)
	}
	d.mu.Lock()
	e := l.parsed.Value()
	d.mu.Unlock()
	if e == nil {
		canonical, err := d.canonical(h)
		if err == nil {
			e, err = decode(canonical)
		}
		if err != nil {
			d.mu.Lock()
			d.leave(d.entries[h]) // partners tell it again
			d.mu.Unlock()
			return nil, err
		}
	}
	d.used(l, e)
	return e, nil
}

// canonical is the stored form of a definition, as it is sent.
func (d *Definitions) canonical(h workflow.Hash) ([]byte, error) {
	b, err := d.store.Get(definitionKey(h))
	if err == nil && sha256.Sum256(b) != h {
		err = errors.New("its bytes are not those that were stored")
	}
	if err != nil {
		return nil, fmt.Errorf("read definition %s: %w", h, err)
	}
	return b, nil
}

// used keeps a definition in memory for a while.
func (d *Definitions) used(l *listing, e *Definition) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if l != nil {
		l.parsed = weak.Make(e)
	}
	if !slices.Contains(d.recent[:], e) {
		d.recent[d.next] = e
		d.next = (d.next + 1) % len(d.recent)
	}
}

// Fresh is a definition that was read lately, listed or not.
func (d *Definitions) Fresh(h workflow.Hash) *Definition {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.recent {
		if e != nil && e.Hash == h && e.piece == nil {
			return e
		}
	}
	return nil
}

// change is a listing with a changed claim, nil: none. A claim without notices is forgotten. The definition itself, if it
// is there, is written when it is new.
type change struct {
	of  *listing
	e   *Definition
	now *claim
}

// next is the listing as it is changed.
func (c change) next() *listing {
	l := c.of
	next := &listing{
		hash: l.hash, bare: l.bare && c.e == nil, size: l.size, about: l.about, claims: maps.Clone(l.claims),
		parsed: l.parsed,
	}
	if c.now == nil {
		return next
	}
	next.claims[c.now.author] = c.now
	if len(c.now.notices) == 0 {
		delete(next.claims, c.now.author)
	}
	if c.now.listed() {
		next.about.Added = c.now.edited
	}
	return next
}

// put makes changes durable, of a listing each, all with one write.
func (d *Definitions) put(changes ...change) error {
	var next []*listing
	var writes []kv.Write
	for _, c := range changes {
		l := c.next()
		next, writes = append(next, l), append(writes, l.write())
		if was := d.listing(l.hash); c.e != nil && (was == nil || was.bare) {
			writes = append(writes, kv.Write{Key: definitionKey(l.hash), Value: c.e.canonical()})
		}
	}
	if len(writes) == 0 {
		return nil
	}
	if err := d.store.CommitWait(writes); err != nil {
		return err
	}
	d.mu.Lock()
	for i, c := range changes {
		d.leave(d.entries[c.of.hash])
		d.enter(next[i])
		if c.now != nil {
			about := wire.ClaimOf(c.of.hash, c.now.author)
			maps.DeleteFunc(d.away, func(s wire.DefinitionStamp, _ bool) bool { return s.Claim == about })
		}
	}
	d.mu.Unlock()
	for i, c := range changes {
		if c.e != nil {
			d.used(next[i], c.e)
		}
	}
	return nil
}

// leave takes a listing out of memory. The caller holds d.mu.
func (d *Definitions) leave(l *listing) {
	if l == nil {
		return
	}
	delete(d.entries, l.hash)
	d.named[l.about.Name] = slices.DeleteFunc(d.named[l.about.Name], func(x *listing) bool { return x == l })
	for _, c := range l.claims {
		if c.listed() {
			was := d.listed[c.author]
			d.listed[c.author] = load{was.n - 1, was.bytes - l.size}
		}
	}
}
