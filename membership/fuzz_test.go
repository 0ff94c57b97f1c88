package membership

import (
	"bytes"
	"errors"
	"testing"
)

// Every decoder: what it accepts is written back byte for byte, and what is
// made of arbitrary bytes can be judged without harm.

// fuzzDecoder fuzzes a decoder with some good inputs.
func fuzzDecoder[T any](f *testing.F, decode func([]byte) (T, error), encode func(T) []byte, judge func(*testing.T, T), good ...T) {
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

func FuzzChain(f *testing.F) {
	tm := newTeam(f)
	judge := func(_ *testing.T, ch Chain) { _ = ch.Verify(tm.mesh, noon, tm.known) }
	fuzzDecoder(f, DecodeChain, EncodeChain, judge, tm.member(f, tm.davi, "bia"), tm.davi.Chain)
}

func FuzzEviction(f *testing.F) {
	tm := newTeam(f)
	judge := func(_ *testing.T, e Eviction) { _, _ = NewRevocations(tm.mesh).Add(e) }
	fuzzDecoder(f, DecodeEviction, EncodeEviction, judge,
		tm.evict(f, tm.davi, "bia", Serial{}), tm.evict(f, tm.ana, "davi", serial("davi-1"), tm.member(f, tm.davi, "bia")))
}

func FuzzRecord(f *testing.F) {
	tm := newTeam(f)
	judge := func(_ *testing.T, r Record) { _, _ = NewList(tm.mesh, idOf("me"), tm.known).Apply(r, 0, at(1)) }
	fuzzDecoder(f, DecodeRecord, EncodeRecord, judge, tm.record(f, "bia", 1, 1))
}

func FuzzBeat(f *testing.F) {
	tm := newTeam(f)
	judge := func(t *testing.T, b Beat) {
		l := NewList(tm.mesh, idOf("me"), tm.known)
		l.Restore(Stored{Record: tm.record(t, "bia", 1, 1)}, at(0))
		_, _ = l.Beat(b, 0, at(1))
	}
	fuzzDecoder(f, DecodeBeat, EncodeBeat, judge, beatOf("bia", 1, 2, 1))
}

func FuzzStored(f *testing.F) {
	tm := newTeam(f)
	judge := func(_ *testing.T, s Stored) {
		l := NewList(tm.mesh, idOf("me"), tm.known)
		l.Restore(s, at(0))
		_, _, _ = l.Tick(at(1))
	}
	fuzzDecoder(f, DecodeStored, EncodeStored, judge, Stored{Record: tm.record(f, "bia", 1, 1), Beat: beatOf("bia", 1, 2, 1), Expired: true})
}

func FuzzDigest(f *testing.F) {
	tm := newTeam(f)
	l := NewList(tm.mesh, idOf("me"), tm.known)
	l.Restore(Stored{Record: tm.record(f, "bia", 1, 1)}, at(0))
	fuzzDecoder(f, DecodeDigest, EncodeDigest, func(_ *testing.T, d []Held) { l.Newer(d) }, l.Digest())
}

func FuzzHello(f *testing.F) {
	tm := newTeam(f)
	judge := func(_ *testing.T, h Hello) { _, _ = tm.davi.Offer(h, Nonce{}) }
	fuzzDecoder(f, DecodeHello, EncodeHello, judge, NewHello(Invitation{Secret: Secret{1}}, idOf("bia"), Nonce{2}))
}

func FuzzOffer(f *testing.F) {
	tm := newTeam(f)
	inv := Invitation{Mesh: tm.mesh.ID(), MeshName: tm.mesh.Name, Issuer: idOf("davi"), Secret: Secret{1}}
	o, err := tm.davi.Offer(NewHello(inv, idOf("bia"), Nonce{2}), Nonce{3})
	if err != nil {
		f.Fatal(err)
	}
	judge := func(_ *testing.T, o Offer) { _, _ = Prove(inv, o.Hello, o, keyOf("bia"), "bia", noon) }
	fuzzDecoder(f, DecodeOffer, EncodeOffer, judge, o)
}

func FuzzProof(f *testing.F) {
	tm := newTeam(f)
	e := Entry{Secret: Secret{1}, Uses: 1, Expires: WallOf(noon), Lifetime: year}
	book := NewInviteBook(tm.davi)
	if err := book.Open(e); err != nil {
		f.Fatal(err)
	}
	o, err := tm.davi.Offer(NewHello(Invitation{Secret: e.Secret}, idOf("bia"), Nonce{2}), Nonce{3})
	if err != nil {
		f.Fatal(err)
	}
	judge := func(t *testing.T, p Proof) {
		if _, _, err := book.Redeem(o, p, noon, serial("x"), tm.known); err == nil {
			t.Errorf("an invented proof is accepted: %+v", p)
		}
	}
	fuzzDecoder(f, DecodeProof, EncodeProof, judge, Proof{Name: "bia", Signature: make([]byte, 64)})
}

func FuzzPass(f *testing.F) {
	fuzzDecoder(f, DecodePass, EncodePass, func(*testing.T, Pass) {}, Pass{Issuer: idOf("davi"), Joiner: idOf("bia"), Proof: true, Message: []byte{1}})
}

func FuzzPassed(f *testing.F) {
	fuzzDecoder(f, DecodePassed, EncodePassed, func(*testing.T, Passed) {}, Passed{Message: []byte{1}, Refusal: "used up"})
}

func FuzzWelcome(f *testing.F) {
	tm := newTeam(f)
	judge := func(_ *testing.T, w Welcome) { _ = Accept(Offer{Mesh: tm.mesh}, keyOf("bia"), w, noon) }
	fuzzDecoder(f, DecodeWelcome, EncodeWelcome, judge, Welcome{
		Chain: tm.member(f, tm.davi, "bia"), Evictions: []Eviction{tm.evict(f, tm.ana, "caio", Serial{})}, Records: []Record{tm.record(f, "davi", 1, 1)},
	})
}

func FuzzEntry(f *testing.F) {
	tm := newTeam(f)
	judge := func(_ *testing.T, e Entry) { _ = NewInviteBook(tm.davi).Open(e) }
	fuzzDecoder(f, DecodeEntry, EncodeEntry, judge, Entry{Secret: Secret{1}, Uses: 2, Lifetime: year, Redeemed: []Chain{tm.member(f, tm.davi, "bia")}})
}

func FuzzLineage(f *testing.F) {
	w := newWorld(f, 3, 3, flaws{})
	judge := func(_ *testing.T, ln Lineage) { _ = ln.Verify(w.mesh) }
	fuzzDecoder(f, DecodeLineage, EncodeLineage, judge, w.nodes[0].lineage)
}

func FuzzBallot(f *testing.F) {
	w := newWorld(f, 3, 3, flaws{})
	e := w.nodes[0].election
	head, _ := e.Electorate()
	e.sign(head.successor(w.mesh, []Voter{w.voter(1)}, testLease))
	fuzzDecoder(f, DecodeBallot, EncodeBallot, func(*testing.T, Ballot) {}, Ballot{}, e.ballot)
}

func FuzzMessage(f *testing.F) {
	w := newWorld(f, 3, 3, flaws{})
	w.advance(testLease + 1)
	w.elect(0)
	good := []Message{{Nominate: &Nominate{}}, {Declined: &Declined{Reason: "no majority"}}}
	for len(w.net) > 0 {
		good = append(good, w.net[0].msg)
		w.deliver(0, false)
	}
	judge := func(_ *testing.T, m Message) {
		for _, from := range []int{1, 2} {
			_, _ = w.nodes[0].election.clone().Step(w.id(from), m, w.now(0))
		}
	}
	fuzzDecoder(f, DecodeMessage, EncodeMessage, judge, good...)
}

func FuzzInvitation(f *testing.F) {
	inv := Invitation{MeshName: "serra", Issuer: idOf("davi"), Secret: Secret{1}, Addresses: []string{"/ip4/10.0.0.1/tcp/1"}}
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
		if err := got.ExpiredAt(noon); err != nil && !errors.Is(err, ErrExpired) {
			t.Error(err)
		}
	})
}

func FuzzCredentials(f *testing.F) {
	w := newWorld(f, 3, 3, flaws{})
	good, _ := Credentials{Mandate{Office: Office{Term: 1, Number: 1}, Holder: idOf("n1")}, w.nodes[0].lineage}.Encode()
	f.Add(good)
	f.Fuzz(func(t *testing.T, b []byte) {
		if o, err := VerifyCredentials(w.mesh, idOf("n1"), b); err == nil {
			t.Errorf("invented credentials are accepted: %s", o)
		}
	})
}
