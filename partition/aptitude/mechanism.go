package aptitude

import (
	"fmt"
	"strings"
)

// Mechanism is a way to hand out work.
type Mechanism string

// The mechanisms (spec, Mechanisms). Pull, Typical, Receptive and Selective
// let an idle resource take an item from a shared queue; the others put the
// item on a resource's own queue.
const (
	// Push gives it to the most suitable, whatever their load.
	Push Mechanism = "Push"
	// Pull lets anyone who is suited take it.
	Pull Mechanism = "Pull"
	// Typical lets those take it whose abs_alloc exceeds 0.5.
	Typical Mechanism = "Typical"
	// Receptive lets those take it whose abs_alloc exceeds 0.4.
	Receptive Mechanism = "Receptive"
	// Selective lets those take it whose abs_alloc exceeds 0.6.
	Selective Mechanism = "Selective"
	// SelPush gives it to the greatest abs_alloc that has capacity left.
	SelPush Mechanism = "Sel-push"
	// SelPush10 gives it to the most available within 10 % of the greatest abs_alloc.
	SelPush10 Mechanism = "Sel-push-10"
	// SelPushFlowtime gives it, among the apt, to the one whose last task flowed fastest.
	SelPushFlowtime Mechanism = "Sel-push-flowtime"
	// SelPushPull offers it to the apt, and pushes it if nobody takes it in time.
	SelPushPull Mechanism = "Sel-push-pull"
)

// Mechanisms are the eight that the source compares, in its order.
func Mechanisms() []Mechanism {
	return []Mechanism{Push, Pull, Typical, Receptive, Selective, SelPush, SelPush10, SelPushFlowtime}
}

// ParseMechanism finds a mechanism by name, in any case.
func ParseMechanism(name string) (Mechanism, error) {
	all := append(Mechanisms(), SelPushPull)
	names := make([]string, len(all))
	for i, m := range all {
		if strings.EqualFold(string(m), name) {
			return m, nil
		}
		names[i] = string(m)
	}
	return "", fmt.Errorf("%q is not a mechanism: choose one of %s", name, strings.Join(names, ", "))
}

// Pulls reports whether an idle resource takes the item itself, so that nothing
// is queued at a resource. Sel-push-pull does both.
func (m Mechanism) Pulls() bool {
	switch m {
	case Pull, Typical, Receptive, Selective, SelPushPull:
		return true
	}
	return false
}

// Loads reports whether an assignment costs its resource availability until it
// is finished.
func (m Mechanism) Loads() bool {
	switch m {
	case SelPush, SelPush10, SelPushFlowtime, SelPushPull:
		return true
	}
	return false
}

// tiers are the dynamic threshold: selective, typical, receptive resources,
// then (ours) any that are suited, so that no work waits for ever.
var tiers = [...]float64{0.6, 0.5, 0.4, 0}

// threshold is what abs_alloc must exceed for the item to be seen.
func (m Mechanism) threshold() float64 {
	switch m {
	case Selective:
		return tiers[0]
	case Typical:
		return tiers[1]
	case Receptive:
		return tiers[2]
	}
	return 0
}

// Policy is a mechanism with its options.
type Policy struct {
	Mechanism   Mechanism
	Dispatching Dispatching
	// Relax lowers the thresholds in proportion as an item's deadline nears,
	// from whole when it becomes ready to nothing when it is due.
	Relax bool
	// Compensate disregards as much of the violations as nobody could avoid:
	// conformance is divided by the greatest one to be had for the item.
	Compensate bool
	// Patience is how long Sel-push-pull offers an item before it pushes.
	Patience float64
}
