package aptitude

import (
	"fmt"
	"math"
	"testing"
)

// The spec's worked example: urgency 0.8, conformance 1, and three resources.
var worked = []struct {
	availability, suitability float64
	absAlloc                  string
}{
	{0.8, 1.0, "0.640"},
	{1.0, 0.9, "0.720"},
	{0.9, 0.8, "0.576"},
}

func TestWorkedExampleOfAbsAlloc(t *testing.T) {
	for _, w := range worked {
		f := Factors{Suitability: w.suitability, Urgency: 0.8, Conformance: 1, Availability: w.availability}
		if got := fmt.Sprintf("%.3f", f.AbsAlloc()); got != w.absAlloc {
			t.Errorf("availability %v, suitability %v: abs_alloc %s, want %s", w.availability, w.suitability, got,
				w.absAlloc)
		}
	}
}

func TestWorkedExampleIsAllocatedToTheSecond(t *testing.T) {
	var rs []Resource
	for i, w := range worked {
		rs = append(rs, Resource{
			ID: ResourceID(fmt.Sprint("rs", i+1)), Suitability: map[TaskID]float64{"w": w.suitability},
			Rested: w.availability, Availability: w.availability,
		})
	}
	it := Item{ID: "1/w", Task: "w", Time: 10}
	a := Allocate(Queue{Waiting: []Item{it}}, rs, Policy{Mechanism: SelPush}, nil)[0]
	if a.Resource != "rs2" {
		t.Fatalf("chosen: %q, want rs2\n%s", a.Resource, &a)
	}
	var q Quality
	q.Add(a.Candidates[1].Quality(), BestQuality(it, rs))
	if got := fmt.Sprintf("%g / %g = %g", q.Actual, q.Ideal, q.Total()); got != "0.9 / 1 = 0.9" {
		t.Errorf("Q_actual / Q_ideal = Q_total: %s, want 0.9 / 1 = 0.9", got)
	}
}

func TestConformance(t *testing.T) {
	tests := []struct {
		penalties []float64
		want      float64
	}{
		{nil, 1},
		{[]float64{0.3, 0.4}, 0.42},
		{[]float64{0.4, 0.4}, 0.36},
		{[]float64{0.1}, 0.9},
		{[]float64{0.99}, 0.01},
		{[]float64{0.3, 1}, 0},
	}
	for _, test := range tests {
		var vs []Violation
		for _, p := range test.penalties {
			vs = append(vs, Violation{Constraint: "c", Penalty: p})
		}
		if got := Conformance(vs); math.Abs(got-test.want) > 1e-12 {
			t.Errorf("violating %v gives %v, want %v", test.penalties, got, test.want)
		}
	}
}

func TestUrgencyGrowsUpToOne(t *testing.T) {
	tests := []struct {
		urgency Urgency
		waited  float64
		want    float64
	}{
		{Urgency{}, 100, 0.8},
		{Urgency{Initial: 0.5}, 100, 0.5},
		{Urgency{Growth: 0.01}, 5, 0.85},
		{Urgency{Growth: 0.01}, 500, 1},
		{Urgency{Growth: 0.01}, -5, 0.8},
	}
	for _, test := range tests {
		if got := test.urgency.After(test.waited); math.Abs(got-test.want) > 1e-12 {
			t.Errorf("%+v after %v: %v, want %v", test.urgency, test.waited, got, test.want)
		}
	}
}

func TestQualityOfNoWorkIsWhole(t *testing.T) {
	if got := (Quality{}).Total(); got != 1 {
		t.Errorf("Q_total of nothing is %v, want 1", got)
	}
}
