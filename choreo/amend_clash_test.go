package choreo

import (
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/amendments"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// Of two amendments that add a condition unlike the first does not count, as it makes a circle with a third: then it is as
// the other says, and no incident says that the first of them counts.
func TestWhatTheFirstOfTwoAddsDoesNotCount(t *testing.T) {
	w := newMesh(t, parse(t, `
workflow: w
data: {n: {type: integer}}
tasks: {a: {type: manual}, b: {type: manual}, c: {type: manual, out: [n]}}
partitions: {p: [a], q: [b], r: [c]}
`))
	w.people["u"] = fact.Speaker{User: "u", At: "ann"}
	w.annex = &fact.Annex{Responsible: "u"}
	at := map[workflow.PartitionName]workflow.PartnerID{"p": "ann", "q": "bob", "r": "cy"}
	if err := w.start("ann", w.genesis(at, "ann", "bob", "cy")); err != nil {
		t.Fatal(err)
	}
	w.stabilize(false)
	said := func(who workflow.PartnerID, texts ...string) {
		t.Helper()
		for _, text := range texts {
			patch, err := amendments.DecodePatch(text)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.put(w.nodes[who], w.word(w.people["u"], worklist.Amend{Patch: patch.Text()})); err != nil {
				t.Fatal(err)
			}
			w.mail = nil // the others hear of it later
		}
	}
	doc := func(text string) string { return `[{"kind":"task","name":"a","key":"doc","value":"` + text + `"}]` }
	rule := func(task, after string) string {
		return `{"kind":"task","name":"` + task + `","key":"after","value":["` + after + `"]},` +
			`{"kind":"task","name":"` + task + `","key":"when"}`
	}
	said("ann", `[`+rule("a", "b")+`]`)
	much := func(than string) string {
		return `{"kind":"condition","name":"much","key":"expression","value":"n > ` + than + `"}`
	}
	said("bob", doc("x"), `[`+much("1")+`,`+rule("b", "a")+`]`)
	said("cy", doc("x"), doc("y"), `[`+much("2")+`]`)
	for range 4 {
		w.meetAll()
		w.stabilize(false)
		w.advance(time.Second)
	}
	m := w.nodes["cy"].m
	if c := m.Definition().Condition("much"); c == nil || c.Source != "n > 2" {
		t.Fatalf("the condition is %v: the test does not test what it should", c)
	}
	tells := false
	for _, x := range m.Snapshot().Incidents {
		if strings.Contains(x.What, "it is as the first of them says") {
			t.Errorf("an incident says %s", x.What)
		}
		tells = tells || strings.Contains(x.What, "add condition much unlike; it is as the later of them says")
	}
	if !tells {
		t.Errorf("the incidents are %+v", m.Snapshot().Incidents)
	}
	if err := w.sameEverywhere(); err != nil {
		t.Error(err)
	}
}
