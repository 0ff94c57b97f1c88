package choreo

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about who does what: what a choice is told of the work, what
// work a partner has in hand, and how a holder passes on what it does not want.
// How people's tasks find their performers is in perform.go.

// Rand draws numbers that follow from the work's chance.
func (w Work) Rand() *rand.Rand {
	return rand.New(rand.NewPCG(uint64(w.Chance*(1<<53)), 1))
}

// work says what a choice may want to know about tasks.
func (o outlook) work(tasks []workflow.TaskName, not workflow.PartnerID) Work {
	w := Work{
		Instance: o.log.Instance(), Plan: o.state.Plan(), Mechanism: o.Mechanism(), Tasks: tasks, Not: not,
		Data: maps.Clone(o.state.Values()), Performers: map[workflow.TaskName]worklist.User{}, Chance: o.now.Chance,
	}
	if len(o.state.Definition().Constraints) == 0 {
		return w // nobody asks
	}
	for _, sl := range o.state.Slots() {
		o.log.Steps++
		a := sl.Current
		if sl.Pick != nil {
			a = sl.Pick
		}
		if a.Start != nil || a.Success() != nil || a.Chosen() || o.claimed(a) {
			w.Performers[a.Task.Name] = o.state.PerformerOf(a)
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
	def := d.state.Definition()
	d.given = append(d.given, Holding{
		Partner: taker, Giver: d.self, Work: partition.WorkOfTasks(def.Name, t), Time: partition.Expected(def.Task(t)),
		Ready: true, Task: t,
	})
}

// assign records to whom an attempt goes on, and why. Only what is recorded, and counts, was
// given out.
func (d *decision) assign(b fact.Assign, annex *fact.Annex) error {
	e, err := d.append(fact.Body{Assign: &b, Annex: annex})
	if err == nil && e.Counted {
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
func (m *Machine) Mechanism() aptitude.Mechanism { return m.state.Mechanism() }

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
	if m.state.Overall() != workflow.InstanceRunning {
		return nil
	}
	var out []Holding
	d := m.look()
	for _, g := range m.state.Placements() {
		m.log.Steps++
		if p := d.part(g.Partition); p.holding > 0 {
			out = append(out, Holding{
				Partner: g.Partner, Giver: g.By.Fact.Chain.Author,
				Work: partition.WorkOf(m.state.Definition().Name, g.Partition),
				Time: p.expected, Ready: p.begun > 0, Partition: g.Partition,
			})
		}
	}
	for _, sl := range inOrder(d.apart) {
		m.log.Steps++
		a := sl.Current
		e := a.Assigned
		if a.Kept != nil {
			e = a.Kept
		}
		out = append(out, Holding{
			Partner: a.Partner, Giver: e.Fact.Chain.Author, Work: partition.WorkOfTasks(m.state.Definition().Name,
				a.Task.Name),
			Time: partition.Expected(a.Task), Ready: sl.State == workflow.Ready || sl.State == workflow.Running,
			Task: a.Task.Name,
		})
	}
	return out
}

// Begins works out how long it takes until holdings of the instance are expected to be
// ready: what they wait for takes the time that is expected of it.
func (m *Machine) Begins() func(Holding) time.Duration {
	plan := m.state.Plan()
	s := plan.Schedule(m.state.Ended)
	return func(h Holding) time.Duration {
		if h.Partition == "" {
			return s.Begins(h.Task)
		}
		return s.Begins(plan.Partition(h.Partition).Tasks...)
	}
}

// Took is the flow time of work that a partner held and that has ended: from the
// first start to the last end of its tasks by that partner, by its clock; 0 if it did
// none of it.
func (m *Machine) Took(h Holding) time.Duration {
	tasks := []workflow.TaskName{h.Task}
	if h.Partition != "" {
		tasks = m.state.Plan().Partition(h.Partition).Tasks
	}
	var began, ended int64
	for _, t := range tasks {
		for _, sl := range m.state.SlotsOf(t) {
			for _, a := range sl.Attempts {
				o, ok := m.state.Outcome(a)
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
	return state.Between(began, ended)
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
		return partition.Choice{}, fmt.Errorf("%w: %w", state.ErrNotNow, err)
	}
	w := d.work([]workflow.TaskName{t}, "")
	w.Rejected = append(d.state.Rejecters(a), d.self)
	if a.ToPerform() {
		w.Holder = d.self
	}
	c, err := d.choose(w)
	if err != nil && d.state.GivenToPerform(a) {
		if back, no := d.keeperOf(a, false); no == nil {
			c, err = back, nil
		}
	}
	if err != nil {
		return c, fmt.Errorf("%w: nobody else can take %s: %w", state.ErrNotNow, d.called(t), err)
	}
	annex := fact.Annex{Why: []fact.Why{fact.WhyOf(c, t)}, Rejected: fact.Clip(reason), Waited: d.waited(a)}
	return c, d.assign(fact.Assign{After: a.ID, Task: t, Partner: c.Partner}, &annex)
}

// keeperOf finds a partner that can be reached and keeps a person's task for the users with its role, where no partner
// with the role can take it: whoever has its partition, else the first at whose node one of them works, in the order in
// which the policy of the instance chooses people. Whoever has its partition also keeps it while none of them can be
// reached, if so is asked. The attempt is at this node, or at one that is gone.
func (d *decision) keeperOf(a *state.Attempt, anyhow bool) (partition.Choice, error) {
	t := a.Task
	var at []workflow.PartnerID
	for _, who := range d.state.Policy().Order(d.partners.People(t.Role)) {
		if !d.partners.HasRole(workflow.PartnerID(who.User), t.Role) { // no partner, of which all were asked
			at = append(at, d.partners.WorksAt(who.User)...)
		}
	}
	why := "users with role " + string(t.Role) + " can take it from there"
	keeper := d.state.Holders()[d.state.Plan().Home(t.Name)]
	switch {
	case keeper != "" && keeper != a.Partner && (len(at) > 0 || anyhow) && d.partners.Reachable(keeper):
		if len(at) == 0 {
			why = "it has the partition of the task"
		}
		return partition.Choice{Partner: keeper, Why: why}, nil
	case len(at) == 0:
		return partition.Choice{}, fmt.Errorf("nobody else with role %s can be reached", t.Role)
	}
	return partition.Choice{Partner: at[0], Why: why}, nil
}

// pinned says why a task that this node holds goes to nobody else: it was begun with its
// partition here, and the definition names that partition's partner. nil: it may go.
func (m *Machine) pinned(t workflow.TaskName) error {
	home := m.state.Plan().Home(t)
	here := func(g state.Placement) bool { return g.Partition == home && g.Partner == m.self }
	for _, p := range m.state.Definition().Partitions {
		if p.Name == home && p.Partner != "" && slices.ContainsFunc(m.state.Placements(), here) {
			return fmt.Errorf("partition %s goes to nobody else: its definition names its partner, %s", home, p.Partner)
		}
	}
	return nil
}

// notBegun finds the attempt of ours at task t that has not been started.
func (m *Machine) notBegun(t workflow.TaskName) (*state.Attempt, error) {
	x := m.state.Definition().Task(t)
	if x == nil {
		return nil, m.noTask(t)
	}
	if !m.heeded() {
		return nil, errUnheeded
	}
	err := fmt.Errorf("%w: %s is not needed", state.ErrNotNow, m.called(t))
	if x.Condition != nil {
		err = fmt.Errorf("%w: %s is fired by data states: it goes to another partner only with all of them",
			state.ErrNotNow, m.called(t))
	}
	var elsewhere error
	for _, sl := range m.state.DoneIn(t) {
		a := sl.Current
		switch {
		case a.Task.Name != t:
		case a.Partner != m.self:
			if !sl.State.Done() || elsewhere == nil {
				elsewhere = &Elsewhere{Task: m.called(t), Partner: a.Partner}
			}
		case m.movedOften(sl):
			err = fmt.Errorf("%w: %w", state.ErrNotNow, errMovedOften)
		case a.Start != nil || sl.State.Done() || !m.state.Wanted(a):
			err = fmt.Errorf("%w: %s is %s, only what has not been started can be rejected", state.ErrNotNow, m.called(t),
				sl.State)
		default:
			return a, nil
		}
	}
	return nil, cmp.Or(elsewhere, err)
}

// movedOften reports whether this node has found others for the work of a slot as often
// as one may. Its next fact will have seen all of them, also those of an earlier incarnation.
func (m *Machine) movedOften(sl *state.Slot) bool {
	return m.state.AtLeast(fact.MaxAttempts, len(sl.Attempts),
		func(i int) bool { return state.MovedBy(sl.Attempts[i], m.self) })
}

var errMovedOften = fmt.Errorf("this node has found others for it %d times, no more are taken", fact.MaxAttempts)

// reasoned is an annex with those reasons that say something; nil: none does.
func reasoned(why ...fact.Why) *fact.Annex {
	why = slices.DeleteFunc(why, func(w fact.Why) bool { return w.Reason == "" })
	if len(why) == 0 {
		return nil
	}
	return &fact.Annex{Why: fact.Brief(why)}
}
