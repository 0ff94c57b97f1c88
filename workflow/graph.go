package workflow

import (
	"container/heap"
	"slices"
)

// graph is the order of a definition's tasks, by their place in Tasks.
type graph struct {
	tasks  []*Task
	index  map[TaskName]int
	before [][]int // for each task those that come before it, each once
	steps  int     // edges that were followed
}

// order gives the graph of a definition. Before a task come those that its rule
// mentions and, for a task that is never ready by itself, those for which it
// stands in or that it undoes.
func (d *Definition) order() *graph {
	g := d.ways()
	for i, t := range d.Tasks {
		stands, undoes := d.standsIn(t), d.Task(t.Compensate.task())
		if undoes == stands {
			undoes = nil
		}
		for _, c := range []*Task{stands, undoes} {
			if c != nil && c != t && c.ContingencyOnly { // it has no rule, so this is all that comes before it
				at := g.index[c.Name]
				g.before[at] = append(g.before[at], i)
			}
		}
	}
	return g
}

// standsIn is the first task of those that may stand in for t, one after another, that is never ready by itself: where
// one before it, which is in the flow as well, fails in the place of t, it is this one that is done there. nil: there is
// none.
func (d *Definition) standsIn(t *Task) *Task {
	c := d.Task(t.Contingency)
	for range maxContingencies { // they may stand in for each other in a loop
		if c == nil || c.ContingencyOnly {
			return c
		}
		c = d.Task(c.Contingency)
	}
	return nil
}

// task is the compensating task, if there is one.
func (c *Compensation) task() TaskName {
	if c == nil {
		return ""
	}
	return c.Task
}

// knots are the sets of tasks of which each comes before each, in the order of their
// first tasks.
func (g *graph) knots() [][]int {
	all := make([]int, len(g.tasks))
	for i := range all {
		all[i] = i
	}
	knots := Knots(all, func(i int) []int {
		g.steps += len(g.before[i])
		return g.before[i]
	})
	knots = slices.DeleteFunc(knots, func(knot []int) bool {
		return len(knot) == 1 && !slices.Contains(g.before[knot[0]], knot[0])
	})
	for _, knot := range knots {
		slices.Sort(knot)
	}
	slices.SortFunc(knots, func(a, b []int) int { return a[0] - b[0] })
	return knots
}

// cycle is a shortest cycle through the first task of a knot, in the direction
// of work, beginning and ending with that task. It does not leave the knot.
func (g *graph) cycle(knot []int) []TaskName {
	first := knot[0]
	next := map[int]int{} // the task that follows, towards first
	for queue := []int{first}; len(queue) > 0; queue = queue[1:] {
		for _, p := range g.before[queue[0]] {
			g.steps++
			if _, inside := slices.BinarySearch(knot, p); !inside {
				continue
			}
			if _, seen := next[p]; seen {
				continue
			}
			next[p] = queue[0]
			queue = append(queue, p)
		}
	}
	path := []int{first}
	for i := next[first]; i != first; i = next[i] {
		path = append(path, i)
	}
	return g.names(append(path, first))
}

// topological orders the tasks so that each comes after those before it. Of
// several possible ones a contingency comes first, else the name decides, so
// that the order depends on the definition's meaning alone. Tasks on a cycle
// are left out.
func (g *graph) topological() []TaskName {
	waits, after := make([]int, len(g.tasks)), make([][]int, len(g.tasks))
	queue := &taskQueue{}
	for i, before := range g.before {
		for _, p := range before {
			after[p] = append(after[p], i)
		}
		if waits[i] = len(before); waits[i] == 0 {
			heap.Push(queue, g.tasks[i])
		}
	}
	out := make([]TaskName, 0, len(g.tasks))
	for queue.Len() > 0 {
		t := heap.Pop(queue).(*Task)
		out = append(out, t.Name)
		for _, next := range after[g.index[t.Name]] {
			if waits[next]--; waits[next] == 0 {
				heap.Push(queue, g.tasks[next])
			}
		}
	}
	return out
}

// taskQueue is a heap of the tasks that may come next.
type taskQueue []*Task

func (q taskQueue) Len() int      { return len(q) }
func (q taskQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q taskQueue) Less(i, j int) bool {
	if q[i].ContingencyOnly != q[j].ContingencyOnly {
		return q[i].ContingencyOnly
	}
	return q[i].Name < q[j].Name
}
func (q *taskQueue) Push(x any) { *q = append(*q, x.(*Task)) }
func (q *taskQueue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
