package node

import (
	"bytes"
	"cmp"
	"crypto/sha256"
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

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// definitions are the workflows that the mesh shares, as this node knows them. An
// author's notices say that it lists a definition, or took it off the list. They
// spread, and of the notices of one author about one definition the longer list wins.
// In memory, and read at a start, is what a list needs of each; a definition itself
// is read when it is used.
//
// A definition is kept while somebody lists it, or an instance that is here uses it
// (sweep). Those that nobody lists take the room of the instances' initiators; what
// is left of one that was taken off the list are its notices, of which the oldest are
// forgotten (forget).
//
// A name belongs to the founder and the delegates, once one of them has listed
// something under it, else to the author with the earliest notice. What others list
// under it is not shown, not passed on and not started by its name.
type definitions struct {
	store  Store
	limit  int // listed ones of others, of this node's user, and as many removed ones
	mesh   trust.Mesh
	self   workflow.PartnerID
	rights rights

	// changing is held while an entry changes, so that each change sees the last.
	changing sync.Mutex

	mu      sync.Mutex // guards what follows
	entries map[workflow.Hash]*listing
	named   map[workflow.Name][]*listing
	listed  map[workflow.PartnerID]load // by author
	recent  [16]*definition             // those read last, kept for those that come for them again
	next    int                         // of recent
	// away are claims that are not taken in: they are not asked for again. True: there
	// was no room for it; false: its name is another's.
	away map[wire.DefinitionStamp]bool
}

// rights is what definitions ask about members.
type rights interface {
	// Issuer is this node as one that signs.
	Issuer() trust.Issuer
	// Good reports whether a certificate chain was not evicted since.
	Good(trust.Chain) bool
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
	parsed weak.Pointer[definition]
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

// definition is one that is in use.
type definition struct {
	hash workflow.Hash
	def  *workflow.Definition
	plan *partition.Plan
}

// storedListing is how a listing is kept, beside the canonical form.
type storedListing struct {
	_          struct{} `cbor:",toarray"`
	Name       workflow.Name
	Version    int
	Doc        string
	Tasks      int
	Partitions []string
	Added      int64 // ms
	Size       int
	Bare       bool
	Claims     []storedClaim
}

type storedClaim struct {
	_       struct{} `cbor:",toarray"`
	Notices [][]byte
	Edited  int64 // ms
}

// newDefinitions knows none.
func newDefinitions(s Store, limit int, r rights) *definitions {
	return &definitions{
		store: s, limit: limit, mesh: r.Issuer().Mesh, self: r.Issuer().ID(), rights: r, entries: map[workflow.Hash]*listing{}, named: map[workflow.Name][]*listing{},
		listed: map[workflow.PartnerID]load{}, away: map[wire.DefinitionStamp]bool{},
	}
}

// load reads the listings, and none of the definitions; unknown is told of each that
// cannot be read, which partners tell again.
func (d *definitions) load(unknown func(error)) error {
	return d.store.Scan([]byte{prefixListing}, func(key, value []byte) error {
		l, err := readListing(key, value)
		if err != nil {
			unknown(fmt.Errorf("a stored listing cannot be read: %w", err))
			return nil
		}
		d.enter(l)
		return nil
	})
}

func readListing(key, value []byte) (*listing, error) {
	var s storedListing
	if err := decode(value, &s); err != nil {
		return nil, err
	}
	l := &listing{size: s.Size, bare: s.Bare, claims: map[workflow.PartnerID]*claim{}}
	if copy(l.hash[:], key[1:]) != len(l.hash) {
		return nil, fmt.Errorf("its key has %d bytes", len(key))
	}
	l.about = api.Workflow{
		Name: s.Name, Version: s.Version, Hash: l.hash.String(), Doc: s.Doc, Tasks: s.Tasks, Partitions: s.Partitions, Added: atMilli(s.Added),
	}
	for _, sc := range s.Claims {
		if len(sc.Notices) == 0 {
			return nil, errors.New("a claim without notices")
		}
		first, err := trust.DecodeNotice(sc.Notices[0])
		if err != nil {
			return nil, err
		}
		l.claims[first.Author] = &claim{first.Author, first, sc.Notices, time.UnixMilli(sc.Edited)}
	}
	return l, nil
}

// enter puts a listing among those in memory. The caller holds d.mu, or is the only
// one that knows d.
func (d *definitions) enter(l *listing) {
	d.entries[l.hash] = l
	d.named[l.about.Name] = append(d.named[l.about.Name], l)
	for _, c := range l.claims {
		if c.listed() {
			was := d.listed[c.author]
			d.listed[c.author] = load{was.n + 1, was.bytes + l.size}
		}
	}
}

func newListing(e *definition) *listing {
	w := api.Workflow{Name: e.def.Name, Version: e.def.Version, Hash: e.hash.String(), Doc: brief(e.def.Doc), Tasks: len(e.def.Tasks)}
	for _, p := range e.plan.Partitions() {
		if len(w.Partitions) == shownPartitions {
			w.Partitions = append(w.Partitions, "…")
			break
		}
		w.Partitions = append(w.Partitions, string(p.Name))
	}
	return &listing{hash: e.hash, size: len(e.def.Canonical()), about: w, claims: map[workflow.PartnerID]*claim{}, parsed: weak.Make(e)}
}

// shownPartitions is how many partitions a list names.
const shownPartitions = 64

// brief is as much of a text as a list shows.
func brief(text string) string { return plain.CutBytes(text, 1000) }

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

// listing returns the entry of a definition, listed or not; nil: it is not known.
func (d *definitions) listing(h workflow.Hash) *listing {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.entries[h]
}

// has reports whether a definition is kept here, listed or not.
func (d *definitions) has(h workflow.Hash) bool {
	l := d.listing(h)
	return l != nil && !l.bare
}

// get returns a definition by hash, listed or not. The error wraps
// kv.ErrNotFound if it is not known.
func (d *definitions) get(h workflow.Hash) (*definition, error) {
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
			e, err = decodeDefinition(canonical)
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
func (d *definitions) canonical(h workflow.Hash) ([]byte, error) {
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
func (d *definitions) used(l *listing, e *definition) {
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

// fresh is a definition that was read lately, listed or not.
func (d *definitions) fresh(h workflow.Hash) *definition {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.recent {
		if e != nil && e.hash == h {
			return e
		}
	}
	return nil
}

// keep makes the definition of an instance durable, without listing it. The instance
// is in the index already, so that what is kept for it is not swept away.
func (d *definitions) keep(e *definition) error {
	d.changing.Lock()
	defer d.changing.Unlock()
	l := d.listing(e.hash)
	switch {
	case l == nil:
		l = newListing(e)
	case !l.bare:
		return nil
	}
	return d.put(l, e, nil)
}

// roomBeside reports whether there is room for a definition that nobody may list,
// beside those of the instances that its bringer began, and of those that all others
// did (tally.brings): as many as may be listed, and as many bytes as four members'. One
// that administers may fill all of it. What a member lists takes that member's room.
func (d *definitions) roomBeside(e *definition, by workflow.PartnerID, administers bool, brings map[workflow.PartnerID]map[workflow.Hash]int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if l := d.entries[e.hash]; by == d.self || l != nil && l.isListed() {
		return true
	}
	size := len(e.def.Canonical())
	all, its := load{1, size}, load{1, size}
	add := func(to *load, of map[workflow.Hash]int) {
		for h := range of {
			if l := d.entries[h]; h != e.hash && l != nil && !l.isListed() {
				to.n, to.bytes = to.n+1, to.bytes+l.size
			}
		}
	}
	if add(&its, brings[by]); !administers && (its.n > shareOf(d.limit) || its.bytes > maxAuthorBytes) {
		return false
	}
	for p, of := range brings {
		if p != d.self {
			add(&all, of)
		}
	}
	return all.n <= d.limit && all.bytes <= memberShare*maxAuthorBytes
}

// isListed reports whether anybody lists a definition.
func (l *listing) isListed() bool {
	for _, c := range l.claims {
		if c.listed() {
			return true
		}
	}
	return false
}

// sweep deletes the definitions that nobody lists and no instance uses. The uses are
// asked for when no other can be kept; nil: it is not known what is used.
func (d *definitions) sweep(uses func() map[workflow.Hash]bool) error {
	for {
		d.changing.Lock()
		more, err := d.sweepSome(uses)
		d.changing.Unlock()
		if !more || err != nil {
			return err
		}
	}
}

// sweepSome deletes as many definitions as one commit takes, and reports whether there
// are more. The caller holds d.changing.
func (d *definitions) sweepSome(uses func() map[workflow.Hash]bool) (more bool, err error) {
	var idle, swept []*listing
	d.mu.Lock()
	for _, l := range d.entries {
		if !l.isListed() && (!l.bare || len(l.claims) == 0) {
			idle = append(idle, l)
		}
	}
	d.mu.Unlock()
	if len(idle) == 0 {
		return false, nil
	}
	used := uses()
	if used == nil {
		return false, nil
	}
	var writes []kv.Write
	for _, l := range idle {
		if used[l.hash] {
			continue
		}
		end := kv.Write{Key: listingKey(l.hash), Delete: true}
		if len(l.claims) > 0 {
			end = l.asBare().write()
		}
		next := append(writes, end, kv.Write{Key: definitionKey(l.hash), Delete: true})
		if more = !fits(next); more {
			break
		}
		writes, swept = next, append(swept, l)
	}
	if len(writes) == 0 {
		return false, nil
	}
	if err := d.store.CommitWait(writes); err != nil {
		return false, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range swept {
		if d.leave(l); len(l.claims) > 0 {
			d.enter(l.asBare())
		}
	}
	return more, nil
}

// asBare is a listing of which only the notices are kept.
func (l *listing) asBare() *listing {
	return &listing{hash: l.hash, bare: true, size: l.size, about: l.about, claims: l.claims}
}

// add lists a definition in the name of this node; again, if it was taken off.
// It is kept as its canonical form says, so that every node has the tasks in
// the same order. What is to be spread is in say, unless it is listed already.
func (d *definitions) add(def *workflow.Definition, now time.Time) (l *listing, say []wire.Definition, err error) {
	e, err := decodeDefinition(def.Canonical())
	if err != nil {
		return nil, nil, api.Errorf(api.Invalid, "%v", err)
	}
	d.changing.Lock()
	defer d.changing.Unlock()
	l = d.listing(e.hash)
	if l == nil {
		l = newListing(e)
	}
	if d.shown(l) != nil {
		return l, nil, nil
	}
	c := l.claims[d.self]
	notices := c.all()
	if len(notices)+1 > trust.MaxNotices {
		return nil, nil, api.Errorf(api.Refused, "workflow %s was added and removed as often as it can be", def.Name).WithHint("give it another version")
	}
	if n := d.count(d.self); n >= d.limit {
		return nil, nil, api.Errorf(api.Refused, "this node lists %d workflows of its own, as many as it may", n).
			WithHint("remove some that are not used any more: mutirao workflow remove NAME; or raise limits.workflows")
	}
	n, err := d.announce(l, d.self, len(notices)+1, now)
	if err != nil {
		return nil, nil, err
	}
	if c == nil {
		c = &claim{author: d.self, first: n}
	}
	if o := d.owner(def.Name, c); !d.entitled(o, c) {
		return nil, nil, api.Errorf(api.NotAllowed, "the name %s belongs to another: %s listed a workflow under it", def.Name, o.author).
			WithHint("choose another name, or have the founder or a delegate add it")
	}
	next := &claim{d.self, c.first, append(slices.Clip(notices), trust.EncodeNotice(n)), now}
	if err := d.put(l, e, next); err != nil {
		return nil, nil, err
	}
	return d.listing(e.hash), []wire.Definition{{Notices: next.notices, Canonical: e.def.Canonical()}}, nil
}

func (c *claim) all() [][]byte {
	if c == nil {
		return nil
	}
	return c.notices
}

// announce signs the next notice about a definition.
func (d *definitions) announce(l *listing, author workflow.PartnerID, number int, now time.Time) (trust.Notice, error) {
	return d.rights.Issuer().Announce(trust.Notice{
		Definition: l.hash, Name: l.about.Name, Author: author, Number: uint64(number), Removed: number%2 == 0, At: trust.WallOf(now),
	})
}

// count is how many definitions an author lists.
func (d *definitions) count(author workflow.PartnerID) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.listed[author].n
}

// administers reports whether a notice is by the founder or a delegate that was
// not evicted since.
func (d *definitions) administers(n trust.Notice) bool {
	return n.Administers(d.mesh) && (len(n.Chain) == 0 || d.rights.Good(n.Chain))
}

// owner says whose a name is: the founder's and delegates', or one author's.
type owner struct {
	administrators bool
	author         workflow.PartnerID
	first          trust.Notice // the author's
}

// owner finds whose a name is, with a claim that may be new.
func (d *definitions) owner(name workflow.Name, newcomer *claim) (o owner) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ownerLocked(name, newcomer)
}

func (d *definitions) ownerLocked(name workflow.Name, newcomer *claim) (o owner) {
	look := func(c *claim) {
		admin := d.administers(c.first)
		earlier := cmp.Or(cmp.Compare(c.first.At, o.first.At), cmp.Compare(c.author, o.author)) < 0
		if o.author == "" || admin && !o.administrators || admin == o.administrators && earlier {
			o = owner{admin, c.author, c.first}
		}
	}
	if newcomer != nil {
		look(newcomer)
	}
	for _, l := range d.named[name] {
		for _, c := range l.claims {
			look(c)
		}
	}
	return o
}

// entitled reports whether a claim is by the owner of the name.
func (d *definitions) entitled(o owner, c *claim) bool {
	return c.author == o.author || o.administrators && d.administers(c.first)
}

// shown is the claim by which a definition is listed; nil: it is not.
func (d *definitions) shown(l *listing) *claim {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.shownLocked(l, d.ownerLocked(l.about.Name, nil))
}

func (d *definitions) shownLocked(l *listing, o owner) *claim {
	var best *claim
	for _, c := range l.claims {
		if c.listed() && d.entitled(o, c) && (best == nil || c.author < best.author) {
			best = c
		}
	}
	return best
}

// remove takes a definition off the list, and returns what is to be spread.
func (d *definitions) remove(l *listing, now time.Time) (say []wire.Definition, err error) {
	d.changing.Lock()
	defer d.changing.Unlock()
	l = d.listing(l.hash)
	me := d.rights.Issuer()
	mayAll := me.IsFounder() || me.Chain.Leaf().Delegate && d.rights.Good(me.Chain)
	for _, author := range slices.Sorted(maps.Keys(l.claims)) {
		c := l.claims[author]
		if !c.listed() || author != d.self && !mayAll {
			continue
		}
		n, err := d.announce(l, author, len(c.notices)+1, now)
		if err != nil {
			return say, err
		}
		next := &claim{author, c.first, append(slices.Clip(c.notices), trust.EncodeNotice(n)), now}
		if err := d.put(l, nil, next); err != nil {
			return say, err
		}
		say = append(say, wire.Definition{Notices: next.notices})
		l = d.listing(l.hash)
	}
	if c := d.shown(l); c != nil {
		return say, api.Errorf(api.NotAllowed, "workflow %s is listed by another, %s: only its author, the founder and delegates take it off the list", l.about.Name, c.author).
			WithHint("ask one of them")
	}
	return say, d.forget()
}

// forget unlearns the oldest removals if there are more than are worth remembering:
// a partner that was away for all that time may bring one back. All others fill as
// much as the node's limit, one member, unless it administers, a share of it, and
// this node's user as much besides.
func (d *definitions) forget() error {
	type old struct {
		l *listing
		c *claim
	}
	var removed []old
	d.mu.Lock()
	clear(d.away) // there may be room for them now
	for _, l := range d.entries {
		for _, c := range l.claims {
			if !c.listed() {
				removed = append(removed, old{l, c})
			}
		}
	}
	slices.SortFunc(removed, func(a, b old) int { return b.c.edited.Compare(a.c.edited) }) // the newest first
	var others int
	of := map[workflow.PartnerID]load{}
	removed = slices.DeleteFunc(removed, func(x old) bool { // those that are remembered
		its, bytes := of[x.c.author], 0
		for _, n := range x.c.notices {
			bytes += len(n)
		}
		its = load{its.n + 1, its.bytes + bytes}
		switch {
		case x.c.author == d.self && its.n > d.limit, x.c.author != d.self && others == d.limit:
			return false
		case x.c.author != d.self && !d.administers(x.c.first) && (its.n > shareOf(d.limit) || its.bytes > maxRemovedBytes):
			return false
		case x.c.author != d.self:
			others++
		}
		of[x.c.author] = its
		return true
	})
	d.mu.Unlock()
	for _, x := range removed {
		if err := d.put(d.listing(x.l.hash), nil, &claim{author: x.c.author}); err != nil {
			return err
		}
	}
	return nil
}

// Why what a partner lists is not taken in.
var (
	errNoRoom   = errors.New("a partner lists more workflows than this node may: remove some, or raise limits.workflows")
	errNoShare  = errors.New("one member lists more workflows than one may: it removes some, or raise limits.workflows")
	errNotTheir = errors.New("a workflow was listed under a name that belongs to another")
	errTooFast  = errors.New("definitions of a partner come faster than they are read; it is asked again")
)

// offer is what somebody says of a definition, read and proved.
type offer struct {
	claim
	hash      workflow.Hash
	name      workflow.Name
	canonical []byte
}

// read reads an offer. Signatures are proved as far as they are not known here.
func (d *definitions) read(w wire.Definition) (*offer, error) {
	o := &offer{canonical: w.Canonical, claim: claim{notices: w.Notices}}
	var known [][]byte
	for i, b := range w.Notices {
		n, err := trust.DecodeNotice(b)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			o.first, o.author, o.hash, o.name = n, n.Author, n.Definition, n.Name
			if l := d.listing(o.hash); l != nil {
				known = l.claims[o.author].all()
			}
		}
		if n.Definition != o.hash || n.Author != o.author || n.Name != o.name || n.Number != uint64(i+1) {
			return nil, fmt.Errorf("notice %d of workflow %s by %s does not follow those before it", n.Number, n.Name, n.Author)
		}
		if i < len(known) && bytes.Equal(known[i], b) {
			continue
		}
		if err := n.Verify(d.mesh); err != nil {
			return nil, err
		}
		if n.Issuer != n.Author && !d.administers(n) {
			return nil, said.Errorf("notice of workflow %s by %s, who administers no more: %w", n.Name, n.Issuer, trust.ErrNotAllowed)
		}
	}
	return o, nil
}

// merge takes in what a peer says of a definition and reports whether it was news.
// spend is asked before a definition is taken apart: false puts that off.
func (d *definitions) merge(w wire.Definition, now time.Time, spend func(author workflow.PartnerID, bytes int) bool) (news bool, author workflow.PartnerID, err error) {
	if len(w.Notices) == 0 {
		return false, "", errors.New("a definition of nobody's")
	}
	first, err := trust.DecodeNotice(w.Notices[0])
	if err != nil {
		return false, "", err
	}
	l := d.listing(first.Definition)
	if l != nil && len(l.claims[first.Author].all()) >= len(w.Notices) {
		return false, "", nil
	}
	o, err := d.read(w)
	if err != nil {
		return false, "", err
	}
	listed := o.listed()
	if !listed && (l == nil || l.claims[o.author] == nil) {
		d.notAway(o.stamp(o.hash))
		return false, "", nil // the removal of what was never listed here, or is forgotten
	}
	var e *definition
	if listed && (l == nil || l.bare) {
		if e = d.fresh(o.hash); e == nil {
			if !spend(o.author, len(o.canonical)) {
				return false, o.author, errTooFast
			}
			if e, err = decodeDefinition(o.canonical); err != nil {
				return false, "", err
			}
		}
		if e.hash != o.hash || e.def.Name != o.name {
			return false, "", fmt.Errorf("definition %s came under the name of another", e.def.Name)
		}
	} else if l.about.Name != o.name {
		return false, "", fmt.Errorf("definition %s came under the name of another", l.about.Name)
	}
	return d.take(o, e, now)
}

// take takes in an offer that is in order, if there is room for it.
func (d *definitions) take(o *offer, e *definition, now time.Time) (news bool, author workflow.PartnerID, err error) {
	d.changing.Lock()
	defer d.changing.Unlock()
	l := d.listing(o.hash)
	switch {
	case l == nil && e == nil, l != nil && l.bare && e == nil && o.listed():
		return false, "", nil // it was swept away meanwhile: its sender is asked again
	case l == nil:
		l = newListing(e)
	}
	old := l.claims[o.author]
	if len(old.all()) >= len(o.notices) {
		return false, "", nil // it came by another way meanwhile
	}
	if o.listed() && !old.listed() {
		if own := d.owner(o.name, &o.claim); !d.entitled(own, &o.claim) {
			return false, o.author, d.turnAway(o, errNotTheir)
		}
		if err := d.room(&o.claim, l.size); err != nil {
			return false, o.author, d.turnAway(o, err)
		}
	}
	c := o.claim
	c.edited = now
	if old != nil {
		c.first = old.first
	}
	if err = d.put(l, e, &c); err == nil && !c.listed() {
		err = d.forget()
	}
	return err == nil, o.author, err
}

// room tells, by an error, why there is no room for another that an author lists.
// All others fill as much as the node's limit, and one member, unless it
// administers, a share of it. The node's own user has as much room besides.
func (d *definitions) room(c *claim, size int) error {
	if c.author == d.self {
		return nil // of a time that this node's store has forgotten
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	all := 0
	for author, n := range d.listed {
		if author != d.self {
			all += n.n
		}
	}
	switch {
	case all >= d.limit:
		return errNoRoom
	case d.administers(c.first):
	case d.listed[c.author].n >= shareOf(d.limit) || d.listed[c.author].bytes+size > maxAuthorBytes:
		return errNoShare
	}
	return nil
}

// turnAway notes an offer that is not taken in.
func (d *definitions) turnAway(o *offer, why error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.away) < d.limit {
		d.away[o.stamp(o.hash)] = why != errNotTheir
	}
	return why
}

// notAway notes that a definition that was not taken in was removed.
func (d *definitions) notAway(s wire.DefinitionStamp) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.away, func(old wire.DefinitionStamp, _ bool) bool { return old.Claim == s.Claim && old.Number < s.Number })
}

// trouble says what is wrong; empty: nothing.
func (d *definitions) trouble() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, room := range d.away {
		if room {
			return errNoRoom.Error()
		}
	}
	return ""
}

// put makes a listing durable with a changed claim, if there is one; a claim without
// notices is forgotten. The definition itself is written when it is new.
func (d *definitions) put(l *listing, e *definition, changed *claim) error {
	next := &listing{hash: l.hash, bare: l.bare && e == nil, size: l.size, about: l.about, claims: maps.Clone(l.claims), parsed: l.parsed}
	if changed != nil {
		next.claims[changed.author] = changed
		if len(changed.notices) == 0 {
			delete(next.claims, changed.author)
		}
		if changed.listed() {
			next.about.Added = changed.edited
		}
	}
	writes := []kv.Write{next.write()}
	if was := d.listing(l.hash); e != nil && (was == nil || was.bare) {
		writes = append(writes, kv.Write{Key: definitionKey(l.hash), Value: e.def.Canonical()})
	}
	if err := d.store.CommitWait(writes); err != nil {
		return err
	}
	d.mu.Lock()
	d.leave(d.entries[l.hash])
	d.enter(next)
	if changed != nil {
		maps.DeleteFunc(d.away, func(s wire.DefinitionStamp, _ bool) bool { return s.Claim == wire.ClaimOf(l.hash, changed.author) })
	}
	d.mu.Unlock()
	if e != nil {
		d.used(next, e)
	}
	return nil
}

// write is how a listing is stored.
func (l *listing) write() kv.Write {
	s := storedListing{
		Name: l.about.Name, Version: l.about.Version, Doc: l.about.Doc, Tasks: l.about.Tasks, Partitions: l.about.Partitions,
		Added: l.about.Added.UnixMilli(), Size: l.size, Bare: l.bare,
	}
	for _, author := range slices.Sorted(maps.Keys(l.claims)) {
		c := l.claims[author]
		s.Claims = append(s.Claims, storedClaim{Notices: c.notices, Edited: c.edited.UnixMilli()})
	}
	return kv.Write{Key: listingKey(l.hash), Value: encode(s)}
}

// leave takes a listing out of memory. The caller holds d.mu.
func (d *definitions) leave(l *listing) {
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

// stamps says what this node knows, for peers to compare, and what they need not
// send.
func (d *definitions) stamps() []wire.DefinitionStamp {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := slices.Collect(maps.Keys(d.away))
	for _, l := range d.entries {
		for _, c := range l.claims {
			out = append(out, c.stamp(l.hash))
		}
	}
	slices.SortFunc(out, func(a, b wire.DefinitionStamp) int { return bytes.Compare(a.Claim[:], b.Claim[:]) })
	return out
}

// lacking are those of the stamps that say more than is known here.
func (d *definitions) lacking(theirs []wire.DefinitionStamp) map[wire.Claim]uint64 {
	known := numbers(d.stamps())
	out := map[wire.Claim]uint64{}
	for _, s := range theirs {
		if s.Number > known[s.Claim] {
			out[s.Claim] = s.Number
		}
	}
	return out
}

func numbers(stamps []wire.DefinitionStamp) map[wire.Claim]uint64 {
	out := make(map[wire.Claim]uint64, len(stamps))
	for _, s := range stamps {
		out[s.Claim] = max(s.Number, out[s.Claim])
	}
	return out
}

// newer are the entries that somebody with these stamps lacks, one after the
// other, as they are stored; an error is about one of them.
func (d *definitions) newer(have []wire.DefinitionStamp) iter.Seq2[wire.Definition, error] {
	known := numbers(have)
	type lack struct {
		hash    workflow.Hash
		notices [][]byte
	}
	var list []lack
	owners := map[workflow.Name]owner{}
	d.mu.Lock()
	for name := range d.named {
		owners[name] = d.ownerLocked(name, nil)
	}
	for _, h := range slices.SortedFunc(maps.Keys(d.entries), func(a, b workflow.Hash) int { return bytes.Compare(a[:], b[:]) }) {
		l := d.entries[h]
		for _, c := range l.claims {
			if s := c.stamp(h); s.Number > known[s.Claim] && d.entitled(owners[l.about.Name], c) {
				list = append(list, lack{h, c.notices})
			}
		}
	}
	d.mu.Unlock()
	return func(yield func(wire.Definition, error) bool) {
		for _, x := range list {
			w := wire.Definition{Notices: x.notices}
			var err error
			if len(x.notices)%2 == 1 {
				w.Canonical, err = d.canonical(x.hash)
			}
			if !yield(w, err) {
				return
			}
		}
	}
}

// list are the listed definitions, by name, newest version first, each with its author.
func (d *definitions) list() []*listing {
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

// find resolves NAME, NAME@VERSION and NAME@HASHPREFIX: of several editions the one
// that was added last.
func (d *definitions) find(ref string) (*listing, error) {
	all, err := d.editions(ref)
	if err != nil {
		return nil, err
	}
	return d.newest(all), nil
}

// newest is the edition that was added last, by the moment that its author signed: when
// each came here would differ from node to node.
func (d *definitions) newest(all []*listing) *listing {
	if len(all) == 1 {
		return all[0]
	}
	at := map[*listing]trust.Wall{}
	for _, l := range all {
		if c := d.shown(l); c != nil {
			n, err := trust.DecodeNotice(c.notices[len(c.notices)-1])
			if err == nil { // it was decoded when it came
				at[l] = n.At
			}
		}
	}
	return slices.MaxFunc(all, func(a, b *listing) int {
		return cmp.Or(cmp.Compare(at[a], at[b]), cmp.Compare(a.about.Version, b.about.Version), bytes.Compare(a.hash[:], b.hash[:]))
	})
}

// editions are the listed definitions that NAME, NAME@VERSION or NAME@HASHPREFIX
// names: at least one.
func (d *definitions) editions(ref string) ([]*listing, error) {
	name, at, pinned := strings.Cut(ref, "@")
	var found []*listing
	var names, versions []string
	for _, l := range d.list() {
		if string(l.about.Name) != name {
			names = append(names, string(l.about.Name))
			continue
		}
		if !pinned || strconv.Itoa(l.about.Version) == at || (len(at) >= 4 && strings.HasPrefix(l.about.Hash, at)) {
			found = append(found, l)
		} else {
			versions = append(versions, fmt.Sprintf("%s@%d", name, l.about.Version))
		}
	}
	if len(found) == 0 {
		return nil, d.notFound(ref, names, versions)
	}
	return found, nil
}

// notFound says what there is instead of a workflow that is not there: its other
// versions, the nearest of the other names, or the names.
func (d *definitions) notFound(ref string, names, versions []string) error {
	err := api.Errorf(api.NotFound, "no workflow %q here", ref)
	name, _, _ := strings.Cut(ref, "@")
	switch near := workflow.Nearest(name, names); {
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
func (d *definitions) author(l *listing) workflow.PartnerID {
	if c := d.shown(l); c != nil {
		return c.author
	}
	return ""
}

// authorOf is the partner that lists a definition; empty: nobody does.
func (d *definitions) authorOf(h workflow.Hash) workflow.PartnerID {
	if l := d.listing(h); l != nil {
		return d.author(l)
	}
	return ""
}

// whole is an entry with its definition.
func (d *definitions) whole(l *listing) (*api.Workflow, error) {
	e, err := d.get(l.hash)
	if err != nil {
		return nil, err
	}
	w := l.about
	w.Doc, w.Definition = e.def.Doc, e.def.Canonical()
	return &w, nil
}

// origin says where a definition comes from, for the allow list of an application:
// who ever listed it, and whether that is this node, the founder or a delegate.
func (d *definitions) origin(e *definition) configs.Origin {
	o := configs.Origin{Workflow: e.def.Name, Hash: e.hash.String()}
	d.mu.Lock()
	defer d.mu.Unlock()
	if l := d.entries[e.hash]; l != nil {
		for _, c := range l.claims {
			o.Authors = append(o.Authors, string(c.author))
			o.Trusted = o.Trusted || c.author == d.self || d.administers(c.first)
		}
	}
	return o
}
