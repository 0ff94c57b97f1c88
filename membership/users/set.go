package users

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/membership/internal/codec"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// ErrNoRoom tells that as much is known already as whoever is answerable for a record may
// bring in.
var ErrNoRoom = errors.New("no more records about users are accepted")

// Set is the records that a node knows. Sets merge by union, and in each slot the record
// that comes last is kept; every answer is a function of the set and of the evictions, so
// nodes that know the same say the same. It is not safe for concurrent use.
type Set struct {
	mesh    trust.Mesh
	evicted trust.Evictions
	known   map[RecordID]*entry
	slots   map[slot]*entry
	of      map[ID][]*entry                 // by user
	keys    map[workflow.PartnerID][]*entry // certificates, by key
	gone    map[gone][]*entry               // removals
	loads   map[share]load
	signed  map[signed]int
}

// entry is a record that a set holds.
type entry struct {
	Record
	id   RecordID
	slot slot
	size int
}

// gone is a user that was removed, or one of its keys.
type gone struct {
	user ID
	key  workflow.PartnerID
}

// share is a part of what an administrator is answerable for.
type share struct {
	who  workflow.PartnerID
	part part
}

// signed is what a user's keys signed, of those that hang on what one administrator certified.
type signed struct {
	user ID
	share
}

// load is how many records there are, and how many bytes of them.
type load struct{ n, bytes int }

// NewSet is the empty set for mesh m. What evicted says is asked again with every answer.
func NewSet(m trust.Mesh, evicted trust.Evictions) *Set {
	return &Set{
		mesh: m, evicted: evicted, known: map[RecordID]*entry{}, slots: map[slot]*entry{}, of: map[ID][]*entry{},
		keys: map[workflow.PartnerID][]*entry{}, gone: map[gone][]*entry{}, loads: map[share]load{},
		signed: map[signed]int{},
	}
}

// Change is what adding a record changed: the caller stores Added, and forgets Replaced.
type Change struct {
	Added, Replaced RecordID
	// Again: Replaced was there.
	Again bool
}

// Add takes in a record if it is valid. fresh: it was not here, and is worth passing on.
func (s *Set) Add(r Record) (c Change, fresh bool, err error) {
	e := &entry{Record: r}
	b := EncodeRecord(r)
	e.id, e.size = idOf(b), len(b)
	if s.known[e.id] != nil {
		return Change{}, false, nil
	}
	if e.size > MaxRecord {
		return Change{}, false, fmt.Errorf("record about a user of %d bytes: at most %d", e.size, MaxRecord)
	}
	e.slot = r.slot()
	before := s.slots[e.slot]
	if before != nil && !r.after(before.Record) {
		return Change{}, false, nil
	}
	if err := r.verify(s.mesh); err != nil {
		return Change{}, false, err
	}
	if before == nil {
		if err := s.room(e); err != nil {
			return Change{}, false, err
		}
	} else {
		s.drop(before)
		c.Replaced, c.Again = before.id, true
	}
	s.enter(e)
	c.Added = e.id
	return c, true, nil
}

// Room returns an error that wraps [ErrNoRoom] where there is no room for a record.
func (s *Set) Room(r Record) error {
	e := &entry{Record: r, slot: r.slot(), size: len(EncodeRecord(r))}
	if s.slots[e.slot] != nil {
		return nil
	}
	return s.room(e)
}

func (s *Set) enter(e *entry) {
	s.known[e.id], s.slots[e.slot] = e, e
	s.of[e.slot.user] = append(s.of[e.slot.user], e)
	if e.Device != nil {
		key := e.Device.Leaf().Key
		s.keys[key] = append(s.keys[key], e)
	}
	if r := e.Removal; r != nil {
		s.gone[gone{r.User, r.Key}] = append(s.gone[gone{r.User, r.Key}], e)
	}
	s.count(e, 1)
}

func (s *Set) drop(e *entry) {
	is := func(x *entry) bool { return x == e }
	delete(s.known, e.id)
	delete(s.slots, e.slot)
	s.of[e.slot.user] = slices.DeleteFunc(s.of[e.slot.user], is)
	if e.Device != nil {
		key := e.Device.Leaf().Key
		s.keys[key] = slices.DeleteFunc(s.keys[key], is)
	}
	if r := e.Removal; r != nil {
		s.gone[gone{r.User, r.Key}] = slices.DeleteFunc(s.gone[gone{r.User, r.Key}], is)
	}
	s.count(e, -1)
}

func (e *entry) share() share { return share{e.answerable(), e.part()} }

func (s *Set) count(e *entry, by int) {
	l := s.loads[e.share()]
	s.loads[e.share()] = load{l.n + by, l.bytes + by*e.size}
	if _, own := e.signer(); own != nil {
		s.signed[signed{e.slot.user, e.share()}] += by
	}
}

// room checks the bounds. What the founder is answerable for is counted apart, so that
// delegates gone wild cannot keep it from making users.
func (s *Set) room(e *entry) error {
	its := e.share()
	if _, own := e.signer(); own != nil && s.signed[signed{e.slot.user, its}] >= MaxOfUser {
		return fmt.Errorf("%d %s that user %s signed are known: %w of one user", MaxOfUser, partNames[its.part],
			own.Account.Name, ErrNoRoom)
	}
	if its.who == s.mesh.Founder {
		return s.loads[its].fits(e, load{MaxRecords, MaxBytes}, "the founder")
	}
	if err := s.loads[its].fits(e, load{MaxOfDelegate, MaxBytesOfDelegate}, "one delegate"); err != nil {
		return said.Errorf("of %s: %w", its.who, err)
	}
	var all load
	for of, l := range s.loads {
		if of.who != s.mesh.Founder && of.part == its.part {
			all = load{all.n + l.n, all.bytes + l.bytes}
		}
	}
	return all.fits(e, load{MaxRecords, MaxBytes}, "all delegates")
}

// fits checks one part of a share of so much.
func (l load) fits(e *entry, share load, whose string) error {
	most := e.part().of(share)
	if l.n >= most.n || l.bytes+e.size > most.bytes {
		return fmt.Errorf("%d %s of %d bytes are known, and at most %d of %d bytes may be: %w of %s",
			l.n, partNames[e.part()], l.bytes, most.n, most.bytes, ErrNoRoom, whose)
	}
	return nil
}

// Load is how many records of one kind an administrator is answerable for, and how many it may
// be.
type Load struct {
	What  string
	Count int
	Most  int
}

// Loads are those of an administrator.
func (s *Set) Loads(p workflow.PartnerID) (out []Load) {
	most := load{n: MaxOfDelegate}
	if p == s.mesh.Founder {
		most.n = MaxRecords
	}
	for k := range parts {
		out = append(out, Load{partNames[k], s.loads[share{p, k}].n, k.of(most).n})
	}
	return out
}

// Encoded is a record that the set holds, as it is stored and sent; nil: it does not.
func (s *Set) Encoded(id RecordID) []byte {
	if e := s.known[id]; e != nil {
		return EncodeRecord(e.Record)
	}
	return nil
}

// IDs names the records, sorted; what another node lacks is found by it.
func (s *Set) IDs() []RecordID {
	return slices.SortedFunc(maps.Keys(s.known), func(a, b RecordID) int { return bytes.Compare(a[:], b[:]) })
}

// Digest is the same on two nodes exactly if they know the same records.
func (s *Set) Digest() [sha256.Size]byte { return sha256.Sum256(codec.Encode(s.IDs())) }

// LackedBy are the encoded records that a node with the given IDs, in any order, does not
// have: all, or the first in the order of their IDs that have so many bytes together.
func (s *Set) LackedBy(theirs []RecordID, bytes int) (out [][]byte) {
	has := make(map[RecordID]bool, len(theirs))
	for _, id := range theirs {
		has[id] = true
	}
	for _, id := range s.IDs() {
		if bytes > 0 && !has[id] {
			b := s.Encoded(id)
			out, bytes = append(out, b), bytes-len(b)
		}
	}
	return out
}

// IssuedBy are the serials of what an administrator signed and this set holds: what is to
// stay in force when the founder evicts it.
func (s *Set) IssuedBy(p workflow.PartnerID) (out []trust.Serial) {
	for _, e := range s.known {
		switch by, own := e.signer(); {
		case own != nil || by != p:
		case e.Account != nil:
			out = append(out, e.Account.By.Serial)
		case e.Role != nil:
			out = append(out, e.Role.By.Serial)
		case e.Removal != nil:
			out = append(out, e.Removal.By.Serial)
		}
	}
	for _, of := range s.keys {
		for _, e := range of {
			if root := e.Device.Chain[len(e.Device.Chain)-1]; root.Issuer == p {
				out = append(out, root.Serial)
			}
			if a := e.Device.Account; a.By.Issuer == p {
				out = append(out, a.By.Serial)
			}
		}
	}
	slices.SortFunc(out, func(a, b trust.Serial) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(out)
}
