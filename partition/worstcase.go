package partition

import (
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// The worst case (docs/systems.md, Emergency triggers): the latest moment,
// counted from the instance's start, at which a task is ready or known never to
// be. A holder that hears of nobody starts its emergency waits by it. What the
// definition says is counted; the time that messages and judges take is not.
//
//	ready(t) = 0                              without a rule
//	         = waitStart(t) + timeToWait(t)   with a time-to-wait: a failure before
//	                                          leaves the rule undecided until then
//	         = the latest of its rule's terms otherwise
//	         = the latest end of what it stands in for, when it is only a contingency
//	end(t)   = ready(t) + timeOut(t) + the timeOuts of the contingencies that may
//	           follow it, one after the other
//	waitStart(t) = the earliest ready(p) of its predecessors p: the wait starts
//	           when one of them is READY; without predecessors, the instance's start
//
// A term ready(p) is decided at ready(p); running, succeeded and failed at the
// latest at end(p). A term about data is decided when the last age that it
// compares with has passed and every task that may write the data has ended
// (docs/design.md, Rules in three values).
//
// A task without a timeOut ends nobody knows when, and so do those after it. The
// timeOut counts from READY, so that retries are inside it.

// span is a time since the start of the instance. Unless known it has no bound,
// and d is what comes of those parts that have one.
type span struct {
	d     time.Duration
	known bool
}

func (s span) plus(t span) span { return span{add(s.d, t.d), s.known && t.known} }

// later is the later of two spans; one without bound is the latest.
func later(a, b span) span { return span{max(a.d, b.d), a.known && b.known} }

// earlier is the earlier of two spans; one without bound only counts if both
// have none.
func earlier(a, b span) span {
	if a.known != b.known {
		if a.known {
			return a
		}
		return b
	}
	return span{min(a.d, b.d), a.known}
}

// bounds holds the worst cases of all tasks.
type bounds struct {
	graph   *graph
	writers map[workflow.DataName][]int
	covered [][]int // by contingency: the tasks that name it
	takes   []span  // by task: its timeout and those of its contingencies
	ready   []span
	state   []progress // of ready; a cycle has no bound

	ends    []span     // by task: the latest of all its slots
	ended   []progress // of ends
	decided map[workflow.DataName]*settled
}

// settled is the latest moment at which data is written.
type settled struct {
	latest span
	state  progress
	// readers counts the tasks that write the data, and whose rules ask for it.
	readers int
}

func newBounds(g *graph) *bounds {
	n := len(g.tasks)
	b := &bounds{
		graph: g, writers: make(map[workflow.DataName][]int), covered: make([][]int, n), takes: make([]span, n),
		ready: make([]span, n), state: make([]progress, n), ends: make([]span, n), ended: make([]progress, n),
		decided: map[workflow.DataName]*settled{},
	}
	for i, t := range g.tasks {
		for _, name := range t.Out {
			b.writers[name] = append(b.writers[name], i)
			b.decided[name] = &settled{}
		}
		if next := g.next[i]; next != none {
			b.covered[next] = append(b.covered[next], i)
		}
		b.takes[i] = span{known: true}
		for _, c := range g.chain[i] {
			b.takes[i] = b.takes[i].plus(timeout(g.tasks[c]))
		}
	}
	for i := range g.tasks {
		b.noteReaders(i)
	}
	for i := range g.tasks {
		b.readyAt(i)
		b.slotsEnd(i)
	}
	return b // afterwards nothing is written, so that many may read
}

// noteReaders counts task i where its rule asks for data that it may write itself,
// and decides when it is ready.
func (b *bounds) noteReaders(i int) {
	t, asked := b.graph.tasks[i], map[workflow.DataName]bool{}
	if t.ContingencyOnly || t.TimeToWait > 0 {
		return
	}
	t.Rule.Terms(func(r *workflow.Rule) {
		if r.Op == workflow.OpData {
			for _, name := range r.Data.Names() {
				asked[name] = true
			}
		}
	})
	for _, name := range t.Out {
		if asked[name] {
			b.decided[name].readers++
		}
	}
}

// timeout is the longest that a task takes.
func timeout(t *workflow.Task) span { return span{t.Timeout, t.Timeout > 0} }

func (b *bounds) readyAt(i int) span {
	if b.state[i] == untouched {
		b.state[i] = started
		b.ready[i] = b.computeReady(i)
		b.state[i] = done
	}
	if b.state[i] == started {
		return span{}
	}
	return b.ready[i]
}

func (b *bounds) computeReady(i int) span {
	t := b.graph.tasks[i]
	switch {
	case t.ContingencyOnly:
		return b.standsInAt(i)
	case t.Rule == nil:
		return span{known: true}
	case t.TimeToWait > 0:
		return b.waitStart(i).plus(span{t.TimeToWait, true})
	}
	latest := span{known: true}
	t.Rule.Terms(func(r *workflow.Rule) { latest = later(latest, b.decidedAt(i, r)) })
	return latest
}

// waitStart is the latest moment at which the wait of task i begins.
func (b *bounds) waitStart(i int) span {
	preds := b.graph.preds[i]
	if len(preds) == 0 {
		return span{known: true}
	}
	first := b.readyAt(preds[0])
	for _, p := range preds[1:] {
		first = earlier(first, b.readyAt(p))
	}
	return first
}

// decidedAt is the latest moment at which a term of the rule of task i is decided.
func (b *bounds) decidedAt(i int, term *workflow.Rule) span {
	if term.Op == workflow.OpData {
		return b.dataDecidedAt(i, term.Data)
	}
	p, ok := b.graph.index[term.Task]
	switch {
	case !ok:
		return span{}
	case p == i:
		return span{known: true}
	case term.Transition == workflow.BecameReady:
		return b.readyAt(p)
	}
	return b.askedEnd(p)
}

// askedEnd is the latest end of what a rule asks for when it mentions task p.
func (b *bounds) askedEnd(p int) span {
	if b.graph.isSlot(p) {
		return b.endAt([]int{p})
	}
	return b.slotsEnd(p)
}

// slotsEnd is the latest end of the slots in which a task may run.
func (b *bounds) slotsEnd(i int) span {
	if b.ended[i] == untouched {
		b.ended[i] = started
		b.graph.steps += len(b.graph.slots[i])
		b.ends[i] = b.endAt(b.graph.slots[i])
		b.ended[i] = done
	}
	if b.ended[i] == started {
		return span{}
	}
	return b.ends[i]
}

func (b *bounds) dataDecidedAt(i int, e *workflow.Expr) span {
	latest := span{known: true}
	if ages := e.Ages(); len(ages) > 0 {
		latest.d = ages[len(ages)-1]
	}
	for _, name := range e.Names() {
		latest = later(latest, b.writtenAt(name, i))
	}
	return latest
}

// writtenAt is the latest moment at which data is written by others than reader.
// Where several tasks write what their own rules ask for, each waits for the others:
// they need not be told apart.
func (b *bounds) writtenAt(name workflow.DataName, reader int) span {
	d := b.decided[name]
	switch {
	case d == nil:
		return span{known: true}
	case d.readers == 1 && slices.Contains(b.graph.tasks[reader].Out, name):
		return b.latestWrite(name, reader)
	case d.state == untouched:
		d.state = started
		d.latest = b.latestWrite(name, none)
		d.state = done
	}
	if d.state == started {
		return span{}
	}
	return d.latest
}

func (b *bounds) latestWrite(name workflow.DataName, but int) span {
	latest := span{known: true}
	for _, w := range b.writers[name] {
		b.graph.steps++
		switch {
		case w == but:
		case b.graph.tasks[w].Repeat:
			latest.known = false // may write again and again
		default:
			latest = later(latest, b.slotsEnd(w))
		}
	}
	return latest
}

// endAt is the latest end of the slots; unknown if there are none, as for a
// task that only undoes others.
func (b *bounds) endAt(slots []int) span {
	latest := span{known: len(slots) > 0}
	for _, s := range slots {
		latest = later(latest, b.readyAt(s).plus(b.takes[s]))
	}
	return latest
}

// standsInAt is the latest moment at which contingency i may be called upon:
// when a task that it covers, in its own slot or itself as a contingency, has
// run out of time.
func (b *bounds) standsInAt(i int) span {
	latest := span{known: len(b.covered[i]) > 0}
	for _, c := range b.covered[i] {
		starts := b.readyAt(c)
		if b.graph.isSlot(c) && len(b.covered[c]) > 0 {
			starts = later(starts, b.standsInAt(c))
		}
		latest = later(latest, starts.plus(timeout(b.graph.tasks[c])))
	}
	return latest
}

// WorstEnd is the latest moment, since the start of the instance, at which the
// slot of t has a result; ok is false when there is no bound.
func (p *Plan) WorstEnd(t workflow.TaskName) (since time.Duration, ok bool) {
	return p.bound(t, p.bounds.askedEnd)
}

// WaitStart is the latest moment, since the start of the instance, at which
// the wait clock of a task with time-to-wait begins to run.
//
// workflow.Parse sees to it that timeouts bound it. It has yet no true bound if
// each predecessor waits for data that nobody has to deliver in time: ok is
// then false and since counts the timeouts alone, because an emergency trigger
// must never wait for ever.
func (p *Plan) WaitStart(t workflow.TaskName) (since time.Duration, ok bool) {
	return p.bound(t, p.bounds.waitStart)
}

func (p *Plan) bound(t workflow.TaskName, of func(int) span) (since time.Duration, ok bool) {
	i, ok := p.graph.index[t]
	if !ok {
		return 0, false
	}
	s := of(i)
	return s.d, s.known
}
