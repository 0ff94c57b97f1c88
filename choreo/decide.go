package choreo

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Decide says what this node should do now. It adds the facts that follow from
// what is known (starts, readiness by data, calling off), which are in Persist
// with those that events added before.
func (m *Machine) Decide(now Moment, partners Partners) Effects {
	d := m.deciding(now, partners)
	defer m.reuse(d)
	d.tick()
	defer func() { m.ticked = false }()
	undoes := d.mayLookForUndoing()
	for again := true; again && d.heeded(); {
		again = false
		d.out.Wake = 0
		clear(d.nobody)
		again = d.moveParts()
		d.pass(undoes.Now, func(sl *state.Slot) {
			made := d.state.Made()
			again = d.decideSlot(sl) || again
			if d.state.Made() != made { // a fact of ours had all slots made again
				sl = d.state.Slots()[sl.Place]
			}
			again = d.undoes && d.undo(sl) || again
		})
		again = d.mindClaims() || again
		again = d.watch() || again
		again = d.nameAll() || again
		again = d.nameRefused() || again
		if undoes.Wake > 0 {
			d.out.wake(undoes.Wake)
		}
	}
	d.route()
	d.tellBegun()
	d.awaitOffice()
	d.mindEntrusted()
	d.saveWaits()
	d.handOut()
	return d.out
}

// handOut hands out what was added since the last decision, and names those that are owed
// something.
func (d *decision) handOut() {
	d.out.Beyond, d.beyond = d.beyond, nil
	d.out.Persist = slices.Grow(d.out.Persist, len(d.unsaved))
	bare := map[fact.ID]bool{} // the last of chains, for which nothing vouches yet
	for _, e := range d.unsaved {
		delete(bare, e.Fact.Prev)
		if e.Att == nil && !d.mine(e) {
			bare[e.ID] = true
		}
		d.out.Persist = append(d.out.Persist,
			Stored{Place: e.Index, Raw: e.Raw, Att: e.Att, Own: d.mine(e), Open: len(bare) > 0})
		if made, ok := d.made(e); ok {
			d.out.Made = append(d.out.Made, made)
		}
	}
	d.unsaved = nil
	d.out.Tell = d.allDue()
	d.out.Given = d.Given()
}

// made is the data set whose making a fact of ours reports, if it does.
func (m *Machine) made(e *log.Entry) (Made, bool) {
	ok := e.Fact.Body.Success
	if ok == nil || !m.mine(e) {
		return Made{}, false
	}
	a := m.state.Attempts()[ok.Attempt]
	if a == nil || a.Task.Produces.Name == "" {
		return Made{}, false
	}
	out := Made{Task: a.Task, Values: ok.Outputs, From: map[workflow.DataName]workflow.Value{}, At: e.Fact.At}
	for _, n := range partition.MadeFrom(a.Task) {
		if v, has := m.state.Values()[n]; has {
			out.From[n] = v
		}
		if out.Unsure == "" && !m.state.Unchanged(n, a.Base) {
			out.Unsure = n
		}
	}
	return out, true
}

// saveWaits hands out the waits where they are due to be stored. A node that takes
// no part any more waits for nothing; one that must take a new incarnation goes on
// from what is stored.
func (d *decision) saveWaits() {
	if !d.Participates(d.self) {
		d.clocks.forget()
	}
	if d.rolledBack() {
		return
	}
	if at, _ := d.clocks.NextSave(); d.clocks.LenLeases() > 0 && d.now.Boot >= at {
		d.endLeases() // an instance that has ended gives nothing any more
	}
	d.out.Waits = d.clocks.ToSave(d.now.Boot, d.log.Len())
	if at, ok := d.clocks.NextSave(); ok {
		d.out.wake(at)
	}
}

// decideSlot does what this node has to do about one slot. It reports whether it
// added facts.
func (d *decision) decideSlot(sl *state.Slot) (added bool) {
	for _, a := range sl.Attempts {
		if a.Partner != d.self || a.Success() != nil || a.Off != nil || a.EndedByHolder() {
			continue
		}
		switch wanted := d.state.Wanted(a); {
		case a.Start != nil && !wanted:
			if d.hearsOut(a) {
				continue
			}
			d.stopFlow(a)
			if d.state.EvidenceOf(nil).MayCallOff(a) != "" {
				continue // it would not count
			}
			if _, err := d.append(fact.Body{CalledOff: &fact.CalledOff{Attempt: a.ID}}); err != nil {
				continue
			}
			delete(d.running, a.ID)
			delete(d.again, a.ID)
			d.out.Stop = append(d.out.Stop, a.ID)
			return true
		case !wanted:
		case a.Skips: // this node stopped in between
			return d.skip(a)
		case a.Start != nil && a.Task.Whole:
			added = d.runFlow(a) || added
		case a.Start != nil:
			added = d.resume(a) || added
		case a.WaitsForData():
			if d.state.EvidenceOf(nil).MayReady(a, false) != "" {
				continue
			}
			if _, err := d.append(fact.Body{Ready: &fact.ReadyBody{Attempt: a.ID}}); err == nil {
				return true
			}
		case a.MayStart() && a.Task.ByNode():
			if d.state.HasUnits(a) && !d.later(a) && (d.doAtOnce(a) || d.start(a, 1)) {
				return true
			}
		case d.seeksPerformer(a):
			if d.offer(a) {
				return true
			}
		default:
			d.mindUntaken(a)
		}
	}
	return added
}

// GoesOn reports whether this node may still do something about the instance,
// even if it has ended as far as is known: an attempt here is only presumed to
// have failed, what lost is to be undone, or somebody has what waits for a failure: until it is given back, or its lease
// is over.
func (m *Machine) GoesOn() bool {
	return m.heeded() && (m.cleansUp() || m.goesOn() || m.Claims() && slices.ContainsFunc(m.state.Slots(), m.keepsFor))
}

// keepsFor reports whether somebody has an item of this node that is still to be done, in a slot.
func (m *Machine) keepsFor(sl *state.Slot) bool {
	m.log.Steps++
	return sl.Current.Partner == m.self && m.state.Wanted(sl.Current) && m.claimed(sl.Current)
}

// Begin records that a person began a task that this node holds and that is ready.
func (m *Machine) Begin(t workflow.TaskName, now Moment, partners Partners) error {
	d := m.deciding(now, partners)
	a, err := d.attemptOf(t)
	switch {
	case err != nil:
		return err
	case a.Task.ByNode():
		return fmt.Errorf("%w: %s is %s, it begins by itself", state.ErrNotNow, d.called(t), kindOf(a.Task))
	case a.Start != nil:
		return fmt.Errorf("%w: %s runs already", state.ErrNotNow, d.called(t))
	}
	if err := cmp.Or(d.taken(a), d.state.MayBeginWith(a), d.mayTakeHere(a)); err != nil {
		return err
	}
	return d.begin(a)
}

// Finish records that a person completed or failed a task that this node
// holds and that is ready or running.
func (m *Machine) Finish(t workflow.TaskName, res Result, now Moment, partners Partners) error {
	d := m.deciding(now, partners)
	a, err := d.attemptOf(t)
	if err != nil {
		return err
	}
	if a.Task.ByNode() {
		return fmt.Errorf("%w: %s is %s ends it", state.ErrNotNow, d.called(t), byWhat(a.Task))
	}
	if err := cmp.Or(d.taken(a), d.state.MayBeginWith(a), d.mayTakeHere(a)); err != nil {
		return err
	}
	if !res.Failed {
		outputs, err := d.state.CheckResult(a, res.Outputs)
		if err == nil {
			err = d.fits(fact.Body{Success: &fact.Success{Attempt: a.ID, Try: fact.MaxTry, Outputs: outputs}})
		}
		if err != nil {
			return fmt.Errorf("%w: %w", state.ErrOutput, err)
		}
		if err := d.tooEarly(a, res); err != nil {
			return fmt.Errorf("%w: %w", state.ErrNotNow, err)
		}
	}
	if err := d.begin(a); err != nil {
		return err
	}
	a = d.state.Attempts()[a.ID] // where a chain is forked, a fact of ours has all be made again
	d.record(a, a.Try(), res)
	return nil
}

// Fails is why a result that a person is about to hand in for task t (Finish) makes it fail, as its author wants of
// conflicts; empty: it does not.
func (m *Machine) Fails(t workflow.TaskName, res Result) string {
	a, err := m.attemptOf(t)
	if err != nil || res.Failed {
		return ""
	}
	return m.clash(a, res.Outputs)
}

// attemptOf finds the attempt of ours at task t that is ready or running. What has begun to undo another may be gone from
// the definition by then.
func (m *Machine) attemptOf(t workflow.TaskName) (*state.Attempt, error) {
	x, u := m.state.Definition().Task(t), m.personsUndo(t)
	switch {
	case x == nil && u == nil:
		return nil, m.noTask(t)
	case !m.heeded():
		return nil, errUnheeded
	case u == nil:
	case u.Partner == m.self:
		return u, nil
	case x == nil || x.Condition == nil && len(m.state.SlotsOf(t)) == 0: // else there may be one here
		return nil, &Elsewhere{Task: m.called(t), Partner: u.Partner}
	}
	if x.Condition != nil {
		return m.transitionOf(t)
	}
	var ended, elsewhere error
	err := fmt.Errorf("%w: nothing is to be compensated by %s", state.ErrNotNow, m.called(t))
	if s := m.state.Overall(); s != workflow.InstanceRunning {
		ended = fmt.Errorf("%w: the instance is %s", state.ErrNotNow, s)
	}
	for _, sl := range m.state.DoneIn(t) { // it may stand in for several, or for one beside what it is itself
		a := sl.Current
		switch {
		case a.Task.Name != t:
			err = fmt.Errorf("%w: %s is not needed", state.ErrNotNow, m.called(t))
		case a.Partner != m.self:
			if !sl.State.Done() || elsewhere == nil {
				elsewhere = &Elsewhere{Task: m.called(t), Partner: a.Partner}
			}
		case !m.state.Wanted(a) || (a.Start == nil && !a.MayStart()):
			err = fmt.Errorf("%w: %s is %s", state.ErrNotNow, m.called(t), sl.State)
		default:
			return a, nil // even if all has ended: what is only presumed to have failed may succeed
		}
	}
	return nil, cmp.Or(ended, elsewhere, err)
}

// Cancel ends the instance.
func (m *Machine) Cancel(reason string, now Moment) error {
	if !m.Cancellable() {
		return fmt.Errorf("%w: the instance is %s already", state.ErrNotNow, m.state.Overall())
	}
	if !m.heeded() {
		return errUnheeded
	}
	_, err := m.deciding(now, nil).append(fact.Body{Cancel: &fact.Cancel{Reason: fact.Clip(reason)}})
	return err
}
