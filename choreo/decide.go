package choreo

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Ready is what a driver is to do, in the order of its fields: nothing of a
// later field before what stands in an earlier one is done.
type Ready struct {
	// Persist must be durable before anything else is done or said.
	Persist []Stored
	// Made are data sets that tasks done here made, for the store with Persist.
	Made []Made
	// Tell are the peers that are owed something: send each its Outgoing.
	Tell []workflow.PartnerID
	// Ask are peers to be asked, if they can be reached, what they have.
	Ask []workflow.PartnerID
	// Stop and Start are tasks to call off and to run here.
	Stop  []AttemptID
	Start []Job
	// Waits, unless nil, replace what is stored of the instance's waits; they
	// are durable with Persist.
	Waits *[]Wait
	// Beyond are facts that could not be recorded since the last Ready, as they are
	// beyond a limit. What they were about fails, or stays as it is: people must know.
	Beyond []error
	// Wake is the next moment (as Moment.Boot) at which Decide should be called
	// again even if nothing happens; 0: none.
	Wake time.Duration
}

// Stored is a fact for the store, with its place in the instance's log: places
// are given out in a causal order, from 0.
type Stored struct {
	Place int
	Raw   []byte
	Att   *Attestation
	Own   bool // this node wrote it
}

// Job is a try of an automatic task.
type Job struct {
	Attempt AttemptID
	Try     int
	Task    *workflow.Task
	Input   map[workflow.DataName]workflow.Value
}

// Made is a data set that a task made which this node did.
type Made struct {
	Task   *workflow.Task
	Values map[workflow.DataName]workflow.Value // what it wrote
	From   map[workflow.DataName]workflow.Value // what it was made from, as far as that has values
	At     int64                                // by this node's clock, ms since 1970
	// Unsure is data of which it is not certain that the task read what From says; empty: none.
	Unsure workflow.DataName
}

// Decide says what this node should do now. It adds the facts that follow from
// what is known (starts, readiness by data, calling off), which are in Persist
// with those that events added before.
func (m *Machine) Decide(now Moment, partners Partners) Ready {
	var r Ready
	m.tick(now)
	undoes := m.mayLookForUndoing(now)
	for again := true; again && m.heeded(); {
		again = false
		r.Wake = 0
		clear(m.nobody)
		m.pass(undoes.now, func(sl *Slot) {
			made := m.state.made
			again = m.decideSlot(sl, partners, now, &r) || again
			if m.state.made != made { // a fact of ours had all slots made again
				sl = m.state.slots[sl.place]
			}
			again = m.undoes && m.undo(sl, partners, now, &r) || again
		})
		again = m.watch(now, partners, &r) || again
		again = m.nameAll(now) || again
		again = m.nameRefused(now, &r) || again
		if undoes.wake > 0 {
			r.wake(undoes.wake)
		}
	}
	m.route(now, partners)
	m.tellBegun(now, partners, &r)
	m.awaitOffice(now, &r)
	m.saveWaits(now, &r)
	r.Beyond, m.beyond = m.beyond, nil
	r.Persist = slices.Grow(r.Persist, len(m.unsaved))
	for _, e := range m.unsaved {
		r.Persist = append(r.Persist, Stored{Place: e.index, Raw: e.raw, Att: e.att, Own: m.mine(e)})
		if made, ok := m.made(e); ok {
			r.Made = append(r.Made, made)
		}
	}
	m.unsaved = nil
	r.Tell = m.allDue()
	return r
}

// made is the data set whose making a fact of ours reports, if it does.
func (m *Machine) made(e *entry) (Made, bool) {
	ok := e.fact.Body.Success
	if ok == nil || !m.mine(e) {
		return Made{}, false
	}
	a := m.state.attempts[ok.Attempt]
	if a == nil || a.Task.Produces.Name == "" {
		return Made{}, false
	}
	out := Made{Task: a.Task, Values: ok.Outputs, From: map[workflow.DataName]workflow.Value{}, At: e.fact.At}
	for _, n := range partition.MadeFrom(a.Task) {
		if v, has := m.state.values[n]; has {
			out.From[n] = v
		}
		if out.Unsure == "" && !m.state.unchanged(n, a.base) {
			out.Unsure = n
		}
	}
	return out, true
}

// saveWaits hands out the waits where they are due to be stored. A node that takes
// no part any more waits for nothing; one that must take a new incarnation goes on
// from what is stored.
func (m *Machine) saveWaits(now Moment, r *Ready) {
	if !m.Participates(m.self) {
		m.clocks.forget()
	}
	if m.rolledBack() {
		return
	}
	if ws, ok := m.clocks.toSave(now.Boot); ok {
		r.Waits = &ws
	}
	if at, ok := m.clocks.nextSave(); ok {
		r.wake(at)
	}
}

// heeded reports whether facts of ours would count: we take part, as far as is
// known here, and our chain is all of our own writing.
func (m *Machine) heeded() bool { return m.Participates(m.self) && !m.rolledBack() }

// rolledBack reports whether others gave us facts of our own chain that we had
// not: then this store is older than it should be, and what we wrote next
// would fork the chain. A new incarnation is needed.
func (m *Machine) rolledBack() bool {
	if m.own == nil {
		return m.log.index[m.chain] != nil
	}
	c := m.own.strand.chain
	return c.forkedAt > 0 || c.strands[0].last() != m.own
}

// decideSlot does what this node has to do about one slot. It reports whether it
// added facts.
func (m *Machine) decideSlot(sl *Slot, partners Partners, now Moment, r *Ready) (added bool) {
	for _, a := range sl.Attempts {
		if a.Partner != m.self || a.success() != nil || a.off != nil || a.endedByHolder() {
			continue
		}
		switch wanted := m.wanted(a); {
		case a.start != nil && !wanted:
			if m.state.evidenceOf(nil).mayCallOff(a) != "" {
				continue // it would not count
			}
			if _, err := m.append(now, Body{CalledOff: &CalledOff{Attempt: a.ID}}); err != nil {
				continue
			}
			delete(m.running, a.ID)
			delete(m.again, a.ID)
			r.Stop = append(r.Stop, a.ID)
			return true
		case !wanted:
		case a.start != nil:
			added = m.resume(a, now, partners, r) || added
		case m.waitsForData(a):
			if m.state.evidenceOf(nil).mayReady(a, false) != "" {
				continue
			}
			if _, err := m.append(now, Body{Ready: &ReadyBody{Attempt: a.ID}}); err == nil {
				return true
			}
		case m.mayStart(a) && a.Task.Type == workflow.Automatic:
			if m.start(a, 1, now, partners, r) {
				return true
			}
		case m.seeksPerformer(a, partners):
			if m.offer(a, partners, now) {
				return true
			}
		}
	}
	return added
}

// endedByHolder reports whether the holder itself has given the attempt up.
func (a *Attempt) endedByHolder() bool {
	return slices.ContainsFunc(a.rulings, func(r *ruling) bool { return r.final && !r.void })
}

// wanted reports whether the slot still waits for this attempt. A slot is held
// for the sake of the attempt in charge, so that one goes on too. One that its holder
// called off does not, though others only presume that it failed.
func (m *Machine) wanted(a *Attempt) bool {
	sl := a.Slot
	return sl.Dropped == nil && sl.Pick == nil && sl.Current == a && a.off == nil && !sl.over() && m.state.cancel == nil
}

// GoesOn reports whether this node may still do something about the instance,
// even if it has ended as far as is known: an attempt here is only presumed to
// have failed, or what lost is to be undone.
func (m *Machine) GoesOn() bool {
	return m.heeded() && (m.cleansUp() || m.goesOn())
}

func (m *Machine) goesOn() bool { return m.look().atWork > 0 }

// atWork reports whether this node may still do a slot's task, whatever others presume.
func (m *Machine) atWork(sl *Slot) bool {
	a := sl.Current
	return a.Partner == m.self && a.success() == nil && m.wanted(a) && (a.start != nil || m.mayStart(a) || m.armed(sl))
}

// mayStart reports whether an attempt that is wanted and not started is ready.
func (m *Machine) mayStart(a *Attempt) bool {
	if a.Slot.State == workflow.Failed || a.Slot.Pending != nil { // as others presume
		return a.Slot.begun() || m.ruleHolds(a.Slot)
	}
	return a.Slot.State == workflow.Ready
}

func (m *Machine) ruleHolds(sl *Slot) bool {
	return sl.ruleComes().Truth == workflow.True
}

// waitsForData reports whether the attempt's rule, which is about data, holds
// and this has not been recorded yet.
func (m *Machine) waitsForData(a *Attempt) bool {
	return a.Slot.hasData && !a.Slot.begun() && m.ruleHolds(a.Slot)
}

// start records a try and has it run. A start that is beyond a limit fails the
// attempt. It reports whether facts were added.
func (m *Machine) start(a *Attempt, try int, now Moment, partners Partners, r *Ready) (added bool) {
	if m.state.evidenceOf(nil).mayStart(a) != "" {
		return false // it would not count
	}
	if _, err := m.append(now, Body{Start: &Start{Attempt: a.ID, Try: try, Consumed: m.consumed(a)}}); err != nil {
		return m.fail(a, CauseReported, "it could not be started: "+err.Error(), now, partners)
	}
	if a.Task.Type == workflow.Automatic {
		m.running[a.ID] = true
		r.Start = append(r.Start, m.job(a, try))
	}
	return true
}

// resume runs again what was running when the node stopped, with the same try
// and so the same idempotency key, or what waits for its next try.
func (m *Machine) resume(a *Attempt, now Moment, partners Partners, r *Ready) (added bool) {
	if m.running[a.ID] || a.Task.Type != workflow.Automatic {
		return false
	}
	due, waiting := m.again[a.ID]
	switch {
	case waiting && due > now.Boot:
		r.wake(due)
		return false
	case waiting:
		delete(m.again, a.ID)
		return m.start(a, a.try()+1, now, partners, r)
	case a.failed != nil && a.failed.fact.Body.TryFailed.Try == a.try():
		m.pause(a, now) // the pause before the next try begins again after a restart
		return true
	}
	m.running[a.ID] = true
	r.Start = append(r.Start, m.job(a, a.try()))
	return false
}

func (r *Ready) wake(at time.Duration) {
	if r.Wake == 0 || at < r.Wake {
		r.Wake = at
	}
}

// try is the number of the newest try of the attempt.
func (a *Attempt) try() int { return a.tries }

func (m *Machine) job(a *Attempt, try int) Job {
	input := make(map[workflow.DataName]workflow.Value, len(a.Task.In))
	for _, n := range m.inputs(a.Task) {
		if w, ok := m.state.data[n]; ok {
			input[n] = w.value
		}
		if v, ok := a.undone()[n]; ok {
			input[n] = v
		}
	}
	return Job{Attempt: a.ID, Try: try, Task: a.Task, Input: input}
}

// undone is what the success that a compensation undoes had written.
func (a *Attempt) undone() map[workflow.DataName]workflow.Value {
	if a.undoes == nil {
		return nil
	}
	return a.undoes.success().fact.Body.Success.Outputs
}

// inputs are the data that a task may read: what it declares, and for the
// built-in set, whose expressions were checked, all that they mention.
func (m *Machine) inputs(t *workflow.Task) []workflow.DataName {
	if t.Application != workflow.AppSet {
		return t.In
	}
	names := slices.Clone(t.In)
	for _, e := range t.With.Set {
		names = append(names, e.Names()...)
	}
	return names
}

// Result is how a try ended.
type Result struct {
	Outputs map[workflow.DataName]workflow.Value
	Failed  bool
	Reason  string
}

// TaskEnded records how a try that Ready.Start asked for ended. A result that
// nobody waits for any more is recorded all the same: finished work does not
// disappear.
func (m *Machine) TaskEnded(id AttemptID, try int, res Result, now Moment, partners Partners) {
	a := m.state.attempts[id]
	if a == nil || !m.heeded() || a.Partner != m.self || a.start == nil || a.try() != try || a.off != nil || a.success() != nil || a.endedByHolder() {
		return
	}
	delete(m.running, id)
	m.attend(a.Slot)
	m.record(a, try, res, now, partners)
}

// record records the end of a try: success, another try to come, or failure.
func (m *Machine) record(a *Attempt, try int, res Result, now Moment, partners Partners) {
	outputs := res.Outputs
	if !res.Failed {
		var err error
		if outputs, err = m.checkOutputs(a.Task, res.Outputs); err != nil {
			res = Result{Failed: true, Reason: err.Error()}
		}
	}
	switch {
	case !res.Failed:
		if _, err := m.append(now, Body{Success: &Success{Attempt: a.ID, Try: try, Outputs: outputs}}); err != nil {
			m.fail(a, CauseReported, "its result cannot be recorded: "+err.Error(), now, partners)
		}
		return
	case try <= a.Task.Retries.Times && a.Task.Type == workflow.Automatic:
		if _, err := m.append(now, Body{TryFailed: &TryFailed{Attempt: a.ID, Try: try, Reason: clip(res.Reason)}}); err == nil {
			m.pause(a, now)
			return
		}
	}
	m.fail(a, CauseReported, res.Reason, now, partners)
}

// pause sets when the next try may start.
func (m *Machine) pause(a *Attempt, now Moment) {
	m.again[a.ID] = now.Boot + pause(a.Task.Retries, a.try(), now.Chance)
}

// pause is how long to wait after a failed try: backoff × factor^(try-1), at
// most max, of which the part jitter is left to chance.
func pause(r workflow.Retries, try int, chance float64) time.Duration {
	d, factor := float64(r.Backoff), max(r.Factor, 1)
	for ; try > 1 && (r.Max == 0 || d < float64(r.Max)); try-- {
		d *= factor
	}
	if r.Max > 0 {
		d = min(d, float64(r.Max))
	}
	return time.Duration(d * (1 - r.Jitter*chance))
}

// fail records that an attempt of ours has failed for good, and what follows. It
// reports whether that could be recorded.
func (m *Machine) fail(a *Attempt, cause Cause, reason string, now Moment, partners Partners) bool {
	if a.undoes != nil {
		return m.failUndo(a, cause, reason, now)
	}
	return m.judge([]*Attempt{a}, cause, reason, now, partners)
}

// checkOutputs checks a result against what the task may write.
func (m *Machine) checkOutputs(t *workflow.Task, out map[workflow.DataName]workflow.Value) (map[workflow.DataName]workflow.Value, error) {
	if len(out) == 0 {
		return nil, nil
	}
	checked := make(map[workflow.DataName]workflow.Value, len(out))
	for n, v := range out {
		if !slices.Contains(t.Out, n) {
			return nil, fmt.Errorf("task %s returned %q, which its out does not name (out: %v)", t.Name, n, t.Out)
		}
		c, err := workflow.CheckValue(m.state.decls[n], v)
		if err != nil {
			return nil, fmt.Errorf("task %s returned a wrong %s: %w", t.Name, n, err)
		}
		checked[n] = c
	}
	return checked, nil
}

// Errors of Finish and Cancel.
var (
	// ErrNoTask is returned for a task that the definition does not have.
	ErrNoTask = errors.New("no such task")
	// ErrElsewhere is returned for a task that another partner holds.
	ErrElsewhere = errors.New("held by another partner")
	// ErrOutput is returned for a result that the task may not have.
	ErrOutput = errors.New("wrong output")
	// ErrNotNow is returned where the state of the task or instance does not allow it.
	ErrNotNow = errors.New("not now")
)

// Begin records that a person began a task that this node holds and that is ready.
func (m *Machine) Begin(t workflow.TaskName, now Moment, partners Partners) error {
	a, err := m.attemptOf(t)
	switch {
	case err != nil:
		return err
	case a.Task.Type == workflow.Automatic:
		return fmt.Errorf("%w: %s is automatic, it begins by itself", ErrNotNow, t)
	case a.start != nil:
		return fmt.Errorf("%w: %s runs already", ErrNotNow, t)
	}
	return m.begin(a, now, partners)
}

// Finish records that a person completed or failed a task that this node
// holds and that is ready or running.
func (m *Machine) Finish(t workflow.TaskName, res Result, now Moment, partners Partners) error {
	a, err := m.attemptOf(t)
	if err != nil {
		return err
	}
	if a.Task.Type == workflow.Automatic {
		return fmt.Errorf("%w: %s is automatic, its application ends it", ErrNotNow, t)
	}
	if !res.Failed {
		outputs, err := m.checkOutputs(a.Task, res.Outputs)
		if err == nil {
			err = m.fits(now, Body{Success: &Success{Attempt: a.ID, Try: maxTry, Outputs: outputs}})
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrOutput, err)
		}
	}
	if err := m.begin(a, now, partners); err != nil {
		return err
	}
	a = m.state.attempts[a.ID] // where a chain is forked, a fact of ours has all be made again
	m.record(a, a.try(), res, now, partners)
	return nil
}

// begin records that a person starts a task, unless that is recorded, and shows
// that this node has the role for it.
func (m *Machine) begin(a *Attempt, now Moment, partners Partners) error {
	var credentials []byte
	if a.Task.ByRole() && !m.state.evidenceOf(nil).hasRole(m.self, a.Task.Role) {
		credentials = partners.Credentials()
		if err := m.state.proves(credentials, m.self, a.Task.Role); err != nil {
			return fmt.Errorf("%w: %w", ErrNotNow, err)
		}
	}
	id := a.ID
	if m.waitsForData(a) {
		if _, err := m.append(now, Body{Ready: &ReadyBody{Attempt: id}}); err != nil {
			return err
		}
		a = m.state.attempts[id]
	}
	if a.start != nil && credentials == nil {
		return nil
	}
	body := Body{Start: &Start{Attempt: id, Try: max(a.tries, 1), Consumed: m.consumed(a)}, Credentials: credentials}
	_, err := m.append(now, body)
	return err
}

// attemptOf finds the attempt of ours at task t that is ready or running.
func (m *Machine) attemptOf(t workflow.TaskName) (*Attempt, error) {
	if m.state.def.Task(t) == nil {
		return nil, fmt.Errorf("%w: %s", ErrNoTask, t)
	}
	if !m.heeded() {
		return nil, errUnheeded
	}
	if u := m.personsUndo(t); u != nil {
		return u, nil
	}
	var ended error
	err := fmt.Errorf("%w: nothing is to be compensated by %s", ErrNotNow, t)
	if s := m.state.overall(); s != workflow.InstanceRunning {
		ended = fmt.Errorf("%w: the instance is %s", ErrNotNow, s)
	}
	for _, sl := range m.state.slotsOf(t) {
		a := sl.Current
		switch {
		case a.Task.Name != t:
			err = fmt.Errorf("%w: %s is not needed", ErrNotNow, t)
		case a.Partner != m.self && ended == nil:
			return nil, &Elsewhere{Task: t, Partner: a.Partner}
		case a.Partner != m.self:
			err = ended
		case !m.wanted(a) || (a.start == nil && !m.mayStart(a)):
			err = fmt.Errorf("%w: %s is %s", ErrNotNow, t, sl.State)
		default:
			return a, nil // even if all has ended: what is only presumed to have failed may succeed
		}
	}
	return nil, cmp.Or(ended, err)
}

var errUnheeded = fmt.Errorf("%w: what this node says would not count: it takes no part in the instance, or its store was rolled back and it has not taken a new incarnation yet", ErrNotNow)

// Elsewhere says which partner holds a task. It is an ErrElsewhere.
type Elsewhere struct {
	Task    workflow.TaskName
	Partner workflow.PartnerID
}

func (e *Elsewhere) Error() string {
	return fmt.Sprintf("%s is held by %s", e.Task, e.Partner.Short())
}

// Is makes errors.Is(err, ErrElsewhere) hold.
func (e *Elsewhere) Is(target error) bool { return target == ErrElsewhere }

// Cancel ends the instance.
func (m *Machine) Cancel(reason string, now Moment) error {
	if s := m.state.overall(); s != workflow.InstanceRunning {
		return fmt.Errorf("%w: the instance is %s already", ErrNotNow, s)
	}
	if !m.heeded() {
		return errUnheeded
	}
	_, err := m.append(now, Body{Cancel: &Cancel{Reason: clip(reason)}})
	return err
}
