package state

import (
	"math"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
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
	return Between(o.Began, o.Ended)
}

// Between is the time between two moments in ms since 1970, which are what somebody says:
// at least 0, and at most what a duration can be.
func Between(from, to int64) time.Duration {
	return time.Duration(min(max(to-from, 0), math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}

// Outcome is how an attempt ended that had been started; ok is false while it has not.
func (s *State) Outcome(a *Attempt) (o Outcome, ok bool) {
	o = Outcome{Performer: s.PerformerOf(a), Task: a.Task, Tries: a.Tries}
	end := a.Success()
	if end == nil {
		end, o.Failed = a.gaveUp(), true
	}
	if end == nil || a.Start == nil {
		return o, false
	}
	o.Began, o.Ended = a.Start.Fact.At, end.Fact.At
	return o, true
}

// gaveUp is the holder's own verdict on an attempt, nil if there is none.
func (a *Attempt) gaveUp() *log.Entry {
	for _, r := range a.Rulings {
		if c := r.At.Fact.Body.Verdict.Cause; r.Final && !r.Void &&
			(c == fact.CauseReported || c == fact.CauseTimeout) {
			return r.At
		}
	}
	return nil
}
