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
		d.pass(undoes.now, func(sl *Slot) {
			made := d.state.made
			again = d.decideSlot(sl) || again
			if d.state.made != made { // a fact of ours had all slots made again
				sl = d.state.slots[sl.place]
			}
			again = d.undoes && d.undo(sl) || again
		})
		again = d.mindClaims() || again
		again = d.watch() || again
		again = d.nameAll() || again
		again = d.nameRefused() || again
		if undoes.wake > 0 {
			d.out.wake(undoes.wake)
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
	bare := map[FactID]bool{} // the last of chains, for which nothing vouches yet
	for _, e := range d.unsaved {
		delete(bare, e.fact.Prev)
		if e.att == nil && !d.mine(e) {
			bare[e.id] = true
		}
		d.out.Persist = append(d.out.Persist,
			Stored{Place: e.index, Raw: e.raw, Att: e.att, Own: d.mine(e), Open: len(bare) > 0})
		if made, ok := d.made(e); ok {
			d.out.Made = append(d.out.Made, made)
		}
	}
	d.unsaved = nil
	d.out.Tell = d.allDue()
	d.out.Given = d.Given()
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
func (d *decision) saveWaits() {
	if !d.Participates(d.self) {
		d.clocks.forget()
	}
	if d.rolledBack() {
		return
	}
	d.out.Waits = d.clocks.ToSave(d.now.Boot, d.log.Len())
	if at, ok := d.clocks.NextSave(); ok {
		d.out.wake(at)
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
func (d *decision) decideSlot(sl *Slot) (added bool) {
	for _, a := range sl.Attempts {
		if a.Partner != d.self || a.success() != nil || a.off != nil || a.endedByHolder() {
			continue
		}
		switch wanted := d.state.wanted(a); {
		case a.start != nil && !wanted:
			d.stopFlow(a)
			if d.state.evidenceOf(nil).mayCallOff(a) != "" {
				continue // it would not count
			}
			if _, err := d.append(Body{CalledOff: &CalledOff{Attempt: a.ID}}); err != nil {
				continue
			}
			delete(d.running, a.ID)
			delete(d.again, a.ID)
			d.out.Stop = append(d.out.Stop, a.ID)
			return true
		case !wanted:
		case a.skips: // this node stopped in between
			return d.skip(a)
		case a.start != nil:
			added = d.resume(a) || added
		case a.waitsForData():
			if d.state.evidenceOf(nil).mayReady(a, false) != "" {
				continue
			}
			if _, err := d.append(Body{Ready: &ReadyBody{Attempt: a.ID}}); err == nil {
				return true
			}
		case a.mayStart() && a.Task.ByNode():
			if d.state.hasUnits(a) && d.start(a, 1) {
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

// endedByHolder reports whether the holder itself has given the attempt up.
func (a *Attempt) endedByHolder() bool {
	return slices.ContainsFunc(a.rulings, func(r *ruling) bool { return r.final && !r.void })
}

// wanted reports whether the slot still waits for this attempt. A slot is held
// for the sake of the attempt in charge, so that one goes on too. One that its holder
// called off does not, though others only presume that it failed. A transition is wanted while it is pending.
func (s *State) wanted(a *Attempt) bool {
	if a.transition() {
		return s.wanted(a.fired.flow) && s.flow.pendingJob(a) != nil
	}
	sl := a.Slot
	return sl.Dropped == nil && sl.Pick == nil && sl.Current == a && a.off == nil && !sl.over() && s.cancel == nil
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
	return a.Partner == m.self && a.success() == nil && m.state.wanted(a) &&
		(a.start != nil || a.mayStart() || m.state.armed(sl))
}

// mayStart reports whether an attempt that is wanted and not started is ready.
func (a *Attempt) mayStart() bool {
	if a.transition() {
		return true
	}
	if a.Slot.State == workflow.Failed || a.Slot.Pending != nil { // as others presume
		return a.Slot.begun() || a.Slot.ruleHolds()
	}
	return a.Slot.State == workflow.Ready
}

func (sl *Slot) ruleHolds() bool {
	return !sl.barred && sl.ruleComes().Truth == workflow.True
}

// waitsForData reports whether the attempt's rule, which is about data, holds
// and this has not been recorded yet.
func (a *Attempt) waitsForData() bool {
	return a.Slot.hasData && !a.Slot.begun() && a.Slot.ruleHolds()
}

// start records a try and has it run. A start that is beyond a limit fails the
// attempt. It reports whether facts were added.
func (d *decision) start(a *Attempt, try int) (added bool) {
	if d.state.evidenceOf(nil).mayStart(a) != "" {
		return false // it would not count
	}
	if _, err := d.append(Body{Start: &Start{Attempt: a.ID, Try: try, Consumed: d.state.consumed(a)}}); err != nil {
		return d.fail(a, CauseReported, "it could not be started: "+err.Error())
	}
	if a.Task.ByNode() && !a.Task.Whole {
		d.running[a.ID] = true
		d.out.Start = append(d.out.Start, d.state.job(a, try))
	}
	return true
}

// resume runs again what was running when the node stopped, with the same try
// and so the same idempotency key, or what waits for its next try.
func (d *decision) resume(a *Attempt) (added bool) {
	if a.Task.Whole {
		return d.runFlow(a)
	}
	if d.running[a.ID] || !a.Task.ByNode() {
		return false
	}
	due, waiting := d.again[a.ID]
	switch {
	case waiting && due > d.now.Boot:
		d.out.wake(due)
		return false
	case waiting:
		delete(d.again, a.ID)
		return d.start(a, a.try()+1)
	case a.failed != nil && a.failed.fact.Body.TryFailed.Try == a.try():
		d.pause(a) // the pause before the next try begins again after a restart
		return true
	}
	d.running[a.ID] = true
	d.out.Start = append(d.out.Start, d.state.job(a, a.try()))
	return false
}

// try is the number of the newest try of the attempt.
func (a *Attempt) try() int { return a.tries }

func (s *State) job(a *Attempt, try int) Job {
	input := make(map[workflow.DataName]workflow.Value, len(a.Task.In))
	for _, n := range inputs(a.Task) {
		if w, ok := s.data[n]; ok && !a.transition() {
			input[n] = w.value
		}
		if v, ok := a.undone()[n]; ok {
			input[n] = v
		}
	}
	j := Job{Attempt: a.ID, Try: try, Task: a.Task, Input: input}
	if l := a.leased(); l != nil && l.Try == try {
		j.Lease = l
	}
	if a.fired != nil {
		s.flow.fit(&j, a)
	}
	return j
}

// undone is what the success that a compensation undoes had written.
func (a *Attempt) undone() map[workflow.DataName]workflow.Value {
	if a.undoes == nil {
		return nil
	}
	return a.undoes.success().gave()
}

// inputs are the data that a task may read: what it declares, and for its queries, the built-in
// set and what a sub-workflow is given, all of which was checked, all that they mention.
func inputs(t *workflow.Task) []workflow.DataName {
	if t.Application != workflow.AppSet && t.Uses == nil && len(t.Queries) == 0 {
		return t.In
	}
	names := slices.Clone(t.In)
	if t.Uses != nil {
		for _, e := range t.Uses.Input {
			names = append(names, e.Names()...)
		}
	}
	for _, e := range t.With.Set {
		names = append(names, e.Names()...)
	}
	for _, q := range t.Queries {
		names = append(names, q.Statement.Parameters()...)
	}
	return names
}

// Result is how a try ended.
type Result struct {
	Outputs map[workflow.DataName]workflow.Value
	Failed  bool
	Reason  string
	// Lost: it could not run, as nobody has the content of a file any more that its task reads. It has
	// failed, and no other try can help.
	Lost bool
}

// TaskEnded records how a try that Effects.Start asked for ended. A result that
// nobody waits for any more is recorded all the same: finished work does not
// disappear.
func (m *Machine) TaskEnded(id AttemptID, try int, res Result, now Moment, partners Partners) error {
	d := m.deciding(now, partners)
	defer m.reuse(d)
	a := d.state.attempts[id]
	if a == nil || !d.heeded() || a.Partner != d.self || a.start == nil || a.off != nil || a.success() != nil ||
		a.endedByHolder() {
		return ErrNotAwaited
	}
	delete(d.running, id)
	d.state.move(a.Slot)
	if a.try() != try {
		// This node had begun again from an older state, and came to know since that it
		// had tried again before: it is the newest try that runs now (resume).
		return ErrNotAwaited
	}
	early := d.tooEarly(a, res)
	d.record(a, try, res)
	return early
}

// tooEarly is the error of a result that is not taken now (flows.go); nil: there is none.
func (d *decision) tooEarly(a *Attempt, res Result) error {
	if a.fired == nil || res.Failed {
		return nil
	}
	outputs, err := d.state.checkOutputs(a.Task, res.Outputs)
	if err != nil || len(d.state.flow.clashes(a, outputs)) > 0 {
		return nil // it is a failure
	}
	return d.state.tooEarlyFor(a, outputs)
}

// record records the end of a try: success, another try to come, or failure.
func (d *decision) record(a *Attempt, try int, res Result) {
	outputs := res.Outputs
	if !res.Failed {
		var err error
		if outputs, err = d.state.checkResult(a, res.Outputs); err != nil {
			res = Result{Failed: true, Reason: err.Error()}
		}
	}
	if a.fired != nil && !res.Failed {
		var waits bool
		if res, waits = d.weighEnd(a, try, outputs); waits {
			return
		}
	}
	switch {
	case !res.Failed:
		if _, err := d.append(Body{Success: &Success{Attempt: a.ID, Try: try, Outputs: outputs}}); err != nil {
			d.fail(a, CauseReported, "its result cannot be recorded: "+err.Error())
		}
		return
	case res.Lost && d.state.mayMiss(a, d.self):
		d.fail(a, CauseLost, res.Reason)
		return
	case try <= a.Task.Retries.Times && a.Task.ByNode():
		if _, err := d.append(Body{TryFailed: &TryFailed{Attempt: a.ID, Try: try, Reason: clip(res.Reason)}}); err == nil {
			d.pause(a)
			return
		}
	}
	d.fail(a, CauseReported, res.Reason)
}

// pause sets when the next try may start.
func (d *decision) pause(a *Attempt) {
	r := a.Task.Retries
	if a.tooEarly() {
		r = workflow.Retries{Backoff: tooEarlyPause, Factor: 2, Max: maxTooEarly}
	}
	d.again[a.ID] = d.now.Boot + pause(r, a.try(), d.now.Chance)
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
func (d *decision) fail(a *Attempt, cause Cause, reason string) bool {
	if a.beside() {
		return d.failUndo(a, cause, reason)
	}
	return d.judge([]*Attempt{a}, cause, reason)
}

// checkOutputs checks a result against what the task may write.
func (s *State) checkOutputs(
	t *workflow.Task, out map[workflow.DataName]workflow.Value,
) (map[workflow.DataName]workflow.Value, error) {
	if len(out) == 0 {
		return nil, nil
	}
	checked := make(map[workflow.DataName]workflow.Value, len(out))
	for n, v := range out {
		if !slices.Contains(t.Out, n) {
			return nil, fmt.Errorf("task %s returned %q, which its out does not name (out: %v)", t.Name, n, t.Out)
		}
		c, err := workflow.CheckValue(s.decls[n], v)
		if err != nil {
			return nil, fmt.Errorf("task %s returned a wrong %s: %w", t.Name, n, err)
		}
		checked[n] = c
	}
	return checked, nil
}

// checkResult checks a result against what its task may write, and against the strict constraints.
func (s *State) checkResult(
	a *Attempt, out map[workflow.DataName]workflow.Value,
) (map[workflow.DataName]workflow.Value, error) {
	checked, err := s.checkOutputs(a.Task, out)
	if err != nil {
		return nil, err
	}
	if why := s.breaks(a, checked); why != "" {
		return nil, fmt.Errorf("the result of %s: %s", a.Task.Name, why)
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
	ErrNotNow = errors.New("refused")
)

// Begin records that a person began a task that this node holds and that is ready.
func (m *Machine) Begin(t workflow.TaskName, now Moment, partners Partners) error {
	d := m.deciding(now, partners)
	a, err := d.attemptOf(t)
	switch {
	case err != nil:
		return err
	case a.Task.ByNode():
		return fmt.Errorf("%w: %s is %s, it begins by itself", ErrNotNow, t, kindOf(a.Task))
	case a.start != nil:
		return fmt.Errorf("%w: %s runs already", ErrNotNow, t)
	}
	if err := cmp.Or(d.taken(a), d.state.mayBeginWith(a), d.mayTakeHere(a)); err != nil {
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
		return fmt.Errorf("%w: %s is %s ends it", ErrNotNow, t, byWhat(a.Task))
	}
	if err := cmp.Or(d.taken(a), d.state.mayBeginWith(a), d.mayTakeHere(a)); err != nil {
		return err
	}
	if !res.Failed {
		outputs, err := d.state.checkResult(a, res.Outputs)
		if err == nil {
			err = d.fits(Body{Success: &Success{Attempt: a.ID, Try: maxTry, Outputs: outputs}})
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrOutput, err)
		}
		if err := d.tooEarly(a, res); err != nil {
			return fmt.Errorf("%w: %w", ErrNotNow, err)
		}
	}
	if err := d.begin(a); err != nil {
		return err
	}
	a = d.state.attempts[a.ID] // where a chain is forked, a fact of ours has all be made again
	d.record(a, a.try(), res)
	return nil
}

func kindOf(t *workflow.Task) string {
	if t.Type == workflow.SubWorkflow {
		return "a workflow of its own"
	}
	return "automatic"
}

func byWhat(t *workflow.Task) string {
	if t.Type == workflow.SubWorkflow {
		return kindOf(t) + ", its instance"
	}
	return "automatic, its application"
}

// begin records that a person starts a task, unless that is recorded, and shows
// that this node has the role for it.
func (d *decision) begin(a *Attempt) error {
	var credentials []byte
	if v := d.state.evidenceOf(nil); a.Task.ByRole() && !v.hasRole(d.self, a.Task.Role) && !v.personDid(a) {
		credentials = d.partners.Credentials()
		if err := d.state.proves(credentials, d.self, a.Task.Role); err != nil {
			return fmt.Errorf("%w: %w", ErrNotNow, err)
		}
	}
	id := a.ID
	if a.waitsForData() {
		if _, err := d.append(Body{Ready: &ReadyBody{Attempt: id}}); err != nil {
			return err
		}
		a = d.state.attempts[id]
	}
	if a.start != nil && credentials == nil {
		return nil
	}
	body := Body{
		Start: &Start{Attempt: id, Try: max(a.tries, 1), Consumed: d.state.consumed(a)}, Credentials: credentials,
	}
	_, err := d.append(body)
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
	if m.state.def.Task(t).Condition != nil {
		return m.transitionOf(t)
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
		case !m.state.wanted(a) || (a.start == nil && !a.mayStart()):
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

// cancellable reports whether an instance can be cancelled that stands so: also one that waits for what
// cannot come.
func cancellable(s workflow.InstanceState) bool {
	return s == workflow.InstanceRunning || s == workflow.InstanceBlocked
}

// Cancel ends the instance.
func (m *Machine) Cancel(reason string, now Moment) error {
	if s := m.state.overall(); !cancellable(s) {
		return fmt.Errorf("%w: the instance is %s already", ErrNotNow, s)
	}
	if !m.heeded() {
		return errUnheeded
	}
	_, err := m.deciding(now, nil).append(Body{Cancel: &Cancel{Reason: clip(reason)}})
	return err
}
