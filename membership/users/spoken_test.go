package users

import (
	"crypto/sha256"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/membership/trust/trusttest"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// A person's word shows by itself who the person is and which roles it has, and nobody can have it
// say more.
func TestAWordShowsWhosItIs(t *testing.T) {
	w := newWorld(t)
	ana := w.user(w.Ana, "ana", "cook", "crew")
	w.device(w.Ana, ana, "phone", "anna")
	w.change(w.Ana, ana, "nurse", true)
	w.change(w.Ana, ana, "cook", false)
	fact := sha256.Sum256([]byte("a fact"))
	said, err := w.Speak(trusttest.KeyOf("phone"), ana.ID(), fact, trusttest.Noon)
	if err != nil {
		t.Fatal(err)
	}
	again, err := DecodeSpoken(EncodeSpoken(said))
	if err != nil {
		t.Fatal(err)
	}
	p, err := personOf(again, w.Mesh, fact)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "who spoke", p, Person{
		ID: ana.ID().String(), Name: "ana", Roles: []workflow.RoleName{"crew", "nurse"}, At: trusttest.IDOf("anna"),
	})

	bia := w.user(w.Ana, "bia", "crew")
	w.device(w.Ana, bia, "tablet", "anna")
	other, err := w.Speak(trusttest.KeyOf("tablet"), bia.ID(), fact, trusttest.Noon)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Speak(trusttest.KeyOf("tablet"), ana.ID(), fact, trusttest.Noon); err == nil {
		t.Error("a key speaks for another user")
	}
	for name, lie := range map[string]func(s *Spoken){
		"for another fact": func(s *Spoken) {
			s.Signature = Sign(trusttest.KeyOf("phone"), ana.ID(), sha256.Sum256(nil))
		},
		"with another's certificate": func(s *Spoken) { s.Device = other.Device },
		"without a certificate":      func(s *Spoken) { s.Device = nil },
		"in another's name":          func(s *Spoken) { s.Signature = Sign(trusttest.KeyOf("tablet"), ana.ID(), fact) },
		"with another's roles":       func(s *Spoken) { s.Device.Account.Roles = []workflow.RoleName{"chief"} },
		"with a role made up": func(s *Spoken) {
			c := s.Roles[0]
			c.Given = true
			s.Roles = []RoleChange{c}
		},
		"with changes in disorder": func(s *Spoken) { s.Roles[0], s.Roles[1] = s.Roles[1], s.Roles[0] },
		"as a partner":             func(s *Spoken) { s.Signature.User = ID{} },
	} {
		s, err := DecodeSpoken(EncodeSpoken(said))
		if err != nil {
			t.Fatal(err)
		}
		lie(&s)
		if who, err := personOf(s, w.Mesh, fact); err == nil {
			t.Errorf("%s: it is the word of %v", name, who)
		}
	}
}

// A partner is a person by its own key and certificate.
func TestAPartnerSpeaksAsItself(t *testing.T) {
	w := newWorld(t)
	fact := sha256.Sum256([]byte("a fact"))
	chain := w.Member(t, w.Ana, "bob")
	s := SpeakAsPartner(trusttest.KeyOf("bob"), chain, fact)
	p, err := personOf(s, w.Mesh, fact)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "who spoke", p, Person{
		ID: string(trusttest.IDOf("bob")), Name: "bob", Roles: []workflow.RoleName{"crew"}, At: trusttest.IDOf("bob"),
	})
	if _, err := personOf(SpeakAsPartner(trusttest.KeyOf("cy"), chain, fact), w.Mesh, fact); err == nil ||
		!strings.Contains(err.Error(), "another") {
		t.Errorf("a key with the certificate of another: %v", err)
	}
	if _, err := personOf(SpeakAsPartner(trusttest.KeyOf("bob"), nil, fact), w.Mesh, fact); err == nil {
		t.Error("a key without a certificate speaks")
	}
}

// personOf is who spoke, of a word that is true.
func personOf(s Spoken, m trust.Mesh, fact [sha256.Size]byte) (Person, error) {
	if err := s.Signature.Verify(fact); err != nil {
		return Person{}, err
	}
	return s.Shown(m)
}
