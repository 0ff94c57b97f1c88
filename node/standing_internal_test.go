package node

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// A certificate is authentic for good: what time asks of a node with n connected
// partners, and what they send it, checks no signature of a chain again. Here one that
// is checked again would be found forged, since all are spoiled once they were checked.
func TestCertificatesAreCheckedOnce(t *testing.T) {
	const n = 20
	var (
		founder = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
		mesh    = membership.Mesh{Name: "team", Founder: membership.IDOf(founder.Public().(ed25519.PublicKey))}
		issuer  = membership.Issuer{Mesh: mesh, Key: founder}
		began   = 100 * 24 * time.Hour
		now     = stillClock{began}.Now()
	)
	issue := func(i int, key ed25519.PrivateKey) membership.Chain {
		ch, err := issuer.Issue(membership.Certificate{
			Partner: membership.IDOf(key.Public().(ed25519.PublicKey)), Name: fmt.Sprintf("p%d", i),
			Serial: membership.Serial{1, byte(i)}, NotBefore: membership.WallOf(now.Wall), NotAfter: membership.WallOf(now.Wall.Add(Lifetime)),
		})
		if err != nil {
			t.Fatal(err)
		}
		return ch
	}
	p, err := loadPeople(newTools(Parts{Member: Member{Key: founder, Mesh: mesh, Chain: issue(0, founder)}, Store: newShelf(), Clock: stillClock{began}}), &life{boot: 1, inc: choreo.Incarnation{1}}, nil, func(membership.Event, membership.Partner) {})
	if err != nil {
		t.Fatal(err)
	}
	var (
		all   []workflow.PartnerID
		keys  []ed25519.PrivateKey
		certs []membership.Chain // as they are kept
	)
	for i := range n {
		key := ed25519.NewKeyFromSeed(slices.Repeat([]byte{byte(i + 1)}, ed25519.SeedSize))
		ch := issue(i+1, key)
		id := ch.Leaf().Partner
		r := membership.Record{Partner: id, Version: membership.Version{Boot: 1, Seq: 1}, ConnectionTime: time.Hour, Chain: ch}.Sign(key)
		if _, err := p.list.Apply(r, 0, now); err != nil {
			t.Fatal(err)
		}
		if err := p.admit(id, membership.EncodeChain(ch)); err != nil {
			t.Fatal(err)
		}
		all, keys, certs = append(all, id), append(keys, key), append(certs, ch, p.presented[id])
	}
	for _, ch := range append(certs, p.member.Chain) {
		ch[0].Signature[0] ^= 1
	}

	if bad := p.unwelcome(all); len(bad) > 0 {
		t.Errorf("connections that would be cut: %v", bad)
	}
	if err := p.standing(); err != nil {
		t.Errorf("standing: %v", err)
	}
	for i, id := range all {
		x, _ := p.list.Get(id)
		if err := p.current(x.Record.Chain); err != nil {
			t.Errorf("what a fact of p%d shows: %v", i+1, err)
		}
		if _, err := p.list.Pulse(id, x.Record.Version, 0, now); err != nil {
			t.Errorf("pulse of p%d: %v", i+1, err)
		}
		b := membership.Beat{Partner: id, Version: membership.Version{Boot: 1, Seq: 2}, Base: 1}.Sign(keys[i])
		if _, err := p.list.Beat(b, 0, now); err != nil {
			t.Errorf("beat of p%d: %v", i+1, err)
		}
		x.Record.Version.Seq = 3
		if _, err := p.list.Apply(x.Record.Sign(keys[i]), 0, now); err != nil {
			t.Errorf("a further record of p%d: %v", i+1, err)
		}
	}

	p.clock = stillClock{began + 2*Lifetime} // dates are looked at each time
	if bad := p.unwelcome(all); len(bad) != n || !errors.Is(bad[all[0]], membership.ErrExpired) {
		t.Errorf("of %d partners whose certificates ran out %d would be cut: %v", n, len(bad), bad)
	}
	if err := p.standing(); !errors.Is(err, membership.ErrExpired) {
		t.Errorf("standing after the end: %v", err)
	}
	if err := p.admit(all[0], membership.EncodeChain(certs[0])); !errors.Is(err, membership.ErrForged) {
		t.Errorf("a spoiled chain that is shown: %v", err)
	}
}
