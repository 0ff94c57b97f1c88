package choreo

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
)

// TestStartsBuildUponWhatTheirAuthorSaw compares what a start is held to have built
// upon, by all that is known in the end, with what it says in words: the values, as
// its author saw them then, of the slots that its rule mentions. Histories of random
// definitions, and of splits, in which slots have several attempts.
func TestStartsBuildUponWhatTheirAuthorSaw(t *testing.T) {
	t.Run("random", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			d := diceOf(rt)
			w := randomMesh(t, d)
			for range 30 + d(40) {
				w.randomStep(d)
			}
			for _, id := range w.names() {
				if m := w.nodes[id].m; m != nil {
					for _, wrong := range wronglyBuilt(t, m) {
						rt.Fatalf("%s\n%s", wrong, w.def.Canonical())
					}
				}
			}
		})
	})
	t.Run("split", func(t *testing.T) {
		named := 0
		for seed := range uint64(300) {
			r := rand.New(rand.NewPCG(seed, 4))
			s := newSplit(t, newSplitDefinition(t, r), r)
			s.run(map[string]int{})
			for _, wrong := range wronglyBuilt(t, s.nodes[0]) {
				t.Fatalf("history %d: %s\n%s", seed, wrong, s.def.src)
			}
			for _, e := range s.nodes[0].log.Order() {
				if b := e.Fact.Body.Start; b != nil {
					named += len(b.Consumed)
				}
			}
		}
		if named == 0 {
			t.Error("no start named anything: the test does not test that")
		}
	})
}

// wronglyBuilt tells which starts are held to have built upon something else than
// their authors saw.
func wronglyBuilt(t testing.TB, m *Machine) (wrong []string) {
	if m.log.Forked() > 0 {
		return nil // what counts of a fork may be known later
	}
	for _, e := range m.log.Order() {
		if e.Fact.Body.Start == nil || !e.Counted {
			continue
		}
		id := e.Fact.Body.Start.Attempt
		got, want := map[fact.AttemptID]bool{}, map[fact.AttemptID]bool{}
		for from := range m.state.BuiltOn(m.state.Attempts()[id], e) {
			got[from.ID] = true
		}
		then := before(t, m, e)
		if a := then.state.Attempts()[id]; a.Undoes == nil {
			for _, p := range then.state.Definition().Predecessors(a.Slot.Task.Name) {
				for _, from := range then.state.SlotsOf(p) {
					if from.Pick != nil && from.Place < a.Slot.Place {
						want[from.Pick.ID] = true
					}
				}
			}
		}
		if !maps.Equal(got, want) {
			wrong = append(wrong, fmt.Sprintf("the start %s of %s built upon %v, its author saw %v", e.ID.Short(), id,
				got, want))
		}
	}
	return wrong
}

// before is what the author of a fact had seen when writing it.
func before(t testing.TB, m *Machine, e *log.Entry) *Machine {
	var facts []fact.Received
	for _, x := range m.log.Order() {
		if x != e && m.log.Knew(e, x) {
			facts = append(facts, fact.Received{Fact: x.Fact, ID: x.ID, Raw: x.Raw, Att: x.Att})
		}
	}
	then, err := Open(Self{Partner: e.Fact.Chain.Author, Trust: testTrust{}}, m.state.Definition(), m.state.Plan(),
		facts[0])
	if err == nil {
		err = then.Load(slices.Clone(facts[1:]), false)
	}
	if err != nil {
		t.Fatal(err)
	}
	return then
}
