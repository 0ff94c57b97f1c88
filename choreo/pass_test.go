package choreo

import (
	"slices"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// giver notes what each choice is told that was given out before it.
type giver struct {
	*mesh
	told [][]Holding
}

func (g *giver) Choose(x Work) (partition.Choice, error) {
	g.told = append(g.told, slices.Clone(x.Given))
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
		w.annex = &Annex{Mechanism: mechanism}
		if err := w.start("one", w.genesis(map[workflow.PartitionName]workflow.PartnerID{"p": "one"}, "one", "two")); err != nil {
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
