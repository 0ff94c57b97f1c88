package choreo

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// However often an author says of a task that it is ready, or starts it, its rule is read
// only when that can have changed, however much the rule asks for.
func TestStepsOfReadingARule(t *testing.T) {
	start := func(i int) fact.Body {
		return fact.Body{Start: &fact.Start{Attempt: fact.AttemptID{Slot: "last"}, Try: i + 1}}
	}
	ready := func(int) fact.Body { return fact.Body{Ready: &fact.ReadyBody{Attempt: fact.AttemptID{Slot: "last"}}} }
	none, all := func(int) int { return 0 }, func(n int) int { return n }
	allButOne := func(n int) int { return n - 1 }
	for _, c := range []struct {
		name string
		rule string          // of the last task; empty: that another one is ready, which has the join
		done func(n int) int // how many are done before
		say  func(i int) fact.Body
		seen bool // it says between two of them that it has seen nothing
		more bool // it does one more between two of them
	}{
		{"a join of which the last is missing", "after: [%s]", allButOne, start, false, false},
		{"the same, with other facts between", "after: [%s]", allButOne, start, true, false},
		{"a join that it completes meanwhile", "after: [%s]", none, start, false, true},
		{"what waits for such a join to be ready", "", allButOne, start, true, false},
		{"a join that is complete, and data", "after: [%s], when: x > 5", all, ready, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			growth(t, 20, func(n int) (int, int) {
				var b strings.Builder
				b.WriteString("workflow: wide\ndata: {x: {type: integer}}\ntasks:\n  writer: {out: [x]}\n")
				for i := range n {
					fmt.Fprintf(&b, "  t%05d: {}\n", i)
				}
				var names []string
				for i := range n {
					names = append(names, fmt.Sprintf("t%05d", i))
				}
				if join := strings.Join(names, ", "); c.rule != "" {
					fmt.Fprintf(&b, "  last: {"+c.rule+"}\n", join)
				} else {
					fmt.Fprintf(&b, "  join: {after: [%s]}\n  last: {when: ready(\"join\")}\n", join)
				}
				w := newMesh(t, parse(t, b.String()))
				if err := w.start("one",
					w.genesis(map[workflow.PartitionName]workflow.PartnerID{"main": "three"}, "one", "two",
						"three")); err != nil {
					t.Fatal(err)
				}
				m := w.nodes["one"].m
				liar := penOf(t, m, "three", 7)
				m.mustTake(t, liar.write(fact.Body{Seen: &fact.Seen{}}, m.log.Genesis().Head()))
				do := func(task int) {
					a := fact.AttemptID{Slot: workflow.TaskName(fmt.Sprintf("t%05d", task))}
					m.mustTake(t, liar.write(fact.Body{Start: &fact.Start{Attempt: a, Try: 1}}),
						liar.write(fact.Body{Success: &fact.Success{Attempt: a, Try: 1}}))
				}
				for i := range c.done(n) {
					do(i)
				}
				before := m.log.Steps
				done := c.done(n)
				for i := range n {
					if c.more && done < n-1 {
						do(done)
						done++
					}
					if c.seen {
						m.mustTake(t, liar.write(fact.Body{Seen: &fact.Seen{}}))
					}
					f := liar.write(c.say(i))
					m.mustTake(t, f)
					if m.log.ByID()[f.ID].Counted != (done == n) {
						t.Fatalf("fact %d counts: %t", i, done < n)
					}
				}
				steps := m.log.Steps - before
				for i := done; i < n; i++ {
					do(i)
				}
				f := liar.write(c.say(n))
				if m.mustTake(t, f); !m.log.ByID()[f.ID].Counted {
					t.Error("when its author knows that all is done it does not count")
				}
				return steps, n
			})
		})
	}
}

// Facts that do not count cost those who show them the same however many there are.
func TestStepsOfShowingWhatDoesNotCount(t *testing.T) {
	growth(t, 20, func(n int) (int, int) {
		m := relayMesh(t).nodes["one"].m
		liar, seen, shown := penOf(t, m, "three", 7), []fact.Head{m.log.Genesis().Head()}, 0
		for i := range n {
			m.mustTake(t, liar.write(fact.Body{Start: &fact.Start{Attempt: fact.AttemptID{Slot: "none"}, Try: i + 1}},
				seen...))
			seen = nil
			before := m.log.Steps
			if got := m.state.Uncounted(); len(got) != 1 ||
				i > 0 && !strings.HasPrefix(got[0].What, fmt.Sprint(i+1, " ")) {
				t.Fatalf("of %d facts that do not count %+v is shown", i+1, got)
			}
			shown += m.log.Steps - before
		}
		return shown, n
	})
}
