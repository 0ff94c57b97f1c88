package worklist

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Resource names something of which there is only so much: a crane, a room.
type Resource string

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
	// Keepers are all that ever held its partition; the first is the one that does.
	Keepers []Keeping
}

// Reserve gives an item a unit of each of these resources: their keeper's word. The item
// has them until it ends.
type Reserve struct {
	Item      Item
	Round     int // how often the item had been reopened
	Resources []Resource
}

func (Reserve) kind() string  { return "reserve" }
func (Reserve) about() []Item { return nil }

// unitsFor says whether an item is to have its resources, and in which round.
type unitsFor struct {
	needs bool
	round int
}

// store is what is known of a resource.
type store struct {
	Store
	reserves []*Fact // in the order of facts, those by a keeper
	// have are the items that have a unit, and beyond those for which there was none, when
	// they were last counted; counted says whether that still holds.
	have, beyond map[*item]bool
	counted      bool
}

// SetStore takes in what the core concludes of a resource.
func (b *Board) SetStore(s Store) {
	was := b.stores[s.Name]
	if was == nil {
		was = &store{}
		b.stores[s.Name] = was
	}
	was.Store, was.counted, b.desk.units = s, false, true
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
		s := b.stores[r]
		at, _ := slices.BinarySearchFunc(s.reserves, f, (*Fact).compare)
		s.reserves = slices.Insert(s.reserves, at, f)
		s.counted = false
	}
	b.changed(b.item(x.Item))
	b.desk.units = true
}

// keptBy reports whether the author of a fact kept the resource, as far as it knew.
func (s *store) keptBy(b *Board, f *Fact) bool {
	return slices.ContainsFunc(s.Keepers, func(k Keeping) bool {
		return k.Partner == f.Partner && (k.Since.IsZero() || b.knew(f.ID, k.Since))
	})
}

// count works out which items have a unit, and for which there was none: two keepers on
// the two sides of a split gave away more than there is (rule 12).
func (s *store) count(b *Board) {
	if s.counted {
		return
	}
	was := s.have
	s.have, s.beyond, s.counted = map[*item]bool{}, map[*item]bool{}, true
	for _, f := range s.reserves {
		x := f.Body.(Reserve)
		it := b.item(x.Item)
		b.steps++
		switch {
		case !b.needs(it) || x.Round != it.rounds || s.have[it]:
		case len(s.have) < s.Capacity:
			s.have[it] = true
			delete(s.beyond, it)
			if !was[it] {
				b.desk.todo[it] = true
			}
		default:
			s.beyond[it] = true
		}
	}
}

// countUnits counts what has changed, so that items which have got a unit are looked at.
func (b *Board) countUnits() {
	if b.desk.units {
		for _, s := range b.stores {
			s.count(b)
		}
	}
}

// needs reports whether an item is to have its resources: from when it is ready to its end.
func (b *Board) needs(it *item) bool {
	return it.placed && it.InCharge && it.Ready && !it.Over && it.end() == nil
}

// waits reports whether an item waits for a person: it is ready, and has all that it holds.
func (b *Board) waits(it *item) bool { return b.needs(it) && b.reserved(it) }

// reserved reports whether an item has all resources that it is to hold.
func (b *Board) reserved(it *item) bool {
	for _, r := range it.Task.Holds {
		if !b.has(it, r) {
			return false
		}
	}
	return true
}

func (b *Board) has(it *item, r Resource) bool {
	s := b.stores[r]
	if s == nil {
		return false
	}
	s.count(b)
	return s.have[it]
}

// lacking says for what an item waits, and who has it.
func (b *Board) lacking(it *item) string {
	var out []string
	for _, r := range it.Task.Holds {
		if b.has(it, r) {
			continue
		}
		var who []string
		if s := b.stores[r]; s != nil {
			for o := range s.have {
				who = append(who, string(o.Item.Slot))
			}
		}
		slices.Sort(who)
		if what := string(r); len(who) > 0 {
			out = append(out, fmt.Sprintf("%s (now at %s)", what, strings.Join(who, ", ")))
		} else {
			out = append(out, what)
		}
	}
	return strings.Join(out, "; ")
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
	free := map[Resource]int{}
	for _, it := range d.b.wanting() {
		next := d.b.nextPart(it)
		if len(next) == 0 || d.b.stores[next[0]].Keepers[0].Partner != d.self {
			continue
		}
		can := true
		for _, r := range next {
			if _, known := free[r]; !known {
				s := d.b.stores[r]
				s.count(d.b)
				free[r] = s.Capacity - len(s.have)
			}
			can = can && free[r] > 0 && !barred[r]
		}
		for _, r := range next {
			if can {
				free[r]--
			} else {
				barred[r] = true
			}
		}
		if can {
			d.out.Write = append(d.out.Write, Reserve{Item: it.Item, Round: it.rounds, Resources: next})
		}
	}
}

// wanting are the items that lack a resource, as they became ready.
func (b *Board) wanting() (out []*item) {
	for it := range b.desk.wanting {
		b.steps++
		if b.needs(it) && !b.reserved(it) {
			out = append(out, it)
		} else {
			delete(b.desk.wanting, it)
		}
	}
	slices.SortFunc(out, func(x, y *item) int { return cmp.Or(cmp.Compare(x.Since, y.Since), x.Item.Compare(y.Item)) })
	return out
}

// nextPart are the resources of the first partition of which an item lacks some and has
// reserved none.
func (b *Board) nextPart(it *item) (next []Resource) {
	part, found := workflow.PartitionName(""), false
	for _, r := range it.Task.Holds {
		s := b.stores[r]
		if s == nil || len(s.Keepers) == 0 {
			return nil
		}
		asked := slices.ContainsFunc(s.reserves, func(f *Fact) bool {
			x := f.Body.(Reserve)
			return x.Item == it.Item && x.Round == it.rounds
		})
		switch {
		case asked || found && s.Partition > part:
		case !found || s.Partition < part:
			part, found, next = s.Partition, true, []Resource{r}
		default:
			next = append(next, r)
		}
	}
	return next
}
