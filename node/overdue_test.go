package node_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// overdue are the tasks of an instance at a node that need a person as their deadline is over, and since when.
func (tm *team) overdue(at, id string) (tasks []workflow.TaskName, since time.Duration) {
	tm.t.Helper()
	list, err := tm.p[at].api.Instances(tm.t.Context(), false)
	if err != nil {
		tm.t.Fatal(err)
	}
	for _, in := range list {
		for _, n := range in.Needs {
			if in.ID == id && n.Kind == api.NeedOverdue && n.Since != nil {
				tm.sameShown(at, id, n)
				return n.Tasks, time.Since(*n.Since).Round(time.Minute)
			}
		}
	}
	return nil, 0
}

// sameShown checks that who looks at the instance sees as overdue what its list says, and how it is said what becomes of it.
func (tm *team) sameShown(at, id string, n api.Need) {
	tm.t.Helper()
	in, err := tm.p[at].api.Show(tm.t.Context(), id)
	if err != nil {
		tm.t.Fatal(err)
	}
	if len(in.Overdue) != n.Number {
		tm.t.Errorf("at %s %+v is shown of %+v", at, in.Overdue, n)
	}
	for _, o := range in.Overdue {
		t := string(o.Task)
		want := []string{
			"mutirao task continue " + id + " " + t, "mutirao task stop " + id + " " + t,
			"mutirao task extend " + id + " " + t + " --by SPAN",
		}
		if !slices.Equal(o.Commands, want) || o.Since.Before(*n.Since) {
			tm.t.Errorf("at %s %+v is shown of %+v", at, o, n)
		}
	}
}

func (tm *team) wantOverdue(at, id string, since time.Duration, tasks ...workflow.TaskName) {
	tm.t.Helper()
	if got, ago := tm.overdue(at, id); !slices.Equal(got, tasks) || ago != since {
		tm.t.Errorf("at %s %v need a person since %v, want %v since %v", at, got, ago, tasks, since)
	}
}

// What people did not do in time needs a person, at each node that takes part, also after a restart: until it is done,
// extended, said to go on, or passed on. What a program does, and what is not ready, does not.
func TestWhatIsOverdueNeedsAPerson(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base", "road")
		tm.add("base", `
workflow: rounds
tasks:
  done:   {type: manual, deadline: 1h}
  more:   {type: manual, deadline: 2h}
  goes:   {type: manual, deadline: 3h}
  passed: {type: manual, deadline: 4h}
  waits:  {type: manual, after: done, deadline: 2000-01-01T01:00:00Z}
  file:   {deadline: 10m}
partitions: {main: {tasks: [done, more, goes, waits, file], partner: base}, other: {tasks: [passed], partner: road}}
`)
		tm.p["base"].hand.hold("file")
		id := tm.begin("base", "rounds", nil)
		pass(59 * time.Minute)
		tm.wantOverdue("base", id, 0)
		pass(4*time.Hour + time.Minute)
		for _, at := range []string{"base", "road"} {
			tm.wantOverdue(at, id, 4*time.Hour, "done", "goes", "more") // of four the first three are named
		}
		tm.p["base"].crash()
		tm.p["base"].start()
		tm.connect("base", "road")
		pass(time.Minute)
		tm.wantOverdue("base", id, 4*time.Hour+time.Minute, "done", "goes", "more")
		tm.finish("base", id, "done")
		if err := tm.extend("base", "", id, "more", api.ExtendRequest{By: "6h"}); err != nil {
			t.Fatal(err)
		}
		if err := tm.order("base", "", id, api.TaskContinue, "goes"); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		for _, at := range []string{"base", "road"} {
			tm.wantOverdue(at, id, 4*time.Hour+2*time.Minute, "passed", "waits")
		}
		x := tm.itemOf("road", "", "passed")
		if err := tm.claim("road", "", api.ClaimSelect, x.ID); err != nil {
			t.Fatal(err)
		}
		tm.wantOverdue("road", id, 4*time.Hour+2*time.Minute, "passed", "waits")
		if _, err := tm.p["road"].api.TransferItem(t.Context(), api.TransferRequest{Item: x.ID, Back: true}); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		tm.wantOverdue("road", id, 4*time.Hour+3*time.Minute, "waits")
		if err := tm.p["base"].api.Cancel(t.Context(), id, "enough"); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		tm.wantOverdue("base", id, 0)
	})
}
