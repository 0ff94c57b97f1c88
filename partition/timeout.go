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
//     What only undoes other tasks is no part of any path.

// criticalPaths finds the critical path of each partition, by position; 0: none.
func (p *Plan) criticalPaths() []time.Duration {
	longest := make([]time.Duration, len(p.partitions))
	order, ok := p.graph.slotOrder()
	if !ok {
		return longest
	}
	upTo := make([]time.Duration, len(p.graph.tasks)) // the heaviest path that ends here
	for at, weight := range p.weights() {
		if weight == nil {
			continue
		}
		for _, s := range order {
			upTo[s] = 0
			for _, q := range p.graph.waits[s] {
				upTo[s] = max(upTo[s], upTo[q])
			}
			upTo[s] = add(upTo[s], weight[s])
			longest[at] = max(longest[at], upTo[s])
		}
	}
	return longest
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
