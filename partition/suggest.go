package partition

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Suggest proposes a cut into k partitions, or into as many as come naturally
// when k is 0 or less. It is a service to the author and never forced. A
// contingency without a rule of its own stays with any partner that is
// available.
//
// The heuristic, in three steps:
//
//  1. Tasks that ask the same of their performers (role, needs, application) form
//     a group. Tasks that ask nothing join, one after the other, the group that
//     they share most edges with; those that no edge leads to stay together.
//  2. While there are too many groups, the two that share most edges become one
//     (the smaller pair first).
//  3. While there are too few, the group that can be split without parting tasks
//     that ask the same, the largest of these, is split where fewest edges cross;
//     where several places are as good, into the most equal halves. A place is
//     a task with all that leads to it, a task with all that it leads to, or
//     the beginning of the rule order.
//
// Ties go to what comes first in rule order. There are never more partitions than tasks.
func Suggest(def *workflow.Definition, k int) []workflow.PartitionDecl {
	c := newCut(def)
	c.gather()
	for k > 0 && len(c.groups) > k {
		c.merge()
	}
	for len(c.groups) < k && c.split() {
	}
	return c.declare()
}

// cut is a suggestion under way. Groups are lists of tasks, ascending, and the
// groups are ordered by their first tasks.
type cut struct {
	graph  *graph
	asks   []string // by task: what it asks of its performer; empty: nothing
	touch  [][]int  // by task: the ends of its edges, in and out
	groups [][]int
}

func newCut(def *workflow.Definition) *cut {
	g := newGraph(def)
	c := &cut{graph: g, asks: make([]string, len(g.tasks)), touch: make([][]int, len(g.tasks))}
	for i, t := range g.tasks {
		c.asks[i] = asks(t)
		for _, a := range g.out[i] {
			c.touch[i] = append(c.touch[i], a.task)
			c.touch[a.task] = append(c.touch[a.task], i)
		}
	}
	return c
}

// asks spells what a task asks, so that equal spellings mean equal demands.
func asks(t *workflow.Task) string {
	var words []string
	if t.Role != "" {
		words = append(words, "role "+string(t.Role))
	}
	needs := slices.Clone(t.Needs)
	slices.Sort(needs)
	for _, n := range needs {
		words = append(words, "capability "+string(n))
	}
	if !builtIn(t.Application) {
		words = append(words, "application "+string(t.Application))
	}
	return strings.Join(words, "\n")
}

// gather is step 1.
func (c *cut) gather() {
	byAsk := make(map[string]int)
	var free []int
	for i := range c.graph.tasks {
		switch at, known := byAsk[c.asks[i]]; {
		case !c.graph.isSlot(i):
		case c.asks[i] == "":
			free = append(free, i)
		case known:
			c.groups[at] = append(c.groups[at], i)
		default:
			byAsk[c.asks[i]] = len(c.groups)
			c.groups = append(c.groups, []int{i})
		}
	}
	c.attach(free)
	c.tidy()
}

// attach puts tasks that ask nothing into the groups that they share most edges
// with, the closest first; those that no edge leads to form a group.
func (c *cut) attach(free []int) {
	of := c.membership()
	for len(free) > 0 {
		at, group, edges := 0, 0, 0
		for i, t := range free {
			if g, n := closest(of, c.touch[t]); n > edges {
				at, group, edges = i, g, n
			}
		}
		if edges == 0 {
			c.groups = append(c.groups, free)
			return
		}
		c.groups[group] = append(c.groups[group], free[at])
		of[free[at]] = group
		free = slices.Delete(free, at, at+1)
	}
}

// membership tells the group of each task, or none.
func (c *cut) membership() []int {
	of := make([]int, len(c.graph.tasks))
	for i := range of {
		of[i] = none
	}
	for g, tasks := range c.groups {
		for _, t := range tasks {
			of[t] = g
		}
	}
	return of
}

// closest finds the group that most of the tasks are in, the first of several,
// and how many are.
func closest(of, tasks []int) (group, n int) {
	groups := make([]int, 0, len(tasks))
	for _, t := range tasks {
		if of[t] != none {
			groups = append(groups, of[t])
		}
	}
	slices.Sort(groups)
	for from := 0; from < len(groups); {
		to := from
		for to < len(groups) && groups[to] == groups[from] {
			to++
		}
		if to-from > n {
			group, n = groups[from], to-from
		}
		from = to
	}
	return group, n
}

// tidy restores the order of groups and of their tasks.
func (c *cut) tidy() {
	for _, g := range c.groups {
		slices.Sort(g)
	}
	slices.SortFunc(c.groups, func(a, b []int) int { return cmp.Compare(a[0], b[0]) })
}

// merge is one round of step 2.
func (c *cut) merge() {
	shared := c.sharedEdges()
	var a, b int
	var best []int
	for i := range c.groups {
		for j := i + 1; j < len(c.groups); j++ {
			cost := []int{-shared[[2]int{i, j}], len(c.groups[i]) + len(c.groups[j])}
			if best == nil || slices.Compare(cost, best) < 0 {
				a, b, best = i, j, cost
			}
		}
	}
	c.groups[a] = append(c.groups[a], c.groups[b]...)
	c.groups = slices.Delete(c.groups, b, b+1)
	c.tidy()
}

// sharedEdges counts the edges between any two groups, the first one first.
func (c *cut) sharedEdges() map[[2]int]int {
	of, shared := c.membership(), make(map[[2]int]int)
	for i, arcs := range c.graph.out {
		for _, a := range arcs {
			if x, y := of[i], of[a.task]; x != none && y != none {
				shared[[2]int{min(x, y), max(x, y)}]++
			}
		}
	}
	return shared
}

// split is one round of step 3; false if every group is a single task.
func (c *cut) split() bool {
	group := none
	var first, rest, best []int
	for i, tasks := range c.groups {
		a, b, cost := c.halves(tasks)
		if cost == nil {
			continue
		}
		// what it parts, then the size of the group, then the rest
		if cost = slices.Insert(cost, 1, -len(tasks)); best == nil || slices.Compare(cost, best) < 0 {
			group, first, rest, best = i, a, b, cost
		}
	}
	if group == none {
		return false
	}
	c.groups[group] = first
	c.groups = append(c.groups, rest)
	c.tidy()
	return true
}

// halves finds the best place to split a group. The cost is how many demands it
// parts, how many edges cross, and how unequal the halves are; nil if there is
// no place.
func (c *cut) halves(group []int) (first, rest, best []int) {
	side := make(map[int]bool, len(group)) // true: first
	for _, a := range c.places(group) {
		if len(a) == len(group) {
			continue
		}
		clear(side)
		for _, t := range group {
			side[t] = false
		}
		for _, t := range a {
			side[t] = true
		}
		cost := append(c.parted(group, side), max(len(a), len(group)-len(a))-min(len(a), len(group)-len(a)))
		if best == nil || slices.Compare(cost, best) < 0 {
			first, best = a, cost
		}
	}
	if best == nil {
		return nil, nil, nil
	}
	rest = slices.DeleteFunc(slices.Clone(group),
		func(t int) bool { _, in := slices.BinarySearch(first, t); return in })
	return first, rest, best
}

// parted counts the demands that tasks on both sides make, and the edges that cross.
func (c *cut) parted(group []int, side map[int]bool) []int {
	edges, sides := 0, make(map[string][2]bool)
	for _, t := range group {
		for _, a := range c.graph.out[t] {
			if other, inside := side[a.task]; inside && other != side[t] {
				edges++
			}
		}
		if ask := c.asks[t]; ask != "" {
			s := sides[ask]
			s[0], s[1] = s[0] || side[t], s[1] || !side[t]
			sides[ask] = s
		}
	}
	demands := 0
	for _, s := range sides {
		if s[0] && s[1] {
			demands++
		}
	}
	return []int{demands, edges}
}

// places lists the sets of tasks that may be parted from the rest of a group.
func (c *cut) places(group []int) [][]int {
	inside := make(map[int]bool, len(group))
	for _, t := range group {
		inside[t] = true
	}
	var sets [][]int
	for n, t := range group {
		sets = append(sets, reach(t, inside, c.graph.preds), reach(t, inside, c.graph.succs), group[:n+1:n+1])
	}
	return sets
}

// reach lists the tasks inside a group that paths inside it lead to from t.
func reach(t int, inside map[int]bool, next [][]int) []int {
	found, seen := []int{t}, map[int]bool{t: true}
	for i := 0; i < len(found); i++ {
		for _, n := range next[found[i]] {
			if inside[n] && !seen[n] {
				seen[n] = true
				found = append(found, n)
			}
		}
	}
	slices.Sort(found)
	return found
}

// declare writes the groups down. A partition is named after the role that all
// its people have, else by number; a single one is called main.
func (c *cut) declare() []workflow.PartitionDecl {
	used := make(map[workflow.PartitionName]bool)
	decls := make([]workflow.PartitionDecl, len(c.groups))
	for i, group := range c.groups {
		name := c.role(group)
		if len(c.groups) == 1 {
			name = "main"
		}
		for n := i + 1; name == "" || used[name]; n++ {
			name = workflow.PartitionName(fmt.Sprintf("p%d", n))
		}
		used[name] = true
		decls[i] = workflow.PartitionDecl{Name: name, Tasks: c.graph.names(group)}
	}
	return decls
}

// role is the only role in a group, or empty.
func (c *cut) role(group []int) workflow.PartitionName {
	var role workflow.RoleName
	for _, i := range group {
		switch r := c.graph.tasks[i].Role; {
		case r == "" || r == role:
		case role == "":
			role = r
		default:
			return ""
		}
	}
	return workflow.PartitionName(role)
}
