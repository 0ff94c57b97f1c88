package choreo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about those who decide about an instance, and what follows from what they order:
// the responsible user, whom its genesis names by key, and administrators, by a role that the
// definition names and that their word proves (docs/worklists.md, Who decides).
//
// An order is a claim (claims.go): the person signs it, and the holder of the attempt writes it down,
// whatever kind of task it is. Then the holder carries it out:
//
//	again     the attempt failed, and nothing stands in for it: another attempt at the same task
//	          follows it, with the same holder. What follows a task that has failed waits again
//	stop      the attempt has failed, by its holder's verdict
//	continue  nothing: the question what becomes of a failure is answered
//	cancel    the instance is cancelled
//
// Each of these facts names its order, or comes after it; what was carried out is not once more.

// responsible is the user who decides about the instance.
func (s *State) responsible() worklist.User {
	if a := s.log.genesis.fact.Body.Annex; a != nil && a.Responsible != "" {
		return a.Responsible
	}
	return worklist.User(s.log.genesis.fact.Chain.Author)
}

// Responsible is the user who decides about the instance, by key: whom the genesis names, else
// its initiator, who is a user by being a partner.
func (m *Machine) Responsible() worklist.User { return m.state.responsible() }

// MayOrder reports whether a person with these roles may decide about the instance.
func (m *Machine) MayOrder(u worklist.User, roles []workflow.RoleName) bool {
	s := m.state
	return u == s.responsible() || s.def.Administrators != "" && slices.Contains(roles, s.def.Administrators)
}

// decides reports whether only those who decide about the instance say something.
func decides(body worklist.Body) bool {
	switch body.(type) {
	case worklist.Order, worklist.Adopt, worklist.Extend, worklist.Notify:
		return true
	}
	return false
}

// unhandled reports whether an attempt has failed, and nothing deals with that.
func (s *State) unhandled(a *Attempt) bool {
	sl := a.Slot
	return sl.Current == a && sl.Pick == nil && sl.Outcome != nil && sl.Outcome.action.Kind == workflow.FailBlock &&
		s.cancel == nil && !a.beside() && !s.handled(sl)
}

// failureOf is the verdict by which an attempt in charge failed; zero: it has not.
func failureOf(a *Attempt) worklist.ID {
	if sl := a.Slot; sl.Current == a && sl.Outcome != nil {
		return worklist.ID(sl.Outcome.at.id)
	}
	return worklist.ID{}
}

// answered reports whether somebody who may has decided what becomes of the failure of a slot.
func (s *State) answered(sl *Slot) bool {
	if s.peoples.board == nil || !s.peoples.board.Knows(itemOf(sl.Current.ID)) {
		return false
	}
	s.placeItem(sl.Current)
	return s.peoples.board.Answered(itemOf(sl.Current.ID))
}

// Asked is a failure of which somebody has to decide what becomes of it.
type Asked struct {
	Slot, Task workflow.TaskName
	Partner    workflow.PartnerID // who holds it
	// Presumed: its holder has not said so, and may go on with it.
	Presumed bool
	// Left: somebody has left it so, and what waits for it is blocked: it can still be done once more.
	Left bool
}

// Asks are the failures that wait for an order, in rule order; in an instance that is blocked also those
// of which that was decided. It costs as much as there are failures.
func (m *Machine) Asks() (out []Asked) {
	s := m.state
	blocked := s.overall() == workflow.InstanceBlocked
	for _, sl := range inOrder(s.failures) {
		a := sl.Current
		left := s.answered(sl)
		if s.unhandled(a) && (!left || blocked && a.endedByHolder()) {
			out = append(out, Asked{sl.Task.Name, a.Task.Name, a.Partner, !a.endedByHolder(), left})
		}
	}
	return out
}

// Ordered is the attempt that an order about a task is about, and who holds it. A task that is only a
// contingency has the attempts at it. The error says why there is none.
func (m *Machine) Ordered(t workflow.TaskName) (worklist.Item, workflow.PartnerID, error) {
	switch x := m.state.def.Task(t); {
	case x == nil && t == workflow.FlowTask:
		return worklist.Item{}, "", fmt.Errorf("%w: the instance is not driven by its data, so no method recovers it",
			ErrNotNow)
	case x == nil:
		return worklist.Item{}, "", fmt.Errorf("%w: %s", ErrNoTask, t)
	case x.Condition != nil:
		return worklist.Item{}, "", fmt.Errorf("%w: %s is fired by data states: what it comes to is recovered, and nothing else is decided about it", ErrNotNow, t)
	}
	for _, sl := range m.state.slotsOf(t) {
		a := sl.Current
		if sl.Pick != nil { // what counts, of which it can be ordered that it be undone
			a = sl.Pick
		}
		if sl.Task.Name == t || a.Task.Name == t {
			return itemOf(a.ID), a.Partner, nil
		}
	}
	return worklist.Item{}, "", fmt.Errorf("%w: %s is not needed", ErrNotNow, t)
}

// HeldBy is the grant by which somebody has an item; zero: nobody has.
func (m *Machine) HeldBy(i worklist.Item) worklist.ID {
	if !m.Claims() {
		return worklist.ID{}
	}
	h, _ := m.state.peoples.board.Holds(i)
	return h.Grant
}

// mayDecide is the refusal of a person who does not decide about the instance; nil: the person does.
func (s *State) mayDecide(i worklist.Item, p worklist.Person) error {
	if s.work().MayOrder(p.User, p.Roles) == "" {
		return nil
	}
	return &worklist.Refusal{
		Item: i, Why: worklist.NotDeciding, By: s.responsible(),
		Text: "you answer neither for the instance nor for all of its workflow",
	}
}

// order writes down what somebody decides, who may. What follows from it is for Decide.
func (d *decision) order(c *Claim, x worklist.Order, p worklist.Person, before bool) (Claimed, error) {
	if err := d.state.mayDecide(x.Item, p); err != nil {
		return Claimed{}, err
	}
	if before { // the answer was lost
		return Claimed{Already: true}, nil
	}
	if err := d.mayOrder(x); err != nil {
		return Claimed{}, err
	}
	if x.What != worklist.Cancel {
		if err := d.mayOrderMore(d.state.orderTakes(c, x), p.User); err != nil {
			return Claimed{}, err
		}
	}
	if x.Item.Slot != "" {
		if err := d.mayBeSaid(x.Item, mostWords(x)); err != nil {
			return Claimed{}, err
		}
	}
	_, err := d.append(Body{Claim: c})
	return Claimed{}, err
}

// mayOrder says why nothing would follow from an order; nil: something does.
func (d *decision) mayOrder(x worklist.Order) error {
	if x.What == worklist.Cancel {
		if s := d.state.overall(); !cancellable(s) {
			return fmt.Errorf("%w: the instance is %s already", ErrNotNow, s)
		}
		return nil
	}
	a := d.state.attempts[attemptIDOf(x.Item)]
	if x.What == worklist.Recover {
		return d.mayRecover(a, x)
	}
	sl, t := a.Slot, a.Task.Name
	if x.What == worklist.Undo {
		return d.state.mayUndoBy(a)
	}
	if sl.Current != a {
		return notInCharge(t)
	}
	if x.What == worklist.Stop {
		if !d.state.wanted(a) || a.start == nil && !a.mayStart() {
			return fmt.Errorf("%w: %s is %s: only what is READY or RUNNING can be stopped", ErrNotNow, t, sl.State)
		}
		return nil
	}
	switch {
	case x.What == worklist.Continue && d.overdueTask(a):
		if d.state.goesOn(a) {
			return fmt.Errorf("%w: that was decided about %s already", ErrNotNow, t)
		}
		return nil
	case !d.state.unhandled(a):
		return fmt.Errorf("%w: %s is %s: nothing is to be decided about it", ErrNotNow, t, sl.State)
	case d.state.wanted(a):
		return fmt.Errorf("%w: others presume that %s failed, and it goes on here: its result counts", ErrNotNow, t)
	case x.What == worklist.Continue:
		if d.state.answered(sl) {
			return fmt.Errorf("%w: that was decided about %s already", ErrNotNow, t)
		}
		return nil
	case d.movedOften(sl):
		return fmt.Errorf("%w: %w", ErrNotNow, errMovedOften)
	case x.To != "" && x.To != d.self:
		w := d.work([]workflow.TaskName{t}, "")
		w.Only = x.To
		if _, err := d.choose(w); err != nil {
			return said.Errorf("%w: %s cannot take %s: %w", ErrNotNow, x.To, t, err)
		}
	}
	return nil
}

// Undoable are the tasks of an instance that has ended which can be undone by order now, in rule order.
func (m *Machine) Undoable() (out []workflow.TaskName) {
	if !m.undoes {
		return nil
	}
	for _, sl := range m.state.slots {
		if a := sl.Pick; a != nil && m.state.mayUndoBy(a) == nil {
			out = append(out, a.Task.Name)
		}
	}
	return out
}

// mayUndoBy says why what an attempt did is not undone by order; nil: it is. What others may still build upon is
// not, nor what was built upon before that is undone which was.
func (s *State) mayUndoBy(a *Attempt) error {
	t := a.Task.Name
	switch now := s.overall(); {
	case a.success() == nil:
		return fmt.Errorf("%w: %s has not succeeded: there is nothing to undo", ErrNotNow, t)
	case a.undo == nil:
		return fmt.Errorf("%w: the workflow does not say how %s is undone", ErrNotNow, t)
	case a.toUndo, a.stands != standing, a.undo.start != nil:
		return fmt.Errorf("%w: %s is undone already, or will be", ErrNotNow, t)
	case now == workflow.InstanceRunning, now == workflow.InstanceBlocked, now == workflow.InstanceInterrupted:
		return fmt.Errorf("%w: the instance is %s, so others may still build upon %s: cancel it first", ErrNotNow, now, t)
	}
	for _, u := range a.users {
		if u.undo != nil && u.success() != nil && u.stands == standing && !u.toUndo {
			return fmt.Errorf("%w: %s was built upon it, and can be undone: have that undone first", ErrNotNow, u.Task.Name)
		}
	}
	return nil
}

// doAgain begins another attempt at a task that failed, as an order asks; one that is to be left out ends at once.
func (d *decision) doAgain(x worklist.Reopen) (added bool) {
	a := d.state.attempts[attemptIDOf(x.Item)]
	if a == nil || a.Partner != d.self || !d.state.unhandled(a) || d.state.wanted(a) || d.movedOften(a.Slot) {
		return false
	}
	order := FactID(x.Order)
	o, _ := orderIn(d.log.byID[order])
	b := Assign{After: a.ID, Verdict: a.Slot.Outcome.at.id, Task: a.Task.Name, Partner: cmp.Or(o.To, d.self)}
	e, err := d.append(Body{Assign: &b, Annex: &Annex{Order: &order}})
	if err != nil || !e.counted {
		return false
	}
	if b.Partner != d.self {
		d.give(b.Task, b.Partner)
	}
	if n := d.state.attempts[AttemptID{Fact: e.id, Slot: b.After.Slot}]; n != nil && n.skips {
		d.skip(n)
	}
	return true
}

// skip ends an attempt of ours at a task that is to be left out: what waits for it is released.
func (d *decision) skip(a *Attempt) (added bool) {
	o, _ := d.state.orderOf(a)
	_, err := d.append(Body{Verdict: &Verdict{
		Cause: CauseReported, Reason: clip("left out by order: " + o.Reason),
		Actions: []Action{{Attempt: a.ID, Kind: workflow.FailRelease}},
	}})
	return err == nil
}

// orderOf is the order by which the holder began an attempt; false: it was none.
func (s *State) orderOf(a *Attempt) (worklist.Order, bool) {
	x := a.assigned.fact.Body.Annex
	if x == nil || x.Order == nil {
		return worklist.Order{}, false
	}
	return orderIn(s.log.byID[*x.Order])
}

// Orders is what a fact orders; empty: nothing that counts.
func (m *Machine) Orders(id FactID) string {
	x, _ := orderIn(m.log.byID[id])
	return x.What
}

// orderIn is the order that a fact gives; false: it gives none that counts.
func orderIn(e *entry) (worklist.Order, bool) {
	if e == nil || !e.counted || e.fact.Body.Claim == nil {
		return worklist.Order{}, false
	}
	x, orders := e.fact.Body.Claim.Body().(worklist.Order)
	return x, orders
}

// applyAgain enters an assignment by which the holder of an attempt that failed begins another, by order.
func (s *State) applyAgain(e *entry, a *Attempt, b *Assign, order FactID) (why string) {
	o := s.log.byID[order]
	asked := slices.IndexFunc(a.rulings, func(r *ruling) bool {
		return r.at.id == b.Verdict && r.action.Kind == workflow.FailBlock && s.log.knew(e, r.at)
	})
	followed := func(n *Attempt) bool { return s.log.knew(e, n.assigned) } // by this order or another
	x, _ := orderIn(o)
	switch {
	case a.Partner != e.fact.Chain.Author || b.Task != a.Task.Name || a.beside():
		return "by order the holder of an attempt does the same once more, and nothing else"
	case b.Partner != cmp.Or(x.To, a.Partner):
		return "by order the holder of an attempt does the same once more, or the partner that the order names"
	case asked < 0:
		return "no verdict had ended the attempt, as its author knew"
	case !orderedAgain(o, a) || !s.log.knew(e, o):
		return "no order asked for it"
	case slices.ContainsFunc(a.assigns, followed):
		return "it had been done once more, as its author knew"
	case s.movedOften(e, a.Slot):
		return movedOften
	}
	t := a.turning()
	n := s.addAttempt(e, a, a.rulings[asked], b.Task, b.Partner)
	n.skips = x.What == worklist.Skip
	t.assigns = append(t.assigns, n)
	s.touch(a.Slot)
	return ""
}

// orderedAgain reports whether a fact orders that an attempt be done once more, or left out.
func orderedAgain(o *entry, a *Attempt) bool {
	x, orders := orderIn(o)
	return orders && (x.What == worklist.Again || x.What == worklist.Skip) && attemptIDOf(x.Item) == a.ID
}

// doneAgain is the attempt that followed one by order, though a verdict had ended the slot with that; nil: none did.
func (s *State) doneAgain(a *Attempt) *Attempt {
	if len(a.assigns) == 0 {
		return nil
	}
	s.log.steps += len(a.assigns)
	return slices.MinFunc(a.assigns, func(x, y *Attempt) int { return s.byAuthority(x.assigned, y.assigned) })
}

// latest is the last attempt at what an attempt is to do: passed on, or done once more by order.
func (s *State) latest(a *Attempt) *Attempt {
	for {
		a = s.lastOf(a)
		r := s.prevailing(a.rulings)
		if r == nil || r.action.Kind == workflow.FailContingency {
			return a
		}
		next := s.doneAgain(a)
		if next == nil {
			return a
		}
		a = next
	}
}

// stop fails an attempt of ours whose item was closed by an order.
func (d *decision) stop(a *Attempt, o worklist.Order) (added bool) {
	if a.Partner != d.self || a.success() != nil || a.off != nil || a.endedByHolder() || !d.state.wanted(a) {
		return false
	}
	id := a.ID
	if !d.fail(a, CauseReported, strings.TrimSuffix("stopped by order: "+o.Reason, ": ")) {
		return false
	}
	d.callOff(id)
	return true
}

// callOff has what runs of an attempt that failed end.
func (d *decision) callOff(id AttemptID) {
	d.out.Stop = append(d.out.Stop, id)
	delete(d.running, id)
	delete(d.again, id)
	if a := d.state.attempts[id]; a != nil {
		d.state.move(a.Slot)
	}
}

// cancelBy cancels the instance as an order asks.
func (d *decision) cancelBy(order FactID) (added bool) {
	if d.state.cancel != nil || !cancellable(d.state.overall()) {
		return false // it came to an end since the order was written down
	}
	x, _ := d.log.byID[order].fact.Body.Claim.Body().(worklist.Order)
	e, err := d.append(Body{Cancel: &Cancel{Reason: clip(x.Reason)}})
	return err == nil && e.counted
}

// notInCharge refuses a word about an attempt in whose place there is another by now.
func notInCharge(t workflow.TaskName) error {
	return fmt.Errorf("%w: %s was given to another partner, or begun once more, meanwhile: look at it again",
		ErrNotNow, t)
}
