package node

import (
	"crypto/sha256"
	"errors"
	"testing"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/membership/election"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/membership/trust/trusttest"
	"github.com/mutirao-mesh/mutirao/membership/users"
)

// A verdict that names an office must prove it.
func TestAnOfficeWithoutProofIsForged(t *testing.T) {
	c := credentials{mesh: trust.Mesh{Name: "team", Founder: "12D3KooWfounder"}}
	verdict := func(o *fact.Office) []fact.Received {
		return []fact.Received{{Fact: &fact.Fact{
			Chain: fact.Chain{Author: "12D3KooWliar"}, Body: fact.Body{Verdict: &fact.Verdict{Office: o}},
		}}}
	}
	if err := c.check(verdict(nil)); err != nil {
		t.Errorf("a verdict without an office is refused: %v", err)
	}
	for name, o := range map[string]*fact.Office{
		"no proof": {Office: election.Office{Term: 1000, Number: 9}},
		"garbage":  {Office: election.Office{Term: 1000, Number: 9}, Proof: []byte("I was elected")},
	} {
		if err := c.check(verdict(o)); !errors.Is(err, fact.ErrForged) {
			t.Errorf("%s: error %v, want ErrForged", name, err)
		}
	}
}

// What is remembered of a word, and of the certificates that it shows, makes no other word true.
func TestOnlyTheSameWordIsNotCheckedAgain(t *testing.T) {
	team := trusttest.New(t)
	c := credentials{mesh: team.Mesh}
	here, there := sha256.Sum256([]byte("locks an item")), sha256.Sum256([]byte("gives it back"))
	chain := team.Member(t, team.Ana, "bob")
	said := users.SpeakAsPartner(trusttest.KeyOf("bob"), chain, here)
	word := users.EncodeSpoken(said)
	for range 2 {
		if who, err := c.person(word, here); err != nil || who.Name != "bob" {
			t.Fatalf("the word is of %q, error %v", who.Name, err)
		}
	}
	if _, err := c.person(word, there); err == nil {
		t.Error("a word counts for something else that was not signed")
	}
	forged := said
	forged.Signature.Signature = make([]byte, len(said.Signature.Signature))
	if _, err := c.person(users.EncodeSpoken(forged), here); err == nil {
		t.Error("a forged signature counts, as its certificates are known")
	}
	other := users.SpeakAsPartner(trusttest.KeyOf("cy"), chain, here)
	if _, err := c.person(users.EncodeSpoken(other), here); err == nil {
		t.Error("another key counts with certificates that are known")
	}
}
