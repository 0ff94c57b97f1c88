package choreo

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// giver notes what each choice is told that was given out before it, and of its holder.
type giver struct {
	*mesh
	told    [][]Holding
	holders []workflow.PartnerID
}

func (g *giver) Choose(x Work) (partition.Choice, error) {
	g.told, g.holders = append(g.told, slices.Clone(x.Given)), append(g.holders, x.Holder)
	if len(x.Tasks) > 1 {
		return partition.Choice{}, errNothing // nobody takes them all
	}
	return g.mesh.Choose(x)
}

// What a decision gives out by a mechanism is one of its effects, said once; until it is
// said each choice is told of those before it. The plain rule weighs nothing.
func TestWhatIsGivenOutIsAnEffect(t *testing.T) {
	for _, mechanism := range []aptitude.Mechanism{aptitude.SelPush, partition.PlainRule} {
		w := newMesh(t, parse(t, `
workflow: two
tasks:
  a: {timeout: 1h, on-failure: {contingency: x}}
  b: {timeout: 1h, on-failure: {contingency: y}}
  x: {}
  y: {}
partitions:
  p: {tasks: [a, b], timeout: 1h}
`))
		w.annex = &fact.Annex{Mechanism: mechanism}
		if err := w.start("one", w.genesis(map[workflow.PartitionName]workflow.PartnerID{"p": "one"}, "one",
			"two")); err != nil {
			t.Fatal(err)
		}
		m, by := w.nodes["one"].m, &giver{mesh: w}
		m.Decide(w.moment(), by)
		w.now += 2 * time.Hour
		given := m.Decide(w.moment(), by).Given
		want := 2
		if mechanism == partition.PlainRule {
			want = 0
		}
		if len(given) != want || len(by.told) < 2 || len(by.told[len(by.told)-1]) != want/2 {
			t.Errorf("%q: given out are %v, and the choices were told of %v", mechanism, given, by.told)
		}
		for i, x := range []workflow.TaskName{"x", "y"}[:want] {
			if given[i].Task != x || given[i].Giver != "one" {
				t.Errorf("%d given out: %+v", i, given[i])
			}
		}
		if again := m.Decide(w.moment(), by).Given; len(again) > 0 {
			t.Errorf("given out twice: %v", again)
		}
	}
}

// What was chosen for and could not be recorded was not given out: here somebody was found
// for a rejected task, and the name is beyond a limit.
func TestWhatIsNotRecordedIsNotGivenOut(t *testing.T) {
	w := newMesh(t, parse(t, "workflow: one\ntasks:\n  a: {type: manual}\n"))
	w.annex = &fact.Annex{Mechanism: aptitude.SelPush}
	if err := w.start("one", w.genesis(map[workflow.PartitionName]workflow.PartnerID{"main": "one"}, "one",
		"two")); err != nil {
		t.Fatal(err)
	}
	w.takers["a"] = workflow.PartnerID(strings.Repeat("x", workflow.MaxName+1)) // no partner is called so
	m := w.nodes["one"].m
	c, err := m.Reject("a", "", w.moment(), w)
	if err == nil || c.Partner == "" {
		t.Fatalf("it was recorded that %q has the task (%v)", c.Partner, err)
	}
	if given := m.Given(); len(given) > 0 {
		t.Errorf("given out: %v", given)
	}
}

// A person's task that cannot begin yet goes to its next holder, who has what its partition
// lists; one that can begin goes to somebody who performs it.
func TestWhoTakesAPersonsTask(t *testing.T) {
	for _, begins := range []bool{false, true} {
		w := newMesh(t, parse(t, `
workflow: two
tasks:
  a: {type: manual}
  b: {type: manual, role: crew, after: a}
partitions:
  p: [a]
  q: [b]
`))
		at := map[workflow.PartitionName]workflow.PartnerID{"p": "one", "q": "one"}
		if err := w.start("one", w.genesis(at, "one", "two", "three")); err != nil {
			t.Fatal(err)
		}
		one, want := w.nodes["one"], workflow.PartnerID("")
		if begins {
			if err := one.m.Finish("a", Result{}, w.moment(), w); err != nil {
				t.Fatal(err)
			}
			w.step(one)
			want = "one"
		}
		w.takers["b"] = "two"
		by := &giver{mesh: w}
		if given, stays := one.m.GiveOn("", w.moment(), by); !slices.ContainsFunc(given,
			func(g GivenOn) bool { return g.Task == "b" }) {
			t.Fatalf("b was not given on; what stays is %v", stays)
		}
		if got := by.holders[len(by.holders)-1]; got != want {
			t.Errorf("b begins: %t. It is given on as %q's, want %q's", begins, got, want)
		}
	}
}
