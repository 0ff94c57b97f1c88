package main

// prompt is the first hostile world of those of which in every second the nodes do noop and set in the step in which
// they begin (sim.Plan).
const prompt = 1_160_000

// ofInstant break the rules of what begins and succeeds in one fact.
var ofInstant = []mutant{
	{name: "done-though-over", what: "what had ended begins and succeeds in one fact", patches: []patch{{
		"choreo/state/attempts.go", `		return cmp.Or(v.MayStart(a), v.mayEnd(a))`, `		return cmp.Or(v.MayStart(a))`}}},
	{name: "done-by-people", what: "what a person is to do begins and succeeds in one fact", patches: []patch{{
		"choreo/state/attempts.go", `		case a.Beside() || !a.Task.ByNode():`, `		case a.Beside():`}}},
	{name: "done-in-the-world", what: "what touches the world begins and succeeds in one fact", patches: []patch{{
		"choreo/instant.go", `t.Type == workflow.Automatic && len(t.Queries) == 0 &&
		(t.Application == workflow.AppNoop || t.Application == workflow.AppSet)`, `t.Type == workflow.Automatic`}}},
}
