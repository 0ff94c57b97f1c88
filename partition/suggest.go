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
// contingency without a rule of its own stays with whoever is available.
//
// The heuristic, in three steps:
//
//  1. Tasks that ask the same of whoever performs them (role, needs, application)
//     form a group. Tasks that ask nothing join, one after the other, the group
//     that they share most edges with; those that no edge leads to stay together.
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
	groups [][]int
}

func newCut(def *workflow.Definition) *cut {
	c := &cut{graph: newGraph(def), asks: make([]string, len(def.Tasks))}
	for i, t := range c.graph.tasks {
		c.asks[i] = asks(t)
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
	for len(free) > 0 {
		at, group, edges := c.closest(free)
		if edges == 0 {
			c.groups = append(c.groups, free)
			break
		}
		c.groups[group] = append(c.groups[group], free[at])
		free = slices.Delete(free, at, at+1)
	}
	c.tidy()
}

// closest finds the free task and the group that share most edges.
func (c *cut) closest(free []int) (at, group, edges int) {
	for i, t := range free {
		for g, tasks := range c.groups {
			if n := c.between([]int{t}, tasks); n > edges {
				at, group, edges = i, g, n
			}
		}
	}
	return at, group, edges
}

// between counts the edges that lead from one set of tasks to another, either way.
func (c *cut) between(a, b []int) int {
	n := 0
	for _, i := range a {
		for _, arc := range c.graph.out[i] {
			if slices.Contains(b, arc.task) {
				n++
			}
		}
	}
	for _, i := range b {
		for _, arc := range c.graph.out[i] {
			if slices.Contains(a, arc.task) {
				n++
			}
		}
	}
	return n
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
	var a, b int
	best := []int(nil)
	for i := range c.groups {
		for j := i + 1; j < len(c.groups); j++ {
			cost := []int{-c.between(c.groups[i], c.groups[j]), len(c.groups[i]) + len(c.groups[j])}
			if best == nil || slices.Compare(cost, best) < 0 {
				a, b, best = i, j, cost
			}
		}
	}
	c.groups[a] = append(c.groups[a], c.groups[b]...)
	c.groups = slices.Delete(c.groups, b, b+1)
	c.tidy()
}

// split is one round of step 3; false if every group is a single task.
func (c *cut) split() bool {
	group := -1
	var first, rest []int
	var best []int
	for i, tasks := range c.groups {
		a, b, cost := c.halves(tasks)
		if cost == nil {
			continue
		}
		// parting what belongs together, then the size of the group, then the rest
		if cost = slices.Insert(cost, 1, -len(tasks)); best == nil || slices.Compare(cost, best) < 0 {
			group, first, rest, best = i, a, b, cost
		}
	}
	if group < 0 {
		return false
	}
	c.groups[group] = first
	c.groups = append(c.groups, rest)
	c.tidy()
	return true
}

// halves finds the best place to split a group. The cost is what it parts, the
// edges that cross, and how unequal the halves are; nil if there is no place.
func (c *cut) halves(group []int) (first, rest, best []int) {
	for _, a := range c.places(group) {
		b := slices.DeleteFunc(slices.Clone(group), func(t int) bool { return slices.Contains(a, t) })
		if len(a) == 0 || len(b) == 0 {
			continue
		}
		cost := []int{c.parted(a, b), c.between(a, b), max(len(a), len(b)) - min(len(a), len(b))}
		if best == nil || slices.Compare(cost, best) < 0 {
			first, rest, best = a, b, cost
		}
	}
	return first, rest, best
}

// parted counts the demands that tasks on both sides make.
func (c *cut) parted(a, b []int) int {
	both := make(map[string]bool)
	for _, i := range a {
		for _, j := range b {
			if c.asks[i] != "" && c.asks[i] == c.asks[j] {
				both[c.asks[i]] = true
			}
		}
	}
	return len(both)
}

// places lists the sets of tasks that may be parted from the rest of a group.
func (c *cut) places(group []int) [][]int {
	var sets [][]int
	for _, t := range group {
		sets = append(sets, reach(t, group, c.graph.preds), reach(t, group, c.graph.succs))
	}
	for n := 1; n < len(group); n++ {
		sets = append(sets, group[:n])
	}
	return sets
}

// reach lists the tasks of a group that paths inside it lead to from t.
func reach(t int, group []int, next [][]int) []int {
	found := []int{t}
	for i := 0; i < len(found); i++ {
		for _, n := range next[found[i]] {
			if slices.Contains(group, n) && !slices.Contains(found, n) {
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
