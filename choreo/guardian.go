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
	w.m.log.steps++
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

// before is a partition with what of others its tasks wait for, directly or for data.
func (m *Machine) before(p workflow.PartitionName) *partDesk {
	d := m.look()
	part := d.part(p)
	if part.awaits {
		return part
	}
	part.awaits = true
	in := map[*Slot]bool{}
	add := func(sl *Slot) bool {
		m.log.steps++
		if in[sl] || m.state.plan.Home(sl.Task.Name) == p {
			return true
		}
		in[sl] = true
		d.awaited[sl] = append(d.awaited[sl], part)
		part.before += one(!sl.shown.done)
		end, known := m.state.plan.WorstEnd(sl.Task.Name)
		part.worst, part.forEver = max(part.worst, end), part.forEver || !known
		return true
	}
	all := awaited{m: m, whether: add, known: map[any]bool{}}
	for _, t := range m.state.plan.Partition(p).Tasks {
		all.by(t)
	}
	return part
}

// awaited asks whether something is so of all slots that tasks wait for, and of those
// that may write data that they wait for. What many tasks wait for is asked for once.
type awaited struct {
	m       *Machine
	whether func(*Slot) bool
	known   map[any]bool // of tasks and of data, by name
}

func (w *awaited) by(t workflow.TaskName) bool {
	def := w.m.state.def
	all := true
	for _, pred := range def.Predecessors(t) {
		all = all && w.of(pred, pred)
	}
	def.Task(t).Rule.Terms(func(r *workflow.Rule) {
		if r.Op != workflow.OpData {
			return
		}
		for _, n := range r.Data.Names() {
			all = all && w.of(n, def.Writers(n)...)
		}
	})
	return all
}

// of asks it of the slots of the tasks that are meant by a name.
func (w *awaited) of(name any, ts ...workflow.TaskName) bool {
	w.m.log.steps++
	is, known := w.known[name]
	if !known {
		is = !slices.ContainsFunc(ts, func(t workflow.TaskName) bool {
			return slices.ContainsFunc(w.m.state.slotsOf(t), func(sl *Slot) bool { return !w.whether(sl) })
		})
		w.known[name] = is
	}
	return is
}

// handedOver reports whether attempts at others may be clocked under a key: their
// holders are known to have heard of what made them ready, or have neither expired
// nor acknowledged it for a whole connectionTime. Whoever lives has met somebody
// within that, who had it too.
func (m *Machine) handedOver(
	k WaitKey, as []*Attempt, later time.Duration, now Moment, partners Partners, r *Ready,
) bool {
	unheard := m.unheard(as)
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

// unheard are those of the attempts of which it is not known that their holders have
// the facts that gave them to them, and those that ended what their slots wait for.
func (m *Machine) unheard(as []*Attempt) (out []*Attempt) {
	heard := map[workflow.PartnerID]*awaited{}
	for _, a := range as {
		w := heard[a.Partner]
		if w == nil {
			w = &awaited{m: m, known: map[any]bool{}}
			w.whether = func(sl *Slot) bool {
				m.log.steps++
				return m.knows(a.Partner, sl.ended())
			}
			heard[a.Partner] = w
		}
		if !m.knows(a.Partner, a.assigned) || !w.by(a.Slot.Task.Name) {
			out = append(out, a)
		}
	}
	return out
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
