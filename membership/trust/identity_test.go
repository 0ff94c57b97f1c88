package trust_test

import (
	"crypto/ed25519"
	"errors"
	"strings"
	"testing"

	"github.com/mr-tron/base58"
	"pgregory.net/rapid"

	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/membership/trust/trusttest"
	"github.com/mutirao-mesh/mutirao/workflow"
)

func TestIDIsTheLibp2pPeerID(t *testing.T) {
	// The all-zero key is a fixed point that any libp2p implementation gives.
	id := trust.IDOf(make(ed25519.PublicKey, ed25519.PublicKeySize))
	if want := workflow.PartnerID("12D3KooW9pNAk8aiBuGVQtWRdbkLmo5qVL3e2h5UxbN2Nz9ttwiw"); id != want {
		t.Errorf("IDOf(0…0) = %s, want %s", id, want)
	}
}

func TestIDNamesItsKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := ed25519.PublicKey(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "key"))
		got, err := trust.PublicKey(trust.IDOf(key))
		if err != nil || !got.Equal(key) {
			t.Fatalf("PublicKey(IDOf(%x)) = %x, %v", key, got, err)
		}
	})
}

func TestPublicKeyRefuses(t *testing.T) {
	good := string(trusttest.IDOf("ana"))
	for _, c := range []struct{ id, want string }{
		{"", "0 characters"},
		{strings.Repeat("1", 53), "53 characters"},
		{"0OIl", "not base58"},
		{"QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N", "does not name an Ed25519 key"},
		{good[:len(good)-1], "does not name an Ed25519 key"},
	} {
		if _, err := trust.PublicKey(workflow.PartnerID(c.id)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("PublicKey(%q): error %v, want one with %q", c.id, err, c.want)
		}
	}
}

func TestSignatureHoldsInItsDomainOnly(t *testing.T) {
	ana := trusttest.KeyOf("ana")
	msg := []byte("the bridge is open")
	sig := trust.Sign(ana, "vote", msg)
	if err := trust.Verify(trusttest.IDOf("ana"), "vote", msg, sig); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"other domain":    trust.Verify(trusttest.IDOf("ana"), "eviction", msg, sig),
		"longer domain":   trust.Verify(trusttest.IDOf("ana"), "vote/1\x00the", msg[3:], sig),
		"other partner":   trust.Verify(trusttest.IDOf("bruno"), "vote", msg, sig),
		"other message":   trust.Verify(trusttest.IDOf("ana"), "vote", msg[1:], sig),
		"short signature": trust.Verify(trusttest.IDOf("ana"), "vote", msg, sig[1:]),
		"no signature":    trust.Verify(trusttest.IDOf("ana"), "vote", msg, nil),
	} {
		if !errors.Is(err, trust.ErrForged) {
			t.Errorf("%s: %v, want ErrForged", what, err)
		}
	}
	if err := trust.Verify("nobody", "vote", msg, sig); err == nil || errors.Is(err, trust.ErrForged) {
		t.Errorf("unreadable ID: %v", err)
	}
}

func FuzzPublicKey(f *testing.F) {
	f.Add(string(trusttest.IDOf("ana")))
	f.Add("12D3KooW")
	f.Add(base58.Encode(trust.PeerIDPrefix))
	f.Fuzz(func(t *testing.T, id string) {
		key, err := trust.PublicKey(workflow.PartnerID(id))
		if err == nil && string(trust.IDOf(key)) != id {
			t.Errorf("%q is accepted, but its canonical form is %q", id, trust.IDOf(key))
		}
	})
}
