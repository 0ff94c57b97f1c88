package choreo

import (
	"container/heap"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/contingency/waits"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file keeps the clocks of a machine, which contingency/waits counts: which are about what this node holds, and
// when these are to be looked at.

// noted is what is noted of a wait.
type noted struct {
	asked bool // the partner that it is about was asked what it has
	// of are the slots that may be judged by it, of a waits.Answer; nil: all for which the
	// partition answers. joined is how many had joined these, over how many were done that
	// had waited for a trigger (partDesk).
	of           map[workflow.TaskName]bool
	joined, over int
}

// clocks are all waits of a machine.
type clocks struct {
	waits.Clocks[noted]
	// slots are the slots that own clocks are about, due when to look at them though
	// nothing changed; fresh are those of which something changed, in rule order.
	slots   map[*state.Slot]*slotClocks
	due     soonest
	fresh   byPlace
	isFresh map[*state.Slot]bool
	// made is of which state these slots are, goesOn whether their tasks were clocked.
	// outdated: none of that is true any more; others: among the own clocks may be some
	// that are about no slot.
	made                     int
	goesOn, outdated, others bool

	// quiet is the moment (Boot) before which nothing fires, unless this node
	// heard before what happened in a gap: heard is when it began to; 0: not yet.
	// calm is the moment that follows from both, when waits were last looked at.
	quiet, heard, calm time.Duration
	// watched is when partitions and participants were last looked at (Boot); 0: never.
	// carefree: there was nothing to watch then.
	watched  time.Duration
	carefree bool
}

// slotClocks are the own clocks about a slot, and when to look at them; 0: never.
type slotClocks struct {
	keys []waits.Key
	at   time.Duration // Boot
}

func newClocks(steps *int) clocks {
	return clocks{
		Clocks: waits.New[noted](steps), slots: map[*state.Slot]*slotClocks{}, isFresh: map[*state.Slot]bool{},
		outdated: true,
	}
}

// answering reports whether a clock runs for another's partition.
func (cs *clocks) answering(p workflow.PartitionName) bool {
	k := waits.Key{Kind: waits.Answer, Name: string(p)}
	return cs.Get(k) != nil || cs.Get(k.HandOver()) != nil
}

// byItself reports whether a clock runs for another's attempt by itself.
func (cs *clocks) byItself(a fact.AttemptID) bool {
	if cs.LenOthers() == 0 {
		return false
	}
	name := a.String()
	return cs.Get(waits.Key{Kind: waits.Attempt, Name: name}) != nil ||
		cs.Get(waits.Key{Kind: waits.Readiness, Name: name}) != nil
}

// forget forgets all waits.
func (cs *clocks) forget() {
	if cs.Len() > 0 {
		cs.Clear()
		cs.outdated = true
	}
}

// freshen has a slot looked at.
func (cs *clocks) freshen(sl *state.Slot) {
	if !cs.isFresh[sl] {
		cs.isFresh[sl] = true
		heap.Push(&cs.fresh, sl)
	}
}

// only ends the waits for own tasks that are about no slot.
func (cs *clocks) only() {
	wanted := map[waits.Key]bool{}
	for _, of := range cs.slots {
		for _, k := range of.keys {
			wanted[k] = true
		}
	}
	cs.Only(wanted)
}

func (of *slotClocks) wake(at time.Duration) {
	if at = max(at, 1); of.at == 0 || at < of.at { // 0 is never
		of.at = at
	}
}

// soonest is a heap of slots by when to look at them.
type soonest []dueAt

type dueAt struct {
	at time.Duration
	sl *state.Slot
}

func (q soonest) Len() int { return len(q) }

func (q soonest) Less(i, j int) bool { return q[i].at < q[j].at }

func (q soonest) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

func (q *soonest) Push(x any) { *q = append(*q, x.(dueAt)) }

func (q *soonest) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
