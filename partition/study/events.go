package study

import "container/heap"

// event is the arrival of a workflow instance, the end of what a resource
// executes, or merely a moment at which to distribute again.
type event struct {
	at       float64
	seq      int // of two at the same moment, which was foreseen first
	kind     eventKind
	instance int // arrival
	resource int // ending
}

type eventKind uint8

const (
	arrival eventKind = iota
	ending
	wake
)

// agenda gives events in the order of their moments.
type agenda struct {
	queue eventQueue
	seq   int
}

func (a *agenda) add(e event) {
	e.seq = a.seq
	a.seq++
	heap.Push(&a.queue, e)
}

func (a *agenda) empty() bool { return len(a.queue) == 0 }

func (a *agenda) next() float64 { return a.queue[0].at }

func (a *agenda) pop() event { return heap.Pop(&a.queue).(event) }

type eventQueue []event

func (q eventQueue) Len() int { return len(q) }

func (q eventQueue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}

func (q eventQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

func (q *eventQueue) Push(x any) { *q = append(*q, x.(event)) }

func (q *eventQueue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	*q = (*q)[:last]
	return e
}
