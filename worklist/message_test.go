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
