package aptitude

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

var tasks = []TaskID{"a", "b", "c"}

// aScene draws any sound queue and resources.
func aScene(t *rapid.T) (Queue, []Resource) {
	unit := rapid.Float64Range(0, 1)
	n := rapid.IntRange(1, 6).Draw(t, "resources")
	var rs []Resource
	for i := range n {
		r := Resource{
			ID: ResourceID(fmt.Sprint("r", i)), Suitability: map[TaskID]float64{}, Busy: rapid.Bool().Draw(t, "busy"),
		}
		for _, task := range tasks {
			r.Suitability[task] = rapid.SampledFrom([]float64{0, 0.3, 0.5, 0.75, 1}).Draw(t, "suitability")
		}
		r.Rested = rapid.SampledFrom([]float64{0, 0.8, 1}).Draw(t, "rested")
		r.Availability = r.Rested * unit.Draw(t, "availability")
		r.LastFlow = rapid.Float64Range(0, 9).Draw(t, "flow")
		rs = append(rs, r)
	}
	q := Queue{Now: 10, InHand: map[TaskID]float64{}}
	for i := range rapid.IntRange(0, 6).Draw(t, "items") {
		it := Item{
			ID: ItemID(fmt.Sprint("w", i)), Task: rapid.SampledFrom(tasks).Draw(t, "task"),
			Time: rapid.Float64Range(0.1, 20).Draw(t, "time"), Ready: rapid.Float64Range(0, 10).Draw(t, "ready"),
			Urgency: Urgency{
				Initial: unit.Draw(t, "urgency"), Growth: rapid.SampledFrom([]float64{0, 0.05}).Draw(t, "growth"),
			},
			Instance: Instance{
				Start: rapid.Float64Range(0, 5).Draw(t, "start"), Due: rapid.Float64Range(0, 20).Draw(t, "due"),
			},
			Violations: map[ResourceID][]Violation{},
		}
		if rapid.Bool().Draw(t, "constrained") {
			id := rs[rapid.IntRange(0, n-1).Draw(t, "violator")].ID
			it.Violations[id] = []Violation{{"c", rapid.SampledFrom([]float64{0.2, 0.6, 1}).Draw(t, "penalty")}}
		}
		if rapid.Bool().Draw(t, "rejected") {
			it.Rejected = append(it.Rejected, rs[rapid.IntRange(0, n-1).Draw(t, "rejecter")].ID)
		}
		q.Waiting = append(q.Waiting, it)
	}
	return q, rs
}

func aPolicy(t *rapid.T) Policy {
	return Policy{
		Mechanism:   rapid.SampledFrom(append(Mechanisms(), SelPushPull)).Draw(t, "mechanism"),
		Dispatching: rapid.SampledFrom([]Dispatching{AsReady, FIFO, SPT, EDD}).Draw(t, "dispatching"),
		Relax:       rapid.Bool().Draw(t, "relax"),
		Compensate:  rapid.Bool().Draw(t, "compensate"),
		Patience:    rapid.Float64Range(0, 10).Draw(t, "patience"),
	}
}

// Whatever the mechanism: each item is answered once; nobody gets what he must
// not; no load exceeds what was available; an idle resource takes one item
// from the shared queue, a busy one none.
func TestAssignmentsAreLawful(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, rs := aScene(t)
		p := aPolicy(t)
		if err := Check(q, rs); err != nil {
			t.Fatalf("drew a scene that is not sound: %v", err)
		}
		left := map[ResourceID]float64{}
		byID := map[ResourceID]Resource{}
		for _, r := range rs {
			left[r.ID], byID[r.ID] = r.Availability, r
		}
		items := map[ItemID]Item{}
		for _, it := range q.Waiting {
			items[it.ID] = it
		}
		taken := map[ResourceID]int{}
		for _, a := range Allocate(q, rs, p, rand.New(rand.NewPCG(1, 2))) {
			it, known := items[a.Item]
			if !known {
				t.Fatalf("%s was answered twice, or never asked", a.Item)
			}
			delete(items, a.Item)
			if a.Resource == "" {
				continue
			}
			r := byID[a.Resource]
			if r.Suitability[it.Task] == 0 || r.Rested == 0 || Conformance(it.Violations[r.ID]) == 0 {
				t.Fatalf("%s must not get %s:\n%s", r.ID, it.ID, &a)
			}
			if len(it.Rejected) > 0 && it.Rejected[0] == r.ID {
				t.Fatalf("%s had rejected %s", r.ID, it.ID)
			}
			if left[r.ID] -= a.Load; left[r.ID] < 0 {
				t.Fatalf("%s has %v left after %s", r.ID, left[r.ID], it.ID)
			}
			taken[r.ID]++
			if p.Mechanism.Pulls() && p.Mechanism != SelPushPull && (r.Busy || taken[r.ID] > 1) {
				t.Fatalf("busy %s took %s", r.ID, it.ID)
			}
		}
		if len(items) > 0 {
			t.Fatalf("not answered: %v", items)
		}
	})
}

// The same arguments give the same assignments, and are left as they were.
func TestAllocateIsPure(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, rs := aScene(t)
		p := aPolicy(t)
		before := fmt.Sprint(q, rs)
		seed := rapid.Uint64().Draw(t, "seed")
		one := Allocate(q, rs, p, rand.New(rand.NewPCG(seed, 0)))
		two := Allocate(q, rs, p, rand.New(rand.NewPCG(seed, 0)))
		if !reflect.DeepEqual(one, two) {
			t.Fatalf("two answers:\n%v\n%v", one, two)
		}
		if after := fmt.Sprint(q, rs); after != before {
			t.Fatalf("arguments changed:\n%s\n%s", before, after)
		}
	})
}

// With a single resource Sel-push gives items to the same one as Push, in the
// same order, as capacity permits.
func TestSelPushOfOneIsPush(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "items")
		rs := []Resource{{ID: "only", Suitability: map[TaskID]float64{"a": 0.3}, Rested: 1, Availability: 1}}
		var q Queue
		for i := range n {
			q.Waiting = append(q.Waiting,
				Item{ID: ItemID(fmt.Sprint(i)), Task: "a", Time: rapid.Float64Range(1, 20).Draw(t, "time")})
		}
		pushed := Allocate(q, rs, Policy{Mechanism: Push}, nil)
		selPushed := Allocate(q, rs, Policy{Mechanism: SelPush}, nil)
		for i := range pushed {
			if pushed[i].Resource != selPushed[i].Resource || pushed[i].Item != selPushed[i].Item {
				t.Fatalf("%s differs from %s", &selPushed[i], &pushed[i])
			}
		}
	})
}

func TestParseNames(t *testing.T) {
	for _, m := range append(Mechanisms(), SelPushPull) {
		if got, err := ParseMechanism(string(m)); got != m || err != nil {
			t.Errorf("ParseMechanism(%q) = %q, %v", m, got, err)
		}
	}
	if _, err := ParseMechanism("Shove"); err == nil {
		t.Error("Shove is no mechanism")
	}
	if _, err := ParseDispatching("lifo"); err == nil {
		t.Error("lifo is no dispatching rule")
	}
}
