package meaning

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file says what an honest node may write, by what it knew when it did.

// Faults are what is wrong with a fact, given its past: what its author must not
// have written then. A node that may have been misled by a fork is not asked.
func (h *History) Faults(id fact.ID) []string {
	i, ok := h.index[id]
	if !ok || i == 0 {
		return nil
	}
	m := h.Of(h.before(i))
	c := check{m: m, i: i, author: h.facts[i].Chain.Author}
	switch b := &h.facts[i].Body; {
	case b.Ready != nil:
		c.ready(b.Ready)
	case b.Start != nil && b.Success != nil:
		c.start(b.Start)
		c.done(b.Success)
	case b.Start != nil:
		c.start(b.Start)
	case b.Success != nil:
		c.success(b.Success)
	case b.TryFailed != nil:
		a := m.attempts[b.TryFailed.Attempt]
		c.wants(a != nil && a.start != none && a.tries == b.TryFailed.Try, "the try that failed was not under way")
		early := a != nil && tooEarly(a, b.TryFailed)
		c.wants(early || a != nil && b.TryFailed.Try <= a.task.Retries.Times+a.early, "a try failed after which there is no other")
	case b.Child != nil:
		a := m.attempts[b.Child.Attempt]
		c.wants(a != nil && a.start != none && a.tries == b.Child.Try,
			"the try that an instance does was not under way")
	case b.Lease != nil:
		a := m.attempts[b.Lease.Attempt]
		c.wants(a != nil && a.start != none && a.tries == b.Lease.Try,
			"the try that a worker was given was not under way")
		c.wants(a != nil && a.task.Type == workflow.Automatic, "a worker was given a person's task")
	case b.Fire != nil:
		c.fire(b.Fire)
	case b.CalledOff != nil:
		a := m.attempts[b.CalledOff.Attempt]
		c.wants(a != nil && a.start != none, "what is called off was not started")
		c.wants(a != nil && !m.live(a), "what is called off is wanted")
	case b.Verdict != nil:
		c.verdict(b.Verdict)
	case b.Assign != nil:
		c.assign(b.Assign)
	case b.Claim != nil && aboutUnits(b.Claim.Body()):
		if x, reserves := b.Claim.Body().(worklist.Reserve); reserves {
			c.reserve(x)
		}
		c.wants(m.enterClaim(i, b.Claim), "a claim that does not count by what its author knew: %T", b.Claim.Body())
	case b.Claim != nil && h.hear != nil:
		c.broughtAhead(b.Claim.Body())
		c.wants(m.enterClaim(i, b.Claim), "a claim that does not count by what its author knew: %T", b.Claim.Body())
	}
	return c.wrong
}

// check collects what is wrong with a fact.
type check struct {
	m      *Meaning // of its past
	i      int
	author workflow.PartnerID
	wrong  []string
}

func (c *check) wants(ok bool, format string, args ...any) {
	if !ok {
		c.wrong = append(c.wrong, fmt.Sprintf(format, args...))
	}
}

// live reports whether a slot still waits for an attempt, as its holder sees it:
// what others only presume does not stop it, unless somebody else took over. What
// the holder called off is over.
func (m *Meaning) live(a *Attempt) bool {
	if a.fired != nil {
		return m.flow.runs(a) && m.live(a.fired)
	}
	sl := a.slot
	over := a.givenUp() || (sl.outcome != nil && sl.outcome.action.Kind != workflow.FailBlock)
	return sl.Pick == nil && sl.Current == a && a.off == none && !over && !m.cancelled
}

// mayStart reports whether a live attempt is ready, as its holder sees it.
func (m *Meaning) mayStart(a *Attempt) bool {
	sl := a.slot
	if sl.State == workflow.Failed || sl.Pending {
		return sl.begun() || !m.broken && !m.final && m.rule3(sl).truth == workflow.True
	}
	return sl.State == workflow.Ready
}

func (c *check) ready(b *fact.ReadyBody) {
	a := c.m.attempts[b.Attempt]
	if a == nil {
		c.wants(false, "what is ready is not known")
		return
	}
	c.wants(c.m.live(a) && !a.slot.begun(), "what is ready is not wanted, or was ready before")
	if b.Trigger {
		c.wants(a.slot.Task.TimeToWait > 0, "a trigger fires that the task does not have")
		waits := a.slot.State == workflow.NotReady || a.slot.State == workflow.Failed
		c.wants(waits, "a trigger fires of a task that is %s", a.slot.State)
		return
	}
	c.wants(asksData(a.slot.Task.Rule), "a task is said to be ready whose rule is not about data")
	c.wants(c.m.rule3(a.slot).truth == workflow.True, "a task is said to be ready whose rule does not hold")
	c.wants(!c.m.broken && !c.m.final, "a task is said to be ready while a strict constraint is broken, or the data are final")
}

func (c *check) start(b *fact.Start) {
	a := c.m.attempts[b.Attempt]
	switch {
	case a == nil:
		c.wants(false, "what starts is not known")
	case b.Try > 1:
		due := a.start != none && a.failed[b.Try-1] && a.tries == b.Try-1
		c.wants(due, "try %d starts, and the one before has not failed", b.Try)
		c.wants(b.Try <= a.task.Retries.Times+a.early+1, "try %d starts of at most %d", b.Try, a.task.Retries.Times+1)
		c.wants(a.undoes != nil || c.m.live(a), "another try starts of what is not wanted")
	case a.fired != nil:
		c.wants(a.start == none, "it starts a second time")
		c.wants(c.m.live(a), "what starts is not wanted")
	case a.undoes != nil:
		c.undo(a)
	default:
		c.wants(a.start == none, "it starts a second time")
		c.wants(c.m.live(a), "what starts is not wanted")
		c.wants(c.m.mayStart(a), "what starts is %s", a.slot.State)
		byPerson := !a.task.ByNode() // who took it, took it when it had them
		c.wants(byPerson || c.m.hasUnits(a), "what starts lacks what it holds")
		c.consumes(a, b)
	}
}

// consumes checks what a start says that it builds upon: of each slot the success that
// counts, or nothing, be it that it names that or that it follows.
func (c *check) consumes(a *Attempt, b *fact.Start) {
	named := map[workflow.TaskName]fact.ID{}
	for _, x := range b.Consumed {
		_, twice := named[x.Slot]
		c.wants(!twice, "the start names what it built upon of %s twice", x.Slot)
		named[x.Slot] = x.Fact
	}
	all := func(int) bool { return true }
	for _, from := range c.m.before(a.slot) {
		var want fact.ID
		if from.Pick != nil {
			want = c.m.h.facts[from.Pick.success()].id
		}
		got, is := named[from.Task.Name]
		delete(named, from.Task.Name)
		if follows := c.m.unnamed(from, all); !is && follows != nil {
			got = c.m.h.facts[follows.success()].id
		}
		c.wants(got == want, "the start built upon another result of %s than counts", from.Task.Name)
		c.wants(!is || len(from.Attempts) > 1 || from.Pick == nil, "the start names the one result of %s",
			from.Task.Name)
	}
	c.wants(len(named) == 0, "the start names results of what it does not wait for: %v", named)
}

// undo checks that a compensation may begin.
func (c *check) undo(u *Attempt) {
	a := u.undoes
	if a.fired != nil {
		c.undoOfFlow(u)
		return
	}
	c.wants(!a.Stands && !a.held || a.undone, "a success is compensated that stands, and nobody ordered it")
	c.wants(u.start == none, "a compensation begins a second time")
	for p := range c.m.joined {
		heard := c.m.writtenOff[p] || c.m.heardOf(p, a.slot)
		c.wants(heard, "a compensation begins, and %s may not know of all results of %s", p, a.slot.Task.Name)
	}
	later := map[*Slot]bool{a.slot: true}
	for more := true; more; {
		more = false
		for _, sl := range c.m.slots {
			if !later[sl] && slices.ContainsFunc(c.m.waitsFor(sl), func(x *Slot) bool { return later[x] }) {
				later[sl], more = true, true
			}
		}
	}
	for _, sl := range c.m.slots {
		for _, x := range sl.Attempts {
			works := x.start != none && x.off == none && x.success() == none && !x.givenUp() &&
				!c.m.writtenOff[x.Partner]
			c.wants(!later[sl] || !works, "a compensation of %s begins while %s runs", a.slot.Task.Name, x.ID)
		}
	}
}

// heardOf reports whether a fact of a partner shows that it knows all successes of a
// slot.
func (m *Meaning) heardOf(p workflow.PartnerID, sl *Slot) bool {
	for i, f := range m.h.facts {
		if !m.counts.has(i) || f.Chain.Author != p {
			continue
		}
		all := true
		for _, a := range sl.Attempts {
			for _, s := range a.successes {
				all = all && m.h.knew(i, s)
			}
		}
		if all {
			return true
		}
	}
	return false
}

// done checks the result of what began in the same fact.
func (c *check) done(b *fact.Success) {
	a := c.m.attempts[b.Attempt]
	if a == nil {
		return // that is said of its start
	}
	app := a.task.Application
	touches := app != workflow.AppNoop && app != workflow.AppSet || len(a.task.Queries) > 0
	c.wants(!touches, "what touches the world begins and succeeds in one fact")
	c.wants(b.Try == 1, "try %d begins and succeeds in one fact", b.Try)
	c.result(a, b, c.m)
}

func (c *check) success(b *fact.Success) {
	a := c.m.attempts[b.Attempt]
	if a == nil || a.start == none {
		c.wants(false, "what succeeds was not started")
		return
	}
	c.wants(a.tries == b.Try, "try %d succeeds, the last that started is %d", b.Try, a.tries)
	c.result(a, b, c.m.h.Of(c.m.h.before(a.start)))
}

// result checks a success of an attempt that began when all that is then was known.
func (c *check) result(a *Attempt, b *fact.Success, then *Meaning) {
	if a.fired != nil {
		c.resultOfFlow(a, b)
		return
	}
	for _, x := range c.m.strict() {
		kept := !c.m.live(a) || a.undoes != nil || !c.m.keeps(x, nil) || c.m.keeps(x, b.Outputs)
		c.wants(kept, "a result breaks the strict constraint %s", x.Name)
	}
	c.wants(!a.givenUp(), "what succeeds was given up by its own holder")
	c.wants(a.off == none, "what succeeds was called off")
	c.wants(a.success() == none, "it succeeds a second time")
	if a.task.Application != workflow.AppSet {
		return
	}
	// Its values are those of its expressions, unless the data changed meanwhile.
	for n, e := range a.task.With.Set {
		was, err := e.Eval(then.env())
		now, again := e.Eval(c.m.env())
		if err != nil || again != nil || !reflect.DeepEqual(was, now) {
			continue
		}
		d := slices.IndexFunc(c.m.def.Data, func(d workflow.DataDecl) bool { return d.Name == n })
		want, err := workflow.CheckValue(&c.m.def.Data[d], was)
		got, ok := b.Outputs[n]
		right := err == nil && ok && reflect.DeepEqual(got, want)
		c.wants(right, "%s sets %s to %v, its expression gives %v", a.task.Name, n, got, want)
	}
}

func (c *check) verdict(v *fact.Verdict) {
	c.wants(len(v.Actions) > 0, "a verdict that judges nothing")
	for _, x := range v.Actions {
		c.judged(v, x)
	}
}

// judged checks one action of a verdict.
func (c *check) judged(v *fact.Verdict, x fact.Action) {
	a := c.m.attempts[x.Attempt]
	if a == nil {
		c.wants(false, "a verdict on %s, which is not known", x.Attempt)
		return
	}
	c.wants(c.m.chosen(a, x, c.i), "a verdict does to %s what its author did not choose", x.Attempt)
	c.wants(a.success() == none, "a verdict on %s, which has succeeded", x.Attempt)
	c.wants(!a.givenUp(), "a verdict on %s, which was given up", x.Attempt)
	if a.undoes != nil {
		return
	}
	if a.fired != nil {
		c.wants(c.m.live(a), "its holder gives up %s, which is not wanted", x.Attempt)
		return
	}
	sl := a.slot
	c.wants(sl.Current == a && sl.Pick == nil, "a verdict on %s, which is not in charge", x.Attempt)
	if a.Partner == c.author {
		c.wants(c.m.live(a), "its holder gives up %s, which is not wanted", x.Attempt)
		mayTryAgain := v.Cause == fact.CauseReported && a.task.Type == workflow.Automatic &&
			a.tries <= a.task.Retries.Times && !c.m.stopped(a) && !a.skips
		c.wants(!mayTryAgain, "%s is given up after %d tries of %d", x.Attempt, a.tries, a.task.Retries.Times+1)
	} else {
		c.wants(!sl.State.Done() && !sl.Pending, "a verdict on %s, whose task is %s already", x.Attempt, sl.State)
		if v.Cause == fact.CauseTimeout {
			waits := c.m.waitsForSomebody(sl, map[*Slot]bool{})
			c.wants(!waits, "time is held against %s, which waits for what nobody can take yet", x.Attempt)
		}
	}
	// Abort prevails: what the others of the same verdict block has not failed itself.
	begun := a.start != none || c.m.mayStart(a)
	if len(v.Actions) == 1 || begun {
		return
	}
	others := c.m.h.with(c.m.h.before(c.i), func(m *Meaning) {
		for _, y := range v.Actions {
			if b := m.attempts[y.Attempt]; b != nil && y.Attempt != x.Attempt && y.Kind != workflow.FailContingency {
				m.rule(b, c.i, y)
			}
		}
	})
	blocked := others.bySlot[sl.Task.Name].State == workflow.Blocked
	c.wants(!blocked, "a verdict does something to %s, which it blocks already", x.Attempt)
}

// waitsForSomebody reports whether a slot cannot go on before somebody takes a
// contingency that nobody could take.
func (m *Meaning) waitsForSomebody(sl *Slot, seen map[*Slot]bool) bool {
	if sl.Pending {
		return sl.Pick == nil
	}
	if seen[sl] || sl.State != workflow.NotReady || sl.Task.TimeToWait > 0 || sl.Task.When != "" {
		return false
	}
	seen[sl] = true
	return slices.ContainsFunc(m.before(sl), func(x *Slot) bool { return m.waitsForSomebody(x, seen) })
}

func (c *check) assign(b *fact.Assign) {
	a := c.m.attempts[b.After]
	if a == nil {
		c.wants(false, "an assignment after what is not known")
		return
	}
	c.wants(a.slot.Current == a, "an assignment after what is not in charge")
	if x := c.m.h.facts[c.i].Body.Annex; x != nil && x.Order != nil {
		inStead := a.Partner != c.m.h.facts[c.i].Chain.Author // others presume it, and its holder is gone
		c.wants((a.givenUp() || inStead) && a.slot.outcome != nil && a.slot.Pick == nil && !c.m.cancelled,
			"what is done once more by order has not failed")
		return
	}
	if !b.Verdict.IsZero() {
		c.wants(a.slot.Pending && a.slot.Pick == nil, "somebody is found for what waits for nobody")
		return
	}
	c.wants(a.Partner == c.author && c.m.live(a) && a.start == none, "its author cannot pass on %s", b.After)
}
