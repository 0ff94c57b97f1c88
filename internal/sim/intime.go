package sim

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/internal/sim/meaning"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file checks that no wait is over before its time, measured from what it is
// for: from when the task was ready as far as the machine's disk says, not from when
// the instance came to be known.

// inTime checks a time-out or a trigger.
func (c *checks) inTime(h *meaning.History, id factID, f *fact.Fact) {
	i, ok := c.w.who(f.Chain.Author)
	if !ok {
		return
	}
	m := c.w.nodes[i]
	if m.forgot || m.boots > 0 {
		return // it forgot how long it had waited, or has only a wrong clock to go by
	}
	w := wait{c: c, h: h, m: m, id: id, f: f, at: m.arrived[id]}
	if b := f.Body.Ready; b != nil && b.Trigger {
		w.trigger(b.Attempt.Slot)
	}
	v := f.Body.Verdict
	if v != nil && v.Cause == fact.CauseExpired {
		w.gone(v)
	}
	if v == nil || v.Cause != fact.CauseTimeout {
		return
	}
	for _, x := range v.Actions {
		switch name, of, _ := strings.Cut(strings.TrimPrefix(v.Reason, "partition "), " gave "); {
		case !strings.HasPrefix(v.Reason, "partition ") && strings.HasPrefix(v.Reason, "no result within"):
			w.own(x.Attempt)
		case strings.HasPrefix(v.Reason, "no word"):
			w.readiness(x.Attempt)
		case !strings.HasPrefix(v.Reason, "partition "):
			w.contingency(x.Attempt)
		case strings.Contains(of, "within"):
			w.ownPartition(workflow.PartitionName(name))
		default:
			w.answer(workflow.PartitionName(name), x.Attempt)
		}
	}
}

// wait is one that a machine held to be over.
type wait struct {
	c  *checks
	h  *meaning.History
	m  *machine
	id factID
	f  *fact.Fact
	at time.Duration // when
}

// knew is how the instance stood for the machine so long before.
func (w *wait) knew(before time.Duration) *meaning.Meaning {
	return w.h.Known(w.id, func(id factID) bool { at, ok := w.m.arrived[id]; return ok && at <= w.at-before })
}

// everKnew reports whether something was so for the machine at a moment that lies at least
// so long before, also for as long as it had not yet answered what it got then. A block that
// lifts takes a state back; the clock of a trigger goes on.
func (w *wait) everKnew(before time.Duration, so func(*meaning.Meaning) bool) bool {
	moments := w.moments(before)
	return slices.ContainsFunc(moments, func(at time.Duration) bool { return so(w.knew(w.at-at)) || so(w.heard(at)) })
}

// heard is how the instance stood for the machine when it had got what came at a moment, and
// had written nothing itself yet.
func (w *wait) heard(at time.Duration) *meaning.Meaning {
	return w.h.Known(w.id, func(id factID) bool {
		came, ok := w.m.arrived[id]
		return ok && (came < at || came == at && w.c.all[id].Chain.Author != w.m.id)
	})
}

// throughout reports whether something was so for the machine all the time since so long
// before, by the meaning of each of its moments.
func (w *wait) throughout(before time.Duration, so func(m *meaning.Meaning, at time.Duration) bool) bool {
	since := w.at - before
	for _, at := range w.moments(0) {
		if at <= since {
			break
		}
		if !so(w.knew(w.at-at), at) {
			return false
		}
	}
	return so(w.knew(before), since)
}

// moments are when the machine got facts of the instance, at least so long before, the last
// one first.
func (w *wait) moments(before time.Duration) []time.Duration {
	var moments []time.Duration
	for id, at := range w.m.arrived {
		of := fact.Received{Fact: w.c.all[id], ID: id}.Instance()
		if at <= w.at-before && of == w.f.Instance {
			moments = append(moments, at)
		}
	}
	slices.Sort(moments)
	moments = slices.Compact(moments)
	slices.Reverse(moments)
	return moments
}

func (w *wait) early(what string, least time.Duration) {
	w.c.w.violate("time: n%d's %s of %s: %s, not for %s", w.m.i, said(w.f), w.f.Instance.String()[:8], what, least)
}

// expiring is the part of a connectionTime for which somebody was silent, at least,
// that is judged to be gone: signs of life come three times in it, and one may not
// count for want of the record that it is about.
const expiring = 0.6

// gone is the silence of a partner, which may have said that it goes down.
func (w *wait) gone(v *fact.Verdict) {
	least := time.Duration(expiring * float64(w.c.w.plan.ConnectionTime))
	for _, x := range v.Actions {
		p, _ := w.knew(0).HolderOf(x.Attempt)
		i, ok := w.c.w.who(p)
		if !ok || w.c.w.nodes[i].forgot || w.c.w.nodes[i].lied {
			continue // its signs of life may be none
		}
		if at, was := w.c.expired[w.id][i]; was && at > 0 && w.at-at < least {
			w.early(fmt.Sprintf("n%d was silent", i), least)
		}
		if a, told := w.c.absentThen[w.id][i]; told && !a.doubtful && w.at < a.until-2*time.Second {
			w.early(fmt.Sprintf("n%d had announced that it is away", i), a.until-a.at)
		}
	}
}

// own is the time-out of an attempt of the machine's own.
func (w *wait) own(a fact.AttemptID) {
	_, task := w.knew(0).HolderOf(a)
	if task == nil {
		return
	}
	if least := task.Timeout - w.c.waited(a); !w.knew(least).Clocked(a) {
		w.early(a.String()+" was ready or running", least)
	}
}

// ownPartition is the time-out of a partition of the machine's own: the time while
// one of its tasks was ready or running.
func (w *wait) ownPartition(p workflow.PartitionName) {
	part := w.partition(p)
	active, until := time.Duration(0), w.at
	for _, at := range w.moments(0) {
		if active < part.Timeout && w.knew(w.at-at).Active(part.Tasks) {
			active += until - at
		}
		until = at
	}
	if active < part.Timeout {
		w.early("a task of partition "+string(p)+" was ready or running", part.Timeout)
	}
}

// partition is one of the definition as the machine knew it: an amendment may have added it, or a task of it,
// or made it shorter, as one of its tasks stands in for another no more.
func (w *wait) partition(p workflow.PartitionName) *partition.Partition {
	return w.c.w.boundsOf(w.knew(0).Definition()).Partition(p)
}

// answer is the time-out of another's partition, by a node that waits for it.
func (w *wait) answer(p workflow.PartitionName, a fact.AttemptID) {
	part := w.partition(p)
	least := part.Timeout + min(max(part.Timeout/10, time.Second), 15*time.Second)
	triggers := w.triggersBefore(a.Slot, part.Tasks)
	for _, t := range triggers {
		if w.knew(0).Awaited(t) {
			least += w.c.w.task(t).TimeToWait
		}
	}
	then, since := w.knew(least), w.at-least-w.m.learned[w.f.Instance]
	for _, t := range triggers {
		if then.Awaited(t) && !w.knew(0).Awaited(t) {
			w.early("the wait for the trigger of "+string(t)+" was over", least)
		}
	}
	passed := part.Declared && w.knew(0).Answered(a, true) && then.OpenIn(a.Slot) // its time is that of the partition
	if !then.Open(a) && !passed {
		w.early(a.String()+" was unfinished", least)
	}
	worst := w.c.w.worstBefore(part.Tasks)
	if def := then.Definition(); def != w.c.w.def { // amendments may have had it be over earlier, for a while
		worst = min(worst, worstOf(def, w.c.w.boundsOf(def), part.Tasks))
	}
	if !then.EndedBefore(part.Tasks) && since < worst {
		w.early("what "+string(p)+" waits for had ended", least)
	}
	w.handedOver(a, least)
}

// triggersBefore are the emergency tasks of some tasks for which one of these waits, directly
// or not, itself included.
func (w *wait) triggersBefore(t workflow.TaskName, of []workflow.TaskName) (out []workflow.TaskName) {
	before := []workflow.TaskName{t}
	for i := 0; i < len(before); i++ {
		if w.c.w.task(before[i]).TimeToWait > 0 {
			out = append(out, before[i])
		}
		for _, p := range w.c.w.def.Predecessors(before[i]) {
			if slices.Contains(of, p) && !slices.Contains(before, p) {
				before = append(before, p)
			}
		}
	}
	return out
}

// worstBefore is by when all has ended elsewhere, at the latest, that tasks wait for.
func (w *world) worstBefore(tasks []workflow.TaskName) time.Duration {
	return worstOf(w.def, w.bounds, tasks)
}

// worstOf is that by a definition. What it does not have keeps nobody waiting.
func worstOf(def *workflow.Definition, bounds *partition.Plan, tasks []workflow.TaskName) (worst time.Duration) {
	waits := func(t workflow.TaskName) {
		end, ok := bounds.WorstEnd(t)
		if worst = max(worst, end); !ok {
			worst = math.MaxInt64
		}
	}
	for _, name := range tasks {
		t := def.Task(name)
		if t == nil {
			continue
		}
		for _, p := range def.Predecessors(name) {
			if !slices.Contains(tasks, p) {
				waits(p)
			}
		}
		t.Rule.Terms(func(r *workflow.Rule) {
			if r.Op != workflow.OpData {
				return
			}
			for _, n := range r.Data.Names() {
				for _, x := range def.Writers(n) {
					if !slices.Contains(tasks, x) {
						waits(x)
					}
				}
			}
		})
	}
	return worst
}

// contingency is the time-out of another's attempt that somebody was found for.
func (w *wait) contingency(a fact.AttemptID) {
	total, ok := w.mayTake(a)
	if !ok {
		return
	}
	least := total + min(max(total/10, time.Second), 15*time.Second) - w.c.waited(a)
	if !w.knew(least).Began(a) {
		w.early(a.String()+" was ready or running", least)
	}
	w.handedOver(a, least)
}

// mayTake is how long another's attempt may take by itself: its time-out, else that of the
// partition whose author gave it one. Nobody may judge by time what may take for ever.
func (w *wait) mayTake(a fact.AttemptID) (long time.Duration, ok bool) {
	then := w.knew(0)
	_, task := then.HolderOf(a)
	if task == nil {
		return 0, false
	}
	home := w.c.w.bounds.Partition(w.c.w.bounds.Home(a.Slot))
	if long = task.Timeout; long == 0 && home != nil && then.Answered(a, home.Declared) {
		long = home.Timeout
	}
	if long == 0 {
		w.c.w.violate("time: n%d's %s of %s: %s may take for ever", w.m.i, said(w.f), w.f.Instance.String()[:8], a)
	}
	return long, long > 0
}

// readiness is the wait for word that another's attempt, that somebody was found for, is
// ready: as long as its rule holds, or the wait of its trigger has begun. It begins again
// when that was not so for a while.
func (w *wait) readiness(a fact.AttemptID) {
	total, ok := w.mayTake(a)
	if !ok {
		return
	}
	trigger := w.c.w.task(a.Slot).TimeToWait
	least := total + trigger
	least += min(max(least/10, time.Second), 15*time.Second)
	should := func(m *meaning.Meaning, at time.Duration) bool {
		waits := trigger > 0 && (m.Armed(a.Slot) || at-w.m.learned[w.f.Instance] >= w.waitStart(m, a.Slot))
		return waits || m.RuleHolds(a)
	}
	if !w.throughout(least, should) {
		w.early(a.String()+" should have been ready", least)
	}
	if trigger > 0 && w.knew(least).Armed(a.Slot) {
		w.toldBegun(a, least)
		return
	}
	w.handedOver(a, least)
}

// handedOver checks that the holder of an attempt had heard of what made it ready, or
// had left that without acknowledgement for as long as it takes a partner to expire.
func (w *wait) handedOver(a fact.AttemptID, least time.Duration) {
	w.told(a, least, w.knew(least).Heard(a))
}

// told checks that of facts.
func (w *wait) told(a fact.AttemptID, least time.Duration, facts []fact.ID) {
	holder := w.holder(a, least)
	if holder == nil {
		return
	}
	for _, id := range facts {
		at, has := holder.arrived[id]
		if !(has && at <= w.at-least) && w.m.arrived[id] > w.at-least-w.silence() {
			w.early(fmt.Sprintf("n%d had heard of what made %s ready", holder.i, a), least)
		}
	}
}

// toldBegun checks that the holder of an attempt that waits for its trigger had heard that this wait has begun, or had
// left that without acknowledgement as long. What ends while it waits begins nothing.
func (w *wait) toldBegun(a fact.AttemptID, least time.Duration) {
	then := w.knew(least)
	w.told(a, least, then.Heard(a)[:1])
	holder := w.holder(a, least)
	if holder == nil || w.at-least-w.m.learned[w.f.Instance] >= w.waitStart(then, a.Slot) ||
		w.knew(least+w.silence()).Armed(a.Slot) {
		return
	}
	heard := w.h.Known(w.id, func(id factID) bool { at, has := holder.arrived[id]; return has && at <= w.at-least })
	if !heard.Armed(a.Slot) {
		w.early(fmt.Sprintf("n%d had heard that a task before %s was ready", holder.i, a.Slot), least)
	}
}

// holder is the machine that held an attempt so long before; nil: it forgot what it had heard.
func (w *wait) holder(a fact.AttemptID, before time.Duration) *machine {
	p, _ := w.knew(before).HolderOf(a)
	if i, ok := w.c.w.who(p); ok && !w.c.w.nodes[i].forgot {
		return w.c.w.nodes[i]
	}
	return nil
}

// silence is for how long a partner that lives may acknowledge nothing.
func (w *wait) silence() time.Duration { return min(w.c.w.plan.ConnectionTime, time.Hour) }

// trigger is the wait of an emergency task: from when a task before it is known to be
// ready, at the latest from the worst case.
func (w *wait) trigger(t workflow.TaskName) {
	least := w.c.w.task(t).TimeToWait
	armed := func(m *meaning.Meaning) bool { return m.Armed(t) }
	if w.at-least-w.m.learned[w.f.Instance] < w.waitStart(w.knew(least), t) && !w.everKnew(least, armed) {
		w.early("a task before "+string(t)+" was ready", least)
	}
}

// waitStart is by when a task before an emergency task is ready, at the latest, counted from when the instance is known.
// Amendments may have it be so earlier, for a while.
func (w *wait) waitStart(knew *meaning.Meaning, t workflow.TaskName) time.Duration {
	worst, _ := w.c.w.bounds.WaitStart(t)
	if def := knew.Definition(); def != w.c.w.def && def.Task(t) != nil {
		amended, _ := partition.New(def).WaitStart(t)
		worst = min(worst, amended)
	}
	return worst
}
