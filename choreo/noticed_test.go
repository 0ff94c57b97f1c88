package choreo

import (
	"slices"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// TestSlotsThatWereMadeAgainAreNotNoticed: a fork has all slots made again between two decisions, after somebody
// looked. The next decision tells the board nothing of the slots of before, as they may be ready no more.
func TestSlotsThatWereMadeAgainAreNotNoticed(t *testing.T) {
	w := newMesh(t, parse(t, `
workflow: ex
tasks:
  a: {type: manual}
  b: {type: manual}
partitions:
  p: [a, b]
`))
	if err := w.start("one", w.genesis(map[workflow.PartitionName]workflow.PartnerID{"p": "one"}, "one",
		"two")); err != nil {
		t.Fatal(err)
	}
	w.stabilize(false)
	m := w.nodes["one"].m
	for range 3 {
		m.state.Reset() // as a fork has it
		m.state.Settle()
		m.look()
		if len(m.unnoticed) == 0 {
			t.Fatal("nothing waits to be noticed, so this shows nothing")
		}
		for _, sl := range m.unnoticed {
			if !slices.Contains(m.state.Slots(), sl) {
				t.Fatalf("%s of before waits to be noticed", sl.Task.Name)
			}
		}
	}
	w.advance(time.Minute)
	before := m.state.Slots()
	m.state.Reset()
	m.state.Settle()
	m.Decide(w.moment(), w)
	for _, sl := range before {
		if sl.Current.Noticed != 0 {
			t.Errorf("%s of before was noticed", sl.Task.Name)
		}
	}
	for _, sl := range m.state.Slots() {
		if sl.Current.Noticed == 0 {
			t.Errorf("%s was not noticed", sl.Task.Name)
		}
	}
}
