package worklist

import (
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// What interrupts an instance is said with the task that did it, if one did.
func TestWhatInterruptsIsSaid(t *testing.T) {
	for _, x := range []struct{ task, reason, want string }{
		{"pay", "", "pay has failed: no reason was given"},
		{"pay", "the instance is interrupted: no money", "pay has failed: the instance is interrupted: no money"},
		{
			"pay", WrongState + "the state breaks the constraint few: n < 3",
			"pay brought a state that interrupts the instance: the state breaks the constraint few: n < 3",
		},
		{
			"", "the instance is interrupted: the state breaks the constraint few: n < 3",
			"the instance is interrupted: the state breaks the constraint few: n < 3",
		},
	} {
		m := Source{}.Failed(Item{}, workflow.TaskName(x.task), ID{}, time.Time{}, x.reason, true)
		if m.Text != x.want {
			t.Errorf("of %q, by %q: %q, want %q", x.task, x.reason, m.Text, x.want)
		}
	}
}

// Whoever lost an item is told what came before that; that it passes on, by which it was lost, is told as the loss,
// also where the clocks of this device and of its holder differ by a little.
func TestWhatAnItemIsLostByIsTold(t *testing.T) {
	due := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	d := Dated{
		Task: "look", Due: Due{At: due}, Warnings: []time.Duration{2 * time.Hour, 30 * time.Minute}, Transfer: time.Hour,
	}
	all, _ := Source{Workflow: "rota"}.Reminders(d, Moment{Wall: due})
	if len(all) != 4 {
		t.Fatalf("told is %+v", all)
	}
	lost := due.Add(-time.Hour - time.Millisecond)
	for why, want := range map[string][]time.Duration{
		string(ByDeadline): {2 * time.Hour}, string(ByReturn): {2 * time.Hour},
	} {
		told := Before(all, lost.Add(2*time.Millisecond), why)
		if why == string(ByReturn) {
			told = Before(all, lost, why)
		}
		left := map[time.Duration]bool{}
		for _, m := range told {
			left[m.ID.Warning] = m.Past
		}
		if len(told) != len(want) {
			t.Errorf("as %s it is told %+v", why, told)
		}
		for _, w := range want {
			if !left[w] {
				t.Errorf("as %s nothing is told of when %s were left", why, w)
			}
		}
	}
}
