package partition

import (
	"container/heap"
	"math"
	"time"
)

// The timeOut of a partition (docs/systems.md, Failure) is the largest sum
// of its tasks' timeOuts over all paths of the graph.
//
//   - Only the partition's own tasks count: those of other partitions on a path
//     add nothing, because the partition's clock stands still meanwhile. Where
//     a path leaves the partition and comes back, both of its stretches count:
//     the clock runs in both.
//   - A contingency in the partition adds its own timeOut to that of the task
//     it stands in for: the clock runs for both, one after the other.
//   - A task without a timeOut may take for ever, and so may its partition:
//     a time-out is computed only when every task of the partition has one.
//     What only undoes other tasks is no part of any path.

// maxPathSteps bounds how many edges are followed for the time-outs of all
// partitions together.
const maxPathSteps = 1 << 23

// criticalPaths finds the critical paths of the partitions whose time-outs are
// declared, or of the others, by position; 0: none. For each it follows what comes
// after its tasks, up to the last of them. ok is false if that takes too many steps.
func (p *Plan) criticalPaths(declared bool) (longest []time.Duration, ok bool) {
	longest = make([]time.Duration, len(p.partitions))
	order, ok := p.graph.slotOrder()
	if !ok {
		return longest, true
	}
	w := newPaths(p.graph, order)
	for at, weight := range p.weights() {
		if p.partitions[at].Declared != declared {
			continue
		}
		if longest[at], ok = w.longest(weight); !ok {
			return longest, false
		}
	}
	return longest, true
}

// paths finds the heaviest ones, for one partition after the other.
type paths struct {
	graph *graph
	place []int   // in the order, or none
	after [][]int // the reverse of waits
	upTo  []time.Duration
	queue ints // places that a path leads to
	at    []int
	round []int // in which a task was put into the queue last
	now   int
	left  int // steps
}

func newPaths(g *graph, order []int) *paths {
	n := len(g.tasks)
	w := &paths{
		graph: g, place: make([]int, n), after: make([][]int, n), upTo: make([]time.Duration, n), at: order,
		round: make([]int, n), left: maxPathSteps,
	}
	for s := range w.place {
		w.place[s] = none
	}
	for i, s := range order {
		w.place[s] = i
		for _, q := range g.waits[s] {
			w.after[q] = append(w.after[q], s)
		}
	}
	return w
}

// longest is the heaviest path over tasks that have a weight; ok is false if it took
// too many steps.
func (w *paths) longest(weight map[int]time.Duration) (longest time.Duration, ok bool) {
	w.now++
	last := none
	for s := range weight {
		last = max(last, w.place[s])
		w.reached(s, 0)
	}
	for w.queue.Len() > 0 {
		s := w.at[heap.Pop(&w.queue).(int)]
		w.upTo[s] = add(w.upTo[s], weight[s])
		longest = max(longest, w.upTo[s])
		if w.place[s] == last {
			break
		}
		for _, next := range w.after[s] {
			w.graph.steps++
			if w.left--; w.left < 0 {
				return 0, false
			}
			if w.place[next] <= last {
				w.reached(next, w.upTo[s])
			}
		}
	}
	w.queue = w.queue[:0]
	return longest, true
}

// reached notes a path that leads to a task.
func (w *paths) reached(s int, path time.Duration) {
	if w.round[s] != w.now {
		w.round[s], w.upTo[s] = w.now, 0
		heap.Push(&w.queue, w.place[s])
	}
	w.upTo[s] = max(w.upTo[s], path)
}

// weights sums, for each partition and slot, the timeouts of those tasks of the
// slot that are in the partition; nil for a partition with a task that may take
// for ever.
func (p *Plan) weights() []map[int]time.Duration {
	weights := make([]map[int]time.Duration, len(p.partitions))
	for at := range weights {
		weights[at] = make(map[int]time.Duration)
	}
	for i, at := range p.home {
		if at == none || weights[at] == nil {
			continue
		}
		timeout := p.graph.tasks[i].Timeout
		if timeout == 0 && len(p.graph.slots[i]) > 0 {
			weights[at] = nil
			continue
		}
		for _, s := range p.graph.slots[i] {
			weights[at][s] = add(weights[at][s], timeout)
		}
	}
	return weights
}

// add sums two spans of time and stops at the longest one that there is
// (292 years) instead of wrapping around.
func add(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
