package choreo

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/contingency/waits"
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
func (m *Machine) mayJudge(p workflow.PartitionName) []*state.Attempt {
	known := waiting{m: m, in: p, slots: map[*state.Slot]bool{}, stuck: map[state.Name]int{}}
	return slices.DeleteFunc(m.unfinishedIn(p), func(a *state.Attempt) bool { return known.waits(a.Slot) })
}

// mayWait reports whether some of a partition's unfinished tasks may be known to wait for
// what is clocked elsewhere: of a contingency that is possible at any time, else only where
// the clock began in the worst case, before all had ended that the partition waits for.
func (m *Machine) mayWait(p workflow.PartitionName) bool {
	return m.state.Contested() || m.before(p).before > 0
}

// keptForEver reports whether a partition of another may be kept for ever: one of its
// tasks may take for ever, or may wait for ever for others. It is not clocked as a whole.
func (m *Machine) keptForEver(p workflow.PartitionName) bool {
	if m.state.Plan().Timeout(p) == 0 {
		return true
	}
	part := m.before(p)
	return part.before > 0 && part.worst == forEver
}

// single is how long the attempt in charge of a slot at another may take where it is
// clocked by itself; 0: it is not, or may take for ever. A clock that runs already goes on
// when its partition may be kept for ever no more: that begins the time of the others in it.
func (m *Machine) single(sl *state.Slot) time.Duration {
	a := sl.Current
	if a.Depth > 1 && a.Task.Timeout > 0 || m.clocks.byItself(a.ID) ||
		m.keptForEver(m.state.Plan().Home(sl.Task.Name)) {
		return m.state.MayTake(a)
	}
	return 0
}

// waiting finds out what is known to wait, for the clock of one partition. A slot
// waits while nobody can take its contingency, while a clock here runs for it that
// is not this partition's, and while its rule cannot hold before others that
// wait. The others may have gone on, for all that is known here.
type waiting struct {
	m     *Machine
	in    workflow.PartitionName
	slots map[*state.Slot]bool
	// stuck is how many of the slots of a name, from the first, are not about to end.
	stuck map[state.Name]int
}

func (w *waiting) waits(sl *state.Slot) bool {
	known, ok := w.slots[sl]
	if !ok {
		w.slots[sl] = false // what waits for itself holds nobody up
		known = w.find(sl)
		w.slots[sl] = known
	}
	return known
}

func (w *waiting) find(sl *state.Slot) bool {
	home := w.m.state.Plan().Home(sl.Task.Name)
	switch a := sl.Current; {
	case sl.Pick != nil:
		return false
	case sl.Pending != nil:
		return true
	case sl.State.Done():
		return false
	case sl.State == workflow.NotReady && sl.Task.TimeToWait == 0:
		return !w.mayHold(sl, sl.Task.Rule)
	case a.Depth > 1 && !w.m.state.CountsIn(w.in, a):
		return true // also for its trigger
	case sl.State == workflow.NotReady:
		return false
	case home != w.in:
		return a.Partner == w.m.self || w.m.clocks.answering(home) || w.m.single(sl) > 0
	}
	return false
}

// mayHold reports whether a slot's rule may hold by now, as far as is known here.
func (w *waiting) mayHold(sl *state.Slot, r *workflow.Rule) bool {
	may, released := w.termMayHold(sl, r)
	return may || released
}

// termMayHold is mayHold for a part of a rule; released: it counts no more.
func (w *waiting) termMayHold(sl *state.Slot, r *workflow.Rule) (may, released bool) {
	w.m.log.Steps++
	v := state.View{S: w.m.state, Of: sl}
	switch {
	case r == nil:
		return true, false
	case r.Op == workflow.OpData:
		may = v.DataTerm(r.Data).Truth != workflow.Undecided || len(r.Data.Ages()) > 0
		for _, n := range r.Data.Names() {
			may = may || w.anyMoves(sl, state.Name{Data: n})
		}
		return may, false
	case r.Op == workflow.OpTask:
		f := v.TaskTerm(r.Transition, r.Task)
		return f.Truth != workflow.Undecided || w.anyMoves(sl, state.Name{Task: r.Task}), f.Dropped
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

// anyMoves reports whether one of the slots that are meant by a name, other than sl, may
// be about to end. Those that are not are passed over the next time.
func (w *waiting) anyMoves(sl *state.Slot, by state.Name) bool {
	slots := w.m.meant(by)
	for i := w.stuck[by]; i < len(slots); i++ {
		w.m.log.Steps++
		x := slots[i]
		switch moves := !x.State.Done() && !w.waits(x); {
		case moves && x != sl:
			return true
		case !moves && i == w.stuck[by]:
			w.stuck[by]++
		}
	}
	return false
}

// meant are the slots that are meant by a name: which the task may fill, or whose tasks
// may write the data item. Each is found once.
func (m *Machine) meant(by state.Name) []*state.Slot {
	if by.Data == "" {
		return m.state.SlotsOf(by.Task)
	}
	d := m.look()
	slots, known := d.writers[by.Data]
	if !known {
		in := map[*state.Slot]bool{}
		for _, t := range m.state.Definition().Writers(by.Data) {
			for _, sl := range m.state.SlotsOf(t) {
				if m.log.Steps++; !in[sl] {
					in[sl] = true
					slots = append(slots, sl)
				}
			}
		}
		d.writers[by.Data] = slots
	}
	return slots
}

// forEver is when something is done that may never be.
const forEver = time.Duration(math.MaxInt64)

// before is a partition with what of others its tasks wait for, directly or for data.
func (m *Machine) before(p workflow.PartitionName) *partDesk {
	part := m.look().part(p)
	if part.awaits {
		return part
	}
	part.awaits = true
	for _, t := range m.state.Plan().Partition(p).Tasks {
		for n := range m.state.NamesFor(t) {
			m.log.Steps++
			if w := m.await(n); w.by[p] == nil {
				w.by[p] = part
				part.before += state.AsInt(w.holdsUp(p))
				part.worst = max(part.worst, w.worst(p))
			}
		}
	}
	return part
}

// await is what is kept of a name.
func (m *Machine) await(n state.Name) *awaited {
	d := m.look()
	w := d.names[n]
	if w != nil {
		return w
	}
	w = &awaited{left: map[workflow.PartitionName]int{}, by: map[workflow.PartitionName]*partDesk{}}
	d.names[n] = w
	for _, sl := range m.meant(n) {
		m.log.Steps++
		d.awaited[sl] = append(d.awaited[sl], w)
		home := m.state.Plan().Home(sl.Task.Name)
		if !sl.Shown.Done {
			w.count(home, +1, &m.log.Steps)
		}
		end, known := m.state.Plan().WorstEnd(sl.Task.Name)
		if !known {
			end = forEver
		}
		w.ends(home, end)
	}
	return w
}

// handedOver reports whether attempts at others may be clocked under a key: their
// holders are known to have heard of what made them ready, or have neither expired
// nor acknowledged it for a whole connectionTime. A partner that lives has met
// somebody within that, who had it too. It begins again when there is more to hear of.
func (d *decision) handedOver(k waits.Key, as []*state.Attempt, later time.Duration) bool {
	unheard, last := d.unheard(as, k.Kind == waits.Readiness)
	if len(unheard) == 0 {
		return true
	}
	bound := time.Duration(0)
	for _, a := range unheard {
		bound = max(bound, min(d.partners.ConnectionTime(a.Partner), maxHandOver))
	}
	k = k.HandOver()
	if c := d.clocks.Get(k); c != nil && last >= c.Known {
		d.clocks.Drop(k)
	}
	t, c := d.clocks.Run(k, true, d.now.Boot), d.clocks.Get(k)
	c.Known = d.log.Len()
	if d.over(t, bound, true) {
		return true
	}
	switch {
	case c.Note.asked || later > waits.GuardianTimeout:
	case t < askAfter:
		d.out.wake(d.now.Boot + askAfter - t)
	default:
		c.Note.asked = true
		for _, a := range unheard {
			d.ask(a.Partner)
		}
	}
	return false
}

// unheard are those of the attempts of which it is not known that their holders have
// the facts that gave them to them, and those that ended what their slots wait for; of
// those that are not ready yet, also one by which the wait of their triggers began. last
// is the place of the newest such fact.
func (m *Machine) unheard(as []*state.Attempt, notReady bool) (out []*state.Attempt, last int) {
	if m.hearing.ends == nil {
		m.hearing = hearing{ends: map[state.Name][]*log.Entry{}, lacks: map[heard]int{}}
	}
	for _, a := range as {
		lacks := max(m.lack(a.Partner, a.Assigned), m.lacksOf(a.Partner, a.Slot.Task.Name))
		if notReady && a.Slot.Task.TimeToWait > 0 && !a.Slot.RuleHolds() {
			lacks = max(lacks, m.lacksBegun(a.Partner, a.Slot))
		}
		if lacks != heardAll {
			out = append(out, a)
		}
		last = max(last, lacks)
	}
	return out, last
}

// heardAll is instead of the place of a fact that a partner may lack: there is none.
const heardAll = -1

// lacksOf is the place of the newest of the facts that ended what a task waits for, and
// that a partner is not known to have; heardAll: it has them.
func (m *Machine) lacksOf(p workflow.PartnerID, t workflow.TaskName) int {
	last := heardAll
	for n := range m.state.NamesFor(t) {
		m.log.Steps++
		key := heard{p, n}
		lacks, known := m.hearing.lacks[key]
		if !known {
			lacks = heardAll
			for _, e := range m.ends(n) {
				m.log.Steps++
				lacks = max(lacks, m.lack(p, e))
			}
			m.hearing.lacks[key] = lacks
		}
		last = max(last, lacks)
	}
	return last
}

// lacksBegun is the place of the oldest of the facts by which one of a slot's predecessors
// is known to be ready, where a partner is not known to have any of them; heardAll: it has
// one, so the wait of the slot's trigger has begun for it.
func (m *Machine) lacksBegun(p workflow.PartnerID, sl *state.Slot) int {
	oldest := heardAll
	for _, t := range m.state.Definition().Predecessors(sl.Task.Name) {
		for _, from := range m.state.SlotsOf(t) {
			m.log.Steps++
			if from.State == workflow.NotReady {
				continue
			}
			lacks := m.lacksReady(p, from)
			if lacks == heardAll {
				return heardAll
			}
			if oldest == heardAll || lacks < oldest {
				oldest = lacks
			}
		}
	}
	return oldest
}

// lacksReady is the place of a fact by which a slot is known to be ready, running or
// finished, and that a partner is not known to have; heardAll: it has it.
func (m *Machine) lacksReady(p workflow.PartnerID, sl *state.Slot) int {
	for _, a := range sl.Attempts {
		for _, e := range []*log.Entry{a.Ready, a.Start} {
			if e != nil {
				return m.lack(p, e)
			}
		}
	}
	if e := sl.Ended(); e != nil {
		return m.lack(p, e)
	}
	return max(m.lack(p, sl.Current.Assigned), m.lacksOf(p, sl.Task.Name)) // its rule holds
}

// lack is the place of a fact that a partner is not known to have, else heardAll.
func (m *Machine) lack(p workflow.PartnerID, e *log.Entry) int {
	if m.knows(p, e) {
		return heardAll
	}
	return e.Index
}

// ends are of each strand the last of the facts that ended the slots of a name: a node
// that has it has those before it.
func (m *Machine) ends(n state.Name) []*log.Entry {
	es, known := m.hearing.ends[n]
	if known {
		return es
	}
	last := map[*log.Strand]*log.Entry{}
	for _, sl := range m.meant(n) {
		m.log.Steps++
		if e := sl.Ended(); e != nil && (last[e.Strand] == nil || last[e.Strand].Fact.Seq < e.Fact.Seq) {
			last[e.Strand] = e
		}
	}
	es = slices.Collect(maps.Values(last))
	m.hearing.ends[n] = es
	return es
}

// knows reports whether a partner is known to have a fact: it said so, or a fact
// of its own was written after it.
func (m *Machine) knows(p workflow.PartnerID, e *log.Entry) bool {
	if e == nil || p == m.self || e.Fact.Chain.Author == p {
		return true
	}
	pr := m.peer(p)
	if pr.acked.At(e.Strand.Place) >= e.Fact.Seq {
		return true
	}
	return slices.ContainsFunc(m.log.ByAuthor()[p], func(c *log.Chain) bool {
		if pr.incarnation != (fact.Incarnation{}) && c.ID.Incarnation != pr.incarnation {
			return false // what it forgot since
		}
		return slices.ContainsFunc(c.Strands, func(s *log.Strand) bool { return m.log.Knew(s.Last(), e) })
	})
}

// unfinishedOf are the current attempts of a partner that nobody has judged, in
// rule order.
func (m *Machine) unfinishedOf(p workflow.PartnerID) (out []*state.Attempt) {
	m.look()
	for _, sl := range m.state.Slots() {
		if m.log.Steps++; sl.Shown.Unjudged == p {
			out = append(out, sl.Current)
		}
	}
	return out
}

// unfinishedIn are those in a partition.
func (m *Machine) unfinishedIn(p workflow.PartitionName) (out []*state.Attempt) {
	m.look()
	for _, t := range m.state.Plan().Partition(p).Tasks {
		m.log.Steps++
		if sl := m.state.BySlot()[t]; sl != nil && sl.Shown.Answers {
			out = append(out, sl.Current)
		}
	}
	slices.SortFunc(out, func(a, b *state.Attempt) int { return a.Slot.Place - b.Slot.Place })
	return out
}

// working are the slots of those attempts whose time counts. While a trigger is
// waited for that does not count as work: when it fires the time begins again, of what
// comes after it in the partition, too, and where it has ended before this node heard of it.
func working(as []*state.Attempt) map[workflow.TaskName]bool {
	of := make(map[workflow.TaskName]bool, len(as))
	for _, a := range as {
		if a.Slot.Task.TimeToWait == 0 || a.Slot.Begun() {
			of[a.Slot.Task.Name] = true
		}
	}
	return of
}
