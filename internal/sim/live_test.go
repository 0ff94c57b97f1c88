package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/contingency/waits"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// thereAndBack has a way through the definition that leaves p1 and comes back twice.
const thereAndBack = `workflow: there-and-back
tasks:
  a: {timeout: 10m, on-failure: {contingency: x}}
  b: {when: 'succeeded("a")', timeout: 10m}
  c: {when: 'succeeded("b")', timeout: 10m}
  d: {after: [c], timeout: 10m}
  e: {after: [d], timeout: 10m}
  x: {timeout: 10m}
partitions:
  p1: [a, c, e]
  p2: [b, d]
`

// worldOf is a world of two nodes before it runs, the first with p1, the other with p2.
func worldOf(t *testing.T, text string) *world {
	t.Helper()
	w := &world{plan: Plan{
		Nodes: 2, Workflow: text, Pins: map[string]int{"p1": 0, "p2": 1}, ConnectionTime: time.Minute,
	}}
	if err := w.define(); err != nil {
		t.Fatal(err)
	}
	w.nodes = []*machine{{i: 0}, {i: 1}}
	return w
}

// Compensations come when the instance has ended: by when it must have does not depend on
// them, and is not as late as if one task came after the other.
func TestCompensationsAreNotWaitedFor(t *testing.T) {
	w := worldOf(t, thereAndBack)
	with := strings.Replace(thereAndBack, "  x: {timeout: 10m}\n",
		"  x: {timeout: 10m, compensate: u}\n  u: {timeout: 10h}\n", 1)
	undoes := worldOf(t, with)
	if a, b := w.bound(), undoes.bound(); a != b {
		t.Errorf("an instance must have ended %s after all healed, with a compensation %s", a, b)
	}
}

// What a liar holds is judged when the wait for its whole partition is over. A contingency
// of its first task then lifts a block elsewhere, what comes after that is the liar's again,
// and has a whole time-out, as every lifted block has; twice in this definition.
func TestEachReturnToALiarTakesAWholeWait(t *testing.T) {
	w := worldOf(t, thereAndBack)
	honest := w.bound()
	w.nodes[0].lied = true
	last, _ := w.bounds.WorstEnd("d") // p1 waits for it
	first, _ := w.bounds.WorstEnd("a")
	wait := last + w.bounds.Partition("p1").Timeout
	least := honest + (wait - first) + 2*(wait+waits.GuardianTimeout)
	if is := w.bound(); is < least || w.patience() < is-honest {
		t.Errorf("with a liar an instance must have ended %s after all healed, want at least %s; the run goes on for %s", is, least, w.patience())
	}
	w.nodes[0].lied, w.nodes[1].lied = false, true
	if got := w.entries("p2", "d", map[workflow.TaskName]int{}); got != 2 {
		t.Errorf("the way to d comes into p2 %d times, want 2", got)
	}
}
