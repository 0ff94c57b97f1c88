package aptitude

// epsilon absorbs rounding: 0.75 × 0.8 must not exceed 0.6.
const epsilon = 1e-9

// DefaultUrgency is the urgency at which every task starts (spec, Allocation metric).
const DefaultUrgency = 0.8

// Factors are what the allocation metric is made of, each in [0, 1].
type Factors struct {
	Suitability  float64 // how apt the resource is for the task; 0: must never get it
	Urgency      float64 // how pressing the item is now
	Conformance  float64 // 1: no constraint is violated; 0: a hard one is
	Availability float64 // how much of its time the resource has left
}

// AbsAlloc is the allocation metric: the product of the four factors.
func (f Factors) AbsAlloc() float64 {
	return f.Suitability * f.Urgency * f.Conformance * f.Availability
}

// Quality is what the pairing contributes to Q_actual: suitability × conformance.
func (f Factors) Quality() float64 { return f.Suitability * f.Conformance }

// Urgency is an item's urgency as it waits.
type Urgency struct {
	Initial float64 // 0: DefaultUrgency
	Growth  float64 // added per unit of time since the item became ready; 0: constant
}

// After is the urgency once the item has waited that long; it never exceeds 1.
func (u Urgency) After(waited float64) float64 {
	initial := u.Initial
	if initial == 0 {
		initial = DefaultUrgency
	}
	return min(1, initial+u.Growth*max(0, waited))
}

// Violation is a constraint that a resource would break by taking an item.
type Violation struct {
	Constraint string
	Penalty    float64 // in [0, 1]; 1 makes the constraint hard: it is never broken
}

// Hard reports whether nothing may outweigh the constraint.
func (v Violation) Hard() bool { return v.Penalty >= 1 }

// Conformance is the product of (1 − penalty) over the violations; 1 without any.
func Conformance(violations []Violation) float64 {
	c := 1.0
	for _, v := range violations {
		c *= 1 - v.Penalty
	}
	return c
}
