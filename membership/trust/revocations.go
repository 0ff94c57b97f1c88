package trust

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/membership/internal/codec"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Evictions knows which chains are evicted, of those that are [Chain.Authentic]: Check
// returns an error that wraps [ErrRevoked]. nil knows of none.
type Evictions interface{ Check(Chain) error }

// Evicted is the error of evictions that are about a chain; r may be nil.
func Evicted(r Evictions, ch Chain) error {
	if r == nil {
		return nil
	}
	return r.Check(ch)
}

// EvictedIssue is the error of evictions that void what a delegate with that chain issued
// under a serial besides certificates of members; r may be nil. What the founder issued, by
// has no certificate of, is never void.
func EvictedIssue(r Evictions, by Chain, s Serial) error {
	if len(by) == 0 {
		return nil
	}
	return Evicted(r, Chain{{Name: "this user", Serial: s}, by.Leaf()})
}

// Revocations is the set of evictions that a node knows. Sets merge by union,
// and every answer is a function of the set, so nodes that know the same
// evictions refuse the same certificates. A nil *Revocations knows none.
// It is not safe for concurrent use.
type Revocations struct {
	mesh    Mesh
	known   map[EvictionID]Eviction
	against map[workflow.PartnerID][]EvictionID // by the evicted member, sorted
}

// NewRevocations is the empty set for mesh m.
func NewRevocations(m Mesh) *Revocations {
	return &Revocations{mesh: m, known: map[EvictionID]Eviction{}, against: map[workflow.PartnerID][]EvictionID{}}
}

// Add takes in e if it is valid and reports whether it was new. The caller
// persists e, passes it on, and lets the partner list look again.
func (r *Revocations) Add(e Eviction) (bool, error) {
	id := e.ID()
	if _, ok := r.known[id]; ok {
		return false, nil
	}
	if err := e.vet(r.mesh); err != nil {
		return false, err
	}
	if err := r.room(e.Issuer); err != nil {
		return false, err
	}
	r.known[id] = e
	ids := append(r.against[e.Partner], id)
	slices.SortFunc(ids, compareIDs[EvictionID])
	r.against[e.Partner] = ids
	return true, nil
}

// room checks the bounds. The founder's evictions are counted apart, so that
// delegates gone wild cannot keep it from evicting them.
func (r *Revocations) room(issuer workflow.PartnerID) error {
	own, delegates := 0, 0
	for _, e := range r.known {
		if e.Issuer == issuer {
			own++
		}
		if e.Issuer != r.mesh.Founder {
			delegates++
		}
	}
	switch {
	case issuer == r.mesh.Founder && own >= MaxEvictions:
		return fmt.Errorf("%d evictions by the founder are known: no more are accepted", own)
	case issuer != r.mesh.Founder && own >= MaxEvictionsPerDelegate:
		return said.Errorf("%d evictions by %s are known: no more are accepted of one delegate", own, issuer)
	case issuer != r.mesh.Founder && delegates >= MaxEvictions:
		return fmt.Errorf("%d evictions by delegates are known: no more are accepted", delegates)
	}
	return nil
}

// Check reports whether a chain that is [Chain.Authentic] is evicted: its leaf,
// or its delegate without keeping the leaf. The error wraps [ErrRevoked].
func (r *Revocations) Check(ch Chain) error {
	leaf := ch.Leaf()
	for _, e := range r.hitting(leaf) {
		return said.Errorf("%s is %w by %s at %s%s", leaf.Name, ErrRevoked, e.Issuer, e.At, because(e.Reason))
	}
	if len(ch) < 2 {
		return nil
	}
	hits := r.hitting(ch[1])
	if len(hits) == 0 || slices.ContainsFunc(hits, func(e Eviction) bool { return hasID(e.Keep, leaf.Serial) }) {
		return nil
	}
	return fmt.Errorf("certificate of %s is void: its issuer %s is %w since %s, and it was not listed then: ask for a new one",
		leaf.Name, ch[1].Name, ErrRevoked, hits[0].At)
}

// KeyEvicted reports whether the founder evicted the partner's key, whatever
// certificate it may show: enough to refuse a connection before any handshake.
func (r *Revocations) KeyEvicted(id workflow.PartnerID) bool {
	if r == nil {
		return false
	}
	return slices.ContainsFunc(r.against[id], func(eid EvictionID) bool {
		e := r.known[eid]
		return e.OfKey() && e.Issuer == r.mesh.Founder
	})
}

// hitting returns the evictions in force that are about c.
func (r *Revocations) hitting(c Certificate) []Eviction {
	if r == nil {
		return nil
	}
	var hits []Eviction
	for _, id := range r.against[c.Partner] {
		if e := r.known[id]; e.names(c) && r.inForce(id, e, c) {
			hits = append(hits, e)
		}
	}
	return hits
}

// inForce reports whether e counts against c: the founder's always do, a
// delegate's do not against another delegate, nor once it is evicted itself,
// unless the founder kept them.
func (r *Revocations) inForce(id EvictionID, e Eviction, c Certificate) bool {
	if e.Issuer == r.mesh.Founder {
		return true
	}
	if c.Delegate {
		return false
	}
	hits := r.hitting(e.Chain.Leaf()) // a delegate's certificate: only the founder's evictions, so this ends
	return len(hits) == 0 ||
		slices.ContainsFunc(hits, func(h Eviction) bool { return hasID(h.KeepEvictions, id) })
}

// All returns the evictions in the order of their IDs.
func (r *Revocations) All() []Eviction {
	var all []Eviction
	for _, id := range r.IDs() {
		all = append(all, r.known[id])
	}
	return all
}

// IDs names the evictions, sorted; what another node lacks is found by it.
func (r *Revocations) IDs() []EvictionID {
	return slices.SortedFunc(maps.Keys(r.known), compareIDs[EvictionID])
}

// Digest is the same on two nodes exactly if they know the same evictions.
func (r *Revocations) Digest() [sha256.Size]byte { return sha256.Sum256(codec.Encode(r.IDs())) }

// LackedBy returns the evictions that a node with the given IDs, in any
// order, does not have.
func (r *Revocations) LackedBy(theirs []EvictionID) []Eviction {
	has := make(map[EvictionID]bool, len(theirs))
	for _, id := range theirs {
		has[id] = true
	}
	return slices.DeleteFunc(r.All(), func(e Eviction) bool { return has[e.ID()] })
}

// by returns the IDs of the evictions that issuer signed, sorted.
func (r *Revocations) by(issuer workflow.PartnerID) []EvictionID {
	var ids []EvictionID
	for _, id := range r.IDs() {
		if r.known[id].Issuer == issuer {
			ids = append(ids, id)
		}
	}
	return ids
}

// nextNumber continues the issuer's count.
func (r *Revocations) nextNumber(issuer workflow.PartnerID) uint64 {
	var last uint64
	for _, e := range r.known {
		if e.Issuer == issuer {
			last = max(last, e.Number)
		}
	}
	return last + 1
}

// because is the tail of a message about something done for reason.
func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}
