package choreo

import (
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file says what of another's work may be clocked and judged here: not what
// is known to wait for something else, and not what its holder has not heard of.

// askAfter is how long a judge waits for word of a hand-over that others made
// before it asks: shorter than a place in the succession is long, so that the
// places still judge one after the other.
const askAfter = 5 * time.Second

// maxHandOver bounds how long a partner that lives may leave a hand-over without
// acknowledgement, whatever connectionTime it gave itself.
const maxHandOver = time.Hour

// mayJudge are the unfinished attempts in another's partition, without those that
// are known to wait for something that is clocked elsewhere.
func (m *Machine) mayJudge(p workflow.PartitionName) []*Attempt {
	known := waiting{m: m, in: p, slots: map[*Slot]bool{}}
	return slices.DeleteFunc(m.unfinishedIn(p), func(a *Attempt) bool { return known.waits(a.Slot) })
}

// waiting finds out what is known to wait, for the clock of one partition. A slot
// waits while nobody can take its contingency, while a clock here runs for it that
// is not this partition's, and while its rule cannot hold before others that
// wait. The others may have gone on, for all that is known here.
type waiting struct {
	m     *Machine
	in    workflow.PartitionName
	slots map[*Slot]bool
}

func (w *waiting) waits(sl *Slot) bool {
	known, ok := w.slots[sl]
	if !ok {
		w.slots[sl] = false // what waits for itself holds nobody up
		known = w.find(sl)
		w.slots[sl] = known
	}
	return known
}

func (w *waiting) find(sl *Slot) bool {
	home := w.m.state.plan.Home(sl.Task.Name)
	switch a := sl.Current; {
	case sl.Pick != nil:
		return false
	case sl.Pending != nil:
		return true
	case sl.State.Done():
		return false
	case sl.State == workflow.NotReady:
		return sl.Task.TimeToWait == 0 && !w.mayHold(sl, sl.Task.Rule)
	case a.Depth > 1 && !w.m.countsIn(w.in, a):
		return true
	case home != w.in:
		return a.Partner == w.m.self || w.m.clocks.answering(home)
	}
	return false
}

// mayHold reports whether a slot's rule may hold by now, as far as is known here.
func (w *waiting) mayHold(sl *Slot, r *workflow.Rule) bool {
	may, released := w.termMayHold(sl, r)
	return may || released
}

// termMayHold is mayHold for a part of a rule; released: it counts no more.
func (w *waiting) termMayHold(sl *Slot, r *workflow.Rule) (may, released bool) {
	v := view{w.m.state, sl}
	switch {
	case r == nil:
		return true, false
	case r.Op == workflow.OpData:
		may = v.DataTerm(r.Data).Truth != workflow.Undecided || len(r.Data.Ages()) > 0 || w.anyMoves(sl, w.m.writers(r.Data))
		return may, false
	case r.Op == workflow.OpTask:
		f := v.TaskTerm(r.Transition, r.Task)
		return f.Truth != workflow.Undecided || w.anyMoves(sl, w.m.state.slotsOf(r.Task)), f.Dropped
	}
	some, all, left := false, true, false
	for _, x := range r.Args {
		if may, released := w.termMayHold(sl, x); !released {
			some, all, left = some || may, all && may, true
		}
	}
	if r.Op == workflow.OpOr {
		return some, !left
	}
	return all, !left
}

// anyMoves reports whether one of the slots, other than sl, may be about to end.
func (w *waiting) anyMoves(sl *Slot, from []*Slot) bool {
	return slices.ContainsFunc(from, func(x *Slot) bool { return x != sl && !x.State.Done() && !w.waits(x) })
}

// writers are the slots of the tasks that may write the data of an expression.
func (m *Machine) writers(e *workflow.Expr) (out []*Slot) {
	for _, n := range e.Names() {
		for _, w := range m.state.def.Writers(n) {
			out = append(out, m.state.slotsOf(w)...)
		}
	}
	return out
}

// before calls fn for each slot that a task waits for, or that may write the data
// that it waits for.
func (m *Machine) before(t workflow.TaskName, fn func(*Slot)) {
	for _, pred := range m.state.def.Predecessors(t) {
		for _, sl := range m.state.slotsOf(pred) {
			fn(sl)
		}
	}
	m.state.def.Task(t).Rule.Terms(func(r *workflow.Rule) {
		if r.Op == workflow.OpData {
			for _, sl := range m.writers(r.Data) {
				fn(sl)
			}
		}
	})
}

// crossing calls fn for each slot elsewhere that a task of the partition waits
// for, or that may write the data that it waits for.
func (m *Machine) crossing(p workflow.PartitionName, fn func(*Slot)) {
	for _, t := range m.state.plan.Partition(p).Tasks {
		m.before(t, func(sl *Slot) {
			if m.state.plan.Home(sl.Task.Name) != p {
				fn(sl)
			}
		})
	}
}

// handedOver reports whether attempts at others may be clocked under a key: their
// holders are known to have heard of what made them ready, or have neither expired
// nor acknowledged it for a whole connectionTime. Whoever lives has met somebody
// within that, who had it too.
func (m *Machine) handedOver(
	k WaitKey, as []*Attempt, later time.Duration, now Moment, partners Partners, r *Ready,
) bool {
	unheard := slices.DeleteFunc(slices.Clone(as), m.heardOf)
	if len(unheard) == 0 {
		return true
	}
	bound := time.Duration(0)
	for _, a := range unheard {
		bound = max(bound, min(partners.ConnectionTime(a.Partner), maxHandOver))
	}
	k = k.handOver()
	t := m.clocks.run(k, true, now.Boot)
	if m.over(t, bound, true, now, r) {
		return true
	}
	switch c := m.clocks.all[k]; {
	case c.asked || later > GuardianTimeout:
	case t < askAfter:
		r.wake(now.Boot + askAfter - t)
	default:
		c.asked = true
		for _, a := range unheard {
			if !slices.Contains(r.Ask, a.Partner) {
				r.Ask = append(r.Ask, a.Partner)
			}
		}
	}
	return false
}

// heardOf reports whether the holder of an attempt is known to have the fact that
// gave it to it, and those that ended what its slot waits for.
func (m *Machine) heardOf(a *Attempt) bool {
	heard := m.knows(a.Partner, a.assigned)
	m.before(a.Slot.Task.Name, func(sl *Slot) { heard = heard && m.knows(a.Partner, sl.ended()) })
	return heard
}

// ended is the fact that ended the slot; nil: none did yet.
func (sl *Slot) ended() *entry {
	switch {
	case sl.Pick != nil:
		return sl.Pick.success()
	case sl.Outcome != nil:
		return sl.Outcome.at
	}
	return nil
}

// knows reports whether a partner is known to have a fact: it said so, or a fact
// of its own was written after it.
func (m *Machine) knows(p workflow.PartnerID, e *entry) bool {
	if e == nil || p == m.self || e.fact.Chain.Author == p {
		return true
	}
	pr := m.peer(p)
	if pr.acked.at(e.strand.place) >= e.fact.Seq {
		return true
	}
	return slices.ContainsFunc(m.log.byAuthor[p], func(c *chain) bool {
		if pr.incarnation != (Incarnation{}) && c.id.Incarnation != pr.incarnation {
			return false // what it forgot since
		}
		return slices.ContainsFunc(c.strands, func(s *strand) bool { return m.log.knew(s.last(), e) })
	})
}
