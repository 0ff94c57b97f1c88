package node_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// dated has tasks with deadlines of each kind; its tasks are for nurses, wherever they are.
const dated = `
workflow: dated
data:
  sails: {type: time, required: true}
warnings: [1h]
tasks:
  span:  {type: manual, role: nurse, deadline: 3h, offline: true}
  data:  {type: manual, role: nurse, deadline: sails, warnings: [30m], offline: true}
  never: {type: manual, role: nurse}
  file:  {deadline: 10h}
partitions: {main: {tasks: [span, data, never, file], partner: base}}
`

// datedNurses are nurses with an instance of dated, and no other.
func datedNurses(t *testing.T) (tm *team, id string) {
	tm, rotaID := nurses(t)
	if err := tm.p["base"].api.Cancel(t.Context(), rotaID, "no need"); err != nil {
		t.Fatal(err)
	}
	tm.add("base", dated)
	tm.p["base"].hand.hold("file")
	sails := time.Now().Add(2 * time.Hour).UTC().Format(time.RFC3339)
	st, err := tm.p["base"].api.Start(t.Context(),
		api.StartRequest{Workflow: "dated", Input: map[string]string{"sails": sails}})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return tm, st.ID
}

// left is after what time each task on a list is due, to the minute.
func (tm *team) left(at, user string) map[string]time.Duration {
	tm.t.Helper()
	out := map[string]time.Duration{}
	for _, x := range tm.items(at, user) {
		if x.Deadline != nil {
			out[x.Task] = time.Until(*x.Deadline).Round(time.Minute)
		}
	}
	return out
}

func (tm *team) wantLeft(at, user, task string, want time.Duration) {
	tm.t.Helper()
	if got, has := tm.left(at, user)[task]; !has || got != want {
		tm.t.Errorf("%s at %s: %s is due in %v (%v), want %v", user, at, task, got, has, want)
	}
}

// Deadlines are told in lists, and by the device of somebody who is out of reach, also after both were started
// again; a list can be ordered by them.
func TestDeadlinesOfItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id := datedNurses(t)
		pass(time.Hour)
		list, err := tm.p["tablet"].api.Worklist(t.Context(), api.WorklistQuery{User: "bia", Order: api.OrderDeadline})
		if err != nil {
			t.Fatal(err)
		}
		var order []string
		items := map[string]string{}
		for _, x := range list {
			order = append(order, x.Task)
			items[x.Task] = x.ID
		}
		if !slices.Equal(order, []string{"data", "span", "never"}) {
			t.Errorf("by deadline: %q", order)
		}
		tm.wantLeft("tablet", "bia", "span", 2*time.Hour)
		tm.wantLeft("tablet", "bia", "data", time.Hour)
		if _, has := tm.left("tablet", "bia")["never"]; has {
			t.Error("what has no deadline has one")
		}
		if err := tm.claim("tablet", "bia", api.ClaimLock, items["span"]); err != nil {
			t.Fatal(err)
		}
		tm.disconnect("base", "tablet")
		tm.p["tablet"].crash()
		pass(30 * time.Minute)
		tm.p["tablet"].start()
		tm.wantLeft("tablet", "bia", "span", 90*time.Minute)
		tm.p["base"].crash()
		pass(30 * time.Minute)
		tm.p["base"].start()
		pass(time.Minute)
		tm.wantLeft("base", "ana", "data", -time.Minute)
		var due []api.Due
		for _, x := range tm.show("base", id).Tasks {
			if x.Name == "span" || x.Name == "file" {
				due = append(due, x.Due...)
			}
		}
		slices.SortFunc(due, func(a, b api.Due) int { return a.At.Compare(b.At) })
		if len(due) != 2 || due[0].Kind != "deadline" || due[0].Left != "59m0s" || due[1].Left != "7h59m0s" {
			t.Errorf("shown: %+v", due)
		}
		pass(2 * time.Hour) // nothing fails for it
		if st := tm.show("base", id).State; st != workflow.InstanceRunning {
			t.Errorf("the instance is %s", st)
		}
		tm.wantLeft("tablet", "bia", "span", -61*time.Minute)
	})
}

// People are warned of what comes: a warning that was due before the instance began is told to nobody. How much time
// is left is said all the same, and that it is over.
func TestNoWarningFromBeforeTheInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base", "tablet")
		tm.add("base", `
workflow: voyage
tasks:
  sail: {type: manual, deadline: 2000-01-01T03:00:00Z, warnings: [24h, 2h, 1h]}
partitions: {ship: {tasks: [sail], partner: tablet}}
`)
		pass(90 * time.Minute)
		id := tm.begin("base", "voyage", nil)
		told := func(want ...string) {
			t.Helper()
			var got []string
			list, err := tm.p["base"].api.Messages(t.Context(), api.MessagesQuery{})
			for _, m := range list {
				if m.Type == api.MessageDeadline {
					got = append(got, m.Text)
				}
			}
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("told of %q (%v), want %q", got, err, want)
			}
		}
		pass(time.Second)
		told()
		for _, at := range []string{"base", "tablet"} {
			if due := tm.taskOf(at, id, "sail").Due; len(due) != 1 || due[0].Kind != "deadline" {
				t.Errorf("%s says of the time that is left %+v", at, due)
			}
		}
		pass(time.Hour)
		told("sail is due in 1h")
		pass(time.Hour)
		told("sail is due in 1h", "the deadline of sail is over: let it go on, or stop it")
	})
}

// A deadline that is a point in time is told before its task can be done: how much time is left at every node, and
// in messages. What waits still cannot be stopped nor let go on, so that is asked once it is ready.
func TestAPointInTimeIsToldBeforeItsTaskCanBeDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base", "tablet")
		tm.add("base", `
workflow: voyage
tasks:
  load: {}
  sail: {type: manual, after: load, deadline: 2000-01-01T03:00:00Z, warnings: [1h]}
  rest: {type: manual, after: load, deadline: 1h}
partitions:
  quay: {tasks: [load], partner: base}
  ship: {tasks: [sail, rest], partner: tablet}
`)
		tm.p["base"].hand.hold("load")
		id := tm.begin("base", "voyage", nil)
		said := func(want ...string) {
			t.Helper()
			list, err := tm.p["base"].api.Messages(t.Context(), api.MessagesQuery{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range list {
				if m.Type == api.MessageDeadline {
					got = append(got, m.Text)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("told of %q, want %q", got, want)
			}
		}
		pass(time.Hour)
		for _, at := range []string{"base", "tablet"} {
			for _, x := range tm.show(at, id).Tasks {
				switch {
				case x.Name == "sail" && (len(x.Due) != 1 || x.Due[0].Kind != "deadline" || x.Due[0].About):
					t.Errorf("sail is %s at %s, due %+v", x.State, at, x.Due)
				case x.Name == "rest" && len(x.Due) != 0:
					t.Errorf("a span has begun at %s: %+v", at, x.Due)
				}
			}
		}
		said()
		pass(time.Hour)
		said("sail is due in 1h")
		pass(time.Hour)
		said("sail is due in 1h", "the deadline of sail is over, and it still waits for what comes before it")
		tm.p["base"].hand.letGo(t, "load")
		pass(time.Minute)
		said("sail is due in 1h", "the deadline of sail is over: let it go on, or stop it")
		for _, at := range []string{"base", "tablet"} { // a span begins when its task is ready
			for _, x := range tm.show(at, id).Tasks {
				if x.Name == "rest" && (len(x.Due) != 1 || x.Due[0].Left != "59m0s") {
					t.Errorf("rest is %s at %s, due %+v", x.State, at, x.Due)
				}
			}
		}
	})
}

// Of an item that somebody only selected at a device whose node takes no part, the device tells of its deadline while
// its holder is out of reach; started again meanwhile it does so once its holder is heard.
func TestADeviceTellsOfTheDeadlineOfASelectedItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _ := datedNurses(t)
		if err := tm.claim("tablet", "bia", api.ClaimSelect, tm.itemOf("tablet", "bia", "span").ID); err != nil {
			t.Fatal(err)
		}
		tm.disconnect("base", "tablet")
		pass(170 * time.Minute)
		const near = "*dated deadline: span is due in 1h"
		tm.wantMessages("tablet", "bia", near)
		tm.p["tablet"].crash()
		tm.p["tablet"].start()
		pass(time.Minute)
		tm.wantMessages("tablet", "bia")
		tm.connect("base", "tablet")
		pass(time.Minute)
		tm.wantMessages("tablet", "bia", near)
	})
}
