package invitation

import (
	"errors"
	"testing"

	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/membership/trust/trusttest"
)

func FuzzHello(f *testing.F) {
	tm := trusttest.New(f)
	judge := func(_ *testing.T, h Hello) { _, _ = NewOffer(tm.Davi, h, Nonce{}) }
	trusttest.Decoder(f, DecodeHello, EncodeHello, judge,
		NewHello(Invitation{Secret: Secret{1}}, trusttest.IDOf("bia"), Nonce{2}))
}

func FuzzOffer(f *testing.F) {
	tm := trusttest.New(f)
	inv := Invitation{Mesh: tm.Mesh.ID(), MeshName: tm.Mesh.Name, Issuer: trusttest.IDOf("davi"), Secret: Secret{1}}
	o, err := NewOffer(tm.Davi, NewHello(inv, trusttest.IDOf("bia"), Nonce{2}), Nonce{3})
	if err != nil {
		f.Fatal(err)
	}
	judge := func(_ *testing.T, o Offer) {
		_, _ = Prove(inv, o.Hello, o, trusttest.KeyOf("bia"), "bia", trusttest.Noon)
	}
	trusttest.Decoder(f, DecodeOffer, EncodeOffer, judge, o)
}

func FuzzProof(f *testing.F) {
	tm := trusttest.New(f)
	e := Entry{Secret: Secret{1}, Uses: 1, Expires: trust.WallOf(trusttest.Noon), Lifetime: trusttest.Year}
	book := NewInviteBook(tm.Davi)
	if err := book.Open(e); err != nil {
		f.Fatal(err)
	}
	o, err := NewOffer(tm.Davi, NewHello(Invitation{Secret: e.Secret}, trusttest.IDOf("bia"), Nonce{2}), Nonce{3})
	if err != nil {
		f.Fatal(err)
	}
	judge := func(t *testing.T, p Proof) {
		if _, _, err := book.Redeem(o, p, trusttest.Noon, trusttest.Serial("x"), tm.Known); err == nil {
			t.Errorf("an invented proof is accepted: %+v", p)
		}
	}
	trusttest.Decoder(f, DecodeProof, EncodeProof, judge, Proof{Name: "bia", Signature: make([]byte, 64)})
}

func FuzzPass(f *testing.F) {
	trusttest.Decoder(f, DecodePass, EncodePass, func(*testing.T, Pass) {},
		Pass{Issuer: trusttest.IDOf("davi"), Joiner: trusttest.IDOf("bia"), Proof: true, Message: []byte{1}})
}

func FuzzPassed(f *testing.F) {
	trusttest.Decoder(f, DecodePassed, EncodePassed, func(*testing.T, Passed) {},
		Passed{Message: []byte{1}, Refusal: "used up"})
}

func FuzzWelcome(f *testing.F) {
	tm := trusttest.New(f)
	judge := func(_ *testing.T, w Welcome) {
		_ = Accept(Offer{Mesh: tm.Mesh}, trusttest.KeyOf("bia"), w, trusttest.Noon)
	}
	davi := membership.Record{
		Partner: trusttest.IDOf("davi"), ConnectionTime: membership.MinConnectionTime, Chain: tm.Davi.Chain,
	}.Sign(trusttest.KeyOf("davi"))
	trusttest.Decoder(f, DecodeWelcome, EncodeWelcome, judge, Welcome{
		Chain: tm.Member(f, tm.Davi, "bia"), Evictions: []trust.Eviction{tm.Evict(f, tm.Ana, "caio", trust.Serial{})},
		Records: []membership.Record{davi},
	})
}

func FuzzEntry(f *testing.F) {
	tm := trusttest.New(f)
	judge := func(_ *testing.T, e Entry) { _ = NewInviteBook(tm.Davi).Open(e) }
	trusttest.Decoder(f, DecodeEntry, EncodeEntry, judge,
		Entry{
			Secret: Secret{1}, Uses: 2, Lifetime: trusttest.Year, Redeemed: []trust.Chain{tm.Member(f, tm.Davi, "bia")},
		})
}

func FuzzInvitation(f *testing.F) {
	inv := Invitation{
		MeshName: "serra", Issuer: trusttest.IDOf("davi"), Secret: Secret{1},
		Addresses: []string{"/ip4/10.0.0.1/tcp/1"},
	}
	f.Add(inv.Token())
	f.Add("mutirao1")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseInvitation(text)
		if err != nil {
			return
		}
		if again, err := ParseInvitation(got.Token()); err != nil || again.Token() != got.Token() {
			t.Errorf("%q is read as %+v, which is not read again: %v", text, got, err)
		}
		if err := got.ExpiredAt(trusttest.Noon); err != nil && !errors.Is(err, trust.ErrExpired) {
			t.Error(err)
		}
	})
}
