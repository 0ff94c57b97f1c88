package membership

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// noon is when the tests about trust take place.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

const year = 365 * 24 * time.Hour

// team is a mesh as the tests use it: ana founded it, davi is her delegate.
type team struct {
	mesh  Mesh
	ana   Issuer
	davi  Issuer
	known *Revocations
}

func newTeam(t testing.TB) team {
	t.Helper()
	m := Mesh{Name: "serra", Founder: idOf("ana")}
	tm := team{mesh: m, ana: Issuer{Mesh: m, Key: keyOf("ana")}, known: NewRevocations(m)}
	chain := tm.issue(t, tm.ana, Certificate{Partner: idOf("davi"), Name: "davi", Delegate: true, Serial: serial("davi-1")})
	tm.davi = Issuer{Mesh: m, Key: keyOf("davi"), Chain: chain}
	return tm
}

// issue certifies c, from noon for a year if it does not say when.
func (tm team) issue(t testing.TB, by Issuer, c Certificate) Chain {
	t.Helper()
	if c.NotBefore == 0 {
		c.NotBefore = WallOf(noon)
	}
	if c.NotAfter == 0 {
		c.NotAfter = WallOf(noon.Add(year))
	}
	chain, err := by.Issue(c)
	if err != nil {
		t.Fatal(err)
	}
	return chain
}

// member is a chain for name in the role of crew.
func (tm team) member(t testing.TB, by Issuer, name string) Chain {
	t.Helper()
	return tm.issue(t, by, Certificate{Partner: idOf(name), Name: name, Roles: roles("crew"), Serial: serial(name + "-1")})
}

func (tm team) evict(t testing.TB, by Issuer, name string, s Serial, listed ...Chain) Eviction {
	t.Helper()
	e, err := by.Evict(Eviction{Partner: idOf(name), Serial: s, Reason: "lost tablet", At: WallOf(noon.Add(time.Hour))}, tm.known, listed)
	if err != nil {
		t.Fatal(err)
	}
	if isNew, err := tm.known.Add(e); err != nil || !isNew {
		t.Fatalf("Add: %v, %v", isNew, err)
	}
	return e
}

func serial(s string) (out Serial) { copy(out[:], s); return out }

func roles(names ...workflow.RoleName) []workflow.RoleName { return names }

// refused demands that err is of a kind and says what.
func refused(t *testing.T, err, kind error, what string) {
	t.Helper()
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), what) {
		t.Errorf("error is %q, want %q with %q", err, kind, what)
	}
}

func TestChainMakesMember(t *testing.T) {
	tm := newTeam(t)
	for _, ch := range []Chain{tm.member(t, tm.ana, "bia"), tm.member(t, tm.davi, "bia")} {
		if err := ch.Verify(tm.mesh, noon, tm.known); err != nil {
			t.Errorf("chain of %d: %v", len(ch), err)
		}
		if !ch.Leaf().HasRole("crew") || ch.Leaf().HasRole("commander") {
			t.Errorf("roles are %v", ch.Leaf().Roles)
		}
	}
}

func TestChainIsRefused(t *testing.T) {
	tm := newTeam(t)
	good := tm.member(t, tm.davi, "bia")
	change := func(f func(Chain) Chain) Chain { return f(append(Chain{}, good...)) }
	resign := func(ch Chain, name string) Chain {
		ch[0].Signature = Sign(keyOf(name), certificateDomain, ch[0].body())
		return ch
	}
	other := Issuer{Mesh: Mesh{Name: "serra", Founder: idOf("eve")}, Key: keyOf("eve")}
	for _, c := range []struct {
		name  string
		chain Chain
		at    time.Time
		kind  error
		what  string
	}{
		{"another's roles", change(func(ch Chain) Chain { ch[0].Roles = roles("commander"); return ch }), noon, ErrForged, "bia"},
		{"self-signed roles", change(func(ch Chain) Chain { ch[0].Roles = roles("commander"); return resign(ch, "bia") }), noon, ErrForged, "bia"},
		{"delegate made by a delegate", change(func(ch Chain) Chain { ch[0].Delegate = true; return resign(ch, "davi") }), noon, ErrNotAllowed, "only the founder makes delegates"},
		{"longer than its issuer", change(func(ch Chain) Chain { ch[0].NotAfter++; return resign(ch, "davi") }), noon, ErrNotAllowed, "after that of its issuer"},
		{"delegate not attached", good[:1], noon, ErrNotAllowed, "no delegate's certificate"},
		{"other delegate attached", Chain{good[0], tm.issue(t, tm.ana, Certificate{Partner: idOf("caio"), Name: "caio", Delegate: true, Serial: serial("c")})[0]}, noon, ErrNotAllowed, "that of " + idOf("caio").Short() + " is attached"},
		{"issuer not a delegate", func() Chain {
			mere := tm.member(t, tm.ana, "caio")
			c := Certificate{Mesh: tm.mesh.ID(), Partner: idOf("bia"), Name: "bia", Serial: serial("x"), NotBefore: 1, NotAfter: 2, Issuer: idOf("caio")}
			return resign(Chain{c, mere[0]}, "caio")
		}(), noon, ErrNotAllowed, "who is not a delegate"},
		{"wrong mesh", tm.member(t, other, "bia"), noon, ErrWrongMesh, "this one is serra"},
		{"expired", good, noon.Add(year + ClockSkew + time.Second), ErrExpired, "expired at 2027-11-20T12:00:00Z, and this node's clock says 2027-11-21T12:00:01Z (up to 24h0m0s off is allowed)"},
		{"not yet", good, noon.Add(-ClockSkew - time.Second), ErrNotYet, "begins at 2026-11-20T12:00:00Z"},
	} {
		t.Run(c.name, func(t *testing.T) { refused(t, c.chain.Verify(tm.mesh, c.at, tm.known), c.kind, c.what) })
	}
	if err := Chain(nil).Verify(tm.mesh, noon, nil); err == nil {
		t.Error("no certificate is accepted")
	}
}

func TestClockMayBeADayOff(t *testing.T) {
	tm := newTeam(t)
	ch := tm.member(t, tm.ana, "bia")
	for _, at := range []time.Time{noon.Add(-ClockSkew), noon.Add(year + ClockSkew)} {
		if err := ch.Verify(tm.mesh, at, nil); err != nil {
			t.Error(err)
		}
	}
}

func TestRenewalReplaces(t *testing.T) {
	tm := newTeam(t)
	old := tm.member(t, tm.davi, "bia")
	renewed, err := tm.davi.Renew(old, noon, year/2, serial("bia-2"), tm.known)
	if err != nil {
		t.Fatal(err)
	}
	if err := renewed.Verify(tm.mesh, noon, tm.known); err != nil {
		t.Fatal(err)
	}
	if !renewed.Leaf().Supersedes(old.Leaf()) || old.Leaf().Supersedes(renewed.Leaf()) {
		t.Error("the renewed certificate does not replace the old one")
	}
	if !renewed.Leaf().HasRole("crew") || renewed.Leaf().Name != "bia" {
		t.Error("the renewed certificate says something else")
	}
	_, err = tm.davi.Renew(tm.davi.Chain, noon, year, serial("davi-2"), tm.known)
	refused(t, err, ErrNotAllowed, "only the founder makes delegates")
	tm.evict(t, tm.ana, "bia", Serial{})
	_, err = tm.davi.Renew(old, noon, year, serial("bia-3"), tm.known)
	refused(t, err, ErrRevoked, "bia is evicted")
}

func TestEvictionOfAMember(t *testing.T) {
	tm := newTeam(t)
	first := tm.member(t, tm.ana, "bia")
	second := tm.issue(t, tm.ana, Certificate{Partner: idOf("bia"), Name: "bia", Serial: serial("bia-2"), NotBefore: WallOf(noon) + 1})
	tm.evict(t, tm.davi, "bia", serial("bia-1"))
	refused(t, first.Verify(tm.mesh, noon, tm.known), ErrRevoked, "lost tablet")
	if err := second.Verify(tm.mesh, noon, tm.known); err != nil {
		t.Errorf("eviction of one serial hit another: %v", err)
	}
	tm.evict(t, tm.davi, "bia", Serial{})
	refused(t, second.Verify(tm.mesh, noon, tm.known), ErrRevoked, idOf("davi").Short())
	if tm.known.KeyEvicted(idOf("bia")) {
		t.Error("a delegate's eviction bars the key before its certificate was seen")
	}
	tm.evict(t, tm.ana, "bia", Serial{})
	if !tm.known.KeyEvicted(idOf("bia")) || tm.known.KeyEvicted(idOf("davi")) {
		t.Error("the founder's eviction does not bar exactly this key")
	}
}

func TestEvictionIsRefused(t *testing.T) {
	tm := newTeam(t)
	mere := Issuer{Mesh: tm.mesh, Key: keyOf("bia"), Chain: tm.member(t, tm.ana, "bia")}
	sign := func(name string, e Eviction) Eviction {
		e.Mesh, e.Issuer, e.Number, e.Partner = tm.mesh.ID(), idOf(name), 1, idOf("caio")
		e.Signature = Sign(keyOf(name), evictionDomain, e.body())
		return e
	}
	forged := sign("ana", Eviction{})
	forged.Partner = idOf("davi")
	late := WallOf(noon.Add(2 * year))
	for _, c := range []struct {
		name string
		e    Eviction
		kind error
		what string
	}{
		{"by a mere member", sign("bia", Eviction{Chain: mere.Chain, At: WallOf(noon)}), ErrNotAllowed, "only the founder and delegates evict"},
		{"with another's certificate", sign("bia", Eviction{Chain: tm.davi.Chain, At: WallOf(noon)}), ErrNotAllowed, "only the founder and delegates evict"},
		{"after its certificate ran out", sign("davi", Eviction{Chain: tm.davi.Chain, At: late}), ErrNotAllowed, "its certificate is valid from"},
		{"keeping by a delegate", sign("davi", Eviction{Chain: tm.davi.Chain, At: WallOf(noon), Keep: []Serial{{1}}}), ErrNotAllowed, "only the founder evicts delegates"},
		{"forged", forged, ErrForged, "eviction"},
	} {
		t.Run(c.name, func(t *testing.T) {
			isNew, err := tm.known.Add(c.e)
			refused(t, err, c.kind, c.what)
			if isNew || len(tm.known.IDs()) > 0 {
				t.Error("it was taken in")
			}
		})
	}
	_, err := tm.davi.Evict(Eviction{Partner: tm.mesh.Founder}, tm.known, nil)
	refused(t, err, ErrNotAllowed, "the founder")
	_, err = tm.davi.Evict(Eviction{Partner: idOf("davi")}, tm.known, []Chain{tm.davi.Chain})
	refused(t, err, ErrNotAllowed, "only the founder evicts delegates")
}

func TestEvictionOfADelegate(t *testing.T) {
	tm := newTeam(t)
	listed, stranger := tm.member(t, tm.davi, "bia"), tm.member(t, tm.davi, "eve")
	victim, spared := tm.member(t, tm.ana, "caio"), tm.member(t, tm.ana, "gil")
	tm.evict(t, tm.davi, "caio", Serial{})
	late, err := tm.davi.Evict(Eviction{Partner: idOf("gil"), At: WallOf(noon)}, tm.known, nil)
	if err != nil {
		t.Fatal(err)
	}
	tm.evict(t, tm.ana, "davi", Serial{}, listed, victim, spared)
	if _, err := tm.known.Add(late); err != nil {
		t.Fatal(err)
	}

	refused(t, tm.davi.Chain.Verify(tm.mesh, noon, tm.known), ErrRevoked, "davi")
	refused(t, stranger.Verify(tm.mesh, noon, tm.known), ErrRevoked, "it was not listed then")
	refused(t, victim.Verify(tm.mesh, noon, tm.known), ErrRevoked, "caio")
	for _, ch := range []Chain{listed, spared} {
		if err := ch.Verify(tm.mesh, noon, tm.known); err != nil {
			t.Errorf("%s fell with the delegate: %v", ch.Leaf().Name, err)
		}
	}
	tm.evict(t, tm.ana, "davi", Serial{}, listed, stranger)
	if err := stranger.Verify(tm.mesh, noon, tm.known); err != nil {
		t.Errorf("the founder mended the list in vain: %v", err)
	}
}

func TestDelegateCannotEvictADelegate(t *testing.T) {
	tm := newTeam(t)
	rival := tm.issue(t, tm.ana, Certificate{Partner: idOf("caio"), Name: "caio", Delegate: true, Serial: serial("caio-1")})
	tm.evict(t, tm.davi, "caio", Serial{}) // davi does not have caio listed
	if err := rival.Verify(tm.mesh, noon, tm.known); err != nil {
		t.Errorf("davi evicted another delegate: %v", err)
	}
}

func TestEvictionsMergeAsASet(t *testing.T) {
	tm := newTeam(t)
	tm.evict(t, tm.davi, "bia", Serial{})
	tm.evict(t, tm.davi, "caio", serial("caio-1"))
	tm.evict(t, tm.ana, "davi", Serial{})
	other := NewRevocations(tm.mesh)
	all := tm.known.All()
	for i := range all { // the other way round, each twice, through the codec
		e, err := DecodeEviction(EncodeEviction(all[len(all)-1-i]))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []bool{true, false} {
			if isNew, err := other.Add(e); err != nil || isNew != want {
				t.Errorf("Add: %v, %v, want %v", isNew, err, want)
			}
		}
		if i == 0 && (len(tm.known.LackedBy(other.IDs())) != 2 || tm.known.Digest() == other.Digest()) {
			t.Error("the difference is not seen")
		}
	}
	if diff := cmp.Diff(all, other.All()); diff != "" || tm.known.Digest() != other.Digest() {
		t.Errorf("the sets differ: %s", diff)
	}
	numbers := map[workflow.PartnerID][]uint64{}
	for _, e := range all {
		numbers[e.Issuer] = append(numbers[e.Issuer], e.Number)
	}
	if len(numbers[idOf("ana")]) != 1 || numbers[idOf("davi")][0]+numbers[idOf("davi")][1] != 3 {
		t.Errorf("numbers are %v", numbers)
	}
}

// Whom a set of evictions hits does not depend on the order in which they
// were heard of.
func TestEvictionsAreIndependentOfOrder(t *testing.T) {
	tm := newTeam(t)
	chains := []Chain{tm.davi.Chain}
	for _, name := range []string{"bia", "caio", "gil"} {
		chains = append(chains, tm.member(t, tm.ana, name), tm.member(t, tm.davi, name))
	}
	tm.evict(t, tm.davi, "bia", Serial{})
	tm.evict(t, tm.davi, "caio", serial("caio-1"))
	tm.evict(t, tm.ana, "davi", Serial{}, chains[:3]...)
	tm.evict(t, tm.ana, "davi", serial("davi-1"), chains[3:]...)
	late, err := tm.davi.Evict(Eviction{Partner: idOf("gil"), At: WallOf(noon)}, tm.known, nil)
	if err != nil {
		t.Fatal(err)
	}
	evictions := append(tm.known.All(), late)
	hits := func(order []Eviction) (out []string) {
		r := NewRevocations(tm.mesh)
		for _, e := range order {
			if _, err := r.Add(e); err != nil {
				t.Fatal(err)
			}
		}
		for _, ch := range chains {
			out = append(out, fmt.Sprint(ch.Leaf().Name, len(ch), ": ", r.Check(ch)))
		}
		return out
	}
	want := hits(evictions)
	rapid.Check(t, func(t *rapid.T) {
		if diff := cmp.Diff(want, hits(rapid.Permutation(evictions).Draw(t, "order"))); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestOneDelegateCannotFillTheEvictions(t *testing.T) {
	tm := newTeam(t)
	for i := range MaxEvictionsPerDelegate {
		tm.evict(t, tm.davi, "x", Serial{byte(i), byte(i >> 8), 1})
	}
	e, err := tm.davi.Evict(Eviction{Partner: idOf("x"), Serial: serial("more"), At: WallOf(noon)}, tm.known, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tm.known.Add(e); err == nil || !strings.Contains(err.Error(), "no more are accepted of one delegate") {
		t.Errorf("Add: %v", err)
	}
	tm.evict(t, tm.ana, "davi", Serial{})
}
