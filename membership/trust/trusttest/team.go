package trusttest

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// KeyOf makes a private key that depends only on name.
func KeyOf(name string) ed25519.PrivateKey {
	seed := make([]byte, ed25519.SeedSize)
	copy(seed, name)
	return ed25519.NewKeyFromSeed(seed)
}

// IDOf is the partner ID of KeyOf(name).
func IDOf(name string) workflow.PartnerID { return trust.IDOf(PublicOf(KeyOf(name))) }

// PublicOf is the public half of key.
func PublicOf(key ed25519.PrivateKey) ed25519.PublicKey { return key.Public().(ed25519.PublicKey) }

// Noon is when the tests about trust take place.
var Noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// Year is for how long a certificate is valid if a test does not say.
const Year = 365 * 24 * time.Hour

// Team is a mesh as the tests use it: ana founded it, davi is her delegate.
type Team struct {
	Mesh  trust.Mesh
	Ana   trust.Issuer
	Davi  trust.Issuer
	Known *trust.Revocations
}

// New is the mesh of a test, with no evictions.
func New(t testing.TB) Team {
	t.Helper()
	m := trust.Mesh{Name: "serra", Founder: IDOf("ana")}
	tm := Team{Mesh: m, Ana: trust.Issuer{Mesh: m, Key: KeyOf("ana")}, Known: trust.NewRevocations(m)}
	chain := tm.Issue(t, tm.Ana, trust.Certificate{
		Partner: IDOf("davi"), Name: "davi", Delegate: true, Serial: Serial("davi-1"),
	})
	tm.Davi = trust.Issuer{Mesh: m, Key: KeyOf("davi"), Chain: chain}
	return tm
}

// Issue certifies c, from noon for a year if it does not say when.
func (tm Team) Issue(t testing.TB, by trust.Issuer, c trust.Certificate) trust.Chain {
	t.Helper()
	if c.NotBefore == 0 {
		c.NotBefore = trust.WallOf(Noon)
	}
	if c.NotAfter == 0 {
		c.NotAfter = trust.WallOf(Noon.Add(Year))
	}
	chain, err := by.Issue(c)
	if err != nil {
		t.Fatal(err)
	}
	return chain
}

// Member is a chain for name in the role of crew.
func (tm Team) Member(t testing.TB, by trust.Issuer, name string) trust.Chain {
	t.Helper()
	return tm.Issue(t, by, trust.Certificate{
		Partner: IDOf(name), Name: name, Roles: Roles("crew"), Serial: Serial(name + "-1"),
	})
}

// Evict evicts name, by all certificates or by one, and has that known.
func (tm Team) Evict(t testing.TB, by trust.Issuer, name string, s trust.Serial, listed ...trust.Chain) trust.Eviction {
	t.Helper()
	e, err := by.Evict(trust.Eviction{
		Partner: IDOf(name), Serial: s, Reason: "lost tablet", At: trust.WallOf(Noon.Add(time.Hour)),
	}, tm.Known, listed)
	if err != nil {
		t.Fatal(err)
	}
	if isNew, err := tm.Known.Add(e); err != nil || !isNew {
		t.Fatalf("Add: %v, %v", isNew, err)
	}
	return e
}

// Serial is a serial that reads s.
func Serial(s string) (out trust.Serial) { copy(out[:], s); return out }

// Roles are these.
func Roles(names ...workflow.RoleName) []workflow.RoleName { return names }

// Refused demands that err is of a kind and says what.
func Refused(t *testing.T, err, kind error, what string) {
	t.Helper()
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), what) {
		t.Errorf("error is %q, want %q with %q", err, kind, what)
	}
}

// Every decoder: what it accepts is written back byte for byte, and what is
// made of arbitrary bytes can be judged without harm.

// Decoder fuzzes a decoder with some good inputs.
func Decoder[T any](
	f *testing.F, decode func([]byte) (T, error), encode func(T) []byte, judge func(*testing.T, T), good ...T,
) {
	f.Add([]byte{0xa0})
	f.Add([]byte{0xf6})
	for _, g := range good {
		f.Add(encode(g))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := decode(b)
		if err != nil {
			return
		}
		if again := encode(v); !bytes.Equal(again, b) {
			t.Errorf("%x was accepted but is written as %x", b, again)
		}
		judge(t, v)
	})
}
