package certificates

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// empty is a store in which nothing is, and a clock that stands still.
type empty struct{ at time.Duration }

func (empty) CommitWait([]kv.Write) error { return nil }

func (empty) Get([]byte) ([]byte, error) { return nil, kv.ErrNotFound }

func (e *empty) Now() moment.Now {
	return moment.Now{Awake: e.at, Boot: e.at, Wall: time.Unix(0, 0).Add(e.at)}
}

// listed are the members by the partner list.
type listed struct{ list *membership.List }

func (m listed) Get(p workflow.PartnerID) (membership.Partner, bool) { return m.list.Get(p) }

func (m listed) Say(err error) string { return err.Error() }

// A certificate is authentic for good: what time asks of a node with n connected
// partners, and what they send it, checks no signature of a chain again. Here one that
// is checked again would be found forged, since all are spoiled once they were checked.
func TestCertificatesAreCheckedOnce(t *testing.T) {
	const (
		n        = 20
		lifetime = 365 * 24 * time.Hour
	)
	var (
		world   = &empty{100 * 24 * time.Hour}
		founder = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
		mesh    = trust.Mesh{Name: "team", Founder: trust.IDOf(founder.Public().(ed25519.PublicKey))}
		issuer  = trust.Issuer{Mesh: mesh, Key: founder}
		now     = world.Now()
	)
	issue := func(i int, key ed25519.PrivateKey) trust.Chain {
		ch, err := issuer.Issue(trust.Certificate{
			Partner: trust.IDOf(key.Public().(ed25519.PublicKey)), Name: fmt.Sprintf("p%d", i),
			Serial:    trust.Serial{1, byte(i)},
			NotBefore: trust.WallOf(now.Wall), NotAfter: trust.WallOf(now.Wall.Add(lifetime)),
		})
		if err != nil {
			t.Fatal(err)
		}
		return ch
	}
	own := trust.Issuer{Mesh: mesh, Key: founder, Chain: issue(0, founder)}
	evicted := trust.NewRevocations(mesh)
	w, err := Load(own, world, world, evicted)
	if err != nil {
		t.Fatal(err)
	}
	list := membership.NewList(mesh, w.self, evicted)
	topic := New(w, Surroundings{Members: listed{list}})
	var (
		all   []workflow.PartnerID
		keys  []ed25519.PrivateKey
		certs []trust.Chain // as they are kept
	)
	for i := range n {
		key := ed25519.NewKeyFromSeed(slices.Repeat([]byte{byte(i + 1)}, ed25519.SeedSize))
		ch := issue(i+1, key)
		id := ch.Leaf().Partner
		r := membership.Record{
			Partner: id, Version: membership.Version{Boot: 1, Seq: 1}, ConnectionTime: time.Hour, Chain: ch,
		}
		if _, err := list.Apply(r.Sign(key), 0, now); err != nil {
			t.Fatal(err)
		}
		if err := w.admit(id, trust.EncodeChain(ch)); err != nil {
			t.Fatal(err)
		}
		all, keys, certs = append(all, id), append(keys, key), append(certs, ch, w.shown(id))
	}
	for _, ch := range append(certs, w.Chain()) {
		ch[0].Signature[0] ^= 1
	}

	if bad := topic.unwelcome(all); len(bad) > 0 {
		t.Errorf("connections that would be cut: %v", bad)
	}
	if err := w.Standing(); err != nil {
		t.Errorf("standing: %v", err)
	}
	for i, id := range all {
		x, _ := list.Get(id)
		if err := w.Current(x.Record.Chain); err != nil {
			t.Errorf("what a fact of p%d shows: %v", i+1, err)
		}
		if _, err := list.Pulse(id, x.Record.Version, 0, now); err != nil {
			t.Errorf("pulse of p%d: %v", i+1, err)
		}
		b := membership.Beat{Partner: id, Version: membership.Version{Boot: 1, Seq: 2}, Base: 1}.Sign(keys[i])
		if _, err := list.Beat(b, 0, now); err != nil {
			t.Errorf("beat of p%d: %v", i+1, err)
		}
		x.Record.Version.Seq = 3
		if _, err := list.Apply(x.Record.Sign(keys[i]), 0, now); err != nil {
			t.Errorf("a further record of p%d: %v", i+1, err)
		}
	}

	world.at += 2 * lifetime // dates are looked at each time
	if bad := topic.unwelcome(all); len(bad) != n || !errors.Is(bad[all[0]], trust.ErrExpired) {
		t.Errorf("of %d partners whose certificates ran out %d would be cut: %v", n, len(bad), bad)
	}
	if err := w.Standing(); !errors.Is(err, trust.ErrExpired) {
		t.Errorf("standing after the end: %v", err)
	}
	if err := w.admit(all[0], trust.EncodeChain(certs[0])); !errors.Is(err, trust.ErrForged) {
		t.Errorf("a spoiled chain that is shown: %v", err)
	}
}
