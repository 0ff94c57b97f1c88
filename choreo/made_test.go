package choreo

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// What a task made is made from what it read when it started. Where that changed while
// it ran, it is not certain.
func TestMadeFromWhatWasRead(t *testing.T) {
	for _, c := range []struct {
		name, after string
		order       []workflow.TaskName
		from        map[workflow.DataName]workflow.Value
		unsure      workflow.DataName
	}{
		{"written before", "after: measure, ", []workflow.TaskName{"measure", "paint"},
			map[workflow.DataName]workflow.Value{"level": int64(7), "place": "here"}, ""},
		{"written while it ran", "", []workflow.TaskName{"measure", "paint"},
			map[workflow.DataName]workflow.Value{"level": int64(7), "place": "here"}, "level"},
		{"written later", "", []workflow.TaskName{"paint", "measure"},
			map[workflow.DataName]workflow.Value{"level": int64(1), "place": "here"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newMesh(t, parse(t, `
workflow: w
data: {level: {type: integer, default: 1}, place: {type: string, default: here}, map: {type: string}}
tasks:
  measure: {application: sensor, out: [level]}
  paint: {`+c.after+`application: brush, in: [level, place], out: [map], produces: a-map}
`))
			if err := w.start("one", w.genesis(map[workflow.PartitionName]workflow.PartnerID{"main": "one"},
				"one")); err != nil {
				t.Fatal(err)
			}
			n := w.node("one")
			for _, task := range c.order {
				id, runs := n.jobOf(task)
				if !runs {
					t.Fatalf("%s does not run", task)
				}
				w.end(n, id, Result{Outputs: map[workflow.TaskName]map[workflow.DataName]workflow.Value{"measure": {"level": int64(7)}, "paint": {"map": "blue"}}[task]})
			}
			if len(n.made) != 1 || n.made[0].Unsure != c.unsure || !reflect.DeepEqual(n.made[0].From, c.from) {
				t.Errorf("made %+v, want it from %v, unsure of %q", n.made, c.from, c.unsure)
			}
		})
	}
}

// TestUnchangedSinceAStart compares what is held to be as it was at a start with what
// the start's author saw: histories of random definitions, and of splits.
func TestUnchangedSinceAStart(t *testing.T) {
	sure, unsure := 0, 0
	check := func(m *Machine) (wrong string) {
		for _, e := range m.log.Order() {
			if e.Fact.Body.Start == nil || !e.Counted || m.log.Forked() > 0 {
				continue
			}
			then := before(t, m, e)
			for n := range m.state.Declarations() {
				if !m.state.Unchanged(n, e) {
					unsure++
					continue
				}
				sure++
				if was, is := then.state.Values()[n], m.state.Values()[n]; !reflect.DeepEqual(was, is) {
					wrong = fmt.Sprintf("%s was %v at the start %s, and is %v", n, was, e.ID.Short(), is)
				}
			}
		}
		return wrong
	}
	rapid.Check(t, func(rt *rapid.T) {
		d := diceOf(rt)
		w := randomMesh(t, d)
		for range 30 + d(40) {
			w.randomStep(d)
		}
		for _, id := range w.names() {
			if m := w.nodes[id].m; m != nil {
				if wrong := check(m); wrong != "" {
					rt.Fatalf("%s\n%s", wrong, w.def.Canonical())
				}
			}
		}
	})
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 4))
		s := newSplit(t, newSplitDefinition(t, r), r)
		s.run(map[string]int{})
		if wrong := check(s.nodes[0]); wrong != "" {
			t.Fatalf("history %d: %s\n%s", seed, wrong, s.def.src)
		}
	}
	if sure == 0 || unsure == 0 {
		t.Errorf("%d were certain, %d were not: the test does not test that", sure, unsure)
	}
}
