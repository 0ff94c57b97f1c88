package choreo

import (
	"testing"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
)

// What a peer says that it has counts as soon as it is here as well: two can hear of a fact in either order, the one from
// its author, the other from a third that has it.
func TestAnAcknowledgementAheadCountsWhenTheFactComes(t *testing.T) {
	m := relayMesh(t).nodes["one"].m
	two := penOf(t, m, "two", 7)
	f := two.write(fact.Body{Seen: &fact.Seen{}}, m.log.Genesis().Head())
	heads := append(m.Heads(), two.head())
	m.Acknowledge("three", fact.Incarnation{1}, heads)
	if _, err := m.Receive("two", []fact.Received{f}); err != nil {
		t.Fatal(err)
	}
	if m.Behind("three") {
		t.Error("three said that it has the fact, and is taken not to have it")
	}
	many := heads
	for range fewHeads {
		many = append(many, fact.Head{Chain: fact.Chain{Author: "two", Incarnation: fact.Incarnation{9}}, Seq: 1})
	}
	m.Acknowledge("three", fact.Incarnation{1}, many)
	before := m.log.Steps
	if m.comeTrue(); m.log.Steps != before {
		t.Errorf("%d steps for what names %d chains, each time that a fact comes", m.log.Steps-before, len(many))
	}
}
