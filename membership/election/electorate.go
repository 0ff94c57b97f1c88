package election

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/membership/internal/codec"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Voter is one member of an electorate: a partner in one life of its store.
// A store that was restored has forgotten its votes, so it has no vote until
// a new list names its new incarnation.
type Voter struct {
	Partner     workflow.PartnerID `cbor:"1,keyasint"`
	Incarnation trust.Incarnation  `cbor:"2,keyasint"`
}

// ListHash identifies an electorate: a hash of what its signers sign.
type ListHash [sha256.Size]byte

// String is the beginning of h in hexadecimal.
func (h ListHash) String() string { return hex.EncodeToString(h[:6]) }

// The bounds of an electorate: of its lease, and of its voters.
const (
	MinLease  = time.Second
	MaxLease  = time.Hour
	MaxVoters = 101
)

// counterStep is how far the founder's word alone moves the number and the
// terms: to the next multiple. What a cut-off majority may have done in the
// meantime stays below it.
const counterStep = 1000

// maxTerm keeps terms far from overflow.
const maxTerm = 1 << 48

// Electorate is a numbered list of those who elect the coordinator. Who votes
// must not depend on who is seen: expiry, joins and evictions never change
// it. List n+1 is valid with the countersignatures of a majority of list n,
// or with the founder's signature alone.
//
// Each member countersigns one successor only, votes no more in n from then
// on, and states the highest term it voted in; n+1 starts above these. Any
// coordinator of list n was elected by a majority of n, which has a member in
// common with the countersigners, so every term of n+1 is above every term
// in which n elected.
type Electorate struct {
	Mesh     trust.MeshID  `cbor:"1,keyasint"`
	Number   uint64        `cbor:"2,keyasint"`
	Previous ListHash      `cbor:"3,keyasint"`
	Voters   []Voter       `cbor:"4,keyasint"`           // sorted by partner, each once
	Lease    time.Duration `cbor:"5,keyasint"`           // that a vote grants
	Start    uint64        `cbor:"6,keyasint,omitempty"` // the first term; stated by the founder only
	Founder  []byte        `cbor:"7,keyasint,omitempty"` // the founder's signature, or
	Consents []Consent     `cbor:"8,keyasint,omitempty"` // those of list n, sorted by partner
}

// Consent is a countersignature of a member of list n under list n+1.
type Consent struct {
	List      ListHash `cbor:"1,keyasint"`
	Voter     Voter    `cbor:"2,keyasint"`
	Highest   uint64   `cbor:"3,keyasint"` // the highest term it voted in
	Signature []byte   `cbor:"4,keyasint,omitempty"`
}

const (
	electorateDomain = "electorate"
	consentDomain    = "electorate-consent"
)

// body is what is hashed, and signed by the founder.
func (l Electorate) body() []byte {
	l.Founder, l.Consents = nil, nil
	return codec.Encode(l)
}

// Hash identifies l; it does not depend on who has signed it.
func (l Electorate) Hash() ListHash { return sha256.Sum256(trust.InDomain(electorateDomain, l.body())) }

func (c Consent) body() []byte {
	c.Signature = nil
	return codec.Encode(c)
}

// Majority is how many voters elect, or consent to a successor.
func (l Electorate) Majority() int { return len(l.Voters)/2 + 1 }

// Has reports whether v may vote.
func (l Electorate) Has(v Voter) bool {
	i, found := slices.BinarySearchFunc(l.Voters, v.Partner, comparePartner)
	return found && l.Voters[i] == v
}

func comparePartner(v Voter, id workflow.PartnerID) int {
	return strings.Compare(string(v.Partner), string(id))
}

// First is the lowest term in which l elects.
func (l Electorate) First() uint64 {
	first := l.Start
	for _, c := range l.Consents {
		first = max(first, c.Highest+1)
	}
	return first
}

// compare orders lists: the higher number counts, of two with one number,
// which takes an override, the greater hash.
func (l Electorate) compare(o Electorate) int {
	x, y := l.Hash(), o.Hash()
	return cmp.Or(cmp.Compare(l.Number, o.Number), bytes.Compare(x[:], y[:]))
}

// validate checks what needs no signature.
func (l Electorate) validate() error {
	if len(l.Voters) == 0 || len(l.Voters) > MaxVoters {
		return fmt.Errorf("electorate of %d voters: want 1 to %d", len(l.Voters), MaxVoters)
	}
	for i, v := range l.Voters {
		if _, err := trust.PublicKey(v.Partner); err != nil {
			return fmt.Errorf("electorate: %w", err)
		}
		if i > 0 && l.Voters[i-1].Partner >= v.Partner {
			return said.Errorf("electorate: voter %s is out of order or listed twice", v.Partner)
		}
	}
	if l.Lease < MinLease || l.Lease > MaxLease {
		return fmt.Errorf("electorate with a lease of %s: want %s to %s", l.Lease, MinLease, MaxLease)
	}
	if l.Number == 0 || l.First() > maxTerm {
		return fmt.Errorf("electorate %d starting at term %d: want a number from 1 and a term up to %d", l.Number,
			l.First(), uint64(maxTerm))
	}
	return nil
}

// newList is a list of voters, given in any order, for a mesh.
func newList(m trust.Mesh, number uint64, voters []Voter, lease time.Duration) Electorate {
	voters = slices.Clone(voters)
	slices.SortFunc(voters, func(a, b Voter) int { return comparePartner(a, b.Partner) })
	return Electorate{Mesh: m.ID(), Number: number, Voters: slices.Compact(voters), Lease: lease}
}

// FoundElectorate makes, on the founder's word alone, the first list of a
// mesh, or an override of known, for when a majority of its voters is lost.
// If that majority is only out of sight, it may elect a coordinator of its
// own until it hears of the override: the caller warns of it.
func FoundElectorate(
	m trust.Mesh, founder ed25519.PrivateKey, voters []Voter, lease time.Duration, known Lineage, highest uint64,
) (Lineage, error) {
	number, start := uint64(1), uint64(1)
	if head, ok := known.Head(); ok {
		number = (head.Number/counterStep + 1) * counterStep
		start = (max(highest, head.First())/counterStep + 1) * counterStep
	}
	l := newList(m, number, voters, lease)
	l.Start = start
	l.Founder = trust.Sign(founder, electorateDomain, l.body())
	lineage := Lineage{l}
	return lineage, lineage.Verify(m)
}

// successor is the unsigned list that may follow l.
func (l Electorate) successor(m trust.Mesh, voters []Voter, lease time.Duration) Electorate {
	next := newList(m, l.Number+1, voters, lease)
	next.Previous = l.Hash()
	return next
}

// consent countersigns l for voter v, who voted up to term highest.
func (l Electorate) consent(key ed25519.PrivateKey, v Voter, highest uint64) Consent {
	c := Consent{List: l.Hash(), Voter: v, Highest: highest}
	c.Signature = trust.Sign(key, consentDomain, c.body())
	return c
}

// verify checks that c is a countersignature by a member of list prev.
func (c Consent) verify(prev Electorate) error {
	if !prev.Has(c.Voter) {
		return said.Errorf("consent of %s, who has no vote in electorate %d: %w", c.Voter.Partner, prev.Number,
			trust.ErrNotAllowed)
	}
	return trust.Verify(c.Voter.Partner, consentDomain, c.body(), c.Signature)
}

// Lineage proves an electorate, its last: from a list that the founder signed
// each list to the next. Lists that an override made obsolete are not in it.
type Lineage []Electorate

// MaxLineage bounds how often the voters may hand over before the founder has
// to sign again.
const MaxLineage = 256

// Head is the electorate that the lineage proves; ok is false if it is empty.
func (ln Lineage) Head() (head Electorate, ok bool) {
	if len(ln) == 0 {
		return Electorate{}, false
	}
	return ln[len(ln)-1], true
}

// Verify checks the proof from end to end.
func (ln Lineage) Verify(m trust.Mesh) error {
	if len(ln) == 0 || len(ln) > MaxLineage {
		return fmt.Errorf("lineage of %d electorates: want 1 to %d; after that the founder has to sign one", len(ln),
			MaxLineage)
	}
	for i, l := range ln {
		if err := l.validate(); err != nil {
			return err
		}
		if l.Mesh != m.ID() {
			return fmt.Errorf("electorate %d %w", l.Number, trust.ErrWrongMesh)
		}
		if err := ln.proven(i, m); err != nil {
			return err
		}
	}
	return nil
}

// proven checks the signatures under the i-th list.
func (ln Lineage) proven(i int, m trust.Mesh) error {
	l := ln[i]
	if i == 0 {
		if len(l.Consents) > 0 {
			return fmt.Errorf("electorate %d with consents at the beginning of its lineage: want the founder's signature alone", l.Number)
		}
		return trust.Verify(m.Founder, electorateDomain, l.body(), l.Founder)
	}
	prev := ln[i-1]
	if l.Number != prev.Number+1 || l.Previous != prev.Hash() || l.Start != 0 || l.Founder != nil {
		return fmt.Errorf("electorate %d does not continue %d", l.Number, prev.Number)
	}
	return l.countersigned(prev)
}

// countersigned checks that a majority of prev consented to l.
func (l Electorate) countersigned(prev Electorate) error {
	if len(l.Consents) < prev.Majority() || len(l.Consents) > len(prev.Voters) {
		return fmt.Errorf("electorate %d with %d consents: want %d, a majority of the %d voters of electorate %d",
			l.Number, len(l.Consents), prev.Majority(), len(prev.Voters), prev.Number)
	}
	hash := l.Hash()
	for i, c := range l.Consents {
		if c.List != hash {
			return said.Errorf("consent of %s is to another list than electorate %d: %w", c.Voter.Partner, l.Number,
				trust.ErrForged)
		}
		if i > 0 && l.Consents[i-1].Voter.Partner >= c.Voter.Partner {
			return said.Errorf("consent of %s is out of order or given twice", c.Voter.Partner)
		}
		if err := c.verify(prev); err != nil {
			return err
		}
	}
	return nil
}
