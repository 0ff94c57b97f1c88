package workflow

import (
	"container/heap"
	"slices"
)

// components are the sets of tasks that can reach each other, in the order in
// which their first task is written (Tarjan's algorithm).
func components(tasks []*Task, edges map[TaskName][]TaskName) [][]TaskName {
	index := make(map[TaskName]int, len(tasks))
	low := make(map[TaskName]int, len(tasks))
	done := make(map[TaskName]bool, len(tasks))
	var stack []TaskName
	var out [][]TaskName
	var visit func(TaskName)
	visit = func(t TaskName) {
		index[t] = len(index) + 1
		low[t] = index[t]
		stack = append(stack, t)
		for _, next := range edges[t] {
			if index[next] == 0 {
				visit(next)
				low[t] = min(low[t], low[next])
			} else if !done[next] {
				low[t] = min(low[t], index[next])
			}
		}
		if low[t] != index[t] {
			return
		}
		i := slices.Index(stack, t)
		for _, member := range stack[i:] {
			done[member] = true
		}
		out = append(out, slices.Clone(stack[i:]))
		stack = stack[:i]
	}
	position := make(map[TaskName]int, len(tasks))
	for i, t := range tasks {
		position[t.Name] = i
		if index[t.Name] == 0 {
			visit(t.Name)
		}
	}
	byPosition := func(a, b TaskName) int { return position[a] - position[b] }
	for _, c := range out {
		slices.SortFunc(c, byPosition)
	}
	slices.SortFunc(out, func(a, b []TaskName) int { return byPosition(a[0], b[0]) })
	return out
}

// cycle is a shortest cycle through the first task of a component, in the
// direction of work, beginning and ending with that task; nil if there is none.
func cycle(knot []TaskName, before map[TaskName][]TaskName) []TaskName {
	first := knot[0]
	next := map[TaskName]TaskName{} // towards first, in the direction of work
	queue := []TaskName{first}
	for len(queue) > 0 {
		t := queue[0]
		queue = queue[1:]
		for _, p := range before[t] {
			if !slices.Contains(knot, p) {
				continue
			}
			if _, seen := next[p]; seen {
				continue
			}
			next[p] = t
			if p == first {
				return follow(first, next)
			}
			queue = append(queue, p)
		}
	}
	return nil
}

func follow(first TaskName, next map[TaskName]TaskName) []TaskName {
	path := []TaskName{first}
	for t := next[first]; ; t = next[t] {
		path = append(path, t)
		if t == first {
			return path
		}
	}
}

// topological orders the tasks so that each comes after those before it. Of
// several possible ones a contingency comes first, else the name decides, so
// that the order depends on the definition's meaning alone.
func topological(d *Definition, before map[TaskName][]TaskName) []TaskName {
	waits := make(map[TaskName]int, len(d.Tasks))
	after := make(map[TaskName][]TaskName, len(d.Tasks))
	queue := &taskQueue{def: d}
	for _, t := range d.Tasks {
		for _, p := range before[t.Name] {
			after[p] = append(after[p], t.Name)
		}
		if waits[t.Name] = len(before[t.Name]); waits[t.Name] == 0 {
			heap.Push(queue, t.Name)
		}
	}
	out := make([]TaskName, 0, len(d.Tasks))
	for queue.Len() > 0 {
		t := heap.Pop(queue).(TaskName)
		out = append(out, t)
		for _, next := range after[t] {
			if waits[next]--; waits[next] == 0 {
				heap.Push(queue, next)
			}
		}
	}
	return out
}

// taskQueue is a heap of tasks that may come next.
type taskQueue struct {
	def   *Definition
	names []TaskName
}

func (q *taskQueue) Len() int      { return len(q.names) }
func (q *taskQueue) Swap(i, j int) { q.names[i], q.names[j] = q.names[j], q.names[i] }
func (q *taskQueue) Push(x any)    { q.names = append(q.names, x.(TaskName)) }
func (q *taskQueue) Less(i, j int) bool {
	a, b := q.def.Task(q.names[i]), q.def.Task(q.names[j])
	if a.ContingencyOnly != b.ContingencyOnly {
		return a.ContingencyOnly
	}
	return a.Name < b.Name
}
func (q *taskQueue) Pop() any {
	last := q.names[len(q.names)-1]
	q.names = q.names[:len(q.names)-1]
	return last
}
