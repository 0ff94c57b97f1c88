package sim

import (
	"slices"
	"strconv"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file has users amend who stands in for a task, in instances that follow their tasks.

// standsIn reports whether they do, if there are users: in the later seeds of each kind.
func (p *Plan) standsIn() bool {
	from := uint64(998_000)
	for _, kind := range []struct{ first, from uint64 }{
		{Hostile, 1_200_000}, {Strained, 2_200_000}, {Claimed, 20_600_000}, {Equipped, 30_600_000}, {Linked, 40_600_000},
	} {
		if p.Seed >= kind.first {
			from = kind.from
		}
	}
	return p.Seed >= from && !p.drives()
}

// spareTime is how long a task may take that is added to stand in for others.
const spareTime = 9 * time.Minute

// standIn has another stand in for a task of a definition, one that is new, or nobody. What stood in and does so no
// more is taken out. A task of a loop keeps who stands in for it.
func (w *world) standIn(def, tasks map[string]any, t *workflow.Task) {
	body, _ := tasks[string(t.Name)].(map[string]any)
	if _, looped := w.def.Round(t.Name); looped {
		return
	}
	was := body["contingency"]
	delete(body, "contingency")
	delete(body, "on-failure")
	var others []workflow.TaskName
	for _, x := range w.def.Tasks {
		if _, looped := w.def.Round(x.Name); x.ContingencyOnly && x.Name != t.Name && !looped && !x.Whole {
			others = append(others, x.Name)
		}
	}
	switch k := w.people.IntN(6); {
	case k == 0:
		body["on-failure"] = []string{"block", "release"}[w.people.IntN(2)]
	case k == 1 && len(others) > 0:
		body["contingency"] = string(others[w.people.IntN(len(others))])
	default:
		name := "spare" + strconv.Itoa(len(w.spares))
		spare := map[string]any{"timeout": workflow.FormatDuration(spareTime)}
		if k == 2 && was != nil { // the one that was planned stands in for the new one
			spare["contingency"] = was
		} else if k == 3 {
			spare["compensate"] = map[string]any{"application": "noop"}
		}
		tasks[name], body["contingency"] = spare, name
		w.spares = append(w.spares, &workflow.Task{
			Name: workflow.TaskName(name), Type: workflow.Automatic, Timeout: spareTime, ContingencyOnly: true,
		})
	}
	w.longer += spareTime + w.judging() + w.plan.ConnectionTime
	if name, is := body["contingency"].(string); is {
		if w.stands == nil {
			w.stands = map[workflow.TaskName][]workflow.TaskName{}
		}
		w.stands[t.Name] = append(w.stands[t.Name], workflow.TaskName(name))
		if planned, is := was.(string); is {
			w.stands[workflow.TaskName(name)] = append(w.stands[workflow.TaskName(name)], workflow.TaskName(planned))
		}
	}
	w.takeOut(def, tasks)
}

// takeOut takes tasks out of a definition that only stood in for others or undid them, and are named by none.
func (w *world) takeOut(def, tasks map[string]any) {
	for again := true; again; {
		again = false
		named := map[string]bool{}
		for _, x := range tasks {
			body, _ := x.(map[string]any)
			if name, is := body["contingency"].(string); is {
				named[name] = true
			}
			undo, _ := body["compensate"].(map[string]any)
			if name, is := undo["task"].(string); is {
				named[name] = true
			}
		}
		for _, x := range w.def.Tasks {
			if name := string(x.Name); x.ContingencyOnly && !named[name] && tasks[name] != nil {
				delete(tasks, name)
				again = true
			}
		}
	}
	parts, _ := def["partitions"].(map[string]any)
	for _, p := range parts {
		part, _ := p.(map[string]any)
		list, written := part["tasks"].([]any)
		if !written {
			continue
		}
		part["tasks"] = slices.DeleteFunc(list, func(t any) bool {
			name, _ := t.(string)
			return tasks[name] == nil
		})
	}
}

// chain are a task and those that may stand in for it: by the definition, and by what users amended.
func (w *world) chain(t workflow.TaskName) (out []*workflow.Task) {
	seen := map[workflow.TaskName]bool{}
	for todo := []workflow.TaskName{t}; len(todo) > 0; todo = todo[1:] {
		x := w.task(todo[0])
		if x == nil || seen[x.Name] {
			continue
		}
		seen[x.Name] = true
		out = append(out, x)
		todo = append(todo, x.Contingency)
		todo = append(todo, w.stands[x.Name]...)
	}
	return out
}
