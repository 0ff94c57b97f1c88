package sim

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/contingency/waits"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file says by when an instance must have ended once everything has healed.

// judging is how much longer than its time-outs a step may take: until its
// holder's silence is judged by the last in the succession, and heard of.
func (w *world) judging() time.Duration {
	const slack, news = 15 * time.Second, 30 * time.Second
	return slack + news + time.Duration(w.plan.Nodes)*waits.GuardianTimeout
}

// bound is what the definition implies: the latest end of any task, counted
// from its start, and for each step on the longest way through the definition
// the time of its judges; a node that is gone has to expire first. Where no
// time-out bounds a task's data there is none, and patience is all that can be
// asked for. Compensations come when the instance has ended, and do not count.
func (w *world) bound() time.Duration {
	if w.plan.drives() {
		return w.patience()
	}
	latest, longest := time.Duration(0), 0
	for _, p := range w.bounds.Partitions() {
		for _, t := range p.Tasks {
			end, ok := w.bounds.WorstEnd(t)
			if !ok {
				return w.patience()
			}
			latest, longest = max(latest, end), max(longest, w.steps(t))
		}
	}
	return latest + time.Duration(longest)*w.judging() + w.plan.ConnectionTime + time.Minute + w.unanswered() + w.allowed()
}

// allowed is how much later it may be by amendments: each may lengthen what is waited for by its holder, by those who judge
// it, and once more where a block lifts.
func (w *world) allowed() time.Duration { return 4 * w.longer }

// unanswered is how much later it may be where the words of a liar do not count, not even
// that its own time is over: nothing that it holds then ends before the others' wait for its
// whole partition is over (choreo/waits.go, answer). That begins when all has ended that the
// partition waits for, and takes the waits of its triggers as well. What follows on its first
// task is as late. Each time that something comes back to the partition from elsewhere, as
// when the contingency of one of its tasks lifts a block, there is a whole wait again; and if
// the instance had ended by then, its worst case is counted from there.
func (w *world) unanswered() (later time.Duration) {
	for _, p := range w.bounds.Partitions() {
		if !w.nodes[w.plan.Pins[string(p.Name)]].lied {
			continue
		}
		wait, first, comes, entries := p.Timeout, forEver, 0, map[workflow.TaskName]int{}
		for _, t := range p.Tasks {
			wait += w.task(t).TimeToWait
			comes = max(comes, w.entries(p.Name, t, entries))
			end, _ := w.bounds.WorstEnd(t)
			first = min(first, end)
		}
		if before := w.worstBefore(p.Tasks); before < forEver { // else its tasks are clocked one by one until then
			wait += before
		}
		later += max(wait-first, 0) + time.Duration(comes)*wait +
			time.Duration(1+comes)*(w.judging()+w.plan.ConnectionTime)
	}
	return later
}

// forEver is when something has ended that may never end.
const forEver = time.Duration(math.MaxInt64)

// entries is how often a way through the definition to a task comes into a partition at
// most, found out once for each task.
func (w *world) entries(into workflow.PartitionName, to workflow.TaskName, known map[workflow.TaskName]int) int {
	if n, ok := known[to]; ok {
		return n // or is being found out, in a circle of data
	}
	known[to] = 0
	most := 0
	for _, t := range w.def.Tasks {
		if t.Name == to || !w.waitsFor(to, t.Name) {
			continue
		}
		n := w.entries(into, t.Name, known)
		if w.bounds.Home(to) == into && w.bounds.Home(t.Name) != into {
			n++
		}
		most = max(most, n)
	}
	known[to] = most
	return most
}

// waitsFor reports whether a task's rule waits for the slot of another: for it, for what
// may stand in for it, or for data that these may write.
func (w *world) waitsFor(t, of workflow.TaskName) (waits bool) {
	preds := w.def.Predecessors(t)
	for _, x := range w.bounds.Chain(of) {
		waits = waits || slices.Contains(preds, x)
		w.task(t).Rule.Terms(func(r *workflow.Rule) {
			waits = waits || r.Op == workflow.OpData &&
				slices.ContainsFunc(r.Data.Names(), func(n workflow.DataName) bool {
					return slices.Contains(w.def.Writers(n), x)
				})
		})
	}
	return waits
}

// steps is how many attempts one after the other it takes at most until a task
// has a result.
func (w *world) steps(name workflow.TaskName) int {
	n := 0
	for _, p := range w.def.Predecessors(name) {
		n = max(n, w.steps(p))
	}
	for t := w.task(name); t != nil; t = w.task(t.Contingency) {
		n++
	}
	return n
}

// patience is for how long a run goes on at most where the definition implies no more: as
// if all tasks and contingencies came one after the other. Until then what has ended may
// change when late results lift blocks.
func (w *world) patience() time.Duration {
	b := 3*w.plan.ConnectionTime + 10*time.Minute + w.allowed()
	if !w.plan.drives() {
		b += w.unanswered()
	}
	for _, t := range w.def.Tasks {
		b += w.rounds() * (t.Timeout + t.TimeToWait + time.Duration(t.Retries.Times)*t.Retries.Backoff + w.judging())
	}
	return b
}

// ended checks that all instances have ended where they are known.
func (c *checks) ended() {
	for _, m := range c.w.honest() {
		c.w.guard(m, func() {
			running, err := underWay(m.node.Service())
			if err != nil {
				return
			}
			for _, x := range running {
				in, err := m.node.Service().Show(context.Background(), x.ID)
				if err != nil || in.State != workflow.InstanceRunning || c.w.nobodyLeft(in) || c.over[x.ID] ||
					c.w.keptByLiar(in) {
					continue
				}
				if print, err := m.node.Fingerprint(context.Background(), x.ID); err != nil || takesPart(m, print) {
					c.w.violate("live: %s is still running at n%d %s after everything healed:\n%s", x.ID[:8], m.i,
						c.w.bound(), waiting(in))
				}
			}
		})
	}
}
