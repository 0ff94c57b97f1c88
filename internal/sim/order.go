package sim

import (
	"context"
	"slices"

	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file checks who may do what, and in which order: tasks after what they
// wait for, one judge at a time, work that a crash has interrupted.

// slot is a slot of an instance.
type slot struct {
	instance workflow.InstanceID
	name     workflow.TaskName
}

// learnEnds notes which slots have a success or a verdict, as far as the
// machine's disk says.
func (m *machine) learnEnds(f *fact.Fact) {
	if s := f.Body.Success; s != nil {
		m.ends[slot{f.Instance, s.Attempt.Slot}] = true
	}
	if a, adopts := adoptedBy(f); adopts {
		m.ends[slot{f.Instance, a.Slot}] = true
	}
	if v := f.Body.Verdict; v != nil {
		for _, a := range v.Actions {
			m.ends[slot{f.Instance, a.Attempt.Slot}] = true
		}
	}
}

// adoptedBy is the attempt whose result a fact adopts; false: it adopts none.
func adoptedBy(f *fact.Fact) (a fact.AttemptID, is bool) {
	if f.Body.Claim == nil {
		return a, false
	}
	if _, is = f.Body.Claim.Body().(worklist.Adopt); is {
		a = f.Body.Claim.About()[0]
	}
	return a, is
}

// notBefore checks that nothing starts before what it waits for has ended as
// far as its holder knows: contingencies neither.
func (c *checks) notBefore(m *machine, id workflow.InstanceID, a fact.AttemptID) {
	t := c.w.task(a.Slot)
	if t.TimeToWait > 0 || t.When != "" {
		return
	}
	for _, p := range t.After {
		if !m.ends[slot{id, p}] {
			c.w.violate("order: n%d starts %s before %s has ended", m.i, a, p)
		}
	}
}

// calmFor is how long nothing must have been wrong for nodes to be held to have
// one idea of who is there.
const calmFor = 2 * time.Minute

// undisturbed reports whether nothing is wrong and has been for a while: a node
// that is gone has been gone for a while, too. A node that takes others'
// certificates for not valid yet, by a clock that is far behind, is as cut off
// as by a broken link.
func (w *world) undisturbed() bool {
	down := slices.ContainsFunc(w.nodes, func(m *machine) bool {
		return (m.node == nil && !m.gone) || m.skew < -trust.ClockSkew
	})
	return w.wrong == 0 && !down && w.now-w.disturbed > calmFor
}

// outOfStep reports whether a machine may take one that vanished for gone later than others do. After a gap it counts
// everybody's silence from then on, with a grace. So it agrees with the others once it has had a sign of life since,
// or that time is over, and the judges' time after it.
func (w *world) outOfStep(m *machine) bool {
	silence := moment.Grace(w.plan.ConnectionTime) + w.plan.ConnectionTime
	return w.now < m.well+silence+w.judging() && slices.ContainsFunc(w.nodes, func(x *machine) bool {
		return x.gone && x.vanished < m.well+w.plan.ConnectionTime/3 // a sign of life comes more often
	})
}

// oneJudge checks that two do not judge one attempt while nothing is wrong:
// a node that is not the guardian waits longer. A holder judges its own attempt once
// its own time is over, or it has failed, whatever others presumed. Two that do not take
// one that is gone for gone at the same time may come to judge at the same time.
func (c *checks) oneJudge(m *machine, key job, v *fact.Verdict) {
	if v.Cause == fact.CauseExpired {
		c.w.out.Judges = append(c.w.out.Judges, m.i)
	}
	before, ok := c.judges[key]
	if !ok {
		c.judges[key] = judge{m.i, c.w.now}
		return
	}
	its := v.Cause == fact.CauseReported || v.Cause == fact.CauseLost ||
		v.Cause == fact.CauseTimeout && strings.Contains(v.Reason, "no result within")
	if before.node != m.i && !its && c.w.undisturbed() && before.at-c.w.disturbed > calmFor && !c.w.amnesia() &&
		!c.w.outOfStep(m) && !c.w.outOfStep(c.w.nodes[before.node]) {
		c.w.violate("guardian: n%d judges %s %s after n%d had, although nothing was wrong", m.i, key.attempt,
			c.w.now-before.at, before.node)
	}
}

// resumes checks, a while after a machine has started, that what was running
// when it stopped runs again.
func (c *checks) resumes(m *machine, n *node.Node) {
	c.w.at(c.w.now+calmFor, func() {
		if m.node == n && m.paused == 0 && !m.disk.full && !m.forgot && c.w.now-m.well >= calmFor {
			c.w.guard(m, func() { c.resumed(m, n.Service()) })
		}
	})
}

func (c *checks) resumed(m *machine, n api.Service) {
	running, err := underWay(n)
	if err != nil {
		return
	}
	for _, x := range running {
		in, err := n.Show(context.Background(), x.ID)
		if err != nil || in.State != workflow.InstanceRunning {
			continue
		}
		for _, t := range in.Tasks {
			task := c.w.task(t.Name)
			mine := t.State == workflow.Running && t.Partner == c.w.name(m)
			over := t.Reason != "" // it failed, and nobody can take its contingency yet
			if mine && !over && task != nil && task.Type == workflow.Automatic && task.Retries.Times == 0 &&
				!c.w.retried[t.Name] && !m.runs(x.ID) {
				c.w.violate("resume: n%d does not run %s of %s, which was running when it stopped", m.i, t.Name,
					x.ID[:8])
			}
		}
	}
}

// runs reports whether the machine runs a job of an instance.
func (m *machine) runs(instance string) bool {
	for key := range m.jobs {
		if strings.HasPrefix(key, instance+"/") {
			return true
		}
	}
	return false
}

// lifted checks, at the end, that nobody called off what was only presumed to
// have failed and held up its slot: a success would have lifted the block.
func (c *checks) lifted(id workflow.InstanceID) {
	ended, others, presumed := map[slot]bool{}, map[slot]bool{}, map[fact.AttemptID]bool{}
	for _, f := range c.all {
		if f.Instance != id {
			continue
		}
		a, adopts := adoptedBy(f)
		switch b := f.Body; {
		case adopts:
			ended[slot{id, a.Slot}] = true
		case b.Cancel != nil:
			return
		case b.Success != nil:
			ended[slot{id, b.Success.Attempt.Slot}] = true
		case b.Assign != nil:
			others[slot{id, b.Assign.After.Slot}] = true
		case b.Verdict != nil:
			for _, a := range b.Verdict.Actions {
				presumed[a.Attempt] = true
				if a.Kind != workflow.FailBlock {
					others[slot{id, a.Attempt.Slot}] = true
				}
			}
		}
	}
	for fid, f := range c.all {
		b := f.Body.CalledOff
		if b == nil || f.Instance != id || c.forged[fid] != "" || c.lies[fid] {
			continue
		}
		if k := (slot{id, b.Attempt.Slot}); presumed[b.Attempt] && !ended[k] && !others[k] {
			c.w.violate("lifting: %s called off %s, which was only presumed to have failed", c.w.label(f.Chain.Author),
				b.Attempt)
		}
	}
}
