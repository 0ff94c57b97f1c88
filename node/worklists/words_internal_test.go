package worklists

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// Of a step of recovery that was not answered the text names no task that nobody wrote, and says where to look.
func TestAnUnansweredRecoveryIsToldInWords(t *testing.T) {
	r := &Row{Task: workflow.FlowTask, At: "b"}
	err := (&Desk{}).inWords(r, worklist.Order{What: worklist.Recover}, errNoAnswer)
	var e *api.Error
	if !errors.As(err, &e) || strings.Contains(err.Error(), string(workflow.FlowTask)) ||
		!strings.Contains(err.Error(), "b, who holds the data states") || !strings.Contains(e.Hint, "mutirao history ") {
		t.Errorf("it says %v, and to look at %q", err, e.Hint)
	}
	r.Task = "look"
	if err := (&Desk{}).inWords(r, worklist.Grant{}, errNoAnswer); !errors.As(err, &e) || !strings.Contains(err.Error(), "holds look") ||
		!strings.Contains(e.Hint, "worklist") || e.Code.Exit() != 6 {
		t.Errorf("of an item it says %v, and to look at %q", err, e.Hint)
	}
}

// What somebody who decides about an instance asks for is on no worklist: the instance shows what came of it.
func TestWhatIsDecidedAndUnansweredIsSeenAtTheInstance(t *testing.T) {
	r := &Row{Instance: workflow.InstanceID{1}, Task: "look", At: "b"}
	for _, word := range []worklist.Body{worklist.Order{What: "again"}, worklist.Adopt{}, worklist.Extend{}} {
		var e *api.Error
		err := (&Desk{}).inWords(r, word, errNoAnswer)
		if want := "mutirao show " + r.Instance.String() + " shows what came of it"; !errors.As(err, &e) || e.Hint != want {
			t.Errorf("%T: it says to look at %v, want %q", word, err, want)
		}
	}
}

// Of a holder that is away it is said that the instance can be cancelled meanwhile, but not to whoever says what may be
// about an instance that has ended, or wants just that.
func TestToCancelMeanwhileIsSaidWhereItHelps(t *testing.T) {
	d := &Desk{in: Surroundings{
		Away:   func() (time.Time, bool) { return time.Time{}, false },
		Absent: func(workflow.PartnerID) *api.Absence { return &api.Absence{Partner: "b"} },
	}}
	for _, x := range []struct {
		word worklist.Body
		says bool
	}{
		{worklist.Order{What: worklist.Again}, true}, {worklist.Grant{}, true},
		{worklist.Order{What: worklist.Undo}, false}, {worklist.Order{What: worklist.Cancel}, false}, {worklist.Adopt{}, false},
	} {
		var e *api.Error
		err := d.inWords(&Row{Task: "look", At: "b"}, x.word, errAway)
		if !errors.As(err, &e) || strings.Contains(e.Hint, "cancel") != x.says || !strings.Contains(e.Hint, "wait until it is back") {
			t.Errorf("of %+v it says %v, and hints at %q", x.word, err, e.Hint)
		}
	}
}
