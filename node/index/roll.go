package index

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/google/btree"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Rank is where an instance stands in the list that people see: the newest first, and those of one
// millisecond by their IDs. Of an instance that cannot be read started is 0.
type Rank struct {
	Started int64 // ms
	ID      workflow.InstanceID
}

// IDOf reads an ID that this node wrote.
func IDOf(s string) (id workflow.InstanceID) {
	_, _ = hex.Decode(id[:], []byte(s)) // our own text
	return id
}

// Before reports whether an instance stands before another one in lists.
func (a Rank) Before(b Rank) bool { return a.compare(b) < 0 }

func (a Rank) compare(b Rank) int {
	return cmp.Or(cmp.Compare(b.Started, a.Started), a.ID.Compare(b.ID))
}

// roll holds the instances that a node has in the orders in which they are asked for, so that nothing costs
// more where more are held: not a page of a list, nor the beginning of an ID, nor what need not be kept.
type roll struct {
	all   *btree.BTreeG[Rank]
	open  *btree.BTreeG[Rank] // those of all in which something is to happen, or which are set aside
	named *btree.BTreeG[workflow.InstanceID]
	ended *btree.BTreeG[Rank] // those that ended and are not set aside, by their ends; the newest first
	aged  *btree.BTreeG[aged] // those of which all facts may be deleted, the oldest first
}

// aged is where an instance stands among those that are given up: first those of which that began, then by the
// age that the node had when they ended.
type aged struct {
	age time.Duration
	id  workflow.InstanceID
}

func (sum *Summary) aged(id workflow.InstanceID) aged {
	if sum.Closed {
		return aged{-1, id}
	}
	return aged{sum.Age, id}
}

// rollDegree is how wide the trees are.
const rollDegree = 32

func newRoll() roll {
	before := func(a, b Rank) bool { return a.compare(b) < 0 }
	return roll{
		all: btree.NewG(rollDegree, before), open: btree.NewG(rollDegree, before),
		named: btree.NewG(rollDegree, func(a, b workflow.InstanceID) bool { return a.Compare(b) < 0 }),
		ended: btree.NewG(rollDegree, before),
		aged: btree.NewG(rollDegree, func(a, b aged) bool {
			return cmp.Or(cmp.Compare(a.age, b.age), a.id.Compare(b.id)) < 0
		}),
	}
}

// standing is where an instance stands in each of them, if it does.
type standing struct {
	listed, open, ended, closable bool
	at, end                       Rank
	aged                          aged
}

// standing is where an instance stands by what is known of it. The caller holds x.mu.
func (x *List) standing(id workflow.InstanceID) (is standing) {
	sum, listed := x.all[id]
	if !listed {
		return is
	}
	_, aside := x.aside[id]
	return standing{
		listed: true, open: x.open(id), ended: !aside && sum.over(), closable: !aside && sum.Closable(),
		at: Rank{sum.Started, id}, end: Rank{sum.Ended, id}, aged: sum.aged(id),
	}
}

// move has an instance stand elsewhere than before. Most changes of an instance leave most places as they are.
func (r *roll) move(was, is standing) {
	moveIn(r.all, was.at, was.listed, is.at, is.listed)
	moveIn(r.open, was.at, was.open, is.at, is.open)
	moveIn(r.named, was.at.ID, was.listed, is.at.ID, is.listed)
	moveIn(r.ended, was.end, was.ended, is.end, is.ended)
	moveIn(r.aged, was.aged, was.closable, is.aged, is.closable)
}

// moveIn moves an instance in one of the orders from where it was, if it was in it, to where it is.
func moveIn[T comparable](t *btree.BTreeG[T], from T, was bool, to T, is bool) {
	if was == is && from == to {
		return
	}
	if was {
		t.Delete(from)
	}
	if is {
		t.ReplaceOrInsert(to)
	}
}

// after are the instances behind a place, in order; nil: all of them.
func after(t *btree.BTreeG[Rank], behind *Rank) iter.Seq[Rank] {
	return func(yield func(Rank) bool) {
		if behind == nil {
			t.Ascend(yield)
			return
		}
		t.AscendGreaterOrEqual(*behind, func(p Rank) bool { return p == *behind || yield(p) })
	}
}

// called are the instances whose IDs begin so, in hexadecimal.
func (r *roll) called(prefix string) iter.Seq[workflow.InstanceID] {
	var from workflow.InstanceID
	if n, err := hex.Decode(from[:], []byte((prefix + "0")[:(len(prefix)+1)/2*2])); err != nil || n > len(from) {
		return func(func(workflow.InstanceID) bool) {} // no ID begins so
	}
	return func(yield func(workflow.InstanceID) bool) {
		r.named.AscendGreaterOrEqual(from, func(id workflow.InstanceID) bool {
			return strings.HasPrefix(id.String(), prefix) && yield(id)
		})
	}
}

// A list of instances is read in pages. Where the next begins says a mark: the start in milliseconds and the ID
// of the row before it; or, among those of which only a summary is left, the ID alone. These come last, in the
// order of their IDs, and before the first of them stands no ID.

// Mark is how Next is written.
func (p Rank) Mark() string { return fmt.Sprintf("%d-%s", p.Started, p.ID) }

// AtSummaries is where the summaries begin.
const AtSummaries = "-"

// AfterSummary is where it goes on behind that of an instance.
func AfterSummary(id workflow.InstanceID) string { return AtSummaries + id.String() }

// ReadMark reads a mark; summaries: it stands among them.
func ReadMark(s string) (p Rank, summaries bool, err error) {
	started, id, found := strings.Cut(s, "-")
	b, err := hex.DecodeString(id)
	first := s == AtSummaries
	if err != nil || !found || len(b) != len(p.ID) && !first {
		return p, false, badMark(s)
	}
	copy(p.ID[:], b)
	if started == "" {
		return p, true, nil
	}
	if p.Started, err = strconv.ParseInt(started, 10, 64); err != nil {
		return p, false, badMark(s)
	}
	return p, false, nil
}

func badMark(s string) error {
	return api.Errorf(api.Invalid, "after is %q: want what the page before it gave as its next", s).
		WithHint("leave it out to begin with the first page")
}
