package lxpdl

import (
	"errors"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/internal/native"
)

// Rounds is the bound that a loop has in the native format: LXPDL has none, and native loops must have one.
const Rounds = 3

// flowgraph is the order of a process by the numbers of its tasks. The last one is before all that come first.
type flowgraph struct {
	before, after [][]int
	order         []int // reverse postorder, by number; -1: nothing leads there
	reached       []int // in that order
	dominator     []int // the nearest task through which all ways lead; -1: nothing leads there
}

// loops takes the transitions that go back out of those that go forward. One goes back if all ways to where it begins
// lead through where it ends.
func (p *parser) loops() {
	number := make(map[string]int, len(p.process.Tasks))
	for i, t := range p.process.Tasks {
		number[t.Name] = i
	}
	g := &flowgraph{before: make([][]int, len(number)+1), after: make([][]int, len(number)+1)}
	for _, t := range p.process.Transitions {
		g.join(number[t.Source], number[t.Destination])
	}
	for i := range p.process.Tasks {
		if len(g.before[i]) == 0 || slices.Contains(p.process.Start, p.process.Tasks[i].Name) {
			g.join(len(number), i)
		}
	}
	g.dominate()

	var forward []Transition
	at := map[Loop]position{}
	before := make([][]int, len(number))
	for i, t := range p.process.Transitions {
		from, to := number[t.Source], number[t.Destination]
		if !g.through(to, from) {
			forward = append(forward, t)
			before[to] = append(before[to], from)
			continue
		}
		l := Loop{First: t.Destination, Last: t.Source}
		if _, twice := at[l]; twice {
			continue
		}
		at[l] = p.transitions[i].source.at
		if other := slices.IndexFunc(p.process.Loops, func(o Loop) bool { return o.Last == l.Last }); other >= 0 {
			p.fail(at[l], "let it go back to one of them", "the process goes back from %q to %q and to %q",
				shorten(l.Last), shorten(p.process.Loops[other].First), shorten(l.First))
		}
		p.process.Loops = append(p.process.Loops, l)
	}
	p.process.Transitions = forward
	if cycle := native.Cycle(before); cycle != nil {
		names := make([]string, len(cycle))
		for i, n := range cycle {
			names[i] = shorten(p.process.Tasks[n].Name)
		}
		p.fail(p.tasks[cycle[0]],
			"a loop is entered by its first task alone: remove one of its transitions, or those that lead into its middle",
			"the transitions form a cycle that is no loop, as no task of it always comes first: %s",
			strings.Join(names, " → "))
	}
	if p.problems.Number() == 0 && len(p.process.Loops) > 0 {
		p.checkNative(at[p.process.Loops[0]])
	}
}

// checkNative reports loops that the native format does not have, such as those that cross.
func (p *parser) checkNative(at position) {
	_, err := workflow.Parse(p.name, p.process.ToYAML())
	var problems workflow.Errors
	if err == nil || !errors.As(err, &problems) {
		return
	}
	p.fail(at, problems[0].Hint, "what goes back does not fit the native format: %s", problems[0].Message)
}

func (g *flowgraph) join(from, to int) {
	g.before[to] = append(g.before[to], from)
	g.after[from] = append(g.after[from], to)
}

// dominate finds the nearest dominators, by going through all tasks until nothing changes.
func (g *flowgraph) dominate() {
	root := len(g.after) - 1
	g.visit(root)
	g.dominator = slices.Repeat([]int{-1}, len(g.after))
	g.dominator[root] = root
	for changed := true; changed; {
		changed = false
		for _, n := range g.reached[1:] {
			nearest := -1
			for _, b := range g.before[n] {
				switch {
				case g.dominator[b] < 0:
				case nearest < 0:
					nearest = b
				default:
					nearest = g.common(nearest, b)
				}
			}
			if nearest != g.dominator[n] {
				g.dominator[n], changed = nearest, true
			}
		}
	}
}

// visit puts all that can be reached in an order in which a task comes before those that it leads to, but for cycles.
func (g *flowgraph) visit(root int) {
	g.order = slices.Repeat([]int{-1}, len(g.after))
	seen, next := make([]bool, len(g.after)), make([]int, len(g.after))
	seen[root] = true
	for stack := []int{root}; len(stack) > 0; {
		n := stack[len(stack)-1]
		if next[n] == len(g.after[n]) {
			stack = stack[:len(stack)-1]
			g.reached = append(g.reached, n)
			continue
		}
		to := g.after[n][next[n]]
		if next[n]++; !seen[to] {
			seen[to] = true
			stack = append(stack, to)
		}
	}
	slices.Reverse(g.reached)
	for i, n := range g.reached {
		g.order[n] = i
	}
}

// common is the nearest task through which all ways to both lead.
func (g *flowgraph) common(a, b int) int {
	for a != b {
		for g.order[a] > g.order[b] {
			a = g.dominator[a]
		}
		for g.order[b] > g.order[a] {
			b = g.dominator[b]
		}
	}
	return a
}

// through reports whether all ways to a task lead through another, or are it.
func (g *flowgraph) through(another, task int) bool {
	if g.order[task] < 0 {
		return false
	}
	for ; g.order[task] > g.order[another]; task = g.dominator[task] {
	}
	return task == another && g.order[another] >= 0
}
