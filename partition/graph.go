package partition

import (
	"fmt"
	"maps"
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

// graph is the tasks of a definition by number, in rule order: each after those
// that its rule mentions and those it stands in for, else by name. The order in
// which they are written does not count, because definitions with one hash may
// be written in many. Names that no task bears are ignored: workflow.Parse
// reports them, as it does cycles.
//
// A slot is what a successor waits for: a task that may become ready by its own
// rule, together with the contingencies that may stand in for it. A slot has
// the number of its task.
//
// Nothing here grows with the product of two numbers that a definition chooses
// freely: what is many on both sides (those that wait for a shared contingency, and
// those it stands in for; those that write data, and those that read it) is linked
// through the thing that they share.
type graph struct {
	tasks []*workflow.Task
	index map[workflow.TaskName]int

	preds [][]int // tasks that the rule mentions, ascending, without the task itself
	succs [][]int // the reverse of preds
	next  []int   // the contingency, or none
	chain [][]int // the task, its contingency, that one's contingency …
	slots [][]int // the slots in which the task may run, ascending
	// waits has, for a slot, what its rule asks for the result of, ascending: slots,
	// and contingencies that are no slots. Those, in turn, wait for the slots that
	// they stand in.
	waits  [][]int
	cyclic bool    // two slots wait for each other through a contingency of both
	out    [][]arc // the edges that leave the task, by their ends, ascending

	steps   int    // what working all of this out took
	refused string // why it was not worked out; empty: it was
}

// none stands for no task.
const none = -1

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
		next: make([]int, n), chain: make([][]int, n), slots: make([][]int, n),
		waits: make([][]int, n), out: make([][]arc, n),
	}
	for i, t := range g.tasks {
		g.index[t.Name] = i
	}
	g.linkContingencies()
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
	g.linkSlots()
	if n := g.countArcs(); n > MaxEdges {
		g.refused = fmt.Sprintf("its tasks and their contingencies wait for one another in %d ways: at most %d are allowed", n, MaxEdges)
		return g
	}
	for i := range g.tasks {
		g.out[i] = g.arcs(i)
	}
	return g
}

// MaxEdges bounds the edges of a definition, with those that contingencies add.
const MaxEdges = 1 << 19

// countArcs is how many edges arcs will look at.
func (g *graph) countArcs() int {
	n := 0
	for s := range g.tasks {
		if g.isSlot(s) {
			n += len(g.chain[s]) * len(g.succs[s])
		}
	}
	return n
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

// linkContingencies fills next. A loop of contingencies, which workflow.Parse
// refuses, is cut where it would close.
func (g *graph) linkContingencies() {
	walk := make([]int, len(g.tasks)) // the walk that came by, from 1
	for start := range g.tasks {
		g.next[start] = none
	}
	for start := range g.tasks {
		for i := start; walk[i] == 0; i = g.next[i] {
			walk[i] = start + 1
			to, ok := g.index[g.tasks[i].Contingency]
			if !ok || g.tasks[i].OnFailure != workflow.FailContingency || walk[to] == start+1 {
				break
			}
			g.next[i] = to
		}
	}
}

// contingencies lists task i and those that stand in for it, one after the other.
func (g *graph) contingencies(i int) []int {
	var chain []int
	for ; i != none; i = g.next[i] {
		chain = append(chain, i)
	}
	return chain
}

func (g *graph) isSlot(i int) bool { return !g.tasks[i].ContingencyOnly }

// arcs lists the edges that leave task i, each once, with the first of Waits,
// Covers, Instead that explains it.
func (g *graph) arcs(i int) []arc {
	kinds := make(map[int]EdgeKind)
	for _, s := range g.slots[i] {
		for _, to := range g.succs[s] {
			g.steps++
			kinds[to] = Instead
		}
	}
	if g.next[i] != none {
		kinds[g.next[i]] = Covers
	}
	for _, to := range g.succs[i] {
		kinds[to] = Waits
	}
	delete(kinds, i)
	arcs := make([]arc, 0, len(kinds))
	for _, to := range slices.Sorted(maps.Keys(kinds)) {
		arcs = append(arcs, arc{to, kinds[to]})
	}
	return arcs
}

// linkSlots fills waits. A slot does not wait for itself: where its rule mentions a
// contingency that may stand in it, the other slots of that contingency are meant.
// If two slots do so they wait for each other; one alone is linked slot by slot.
func (g *graph) linkSlots() {
	alone := make([]bool, len(g.tasks)) // contingencies that a slot of theirs mentions
	for i := range g.tasks {
		if !g.isSlot(i) {
			g.waits[i] = g.slots[i]
			continue
		}
		for _, p := range g.preds[i] {
			_, own := slices.BinarySearch(g.slots[p], i)
			switch {
			case g.isSlot(p) || !own:
				g.waits[i] = append(g.waits[i], p)
			case alone[p]:
				g.cyclic = true
			default:
				alone[p] = true
				for _, q := range g.slots[p] {
					if q != i {
						g.waits[i] = append(g.waits[i], q)
					}
				}
			}
		}
		slices.Sort(g.waits[i])
		g.waits[i] = slices.Compact(g.waits[i])
		g.steps += len(g.waits[i])
	}
}

// slotOrder lists the slots, and the contingencies between them, so that each comes
// after those that it waits for; ok is false if there is a cycle.
func (g *graph) slotOrder() (order []int, ok bool) {
	state := make([]progress, len(g.tasks))
	ok = !g.cyclic
	var visit func(int)
	visit = func(s int) {
		state[s] = started
		for _, q := range g.waits[s] {
			g.steps++
			ok = ok && state[q] != started
			if state[q] == untouched {
				visit(q)
			}
		}
		state[s] = done
		order = append(order, s)
	}
	for s := range g.tasks {
		if g.isSlot(s) && state[s] == untouched {
			visit(s)
		}
	}
	return order, ok
}

// progress of a walk through the graph; coming back to what is started and not
// done means a cycle.
type progress uint8

const (
	untouched progress = iota
	started
	done
)

func (g *graph) names(tasks []int) []workflow.TaskName {
	names := make([]workflow.TaskName, len(tasks))
	for i, t := range tasks {
		names[i] = g.tasks[t].Name
	}
	return names
}
