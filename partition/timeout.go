package partition

import (
	"math"
	"time"
)

// The timeOut of a partition (spec/choreography.md, Failure) is the largest sum
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

// criticalPath is the largest sum of timeouts of the tasks in part over all
// paths; ok is false when one of them has none, or when the graph has a cycle.
func (p *Plan) criticalPath(part *Partition) (longest time.Duration, ok bool) {
	weight := make([]time.Duration, len(p.graph.tasks))
	for s := range p.graph.tasks {
		if !p.graph.isSlot(s) {
			continue
		}
		for _, i := range p.graph.chain[s] {
			if p.home[i] == part {
				weight[s] = add(weight[s], p.graph.tasks[i].Timeout)
			}
		}
	}
	for i, t := range p.graph.tasks {
		if p.home[i] == part && t.Timeout == 0 {
			return 0, false
		}
	}
	order, ok := p.graph.order()
	if !ok {
		return 0, false
	}
	upTo := make([]time.Duration, len(weight)) // the heaviest path that ends here
	for _, s := range order {
		for _, q := range p.graph.slotPreds(s) {
			upTo[s] = max(upTo[s], upTo[q])
		}
		upTo[s] = add(upTo[s], weight[s])
		longest = max(longest, upTo[s])
	}
	return longest, true
}

// order lists the tasks so that each comes after those whose
// result its rule asks for, in the order written where that leaves a choice; ok is false if there is a cycle.
func (g *graph) order() (order []int, ok bool) {
	placed := make([]bool, len(g.tasks))
	for len(order) < len(g.tasks) {
		before := len(order)
		for i := range g.tasks {
			if !placed[i] && all(g.slotPreds(i), placed) {
				placed[i] = true
				order = append(order, i)
			}
		}
		if len(order) == before {
			return order, false
		}
	}
	return order, true
}

func all(tasks []int, in []bool) bool {
	for _, t := range tasks {
		if !in[t] {
			return false
		}
	}
	return true
}

// add sums two spans of time and stops at the longest one that there is
// (292 years) instead of wrapping around.
func add(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
