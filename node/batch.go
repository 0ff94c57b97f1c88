package node

import (
	"cmp"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is what comes of a round of a shard.

// batch is what one round of events leads to.
type batch struct {
	touched []*held
	heads   map[headsKey][]workflow.InstanceID // to be told, after the commit
	acks    []ackTo                            // likewise, unless facts say it
	// supplies are peers to bring up to date after the commit.
	supplies []supply
	refusals []refusalTo
	after    []ending
	reads    []sight
	writes   []kv.Write
	open     map[int]bool // writes after which nothing vouches yet for a fact (choreo.Stored)
	ready    []readied
}

// ending is what is done when something is durable, or with the error; of is as in event.
type ending struct {
	of workflow.InstanceID
	fn func(error)
}

// sight looks at an instance once it has decided.
type sight struct {
	of workflow.InstanceID
	fn func(*held)
}

type supply struct {
	h  *held
	to workflow.PartnerID
}

type headsKey struct {
	to   workflow.PartnerID
	mode wire.HeadsMode
}

type readied struct {
	h     *held
	r     choreo.Effects
	ended bool // by what was decided
}

// starting is a try of a task that is to begin.
type starting struct {
	h *held
	j state.Job
}

// starts are the tries that begin with a round, the task of the highest priority first: what is started first takes the
// places that are free. Else they are in the order in which they were decided.
func (b *batch) starts() (out []starting) {
	for _, x := range b.ready {
		for _, j := range x.r.Start {
			out = append(out, starting{x.h, j})
		}
	}
	slices.SortStableFunc(out, func(a, b starting) int { return cmp.Compare(b.j.Task.Priority, a.j.Task.Priority) })
	return out
}

// refusalTo is what to tell a partner after the commit.
type refusalTo struct {
	to workflow.PartnerID
	r  wire.Refusal
}

// without takes out what a round was to do of some instances. Whoever waits for it gets an
// error.
func (b *batch) without(is map[workflow.InstanceID]bool, failure func(workflow.InstanceID) error) {
	b.touched = slices.DeleteFunc(b.touched, func(h *held) bool { return is[h.id] })
	b.supplies = slices.DeleteFunc(b.supplies, func(x supply) bool { return is[x.h.id] })
	b.acks = slices.DeleteFunc(b.acks, func(x ackTo) bool { return is[x.h.id] })
	b.ready = slices.DeleteFunc(b.ready, func(x readied) bool { return is[x.h.id] })
	b.refusals = slices.DeleteFunc(b.refusals, func(x refusalTo) bool { return is[x.r.Instance] })
	for k, ids := range b.heads {
		b.heads[k] = slices.DeleteFunc(ids, func(id workflow.InstanceID) bool { return is[id] })
	}
	b.after = slices.DeleteFunc(b.after, func(x ending) bool {
		if is[x.of] {
			x.fn(failure(x.of))
		}
		return is[x.of]
	})
	writes, open := b.writes[:0], b.open
	b.open = nil
	for i, w := range b.writes {
		if id, ok := instanceOfKey(w.Key); ok && is[id] {
			continue
		}
		if open[i] {
			b.opens(len(writes))
		}
		writes = append(writes, w)
	}
	b.writes = writes
}

// opens notes that nothing vouches yet for the fact of a write.
func (b *batch) opens(i int) {
	if b.open == nil {
		b.open = map[int]bool{}
	}
	b.open[i] = true
}

// emptied is the batch without what it led to.
func (b batch) emptied() batch {
	return batch{
		touched: emptied(b.touched), supplies: emptied(b.supplies), refusals: emptied(b.refusals),
		acks: emptied(b.acks), after: emptied(b.after), reads: emptied(b.reads),
		writes: emptied(b.writes), ready: emptied(b.ready),
	}
}

// emptied is s without its elements; an array that is large for a round is let go.
func emptied[T any](s []T) []T {
	if cap(s) > kv.UnitWrites {
		return nil
	}
	clear(s)
	return s[:0]
}

// each is a list in which each is named once, where it stands first.
func each[T comparable](list []T) []T {
	if len(list) < 2 {
		return list
	}
	seen := make(map[T]bool, len(list))
	return slices.DeleteFunc(list, func(x T) bool {
		again := seen[x]
		seen[x] = true
		return again
	})
}

func (k headsKey) compare(o headsKey) int {
	return cmp.Or(cmp.Compare(k.to, o.to), cmp.Compare(k.mode, o.mode))
}

// unitEnd is where the unit of the writes ends that begins there: as late as there is room
// in it, but not between a fact and the later one that vouches for it. What must be together
// came in one bundle, and that has room in a unit (wire.MaxStored).
func (b *batch) unitEnd(from int) int {
	most := from + kv.Unit(b.writes[from:])
	for to := most; to > from; to-- {
		if !b.open[to-1] {
			return to
		}
	}
	return most
}
