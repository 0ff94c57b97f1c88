package choreo

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/amendments"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about those who decide about an instance, and what follows from what they order:
// the responsible user, whom its genesis names by key, and administrators, by a role that the
// definition names and that their word proves (docs/worklists.md, Who decides).
//
// An order is a claim (choreo/state/claims.go): the person signs it, and the holder of the attempt writes it down,
// whatever kind of task it is. Then the holder carries it out:
//
//	again     the attempt failed, and nothing stands in for it: another attempt at the same task
//	          follows it, with the same holder. What follows a task that has failed waits again
//	stop      the attempt has failed, by its holder's verdict
//	continue  nothing: the question what becomes of a failure is answered
//	cancel    the instance is cancelled
//
// Each of these facts names its order, or comes after it; what was carried out is not once more.

// Responsible is the user who decides about the instance, by key: whom the genesis names, else
// its initiator, who is a user by being a partner.
func (m *Machine) Responsible() worklist.User { return m.state.Responsible() }

// MayOrder reports whether a person with these roles may decide about the instance.
func (m *Machine) MayOrder(u worklist.User, roles []workflow.RoleName) bool {
	s := m.state
	return u == s.Responsible() || s.Definition().Administrators != "" &&
		slices.Contains(roles, s.Definition().Administrators)
}

// SaidByDecider reports whether a claim is the true word of somebody who decides about the instance.
func (m *Machine) SaidByDecider(c *fact.Claim) bool {
	who, err := m.state.SpeakerOf(c)
	return err == nil && m.MayOrder(who.User, who.Roles)
}

// Asked is a failure of which somebody has to decide what becomes of it.
type Asked struct {
	Slot, Task workflow.TaskName
	Item       worklist.Item      // the attempt that failed
	Partner    workflow.PartnerID // who holds it
	// Presumed: its holder has not said so, and may go on with it.
	Presumed bool
	// Left: somebody has left it so, and what waits for it is blocked: it can still be done once more.
	Left bool
}

// Asks are the failures that wait for an order, in rule order; in an instance that is blocked also those
// of which that was decided. What this node works on at, though others presume that it failed, is not among
// them. It costs as much as there are failures.
func (m *Machine) Asks() (out []Asked) {
	s := m.state
	blocked := s.Overall() == workflow.InstanceBlocked
	for _, sl := range inOrder(s.Failures()) {
		a := sl.Current
		left := s.Answered(sl)
		if s.Unhandled(a) && (!left || blocked && a.EndedByHolder()) && !m.goesOnHere(sl) {
			out = append(out, Asked{sl.Task.Name, a.Task.Name, state.ItemOf(a.ID), a.Partner, !a.EndedByHolder(), left})
		}
	}
	return out
}

// Ordered is the attempt that an order about a task is about, and who holds it. A task that is only a
// contingency has the attempts at it. The error says why there is none.
func (m *Machine) Ordered(t workflow.TaskName) (worklist.Item, workflow.PartnerID, error) {
	switch x := m.state.Definition().Task(t); {
	case x == nil && t == workflow.FlowTask:
		return worklist.Item{}, "", fmt.Errorf("%w: the instance is not driven by its data, so no method recovers it",
			state.ErrNotNow)
	case x == nil:
		return worklist.Item{}, "", m.noTask(t)
	case x.Condition != nil:
		if a := m.pendingOf(t); a != nil {
			return state.ItemOf(a.ID), a.Partner, nil
		}
		return worklist.Item{}, "", fmt.Errorf("%w: no data state has fired %s that has not ended: what is under way can be stopped, and what failed is recovered",
			state.ErrNotNow, m.called(t))
	}
	var about *state.Attempt // at what failed, where there is more than one
	for _, sl := range m.state.DoneIn(t) {
		a := sl.Current
		if sl.Pick != nil { // what counts, of which it can be ordered that it be undone
			a = sl.Pick
		}
		if sl.Task.Name != t && a.Task.Name != t {
			continue
		}
		if about == nil || m.state.Unhandled(a) && !m.state.Unhandled(about) {
			about = a
		}
	}
	if about != nil {
		return state.ItemOf(about.ID), about.Partner, nil
	}
	return worklist.Item{}, "", fmt.Errorf("%w: %s is not needed", state.ErrNotNow, m.called(t))
}

// Meant is the task that an item is at in place of another, as a stand-in; empty: it stands in for none. MayCount is
// who holds an earlier attempt that others only presume to have failed: what is brought of that may still count; empty:
// nobody.
func (m *Machine) Meant(i worklist.Item) (standIn workflow.TaskName, mayCount workflow.PartnerID) {
	a := m.state.Attempts()[fact.AttemptIDOf(i)]
	if a == nil || a.Transition() || a.Undoes != nil {
		return "", ""
	}
	if a.Task.Name != i.Slot {
		standIn = a.Task.Name
	}
	for _, x := range a.Slot.Attempts {
		if x != a && x.Success() == nil && m.state.PresumedBy(x) != nil {
			mayCount = x.Partner
		}
	}
	return standIn, mayCount
}

// MayEnd reports whether a try of an attempt, wherever it is done, has not come to its end, as far as is known here.
func (m *Machine) MayEnd(id fact.AttemptID, try int) bool {
	a := m.state.Attempts()[id]
	if a == nil {
		return true // its facts are still to come
	}
	return a.Try() <= try && a.Success() == nil && a.Off == nil && !a.EndedByHolder() && m.state.Cancelled() == nil
}

// WaitFor are the tasks that wait for that of an item, at once or by way of others, and that are not done, with
// whoever holds each, in rule order.
func (m *Machine) WaitFor(i worklist.Item) (out []Asked) {
	waits := map[workflow.TaskName]bool{i.Slot: true}
	def := m.state.Definition()
	waiting := func(t workflow.TaskName) bool { return waits[t] }
	for _, name := range def.TopoOrder() {
		if name == i.Slot || !slices.ContainsFunc(def.Predecessors(name), waiting) {
			continue
		}
		waits[name] = true
		if sl := m.state.BySlot()[name]; sl != nil && sl.Pick == nil && sl.State != workflow.Skipped {
			out = append(out, Asked{Slot: name, Task: sl.Current.Task.Name, Partner: sl.Current.Partner})
		}
	}
	return out
}

// FailedBefore are those of the tasks that the one of an item waits for, at once or by way of others, that failed, as
// far as is known, and with which nothing deals, in rule order.
func (m *Machine) FailedBefore(i worklist.Item) (out []workflow.TaskName) {
	def, before := m.state.Definition(), map[workflow.TaskName]bool{}
	for next := []workflow.TaskName{i.Slot}; len(next) > 0; next = next[1:] {
		for _, name := range def.Predecessors(next[0]) {
			if sl := m.state.BySlot()[name]; !before[name] && name != i.Slot && sl != nil && sl.Pick == nil {
				before[name], next = true, append(next, name)
			}
		}
	}
	for _, name := range def.TopoOrder() {
		if before[name] && m.state.Unhandled(m.state.BySlot()[name].Current) {
			out = append(out, name)
		}
	}
	return out
}

// Unhandled reports whether an item is one at a task that failed, as far as is known, and nothing deals with that: who
// decides may have it done once more, or left out, also where its holder is gone.
func (m *Machine) Unhandled(i worklist.Item) bool {
	a := m.state.Attempts()[fact.AttemptIDOf(i)]
	return a != nil && !a.Task.Whole && m.state.Unhandled(a)
}

// LeftOut reports whether an attempt is one that an order left out, so that nobody performed it.
func (m *Machine) LeftOut(id fact.AttemptID) bool {
	a := m.state.Attempts()[id]
	return a != nil && a.Skips
}

// HeldBy is the grant by which somebody has an item; zero: nobody has.
func (m *Machine) HeldBy(i worklist.Item) worklist.ID {
	if !m.Claims() {
		return worklist.ID{}
	}
	h, _ := m.state.People().Board.Holds(i)
	return h.Grant
}

// GrantedTo is who was given an item by such a grant; empty: that is not known here.
func (m *Machine) GrantedTo(grant worklist.ID) worklist.User {
	e := m.log.ByID()[fact.ID(grant)]
	if e == nil || e.Fact.Body.Claim == nil {
		return ""
	}
	return e.Speaker().User
}

// order writes down what somebody decides, who may. What follows from it is for Decide.
func (d *decision) order(c *fact.Claim, x worklist.Order, p worklist.Person, before bool) (Claimed, error) {
	if err := d.state.MayDecide(x.Item, p); err != nil {
		return Claimed{}, err
	}
	if before { // the answer was lost
		return Claimed{Already: true}, nil
	}
	if err := d.mayOrder(x); err != nil {
		return Claimed{}, err
	}
	if x.What != worklist.Cancel {
		if err := d.mayOrderMore(d.state.OrderTakes(c, x), p.User); err != nil {
			return Claimed{}, err
		}
	}
	if x.Item.Slot != "" {
		if err := d.mayBeSaid(x.Item, state.MostWords(x)); err != nil {
			return Claimed{}, err
		}
	}
	_, err := d.append(fact.Body{Claim: c})
	return Claimed{}, err
}

// mayOrder says why nothing would follow from an order; nil: something does.
func (d *decision) mayOrder(x worklist.Order) error {
	if x.What == worklist.Cancel {
		if !d.Cancellable() {
			return fmt.Errorf("%w: the instance is %s already", state.ErrNotNow, d.state.Overall())
		}
		return nil
	}
	a := d.state.Attempts()[fact.AttemptIDOf(x.Item)]
	if x.What == worklist.Recover {
		return d.mayRecover(a, x)
	}
	sl, t := a.Slot, a.Task.Name
	if a.Transition() {
		if !d.state.Wanted(a) { // a data state may have fired it once more since
			return fmt.Errorf("%w: %s is not under way any more: look at it again", state.ErrNotNow, d.called(t))
		}
		return nil
	}
	if x.What == worklist.Undo {
		return d.state.MayUndoBy(a)
	}
	if sl.Current != a && sl.Pick != a { // that it counts all the same is said below
		if no := d.orderedAfter(a); no != nil {
			return no
		}
		return notInCharge(d.called(t))
	}
	if x.What == worklist.Stop {
		if !d.state.Wanted(a) || a.Start == nil && !a.MayStart() {
			return fmt.Errorf("%w: %s is %s: only what is READY or RUNNING can be stopped", state.ErrNotNow, d.called(t),
				sl.State)
		}
		return nil
	}
	switch {
	case x.What == worklist.Continue && d.overdueTask(a):
		if d.state.GoesOn(a) {
			return d.decidedBefore(a, t, "")
		}
		return nil
	case !d.state.Unhandled(a):
		return d.nothingToDecide(a)
	case d.state.Wanted(a) && a.Partner == d.self:
		return said.Errorf("%w: others presume that %s failed, and it goes on at %s: its result counts", state.ErrNotNow,
			d.called(t), d.self)
	}
	if no := d.toFollow(a); no != nil {
		return no
	}
	switch {
	case x.What == worklist.Continue:
		if d.state.Answered(sl) {
			return d.decidedBefore(a, t, ": it can still be done once more, or left out")
		}
		return nil
	case d.movedOften(sl):
		return fmt.Errorf("%w: %w", state.ErrNotNow, errMovedOften)
	case a.Partner != d.self && x.To == "" && x.What == worklist.Again:
		if _, err := d.chooseInStead(a); err != nil {
			return said.Errorf("%w: nobody can do %s in place of %s: %w", state.ErrNotNow, d.called(t), a.Partner, err)
		}
	case x.To != "" && x.To != d.self:
		w := d.work([]workflow.TaskName{t}, "")
		w.Only = x.To
		if _, err := d.choose(w); err != nil {
			return said.Errorf("%w: %s cannot take %s: %w", state.ErrNotNow, x.To, d.called(t), err)
		}
	}
	return nil
}

// toFollow refuses an order about an attempt that failed, where this node wrote down another in the same round, which
// it is about to carry out; nil: it did not.
func (d *decision) toFollow(a *state.Attempt) error {
	if d.movedOften(a.Slot) {
		return nil
	}
	no := &Decided{Task: d.called(a.Task.Name)}
	if a.Partner == d.self {
		f := d.state.Work().Unfollowed(state.ItemOf(a.ID), d.self)
		if f == nil {
			return nil
		}
		no.By, no.At = f.User, f.At.UnixMilli()
		return no
	}
	for _, x := range d.state.InStead(d.self) {
		if x.Attempt == a && d.somebodyDoes(x) {
			no.By, no.At = x.At.Speaker().User, x.At.Fact.At
			return no
		}
	}
	return nil
}

// somebodyDoes reports whether what was ordered in place of a holder that is gone is done at once: else it waits for
// somebody to do it, and another order about it may come first.
func (d *decision) somebodyDoes(x state.Instead) bool {
	if x.Order.What == worklist.Skip || x.Order.To != "" {
		return true
	}
	_, err := d.chooseInStead(x.Attempt)
	return err == nil
}

// Decided is returned for an order about what somebody has decided already.
type Decided struct {
	Task, Then string
	By         worklist.User // whose order that was; empty: it is not known
	At         int64         // ms, by the clock of whoever wrote it down
}

// Error implements error.
func (e *Decided) Error() string { return e.Calling(string(e.By)) }

// Unwrap makes it one of those that are said now.
func (e *Decided) Unwrap() error { return state.ErrNotNow }

// Calling is the error in words for people, by what they call whoever decided.
func (e *Decided) Calling(by string) string {
	text := fmt.Sprintf("%v: that was decided about %s already", state.ErrNotNow, e.Task)
	if e.By != "" {
		text += fmt.Sprintf(", by %s at %s", by, time.UnixMilli(e.At).UTC().Format(time.RFC3339))
	}
	return text + e.Then
}

// decidedBefore refuses to have an attempt stay as it is, or go on, which somebody has ordered already, or had stopped:
// the last who did is named.
func (d *decision) decidedBefore(a *state.Attempt, t workflow.TaskName, then string) error {
	no := &Decided{Task: d.called(t), Then: then}
	d.state.Work().About(state.ItemOf(a.ID), func(f *worklist.Fact, why string) {
		if x, is := f.Body.(worklist.Order); is && why == "" && (x.What == worklist.Continue || x.What == worklist.Stop) {
			no.By, no.At = f.User, f.At.UnixMilli()
		}
	})
	return no
}

// nothingToDecide is why nothing is to be decided about an attempt that has not failed, or whose failure is dealt with.
func (d *decision) nothingToDecide(a *state.Attempt) error {
	t, sl := a.Task.Name, a.Slot
	if o := d.state.Overall(); o == workflow.InstanceCancelled {
		return fmt.Errorf("%w: the instance is %s already", state.ErrNotNow, o)
	}
	if no := d.begunByOrder(a); no != nil {
		return no
	}
	if t != sl.Task.Name {
		return fmt.Errorf("%w: %s stands in for %s, and is %s: nothing is to be decided about it", state.ErrNotNow,
			d.called(t), d.called(sl.Task.Name), sl.State)
	}
	return fmt.Errorf("%w: %s is %s: nothing is to be decided about it", state.ErrNotNow, d.called(t), sl.State)
}

// begunByOrder refuses an order about what another had done once more, or left out: whoever gave that one is named;
// nil: nobody had, or something else counts.
func (d *decision) begunByOrder(a *state.Attempt) *Decided {
	x, is := d.state.OrderOf(a)
	if !is || a.Slot.Pick != nil && a.Slot.Pick != a {
		return nil
	}
	e := d.log.ByID()[*a.Assigned.Fact.Body.Annex.Order]
	no := &Decided{Task: d.called(a.Task.Name), By: e.Speaker().User, At: e.Fact.At, Then: ": it was left out"}
	if x.What != worklist.Skip {
		no.Then = fmt.Sprintf(": it is done once more, and is %s", a.Slot.State)
	}
	return no
}

// orderedAfter is begunByOrder of the attempt that follows one that is not in charge any more; nil: no order began it.
func (d *decision) orderedAfter(a *state.Attempt) *Decided {
	for _, next := range a.Slot.Attempts {
		if x := next.Assigned.Fact.Body.Assign; x != nil && x.After == a.ID {
			if no := d.begunByOrder(next); no != nil {
				return no
			}
		}
	}
	return nil
}

// Undoable are the tasks of an instance that has ended which can be undone by order now, in rule order.
func (m *Machine) Undoable() (out []workflow.TaskName) {
	if !m.undoes {
		return nil
	}
	for _, sl := range m.state.Slots() {
		if a := sl.Pick; a != nil && m.state.MayUndoBy(a) == nil {
			out = append(out, a.Task.Name)
		}
	}
	return out
}

// doAgain begins another attempt at a task that failed, as an order asks; one that is to be left out ends at once.
func (d *decision) doAgain(x worklist.Reopen) (added bool) {
	a := d.state.Attempts()[fact.AttemptIDOf(x.Item)]
	if a == nil || a.Partner != d.self || !d.state.Unhandled(a) || d.state.Wanted(a) || d.movedOften(a.Slot) {
		return false
	}
	order := fact.ID(x.Order)
	o, _ := state.OrderIn(d.log.ByID()[order])
	return d.beginAgain(a, cmp.Or(o.To, d.self), &fact.Annex{Order: &order})
}

// beginAgain gives a partner another attempt at a task that failed, by the order that the annex names.
func (d *decision) beginAgain(a *state.Attempt, to workflow.PartnerID, annex *fact.Annex) (added bool) {
	b := fact.Assign{After: a.ID, Verdict: a.Slot.Outcome.At.ID, Task: a.Task.Name, Partner: to}
	e, err := d.append(fact.Body{Assign: &b, Annex: annex})
	if err != nil || !e.Counted {
		return false
	}
	if b.Partner != d.self {
		d.give(b.Task, b.Partner)
	}
	if n := d.state.Attempts()[fact.AttemptID{Fact: e.ID, Slot: b.After.Slot}]; n != nil && n.Skips {
		d.skip(n)
	}
	return true
}

// mindInStead follows the orders that this node wrote down in place of holders that are gone: another has the task, or
// this node leaves it out. While nobody can have it, that waits, and asks for no time to wake. Nothing is missed by
// that: as somebody is noted to be missing (Machine.Waiting), the driver has the instance decide once more with each
// change of a partner (it is back or expired, has other roles or another profile, ends its absence) and of people.
// Nothing else changes the answer: nobody is barred by how much is in hand already, as the work cannot wait
// (Work.CanWait).
func (d *decision) mindInStead() (added bool) {
	for _, x := range d.state.InStead(d.self) {
		a := x.Attempt
		if d.movedOften(a.Slot) {
			continue
		}
		to, annex := cmp.Or(x.Order.To, d.self), fact.Annex{Order: &x.At.ID}
		if x.Order.To == "" && x.Order.What == worklist.Again {
			c, err := d.chooseInStead(a)
			if err != nil {
				d.nobody[a.ID] = "it is to be done once more, and waits for somebody to do it: " + fact.Clip(err.Error())
				continue
			}
			to = c.Partner
			annex.Why = []fact.Why{fact.WhyOf(c, a.Task.Name)}
		}
		if d.beginAgain(a, to, &annex) {
			return true // the attempts may be others now
		}
	}
	return false
}

// chooseInStead finds who does an attempt in place of its holder, who is gone. What that one was only given to perform
// goes to one with the role, else back to whoever has its partition, else to one from which a user with the role can
// take it.
func (d *decision) chooseInStead(a *state.Attempt) (partition.Choice, error) {
	w := d.work([]workflow.TaskName{a.Task.Name}, "")
	w.Rejected = append(d.state.Rejecters(a), a.Partner)
	c, err := d.choose(w)
	if d.state.GivenToPerform(a) && (err != nil || !d.partners.HasRole(c.Partner, a.Task.Role)) {
		if keeper, no := d.keeperOf(a, true); no == nil {
			return keeper, nil
		}
	}
	return c, err
}

// skip ends an attempt of ours at a task that is to be left out: what waits for it is released.
func (d *decision) skip(a *state.Attempt) (added bool) {
	o, _ := d.state.OrderOf(a)
	_, err := d.append(fact.Body{Verdict: &fact.Verdict{
		Cause: fact.CauseReported, Reason: fact.Clip("left out by order: " + o.Reason),
		Actions: []fact.Action{{Attempt: a.ID, Kind: workflow.FailRelease}},
	}})
	return err == nil
}

// Orders is what a fact orders; empty: nothing that counts.
func (m *Machine) Orders(id fact.ID) string {
	x, _ := state.OrderIn(m.log.ByID()[id])
	return x.What
}

// cancelBy cancels the instance as an order asks.
func (d *decision) cancelBy(order fact.ID) (added bool) {
	if d.state.Cancelled() != nil || !d.Cancellable() {
		return false // it came to an end since the order was written down
	}
	x, _ := d.log.ByID()[order].Fact.Body.Claim.Body().(worklist.Order)
	e, err := d.append(fact.Body{Cancel: &fact.Cancel{Reason: fact.Clip(x.Reason)}})
	return err == nil && e.Counted
}

// notInCharge refuses a word about an attempt in whose place there is another by now.
func notInCharge(t string) error {
	return fmt.Errorf("%w: %s was given to another partner, or begun once more, meanwhile: look at it again",
		state.ErrNotNow, t)
}

// ErrNoResult is returned for a result that is not among those that are kept.
var ErrNoResult = errors.New("no such result is kept here")

// adopt writes down that somebody adopts a result, who may.
func (d *decision) adopt(c *fact.Claim, x worklist.Adopt, p worklist.Person, before bool) (Claimed, error) {
	if err := d.state.MayDecide(x.Item, p); err != nil {
		return Claimed{}, err
	}
	if before { // the answer was lost
		return Claimed{Already: true}, nil
	}
	r := d.log.ByID()[fact.ID(x.Result)]
	if r == nil || !r.Counted || r.Fact.Body.Claim == nil {
		return Claimed{}, fmt.Errorf("%w: there is no such result here", state.ErrNotNow)
	}
	if err := d.state.Adoptable(r); err != nil {
		return Claimed{}, err
	}
	a := d.state.Attempts()[fact.AttemptIDOf(x.Item)]
	if out, why := d.state.AdoptionOf(a, r); why == "" && d.state.WouldBreak(out) != "" {
		return Claimed{}, fmt.Errorf("%w: the result of %s: %s", state.ErrNotNow, a.Task.WithLabel(), d.state.WouldBreak(out))
	}
	if err := d.mayBeSaid(x.Item, state.MostWords(x)); err != nil {
		return Claimed{}, err
	}
	if err := d.mayOrderMore(state.Takes(c), p.User); err != nil {
		return Claimed{}, err
	}
	_, err := d.append(fact.Body{Claim: c})
	return Claimed{}, err
}

// counts reports whether a result of that name, or beginning of it, ended its item.
func (m *Machine) counts(ref string) bool {
	if !m.Claims() || ref == "" {
		return false
	}
	return slices.ContainsFunc(m.state.People().Board.Items(), func(i worklist.Item) bool {
		v, _ := m.state.People().Board.View(i)
		return slices.ContainsFunc(v.Works, func(w worklist.Work) bool {
			return w.Counts && strings.HasPrefix(fact.ID(w.ID).String(), ref)
		})
	})
}

// Result is a result of a person by its name, or the beginning of it, with its item: what an adoption is about.
func (m *Machine) Result(ref string) (i worklist.Item, id fact.ID, err error) {
	var found []KeptResult
	for _, r := range m.KeptResults() {
		if ref != "" && strings.HasPrefix(r.ID.String(), ref) {
			found = append(found, r)
		}
	}
	switch {
	case len(found) == 0 && m.counts(ref):
		return i, id, fmt.Errorf("%w: the result %s counts already: nothing is to be adopted", state.ErrNotNow, ref)
	case len(found) == 0:
		return i, id, fmt.Errorf("%w: %q", ErrNoResult, ref)
	case len(found) > 1:
		return i, id, fmt.Errorf("%w: %d results that are kept begin with %s: give more of it", state.ErrNotNow,
			len(found),
			ref)
	}
	return found[0].Item, found[0].ID, m.state.Adoptable(m.log.ByID()[found[0].ID])
}

// Policy is by which policy people's tasks are offered now.
func (m *Machine) Policy() worklist.Policy { return m.state.Policy() }

// Sees reports whether somebody who may do an item sees it while nobody has it.
func (m *Machine) Sees(i worklist.Item, u worklist.User) bool {
	if !m.state.Offers(i) {
		return m.state.Unlimited(i) || u == m.state.Responsible()
	}
	return m.state.People().Board.Visible(i, u)
}

// PeoplesLoad is how much of people's work each person has of each partner in the instance, as far as it is claimed or
// offered by name. It is not to be changed; the number tells whether it has.
func (m *Machine) PeoplesLoad() (of map[worklist.LoadOf]worklist.Load, version int) {
	if m.state.People().Board == nil {
		return nil, 0
	}
	return m.state.People().Board.Loads()
}

// changePolicy writes down by which policy items are offered from now on, as somebody says who may.
func (d *decision) changePolicy(c *fact.Claim, x worklist.Notify, p worklist.Person, before bool) (Claimed, error) {
	if err := d.state.MayDecide(worklist.Item{}, p); err != nil {
		return Claimed{}, err
	}
	switch overall := d.state.Overall(); {
	case before, d.state.Policy().String() == x.Policy.String(): // the answer was lost, or it is so
		return Claimed{Already: true}, nil
	case !d.peopled:
		return Claimed{}, fmt.Errorf("%w: the workflow has no task of people that could be offered", state.ErrNotNow)
	case !d.Cancellable(): // what has failed only as others presume may still be offered
		return Claimed{}, fmt.Errorf("%w: the instance is %s already", state.ErrNotNow, overall)
	}
	if n := len(d.state.People().Of[state.OfInstance(x)]); n >= 2*fact.MaxClaims {
		return Claimed{}, fmt.Errorf("%w: the policy was changed %d times, at most %d", state.ErrNotNow, n,
			2*fact.MaxClaims)
	}
	if err := d.mayOrderMore(state.Takes(c), p.User); err != nil {
		return Claimed{}, err
	}
	_, err := d.append(fact.Body{Claim: c})
	return Claimed{}, err
}

// amend writes down by what the instance runs from now on, as somebody says who may.
func (d *decision) amend(c *fact.Claim, x worklist.Amend, who worklist.Person, before bool) (Claimed, error) {
	if err := d.state.MayDecide(worklist.Item{}, who); err != nil {
		return Claimed{}, err
	}
	p, err := amendments.DecodePatch(x.Patch)
	var patch amendments.Meant
	if err == nil {
		patch, err = d.state.Fits(d.state.Definition(), p)
	}
	switch overall := d.state.Overall(); {
	case before: // the answer was lost
		return Claimed{Already: true}, nil
	case err != nil:
		return Claimed{}, fmt.Errorf("%w: %w", state.ErrNotNow, err)
	case state.Misplaced(p, x.At) != "":
		return Claimed{}, fmt.Errorf("%w: %s", state.ErrNotNow, state.Misplaced(p, x.At))
	case d.state.EvidenceOf(nil).SteersBegun(patch):
		return Claimed{}, fmt.Errorf("%w: one of the tasks has begun meanwhile, and can wait for nothing else any more",
			state.ErrNotNow)
	case !amendable(overall):
		return Claimed{}, fmt.Errorf("%w: the instance is %s already", state.ErrNotNow, overall)
	}
	if err := AmendedOften(d.TimesAmended()); err != nil {
		return Claimed{}, err
	}
	if err := d.mayOrderMore(state.AmendTakes(c, patch), who.User); err != nil {
		return Claimed{}, err
	}
	_, err = d.append(fact.Body{Claim: c})
	return Claimed{}, err
}

// TimesAmended is how often the instance was amended, as far as is known here.
func (m *Machine) TimesAmended() int {
	return len(m.state.People().Of[state.OfInstance(worklist.Amend{})])
}

// AmendedOften says why an instance that was amended so often cannot be amended once more; nil: it can.
func AmendedOften(n int) error {
	if n >= amendments.MaxPatches {
		return fmt.Errorf("%w: the instance was amended %d times, at most %d", state.ErrNotNow, n, amendments.MaxPatches)
	}
	return nil
}

// amendable reports whether an instance can be amended that stands so: one that has ended has no limits to keep.
func amendable(s workflow.InstanceState) bool {
	return goesOnIn(s) || s == workflow.InstanceInterrupted
}

// IsReadyByWord reports whether a task is ready as its holder wrote down: then it waits for nothing any more.
func (m *Machine) IsReadyByWord(t workflow.TaskName) bool {
	sl := m.state.BySlot()[t]
	return sl != nil && sl.Begun()
}

// HolderOf is who holds a partition, or to whom it moves.
func (m *Machine) HolderOf(p workflow.PartitionName) workflow.PartnerID {
	to, _ := m.state.MovedTo(p)
	return cmp.Or(to, m.state.Holders()[p])
}

// TaskHolder is who has a task, or did it; empty: it has no place of its own.
func (m *Machine) TaskHolder(t workflow.TaskName) workflow.PartnerID {
	switch sl := m.state.BySlot()[t]; {
	case sl == nil:
		return ""
	case sl.Pick != nil:
		return sl.Pick.Partner
	default:
		return sl.Current.Partner
	}
}

// Amendments are the changes of the definition by which the instance runs, in the order in which they count.
func (m *Machine) Amendments() []state.Amendment { return m.state.Amendments() }

// Start is what amendments of the instance are held to.
func (m *Machine) Start() state.Start { return m.state.Start() }

// Original is the definition with which the instance was started.
func (m *Machine) Original() *workflow.Definition { return m.state.Original() }

// Editions are the definitions by which the instance has run since it was first amended, the present one first.
func (m *Machine) Editions() iter.Seq[*workflow.Definition] { return m.state.Editions() }

// StandsInBy reports whether a task stands in for that of a slot, or for one that does, only because of amendments.
func (m *Machine) StandsInBy(slot, t workflow.TaskName) bool {
	def := m.state.Original()
	sl, x := m.state.BySlot()[slot], def.Task(slot)
	if sl == nil || x == nil || x.Whole || slot == t {
		return false
	}
	return !def.StandsIn(slot, t) &&
		slices.ContainsFunc(sl.Attempts, func(a *state.Attempt) bool { return a.Task.Name == t })
}

// FlowHolder is who keeps the data states of an instance that is driven by them.
func (m *Machine) FlowHolder() workflow.PartnerID { return m.state.Flow().Slot.Current.Partner }

// Plan is the cut of the definition by which the instance runs.
func (m *Machine) Plan() *partition.Plan { return m.state.Plan() }

// passOn writes down that an item passes on, as a person asks who may.
func (d *decision) passOn(c *fact.Claim, x worklist.Transfer, by worklist.Person, before bool) (Claimed, error) {
	var to worklist.Person
	if x.To != "" {
		known := false
		if to, known = d.partners.Person(x.To); !known {
			return Claimed{}, &NoPerson{Task: d.called(x.Item.Slot), Person: x.To}
		}
	}
	if before { // the answer was lost
		return Claimed{Already: true}, nil
	}
	already, err := d.state.Work().Pass(d.self, x, by, to)
	if already || err != nil {
		return Claimed{Already: already}, err
	}
	if err := d.mayBeSaid(x.Item, state.MostWords(x)); err != nil {
		return Claimed{}, err
	}
	if d.state.Work().MayOrder(by.User, by.Roles) == "" {
		err = d.mayOrderMore(d.state.TransferTakes(c, x), by.User)
	} else {
		err = d.mayIdle(c, by.User)
	}
	if err != nil {
		return Claimed{}, err
	}
	_, err = d.append(fact.Body{Claim: c})
	return Claimed{}, err
}
