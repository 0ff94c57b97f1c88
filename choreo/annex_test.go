package choreo

import (
	"math"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// A genesis drops no task that the definition needs for more than its data.
func TestGenesisCannotDropWhatIsNeeded(t *testing.T) {
	def, err := workflow.Parse("w.yaml", []byte(`
workflow: w
data: {x: {type: string}, y: {type: string}}
tasks:
  spare:  {produces: x-set, out: [x]}
  needed: {produces: y-set, out: [y], compensate: {application: noop}}
  reader: {after: [spare, needed], in: [x, y]}
`))
	if err != nil {
		t.Fatal(err)
	}
	w := newMesh(t, def)
	n := w.node("one")
	g := w.genesis(map[workflow.PartitionName]workflow.PartnerID{"main": "one"}, "one")
	g.Input = map[workflow.DataName]workflow.Value{"x": "there", "y": "there"}
	annex := &fact.Annex{Dropped: []fact.Dropped{
		{Task: "spare", DataSet: "x-set", Holder: "one"}, {Task: "needed", DataSet: "y-set", Holder: "one"},
		{Task: "reader", DataSet: "", Holder: "one"}, {Task: "nobody", DataSet: "x-set"},
	}}
	if n.m, err = Create(Self{Partner: "one", Incarnation: n.inc, Trust: testTrust{}}, w.def, w.plan, g, annex,
		w.moment()); err != nil {
		t.Fatal(err)
	}
	w.step(n)
	for _, task := range n.m.Snapshot().Tasks {
		if dropped := task.Dropped != nil; dropped != (task.Task.Name == "spare") {
			t.Errorf("task %s: dropped %v", task.Task.Name, dropped)
		}
	}
	w.stabilize(true)
	if s := n.m.Overall(); s != workflow.InstanceSucceeded {
		t.Errorf("the instance is %s", s)
	}
	if len(n.m.Facts()) != 5 { // genesis, start and success of two tasks
		t.Errorf("%d facts, want 5", len(n.m.Facts()))
	}
}

// A genesis gives data only what their declarations allow; the node that writes it
// is told so, and so is one that opens what another wrote.
func TestGenesisGivesWhatIsDeclared(t *testing.T) {
	def, err := workflow.Parse("w.yaml",
		[]byte("workflow: w\ndata: {n: {type: integer, max: 9}, f: {type: number}, at: {type: time}, l: {type: list}}\ntasks: {a: {}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	w := newMesh(t, def)
	n := w.node("one")
	for _, c := range []struct {
		input map[workflow.DataName]workflow.Value
		want  string
	}{
		{nil, ""},
		{map[workflow.DataName]workflow.Value{"n": int64(9), "f": 0.5, "at": "2026-11-22T10:00:00Z", "l": []any{"x"}},
			""},
		{map[workflow.DataName]workflow.Value{"f": 3.0, "n": nil}, ""},
		{map[workflow.DataName]workflow.Value{"n": int64(10)}, "not in the range"},
		{map[workflow.DataName]workflow.Value{"n": "nine"}, "n: \"nine\": want an integer, have a string"},
		{map[workflow.DataName]workflow.Value{"at": "soon"}, "at: "},
		{map[workflow.DataName]workflow.Value{"other": int64(1)}, "gives other, which the definition does not declare"},
		{map[workflow.DataName]workflow.Value{"f": math.NaN()}, "not a number that can be counted with"},
		{map[workflow.DataName]workflow.Value{"l": []any{math.Inf(1)}}, "not a number that can be counted with"},
	} {
		g := w.genesis(map[workflow.PartitionName]workflow.PartnerID{"main": "one"}, "one")
		g.Input = c.input
		_, err := Create(Self{Partner: "one", Incarnation: n.inc}, w.def, w.plan, g, nil, w.moment())
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v: %v, want %q", c.input, err, c.want)
		}
	}
}
