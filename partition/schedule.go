package partition

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file estimates when work that is given out now can begin, and what a partner will
// have in hand by then.

// Schedule is when the tasks of an instance are expected to end, each taking the time
// that is expected of it.
type Schedule struct {
	graph *graph
	ends  []time.Duration // from now, by task, by number
}

// Schedule goes by which tasks have ended. It costs a step for each task and each name in
// a rule.
func (p *Plan) Schedule(ended func(workflow.TaskName) bool) *Schedule {
	s := &Schedule{p.graph, make([]time.Duration, len(p.graph.tasks))}
	for i, t := range s.graph.tasks {
		if !ended(t.Name) {
			s.ends[i] = s.ready(i) + Expected(t)
		}
	}
	return s
}

// Begins is how long it takes until the first of some tasks that have not ended is
// expected to be ready.
func (s *Schedule) Begins(tasks ...workflow.TaskName) time.Duration {
	first, found := time.Duration(0), false
	for _, t := range tasks {
		i := s.graph.index[t]
		if s.ends[i] == 0 {
			continue
		}
		if at := s.ready(i); !found || at < first {
			first, found = at, true
		}
	}
	return first
}

// ready is when the tasks that a task waits for are expected to have ended.
func (s *Schedule) ready(i int) (at time.Duration) {
	for _, p := range s.graph.preds[i] {
		at = max(at, s.ends[p])
	}
	return at
}

// give notes that whoever was given a unit is expected to be free for it then.
func (s *Schedule) give(u *unit, free time.Duration) {
	for _, t := range u.tasks {
		i := s.graph.index[t.Name]
		s.ends[i] = max(free, s.ready(i)) + Expected(t)
	}
}

// begins is how long it takes until a unit that is given out now is expected to be ready.
func (d *distributor) begins(u *unit) time.Duration {
	if !u.later {
		return 0
	}
	return d.schedule.Begins(u.names()...)
}

func (u *unit) names() []workflow.TaskName {
	out := make([]workflow.TaskName, len(u.tasks))
	for i, t := range u.tasks {
		out[i] = t.Name
	}
	return out
}

// left is what a partner will have in hand after a while, if it does one thing after the
// other, in the order in which they are ready: of each kind that costs it availability, in
// seconds, and of all. What is not ready by then does not count.
func (p Partner) left(after time.Duration) (byKind map[Kind]float64, all time.Duration) {
	type lot struct {
		kind     Kind
		in, time time.Duration
	}
	byKind = make(map[Kind]float64, len(p.InHand))
	lots := make([]lot, 0, 2*len(p.InHand)+2)
	split := func(kind Kind, h InHand) { lots = append(lots, lot{kind, 0, h.Ready}, lot{kind, h.Wait, h.later()}) }
	rest := p.Backlog
	for _, kind := range slices.Sorted(maps.Keys(p.InHand)) {
		split(kind, p.InHand[kind])
		rest = rest.Minus(p.InHand[kind])
	}
	split(NoKind, rest)
	slices.SortStableFunc(lots, func(a, b lot) int { return cmp.Compare(a.in, b.in) })
	var done time.Duration
	for _, l := range lots {
		if l.in > after {
			break
		}
		done = max(done, l.in) + l.time
		left := min(l.time, max(0, done-after))
		byKind[l.kind] += left.Seconds()
		all += left
	}
	delete(byKind, NoKind)
	return byKind, all
}
