package node

import (
	"errors"
	"testing"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/membership/election"
	"github.com/mutirao-mesh/mutirao/membership/trust"
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
