package own

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

func nothingSet() *State {
	return &State{Hand: worklist.NewHand(), Read: map[workflow.InstanceID]Read{}}
}

func anEntry(n int) worklist.Entry {
	return worklist.Entry{
		Instance: workflow.InstanceID{byte(n), byte(n >> 8)}, Item: worklist.Item{Slot: "visit"},
		Arrived: time.UnixMilli(int64(n)),
	}
}

// known is what devices that know the same have in common: when something was read may differ.
func known(o *State) []Record {
	all := o.Records()
	for i, r := range all {
		if r.Read != nil {
			is := Read{Instance: r.Read.Instance, Marks: slices.SortedFunc(slices.Values(r.Read.Marks), Mark.compare)}
			all[i].Read = &is
		}
	}
	slices.SortFunc(all, func(a, b Record) int { return slices.Compare(a.key(), b.key()) })
	return all
}

// Devices change things while they hear of each other in any order, some of it twice, and some of it late. Once each
// has all records, in whatever order, all know the same.
func TestAnyOrderOfRecordsIsTheSame(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		devices := []*State{nothingSet(), nothingSet(), nothingSet()}
		var said []Record
		items := 1 + rnd.IntN(12)
		changes := items + rnd.IntN(60)
		if seed%150 == 0 {
			items = 2 * MaxSpots // more than are kept
			changes = 2 * items
		}
		for range changes {
			o := devices[rnd.IntN(len(devices))]
			by := workflow.PartnerID(fmt.Sprint("device-", slices.Index(devices, o)))
			switch rnd.IntN(5) {
			case 0:
				o.Set(rnd.IntN(2) == 0, int64(rnd.IntN(3)), by)
				is := o.Prefetch
				said = append(said, Record{Switch: &is})
			case 1:
				r := Record{Read: &Read{
					Instance: workflow.InstanceID{byte(rnd.IntN(5))}, Marks: []Mark{{byte(rnd.IntN(40))}},
					Noted: int64(rnd.IntN(1000)),
				}}
				o.Merge(r)
				said = append(said, r)
			case 2:
				if len(said) > 0 {
					o.Merge(said[rnd.IntN(len(said))])
				}
			default:
				e, other := anEntry(rnd.IntN(items)), anEntry(rnd.IntN(items))
				s := o.Hand.Move(&e, nil, &other, by)
				o.Hand.Trim(MaxSpots)
				said = append(said, Record{Spot: &s})
			}
		}
		for _, o := range devices {
			for _, i := range rnd.Perm(len(said)) {
				o.Merge(said[i])
			}
		}
		for _, o := range devices[1:] {
			if !reflect.DeepEqual(known(devices[0]), known(o)) {
				t.Fatalf("seed %d: two devices know\n%v\n%v", seed, known(devices[0]), known(o))
			}
			if Sums(devices[0].Records()) != Sums(o.Records()) {
				t.Fatalf("seed %d: they know the same, and their sums differ", seed)
			}
		}
		for _, r := range said {
			if devices[0].Merge(r) {
				t.Fatalf("seed %d: %v is news a second time", seed, r)
			}
		}
	}
}

// The later of two changes counts whatever the clocks say, as who makes it knows of the other.
func TestTheLaterChangeCounts(t *testing.T) {
	phone, pc := nothingSet(), nothingSet()
	phone.Set(true, 5, "phone")
	first := phone.Prefetch
	pc.Merge(Record{Switch: &first})
	pc.Set(false, 0, "pc")
	second := pc.Prefetch
	if !phone.Merge(Record{Switch: &second}) || phone.Prefetch.On {
		t.Errorf("the phone has %v after it was switched off at the PC", phone.Prefetch)
	}
	if pc.Merge(Record{Switch: &first}) || pc.Prefetch.On {
		t.Errorf("the PC has %v after the old word came again", pc.Prefetch)
	}
}

// What no device makes is not taken in, at each limit and just beyond it.
func TestRecordsThatNoDeviceMakes(t *testing.T) {
	spot := func(change func(*worklist.Spot)) Record {
		s := worklist.Spot{Item: worklist.Item{Slot: "visit"}, Part: "8", Count: 1, By: "phone"}
		change(&s)
		return Record{Spot: &s}
	}
	long := func(n int) string { return string(slices.Repeat([]byte{'8'}, n)) }
	for name, c := range map[string]struct {
		r    Record
		fits bool
	}{
		"nothing":        {Record{}, false},
		"two at once":    {Record{Switch: &Switch{Count: 1, By: "a"}, Read: &Read{Marks: []Mark{{}}}}, false},
		"switch":         {Record{Switch: &Switch{Count: 1, By: "a"}}, true},
		"no count":       {Record{Switch: &Switch{By: "a"}}, false},
		"nobody":         {Record{Switch: &Switch{Count: 1}}, false},
		"negative":       {Record{Switch: &Switch{Count: 1, By: "a", AtMost: -1}}, false},
		"highest":        {Record{Switch: &Switch{Count: maxCount, By: "a"}}, true},
		"too high":       {Record{Switch: &Switch{Count: maxCount + 1, By: "a"}}, false},
		"overflow":       {Record{Switch: &Switch{Count: math.MaxUint64, By: "a"}}, false},
		"spot":           {spot(func(*worklist.Spot) {}), true},
		"spot too high":  {spot(func(s *worklist.Spot) { s.Count = maxCount + 1 }), false},
		"row":            {spot(func(s *worklist.Spot) { s.Row = maxRow }), true},
		"row too far":    {spot(func(s *worklist.Spot) { s.Row = maxRow + 1 }), false},
		"row too near":   {spot(func(s *worklist.Spot) { s.Row = -maxRow - 1 }), false},
		"part":           {spot(func(s *worklist.Spot) { s.Part = long(maxPart) }), true},
		"part too long":  {spot(func(s *worklist.Spot) { s.Part = long(maxPart + 1) }), false},
		"part no digits": {spot(func(s *worklist.Spot) { s.Part = "8x8" }), false},
		"no part":        {spot(func(s *worklist.Spot) { s.Part = "" }), false},
		"task":           {spot(func(s *worklist.Spot) { s.Item.Slot = workflow.TaskName(long(workflow.MaxName)) }), true},
		"task too long":  {spot(func(s *worklist.Spot) { s.Item.Slot = workflow.TaskName(long(workflow.MaxName + 1)) }), false},
		"device":         {spot(func(s *worklist.Spot) { s.By = workflow.PartnerID(long(workflow.MaxName)) }), true},
		"device too long": {
			spot(func(s *worklist.Spot) { s.By = workflow.PartnerID(long(workflow.MaxName + 1)) }), false,
		},
		"marks":          {Record{Read: &Read{Marks: marksTo(MaxMarks)}}, true},
		"too many marks": {Record{Read: &Read{Marks: marksTo(MaxMarks + 1)}}, false},
		"no marks":       {Record{Read: &Read{}}, false},
		"before time":    {Record{Read: &Read{Marks: marksTo(1), Noted: -1}}, false},
	} {
		if got := nothingSet().Merge(c.r); got != c.fits {
			t.Errorf("%s: taken in %t, want %t (%v)", name, got, c.fits, c.r.Check())
		}
	}
}

func marksTo(n int) (out []Mark) {
	for i := range n {
		out = append(out, Mark{byte(i), byte(i >> 8)})
	}
	return out
}

// Beyond what is believed at once a device that lies gets on in steps that are small for a number of 64 bits; whoever
// changes something afterwards still counts higher.
func TestNobodyCountsSoHighThatOthersCannot(t *testing.T) {
	o := nothingSet()
	for _, count := range []uint64{maxCount, maxCount + maxAhead} {
		if !o.Merge(Record{Switch: &Switch{On: true, Count: count, By: "thief"}}) {
			t.Fatalf("the count %d is not believed", count)
		}
	}
	if o.Merge(Record{Switch: &Switch{On: true, Count: maxCount + 2*maxAhead + 1, By: "thief"}}) {
		t.Error("it jumps as far as it likes")
	}
	other := nothingSet()
	other.Merge(Record{Switch: &Switch{On: true, Count: maxCount, By: "thief"}})
	o.Set(false, 0, "phone")
	if is := o.Prefetch; o.Prefetch.On || !is.newer(other.Prefetch) {
		t.Errorf("what the user set is %v", is)
	}
}

// Of many records that are the same but for one only one bucket differs.
func TestOneChangeIsOneBucket(t *testing.T) {
	a, b := nothingSet(), nothingSet()
	for i := range 500 {
		e := anEntry(i)
		s := a.Hand.Move(&e, nil, nil, "phone")
		b.Merge(Record{Spot: &s})
	}
	e := anEntry(7)
	s := a.Hand.Move(&e, nil, nil, "phone")
	mine, others, differ := Sums(a.Records()), Sums(b.Records()), 0
	for i := range mine {
		if mine[i] != others[i] {
			differ++
		}
	}
	if differ != 1 || mine[Record{Spot: &s}.Bucket()] == others[Record{Spot: &s}.Bucket()] {
		t.Errorf("%d buckets differ, want 1", differ)
	}
}
