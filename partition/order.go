package partition

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// ruleOrder sorts tasks so that each comes after those that its rule mentions
// and, if it is only a contingency, after those it stands in for; where that
// leaves a choice, by name. What is on a cycle, or behind one, comes last.
func ruleOrder(tasks []*workflow.Task) []*workflow.Task {
	byName := slices.SortedFunc(slices.Values(tasks),
		func(a, b *workflow.Task) int { return cmp.Compare(a.Name, b.Name) })
	after, waits := links(byName)
	var free ints
	for i := range byName {
		if waits[i] == 0 {
			free = append(free, i) // ascending, so a heap
		}
	}
	order := make([]*workflow.Task, 0, len(byName))
	for free.Len() > 0 {
		i := heap.Pop(&free).(int)
		order = append(order, byName[i])
		for _, to := range after[i] {
			if waits[to]--; waits[to] == 0 {
				heap.Push(&free, to)
			}
		}
	}
	for i, t := range byName {
		if waits[i] > 0 {
			order = append(order, t)
		}
	}
	return order
}

// links lists for each task those to be ordered after it, and counts for each
// those to be ordered before it. Both count a link as often as it is written.
func links(tasks []*workflow.Task) (after [][]int, waits []int) {
	after, waits = make([][]int, len(tasks)), make([]int, len(tasks))
	index := make(map[workflow.TaskName]int, len(tasks))
	for i, t := range tasks {
		index[t.Name] = i
	}
	link := func(from, to int) {
		if from != to {
			after[from] = append(after[from], to)
			waits[to]++
		}
	}
	for i, t := range tasks {
		t.Rule.Terms(func(r *workflow.Rule) {
			if from, ok := index[r.Task]; ok && r.Op == workflow.OpTask {
				link(from, i)
			}
		})
		if c, ok := index[t.Contingency]; ok && tasks[c].ContingencyOnly {
			link(i, c)
		}
	}
	return after, waits
}

// ints is a heap of numbers, the least first.
type ints []int

func (h ints) Len() int           { return len(h) }
func (h ints) Less(i, j int) bool { return h[i] < h[j] }
func (h ints) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *ints) Push(x any)        { *h = append(*h, x.(int)) }
func (h *ints) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
