package choreo

import (
	"encoding/json"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/amendments"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// randomStandIns says who stands in for a task, adds somebody who does, or has others ask for that; often it fits
// nothing. crew: somebody has that role.
func randomStandIns(d dice, def *workflow.Definition, crew bool) (p amendments.Patch) {
	set := func(name, key, value string) {
		p = append(p, amendments.Setting{
			Part: amendments.Part{Kind: amendments.OfTask, Name: name}, Key: key, Value: json.RawMessage(value),
		})
	}
	name, added := string(pickOf(d, def.Tasks).Name), pickOf(d, []string{"m", "n"})
	stands := func(name string, who ...string) {
		set(name, "contingency", strconv.Quote(pickOf(d, who)))
		set(name, "on-failure", "")
	}
	switch d(8) {
	case 0:
		set(name, "contingency", "")
		set(name, "on-failure", pickOf(d, []string{"", `"release"`}))
	case 1: // as it was written before there was more
		set(name, "on-failure", pickOf(d, []string{"", `"release"`}))
	case 2:
		stands(name, "c0", "c1", "t0", "t1", "m", "n")
	case 3:
		set(name, "after", pickOf(d, []string{`["t0"]`, ``}))
		set(name, "when", pickOf(d, []string{`"failed(\"c0\")"`, `"running(\"m\") or succeeded(\"t0\")"`, `"x > 1"`, ``}))
		if d.chance(50) {
			p = slices.DeleteFunc(p, func(x amendments.Setting) bool { return x.Key == "after" })
			p = append(amendments.Patch{{Part: amendments.Part{Kind: amendments.OfTask, Name: name}, Key: "after"}}, p...)
		}
	case 4: // elsewhere it is done by itself
		set(added, "add-to", `"p0"`)
		set(added, "after", `["t0"]`)
		if d.chance(40) {
			stands(added, "c0", "c1")
			p = p[:len(p)-1]
		}
	default:
		set(added, "add-to", `""`)
		if d.chance(30) {
			set(added, "compensate", `{"application":"noop"}`)
		}
		if d.chance(30) {
			stands(added, "c0", "c1", "t0", "m", "n")
			p = p[:len(p)-1]
		}
		if d.chance(50) {
			set(added, "out", `["x"]`)
		}
		role := crew && d.chance(60)
		if role {
			set(added, "role", `"crew"`)
		}
		set(added, "stands-in", "true")
		if role {
			set(added, "type", `"manual"`)
		}
		stands(name, added)
	}
	slices.SortStableFunc(p, func(a, b amendments.Setting) int {
		if a.Name != b.Name {
			return state.AsInt(a.Name > b.Name)*2 - 1
		}
		return state.AsInt(a.Key > b.Key)*2 - 1
	})
	return p
}

// forgedAnswer has a node say that an attempt has failed, and what follows: by the definition that it knows, by
// another, or by none.
func (w *mesh) forgedAnswer(d dice, n *node) {
	sl := pickOf(d, n.m.state.Slots())
	act := fact.Action{Attempt: sl.Current.ID, Kind: workflow.FailContingency, Task: pickOf(d, []workflow.TaskName{
		"c0", "c1", "m", "n", "t0", sl.Current.Task.Contingency,
	})}
	if d.chance(60) {
		act.Partner = pickOf(d, []workflow.PartnerID{"ann", "bob", "cy", "dan"})
	}
	if act.Task == "" || d.chance(10) {
		act = fact.Action{Attempt: sl.Current.ID, Kind: pickOf(d, []workflow.FailureAction{
			workflow.FailBlock, workflow.FailRelease,
		})}
	}
	_, _ = n.m.deciding(w.moment(), w).append(fact.Body{Verdict: &fact.Verdict{
		Cause: fact.CauseExpired, Reason: "dice", Actions: []fact.Action{act},
	}})
	w.step(n)
}

// Which task stands in for which is amended at random, at several partners who may be out of reach of one another,
// while tasks fail: what comes of it does not depend on the order in which facts arrive, and once all have met the
// instance ends, at all alike.
func TestRandomStandIns(t *testing.T) {
	amended, stood, kept, left := 0, 0, 0, 0
	checkUntil(t, func(rt *rapid.T) {
		d := diceOf(rt)
		w := newMesh(t, randomDefinition(d))
		defer func() {
			if t.Failed() {
				rt.Fatalf("%s", w.def.Canonical())
			}
		}()
		w.dice = d
		w.node("dan")
		w.people["u"] = fact.Speaker{User: "u", At: "ann", Roles: []workflow.RoleName{"crew"}}
		w.annex = &fact.Annex{Responsible: "u"}
		ids := []workflow.PartnerID{"ann", "bob", "cy"}
		at := map[workflow.PartitionName]workflow.PartnerID{}
		for _, p := range w.plan.Partitions() {
			at[p.Name] = pickOf(d, ids)
		}
		if err := w.start("ann", w.genesis(at, ids...)); err != nil {
			t.Fatal(err)
		}
		crew := slices.ContainsFunc(w.def.Tasks, func(t *workflow.Task) bool { return t.Role != "" }) // else nobody has it
		lies := d.chance(30)
		w.lies = lies
		for range 10 + d(60) {
			n := w.nodes[pickOf(d, w.names())]
			switch k := d(10); {
			case k < 2 && n.m != nil:
				patch := randomStandIns(d, n.m.Definition(), crew)
				_, _ = w.put(n, w.word(w.people["u"], worklist.Amend{Patch: patch.Text()})) // refused where it does not fit
			case k == 2 && n.m != nil && lies:
				w.forgedAnswer(d, n)
			case k < 5 && n.m != nil:
				_ = n.m.Finish(pickOf(d, []workflow.TaskName{"m", "n"}), randomResult(d), w.moment(), w)
				w.step(n)
			default:
				w.randomStep(d)
			}
			if d.chance(30) { // to read editions again and again is dear
				w.incremental(rt)
			}
		}
		w.finishAll()
		w.incremental(rt)
		if !lies {
			w.mustEnd(rt)
		}
		w.anyOrder(rt, d)
		m := w.nodes["ann"].m
		a, _ := steered(m)
		amended, kept = amended+a, kept+len(m.Definition().Kept().StandIns)
		for _, sl := range m.state.Slots() {
			for _, a := range sl.Attempts {
				if x := w.def.Task(sl.Task.Name); x == nil || a.Task.Name != x.Name && a.Task.Name != x.Contingency {
					stood += state.AsInt(a.Start != nil)
				}
			}
		}
		for _, x := range m.Snapshot().Incidents {
			left += state.AsInt(len(x.What) > 12 && x.What[:12] == "an amendment")
		}
	}, &amended, &stood, &kept, &left)
	t.Logf("%d patches said who stands in, %d stood in by them, %d tasks are kept that stand in for nobody, "+
		"%d did not go together", amended, stood, kept, left)
}
