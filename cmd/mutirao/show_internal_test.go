package main

import (
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Where nobody is left who decides, no command is named that everybody is refused, but what a partner may still do.
func TestShowNamesNoCommandThatNobodyMayGive(t *testing.T) {
	in := &api.Instance{
		ID: "3f9a", State: workflow.InstanceBlocked, Responsible: "bia", ResponsibleGone: true,
		Asks: []api.Ask{{
			Task: "look", Partner: "base", Orders: []string{api.TaskAgain, api.TaskSkip, api.TaskCancel},
			Commands: []string{"mutirao task again 3f9a look", "mutirao task skip 3f9a look --reason WHY", "mutirao cancel 3f9a"},
		}},
		Undoable:  []workflow.TaskName{"pay"},
		Overdue:   []api.Overdue{{Task: "board", Commands: []string{"mutirao task continue 3f9a board"}}},
		Incidents: []api.Incident{{What: "kept", Commands: []string{"mutirao task adopt 3f9a 77"}}},
	}
	shown := func() string {
		var out strings.Builder
		(&ui{}).writeInstance(&out, in, false)
		return out.String()
	}
	for _, x := range []struct {
		state workflow.InstanceState
		want  string
	}{
		{workflow.InstanceBlocked, "look has failed; nobody is left who decides; each partner that takes part may end it, as the user of its own name: mutirao cancel 3f9a\n"},
		{workflow.InstanceFailed, "look has failed; nobody is left who decides, so it stays as it is"},
	} {
		in.State = x.state
		if x.state == workflow.InstanceFailed {
			in.Asks[0].Orders = in.Asks[0].Orders[:2]
		}
		if text := shown(); strings.Contains(text, "mutirao task") || strings.Contains(text, "waits for an order") || !strings.Contains(text, x.want) {
			t.Errorf("of what is %s it shows\n%s", x.state, text)
		}
	}
	in.Administrators = "chief"
	if text := shown(); !strings.Contains(text, "who has the role chief decides: mutirao task again 3f9a look; ") {
		t.Errorf("with administrators it shows\n%s", text)
	}
	in.ResponsibleGone, in.Responsible = false, "ana"
	if text := shown(); !strings.Contains(text, "ana, or who has the role chief, decides: mutirao task again 3f9a look; ") {
		t.Errorf("with both it shows\n%s", text)
	}
}

// Who answers for an instance is said to be able to end it meanwhile where that one is there.
func TestWhoIsGoneEndsNothing(t *testing.T) {
	in := &api.Instance{
		ID: "3f9a", State: workflow.InstanceRunning, Responsible: "ana",
		Tasks: []api.Task{{Name: "look", State: workflow.Ready, Away: &api.Absence{Partner: "jetty"}}},
	}
	for _, gone := range []bool{false, true} {
		in.ResponsibleGone = gone
		var out strings.Builder
		if (&ui{}).writeAway(&out, in); strings.Contains(out.String(), "ana can end the instance") == gone {
			t.Errorf("gone: %t; it shows\n%s", gone, out.String())
		}
	}
}
