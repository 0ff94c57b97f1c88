package worklist

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is about resources, of which there is only so much (rule 12). Their keeper gives
// units away by facts of its own. Which of these count is worked out from all of them, so it is the
// same everywhere:
//
//	a unit that is given away counts while its item needs it: it is ready, and has not ended
//	what is under way has a unit before what has not begun
//	what others presume to have failed has one after all else
//	of one kind, whoever was given it first, in the one order of facts, has it first
//	what is under way goes on, whether it has a unit or not: it does not wait
//	an item has no unit of a later partition while it lacks one of an earlier one, unless it is under way
//
// So where two keepers on the two sides of a split gave away more than there is, the same items
// have what there is, for everybody. The others are said to be beyond it, and have what gets free next.

// Resource names something of which there is only so much: a crane, a room.
type Resource = workflow.ResourceName

// Keeping says that a partner keeps a resource, since a fact (zero: the genesis).
type Keeping struct {
	Partner workflow.PartnerID
	Since   ID
}

// Store is what the definition, and the core, say of a resource.
type Store struct {
	Name      Resource
	Capacity  int
	Partition workflow.PartitionName
	// Keepers are all that ever kept it; the first is the one that does.
	Keepers []Keeping
}

// Reserve gives an item a unit of each of these resources, sorted: their keeper's word. The item
// has them until it ends; where its attempt is passed on, the one that follows has them.
type Reserve struct {
	Item      Item
	Round     int // how often the item had been reopened
	Resources []Resource
}

// Keep says that its author keeps the resources of a partition from now on, as whoever kept them is gone. After
// is the Keep by which that one did; zero: the start of the instance.
type Keep struct {
	Partition workflow.PartitionName
	After     ID
}

func (Reserve) kind() string  { return "reserve" }
func (Reserve) about() []Item { return nil }
func (Keep) kind() string     { return "keep" }
func (Keep) about() []Item    { return nil }

// unitsFor says whether an item is to have its resources: in which round, and how it is placed among others.
type unitsFor struct {
	needs bool
	round int
	rank  rank
}

// rank says who has a unit before whom.
type rank uint8

const (
	underWay rank = iota
	waiting
	presumed // to have failed
	ranks
)

// rank is how an item that needs units is placed among others.
func (it *item) rank() rank {
	switch {
	case it.Presumed:
		return presumed
	case it.underWay():
		return underWay
	}
	return waiting
}

// underWay reports whether somebody works on an item, or has taken it.
func (it *item) underWay() bool { return it.Begun || it.open != nil && it.open.Mode != Handed }

// given names what was reserved: for which item, in which round.
type given struct {
	item  Item
	round int
}

func (g given) compare(o given) int {
	return cmp.Or(g.item.Compare(o.item), cmp.Compare(g.round, o.round))
}

// store is what is known of a resource.
type store struct {
	Store
	// first are the first facts, in the one order, by which items were given a unit, and live the items
	// among them that need it.
	first map[given]*Fact
	live  map[*item]bool
	// have are the items that have a unit, and beyond those for which there was none. Firm is how many of
	// the first are not presumed to have failed.
	have, beyond map[*item]bool
	firm         int
	// crowd are the items that use it where there is not enough for all, sorted: those that have a unit, and what
	// is under way without one.
	crowd []*item
}

// SetStore takes in what the core concludes of a resource.
func (b *Board) SetStore(s Store) {
	was := b.stores[s.Name]
	if was == nil {
		was = &store{first: map[given]*Fact{}, live: map[*item]bool{}}
		b.stores[s.Name] = was
	}
	was.Store, b.inParts = s, append(slices.DeleteFunc(b.inParts, func(o *store) bool { return o == was }), was)
	slices.SortFunc(b.inParts, func(x, y *store) int {
		return cmp.Or(cmp.Compare(x.Partition, y.Partition), cmp.Compare(x.Name, y.Name))
	})
	b.counted, b.desk.units = false, true
}

// enterReserve takes a reservation in.
func (b *Board) enterReserve(x Reserve, f *Fact) {
	for _, r := range x.Resources {
		s := b.stores[r]
		if s == nil || !s.keptBy(b, f) {
			b.refused[f.ID] = "its author does not keep " + string(r)
			return
		}
	}
	for _, r := range x.Resources {
		s, of := b.stores[r], given{x.Item, x.Round}
		if was := s.first[of]; was == nil || f.compare(was) < 0 {
			s.first[of] = f
		}
	}
	b.item(x.Item)
	for _, it := range b.line(x.Item) {
		b.changed(it)
		b.units(it)
	}
}

// keptBy reports whether the author of a fact kept the resource, as far as it knew.
func (s *store) keptBy(b *Board, f *Fact) bool {
	return slices.ContainsFunc(s.Keepers, func(k Keeping) bool {
		return k.Partner == f.Partner && (k.Since.IsZero() || b.knew(f.ID, k.Since))
	})
}

// root is the item for which units are reserved: that of the first of the attempts that were passed on to it.
func (it *item) root() Item {
	if it.Root.Slot != "" {
		return it.Root
	}
	return it.Item
}

// line are the items of an attempt, and of those to which it was passed on.
func (b *Board) line(root Item) []*item {
	line := b.heirs[root]
	if it := b.items[root]; it != nil && !slices.Contains(line, it) {
		line = append(slices.Clip(line), it)
	}
	return line
}

// reservation is the fact by which an item was given a unit; nil: it was not.
func (s *store) reservation(it *item) *Fact { return s.first[given{it.root(), it.rounds}] }

// units notes that an item may need its units, or need them no more.
func (b *Board) units(it *item) {
	needs := b.needs(it)
	for _, r := range it.Task.Holds {
		if s := b.stores[r]; s != nil {
			if needs && s.reservation(it) != nil {
				s.live[it] = true
			} else {
				delete(s.live, it)
			}
		}
	}
	b.desk.wanting[it], b.desk.units, b.counted = true, true, false
}

// countUnits works out which items have units, and for which there were none.
func (b *Board) countUnits() {
	if b.counted {
		return
	}
	b.counted = true
	for _, s := range b.inParts {
		s.have, s.beyond, s.firm, s.crowd = map[*item]bool{}, map[*item]bool{}, 0, nil
	}
	for _, s := range b.inParts {
		b.share(s)
	}
	had := b.hadAll
	b.hadAll = map[*item]bool{}
	for _, s := range b.inParts {
		for it := range s.have {
			if b.steps++; !b.hadAll[it] && b.hasAll(it) {
				b.hadAll[it] = true
				if !had[it] {
					b.desk.todo[it] = true
					b.desk.got = append(b.desk.got, it.Item)
				}
			}
		}
	}
	slices.SortFunc(b.desk.got, Item.Compare)
}

// share works out who has the units of one resource, once that is known of the partitions before its own.
func (b *Board) share(s *store) {
	var ranked [ranks][]*item
	for it := range s.live {
		b.steps++
		ranked[it.rank()] = append(ranked[it.rank()], it)
	}
	for rank, of := range ranked {
		slices.SortFunc(of, func(x, y *item) int { return s.reservation(x).compare(s.reservation(y)) })
		for _, it := range of {
			switch {
			case it.rank() != underWay && b.lacksBefore(it, s.Partition):
			case len(s.have) < s.Capacity:
				s.have[it] = true
			default:
				s.beyond[it] = true
			}
		}
		if rank <= int(waiting) {
			s.firm = len(s.have)
		}
	}
	for it := range s.beyond {
		if s.goesOn(it) {
			s.crowd = append(s.crowd, it)
		}
	}
	if len(s.crowd) > 0 {
		s.crowd = slices.AppendSeq(s.crowd, maps.Keys(s.have))
		slices.SortFunc(s.crowd, func(x, y *item) int { return x.Item.Compare(y.Item) })
	}
}

// goesOn reports whether an item is under way with a unit that is not there.
func (s *store) goesOn(it *item) bool { return s.beyond[it] && it.underWay() }

// lacksBefore reports whether an item lacks a resource of a partition that comes before another.
func (b *Board) lacksBefore(it *item, part workflow.PartitionName) bool {
	return slices.ContainsFunc(it.Task.Holds, func(r Resource) bool {
		s := b.stores[r]
		return s == nil || s.Partition < part && !s.have[it]
	})
}

// hasAll is reserved, while units are counted.
func (b *Board) hasAll(it *item) bool {
	return !slices.ContainsFunc(it.Task.Holds, func(r Resource) bool {
		s := b.stores[r]
		return s == nil || !s.have[it]
	})
}

// needs reports whether an item is to have its resources: from when it is ready to its end.
func (b *Board) needs(it *item) bool {
	return it.placed && it.InCharge && it.Ready && !it.Over && it.end() == nil
}

// waits reports whether an item waits for a person: it is ready, and has all that it holds.
func (b *Board) waits(it *item) bool { return b.needs(it) && b.reserved(it) }

// reserved reports whether an item has all resources that it is to hold.
func (b *Board) reserved(it *item) bool {
	if len(it.Task.Holds) == 0 {
		return true
	}
	b.countUnits()
	return b.hasAll(it)
}

// HasUnits reports whether an item has a unit of all that its task holds.
func (b *Board) HasUnits(i Item) bool {
	it := b.items[i]
	return it != nil && it.placed && b.needs(it) && b.reserved(it)
}

// Lack is a resource for which an item waits.
type Lack struct {
	Resource Resource
	Capacity int
	// Used is how many have it now, By the first of their tasks, sorted: at most MaxLackBy.
	Used int
	By   []workflow.TaskName
}

// MaxLackBy is how many tasks are named that have a resource for which others wait.
const MaxLackBy = 8

func (l Lack) String() string {
	if l.Used == 0 {
		return string(l.Resource)
	}
	return fmt.Sprintf("%s: %d of %d in use by %s", l.Resource, l.Used, l.Capacity, Listed(l.By, l.Used))
}

// SharedText says of a resource that is Shared with whom.
func (l Lack) SharedText() string {
	return fmt.Sprintf("%s is in use by %s as well", l.Resource, Listed(l.By, l.Used-1))
}

// Listed names the first of so many tasks.
func Listed(first []workflow.TaskName, all int) string {
	out := make([]string, len(first), len(first)+1)
	for i, t := range first {
		out[i] = string(t)
	}
	if more := all - len(first); more > 0 {
		out = append(out, fmt.Sprintf("%d more", more))
	}
	return strings.Join(out, ", ")
}

// Lacking says for which resources something waits, and who has them; empty: for none.
func Lacking(of []Lack) string {
	out := make([]string, len(of))
	for i, l := range of {
		out[i] = l.String()
	}
	return strings.Join(out, "; ")
}

// lacks are the resources for which an item waits. What is under way, and was given a unit that is not there, goes on
// with it, and does not wait (Shared).
func (b *Board) lacks(it *item) (out []Lack) {
	b.countUnits()
	for _, r := range it.Task.Holds {
		s := b.stores[r]
		switch {
		case s == nil:
			out = append(out, Lack{Resource: r})
		case !s.have[it] && !s.goesOn(it):
			l := Lack{Resource: r, Capacity: s.Capacity, Used: len(s.have)}
			for o := range s.have {
				l.By = append(l.By, o.Item.Slot)
			}
			slices.Sort(l.By)
			l.By = l.By[:min(len(l.By), MaxLackBy)]
			out = append(out, l)
		}
	}
	return out
}

// Lacks are the resources for which an item that is ready waits.
func (b *Board) Lacks(i Item) []Lack {
	it := b.items[i]
	if it == nil || !b.needs(it) || b.reserved(it) {
		return nil
	}
	return b.lacks(it)
}

// Shared are the resources that an item uses, and others with it, though there is not enough for all: By are the
// others, and Used is how many use it with this one.
func (b *Board) Shared(i Item) (out []Lack) {
	it := b.items[i]
	if it == nil || len(it.Task.Holds) == 0 {
		return nil
	}
	b.countUnits()
	for _, r := range it.Task.Holds {
		s := b.stores[r]
		if s == nil || len(s.crowd) == 0 || !s.have[it] && !s.goesOn(it) {
			continue
		}
		l := Lack{Resource: r, Capacity: s.Capacity, Used: len(s.crowd)}
		for _, o := range s.crowd {
			if o != it && len(l.By) < MaxLackBy {
				l.By = append(l.By, o.Item.Slot)
			}
		}
		out = append(out, l)
	}
	return out
}

// Overuse is that more items are under way with a resource than there is of it. Given are those that have a unit, and
// Beyond what is under way without one; Begun is what of both is under way.
type Overuse struct {
	Resource             Resource
	Capacity             int
	Given, Beyond, Begun []Item
}

// Overused are the resources of which more is in use than there is.
func (b *Board) Overused() (out []Overuse) {
	b.countUnits()
	for _, s := range b.inParts {
		x := Overuse{Resource: s.Name, Capacity: s.Capacity}
		for _, it := range s.crowd {
			if it.underWay() {
				x.Begun = append(x.Begun, it.Item)
			}
			if s.have[it] {
				x.Given = append(x.Given, it.Item)
			} else {
				x.Beyond = append(x.Beyond, it.Item)
			}
		}
		if len(x.Begun) > s.Capacity {
			out = append(out, x)
		}
	}
	return out
}

// reserve gives units away that this node keeps. Who was ready first has them first, and
// nobody is overtaken by somebody who wants one of the same. An item asks for what is kept in
// one partition at once, and for the partitions in the order of their names: so no two
// items can wait for each other.
func (d *deciding) reserve() {
	if !d.b.desk.units {
		return
	}
	d.b.desk.units = false
	barred := map[Resource]bool{}
	taken := map[Resource]int{}
	for _, it := range d.b.wanting() {
		if it.rank() == presumed && len(taken) > 0 {
			return // what was just given away may be what this one had: another look follows the words for it
		}
		next := d.b.nextPart(it)
		if len(next) == 0 || d.b.stores[next[0]].Keepers[0].Partner != d.self {
			continue
		}
		can := true
		for _, r := range next {
			can = can && d.b.stores[r].free(it)-taken[r] > 0 && !barred[r]
		}
		for _, r := range next {
			if can {
				taken[r]++
			} else {
				barred[r] = true
			}
		}
		if can {
			d.out.Write = append(d.out.Write, Reserve{Item: it.root(), Round: it.rounds, Resources: next})
		}
	}
}

// Wanted reports whether an item waits for a unit that the keeper of a partition has not given it.
func (b *Board) Wanted(part workflow.PartitionName) bool {
	return slices.ContainsFunc(b.wanting(), func(it *item) bool {
		next := b.nextPart(it)
		return len(next) > 0 && b.stores[next[0]].Partition == part
	})
}

// free is how many units there are for an item. Those of what is presumed to have failed are free for what is not.
func (s *store) free(it *item) int {
	if it.rank() == presumed {
		return s.Capacity - len(s.have)
	}
	return s.Capacity - s.firm
}

// wanting are the items that lack a resource, as they became ready; last those that are presumed to have failed.
func (b *Board) wanting() (out []*item) {
	for it := range b.desk.wanting {
		b.steps++
		if b.needs(it) && !b.reserved(it) {
			out = append(out, it)
		} else {
			delete(b.desk.wanting, it)
		}
	}
	slices.SortFunc(out, func(x, y *item) int {
		return cmp.Or(cmp.Compare(max(x.rank(), waiting), max(y.rank(), waiting)), cmp.Compare(x.Since, y.Since),
			x.Item.Compare(y.Item))
	})
	return out
}

// nextPart are the resources of the first partition of which an item lacks some, sorted, unless they are reserved for
// it and not there yet.
func (b *Board) nextPart(it *item) (next []Resource) {
	b.countUnits()
	part, found := workflow.PartitionName(""), false
	for _, r := range it.Task.Holds {
		s := b.stores[r]
		if s == nil || len(s.Keepers) == 0 {
			return nil
		}
		switch {
		case s.have[it] || found && s.Partition > part:
		case !found || s.Partition < part:
			part, found, next = s.Partition, true, []Resource{r}
		default:
			next = append(next, r)
		}
	}
	next = slices.DeleteFunc(next, func(r Resource) bool { return b.stores[r].reservation(it) != nil })
	slices.Sort(next)
	return next
}
