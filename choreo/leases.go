package choreo

import (
	"errors"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is about automatic tasks that workers do: programs beside a node that take
// tries of attempts and bring their results. Who has one is the holder's to say.

// Lease records that the holder has given a try of an attempt to a worker. It changes
// nothing of what counts: only the holder writes the result, and takes it from who has the
// newest lease. It is a fact so that it outlives the holder's process, and so that
// everybody sees who did what; how far a worker is, is none.
type Lease struct {
	_       struct{} `cbor:",toarray"`
	Attempt AttemptID
	Try     int
	Worker  string // as it calls itself, for people
	// At is the partner beside whose node the worker is; empty: the holder.
	At workflow.PartnerID
	// Key is a hash of what the worker has to show. The secret itself is in no fact.
	Key [16]byte
}

func (b *Lease) kind() string { return "lease" }

func (b *Lease) validate(workflow.PartnerID) error {
	if err := try(b.Attempt, b.Try); err != nil {
		return err
	}
	if err := names(b.At); err != nil {
		return err
	}
	return names(b.Worker)
}

func (s *State) enterLease(b *Lease, e *entry) (why string) {
	return s.enterOwn(e, b.Attempt, (*evidence).mayFail, func(a *Attempt) { a.lease = newer(a.lease, e) })
}

// leased is the newest lease of an attempt's newest try; nil: nobody has it.
func (a *Attempt) leased() *Lease {
	if a.lease == nil || a.lease.fact.Body.Lease.Try != a.try() {
		return nil
	}
	return a.lease.fact.Body.Lease
}

// ErrNotAwaited is returned for a result, or a lease, of a try that nobody waits for here
// any more, or not yet.
var ErrNotAwaited = errors.New("nobody waits for a result of this try")

// awaits is the attempt of which a try runs here; nil: it does not, or not any more.
func (d *decision) awaits(id AttemptID, try int) *Attempt {
	a := d.state.attempts[id]
	if a == nil || !d.heeded() || a.Partner != d.self || a.start == nil || a.off != nil || a.success() != nil ||
		a.endedByHolder() {
		return nil
	}
	if a.try() != try || !d.running[id] {
		return nil
	}
	return a
}

// Lease records that a worker has a try that runs here. The error is ErrNotAwaited where
// it does not run, or says which limit the lease is beyond.
func (m *Machine) Lease(l Lease, now Moment) error {
	d := m.deciding(now, nil)
	defer m.reuse(d)
	if d.awaits(l.Attempt, l.Try) == nil {
		return ErrNotAwaited
	}
	_, err := d.append(Body{Lease: &l})
	return err
}

// CheckResult says why outputs could not be the result of a try that runs here:
// ErrNotAwaited, or that its task may not write them. The values of those under except
// are not looked at, only their names.
func (m *Machine) CheckResult(
	id AttemptID, try int, out map[workflow.DataName]workflow.Value, except []workflow.DataName, now Moment,
) error {
	d := m.deciding(now, nil)
	defer m.reuse(d)
	a := d.awaits(id, try)
	if a == nil {
		return ErrNotAwaited
	}
	blank := make(map[workflow.DataName]workflow.Value, len(out))
	for n, v := range out {
		blank[n] = v
	}
	for _, n := range except {
		if _, given := blank[n]; given {
			blank[n] = nil
		}
	}
	checked, err := d.state.checkResult(a, blank)
	if err != nil {
		return err
	}
	return d.fits(Body{Success: &Success{Attempt: id, Try: try, Outputs: checked}})
}
