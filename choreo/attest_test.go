package choreo

import (
	"fmt"
	"slices"
	"testing"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// checkBundle checks that each fact of a bundle is attested, ours to attest, or, unless
// it brings somebody in, named as previous by a later one of its chain.
func checkBundle(m *Machine, b *Bundle) error {
	vouched := map[fact.ID]bool{}
	for i := len(b.Facts) - 1; i >= 0; i-- {
		o := b.Facts[i]
		if o.Attestation() == nil && !o.Mine && (!vouched[o.ID()] || o.e.Fact.Body.BringsIn()) {
			return fmt.Errorf("%s to a peer: nothing vouches for %s number %d of %s", m.self, o.e.Fact.Body.Kind(),
				o.e.Fact.Seq, o.e.Fact.Chain.Author)
		}
		if o.Mine && o.e.Fact.Chain.Author != m.self {
			return fmt.Errorf("%s is to attest a fact of %s", m.self, o.e.Fact.Chain.Author)
		}
		vouched[o.e.Fact.Prev] = true
	}
	return nil
}

// TestBundles: whatever the limit, bundles come causes first, with every chain
// vouched for, and all of them together bring everything.
func TestBundles(t *testing.T) {
	for _, limit := range []int{1, 200, 500, 1000, 3000, fact.MaxFact} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			w := newMesh(t, parse(t, `
workflow: bundles
tasks: {a: {}, b: {after: a}, c: {after: b}, d: {after: c}, e: {after: d}, f: {after: e}}
partitions: {p1: [a, c, e], p2: [b, d], p3: [f]}
`))
			at := map[workflow.PartitionName]workflow.PartnerID{"p1": "one", "p2": "two", "p3": "three"}
			w.limit = limit
			w.sent = func(l letter, b *Bundle) {
				if err := checkBundle(w.nodes[l.from].m, b); err != nil {
					t.Error(err)
				}
			}
			if err := w.start("one", w.genesis(at, "one", "two", "three", "four")); err != nil {
				t.Fatal(err)
			}
			w.stabilize(true)
			w.meetAll()
			w.stabilize(true)
			if err := w.sameEverywhere(); err != nil {
				t.Error(err)
			}
			if got := w.nodes["four"].m.Overall(); got != workflow.InstanceSucceeded {
				t.Errorf("at four the instance is %s", got)
			}
			for _, id := range w.names() {
				if errs := w.nodes[id].errs; len(errs) > 0 {
					t.Errorf("%s refused facts: %v", id, errs)
				}
			}
		})
	}
}

// A letter that got lost must not leave a fact that nobody vouches for: it
// would keep the node from passing on anything that comes after.
func TestLostLetterLeavesNothingThatNobodyVouchesFor(t *testing.T) {
	w := newMesh(t, parse(t, `
workflow: hole
tasks: {a: {}, b: {after: a}, c: {after: b}, d: {after: [a, c]}, e: {after: d}}
partitions: {p1: [a, d], p2: [b], p3: [c, e]}
`))
	w.sent = func(l letter, b *Bundle) {
		if err := checkBundle(w.nodes[l.from].m, b); err != nil {
			t.Error(err)
		}
	}
	at := map[workflow.PartitionName]workflow.PartnerID{"p1": "one", "p2": "two", "p3": "three"}
	if err := w.start("one", w.genesis(at, "one", "two", "three", "four")); err != nil {
		t.Fatal(err)
	}
	w.stabilize(false)
	three := w.nodes["three"]
	author := w.as("two", three.m)
	first := author.mustAppend(w.moment(), fact.Body{Seen: &fact.Seen{}})
	other := w.as("four", three.m)
	unknown := other.mustAppend(w.moment(), fact.Body{Seen: &fact.Seen{}})
	if _, err := author.Receive("four", []fact.Received{encoded(t, unknown.Fact)}); err != nil {
		t.Fatal(err)
	}
	second := author.mustAppend(w.moment(), fact.Body{Seen: &fact.Seen{}})
	batch := []fact.Received{encoded(t, first.Fact), encoded(t, second.Fact)}
	batch[1].Att = &fact.Attestation{Sig: make([]byte, 64)} // vouches for both
	if _, err := three.m.Receive("two", batch); err == nil {
		t.Fatal("a fact whose past is missing was taken")
	}
	three.m.mustAppend(w.moment(), fact.Body{Seen: &fact.Seen{}}) // what three says now
	three.m.Acknowledge("one", fact.Incarnation{1}, w.nodes["one"].m.Heads())
	b := three.m.Outgoing("one", fact.MaxFact, w.moment())
	if b == nil || len(b.Facts) == 0 {
		t.Fatal("three cannot pass on what it says itself")
	}
	if err := checkBundle(three.m, b); err != nil {
		t.Error(err)
	}
}

// Of facts that were saved from a damaged store those stay out whose attestation is lost with
// a later one of their chain, and what was built upon them. They are put back when that one
// comes.
func TestSavedFactsThatNothingVouchesForStayOut(t *testing.T) {
	m := relayMesh(t).nodes["one"].m
	three, two := penOf(t, m, "three", 7), penOf(t, m, "two", 7)
	var facts []fact.Received // the second of three's vouches for the first, the fourth for the third
	var upon fact.Received    // two built upon the third
	for i := range 4 {
		f := three.write(fact.Body{Seen: &fact.Seen{}}, m.log.Genesis().Head())
		if i%2 == 0 {
			f.Att = nil
		}
		if i == 2 {
			upon = two.write(fact.Body{Seen: &fact.Seen{}}, three.head())
		}
		facts = append(facts, f)
	}
	saved := append(slices.Clone(facts[:3]), upon) // three's fourth is lost
	for _, order := range []string{"in order", "reversed"} {
		if added, all := m.PutBack(saved); added != 2*state.AsInt(order == "in order") || all {
			t.Errorf("%s: %d new facts, all: %v; want the first two, and that some wait", order, added, all)
		}
		if m.Has(facts[2].ID) || m.Has(upon.ID) {
			t.Errorf("%s: a fact is put back that nothing vouches for", order)
		}
		slices.Reverse(saved)
	}
	word := m.mustAppend(Moment{}, fact.Body{Seen: &fact.Seen{}})
	m.Acknowledge("three", fact.Incarnation{1}, []fact.Head{m.log.Genesis().Head()})
	b := m.Outgoing("three", fact.MaxFact, Moment{})
	if b == nil || !slices.ContainsFunc(b.Facts, func(o *Outgoing) bool { return o.e == word }) {
		t.Fatal("one cannot pass on what it says itself")
	}
	if err := checkBundle(m, b); err != nil {
		t.Error(err)
	}
	if added, err := m.Receive("three", facts); added != 2 || err != nil {
		t.Errorf("of three's facts %d are new (%v), want the last two", added, err)
	}
	if added, all := m.PutBack(saved); added != 1 || !all {
		t.Errorf("then %d facts are put back, all: %v; want the one that waited", added, all)
	}
}
