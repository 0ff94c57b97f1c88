package choreo

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/internal/test/sample"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

const peoplesFlow = `
workflow: w
data: {n: {type: integer, default: 0}, a: {type: integer}, b: {type: integer}, old: {type: boolean}}
tasks:
  left: {when: n < 3 and (a == null or a < n), repeat: true, type: manual, role: crew, offline: true, out: [a],
	timeout: 3h, compensate: {application: unx}}
  right: {when: n < 3 and (b == null or b < n), repeat: true, type: manual, out: [b]}
  step: {when: n < 3 and a == n and b == n, repeat: true, application: x, out: [n], compensate: {application: unx}}
  age: {when: instance.age > duration("40m"), application: x, out: [old]}
  end: {when: n == 3 and old and instance.age < duration("30d"), repeat: true, application: x, out: [n]}
final: n == 4
`

// peopleAct has a person take an item of a flow, give it back or bring its result, which may come late or twice.
func peopleAct(w *mesh, n *node, r *rand.Rand) {
	if len(w.people) == 0 {
		w.people["u"] = fact.Speaker{User: "u", At: "ann", Roles: []workflow.RoleName{"crew"}}
		w.people["v"] = fact.Speaker{User: "v", At: "ben", Roles: []workflow.RoleName{"crew"}}
	}
	p := w.people[[]worklist.User{"u", "v"}[r.IntN(2)]]
	items := n.m.Items()
	if len(w.said) > 0 && r.IntN(5) == 0 {
		_, _ = w.put(n, w.said[r.IntN(len(w.said))]) // once more, there or elsewhere
		return
	}
	if len(items) == 0 {
		return
	}
	i := items[r.IntN(len(items))]
	var body worklist.Body
	v, _ := n.m.state.Values()["n"].(int64)
	switch name := map[workflow.TaskName]workflow.DataName{"left": "a", "right": "b"}[i.Task.Name]; {
	case i.Holder == "" && r.IntN(4) == 0:
		err := n.m.Finish(i.Task.Name, Result{Outputs: map[workflow.DataName]workflow.Value{name: v}}, w.moment(), w)
		w.step(n)
		if err != nil {
			return // it is held elsewhere
		}
		return
	case i.Holder == "":
		body = worklist.Grant{
			Items: []worklist.Item{i.Item}, Mode: worklist.Select, Lease: worklist.DefaultLease(worklist.Select),
		}
	case r.IntN(6) == 0:
		body = worklist.Release{Item: i.Item, Grant: i.Grant}
	default:
		p = w.people[i.Holder]
		x := worklist.Result{
			Item: i.Item, Grant: i.Grant, Outputs: map[workflow.DataName]workflow.Value{name: strconv.FormatInt(v, 10)},
		}
		if r.IntN(60) == 0 {
			x.Failed, x.Reason, x.Outputs = true, "dice", nil
		}
		body = x
	}
	c := w.word(p, body)
	w.said = append(w.said, c)
	_, _ = w.put(n, c) // refused where it may not be
}

// As TestFlowsConverge, with people, and with conditions that ask for the age of the instance.
func TestPeoplesFlowsConverge(t *testing.T) {
	ended, taken, aged, kept := 0, 0, 0, 0
	for seed := range uint64(sample.Of(45, 120)) {
		w := flowHistory(t, seed, peoplesFlow, 250, peopleAct)
		clear(w.gone)
		for range 3 {
			w.meetAll()
			w.stabilize(false)
		}
		want := agreed(t, w, seed)
		checkLine(t, seed, want)
		ended += state.AsInt(want.Overall() == workflow.InstanceSucceeded)
		kept += len(want.KeptResults())
		for _, e := range want.log.Order() {
			aged += state.AsInt(e.Fact.Body.Aged != nil && e.Counted)
			if c := e.Fact.Body.Claim; c != nil {
				_, closes := c.Body().(worklist.Close)
				taken += state.AsInt(closes && e.Counted)
			}
			if !e.Counted && e.Fact.Chain.Author != "dora" {
				t.Errorf("seed %d: a fact of a correct node does not count: %s, %s", seed, e.Fact.Body.Kind(), e.Why)
			}
		}
	}
	if ended == 0 || taken == 0 || aged == 0 || kept == 0 {
		t.Errorf("of 120 flows %d ended, people ended %d items, %d ages were said, %d results were kept: want some of each", ended, taken, aged, kept)
	}
}

// Whoever keeps the states has the files that transitions read or write: who takes them over fetches them, from who
// gave them, and may read them.
func TestFilesOfAFlowComeToWhoeverKeepsIt(t *testing.T) {
	w := newMesh(t, parse(t, `
workflow: w
data: {photo: {type: file}, seen: {type: boolean}, other: {type: file}}
tasks:
  shoot: {when: photo == null, repeat: true, type: manual, out: [photo], compensate: {application: x}}
  look: {when: photo != null and seen == null, repeat: true, type: manual, in: [photo], out: [seen]}
final: seen
`))
	if err := w.start("ann", w.genesis(map[workflow.PartitionName]workflow.PartnerID{"main": "ann"}, "ann",
		"ben")); err != nil {
		t.Fatal(err)
	}
	w.stabilize(false)
	photo := workflow.File{Name: "photo", Size: 5, Root: [32]byte{1}}
	m := w.nodes["ann"].m
	if err := m.Finish("shoot", Result{Outputs: map[workflow.DataName]workflow.Value{"photo": photo.String()}},
		w.moment(), w); err != nil {
		t.Fatal(err)
	}
	w.step(w.nodes["ann"])
	w.stabilize(false)
	any := func(workflow.RoleName) bool { return true }
	wants := func(p workflow.PartnerID, n int) {
		t.Helper()
		m := w.nodes[p].m
		files := m.FilesToRead()
		if len(files) != n || n == 1 && files[0] != (state.Reading{Item: "photo", File: photo}) ||
			m.Reads(p, "photo", any) != (n == 1) ||
			m.Reads(p, "other", any) {
			t.Errorf("%s is to have %v, want %d", p, files, n)
		}
		if by := m.GivenBy("photo", photo.String()); len(by) != 1 || by[0] != "ann" {
			t.Errorf("%s knows that %v gave it", p, by)
		}
	}
	wants("ann", 1)
	wants("ben", 0)
	w.gone["ann"], w.takers[workflow.FlowTask] = true, "ben"
	w.advance(15*time.Minute + 15*time.Second)
	w.step(w.nodes["ben"])
	wants("ben", 1)
}
