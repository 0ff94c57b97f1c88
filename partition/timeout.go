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

// criticalPath is the largest sum of timeouts of the tasks in part over all
// paths; ok is false when one of them has none, or when the graph has a cycle.
func (p *Plan) criticalPath(part *Partition) (longest time.Duration, ok bool) {
	upTo := make([]time.Duration, len(p.graph.tasks)) // the heaviest path that ends here
	for s := range upTo {
		if !p.graph.isSlot(s) {
			continue
		}
		for _, q := range p.graph.slotPreds(s) {
			if q > s {
				return 0, false
			}
			upTo[s] = max(upTo[s], upTo[q])
		}
		for _, i := range p.graph.chain[s] {
			if p.home[i] != part {
				continue
			}
			if p.graph.tasks[i].Timeout == 0 {
				return 0, false
			}
			upTo[s] = add(upTo[s], p.graph.tasks[i].Timeout)
		}
		longest = max(longest, upTo[s])
	}
	return longest, true
}

// add sums two spans of time and stops at the longest one that there is
// (292 years) instead of wrapping around.
func add(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
