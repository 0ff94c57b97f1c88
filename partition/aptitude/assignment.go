package aptitude

import (
	"fmt"
	"strings"
)

// Assignment says who gets an item, and why.
type Assignment struct {
	Item     ItemID
	Task     TaskID
	Resource ResourceID // empty: the item stays in the queue
	// Load is the availability that the item costs its resource until it is finished.
	Load float64
	// Threshold is the abs_alloc that the chosen one had to reach.
	Threshold float64
	// Again is the moment at which to ask again although nothing has happened; 0: none.
	Again float64
	// Candidates are those suited for the task, in the order of resources.
	Candidates []Candidate
	// Err is a *NobodyError when nobody could take the item even when idle.
	Err error
}

// Candidate is a resource that was weighed for an item.
type Candidate struct {
	Resource ResourceID
	Factors
	Verdict Verdict
	// Broken are the hard constraints that forbid it, by name.
	Broken []string

	index int // in the resources
}

// Verdict says what became of a candidate.
type Verdict string

// The verdicts.
const (
	Chosen         Verdict = "chosen"
	Entitled       Verdict = "entitled"
	LessApt        Verdict = "apt, but another was preferred"
	Offered        Verdict = "entitled, but busy"
	NotDrawn       Verdict = "entitled, but another was drawn"
	NoCapacity     Verdict = "no capacity left"
	BelowThreshold Verdict = "below the threshold"
	Rejecting      Verdict = "rejected it"
	Forbidden      Verdict = "a hard constraint forbids it"
	Absent         Verdict = "absent"
)

// out reports whether the candidate is out of the question whatever the load.
func (v Verdict) out() bool { return v == Rejecting || v == Forbidden || v == Absent }

// Visible are the resources that see the item in a shared queue, no matter which takes it.
func (a *Assignment) Visible() []ResourceID {
	var ids []ResourceID
	for i := range a.Candidates {
		switch c := &a.Candidates[i]; c.Verdict {
		case Offered, NotDrawn, Chosen:
			ids = append(ids, c.Resource)
		}
	}
	return ids
}

// String explains the assignment, one line and one more per candidate.
func (a *Assignment) String() string {
	var b strings.Builder
	switch {
	case a.Err != nil:
		fmt.Fprintf(&b, "%s: %v", a.Item, a.Err)
	case a.Resource == "":
		fmt.Fprintf(&b, "%s: waits", a.Item)
	default:
		fmt.Fprintf(&b, "%s: %s", a.Item, a.Resource)
	}
	if a.Threshold > 0 {
		fmt.Fprintf(&b, ", threshold %.3g", a.Threshold)
	}
	for i := range a.Candidates {
		c := &a.Candidates[i]
		fmt.Fprintf(&b, "\n  %s: %.3f = suitability %.3g × urgency %.3g × conformance %.3g × availability %.3g: %s",
			c.Resource, c.AbsAlloc(), c.Suitability, c.Urgency, c.Conformance, c.Availability, c.Verdict)
	}
	return b.String()
}
