package choreo

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/internal/test/sample"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/amendments"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// changedFlow is randomFlow with some of it changed.
func changedFlow(r *rand.Rand) string {
	one := func(all ...string) string { return all[r.IntN(len(all))] }
	data := one("", "", ", k: {type: integer, default: 0}", ", k: {type: integer}", ", k: {type: string, default: none}")
	more := ""
	if data != "" && r.IntN(2) == 0 {
		more = one(
			`  more: {when: n == 1 and k == null, repeat: true, application: x, out: [k]}`,
			"  more: {when: n >= 0 and k != null, repeat: {times: 2}, application: x, out: [k, a], "+
				"compensate: {application: unx}}",
			`  extra: {when: n == 2, repeat: {times: 1}, application: y, out: [k]}`) + "\n"
	}
	besides := one("", "", "compensate: {application: unx}, ", "compensate: {task: back}, ", "timeout: 9h, ",
		"enabled: false, ")
	if strings.Contains(besides, "back") {
		more += one("  back: {application: back, out: [b]}\n", "  back: {application: unback, out: [b]}\n")
	}
	const same = "application: x, out: [a]"
	constraint := one("", "", "constraints: [{name: low, when: n < 9, strict: true}]\n",
		"constraints: [{name: low, when: n < 4, strict: true}]\n", "constraints: [{name: low, when: n < 9}]\n")
	condition := one("", "conditions: {many: n > 2}\n", "conditions: {many: n > 3}\n")
	text := strings.NewReplacer(
		"b: {type: integer}", "b: {type: integer}"+data,
		"out: [b],", "out: [b], "+besides,
		"application: x, out: [a]", one(same, same, same, same, same, "application: y, out: [b]"),
		"when: n == 4,", one("when: n == 4,", "when: n >= 4,"),
		"(a == null or a < n)", one("(a == null or a < n)", "(a == null or a < n)", "(a == null or a < n or a > 7)"),
		"final: n == 5", more+constraint+condition+"final: "+one("n == 5", "n == 5", "n >= 5", "n == 4"),
	).Replace(randomFlow)
	return text
}

const randomGraph = `
workflow: w
data: {n: {type: integer, default: 0}}
tasks:
  a: {application: x, out: [n]}
  b: {application: x, out: [n], on-failure: release}
  c: {after: a, application: x, out: [n]}
  d: {after: [b, c], when: n >= 0, application: x}
partitions: {p1: [a], p2: [b, d], p3: [c]}
`

// changedGraph is randomGraph with some of it changed.
func changedGraph(r *rand.Rand) string {
	one := func(all ...string) string { return all[r.IntN(len(all))] }
	var pairs []string
	if data := one("", "integer", "integer", "string"); data != "" {
		home, added, value := one("p1: [", "p2: [", "p3: ["), "more, ", "1"
		if data == "string" {
			value = `"some"`
		}
		more := "  more: {application: x, out: [k, n]}\n"
		if r.IntN(2) == 0 {
			more += "  most: {when: k == " + value + ", application: x, out: [n]}\n"
			added += "most, "
		}
		pairs = []string{"default: 0}", "default: 0}, k: {type: " + data + "}", home, home + added, "partitions:",
			more + one("", "final: k == "+value+"\n", "constraints: [{name: low, when: n < 9, strict: true}]\n") + "partitions:"}
	}
	const reads = "c: {after: a, application: x,"
	pairs = append(pairs, reads, reads+one("", "", " in: [n],"))
	return strings.NewReplacer(append(pairs, "n >= 0", one("n >= 0", "many"),
		"tasks:", one("conditions: {many: n > 0}\ntasks:", "conditions: {many: n != 7}\ntasks:"))...).Replace(randomGraph)
}

// amendSome has somebody who may amend an instance at a node, if that takes it.
func amendSome(w *mesh, n *node, text string) (took bool) {
	changed, err := workflow.Parse("w", []byte(text))
	if err != nil {
		w.t.Fatal(err)
	}
	p, no := amendments.PatchOf(n.m.Definition(), changed, nil)
	if len(no) > 0 || len(p) == 0 {
		return false
	}
	w.people["ann"] = fact.Speaker{User: "ann", At: "ann"}
	_, err = w.put(n, w.word(w.people["ann"], worklist.Amend{Patch: p.Text()}))
	return err == nil
}

// Whatever is amended of a flow, at whichever node and on both sides of a cut: the same facts in any order are the same
// history, which is one line; and what counted counts on.
func TestAmendedFlowsConverge(t *testing.T) {
	took, taken, clashed, left, states, ended, added := 0, 0, 0, 0, 0, 0, 0
	for seed := range uint64(sample.Of(40, 100)) {
		counted := map[fact.ID]workflow.PartnerID{}
		w := flowHistory(t, seed, randomFlow, 130, func(w *mesh, n *node, r *rand.Rand) {
			switch k := r.IntN(6); {
			case k == 0 && amendSome(w, n, changedFlow(r)):
				took++
			case k < 4 && len(n.running()) > 0:
				ids := n.running()
				id := ids[r.IntN(len(ids))]
				w.end(n, id, amendedResult(n.m, id, r))
			}
			mustCountOn(t, seed, w, counted)
		})
		comeTogether(w)
		mustCountOn(t, seed, w, counted)
		want := agreed(t, w, seed)
		checkLine(t, seed, want)
		if t.Failed() {
			t.FailNow()
		}
		for _, i := range want.Snapshot().Incidents {
			clashed += strings.Count(i.What, "two amendments were made side by side")
			left += strings.Count(i.What, "an amendment does not go together")
		}
		for _, v := range want.History() {
			states += strings.Count(string(v.Kind), "amendment")
			if v.Task == "more" || v.Task == "extra" {
				added++
			}
		}
		for _, e := range want.log.Order() {
			if a := e.Fact.Body.Aged; a != nil && a.Age == 0 && e.Counted {
				taken++
			}
		}
		if want.Overall() == workflow.InstanceSucceeded {
			ended++
		}
	}
	said := fmt.Sprintf("%d amendments, %d times taken up, %d clashes, %d left, %d states by new data, %d by new "+
		"triggers, %d ended", took, taken, clashed, left, states, added, ended)
	t.Log(said)
	if took == 0 || taken == 0 || clashed == 0 || left == 0 || states == 0 || added == 0 || ended == 0 {
		t.Errorf("want some of each: %s", said)
	}
}

// Whatever is amended of the data, conditions, constraints and tasks of a graph, on whichever side of a cut: the same
// facts in any order are the same state, and what counted counts on.
func TestAmendedDataConverge(t *testing.T) {
	took, clashed, left, unfit, written := 0, 0, 0, 0, 0
	for seed := range uint64(sample.Of(60, 150)) {
		counted := map[fact.ID]workflow.PartnerID{}
		w := flowHistory(t, seed, randomGraph, 60, func(w *mesh, n *node, r *rand.Rand) {
			switch k := r.IntN(6); {
			case k < 2 && amendSome(w, n, changedGraph(r)):
				took++
			case k < 5 && len(n.running()) > 0:
				ids := n.running()
				id := ids[r.IntN(len(ids))]
				w.end(n, id, amendedResult(n.m, id, r))
			}
			mustCountOn(t, seed, w, counted)
		})
		comeTogether(w)
		mustCountOn(t, seed, w, counted)
		want := agreed(t, w, seed)
		for _, i := range want.Snapshot().Incidents {
			clashed += strings.Count(i.What, "two amendments were made side by side")
			left += strings.Count(i.What, "an amendment does not go together")
		}
		if k := want.state.Values()["k"]; k != nil {
			written++
		} else if sl := want.state.BySlot()["more"]; sl != nil && sl.Pick != nil && sl.Pick.Success().Gave()["k"] != nil {
			unfit++
		}
	}
	said := fmt.Sprintf("%d amendments, %d clashes, %d left, new data have a value %d times, one that does not fit %d",
		took, clashed, left, written, unfit)
	t.Log(said)
	if took == 0 || clashed == 0 || left == 0 || written == 0 || unfit == 0 {
		t.Errorf("want some of each: %s", said)
	}
}

// amendedResult is flowResult, with data that may have been added.
func amendedResult(m *Machine, id fact.AttemptID, r *rand.Rand) Result {
	res := flowResult(m, id, r)
	a := m.state.Attempts()[id]
	if a == nil || res.Failed || a.Undoes != nil {
		return res
	}
	if res.Outputs == nil {
		res.Outputs = map[workflow.DataName]workflow.Value{}
	}
	for n := range res.Outputs {
		if !slices.Contains(a.Task.Out, n) { // by what its trigger says now, or said
			delete(res.Outputs, n)
		}
	}
	for _, n := range a.Task.Out {
		if d := m.state.Declarations()[n]; n == "k" && d != nil && r.IntN(3) > 0 {
			res.Outputs[n] = int64(1)
			if d.Type == workflow.TypeString {
				res.Outputs[n] = "some"
			}
		}
	}
	return res
}

// mustCountOn checks that what counted at some node counts on wherever it is: nobody forked a chain.
func mustCountOn(t *testing.T, seed uint64, w *mesh, counted map[fact.ID]workflow.PartnerID) {
	t.Helper()
	for _, p := range w.names() {
		m := w.nodes[p].m
		if m == nil {
			continue
		}
		for _, e := range m.log.Order() {
			if by, did := counted[e.ID]; did && !e.Counted {
				t.Fatalf("seed %d: at %s %s %d does not count (%s), which counted at %s", seed, p,
					e.Fact.Chain.Author, e.Fact.Seq, e.Why, by)
			}
			if e.Counted {
				counted[e.ID] = p
			}
		}
	}
}
