package aptitude

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Experience is what the finished executions of one task by one resource were
// like. The zero value is none. Counts add up to a hundred at most: from then on
// old executions fade as new ones come.
type Experience struct {
	Done   float64 // succeeded at once
	Redone float64 // succeeded, but not at the first try
	Failed float64
	// Timed is how many successes had an expected time to hold theirs against,
	// LogRatio the sum of ln(actual / expected) over them.
	Timed    float64
	LogRatio float64
}

// Execution is one finished execution.
type Execution struct {
	Failed, Redone bool
	// Took and Expected are how long it took and should have; 0: unknown.
	Took, Expected time.Duration
}

// The bounds of learning. A single execution counts for no more than a factor
// of maxRatio in time; prior executions that went as expected are assumed, so
// that one bad day says little; what is stated of a suitability is never
// changed by more than minFactor or maxFactor.
const (
	maxExperience = 100
	maxRatio      = 4
	prior         = 4
	minFactor     = 0.5
	maxFactor     = 1.25
)

// After is e with one more execution.
func (e Experience) After(x Execution) Experience {
	switch {
	case x.Failed:
		e.Failed++
	case x.Redone:
		e.Redone++
	default:
		e.Done++
	}
	if !x.Failed && x.Took > 0 && x.Expected > 0 {
		e.Timed++
		e.LogRatio += math.Log(min(max(float64(x.Took)/float64(x.Expected), 1.0/maxRatio), maxRatio))
	}
	return e.faded()
}

func (e Experience) faded() Experience {
	if f := maxExperience / (e.Done + e.Redone + e.Failed); f < 1 {
		e.Done, e.Redone, e.Failed = f*e.Done, f*e.Redone, f*e.Failed
	}
	if f := maxExperience / e.Timed; f < 1 {
		e.Timed, e.LogRatio = f*e.Timed, f*e.LogRatio
	}
	return e
}

// Plus is the experience of two places together.
func (e Experience) Plus(o Experience) Experience {
	return Experience{
		e.Done + o.Done, e.Redone + o.Redone, e.Failed + o.Failed, e.Timed + o.Timed, e.LogRatio + o.LogRatio,
	}
}

// Factor is what a stated suitability is multiplied by, from 0.5 to 1.25; 1
// without experience. It is the share of executions that succeeded (one that
// did not at the first try counts half as a failure), divided by the square
// root of how much longer than expected they took on average. A suitability of
// 0 stays 0, and hard constraints are none of its business.
func (e Experience) Factor() float64 {
	good := e.Done + e.Redone + prior
	reliability := (good - e.Redone/2) / (good + e.Failed)
	return min(max(reliability/math.Sqrt(e.slowness()), minFactor), maxFactor)
}

// slowness is the mean of actual by expected time, with what is assumed before.
func (e Experience) slowness() float64 { return math.Exp(e.LogRatio / (e.Timed + prior)) }

// String explains the factor.
func (e Experience) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%.0f done", e.Done+e.Redone)
	if e.Redone > 0 {
		fmt.Fprintf(&b, " (%.0f not at the first try)", e.Redone)
	}
	fmt.Fprintf(&b, ", %.0f failed", e.Failed)
	if e.Timed > 0 {
		fmt.Fprintf(&b, ", in %.2g of the expected time", math.Exp(e.LogRatio/e.Timed))
	}
	fmt.Fprintf(&b, ": × %.2f", e.Factor())
	return b.String()
}
