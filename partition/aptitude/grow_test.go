package aptitude

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// Before the moment that is told nobody more sees an item, and just after it somebody does, or the threshold is that of
// a higher tier by then, as somebody who is busy could reach it; if none is told nobody does, however long it takes.
func TestWhenOneMoreSeesAnItem(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 9))
	told, grew := 0, 0
	for range 3000 {
		it := Item{ID: "i", Task: "t", Time: 1, Ready: float64(rnd.IntN(50)), Urgency: Urgency{Growth: rnd.Float64() * 0.01}}
		policy := Policy{Mechanism: []Mechanism{Typical, Receptive, Selective, SelPushPull}[rnd.IntN(4)], Patience: 1e9}
		if rnd.IntN(2) == 0 {
			it.Urgency.Growth = 0
		}
		if rnd.IntN(2) == 0 {
			policy.Relax, it.Instance.Due = true, it.Ready+1+float64(rnd.IntN(500))
		}
		var resources []Resource
		for i := range 1 + rnd.IntN(5) {
			rested := 0.3 + 0.7*rnd.Float64()
			resources = append(resources, Resource{
				ID: ResourceID(fmt.Sprint(i)), Suitability: map[TaskID]float64{"t": rnd.Float64()}, Rested: rested,
				Availability: rested * rnd.Float64(),
			})
		}
		seen := func(now float64) (map[ResourceID]bool, *Assignment) {
			as := Allocate(Queue{Now: now, Waiting: []Item{it}}, resources, policy, rand.New(rand.NewPCG(0, 0)))[0]
			out := map[ResourceID]bool{}
			for _, c := range as.Candidates {
				if c.Verdict == Offered || c.Verdict == NotDrawn || c.Verdict == Chosen {
					out[c.Resource] = true
				}
			}
			return out, &as
		}
		now := it.Ready + rnd.Float64()*100
		first, as := seen(now)
		more := func(at float64) bool {
			then, _ := seen(at)
			for r := range then {
				if !first[r] {
					return true
				}
			}
			return false
		}
		tier := func(at float64, as *Assignment) float64 {
			a := allocator{now: at, policy: policy}
			return as.Threshold / a.relaxed(1, &it)
		}
		in := SeenIn(Queue{Now: now, Waiting: []Item{it}}, policy, as)
		horizon := in
		if in == 0 {
			horizon = 2000
		}
		for k := range 20 {
			if at := now + horizon*float64(k)/20.0001; more(at) {
				t.Fatalf("%+v, %+v, %+v at %v: one more sees it at %v, and it was told that in %v", it, policy, resources, now, at, in)
			}
		}
		if in > 0 {
			told++
			_, then := seen(now + in + 0.001)
			if more(now + in + 0.001) {
				grew++
			} else if tier(now+in+0.001, then) <= tier(now, as)+0.05 {
				t.Fatalf("%+v, %+v, %+v at %v: nobody more sees it after %v", it, policy, resources, now, in)
			}
		}
	}
	if told < 300 || grew < 200 {
		t.Errorf("it was told %d times, and one more saw it %d times: want more of both", told, grew)
	}
}
