package choreo

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/amendments"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// looped is a definition with a loop over two partitions, and one of one task that has one round at first. Without data they go on.
const looped = `
workflow: looped
data:
  x: {type: integer}
tasks:
  a: {type: manual}
  b: {type: manual, after: a, timeout: 5h, on-failure: {contingency: d}, repeat: {times: 2, from: a}}
  c: {type: manual, out: [x], repeat: {times: 1}}
  d: {type: manual}
  e: {type: manual, after: [b, c]}
partitions:
  p1: [a, e]
  p2: [b]
  p3: [c]
`

// randomLoop says something of the loop that a task ends: how often, from where and while what it is done again.
func randomLoop(d dice, last string) (p amendments.Patch) {
	say := func(key string, values ...string) {
		p = append(p, amendments.Setting{
			Part: amendments.Part{Kind: amendments.OfLoop, Name: last}, Key: key, Value: json.RawMessage(pickOf(d, values)),
		})
	}
	what := d(8)
	if what == 0 || what == 5 {
		say("from", `"a"`, `"b"`, ``)
	}
	if what < 4 || what > 5 {
		say("times", `1`, `2`, `2`, `3`, `4`, `5`, ``)
	}
	if what == 2 || what == 4 {
		say("while", `"x == 1"`, `"x == null or x < 3"`, ``)
	}
	return p
}

// Loops are amended at random, at several partners who may be out of reach of one another, while their rounds go on: what
// comes of it does not depend on the order in which facts arrive, and all agree when they meet.
func TestRandomLoops(t *testing.T) {
	amended, rounds, kept, clashed := 0, 0, 0, 0
	checkUntil(t, func(rt *rapid.T) {
		d := diceOf(rt)
		w := newMesh(t, parse(t, looped))
		w.dice = d
		w.people["u"] = fact.Speaker{User: "u", At: "ann"}
		w.annex = &fact.Annex{Responsible: "u"}
		at := map[workflow.PartitionName]workflow.PartnerID{"p1": "ann", "p2": "bob", "p3": "cy"}
		if err := w.start("ann", w.genesis(at, "ann", "bob", "cy")); err != nil {
			t.Fatal(err)
		}
		for range 20 + d(50) {
			switch k := d(10); {
			case k == 0:
				n := w.nodes[pickOf(d, w.names())]
				if n.m == nil {
					continue
				}
				patch := randomLoop(d, pickOf(d, []string{"b", "b", "c", "e"}))
				if d.chance(20) {
					patch = amendments.Patch{{
						Part: amendments.Part{Kind: amendments.OfTask, Name: pickOf(d, []string{"a", "b", "c"})},
						Key:  pickOf(d, []string{"timeout", "enabled", "retries"}), Value: json.RawMessage(`2`),
					}}
					patch[0].Value = json.RawMessage(map[string]string{
						"timeout": `"9h"`, "enabled": `false`, "retries": `{"times":2}`,
					}[patch[0].Key])
				}
				_, _ = w.put(n, w.word(w.people["u"], worklist.Amend{Patch: patch.Text()})) // refused where it does not fit
			case k < 6: // the round that is under way
				t := pickOf(d, []string{"a", "b", "c", "e"})
				for _, n := range w.nodes {
					w.endRound(d, n, t)
				}
			default:
				w.randomStep(d)
			}
			if d.chance(15) { // to read editions again and again is dear
				w.incremental(rt)
			}
			w.ownedOnce(rt)
		}
		w.dice = nil
		for range 6 {
			w.meetAll()
			w.stabilize(false)
			w.advance(time.Second)
		}
		w.incremental(rt)
		w.anyOrder(rt, d)
		if err := w.sameEverywhere(); err != nil {
			rt.Fatal(err)
		}
		m := w.nodes["ann"].m
		if m == nil {
			return
		}
		a, _ := steered(m)
		amended, kept = amended+a, kept+len(m.Definition().Kept().Tasks)
		for _, sl := range m.state.BySlot() {
			if at, is := m.Definition().Round(sl.Task.Name); is && at.Of != sl.Task.Name && m.state.IsAdded(sl) {
				rounds += state.AsInt(sl.Begun())
			}
		}
		clashed += len(m.Snapshot().Incidents)
	}, &amended, &kept, &clashed, &rounds)
	t.Logf("%d patches changed loops, %d rounds that are new were begun, %d are kept that no loop has, %d incidents",
		amended, rounds, kept, clashed)
}

// endRound ends the last round of a task that has begun, at whoever has it.
func (w *mesh) endRound(d dice, n *node, task string) {
	if n.m == nil {
		return
	}
	t := task
	for i := 2; i < 7; i++ {
		if sl := n.m.state.BySlot()[workflow.TaskName(fmt.Sprintf("%s.%d", task, i))]; sl != nil && sl.Begun() {
			t = string(sl.Task.Name)
		}
	}
	res := Result{Outputs: map[workflow.DataName]workflow.Value{}}
	if task == "c" && d.chance(30) {
		res.Outputs["x"] = int64(1)
	}
	_ = n.m.Finish(workflow.TaskName(t), res, w.moment(), w) // refused unless it is ready here
	w.step(n)
}
