package show

import "testing"

// A step of recovery is said in good English however many transitions it undoes.
func TestStepsAreCounted(t *testing.T) {
	for step, want := range map[string]string{
		`{"method":"compensate","steps":1}`:           "ana recovers it: compensate, 1 step",
		`{"method":"compensate","steps":2,"until":0}`: "ana recovers it: compensate, 2 steps, until S0",
	} {
		if got := (&Held{}).tellStep("ana", step); got != want {
			t.Errorf("%s: %q, want %q", step, got, want)
		}
	}
}
