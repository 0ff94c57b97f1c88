package fact

import (
	"crypto/sha256"
	"errors"

	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Attestation is an author's signature of a fact and, through the hash chain,
// of all facts of the chain before it. One signature serves a whole batch: it
// is over the root of a Merkle tree of fact names, and each attestation
// carries the path from its leaf (docs/design.md, Signatures).
type Attestation struct {
	_     struct{} `cbor:",toarray"`
	Index uint32
	Path  [][sha256.Size]byte // siblings, leaf upwards
	Sig   []byte
}

// Size is about how many bytes the attestation takes.
func (a *Attestation) Size() int { return 16 + len(a.Sig) + 34*len(a.Path) }

// AttestDomain separates these signatures from all others of a key.
const AttestDomain = "heads"

// MaxPath bounds a path: a batch has at most 2^maxPath facts.
const MaxPath = 20

// ErrForged is returned for a fact whose attestation its author did not make.
var ErrForged = errors.New("signed by somebody else")

// Attest signs facts of one author, one signature for all. sign makes the
// author's signature in the given domain.
func Attest(ids []ID, sign func(domain string, msg []byte) []byte) []*Attestation {
	if len(ids) == 0 {
		return nil
	}
	level := make([][sha256.Size]byte, len(ids))
	out := make([]*Attestation, len(ids))
	at := make([]int, len(ids)) // where each leaf's branch is in the level
	for i, id := range ids {
		level[i] = leafHash(id)
		out[i] = &Attestation{Index: uint32(i)}
		at[i] = i
	}
	for len(level) > 1 {
		for i, a := range out {
			a.Path = append(a.Path, level[min(at[i]^1, len(level)-1)])
			at[i] /= 2
		}
		next := make([][sha256.Size]byte, (len(level)+1)/2)
		for i := range next {
			next[i] = nodeHash(level[2*i], level[min(2*i+1, len(level)-1)])
		}
		level = next
	}
	sig := sign(AttestDomain, level[0][:])
	for _, a := range out {
		a.Sig = sig
	}
	return out
}

// Root computes the root that the attestation's path leads to from id.
func (a *Attestation) Root(id ID) [sha256.Size]byte {
	h, at := leafHash(id), a.Index
	for _, sibling := range a.Path {
		if at%2 == 0 {
			h = nodeHash(h, sibling)
		} else {
			h = nodeHash(sibling, h)
		}
		at /= 2
	}
	return h
}

// Signature is an author's signature of a root. Many facts come under one, and several
// partners tell of each, so who has verified it may remember that.
type Signature struct {
	author workflow.PartnerID
	root   [sha256.Size]byte
	sig    [64]byte
}

// Signature is the signature by which author attests the fact of that name, if Verify
// finds it right. An error, which wraps ErrForged, says that there is none.
func (a *Attestation) Signature(author workflow.PartnerID, id ID) (Signature, error) {
	if a == nil || len(a.Path) > MaxPath || len(a.Sig) != 64 {
		return Signature{}, said.Errorf("%w: fact %s of %s has no proper attestation", ErrForged, id.Short(), author)
	}
	return Signature{author: author, root: a.Root(id), sig: [64]byte(a.Sig)}, nil
}

// Verify checks the signature. Its error wraps ErrForged.
func (s Signature) Verify() error {
	if err := trust.Verify(s.author, AttestDomain, s.root[:], s.sig[:]); err != nil {
		return said.Errorf("%w: a fact of %s: %w", ErrForged, s.author, err)
	}
	return nil
}

// Leaves and nodes are hashed with different prefixes, so that neither can
// pass for the other.
func leafHash(id ID) [sha256.Size]byte {
	var b [1 + sha256.Size]byte
	copy(b[1:], id[:])
	return sha256.Sum256(b[:])
}

func nodeHash(l, r [sha256.Size]byte) [sha256.Size]byte {
	var b [1 + 2*sha256.Size]byte
	b[0] = 1
	copy(b[1:], l[:])
	copy(b[1+sha256.Size:], r[:])
	return sha256.Sum256(b[:])
}
