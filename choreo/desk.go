package choreo

import (
	"maps"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// desk is what a node has before it of an instance: the slots about which it may
// have something to do, and what the rest adds up to. It follows the state slot by
// slot: what a decision costs depends on what changed and what is at hand, not on
// how large the instance is.
type desk struct {
	made  int           // of which state, see State.Made
	slots []*state.Slot // of that
	// worked are the slots that were at work when all were made again, waited those that waited
	// for a trigger, while they are looked at for the first time since: they do not join, or
	// wait, once more (partDesk.joined, over).
	worked, waited map[workflow.TaskName]bool
	// todo are the slots that Decide has to look at each time, clocked those of our own whose
	// time may run, others those of others that this node clocks one by one, undoing
	// those with successes that lost.
	todo, clocked, others, undoing map[*state.Slot]bool
	// dues are those of our own that pass to the responsible user as their deadline is near.
	dues map[*state.Slot]bool
	// moving are those of our own that nobody has begun, and that go to whom their partition moves.
	moving map[*state.Slot]bool
	// duesAt is State.Rewritten when these were brought before the board.
	duesAt   int
	atWork   int // slots at which this node may still work
	unjudged map[workflow.PartnerID]int
	parts    map[workflow.PartitionName]*partDesk
	names    map[state.Name]*awaited             // what the parts whose before is known wait for
	awaited  map[*state.Slot][]*awaited          // the same by slot
	writers  map[workflow.DataName][]*state.Slot // of those data that were asked for
	apart    map[*state.Slot]bool                // with unfinished work that came to its holder by itself
	inHand   time.Duration
	reading  beingRead

	queue byPlace // the slots that this pass of Decide has still to look at
	at    int     // the place that it has reached; -1: no pass is under way
	// all: this pass looks at what is to be undone, too, as was last done at undid
	// (Boot; 0: never).
	all   bool
	undid time.Duration
}

func newDesk(made int) desk {
	return desk{
		made: made, at: -1, duesAt: -1, todo: map[*state.Slot]bool{}, clocked: map[*state.Slot]bool{},
		others:   map[*state.Slot]bool{},
		undoing:  map[*state.Slot]bool{},
		dues:     map[*state.Slot]bool{},
		moving:   map[*state.Slot]bool{},
		unjudged: map[workflow.PartnerID]int{}, parts: map[workflow.PartitionName]*partDesk{},
		apart: map[*state.Slot]bool{},
		names: map[state.Name]*awaited{}, awaited: map[*state.Slot][]*awaited{},
		writers: map[workflow.DataName][]*state.Slot{},
	}
}

// goOn takes from the desk before it what counts on though all slots were made again: how
// often one came to work, or was done that had waited for its trigger.
func (d *desk) goOn(was *desk, steps *int) {
	for name, part := range was.parts {
		p := d.part(name)
		p.joined, p.over = part.joined, part.over
	}
	d.worked, d.waited = map[workflow.TaskName]bool{}, map[workflow.TaskName]bool{}
	for _, sl := range was.slots {
		*steps++
		if sl.Shown.Works {
			d.worked[sl.Task.Name] = true
		}
		if sl.Shown.Waits > 0 {
			d.waited[sl.Task.Name] = true
		}
	}
}

func (d *desk) part(name workflow.PartitionName) *partDesk {
	p := d.parts[name]
	if p == nil {
		p = &partDesk{}
		d.parts[name] = p
	}
	return p
}

// partDesk is what a partition's slots add up to.
type partDesk struct {
	left     int           // not done, also for this node
	holding  int           // unfinished, at the partition's holder
	expected time.Duration // for those
	begun    int           // ready, running or done there

	// answers is of how many slots the partition's holder owes an answer (countsIn),
	// active how many of these are ready or running, for the partition's own time-out;
	// waits is for how long together they may wait for a trigger. joined counts how
	// often one came to work, over how often one was done that had still waited for its
	// trigger when it was last looked at: what comes after it can begin. One that was
	// passed on, or waits for somebody to take its contingency, is over with nothing.
	answers, active, joined, over int
	waits                         time.Duration
	looked                        time.Duration // when all its slots were last looked at (Boot); 0: never
	// before is how many of the names that its tasks wait for have slots elsewhere that are
	// not done, worst when they are in the worst case. Only if awaits is set.
	before int
	worst  time.Duration
	awaits bool
}

func (p *partDesk) count(x state.Shown, by int) {
	if x.Begun {
		p.begun += by
	}
	if x.Holding {
		p.holding += by
		p.expected += time.Duration(by) * x.Expected
	}
	p.answers += by * state.AsInt(x.Answers)
	p.waits += time.Duration(by) * x.Waits
}

// awaited is what partitions wait for by one name. What many wait for is kept once, so
// that it takes as much memory as the definition and not once more for each partition.
type awaited struct {
	left map[workflow.PartitionName]int       // of its slots how many are not done, by where they are; no zeros
	by   map[workflow.PartitionName]*partDesk // those that wait for it
	// latest is when its slots are done in the worst case, at is where the last of them
	// is, elsewhere when those are that are not there.
	latest, elsewhere time.Duration
	at                workflow.PartitionName
}

// count notes that a slot in a partition is done (by: -1), or is not (+1). Only where it is
// of the last partition, or the one before, does that change anything for those that wait.
func (w *awaited) count(in workflow.PartitionName, by int, steps *int) {
	was, only := len(w.left), w.only()
	if w.left[in] += by; w.left[in] == 0 {
		delete(w.left, in)
	}
	switch is := len(w.left); {
	case is == was:
	case min(is, was) == 0:
		for p, part := range w.by {
			if *steps++; p != in {
				part.before += by
			}
		}
	case max(is, was) == 2:
		if by < 0 {
			only = w.only()
		}
		if part := w.by[only]; part != nil {
			part.before += by
		}
	}
}

// only is the one partition in which slots are not done; empty: there are none, or several.
func (w *awaited) only() (in workflow.PartitionName) {
	if len(w.left) == 1 {
		for in = range w.left {
		}
	}
	return in
}

// holdsUp reports whether a slot outside a partition is not done.
func (w *awaited) holdsUp(p workflow.PartitionName) bool {
	return len(w.left) > 1 || len(w.left) == 1 && w.left[p] == 0
}

// ends notes when a slot in a partition is done in the worst case.
func (w *awaited) ends(in workflow.PartitionName, end time.Duration) {
	switch {
	case in == w.at:
		w.latest = max(w.latest, end)
	case end > w.latest:
		w.latest, w.at, w.elsewhere = end, in, w.latest
	default:
		w.elsewhere = max(w.elsewhere, end)
	}
}

// worst is when the slots outside a partition are done in the worst case.
func (w *awaited) worst(p workflow.PartitionName) time.Duration {
	if p == w.at {
		return w.elsewhere
	}
	return w.latest
}

// beingRead are the files that this node's tasks read: of each item, how many tasks that can
// begin or run; and, once asked for, which files these are now.
type beingRead struct {
	tasks map[workflow.DataName]int
	by    map[*state.Slot]*workflow.Task // whose tasks these are
	files []state.Reading
	known bool
}

// byPlace is a heap of slots, the first in rule order first.
type byPlace []*state.Slot

func (q byPlace) Len() int { return len(q) }

func (q byPlace) Less(i, j int) bool { return q[i].Place < q[j].Place }

func (q byPlace) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

func (q *byPlace) Push(sl any) { *q = append(*q, sl.(*state.Slot)) }

func (q *byPlace) Pop() any { return (*state.Judging)(q).Pop() }

// inOrder are the slots of a set in rule order.
func inOrder(set map[*state.Slot]bool) []*state.Slot {
	if len(set) == 0 {
		return nil
	}
	return slices.SortedFunc(maps.Keys(set), func(a, b *state.Slot) int { return a.Place - b.Place })
}

func put(set map[*state.Slot]bool, sl *state.Slot, in bool) {
	if in {
		set[sl] = true
	} else {
		delete(set, sl)
	}
}
