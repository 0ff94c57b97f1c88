package choreo

import (
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is about tasks that touch nothing outside: noop, and set, which follows from the data. A node
// that does them itself (Self.Instant) does so while it decides: one fact says that the task began and how it
// ended (fact.Done), and what waits for it goes on in the same round. Whatever touches the world, or takes
// time, has a start that is durable before it is run, by which its idempotency key outlives a crash.
//
// A result that does not fit the definition is not written here: the task is started like any other, and
// fails as that one would.

// maxAtOnce is how many tasks a decision does in this way: then the round is carried out, so that other
// instances have their turn, and the next decision goes on.
const maxAtOnce = 256

// doAtOnce does an attempt that is ready, if that is possible. It reports whether it has.
func (d *decision) doAtOnce(a *state.Attempt) bool {
	if !d.instant(a) || d.state.EvidenceOf(nil).MayStart(a) != "" {
		return false
	}
	var outputs map[workflow.DataName]workflow.Value
	var err error
	if a.Task.Application == workflow.AppSet {
		outputs, err = a.Task.With.Values(d.state.Job(a, 1).Input, d.Instance().String(), d.age())
	}
	if err != nil {
		return false
	}
	if outputs, err = d.state.CheckResult(a, outputs); err != nil {
		return false
	}
	_, err = d.append(fact.Body{
		Start:   &fact.Start{Attempt: a.ID, Try: 1, Consumed: d.state.Consumed(a)},
		Success: &fact.Success{Attempt: a.ID, Try: 1, Outputs: outputs},
	})
	if err != nil {
		return false
	}
	d.atOnce++
	return true
}

// later reports whether an attempt is for the next decision, as this one has done enough.
func (d *decision) later(a *state.Attempt) bool {
	if d.atOnce < maxAtOnce || !d.instant(a) {
		return false
	}
	d.out.wake(max(d.now.Boot, 1))
	return true
}

// instant reports whether an attempt is one that this node does while it decides.
func (d *decision) instant(a *state.Attempt) bool {
	t := a.Task
	return d.does && a.Start == nil && !a.Beside() && t.Type == workflow.Automatic && len(t.Queries) == 0 &&
		(t.Application == workflow.AppNoop || t.Application == workflow.AppSet)
}

// age is how old the instance is, by people's time.
func (d *decision) age() time.Duration {
	return max(d.now.Wall.Sub(time.UnixMilli(d.Genesis().At)), 0)
}
