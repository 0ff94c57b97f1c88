// Package own merges what a user set for the list, and what the user has read, so that the
// user finds it alike on each device.
//
//	what this device knows, records of another ──▶ State.Merge ──▶ what is different now
//
// Purpose: the own order of the list, the messages that were read, and whether files come
// before they are needed, as a set of records of which it does not matter in what order, or
// how often, they come.
//
// Promises: devices that took in the same records know the same. Which of two changes is the
// later is told by a count, and by no clock. What is kept of one user is bounded, and so is
// each record; what no device makes is not taken in.
//
// It imports workflow and worklist; node/worklists imports it.
package own

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

const (
	// MaxSpots bounds the moves of one user that are kept: the oldest are forgotten.
	MaxSpots = 1000
	// MaxMarks bounds what is noted as read about one instance, and MaxMarked the instances of which devices tell
	// each other: those of which something was read last.
	MaxMarks  = 1024
	MaxMarked = 1000
	// maxPart bounds the digits of a place between two others.
	maxPart = 1024
	// maxRow bounds where an item may be put, so that there is a place above and below it.
	maxRow = 1 << 60
	// maxCount is the highest count that anybody believes, and maxAhead how far ahead of the own it may be beyond
	// that: else a device that is in wrong hands could count so high that nobody counts higher.
	maxCount = 1 << 40
	maxAhead = 1 << 20
)

// Switch is whether the files of a user's items come before they are needed, and how fast. Of two the one with
// the higher Count counts; a device counts on from the highest that it knows, so no clock says which is the later.
type Switch struct {
	On     bool
	AtMost int64 // bytes a second; 0: all that the link gives
	Count  uint64
	By     workflow.PartnerID // the device that set it
}

func (s Switch) newer(o Switch) bool {
	on := func(s Switch) int {
		if s.On {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(s.Count, o.Count), cmp.Compare(s.By, o.By), cmp.Compare(on(s), on(o)),
		cmp.Compare(s.AtMost, o.AtMost)) > 0
}

// Mark is the name of a message that was read.
type Mark [8]byte

// Read are the messages about an instance that a user has read.
type Read struct {
	Instance workflow.InstanceID
	Marks    []Mark
	Noted    int64 // when the last of them was read (ms), by the clock of the device
}

// Record is one of what a user set or read: exactly one of its parts is there.
type Record struct {
	Switch *Switch
	Spot   *worklist.Spot
	Read   *Read
}

// Check returns an error for a record that no device makes.
func (r Record) Check() error {
	parts := 0
	for _, there := range []bool{r.Switch != nil, r.Spot != nil, r.Read != nil} {
		if there {
			parts++
		}
	}
	switch {
	case parts != 1:
		return fmt.Errorf("a record of a user's list with %d parts: want 1", parts)
	case r.Switch != nil && r.Switch.AtMost < 0:
		return fmt.Errorf("files at most %d bytes a second: want 0 (all that the link gives) or more", r.Switch.AtMost)
	case r.Switch != nil:
		return checkVersion(r.Switch.Count, r.Switch.By)
	case r.Spot != nil:
		return checkSpot(r.Spot)
	case len(r.Read.Marks) == 0 || len(r.Read.Marks) > MaxMarks:
		return fmt.Errorf("%d messages about an instance that were read: want 1 to %d", len(r.Read.Marks), MaxMarks)
	case r.Read.Noted < 0:
		return fmt.Errorf("messages that were read at %d ms: want 0 or more", r.Read.Noted)
	}
	return nil
}

func checkSpot(s *worklist.Spot) error {
	switch {
	case s.Item.Slot == "" || len(s.Item.Slot) > workflow.MaxName:
		return fmt.Errorf("an item of a task whose name has %d bytes: want 1 to %d", len(s.Item.Slot), workflow.MaxName)
	case s.Row > maxRow || s.Row < -maxRow:
		return fmt.Errorf("an item in row %d: want %d to %d", s.Row, int64(-maxRow), int64(maxRow))
	case s.Part == "" || len(s.Part) > maxPart:
		return fmt.Errorf("an item whose place has %d digits: want 1 to %d", len(s.Part), maxPart)
	case len(bytes.Trim([]byte(s.Part), "0123456789abcdef")) > 0:
		return fmt.Errorf("an item at %q: want digits to the base of 16", s.Part)
	}
	return checkVersion(s.Count, s.By)
}

func checkVersion(count uint64, by workflow.PartnerID) error {
	switch {
	case count == 0:
		return fmt.Errorf("a change with the count 0: want 1 or more")
	case by == "" || len(by) > workflow.MaxName:
		return fmt.Errorf("a change by a device whose name has %d bytes: want 1 to %d", len(by), workflow.MaxName)
	}
	return nil
}

// key tells what may differ between two records that are about the same.
func (r Record) key() []byte {
	switch {
	case r.Switch != nil:
		return []byte("prefetch")
	case r.Spot != nil:
		return fmt.Appendf(nil, "spot %x %x %s", r.Spot.Instance, r.Spot.Item.Assigned, r.Spot.Item.Slot)
	}
	return fmt.Appendf(nil, "read %x", r.Read.Instance)
}

// sum is the same for what says the same. When something was read is left out: it only says what is forgotten first,
// and no two clocks agree about it.
func (r Record) sum() uint64 {
	said := r.key()
	switch {
	case r.Switch != nil:
		said = fmt.Appendf(said, " %t %d %d %s", r.Switch.On, r.Switch.AtMost, r.Switch.Count, r.Switch.By)
	case r.Spot != nil:
		said = fmt.Appendf(said, " %d %s %d %s", r.Spot.Row, r.Spot.Part, r.Spot.Count, r.Spot.By)
	default:
		for _, m := range slices.SortedFunc(slices.Values(r.Read.Marks), Mark.compare) {
			said = append(said, m[:]...)
		}
	}
	h := sha256.Sum256(said)
	return binary.BigEndian.Uint64(h[:])
}

func (m Mark) compare(o Mark) int { return bytes.Compare(m[:], o[:]) }

// Buckets is into how many parts a user's records are cut, so that of two devices that differ in a few of many records
// neither sends all.
const Buckets = 64

// Bucket is in which of them a record is.
func (r Record) Bucket() int {
	h := sha256.Sum256(r.key())
	return int(h[0]) % Buckets
}

// Sums has for each bucket what two devices compare: alike where they know the same.
func Sums(all []Record) (out [Buckets]uint64) {
	for _, r := range all {
		out[r.Bucket()] += r.sum()
	}
	return out
}

// State is what a user set for the list, and what the user has read, as one device knows it. Devices that took in the
// same records, in any order and however often, know the same.
type State struct {
	Prefetch Switch // Count 0: it was never set
	Hand     *worklist.Hand
	Read     map[workflow.InstanceID]Read
}

// Records are all of it that devices tell each other, in one order.
func (o *State) Records() (out []Record) {
	if o.Prefetch.Count > 0 {
		out = append(out, Record{Switch: &o.Prefetch})
	}
	for _, s := range o.Hand.Spots() {
		out = append(out, Record{Spot: &s})
	}
	read := slices.SortedFunc(maps.Values(o.Read), func(a, b Read) int {
		return cmp.Or(cmp.Compare(b.Noted, a.Noted), a.Instance.Compare(b.Instance))
	})
	for _, r := range read[:min(len(read), MaxMarked)] {
		out = append(out, Record{Read: &r})
	}
	return out
}

// Set sets whether files come before they are needed, on a device.
func (o *State) Set(on bool, atMost int64, by workflow.PartnerID) {
	o.Prefetch = Switch{On: on, AtMost: atMost, Count: o.Prefetch.Count + 1, By: by}
}

// Merge takes in a record of any device of the user, and reports whether something is different now.
func (o *State) Merge(r Record) bool {
	if r.Check() != nil {
		return false
	}
	switch {
	case r.Switch != nil:
		if !r.Switch.newer(o.Prefetch) || !believed(r.Switch.Count, o.Prefetch.Count) {
			return false
		}
		o.Prefetch = *r.Switch
		return true
	case r.Spot != nil:
		return believed(r.Spot.Count, o.Hand.Count()) && o.Hand.Merge(*r.Spot) &&
			!slices.ContainsFunc(o.Hand.Trim(MaxSpots), func(s worklist.Spot) bool { return s == *r.Spot })
	}
	was := o.Read[r.Read.Instance]
	next := Read{Instance: r.Read.Instance, Noted: max(was.Noted, r.Read.Noted), Marks: slices.Clone(was.Marks)}
	has := map[Mark]bool{}
	for _, m := range was.Marks {
		has[m] = true
	}
	for _, m := range r.Read.Marks {
		if !has[m] && len(next.Marks) < MaxMarks {
			has[m], next.Marks = true, append(next.Marks, m)
		}
	}
	if len(next.Marks) == len(was.Marks) {
		return false
	}
	o.Read[r.Read.Instance] = next
	return true
}

// believed reports whether a count is one that a device in the right hands may have come to.
func believed(count, own uint64) bool { return count <= max(maxCount, own+maxAhead) }
