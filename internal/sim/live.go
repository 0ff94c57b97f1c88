package sim

import (
	"context"
	"math"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file says by when an instance must have ended once everything has healed.

// judging is how much longer than its time-outs a step may take: until its
// holder's silence is judged by the last in the succession, and heard of.
func (w *world) judging() time.Duration {
	const slack, news = 15 * time.Second, 30 * time.Second
	return slack + news + time.Duration(w.plan.Nodes)*choreo.GuardianTimeout
}

// bound is what the definition implies: the latest end of any task, counted
// from its start, and for each step on the longest way through the definition
// the time of its judges; a node that is gone has to expire first. Where no
// time-out bounds a task's data there is none, and patience is all that can be
// asked for.
func (w *world) bound() time.Duration {
	latest, longest := time.Duration(0), 0
	for _, t := range w.def.Tasks {
		end, ok := w.bounds.WorstEnd(t.Name)
		if !ok {
			return w.patience()
		}
		latest, longest = max(latest, end), max(longest, w.steps(t.Name))
	}
	return latest + time.Duration(longest)*w.judging() + w.plan.ConnectionTime + time.Minute + w.unanswered()
}

// unanswered is how much later it may be where the words of a liar do not count, not even
// that its own time is over: nothing that it holds then ends before the others' wait for its
// whole partition is over (choreo/waits.go, answer). That begins when all has ended that the
// partition waits for, and takes the waits of its triggers as well. What follows on its first
// task is as late.
func (w *world) unanswered() (later time.Duration) {
	for _, p := range w.bounds.Partitions() {
		if !w.nodes[w.plan.Pins[string(p.Name)]].lied {
			continue
		}
		over, first := w.worstBefore(p.Tasks)+p.Timeout, time.Duration(math.MaxInt64)
		for _, t := range p.Tasks {
			end, _ := w.bounds.WorstEnd(t)
			over, first = over+w.def.Task(t).TimeToWait, min(first, end)
		}
		later += max(over-first, 0) + w.judging() + w.plan.ConnectionTime
	}
	return later
}

// steps is how many attempts one after the other it takes at most until a task
// has a result.
func (w *world) steps(name workflow.TaskName) int {
	n := 0
	for _, p := range w.def.Predecessors(name) {
		n = max(n, w.steps(p))
	}
	for t := w.def.Task(name); t != nil; t = w.def.Task(t.Contingency) {
		n++
	}
	return n
}

// patience is for how long a run goes on at most: as if all tasks and
// contingencies came one after the other. Until then what has ended may change
// when late results lift blocks.
func (w *world) patience() time.Duration {
	b := 3*w.plan.ConnectionTime + 10*time.Minute
	for _, t := range w.def.Tasks {
		b += t.Timeout + t.TimeToWait + time.Duration(t.Retries.Times)*t.Retries.Backoff + w.judging()
	}
	return b
}

// ended checks that all instances have ended where they are known.
func (c *checks) ended() {
	for _, m := range c.w.honest() {
		c.w.guard(m, func() {
			running, err := m.node.Instances(context.Background(), false)
			if err != nil {
				return
			}
			for _, x := range running {
				in, err := m.node.Show(context.Background(), x.ID)
				if err != nil || in.State != workflow.InstanceRunning || c.w.nobodyLeft(in) || c.over[x.ID] {
					continue
				}
				if print, err := m.node.Fingerprint(context.Background(), x.ID); err != nil || takesPart(m, print) {
					c.w.violate("live: %s is still running at n%d %s after everything healed:\n%s", x.ID[:8], m.i, c.w.bound(), waiting(in))
				}
			}
		})
	}
}
