package partition

import (
	"cmp"
	"slices"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// EdgeKind says why one task waits for another.
type EdgeKind string

// The kinds of edges.
const (
	// Waits: the rule of To mentions From.
	Waits EdgeKind = "waits"
	// Covers: To is the contingency of From; it starts when From has failed.
	Covers EdgeKind = "covers"
	// Instead: the rule of To mentions a task in whose place From may run.
	Instead EdgeKind = "instead"
)

// Edge leads from a task to one that waits for it, in one way or another.
type Edge struct {
	From, To workflow.TaskName
	Kind     EdgeKind
}

// graph is the tasks of a definition by number, in rule order: each after those
// that its rule mentions and those it stands in for, else by name. The order in
// which they are written does not count, because definitions with one hash may
// be written in many. Names that no task bears are ignored: workflow.Parse
// reports them, as it does cycles.
//
// A slot is what a successor waits for: a task that may become ready by its own
// rule, together with the contingencies that may stand in for it. A slot has
// the number of its task.
type graph struct {
	tasks []*workflow.Task
	index map[workflow.TaskName]int

	preds [][]int // tasks that the rule mentions, ascending, without the task itself
	succs [][]int // the reverse of preds
	chain [][]int // the task, its contingency, that one's contingency …
	slots [][]int // the slots in which the task may run, ascending
	out   [][]arc // the edges that leave the task, by their ends, ascending
}

// arc is an edge as seen from its beginning.
type arc struct {
	task int
	kind EdgeKind
}

func newGraph(def *workflow.Definition) *graph {
	n := len(def.Tasks)
	g := &graph{
		tasks: ruleOrder(def.Tasks),
		index: make(map[workflow.TaskName]int, n),
		preds: make([][]int, n), succs: make([][]int, n),
		chain: make([][]int, n), slots: make([][]int, n), out: make([][]arc, n),
	}
	for i, t := range g.tasks {
		g.index[t.Name] = i
	}
	for i := range g.tasks {
		g.linkRule(i)
		g.chain[i] = g.contingencies(i)
	}
	for s := range g.tasks {
		if g.isSlot(s) {
			for _, i := range g.chain[s] {
				g.slots[i] = append(g.slots[i], s)
			}
		}
	}
	for i := range g.tasks {
		g.out[i] = g.arcs(i)
	}
	return g
}

// ruleOrder sorts tasks as graph says. On a cycle the name alone decides.
func ruleOrder(tasks []*workflow.Task) []*workflow.Task {
	before := comesAfter(tasks)
	left := slices.SortedFunc(slices.Values(tasks), func(a, b *workflow.Task) int { return cmp.Compare(a.Name, b.Name) })
	placed := make(map[workflow.TaskName]bool, len(tasks))
	waits := func(name workflow.TaskName) bool { return !placed[name] }
	order := make([]*workflow.Task, 0, len(tasks))
	for len(left) > 0 {
		next := slices.IndexFunc(left, func(t *workflow.Task) bool { return !slices.ContainsFunc(before[t.Name], waits) })
		next = max(next, 0)
		placed[left[next].Name] = true
		order = append(order, left[next])
		left = slices.Delete(left, next, next+1)
	}
	return order
}

// comesAfter lists for each task those that it is ordered after: the tasks that
// its rule mentions and, if it is only a contingency, those it stands in for.
func comesAfter(tasks []*workflow.Task) map[workflow.TaskName][]workflow.TaskName {
	byName := make(map[workflow.TaskName]*workflow.Task, len(tasks))
	for _, t := range tasks {
		byName[t.Name] = t
	}
	before := make(map[workflow.TaskName][]workflow.TaskName, len(tasks))
	for _, t := range tasks {
		t.Rule.Terms(func(r *workflow.Rule) {
			if r.Op == workflow.OpTask && byName[r.Task] != nil && r.Task != t.Name {
				before[t.Name] = append(before[t.Name], r.Task)
			}
		})
		if c := byName[t.Contingency]; c != nil && c.ContingencyOnly && c != t {
			before[c.Name] = append(before[c.Name], t.Name)
		}
	}
	return before
}

// linkRule records the tasks that the rule of task i mentions. A task that
// mentions itself does not wait for itself.
func (g *graph) linkRule(i int) {
	g.tasks[i].Rule.Terms(func(r *workflow.Rule) {
		p, known := g.index[r.Task]
		if r.Op == workflow.OpTask && known && p != i {
			g.preds[i] = append(g.preds[i], p)
		}
	})
	slices.Sort(g.preds[i])
	g.preds[i] = slices.Compact(g.preds[i])
	for _, p := range g.preds[i] {
		g.succs[p] = append(g.succs[p], i)
	}
}

// contingencies lists task i and those that stand in for it, one after the
// other. It stops where the chain would close, which workflow.Parse refuses.
func (g *graph) contingencies(i int) []int {
	var chain []int
	for !slices.Contains(chain, i) {
		chain = append(chain, i)
		next, ok := g.contingency(i)
		if !ok {
			break
		}
		i = next
	}
	return chain
}

func (g *graph) contingency(i int) (int, bool) {
	if g.tasks[i].OnFailure != workflow.FailContingency {
		return 0, false
	}
	next, ok := g.index[g.tasks[i].Contingency]
	return next, ok
}

func (g *graph) isSlot(i int) bool { return !g.tasks[i].ContingencyOnly }

// arcs lists the edges that leave task i, each once, with the first of Waits,
// Covers, Instead that explains it.
func (g *graph) arcs(i int) []arc {
	kinds := make([]EdgeKind, len(g.tasks))
	for _, s := range g.slots[i] {
		for _, to := range g.succs[s] {
			kinds[to] = Instead
		}
	}
	if next, ok := g.contingency(i); ok {
		kinds[next] = Covers
	}
	for _, to := range g.succs[i] {
		kinds[to] = Waits
	}
	var arcs []arc
	for to, kind := range kinds {
		if kind != "" && to != i {
			arcs = append(arcs, arc{to, kind})
		}
	}
	return arcs
}

func (g *graph) edges() []Edge {
	var edges []Edge
	for i, arcs := range g.out {
		for _, a := range arcs {
			edges = append(edges, Edge{g.tasks[i].Name, g.tasks[a.task].Name, a.kind})
		}
	}
	return edges
}

// asked lists the slots whose result a rule asks for when it mentions task i:
// its own, or those it stands in when it has none.
func (g *graph) asked(i int) []int {
	if g.isSlot(i) {
		return []int{i}
	}
	return g.slots[i]
}

// slotPreds lists the slots, other than s, whose result the rule of task s asks for.
func (g *graph) slotPreds(s int) []int {
	var slots []int
	for _, p := range g.preds[s] {
		for _, q := range g.asked(p) {
			if q != s {
				slots = append(slots, q)
			}
		}
	}
	return slots
}

func (g *graph) names(tasks []int) []workflow.TaskName {
	names := make([]workflow.TaskName, len(tasks))
	for i, t := range tasks {
		names[i] = g.tasks[t].Name
	}
	return names
}
