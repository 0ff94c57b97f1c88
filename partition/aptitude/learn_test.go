package aptitude_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mutirao-mesh/mutirao/partition/aptitude"
)

func after(n int, x aptitude.Execution) (e aptitude.Experience) {
	for range n {
		e = e.After(x)
	}
	return e
}

// What executions teach, in the words that people see.
func TestExperience(t *testing.T) {
	took := func(d time.Duration) aptitude.Execution {
		return aptitude.Execution{Took: d, Expected: 10 * time.Minute}
	}
	for _, c := range []struct {
		e    aptitude.Experience
		want string
	}{
		{aptitude.Experience{}, "0 done, 0 failed: × 1.00"},
		{after(10, aptitude.Execution{}), "10 done, 0 failed: × 1.00"},
		{after(10, took(10*time.Minute)), "10 done, 0 failed, in 1 of the expected time: × 1.00"},
		{after(10, took(5*time.Minute)), "10 done, 0 failed, in 0.5 of the expected time: × 1.25"},
		{after(4, took(20*time.Minute)), "4 done, 0 failed, in 2 of the expected time: × 0.84"},
		{after(1, aptitude.Execution{Failed: true}), "0 done, 1 failed: × 0.80"},
		{after(1, aptitude.Execution{Redone: true}), "1 done (1 not at the first try), 0 failed: × 0.90"},
		{after(100, aptitude.Execution{Failed: true}), "0 done, 100 failed: × 0.50"},
		{after(1, took(1000*time.Hour)), "1 done, 0 failed, in 4 of the expected time: × 0.87"},
		{after(4, aptitude.Execution{Failed: true}).Plus(after(4, aptitude.Execution{})), "4 done, 4 failed: × 0.67"},
	} {
		if got := c.e.String(); got != c.want {
			t.Errorf("%+v: %s, want %s", c.e, got, c.want)
		}
	}
}

// However executions went, the factor stays in its bounds, a failure never
// raises it, and what lies far back is forgotten.
func TestExperienceIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var e aptitude.Experience
		for range rapid.IntRange(0, 400).Draw(t, "executions") {
			x := aptitude.Execution{
				Failed: rapid.Bool().Draw(t, "failed"), Redone: rapid.Bool().Draw(t, "redone"),
				Took: time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "took")), Expected: time.Minute,
			}
			e = e.After(x)
			if f := e.Factor(); !(f >= 0.5 && f <= 1.25) {
				t.Fatalf("%v: the factor is %v", e, f)
			}
			if n := e.Done + e.Redone + e.Failed; n > 100.001 || e.Timed > 100.001 {
				t.Fatalf("%+v counts too much", e)
			}
		}
		if worse := e.After(aptitude.Execution{Failed: true}); worse.Factor() > e.Factor()+0.01 {
			t.Fatalf("a failure raised the factor from %v to %v", e.Factor(), worse.Factor())
		}
	})
	forgotten := after(100, aptitude.Execution{Failed: true})
	for range 500 {
		forgotten = forgotten.After(aptitude.Execution{})
	}
	if forgotten.Factor() < 0.95 {
		t.Errorf("500 good executions do not make a hundred failures forgotten: %v", forgotten)
	}
}
