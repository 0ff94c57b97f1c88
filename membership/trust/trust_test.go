package trust_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/membership/trust/trusttest"
	"github.com/mutirao-mesh/mutirao/workflow"
)

func TestChainMakesMember(t *testing.T) {
	tm := trusttest.New(t)
	for _, ch := range []trust.Chain{tm.Member(t, tm.Ana, "bia"), tm.Member(t, tm.Davi, "bia")} {
		if err := ch.Verify(tm.Mesh, trusttest.Noon, tm.Known); err != nil {
			t.Errorf("chain of %d: %v", len(ch), err)
		}
		if !ch.Leaf().HasRole("crew") || ch.Leaf().HasRole("commander") {
			t.Errorf("roles are %v", ch.Leaf().Roles)
		}
	}
}

func TestChainIsRefused(t *testing.T) {
	tm := trusttest.New(t)
	good := tm.Member(t, tm.Davi, "bia")
	change := func(f func(trust.Chain) trust.Chain) trust.Chain { return f(append(trust.Chain{}, good...)) }
	resign := func(ch trust.Chain, name string) trust.Chain {
		ch[0].Signature = trust.Sign(trusttest.KeyOf(name), trust.CertificateDomain, ch[0].Body())
		return ch
	}
	other := trust.Issuer{Mesh: trust.Mesh{Name: "serra", Founder: trusttest.IDOf("eve")}, Key: trusttest.KeyOf("eve")}
	for _, c := range []struct {
		name  string
		chain trust.Chain
		at    time.Time
		kind  error
		what  string
	}{
		{"another's roles", change(func(ch trust.Chain) trust.Chain { ch[0].Roles = trusttest.Roles("commander"); return ch }), trusttest.Noon, trust.ErrForged, "bia"},
		{"self-signed roles", change(func(ch trust.Chain) trust.Chain { ch[0].Roles = trusttest.Roles("commander"); return resign(ch, "bia") }), trusttest.Noon, trust.ErrForged, "bia"},
		{"delegate made by a delegate", change(func(ch trust.Chain) trust.Chain { ch[0].Delegate = true; return resign(ch, "davi") }), trusttest.Noon, trust.ErrNotAllowed, "only the founder makes delegates"},
		{"longer than its issuer", change(func(ch trust.Chain) trust.Chain {
			ch[0].NotAfter++
			return resign(ch, "davi")
		}), trusttest.Noon, trust.ErrNotAllowed, "after that of its issuer"},
		{"delegate not attached", good[:1], trusttest.Noon, trust.ErrNotAllowed, "no delegate's certificate"},
		{"other delegate attached", trust.Chain{
			good[0], tm.Issue(t, tm.Ana,
				trust.Certificate{
					Partner: trusttest.IDOf("caio"), Name: "caio", Delegate: true, Serial: trusttest.Serial("c"),
				})[0],
		}, trusttest.Noon, trust.ErrNotAllowed, "that of " + trusttest.IDOf("caio").Short() + " is attached"},
		{"issuer not a delegate", func() trust.Chain {
			mere := tm.Member(t, tm.Ana, "caio")
			c := trust.Certificate{
				Mesh: tm.Mesh.ID(), Partner: trusttest.IDOf("bia"), Name: "bia", Serial: trusttest.Serial("x"),
				NotBefore: 1, NotAfter: 2, Issuer: trusttest.IDOf("caio"),
			}
			return resign(trust.Chain{c, mere[0]}, "caio")
		}(), trusttest.Noon, trust.ErrNotAllowed, "who is not a delegate"},
		{"wrong mesh", tm.Member(t, other, "bia"), trusttest.Noon, trust.ErrWrongMesh, "this one is serra"},
		{"expired", good, trusttest.Noon.Add(trusttest.Year + trust.ClockSkew + time.Second), trust.ErrExpired,
			"expired at 2027-11-20T12:00:00Z, and this node's clock says 2027-11-21T12:00:01Z (up to 24h0m0s off is allowed)"},
		{"not yet", good, trusttest.Noon.Add(-trust.ClockSkew - time.Second), trust.ErrNotYet,
			"begins at 2026-11-20T12:00:00Z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			trusttest.Refused(t, c.chain.Verify(tm.Mesh, c.at, tm.Known), c.kind, c.what)
		})
	}
	if err := trust.Chain(nil).Verify(tm.Mesh, trusttest.Noon, nil); err == nil {
		t.Error("no certificate is accepted")
	}
}

func TestClockMayBeADayOff(t *testing.T) {
	tm := trusttest.New(t)
	ch := tm.Member(t, tm.Ana, "bia")
	for _, at := range []time.Time{
		trusttest.Noon.Add(-trust.ClockSkew), trusttest.Noon.Add(trusttest.Year + trust.ClockSkew),
	} {
		if err := ch.Verify(tm.Mesh, at, nil); err != nil {
			t.Error(err)
		}
	}
}

func TestRenewalReplaces(t *testing.T) {
	tm := trusttest.New(t)
	old := tm.Member(t, tm.Davi, "bia")
	renewed, err := tm.Davi.Renew(old, trusttest.Noon, trusttest.Year/2, trusttest.Serial("bia-2"), tm.Known)
	if err != nil {
		t.Fatal(err)
	}
	if err := renewed.Verify(tm.Mesh, trusttest.Noon, tm.Known); err != nil {
		t.Fatal(err)
	}
	if !renewed.Leaf().Supersedes(old.Leaf()) || old.Leaf().Supersedes(renewed.Leaf()) {
		t.Error("the renewed certificate does not replace the old one")
	}
	if !renewed.Leaf().HasRole("crew") || renewed.Leaf().Name != "bia" {
		t.Error("the renewed certificate says something else")
	}
	_, err = tm.Davi.Renew(tm.Davi.Chain, trusttest.Noon, trusttest.Year, trusttest.Serial("davi-2"), tm.Known)
	trusttest.Refused(t, err, trust.ErrNotAllowed, "only the founder makes delegates")
	tm.Evict(t, tm.Ana, "bia", trust.Serial{})
	_, err = tm.Davi.Renew(old, trusttest.Noon, trusttest.Year, trusttest.Serial("bia-3"), tm.Known)
	trusttest.Refused(t, err, trust.ErrRevoked, "bia is evicted")
}

func TestEvictionOfAMember(t *testing.T) {
	tm := trusttest.New(t)
	first := tm.Member(t, tm.Ana, "bia")
	second := tm.Issue(t, tm.Ana, trust.Certificate{
		Partner: trusttest.IDOf("bia"), Name: "bia", Serial: trusttest.Serial("bia-2"),
		NotBefore: trust.WallOf(trusttest.Noon) + 1,
	})
	tm.Evict(t, tm.Davi, "bia", trusttest.Serial("bia-1"))
	trusttest.Refused(t, first.Verify(tm.Mesh, trusttest.Noon, tm.Known), trust.ErrRevoked, "lost tablet")
	if err := second.Verify(tm.Mesh, trusttest.Noon, tm.Known); err != nil {
		t.Errorf("eviction of one serial hit another: %v", err)
	}
	tm.Evict(t, tm.Davi, "bia", trust.Serial{})
	trusttest.Refused(t, second.Verify(tm.Mesh, trusttest.Noon, tm.Known), trust.ErrRevoked,
		trusttest.IDOf("davi").Short())
	if tm.Known.KeyEvicted(trusttest.IDOf("bia")) {
		t.Error("a delegate's eviction bars the key before its certificate was seen")
	}
	tm.Evict(t, tm.Ana, "bia", trust.Serial{})
	if !tm.Known.KeyEvicted(trusttest.IDOf("bia")) || tm.Known.KeyEvicted(trusttest.IDOf("davi")) {
		t.Error("the founder's eviction does not bar exactly this key")
	}
}

func TestEvictionIsRefused(t *testing.T) {
	tm := trusttest.New(t)
	mere := trust.Issuer{Mesh: tm.Mesh, Key: trusttest.KeyOf("bia"), Chain: tm.Member(t, tm.Ana, "bia")}
	sign := func(name string, e trust.Eviction) trust.Eviction {
		e.Mesh, e.Issuer, e.Number, e.Partner = tm.Mesh.ID(), trusttest.IDOf(name), 1, trusttest.IDOf("caio")
		e.Signature = trust.Sign(trusttest.KeyOf(name), trust.EvictionDomain, e.Body())
		return e
	}
	forged := sign("ana", trust.Eviction{})
	forged.Partner = trusttest.IDOf("davi")
	late := trust.WallOf(trusttest.Noon.Add(2 * trusttest.Year))
	for _, c := range []struct {
		name string
		e    trust.Eviction
		kind error
		what string
	}{
		{"by a mere member", sign("bia", trust.Eviction{Chain: mere.Chain, At: trust.WallOf(trusttest.Noon)}),
			trust.ErrNotAllowed, "only the founder and delegates evict"},
		{"with another's certificate", sign("bia",
			trust.Eviction{
				Chain: tm.Davi.Chain, At: trust.WallOf(trusttest.Noon),
			}), trust.ErrNotAllowed, "only the founder and delegates evict"},
		{"after its certificate ran out", sign("davi", trust.Eviction{Chain: tm.Davi.Chain, At: late}),
			trust.ErrNotAllowed, "its certificate is valid from"},
		{"keeping by a delegate", sign("davi",
			trust.Eviction{
				Chain: tm.Davi.Chain, At: trust.WallOf(trusttest.Noon), Keep: []trust.Serial{{1}},
			}), trust.ErrNotAllowed, "only the founder evicts delegates"},
		{"forged", forged, trust.ErrForged, "eviction"},
	} {
		t.Run(c.name, func(t *testing.T) {
			isNew, err := tm.Known.Add(c.e)
			trusttest.Refused(t, err, c.kind, c.what)
			if isNew || len(tm.Known.IDs()) > 0 {
				t.Error("it was taken in")
			}
		})
	}
	_, err := tm.Davi.Evict(trust.Eviction{Partner: tm.Mesh.Founder}, tm.Known, nil)
	trusttest.Refused(t, err, trust.ErrNotAllowed, "the founder")
	_, err = tm.Davi.Evict(trust.Eviction{Partner: trusttest.IDOf("davi")}, tm.Known, []trust.Chain{tm.Davi.Chain})
	trusttest.Refused(t, err, trust.ErrNotAllowed, "only the founder evicts delegates")
}

// Whoever has a copy of the founder's key is the founder: what it certifies, whom it evicts and
// whom it makes a delegate holds, and there is no eviction of that key, whoever signs it.
func TestWhoHasTheFoundersKeyHasTheMesh(t *testing.T) {
	tm := trusttest.New(t)
	thief := trust.Issuer{Mesh: tm.Mesh, Key: trusttest.KeyOf("ana")}
	for _, by := range []trust.Issuer{tm.Ana, tm.Davi} {
		for _, serial := range []trust.Serial{{}, trusttest.Serial("ana-1")} {
			if _, err := by.Evict(trust.Eviction{
				Partner: tm.Mesh.Founder, Serial: serial, At: trust.WallOf(trusttest.Noon),
			}, tm.Known, nil); err == nil {
				t.Errorf("%s evicts the founder", by.ID().Short())
			}
			e := trust.Eviction{
				Mesh: tm.Mesh.ID(), Partner: tm.Mesh.Founder, Serial: serial, Issuer: by.ID(), Number: 1,
				At: trust.WallOf(trusttest.Noon), Chain: by.Chain,
			}
			e.Signature = trust.Sign(by.Key, trust.EvictionDomain, e.Body())
			if isNew, err := tm.Known.Add(e); isNew || err == nil {
				t.Errorf("an eviction of the founder by %s is taken in", by.ID().Short())
			}
		}
	}
	own := tm.Issue(t, thief, trust.Certificate{
		Partner: trusttest.IDOf("mal"), Name: "mal", Roles: trusttest.Roles("chief"), Delegate: true,
		Serial: trusttest.Serial("mal-1"),
	})
	if err := own.Verify(tm.Mesh, trusttest.Noon, tm.Known); err != nil || !own.Leaf().Delegate ||
		!own.Leaf().HasRole("chief") {
		t.Errorf("the thief's delegate: %v", err)
	}
	tm.Evict(t, thief, "davi", trust.Serial{})
	trusttest.Refused(t, tm.Davi.Chain.Verify(tm.Mesh, trusttest.Noon, tm.Known), trust.ErrRevoked, "davi")
	tm.Evict(t, tm.Ana, "mal", trust.Serial{})
	trusttest.Refused(t, own.Verify(tm.Mesh, trusttest.Noon, tm.Known), trust.ErrRevoked, "mal")
	again := tm.Issue(t, thief, trust.Certificate{
		Partner: trusttest.IDOf("mal-2"), Name: "mal", Delegate: true, Serial: trusttest.Serial("mal-2"),
	})
	if err := again.Verify(tm.Mesh, trusttest.Noon, tm.Known); err != nil {
		t.Errorf("the thief makes another delegate for the one that was evicted: %v", err)
	}
}

func TestEvictionOfADelegate(t *testing.T) {
	tm := trusttest.New(t)
	listed, stranger := tm.Member(t, tm.Davi, "bia"), tm.Member(t, tm.Davi, "eve")
	victim, spared := tm.Member(t, tm.Ana, "caio"), tm.Member(t, tm.Ana, "gil")
	tm.Evict(t, tm.Davi, "caio", trust.Serial{})
	late, err := tm.Davi.Evict(trust.Eviction{Partner: trusttest.IDOf("gil"), At: trust.WallOf(trusttest.Noon)},
		tm.Known, nil)
	if err != nil {
		t.Fatal(err)
	}
	tm.Evict(t, tm.Ana, "davi", trust.Serial{}, listed, victim, spared)
	if _, err := tm.Known.Add(late); err != nil {
		t.Fatal(err)
	}

	trusttest.Refused(t, tm.Davi.Chain.Verify(tm.Mesh, trusttest.Noon, tm.Known), trust.ErrRevoked, "davi")
	trusttest.Refused(t, stranger.Verify(tm.Mesh, trusttest.Noon, tm.Known), trust.ErrRevoked, "it was not listed then")
	trusttest.Refused(t, victim.Verify(tm.Mesh, trusttest.Noon, tm.Known), trust.ErrRevoked, "caio")
	for _, ch := range []trust.Chain{listed, spared} {
		if err := ch.Verify(tm.Mesh, trusttest.Noon, tm.Known); err != nil {
			t.Errorf("%s fell with the delegate: %v", ch.Leaf().Name, err)
		}
	}
	tm.Evict(t, tm.Ana, "davi", trust.Serial{}, listed, stranger)
	if err := stranger.Verify(tm.Mesh, trusttest.Noon, tm.Known); err != nil {
		t.Errorf("the founder mended the list in vain: %v", err)
	}
}

func TestDelegateCannotEvictADelegate(t *testing.T) {
	tm := trusttest.New(t)
	rival := tm.Issue(t, tm.Ana, trust.Certificate{
		Partner: trusttest.IDOf("caio"), Name: "caio", Delegate: true, Serial: trusttest.Serial("caio-1"),
	})
	tm.Evict(t, tm.Davi, "caio", trust.Serial{}) // davi does not have caio listed
	if err := rival.Verify(tm.Mesh, trusttest.Noon, tm.Known); err != nil {
		t.Errorf("davi evicted another delegate: %v", err)
	}
}

func TestEvictionsMergeAsASet(t *testing.T) {
	tm := trusttest.New(t)
	tm.Evict(t, tm.Davi, "bia", trust.Serial{})
	tm.Evict(t, tm.Davi, "caio", trusttest.Serial("caio-1"))
	tm.Evict(t, tm.Ana, "davi", trust.Serial{})
	other := trust.NewRevocations(tm.Mesh)
	all := tm.Known.All()
	for i := range all { // the other way round, each twice, through the codec
		e, err := trust.DecodeEviction(trust.EncodeEviction(all[len(all)-1-i]))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []bool{true, false} {
			if isNew, err := other.Add(e); err != nil || isNew != want {
				t.Errorf("Add: %v, %v, want %v", isNew, err, want)
			}
		}
		if i == 0 && (len(tm.Known.LackedBy(other.IDs())) != 2 || tm.Known.Digest() == other.Digest()) {
			t.Error("the difference is not seen")
		}
	}
	if diff := cmp.Diff(all, other.All()); diff != "" || tm.Known.Digest() != other.Digest() {
		t.Errorf("the sets differ: %s", diff)
	}
	numbers := map[workflow.PartnerID][]uint64{}
	for _, e := range all {
		numbers[e.Issuer] = append(numbers[e.Issuer], e.Number)
	}
	if len(numbers[trusttest.IDOf("ana")]) != 1 ||
		numbers[trusttest.IDOf("davi")][0]+numbers[trusttest.IDOf("davi")][1] != 3 {
		t.Errorf("numbers are %v", numbers)
	}
}

// Whom a set of evictions hits does not depend on the order in which they
// were heard of.
func TestEvictionsAreIndependentOfOrder(t *testing.T) {
	tm := trusttest.New(t)
	chains := []trust.Chain{tm.Davi.Chain}
	for _, name := range []string{"bia", "caio", "gil"} {
		chains = append(chains, tm.Member(t, tm.Ana, name), tm.Member(t, tm.Davi, name))
	}
	tm.Evict(t, tm.Davi, "bia", trust.Serial{})
	tm.Evict(t, tm.Davi, "caio", trusttest.Serial("caio-1"))
	tm.Evict(t, tm.Ana, "davi", trust.Serial{}, chains[:3]...)
	tm.Evict(t, tm.Ana, "davi", trusttest.Serial("davi-1"), chains[3:]...)
	late, err := tm.Davi.Evict(trust.Eviction{Partner: trusttest.IDOf("gil"), At: trust.WallOf(trusttest.Noon)},
		tm.Known, nil)
	if err != nil {
		t.Fatal(err)
	}
	evictions := append(tm.Known.All(), late)
	hits := func(order []trust.Eviction) (out []string) {
		r := trust.NewRevocations(tm.Mesh)
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
	tm := trusttest.New(t)
	for i := range trust.MaxEvictionsPerDelegate {
		tm.Evict(t, tm.Davi, "x", trust.Serial{byte(i), byte(i >> 8), 1})
	}
	e, err := tm.Davi.Evict(trust.Eviction{
		Partner: trusttest.IDOf("x"), Serial: trusttest.Serial("more"), At: trust.WallOf(trusttest.Noon),
	}, tm.Known, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tm.Known.Add(e); err == nil || !strings.Contains(err.Error(), "no more are accepted of one delegate") {
		t.Errorf("Add: %v", err)
	}
	tm.Evict(t, tm.Ana, "davi", trust.Serial{})
}
