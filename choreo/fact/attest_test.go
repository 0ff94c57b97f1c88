package fact_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// TestBatchesOfAttestations: every fact of a batch verifies, and nothing else
// does: no other fact, no changed signature, path or place.
func TestBatchesOfAttestations(t *testing.T) {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	author := trust.IDOf(key.Public().(ed25519.PublicKey))
	for n := 1; n <= 70; n++ {
		ids := make([]fact.ID, n)
		for i := range ids {
			ids[i] = sha256.Sum256(fmt.Append(nil, n, i))
		}
		signed := 0
		atts := fact.Attest(ids, func(domain string,
			msg []byte) []byte {
			signed++
			return trust.Sign(key, domain, msg)
		})
		if signed != 1 {
			t.Fatalf("%d signatures for a batch of %d, want one", signed, n)
		}
		for i, a := range atts {
			if err := verify(author, ids[i], a); err != nil {
				t.Fatalf("fact %d of %d: %v", i, n, err)
			}
			for what, b := range bent(a) {
				if verify(author, ids[i], b) == nil {
					t.Fatalf("fact %d of %d verifies with %s", i, n, what)
				}
			}
			if n > 1 && verify(author, ids[(i+1)%n], a) == nil {
				t.Fatalf("fact %d of %d verifies with the attestation of its neighbour", i, n)
			}
			if verify(author, fact.ID(a.Root(ids[i])), &fact.Attestation{Sig: a.Sig}) == nil {
				t.Fatal("the root passes for a fact")
			}
		}
	}
	if fact.Attest(nil, nil) != nil {
		t.Error("attestations of nothing")
	}
}

// verify checks that author attested the fact of that name.
func verify(author workflow.PartnerID, id fact.ID, a *fact.Attestation) error {
	s, err := a.Signature(author, id)
	if err != nil {
		return err
	}
	return s.Verify()
}

// bent are forgeries of an attestation.
func bent(a *fact.Attestation) map[string]*fact.Attestation {
	out := map[string]*fact.Attestation{}
	with := func(what string, change func(*fact.Attestation)) {
		b := &fact.Attestation{Index: a.Index, Path: append([][32]byte(nil), a.Path...),
			Sig: append([]byte(nil), a.Sig...)}
		change(b)
		out[what] = b
	}
	with("another signature", func(b *fact.Attestation) { b.Sig[7] ^= 1 })
	with("a longer path", func(b *fact.Attestation) { b.Path = append(b.Path, [32]byte{}) })
	if len(a.Path) > 0 {
		with("a shorter path", func(b *fact.Attestation) { b.Path = b.Path[1:] })
		with("another sibling", func(b *fact.Attestation) { b.Path[0][3] ^= 1 })
		with("another sibling at the top", func(b *fact.Attestation) { b.Path[len(b.Path)-1][31] ^= 1 })
	}
	return out
}

// TestAttestationsOfOthers: a fact passes only with its own author's signature
// over its own name.
func TestAttestationsOfOthers(t *testing.T) {
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
	other := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{2}, ed25519.SeedSize))
	author := trust.IDOf(key.Public().(ed25519.PublicKey))
	ids := []fact.ID{{1}, {2}, {3}}
	sign := func(k ed25519.PrivateKey, domain string) []*fact.Attestation {
		return fact.Attest(ids, func(_ string, msg []byte) []byte { return trust.Sign(k, domain, msg) })
	}
	if err := verify(author, ids[0], sign(key, fact.AttestDomain)[0]); err != nil {
		t.Fatalf("its author's own: %v", err)
	}
	for what, err := range map[string]error{
		"another's key":  verify(author, ids[0], sign(other, fact.AttestDomain)[0]),
		"another domain": verify(author, ids[0], sign(key, "vote")[0]),
		"none":           verify(author, ids[0], nil),
		"another fact's": verify(author, ids[0], sign(key, fact.AttestDomain)[1]),
		"another author": verify(trust.IDOf(other.Public().(ed25519.PublicKey)), ids[0],
			sign(key, fact.AttestDomain)[0]),
		"an author of no key": verify("one", ids[0], sign(key, fact.AttestDomain)[0]),
		"a short signature":   verify(author, ids[0], &fact.Attestation{Sig: make([]byte, 63)}),
		"a path too long": verify(author, ids[0],
			&fact.Attestation{Sig: make([]byte, 64), Path: make([][32]byte, fact.MaxPath+1)}),
	} {
		if !errors.Is(err, fact.ErrForged) {
			t.Errorf("%s: error %v, want ErrForged", what, err)
		}
	}
}
