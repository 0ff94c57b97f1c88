package choreo

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about who does what: what a choice is told of the work, what
// work a partner has in hand, and how a holder passes on what it does not want.
// How people's tasks find their performers is in perform.go.

// Work is a piece of work of an instance that somebody must be found for.
type Work struct {
	Instance workflow.InstanceID
	Plan     *partition.Plan
	// Mechanism is the allocation mechanism of the instance.
	Mechanism aptitude.Mechanism
	Tasks     []workflow.TaskName // one partner takes them all
	Not       workflow.PartnerID  // the one that failed it: rather another
	Rejected  []workflow.PartnerID
	Only      workflow.PartnerID // nobody else is asked; empty: all are
	// Holder is, of a person's task that can begin, the partner that holds it and seeks
	// somebody who has its role and can be reached now; empty: other work.
	Holder workflow.PartnerID
	// CanWait: it waits on at its holder where nobody is found.
	CanWait bool
	Data    map[workflow.DataName]workflow.Value
	// Performers are, by task, who performs or performed it as far as is known: the person
	// who took it from a worklist, or else the partner that does it or was chosen to.
	Performers map[workflow.TaskName]worklist.User
	// Chance is in [0, 1), for a choice by lot.
	Chance float64
	// Given is what this node gave out of the same instance just before, and nobody was
	// told yet: what new work is weighed against, as well. From one choice of a decision to
	// the next it grows, unless what the first was for could not be recorded.
	Given []Holding
}

// Rand draws numbers that follow from the work's chance.
func (w Work) Rand() *rand.Rand {
	return rand.New(rand.NewPCG(uint64(w.Chance*(1<<53)), 1))
}

// work says what a choice may want to know about tasks.
func (o outlook) work(tasks []workflow.TaskName, not workflow.PartnerID) Work {
	w := Work{
		Instance: o.log.instance, Plan: o.state.plan, Mechanism: o.Mechanism(), Tasks: tasks, Not: not,
		Data: maps.Clone(o.state.values), Performers: map[workflow.TaskName]worklist.User{}, Chance: o.now.Chance,
	}
	if len(o.state.def.Constraints) == 0 {
		return w // nobody asks
	}
	for _, sl := range o.state.slots {
		o.log.steps++
		a := sl.Current
		if sl.Pick != nil {
			a = sl.Pick
		}
		if a.start != nil || a.success() != nil || a.chosen() || o.claimed(a) {
			w.Performers[a.Task.Name] = o.state.performerOf(a)
		}
	}
	return w
}

// choose finds the partner that takes a piece of work, beside what was given out before it.
func (d *decision) choose(w Work) (partition.Choice, error) {
	w.Given = d.given
	return d.partners.Choose(w)
}

// give notes that a partner was given a task. What a mechanism gives out is weighed by the
// choices after it.
func (d *decision) give(t workflow.TaskName, taker workflow.PartnerID) {
	if d.Mechanism() == partition.PlainRule {
		return
	}
	def := d.state.def
	d.given = append(d.given, Holding{
		Partner: taker, Giver: d.self, Work: partition.WorkOfTasks(def.Name, t), Time: partition.Expected(def.Task(t)),
		Ready: true, Task: t,
	})
}

// assign records to whom an attempt goes on, and why. Only what is recorded, and counts, was
// given out.
func (d *decision) assign(b Assign, annex *Annex) error {
	e, err := d.append(Body{Assign: &b, Annex: annex})
	if err == nil && e.counted {
		d.give(b.Task, b.Partner)
	}
	return err
}

// Given hands out, once, what an event gave out: so it counts before Decide is asked, for
// the events that follow.
func (m *Machine) Given() []Holding {
	out := m.given
	m.given = nil
	return out
}

// Mechanism is the allocation mechanism of the instance.
func (m *Machine) Mechanism() aptitude.Mechanism { return m.state.mechanism() }

// of finds why a partition, or a task by itself, came to its partner.
func (a *Annex) of(p workflow.PartitionName, t workflow.TaskName) *Why {
	if a == nil {
		return nil
	}
	for i := range a.Why {
		if w := &a.Why[i]; (p != "" && w.Partition == p) || (p == "" && slices.Contains(w.Tasks, t)) {
			return w
		}
	}
	return nil
}

// drop marks the slots of tasks that the genesis says are not needed, unless
// the definition needs them for more than their data set.
func (s *State) drop() {
	annex := s.log.genesis.fact.Body.Annex
	if annex == nil {
		return
	}
	for i := range annex.Dropped {
		d := &annex.Dropped[i]
		sl := s.bySlot[d.Task]
		if sl == nil || sl.Task.Produces.Name != d.DataSet {
			continue
		}
		if ok, _ := partition.Droppable(s.def, sl.Task); ok {
			sl.Dropped = d
		}
	}
}

// why is how an attempt that was assigned by itself came to its partner, why its holder
// keeps it, or how those were weighed to whom it was offered.
func (a *Attempt) why() *Why {
	e := a.assigned
	switch {
	case a.kept != nil:
		e = a.kept
	case a.weighed != nil && !a.given():
		e = a.weighed
	}
	return e.fact.Body.Annex.of("", a.Task.Name)
}

// byItself reports whether somebody was chosen for the attempt alone, and not for
// a partition.
func (a *Attempt) byItself() bool { return a.Depth > 1 || a.kept != nil }

// Holding is unfinished work that a partner holds.
type Holding struct {
	Partner workflow.PartnerID
	// Giver chose the partner, or had the last word of it.
	Giver workflow.PartnerID
	Work  partition.Kind
	Time  time.Duration // that is expected to be left
	Ready bool          // it can be done now, or has begun; else it will be ready later
	// Partition is what it is; empty: Task.
	Partition workflow.PartitionName
	Task      workflow.TaskName
}

// InHand is the holding's time as work in hand.
func (h Holding) InHand() partition.InHand {
	if h.Ready {
		return partition.InHand{Ready: h.Time, All: h.Time}
	}
	return partition.InHand{All: h.Time}
}

// Same reports whether both are the same work with the same partner, at whatever stage.
func (h Holding) Same(o Holding) bool {
	return h.Partner == o.Partner && h.Partition == o.Partition && h.Task == o.Task && h.Work == o.Work
}

// Holdings are the unfinished work of the instance, by its holders.
func (m *Machine) Holdings() []Holding {
	if m.state.overall() != workflow.InstanceRunning {
		return nil
	}
	var out []Holding
	d := m.look()
	for _, g := range m.state.genesis.Assign {
		m.log.steps++
		if p := d.part(g.Partition); p.holding > 0 {
			out = append(out, Holding{
				Partner: g.Partner, Giver: m.log.genesis.fact.Chain.Author,
				Work: partition.WorkOf(m.state.def.Name, g.Partition),
				Time: p.expected, Ready: p.begun > 0, Partition: g.Partition,
			})
		}
	}
	for _, sl := range inOrder(d.apart) {
		m.log.steps++
		a := sl.Current
		e := a.assigned
		if a.kept != nil {
			e = a.kept
		}
		out = append(out, Holding{
			Partner: a.Partner, Giver: e.fact.Chain.Author, Work: partition.WorkOfTasks(m.state.def.Name, a.Task.Name),
			Time: partition.Expected(a.Task), Ready: sl.State == workflow.Ready || sl.State == workflow.Running,
			Task: a.Task.Name,
		})
	}
	return out
}

// Begins works out how long it takes until holdings of the instance are expected to be
// ready: what they wait for takes the time that is expected of it.
func (m *Machine) Begins() func(Holding) time.Duration {
	plan := m.state.plan
	s := plan.Schedule(m.state.ended)
	return func(h Holding) time.Duration {
		if h.Partition == "" {
			return s.Begins(h.Task)
		}
		return s.Begins(plan.Partition(h.Partition).Tasks...)
	}
}

// ended reports whether nothing more is expected of a task.
func (s *State) ended(t workflow.TaskName) bool {
	return !slices.ContainsFunc(s.slotsOf(t), func(sl *Slot) bool { return !sl.State.Done() })
}

// Took is the flow time of work that a partner held and that has ended: from the
// first start to the last end of its tasks by that partner, by its clock; 0 if it did
// none of it.
func (m *Machine) Took(h Holding) time.Duration {
	tasks := []workflow.TaskName{h.Task}
	if h.Partition != "" {
		tasks = m.state.plan.Partition(h.Partition).Tasks
	}
	var began, ended int64
	for _, t := range tasks {
		for _, sl := range m.state.slotsOf(t) {
			for _, a := range sl.Attempts {
				o, ok := m.state.outcome(a)
				if !ok || a.Partner != h.Partner {
					continue
				}
				if began == 0 || o.Began < began {
					began = o.Began
				}
				ended = max(ended, o.Ended)
			}
		}
	}
	return between(began, ended)
}

// InHand is the expected time of the unfinished work that this node holds.
func (m *Machine) InHand() time.Duration {
	return m.look().inHand
}

// Reject passes a task that this node holds, and has not started, on to another
// partner. A partner that rejected it is not asked again.
func (m *Machine) Reject(t workflow.TaskName, reason string, now Moment, partners Partners) (partition.Choice, error) {
	d := m.deciding(now, partners)
	a, err := d.notBegun(t)
	if err != nil {
		return partition.Choice{}, err
	}
	if err := d.taken(a); err != nil {
		return partition.Choice{}, err
	}
	if err := d.pinned(t); err != nil {
		return partition.Choice{}, fmt.Errorf("%w: %w", ErrNotNow, err)
	}
	w := d.work([]workflow.TaskName{t}, "")
	w.Rejected = append(d.state.rejecters(a), d.self)
	if a.toPerform() {
		w.Holder = d.self
	}
	c, err := d.choose(w)
	if err != nil {
		return c, fmt.Errorf("%w: nobody else can take %s: %w", ErrNotNow, t, err)
	}
	annex := Annex{Why: []Why{WhyOf(c, t)}, Rejected: clip(reason), Waited: d.waited(a)}
	return c, d.assign(Assign{After: a.ID, Task: t, Partner: c.Partner}, &annex)
}

// pinned says why a task that this node holds goes to nobody else: it was begun with its
// partition here, and the definition names that partition's partner. nil: it may go.
func (m *Machine) pinned(t workflow.TaskName) error {
	home := m.state.plan.Home(t)
	here := func(g Placement) bool { return g.Partition == home && g.Partner == m.self }
	for _, p := range m.state.def.Partitions {
		if p.Name == home && p.Partner != "" && slices.ContainsFunc(m.state.genesis.Assign, here) {
			return fmt.Errorf("partition %s goes to nobody else: its definition names its partner, %s", home, p.Partner)
		}
	}
	return nil
}

// notBegun finds the attempt of ours at task t that has not been started.
func (m *Machine) notBegun(t workflow.TaskName) (*Attempt, error) {
	x := m.state.def.Task(t)
	if x == nil {
		return nil, fmt.Errorf("%w: %s", ErrNoTask, t)
	}
	if !m.heeded() {
		return nil, errUnheeded
	}
	err := fmt.Errorf("%w: %s is not needed", ErrNotNow, t)
	if x.Condition != nil {
		err = fmt.Errorf("%w: %s is fired by data states: it goes to another partner only with all of them",
			ErrNotNow, t)
	}
	for _, sl := range m.state.slotsOf(t) {
		a := sl.Current
		switch {
		case a.Task.Name != t:
		case a.Partner != m.self:
			return nil, &Elsewhere{Task: t, Partner: a.Partner}
		case m.movedOften(sl):
			err = fmt.Errorf("%w: %w", ErrNotNow, errMovedOften)
		case a.start != nil || sl.State.Done() || !m.state.wanted(a):
			err = fmt.Errorf("%w: %s is %s, only what has not been started can be rejected", ErrNotNow, t, sl.State)
		default:
			return a, nil
		}
	}
	return nil, err
}

// movedOften reports whether this node has found others for the work of a slot as often
// as one may. Its next fact will have seen all of them, also those of an earlier incarnation.
func (m *Machine) movedOften(sl *Slot) bool {
	return m.state.atLeast(MaxAttempts, len(sl.Attempts), func(i int) bool { return movedBy(sl.Attempts[i], m.self) })
}

var errMovedOften = fmt.Errorf("this node has found others for it %d times, no more are taken", MaxAttempts)

// applyPass enters an assignment by which a holder passes its attempt on, or says
// that it keeps it.
func (s *State) applyPass(e *entry, a *Attempt, b *Assign) (why string) {
	switch {
	case a.beside() || a.Partner != e.fact.Chain.Author || !s.log.knew(e, a.assigned):
		return "no verdict asked for it, and its author does not hold the attempt"
	case b.Task != a.Task.Name:
		return "it passes something else on"
	case b.Partner == a.Partner:
		a.kept = earlier(a.kept, e)
		s.touch(a.Slot)
		return ""
	case s.movedOften(e, a.Slot):
		return movedOften
	}
	t := a.turning()
	t.passed = append(t.passed, s.addAttempt(e, a, nil, b.Task, b.Partner))
	s.touch(a.Slot)
	return ""
}

// takenOver is the attempt that the holder of a passed it on to, nil if to nobody.
func (s *State) takenOver(a *Attempt) *Attempt {
	if len(a.passed) == 0 {
		return nil
	}
	s.log.steps += len(a.passed)
	return slices.MinFunc(a.passed, func(x, y *Attempt) int { return s.byAuthority(x.assigned, y.assigned) })
}

// lastOf is the last of those that an attempt was passed on to, itself if to nobody.
func (s *State) lastOf(a *Attempt) *Attempt {
	for next := a; next != nil; next = s.takenOver(next) {
		a = next
	}
	return a
}

// passedOn reports whether the attempt came to its holder from the one before.
func (a *Attempt) passedOn() bool {
	b := a.assigned.fact.Body.Assign
	return b != nil && b.Verdict.IsZero()
}

// chosen reports whether the attempt's holder was chosen to perform it, and does not
// only hold it.
func (a *Attempt) chosen() bool { return a.kept != nil || a.passedOn() }

// rejecters are those that rejected an attempt until it came to a's holder. A
// partner that offers what came with a partition, or by a verdict, has not
// rejected it; one that gives on what was given to it has.
func (s *State) rejecters(a *Attempt) (out []workflow.PartnerID) {
	for a.passedOn() {
		b := &a.assigned.fact.Body
		before := s.attempts[b.Assign.After]
		if before.passedOn() || b.Annex == nil || !b.Annex.Offered {
			out = append(out, before.Partner)
		}
		a = before
	}
	return out
}
