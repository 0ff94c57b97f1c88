package choreo

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/dataflow"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about the tries of an attempt of this node's own: how one begins, is run again, ends, and what follows
// when no other comes.

// ErrNotAwaited is returned for a result, or a lease, of a try that nobody waits for here
// any more, or not yet.
var ErrNotAwaited = errors.New("nobody waits for a result of this try")

// TaskEnded records how a try that Effects.Start asked for ended. A result that
// nobody waits for any more is recorded all the same: finished work does not
// disappear.
func (m *Machine) TaskEnded(id fact.AttemptID, try int, res Result, now Moment, partners Partners) error {
	d := m.deciding(now, partners)
	defer m.reuse(d)
	a := d.state.Attempts()[id]
	if a == nil || !d.heeded() || a.Partner != d.self || a.Start == nil || a.Off != nil || a.Success() != nil ||
		a.EndedByHolder() {
		return ErrNotAwaited
	}
	delete(d.running, id)
	d.state.Move(a.Slot)
	if a.Try() != try {
		// This node had begun again from an older state, and came to know since that it
		// had tried again before: it is the newest try that runs now (resume).
		return ErrNotAwaited
	}
	early := d.tooEarly(a, res)
	d.record(a, try, res)
	return early
}

// start records a try and has it run. A start that is beyond a limit fails the
// attempt. It reports whether facts were added.
func (d *decision) start(a *state.Attempt, try int) (added bool) {
	if d.state.EvidenceOf(nil).MayStart(a) != "" {
		return false // it would not count
	}
	if _, err := d.append(fact.Body{Start: &fact.Start{Attempt: a.ID, Try: try,
		Consumed: d.state.Consumed(a)}}); err != nil {
		return d.fail(a, fact.CauseReported, "it could not be started: "+err.Error())
	}
	if a.Task.ByNode() && !a.Task.Whole {
		d.running[a.ID] = true
		d.out.Start = append(d.out.Start, d.state.Job(a, try))
	}
	return true
}

// resume runs again what was running when the node stopped, with the same try
// and so the same idempotency key, or what waits for its next try.
func (d *decision) resume(a *state.Attempt) (added bool) {
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
		return d.start(a, a.Try()+1)
	case a.Failed != nil && a.Failed.Fact.Body.TryFailed.Try == a.Try():
		d.pause(a) // the pause before the next try begins again after a restart
		return true
	}
	d.running[a.ID] = true
	d.out.Start = append(d.out.Start, d.state.Job(a, a.Try()))
	return false
}

// record records the end of a try: success, another try to come, or failure.
func (d *decision) record(a *state.Attempt, try int, res Result) {
	outputs := res.Outputs
	if !res.Failed {
		var err error
		if outputs, err = d.state.CheckResult(a, res.Outputs); err != nil {
			res = Result{Failed: true, Reason: err.Error()}
		}
	}
	if a.Fired != nil && !res.Failed {
		var waits bool
		if res, waits = d.weighEnd(a, try, outputs); waits {
			return
		}
	}
	switch {
	case !res.Failed:
		if _, err := d.append(fact.Body{Success: &fact.Success{Attempt: a.ID, Try: try,
			Outputs: outputs}}); err != nil {
			d.fail(a, fact.CauseReported, "its result cannot be recorded: "+err.Error())
		}
		return
	case res.Lost && d.state.EvidenceOf(nil).MayMiss(a, d.self):
		d.fail(a, fact.CauseLost, res.Reason)
		return
	case try <= a.Task.Retries.Times && a.Task.ByNode():
		if _, err := d.append(fact.Body{TryFailed: &fact.TryFailed{Attempt: a.ID, Try: try,
			Reason: fact.Clip(res.Reason)}}); err == nil {
			d.pause(a)
			return
		}
	}
	d.fail(a, fact.CauseReported, res.Reason)
}

// tooEarly is the error of a result that is not taken now (weighEnd); nil: there is none.
func (d *decision) tooEarly(a *state.Attempt, res Result) error {
	if a.Fired == nil || res.Failed {
		return nil
	}
	outputs, err := d.state.CheckOutputs(a.Task, res.Outputs)
	if err != nil || d.clash(a, outputs) != "" {
		return nil // it is a failure
	}
	return d.state.TooEarlyFor(a, outputs)
}

// clash is why a result makes its transition fail: it sets what was changed meanwhile, and its author wants that to be a
// failure; empty: it does not.
func (m *Machine) clash(a *state.Attempt, outputs map[workflow.DataName]workflow.Value) string {
	if a.Fired == nil {
		return ""
	}
	if clash := m.state.Flow().Clashes(a, outputs); len(clash) > 0 {
		return "it sets " + string(clash[0]) + ", which was changed after the state that fired it"
	}
	return ""
}

// weighEnd says what becomes of a transition that ended well: it fails where the author wants a
// conflict to be a failure, and waits where its state would be final while others are pending.
func (d *decision) weighEnd(
	a *state.Attempt, try int, outputs map[workflow.DataName]workflow.Value,
) (res Result, waits bool) {
	res.Outputs = outputs
	f := d.state.Flow()
	if f.PendingJob(a) == nil {
		return res, false // it counts for nothing, and is kept
	}
	b := f.Line.Board
	if why := d.clash(a, outputs); why != "" {
		d.fail(a, fact.CauseReported, why)
		return res, true
	}
	if b.Refuses(state.JobOf(a.ID), outputs) != dataflow.FinalTooEarly {
		return res, false
	}
	if _, err := d.append(fact.Body{TryFailed: &fact.TryFailed{Attempt: a.ID, Try: try,
		Reason: dataflow.FinalTooEarly}}); err == nil {
		d.pause(a)
	}
	return res, true
}

// tooEarlyPause is how long a transition waits whose result would be final while others are
// pending: longer each time, up to maxTooEarly.
const (
	tooEarlyPause = time.Second
	maxTooEarly   = time.Minute
)

// pause sets when the next try may start.
func (d *decision) pause(a *state.Attempt) {
	r := a.Task.Retries
	if a.TooEarly() {
		r = workflow.Retries{Backoff: tooEarlyPause, Factor: 2, Max: maxTooEarly}
	}
	d.again[a.ID] = d.now.Boot + pause(r, a.Try(), d.now.Chance)
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
func (d *decision) fail(a *state.Attempt, cause fact.Cause, reason string) bool {
	if a.Beside() {
		return d.failUndo(a, cause, reason)
	}
	return d.judge([]*state.Attempt{a}, cause, reason)
}

// failUndo records that a compensation failed for good. Nothing stands in for
// one: people have to look at it.
func (d *decision) failUndo(u *state.Attempt, cause fact.Cause, reason string) bool {
	e, err := d.append(fact.Body{Verdict: &fact.Verdict{
		Cause: cause, Reason: fact.Clip(reason), Actions: []fact.Action{{Attempt: u.ID, Kind: workflow.FailBlock}},
	}})
	return err == nil && e.Counted
}

// begin records that a person starts a task, unless that is recorded, and shows
// that this node has the role for it.
func (d *decision) begin(a *state.Attempt) error {
	var credentials []byte
	if v := d.state.EvidenceOf(nil); a.Task.ByRole() && !v.HasRole(d.self, a.Task.Role) && !v.PersonDid(a) {
		credentials = d.partners.Credentials()
		if err := d.state.Proves(credentials, d.self, a.Task.Role); err != nil {
			return fmt.Errorf("%w: %w", state.ErrNotNow, err)
		}
	}
	id := a.ID
	if a.WaitsForData() {
		if _, err := d.append(fact.Body{Ready: &fact.ReadyBody{Attempt: id}}); err != nil {
			return err
		}
		a = d.state.Attempts()[id]
	}
	if a.Start != nil && credentials == nil {
		return nil
	}
	body := fact.Body{
		Start: &fact.Start{Attempt: id, Try: max(a.Tries, 1), Consumed: d.state.Consumed(a)}, Credentials: credentials,
	}
	_, err := d.append(body)
	return err
}

// beginCounts reports whether begin would say what counts: an item may be closed of which the task cannot be done, as
// somebody said so in this node's name.
func (d *decision) beginCounts(a *state.Attempt) bool {
	v := d.state.EvidenceOf(nil)
	switch {
	case a.Start != nil:
		return true
	case a.WaitsForData():
		return v.MayReady(a, false) == ""
	}
	return v.MayBegin(a) == ""
}

// endAsClosed has an attempt end as its item was closed.
func (d *decision) endAsClosed(id fact.AttemptID) (added bool) {
	a := d.state.Attempts()[id]
	res, _, taken := d.state.Work().Taken(state.ItemOf(id))
	if o, stopped := d.state.Work().Stopped(state.ItemOf(id)); stopped && a != nil {
		return d.stop(a, o)
	}
	if a == nil || a.Partner != d.self || !taken || a.Success() != nil || a.Off != nil || a.EndedByHolder() ||
		!d.state.Wanted(a) {
		return false
	}
	if !d.beginCounts(a) {
		d.state.CloseLater(id)
		return false // it would not count
	}
	if err := d.begin(a); err != nil {
		d.beyond = append(d.beyond, err)
		return false
	}
	a = d.state.Attempts()[id] // where a chain is forked, a fact of ours has all be made again
	end := Result{Failed: res.Failed, Reason: cmp.Or(res.Reason, "the person who had it said so")}
	if !res.Failed {
		var err error
		if end.Outputs, err = d.state.Written(a.Task, res); err != nil {
			d.beyond = append(d.beyond, err)
			return false
		}
	}
	d.record(a, a.Try(), end)
	return true
}

// stop fails an attempt of ours whose item was closed by an order.
func (d *decision) stop(a *state.Attempt, o worklist.Order) (added bool) {
	if a.Partner != d.self || a.Success() != nil || a.Off != nil || a.EndedByHolder() || !d.state.Wanted(a) {
		return false
	}
	id := a.ID
	if !d.fail(a, fact.CauseReported, strings.TrimSuffix("stopped by order: "+o.Reason, ": ")) {
		return false
	}
	d.callOff(id)
	return true
}

// callOff has what runs of an attempt that failed end.
func (d *decision) callOff(id fact.AttemptID) {
	d.out.Stop = append(d.out.Stop, id)
	delete(d.running, id)
	delete(d.again, id)
	if a := d.state.Attempts()[id]; a != nil {
		d.state.Move(a.Slot)
	}
}
