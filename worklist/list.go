package worklist

import (
	"cmp"
	"encoding/hex"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Entry is an item on somebody's list. What others hold is left out.
type Entry struct {
	Instance workflow.InstanceID
	Workflow workflow.Name
	Item     Item
	State    State // READY, SELECTED or LOCKED; a device adds DONE (device.Device.List)
	Holder   User
	Grant    ID
	Role     workflow.RoleName
	Priority int
	Size     int64
	Offline  bool
	// Arrived is when the item was offered, by its holder's clock: the same on all devices.
	Arrived time.Time
	// Deadline is when it is due, by the own clock; zero: never.
	Deadline time.Time
	// Local is set by a device that has all that the item needs.
	Local bool
}

// List are the items that a user sees or holds, in no order of note. It costs as much as
// there are items.
func (b *Board) List(u User, roles []workflow.RoleName, now Moment) (out []Entry) {
	for _, it := range b.items {
		b.steps++
		state := b.stateOf(it)
		switch h := it.open; {
		case state != Open && state != Selected && state != Locked:
			continue
		case h != nil && h.User != u, h == nil && !(it.visible(b, u) && it.maydo(b, u, roles)):
			continue
		}
		e := Entry{
			Instance: b.terms.Instance, Workflow: b.terms.Workflow, Item: it.Item, State: state, Role: it.roleNow(),
			Priority: it.Task.Priority, Size: it.Task.Size, Offline: it.Task.Offline, Arrived: b.arrived(it),
		}
		if h := it.open; h != nil && h.Mode != Handed {
			e.Holder, e.Grant = u, h.leased
		}
		if left, has := it.deadline().Left(it.Since, now); has {
			e.Deadline = now.Wall.Add(left)
		}
		out = append(out, e)
	}
	return out
}

// arrived is when an item was first offered, or given to somebody, by the holder's clock.
func (b *Board) arrived(it *item) time.Time {
	if f := b.facts[it.offer]; f != nil {
		return f.At
	}
	if len(it.holds) > 0 {
		return b.facts[it.holds[0].Grants[0]].At
	}
	return time.Time{}
}

// Sorting is an order of a list.
type Sorting string

// The orders. What is equal is in the order of arrival.
const (
	ByArrival  Sorting = "arrival"
	ByPriority Sorting = "priority" // the highest first
	ByDue      Sorting = "deadline" // the next first, what has none last
	BySize     Sorting = "size"     // the smallest first
	ByHand     Sorting = "hand"
)

// Sort puts a list in order.
func Sort(list []Entry, by Sorting, hand *Hand) {
	if by == ByHand {
		hand.sort(list)
		return
	}
	slices.SortFunc(list, func(x, y Entry) int { return cmp.Or(by.compare(&x, &y), x.compareArrival(&y)) })
}

func (s Sorting) compare(x, y *Entry) int {
	switch s {
	case ByPriority:
		return cmp.Compare(y.Priority, x.Priority)
	case ByDue:
		if x.Deadline.IsZero() != y.Deadline.IsZero() {
			return cmp.Compare(one(x.Deadline.IsZero()), one(y.Deadline.IsZero()))
		}
		return x.Deadline.Compare(y.Deadline)
	case BySize:
		return cmp.Compare(x.Size, y.Size)
	}
	return 0
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (e *Entry) compareArrival(o *Entry) int {
	return cmp.Or(e.Arrived.Compare(o.Arrived), e.Instance.Compare(o.Instance), e.Item.Compare(o.Item))
}

// LockedFirst puts locked items before the others, and else leaves the order as it is: so
// a device fetches what they need.
func LockedFirst(list []Entry) {
	slices.SortStableFunc(list, func(x, y Entry) int { return one(y.State == Locked) - one(x.State == Locked) })
}

// LocalFirst puts items before the others whose data and application are here already.
func LocalFirst(list []Entry) {
	slices.SortStableFunc(list, func(x, y Entry) int { return one(y.Local) - one(x.Local) })
}

// spotKey names what has a place in a list by hand.
type spotKey struct {
	instance workflow.InstanceID
	item     Item
}

// Spot is where a user put an item. Of two spots of an item the one with the higher Count counts. A device counts on from
// the highest that it knows, so no clock says which move is the later.
type Spot struct {
	Instance workflow.InstanceID
	Item     Item
	// Row and Part say where: by Row, then by Part, which lies between 0 and 1.
	Row   int64
	Part  string
	Count uint64
	By    workflow.PartnerID // the device that moved it
}

// newer reports whether a move counts before another of its item. The places tell two moves apart that a device
// counted alike, as it may after its disk was put back to what it was before.
func (s *Spot) newer(o *Spot) bool {
	return cmp.Or(cmp.Compare(s.Count, o.Count), cmp.Compare(s.By, o.By), cmp.Compare(s.Row, o.Row),
		cmp.Compare(s.Part, o.Part)) > 0
}

// Hand is a user's own order, the same on all devices of the user that know of the same
// moves. What was not moved stands where it arrived.
type Hand struct {
	spots map[spotKey]Spot
	count uint64
}

// NewHand is an order in which nothing was moved.
func NewHand() *Hand { return &Hand{spots: map[spotKey]Spot{}} }

// Clone is the same order, to be changed on its own.
func (h *Hand) Clone() *Hand { return &Hand{maps.Clone(h.spots), h.count} }

// Merge takes in a move that was made on any device of the user, and reports whether it counts now and did not before.
func (h *Hand) Merge(s Spot) bool {
	k := spotKey{s.Instance, s.Item}
	h.count = max(h.count, s.Count)
	if was, moved := h.spots[k]; moved && !s.newer(&was) {
		return false
	}
	h.spots[k] = s
	return true
}

// Count is the highest that a move of the user had, as far as this device knows.
func (h *Hand) Count() uint64 { return h.count }

// Trim forgets the oldest moves, so that no more are left than that: the same ones on all devices that know the same.
func (h *Hand) Trim(most int) (gone []Spot) {
	over := len(h.spots) - most
	if over <= 0 {
		return nil
	}
	all := h.Spots()
	slices.SortStableFunc(all, func(x, y Spot) int { return cmp.Compare(x.Count, y.Count) })
	for _, s := range all[:over] {
		h.Forget(s.Instance, s.Item)
	}
	return all[:over]
}

// Spots are all moves that count, to be stored and told to the user's other devices.
func (h *Hand) Spots() (out []Spot) {
	for _, s := range h.spots {
		out = append(out, s)
	}
	slices.SortFunc(out, func(x, y Spot) int { return cmp.Or(x.Instance.Compare(y.Instance), x.Item.Compare(y.Item)) })
	return out
}

// Forget drops the place of an item that has left the list.
func (h *Hand) Forget(instance workflow.InstanceID, i Item) { delete(h.spots, spotKey{instance, i}) }

// spot is where an entry stands.
func (h *Hand) spot(e *Entry) Spot {
	if s, moved := h.spots[spotKey{e.Instance, e.Item}]; moved {
		return s
	}
	sum := fnv.New64a()
	_, _ = sum.Write(e.Instance[:])
	_, _ = sum.Write(e.Item.Assigned[:])
	_, _ = sum.Write([]byte(e.Item.Slot))
	part := hex.EncodeToString(sum.Sum(nil)) + "8"
	return Spot{Instance: e.Instance, Item: e.Item, Row: e.Arrived.UnixMilli(), Part: part}
}

func (s *Spot) compare(o *Spot) int {
	if n := cmp.Compare(s.Row, o.Row); n != 0 { // as it is most often: long lists are not to wait for the rest
		return n
	}
	return cmp.Or(cmp.Compare(s.Part, o.Part), s.Instance.Compare(o.Instance), s.Item.Compare(o.Item))
}

func (h *Hand) sort(list []Entry) {
	sorted := make([]Entry, len(list))
	for i, at := range h.Order(list) {
		sorted[i] = list[at]
	}
	copy(list, sorted)
}

// Order is the list as it is ordered by hand: by where each of its entries is now.
func (h *Hand) Order(list []Entry) (at []int) {
	spots := make([]Spot, len(list))
	at = make([]int, len(list))
	for i := range list {
		spots[i], at[i] = h.spot(&list[i]), i
	}
	slices.SortFunc(at, func(x, y int) int { return spots[x].compare(&spots[y]) })
	return at
}

// Move puts an entry between two others of the list as it is ordered by hand: after one,
// nil: at the top, and before the other, nil: at the bottom. The move is to be stored, and told to the
// user's other devices.
func (h *Hand) Move(e, after, before *Entry, device workflow.PartnerID) Spot {
	h.count++
	s := Spot{Instance: e.Instance, Item: e.Item, Count: h.count, By: device, Part: "8"}
	switch {
	case after == nil && before == nil:
		s.Row = e.Arrived.UnixMilli()
	case after == nil:
		s.Row = h.spot(before).Row - 1
	case before == nil:
		s.Row = h.spot(after).Row + 1
	default:
		lo, hi := h.spot(after), h.spot(before)
		s.Row, s.Part = between(&lo, &hi)
	}
	h.Merge(s)
	return s
}

// between finds a place between two.
func between(lo, hi *Spot) (row int64, part string) {
	switch {
	case hi.Row-lo.Row > 1:
		return lo.Row + (hi.Row-lo.Row)/2, "8"
	case hi.Row > lo.Row:
		return lo.Row, middle(lo.Part, "")
	case hi.Part <= lo.Part: // two devices put two items at the very same place: beside them
		return lo.Row, lo.Part
	}
	return lo.Row, middle(lo.Part, hi.Part)
}

const digits = "0123456789abcdef"

// middle is a fraction between two, each written as its digits to the base of 16 without a
// zero at the end; an empty one above is 1.
func middle(lo, hi string) string {
	var out []byte
	for i := 0; ; i++ {
		l, h := 0, len(digits)
		if i < len(lo) {
			l = int(unhex(lo[i]))
		}
		if hi != "" {
			h = 0
			if i < len(hi) {
				h = int(unhex(hi[i]))
			}
		}
		switch {
		case h-l > 1:
			return string(append(out, digits[(l+h)/2]))
		case h > l: // from here on anything above lo is below hi
			hi = ""
		}
		out = append(out, digits[l])
	}
}

func unhex(c byte) byte {
	if c >= 'a' {
		return c - 'a' + 10
	}
	return c - '0'
}
