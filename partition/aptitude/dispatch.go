package aptitude

import (
	"cmp"
	"fmt"
	"slices"
)

// Dispatching is the order in which items of different instances are
// distributed, and stand in a resource's own list. A more urgent item always
// goes first.
type Dispatching string

// The dispatching rules (spec, Mechanisms).
const (
	AsReady Dispatching = ""     // in the order given, which is how they became ready
	FIFO    Dispatching = "fifo" // the instance that started first
	SPT     Dispatching = "spt"  // the instance with the shortest expected time
	EDD     Dispatching = "edd"  // the instance that is due first; without a due date last
)

// ParseDispatching finds a rule by its name.
func ParseDispatching(name string) (Dispatching, error) {
	switch d := Dispatching(name); d {
	case AsReady, FIFO, SPT, EDD:
		return d, nil
	}
	return "", fmt.Errorf("%q is not a dispatching rule: choose fifo, spt or edd", name)
}

// Compare orders two items: negative when a goes first, 0 when the rule does
// not care. It is meant for a stable sort.
func (d Dispatching) Compare(a, b *Item, now float64) int {
	if c := cmp.Compare(b.Urgency.After(now-b.Ready), a.Urgency.After(now-a.Ready)); c != 0 {
		return c
	}
	switch d {
	case FIFO:
		return cmp.Compare(a.Instance.Start, b.Instance.Start)
	case SPT:
		return cmp.Compare(a.Instance.Expected, b.Instance.Expected)
	case EDD:
		return cmp.Or(
			compareBool(a.Instance.Due == 0, b.Instance.Due == 0),
			cmp.Compare(a.Instance.Due, b.Instance.Due))
	}
	return 0
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// order gives the waiting items' indexes in the order in which they are distributed.
func (d Dispatching) order(q *Queue) []int {
	order := make([]int, len(q.Waiting))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		return d.Compare(&q.Waiting[i], &q.Waiting[j], q.Now)
	})
	return order
}
