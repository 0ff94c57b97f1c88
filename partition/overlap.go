package partition

import (
	"time"
)

// This file says which work of one instance can be under way at the same time.

// order tells of each two tasks of a plan whether one can only begin after the other:
// a bit for each task, by number, in words of 64.
type order struct {
	words  int
	before [][]uint64 // by task: those that come after it
	after  [][]uint64 // by task: those that come before it
}

// newOrder follows every arc once, along the rule order and back.
func newOrder(g *graph) *order {
	n := len(g.tasks)
	o := &order{words: (n + 63) / 64, before: make([][]uint64, n), after: make([][]uint64, n)}
	bits := make([]uint64, 2*n*o.words)
	for i := range n {
		o.before[i], bits = bits[:o.words], bits[o.words:]
		o.after[i], bits = bits[:o.words], bits[o.words:]
	}
	for i := range n {
		for _, a := range g.out[i] {
			if a.task > i {
				o.after[a.task][i/64] |= 1 << (i % 64)
				merge(o.after[a.task], o.after[i])
			}
		}
	}
	for i := n - 1; i >= 0; i-- {
		for _, a := range g.out[i] {
			if a.task > i {
				o.before[i][a.task/64] |= 1 << (a.task % 64)
				merge(o.before[i], o.before[a.task])
			}
		}
	}
	return o
}

func merge(into, from []uint64) {
	for w := range into {
		into[w] |= from[w]
	}
}

// beside is, of each unit that was given just now, the expected time of those of its
// tasks that can be under way together with a task of u.
func (d *distributor) beside(u *unit) []time.Duration {
	if len(d.given) == 0 {
		return nil
	}
	g := d.plan.graph
	if d.order == nil {
		d.order = newOrder(g)
	}
	ordered := make([]uint64, d.order.words) // those that come before or after every task of u
	for w := range ordered {
		ordered[w] = ^uint64(0)
		for _, t := range u.tasks {
			i := g.index[t.Name]
			ordered[w] &= d.order.before[i][w] | d.order.after[i][w]
		}
	}
	out := make([]time.Duration, len(d.given))
	for k, given := range d.given {
		for _, t := range given.unit.tasks {
			if i := g.index[t.Name]; ordered[i/64]&(1<<(i%64)) == 0 {
				out[k] += Expected(t)
			}
		}
	}
	return out
}
