package worklists

import (
	"errors"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Of a step of recovery that was not answered the text names no task that nobody wrote, and says where to look.
func TestAnUnansweredRecoveryIsToldInWords(t *testing.T) {
	r := &Row{Task: workflow.FlowTask, At: "b"}
	err := (&Desk{}).inWords(r, errNoAnswer)
	var e *api.Error
	if !errors.As(err, &e) || strings.Contains(err.Error(), string(workflow.FlowTask)) ||
		!strings.Contains(err.Error(), "b, who holds the data states") || !strings.Contains(e.Hint, "mutirao history ") {
		t.Errorf("it says %v, and to look at %q", err, e.Hint)
	}
	r.Task = "look"
	if err := (&Desk{}).inWords(r, errNoAnswer); !errors.As(err, &e) || !strings.Contains(err.Error(), "holds look") ||
		!strings.Contains(e.Hint, "worklist") || e.Code.Exit() != 6 {
		t.Errorf("of an item it says %v, and to look at %q", err, e.Hint)
	}
}
