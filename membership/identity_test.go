package membership

import (
	"crypto/ed25519"
	"errors"
	"strings"
	"testing"

	"github.com/mr-tron/base58"
	"pgregory.net/rapid"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// keyOf makes a private key that depends only on name.
func keyOf(name string) ed25519.PrivateKey {
	seed := make([]byte, ed25519.SeedSize)
	copy(seed, name)
	return ed25519.NewKeyFromSeed(seed)
}

// idOf is the partner ID of keyOf(name).
func idOf(name string) workflow.PartnerID { return IDOf(publicOf(keyOf(name))) }

func publicOf(key ed25519.PrivateKey) ed25519.PublicKey { return key.Public().(ed25519.PublicKey) }

func TestIDIsTheLibp2pPeerID(t *testing.T) {
	// The all-zero key is a fixed point that any libp2p implementation gives.
	id := IDOf(make(ed25519.PublicKey, ed25519.PublicKeySize))
	if want := workflow.PartnerID("12D3KooW9pNAk8aiBuGVQtWRdbkLmo5qVL3e2h5UxbN2Nz9ttwiw"); id != want {
		t.Errorf("IDOf(0…0) = %s, want %s", id, want)
	}
}

func TestIDNamesItsKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := ed25519.PublicKey(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "key"))
		got, err := PublicKey(IDOf(key))
		if err != nil || !got.Equal(key) {
			t.Fatalf("PublicKey(IDOf(%x)) = %x, %v", key, got, err)
		}
	})
}

func TestPublicKeyRefuses(t *testing.T) {
	good := string(idOf("ana"))
	for _, c := range []struct{ id, want string }{
		{"", "0 characters"},
		{strings.Repeat("1", 53), "53 characters"},
		{"0OIl", "not base58"},
		{"QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N", "does not name an Ed25519 key"},
		{good[:len(good)-1], "does not name an Ed25519 key"},
	} {
		if _, err := PublicKey(workflow.PartnerID(c.id)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("PublicKey(%q): error %v, want one with %q", c.id, err, c.want)
		}
	}
}

func TestSignatureHoldsInItsDomainOnly(t *testing.T) {
	ana := keyOf("ana")
	msg := []byte("the bridge is open")
	sig := Sign(ana, "vote", msg)
	if err := Verify(idOf("ana"), "vote", msg, sig); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"other domain":    Verify(idOf("ana"), "eviction", msg, sig),
		"longer domain":   Verify(idOf("ana"), "vote/1\x00the", msg[3:], sig),
		"other partner":   Verify(idOf("bruno"), "vote", msg, sig),
		"other message":   Verify(idOf("ana"), "vote", msg[1:], sig),
		"short signature": Verify(idOf("ana"), "vote", msg, sig[1:]),
		"no signature":    Verify(idOf("ana"), "vote", msg, nil),
	} {
		if !errors.Is(err, ErrForged) {
			t.Errorf("%s: %v, want ErrForged", what, err)
		}
	}
	if err := Verify("nobody", "vote", msg, sig); err == nil || errors.Is(err, ErrForged) {
		t.Errorf("unreadable ID: %v", err)
	}
}

func FuzzPublicKey(f *testing.F) {
	f.Add(string(idOf("ana")))
	f.Add("12D3KooW")
	f.Add(base58.Encode(peerIDPrefix))
	f.Fuzz(func(t *testing.T, id string) {
		key, err := PublicKey(workflow.PartnerID(id))
		if err == nil && string(IDOf(key)) != id {
			t.Errorf("%q is accepted, but its canonical form is %q", id, IDOf(key))
		}
	})
}
