package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// knownToAll checks, when a compensation begins, that every participant has the
// success that it undoes: else somebody might still build upon that.
func (c *checks) knownToAll(m *machine, id workflow.InstanceID, a fact.AttemptID) {
	if undoes := c.all[a.Fact]; undoes == nil || undoes.Body.Success == nil {
		return
	}
	for _, p := range c.parties[id] {
		i, ok := c.w.who(p)
		if ok && !c.w.nodes[i].forgot && !c.w.nodes[i].disk.facts[a.Fact] {
			c.w.violate("compensation: n%d undoes its %s, of which n%d does not know", m.i, a.Slot, i)
		}
	}
}

// undone checks an instance's compensations at the end: only of what was
// finished and does not count, of each at most one, and, unless somebody is
// gone who might still bring news, of each that has one defined.
func (c *checks) undone(id workflow.InstanceID, in *api.Instance) {
	begun := map[factID]int{}
	for _, f := range c.all {
		if s := f.Body.Start; s != nil && f.Instance == id && s.Try == 1 {
			if undoes := c.all[s.Attempt.Fact]; undoes != nil && undoes.Body.Success != nil {
				begun[s.Attempt.Fact]++
			}
		}
	}
	for done, n := range begun {
		f := c.all[done]
		// of two stores that were put back nobody may have it any more
		if !superseded(in, f) && !c.ordered(f) && !c.w.amnesia() {
			c.w.violate("compensation: %s's success of %s stands, and was compensated", c.w.label(f.Chain.Author),
				f.Body.Success.Attempt)
		}
		if n > 1 && !c.w.amnesia() {
			c.w.violate("compensation: %s's success of %s was compensated %d times", c.w.label(f.Chain.Author),
				f.Body.Success.Attempt, n)
		}
		c.w.out.Undone += n
	}
	if slices.ContainsFunc(c.w.nodes, func(m *machine) bool { return m.gone || m.lied || m.forgot }) {
		return
	}
	for _, t := range in.Tasks {
		if strings.Contains(t.Reason, toBeUndone) {
			c.w.violate("compensation: %s by %s is to be undone by order, all know it, and that has not begun", t.Name,
				t.Partner)
		}
		for _, s := range t.Superseded {
			c.w.out.Superseded++
			if s.Compensation == string(state.CompensationWaits) {
				c.w.violate("compensation: %s by %s lost, all know it, and its compensation has not begun", s.Task,
					s.Partner)
			}
		}
	}
}

// undoesInVain reports whether all that an instance that has ended still has for a node is to undo what it did, and
// that may wait for ever: for what a participant knew who is gone. Nobody is written off here.
func (w *world) undoesInVain(m *machine, in *api.Instance) (waits bool) {
	id, err := workflow.ParseInstanceID(in.ID)
	isGone := func(p workflow.PartnerID) bool { i, ok := w.who(p); return ok && w.nodes[i].gone }
	if err != nil || in.State == workflow.InstanceRunning || !slices.ContainsFunc(w.checks.parties[id], isGone) {
		return false
	}
	for _, t := range in.Tasks {
		if t.Partner == w.name(m) && t.State != workflow.Succeeded && t.State != workflow.Skipped {
			return false // it may go on with it, though others presume that it has failed
		}
		waits = waits || strings.Contains(t.Reason, toBeUndone) || slices.ContainsFunc(t.Superseded,
			func(s api.Superseded) bool { return s.Compensation == string(state.CompensationWaits) })
	}
	return waits
}

// toBeUndone is in the reason of a task while an order to undo it waits.
const toBeUndone = "it is to be undone, by order"

// superseded reports whether a success is shown as one that does not count.
func superseded(in *api.Instance, f *fact.Fact) bool {
	at := time.UnixMilli(f.At)
	return slices.ContainsFunc(in.Tasks, func(t api.Task) bool {
		return slices.ContainsFunc(t.Superseded, func(s api.Superseded) bool { return s.Ended.Equal(at) })
	})
}

// ordered reports whether somebody ordered that a success be undone.
func (c *checks) ordered(success *fact.Fact) bool {
	for _, f := range c.all {
		if f.Instance != success.Instance || f.Body.Claim == nil {
			continue
		}
		x, is := f.Body.Claim.Body().(worklist.Order)
		if is && x.What == worklist.Undo && slices.Contains(f.Body.Claim.About(), success.Body.Success.Attempt) {
			return true
		}
	}
	return false
}
