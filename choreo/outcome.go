package choreo

import (
	"math"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// Outcome is how an attempt ended, as far as it says something about its
// performer.
type Outcome struct {
	Performer worklist.User // who did it: a partner, or a person who took it from a worklist
	Task      *workflow.Task
	Failed    bool
	Tries     int
	// Began and Ended are by the performer's wall clock, in ms since 1970.
	Began, Ended int64
}

// Took is how long the attempt ran; 0: unknown.
func (o Outcome) Took() time.Duration {
	return between(o.Began, o.Ended)
}

// between is the time between two moments in ms since 1970, which are what somebody says:
// at least 0, and at most what a duration can be.
func between(from, to int64) time.Duration {
	return time.Duration(min(max(to-from, 0), math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}

// Outcomes are how the attempts of an instance ended that its performers began:
// those that succeeded, and those that their performer or its clock gave up. A
// performer that was only out of reach has not failed by that, nor has one that
// was called off.
func (m *Machine) Outcomes() []Outcome {
	var out []Outcome
	for _, sl := range m.state.slots {
		for _, a := range sl.Attempts {
			if o, ok := m.state.outcome(a); ok {
				out = append(out, o)
			}
		}
	}
	slices.SortStableFunc(out, func(x, y Outcome) int { return int(min(max(x.Began-y.Began, -1), 1)) })
	return out
}

// outcome is how an attempt ended that had been started; ok is false while it has not.
func (s *State) outcome(a *Attempt) (o Outcome, ok bool) {
	o = Outcome{Performer: s.performerOf(a), Task: a.Task, Tries: a.tries}
	end := a.success()
	if end == nil {
		end, o.Failed = a.gaveUp(), true
	}
	if end == nil || a.start == nil {
		return o, false
	}
	o.Began, o.Ended = a.start.fact.At, end.fact.At
	return o, true
}

// gaveUp is the holder's own verdict on an attempt, nil if there is none.
func (a *Attempt) gaveUp() *entry {
	for _, r := range a.rulings {
		if c := r.at.fact.Body.Verdict.Cause; r.final && !r.void && (c == CauseReported || c == CauseTimeout) {
			return r.at
		}
	}
	return nil
}
