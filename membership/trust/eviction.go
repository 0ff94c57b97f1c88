package trust

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/membership/internal/codec"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// EvictionID names one eviction: a hash of what was signed.
type EvictionID [16]byte

// String is id in hexadecimal.
func (id EvictionID) String() string { return hex.EncodeToString(id[:]) }

// Eviction puts a partner out for good (Serial zero: its key, hence every
// certificate it has or gets), or voids the one certificate Serial of it. It
// never names a certificate by hash: a hash can be dodged by encoding or
// signing the same certificate again.
//
// Delegates evict members. Only the founder evicts delegates, so two delegates
// can never evict each other. A delegate's eviction voids whatever hangs on
// the evicted certificate, except what the founder lists: the certificates in
// Keep and the evictions in KeepEvictions. Hence every node comes to the same
// answer, whatever it had seen before. Of several evictions of one delegate,
// what any of them keeps is kept: the founder can mend an incomplete list.
type Eviction struct {
	Mesh          MeshID             `cbor:"1,keyasint"`
	Issuer        workflow.PartnerID `cbor:"2,keyasint"`
	Number        uint64             `cbor:"3,keyasint"` // the issuer's own count, from 1, for people
	Partner       workflow.PartnerID `cbor:"4,keyasint"`
	Serial        Serial             `cbor:"5,keyasint"`
	Reason        string             `cbor:"6,keyasint,omitempty"`
	At            Wall               `cbor:"7,keyasint"`
	Keep          []Serial           `cbor:"8,keyasint,omitempty"`  // sorted, each once
	KeepEvictions []EvictionID       `cbor:"9,keyasint,omitempty"`  // sorted, each once
	Chain         Chain              `cbor:"10,keyasint,omitempty"` // the issuer's; none for the founder
	Signature     []byte             `cbor:"11,keyasint,omitempty"`
}

const evictionDomain = "eviction"

// body is what is signed.
func (e Eviction) body() []byte {
	e.Signature = nil
	return codec.Encode(e)
}

// ID names e.
func (e Eviction) ID() EvictionID {
	sum := sha256.Sum256(InDomain(evictionDomain, e.body()))
	return EvictionID(sum[:len(EvictionID{})])
}

// OfKey reports whether e evicts the partner, not just one of its certificates.
func (e Eviction) OfKey() bool { return e.Serial == Serial{} }

// names reports whether e is about certificate c, whether or not it counts.
func (e Eviction) names(c Certificate) bool {
	return e.Partner == c.Partner && (e.OfKey() || e.Serial == c.Serial)
}

// EncodeEviction writes e for DecodeEviction.
func EncodeEviction(e Eviction) []byte { return codec.Encode(e) }

// DecodeEviction reads an eviction; [Revocations.Add] judges it.
func DecodeEviction(b []byte) (Eviction, error) {
	var e Eviction
	if err := codec.Decode("eviction", b, MaxEviction, &e); err != nil {
		return Eviction{}, err
	}
	return e, nil
}

// vet checks that e is well-formed, of mesh m, and by one who may evict.
func (e Eviction) vet(m Mesh) error {
	if e.Mesh != m.ID() {
		return fmt.Errorf("eviction %w: %s, this one is %s", ErrWrongMesh, e.Mesh.Short(), m.Name)
	}
	if _, err := PublicKey(e.Partner); err != nil {
		return err
	}
	if e.Partner == m.Founder {
		return said.Errorf("eviction of the founder %s: %w: to have another founder, found another mesh", e.Partner,
			ErrNotAllowed)
	}
	if e.At < 0 || e.At > maxWall {
		return fmt.Errorf("eviction at second %d: want the years 1970 to 9999", int64(e.At))
	}
	if len(e.Reason) > MaxReason {
		return fmt.Errorf("eviction with a reason of %d bytes: at most %d", len(e.Reason), MaxReason)
	}
	if e.Number == 0 {
		return said.Errorf("eviction of %s has no number", e.Partner)
	}
	if !sortedSet(e.Keep) || !sortedSet(e.KeepEvictions) {
		return said.Errorf("eviction of %s: what is kept is out of order or listed twice", e.Partner)
	}
	if err := e.vetIssuer(m); err != nil {
		return err
	}
	return Verify(e.Issuer, evictionDomain, e.body(), e.Signature)
}

// vetIssuer checks that e's issuer is the founder or certified as a delegate.
// An eviction stays in force when its issuer's certificate runs out, so it is
// held against the moment that it states, not against now.
func (e Eviction) vetIssuer(m Mesh) error {
	if e.Issuer == m.Founder {
		if len(e.Chain) != 0 {
			return fmt.Errorf("eviction by the founder with a certificate attached: want none")
		}
		return nil
	}
	if err := e.Chain.Authentic(m); err != nil {
		return said.Errorf("eviction by %s: %w", e.Issuer, err)
	}
	by := e.Chain.Leaf()
	switch {
	case by.Partner != e.Issuer || !by.Delegate:
		return said.Errorf("eviction by %s: only the founder and delegates evict: %w", e.Issuer, ErrNotAllowed)
	case e.At < by.NotBefore || e.At > by.NotAfter:
		return fmt.Errorf("eviction by %s at %s: its certificate is valid from %s to %s: %w", by.Name, e.At,
			by.NotBefore, by.NotAfter, ErrNotAllowed)
	case len(e.Keep)+len(e.KeepEvictions) > 0:
		return fmt.Errorf("eviction by %s keeps what hangs on a delegate: only the founder evicts delegates: %w",
			by.Name, ErrNotAllowed)
	}
	return nil
}

// sortedSet reports whether ids ascend strictly.
func sortedSet[T Serial | EvictionID](ids []T) bool {
	for i := 1; i < len(ids); i++ {
		if compareIDs(ids[i-1], ids[i]) >= 0 {
			return false
		}
	}
	return true
}

// compareIDs orders serials and eviction IDs by their bytes.
func compareIDs[T Serial | EvictionID](a, b T) int {
	x, y := [16]byte(a), [16]byte(b)
	return bytes.Compare(x[:], y[:])
}

// hasID reports whether a sorted set holds id.
func hasID[T Serial | EvictionID](set []T, id T) bool {
	_, found := slices.BinarySearchFunc(set, id, compareIDs[T])
	return found
}

// Evict signs the eviction that e describes by Partner, Serial (zero for the
// whole key), Reason and At; the rest is filled in. r is what is evicted
// already; listed are the chains of the partners that are listed here, of
// which those that an evicted delegate issued stay, and also the serials of
// what else that delegate issued and the founder knows.
func (i Issuer) Evict(e Eviction, r *Revocations, listed []Chain, also ...Serial) (Eviction, error) {
	e.Mesh, e.Issuer, e.Number = i.Mesh.ID(), i.ID(), r.nextNumber(i.ID())
	e.Chain, e.Keep, e.KeepEvictions = nil, nil, nil
	if i.IsFounder() {
		e.Keep, e.KeepEvictions = hangingOn(e, listed, also), r.by(e.Partner)
	} else {
		e.Chain = i.Chain
		if err := refuseDelegate(e, listed); err != nil {
			return Eviction{}, err
		}
	}
	e.Signature = Sign(i.Key, evictionDomain, e.body())
	return e, e.vet(i.Mesh)
}

// hangingOn lists the certificates that the partner evicted by e has issued, and also
// those serials.
func hangingOn(e Eviction, listed []Chain, also []Serial) []Serial {
	keep := slices.Clone(also)
	for _, ch := range listed {
		if len(ch) > 1 && e.names(ch[1]) {
			keep = append(keep, ch.Leaf().Serial)
		}
	}
	slices.SortFunc(keep, compareIDs[Serial])
	return slices.Compact(keep)
}

// refuseDelegate tells a delegate at once that its eviction of another would
// have no effect.
func refuseDelegate(e Eviction, listed []Chain) error {
	for _, ch := range listed {
		if c := ch.Leaf(); e.names(c) && c.Delegate {
			return fmt.Errorf("%s is a delegate: only the founder evicts delegates: %w", c.Name, ErrNotAllowed)
		}
	}
	return nil
}
