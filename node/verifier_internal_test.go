package node

import (
	"crypto/ed25519"
	"errors"
	"testing"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/membership/trust"
)

// TestVerifier: a signature that is right is remembered, one that is wrong is refused each
// time, and no more are remembered than there is room for.
func TestVerifier(t *testing.T) {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	author := trust.IDOf(key.Public().(ed25519.PublicKey))
	signed := func(id fact.ID) fact.Signature {
		att := fact.Attest([]fact.ID{id},
			func(domain string, msg []byte) []byte { return trust.Sign(key, domain, msg) })
		s, err := att[0].Signature(author, id)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	var v verifier
	for range 2 {
		if err := v.Verify(signed(fact.ID{1})); err != nil || len(v.known) != 1 {
			t.Errorf("a right signature: %v; %d are remembered, want 1", err, len(v.known))
		}
	}
	forged, err := (&fact.Attestation{Sig: make([]byte, ed25519.SignatureSize)}).Signature(author, fact.ID{2})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := v.Verify(forged); !errors.Is(err, fact.ErrForged) || len(v.known) != 1 {
			t.Errorf("a forged signature: %v; %d are remembered, want 1", err, len(v.known))
		}
	}
	for i := range maxVerified + 1 {
		if err := v.Verify(signed(fact.ID{3, byte(i), byte(i >> 8)})); err != nil || len(v.known) > maxVerified {
			t.Fatalf("signature %d: %v; %d are remembered, at most %d may be", i, err, len(v.known), maxVerified)
		}
	}
}
