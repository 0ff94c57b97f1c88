package users

import (
	"testing"

	"github.com/mutirao-mesh/mutirao/membership/trust/trusttest"
)

func FuzzRecord(f *testing.F) {
	w := newWorld(f)
	bia := w.user(w.Davi, "bia", "crew")
	phone := w.device(w.Davi, bia, "phone", "engine")
	w.change(w.Ana, bia, "driver", true)
	w.signOut("desk", w.link("phone", phone, "desk", "station"))
	w.remove(w.Davi, bia, "")
	judge := func(_ *testing.T, r Record) {
		s := NewSet(w.Mesh, w.Known)
		_, _, _ = s.Add(r)
		_ = s.Users(trusttest.Noon)
	}
	trusttest.Decoder(f, DecodeRecord, EncodeRecord, judge, w.said...)
}

func FuzzSignature(f *testing.F) {
	w := newWorld(f)
	bia := w.user(w.Ana, "bia")
	fact := [32]byte{1}
	judge := func(_ *testing.T, g Signature) { _, _ = w.Judge(g, fact, trusttest.IDOf("engine"), trusttest.Noon) }
	trusttest.Decoder(f, DecodeSignature, EncodeSignature, judge, Sign(trusttest.KeyOf("phone"), bia.ID(), fact))
}

func FuzzSpoken(f *testing.F) {
	w := newWorld(f)
	bia := w.user(w.Ana, "bia", "crew")
	w.device(w.Ana, bia, "phone", "engine")
	w.change(w.Ana, bia, "driver", true)
	fact := [32]byte{1}
	s, err := w.Speak(trusttest.KeyOf("phone"), bia.ID(), fact, trusttest.Noon)
	if err != nil {
		f.Fatal(err)
	}
	judge := func(_ *testing.T, s Spoken) { _, _ = personOf(s, w.Mesh, fact) }
	trusttest.Decoder(f, DecodeSpoken, EncodeSpoken, judge, s,
		SpeakAsPartner(trusttest.KeyOf("rui"), w.Member(f, w.Ana, "rui"), fact))
}

// asked is a token of a user, with a request made by it.
func asked(w *world) (Token, Request) {
	bia := w.user(w.Ana, "bia")
	t := Token{Mesh: w.Mesh.ID(), User: bia.ID(), Name: "bia", Node: w.Ana.ID(), Secret: Secret{7}, Expires: noon + 60}
	return t, NewRequest(t, trusttest.KeyOf("phone"), trusttest.KeyOf("engine"))
}

func FuzzRequest(f *testing.F) {
	w := newWorld(f)
	t, r := asked(w)
	ts := NewTickets(w.Ana.ID())
	if err := ts.Keep(Ticket{Secret: t.Secret, User: t.User, Expires: t.Expires, Lifetime: trusttest.Year}); err != nil {
		f.Fatal(err)
	}
	judge := func(_ *testing.T, r Request) { _, _ = ts.Redeem(r, trusttest.Noon) }
	trusttest.Decoder(f, DecodeRequest, EncodeRequest, judge, r)
}

func FuzzTicket(f *testing.F) {
	w := newWorld(f)
	t, _ := asked(w)
	d := w.device(w.Ana, w.user(w.Ana, "rui"), "phone", "engine")
	judge := func(_ *testing.T, t Ticket) { _ = NewTickets(w.Ana.ID()).Keep(t) }
	trusttest.Decoder(f, DecodeTicket, EncodeTicket, judge,
		Ticket{Secret: t.Secret, User: t.User, Lifetime: 1, Linked: "x"},
		Ticket{Secret: t.Secret, User: t.User, Lifetime: 1, Redeemed: &d})
}

func FuzzToken(f *testing.F) {
	w := newWorld(f)
	good, _ := asked(w)
	f.Add(good.Text())
	f.Add("mutiraouser1")
	f.Fuzz(func(t *testing.T, word string) {
		tok, err := ParseToken(word)
		if err != nil {
			return
		}
		if again, err := ParseToken(tok.Text()); err != nil || again.Text() != tok.Text() {
			t.Errorf("%q was accepted, and is written as %q: %v", word, tok.Text(), err)
		}
	})
}
