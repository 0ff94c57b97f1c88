package node_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// rescue is a plan that base runs; the search in it is for rescuers.
const rescue = `
workflow: rescue
tasks:
  search: {type: manual, role: rescuer, duration: 10m, suitability: {ana: 0.9, bia: 1.0, cai: 0.8}}
  report: {after: search}
partitions: {plan: {tasks: [search, report], partner: base}}
`

// search starts an instance at base and tells how the search came to its partner.
func (tm *team) search(mechanism string) (id string, t api.Task) {
	tm.t.Helper()
	st, err := tm.p["base"].api.Start(tm.t.Context(), api.StartRequest{Workflow: "rescue", Mechanism: mechanism})
	if err != nil {
		tm.t.Fatal(err)
	}
	synctest.Wait()
	return st.ID, tm.show("base", st.ID).Tasks[0]
}

// A person's task goes to the most apt of those that have its role, at the
// moment at which it is ready, and everybody is told why. A partner that is
// busy, rejects it or cannot be reached is passed over.
func TestPeoplesTasksGoToTheMostAptWithTheRole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base", "ana:rescuer", "bia:rescuer", "cai:rescuer")
		tm.add("base", rescue)
		first, task := tm.search("Sel-push")
		if task.Partner != "bia" || task.State != workflow.Ready || task.Why == nil ||
			task.Why.Mechanism != "Sel-push" || len(task.Why.Candidates) != 3 {
			t.Fatalf("the search is %+v, why %+v", task, task.Why)
		}
		if told := tm.show("bia", first).Tasks[0]; told.Why == nil || told.Why.Candidates[0].Partner != "bia" {
			t.Errorf("bia is told %+v", told)
		}
		if id, task := tm.search("Sel-push"); task.Partner != "ana" {
			t.Errorf("while bia is busy the search of %s goes to %s: %+v", id, task.Partner, task.Why)
		}
		to, err := tm.p["bia"].api.RejectTask(t.Context(),
			api.RejectRequest{ID: first, Task: "search", Reason: "no rope"})
		if err != nil || to.Partner != "cai" {
			t.Fatalf("what bia rejects goes to %+v, %v", to, err)
		}
		synctest.Wait()
		tm.disconnect("base", "bia")
		synctest.Wait()
		if _, task := tm.search("Push"); task.Partner != "ana" {
			t.Errorf("while bia cannot be reached the search goes to %s", task.Partner)
		}
		if err := tm.p["cai"].api.FinishTask(t.Context(), api.FinishRequest{ID: first, Task: "search"}); err != nil {
			t.Fatal(err)
		}
		tm.succeeds(first, time.Minute, "base", "cai")
	})
}

// The holder of the partition is a candidate like the others, no less for
// holding it, and it is said that it keeps the task, and why.
func TestHolderKeepsThePeoplesTaskForWhichItIsMostApt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base", "ana:rescuer", "bia:rescuer")
		tm.add("base", strings.NewReplacer("ana: 0.9", "ana: 1.0", "bia: 1.0", "bia: 0.95", "partner: base",
			"partner: ana").Replace(rescue))
		id, task := tm.search("Sel-push")
		if task.Partner != "ana" || task.Attempt != 1 || task.Why == nil || len(task.Why.Candidates) != 2 {
			t.Errorf("the search is %+v, why %+v", task, task.Why)
		}
		if _, task := tm.search("Sel-push"); task.Partner != "bia" {
			t.Errorf("while ana has the first search, the second is at %s", task.Partner)
		}
		facts, err := tm.p["base"].api.Log(t.Context(), id)
		if err != nil || len(facts) != 2 || facts[1].Text != "given to ana, to perform it" {
			t.Errorf("the log is %+v, %v", facts, err)
		}
	})
}

// By the plain rule the holder keeps what it has the role for. Else the task goes to
// one that has it, as soon as one can be reached; until then it says what it waits
// for.
func TestPeoplesTasksWithoutAMechanism(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base", "ana:rescuer", "dora")
		tm.add("base", strings.ReplaceAll(rescue, ", suitability: {ana: 0.9, bia: 1.0, cai: 0.8}", ""))
		tm.disconnect("base", "ana")
		synctest.Wait()
		id, task := tm.search("")
		if task.Partner != "base" || !strings.Contains(task.Reason, "nobody with role rescuer can be reached") {
			t.Fatalf("while nobody with the role can be reached the search is %+v", task)
		}
		err := tm.p["base"].api.FinishTask(t.Context(), api.FinishRequest{ID: id, Task: "search"})
		if refused := (*api.Error)(nil); !errors.As(err, &refused) || refused.Code != api.NotAllowed {
			t.Errorf("base finishes it without the role: %v", err)
		}
		tm.connect("base", "ana")
		synctest.Wait()
		if task = tm.show("base", id).Tasks[0]; task.Partner != "ana" || task.Reason != "" {
			t.Fatalf("with ana back the search is %+v", task)
		}
		if err := tm.p["ana"].api.FinishTask(t.Context(), api.FinishRequest{ID: id, Task: "search"}); err != nil {
			t.Fatal(err)
		}
		tm.succeeds(id, time.Minute, "base", "ana")

		own := tm.begin("ana", "rescue", map[string]string{"plan": "ana"})
		if facts, err := tm.p["ana"].api.Log(t.Context(), own); err != nil || len(facts) != 1 {
			t.Errorf("what ana can do by itself takes more facts than the start: %+v, %v", facts, err)
		}
	})
}

// The partner that was given a task counts as its performer for the constraints
// of the next, before anybody has begun.
func TestConstraintsSeeWhoWasChosenToPerform(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base", "ana:rescuer", "bia:rescuer")
		tm.add("base", `
workflow: rescue
constraints:
  - {name: two-pairs-of-eyes, violated: 'task.name == "search" and performer("check") == partner.name', penalty: 1}
tasks:
  search: {type: manual, role: rescuer, suitability: {ana: 0.9, bia: 0.5}}
  check:  {type: manual, role: rescuer, suitability: {ana: 0.9, bia: 0.5}}
partitions: {plan: {tasks: [search, check], partner: base}}
`)
		id, check := tm.search("Push")
		if search := tm.show("base", id).Tasks[1]; check.Partner != "ana" || search.Partner != "bia" {
			t.Errorf("the check is at %s, the search at %s, want ana and bia", check.Partner, search.Partner)
		}
	})
}

// What waits for a role that users have who are no partners is said to be for them, and not that there is nobody; also
// when the first of them comes while it waits.
func TestWhatUsersCanTakeIsSaidToBeForThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base", "tablet")
		tm.add("base", strings.ReplaceAll(rescue, ", suitability: {ana: 0.9, bia: 1.0, cai: 0.8}", ""))
		st, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "rescue", WaitForRole: true})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		id := st.ID
		if why := tm.show("base", id).Tasks[0].Reason; !strings.Contains(why, "nobody has role rescuer") {
			t.Errorf("while nobody has the role: %q", why)
		}
		if err := tm.signIn("tablet", tm.addUser("base", "bia", "rescuer")); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		why := tm.show("base", id).Tasks[0].Reason
		if !strings.Contains(why, "it is for the users with role rescuer") {
			t.Errorf("with bia there: %q", why)
		}
	})
}

// What a partner was only given to perform of a partition whose definition names its partner goes back to that one, or
// to where somebody with the role works, and never to a node where nobody has it: as the performer leaves or rejects
// it, and as who decides has it done once more when the performer is gone.
func TestWhatWasGivenToPerformGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pair = `
workflow: pair
tasks:
  search: {type: manual, role: rescuer}
  dig:    {type: manual, role: rescuer}
partitions: {plan: {tasks: [search, dig], partner: base}}
`
		tm := newTeam(t, "base", "bia:rescuer", "cab", "dock", "tablet")
		if err := tm.signIn("tablet", tm.addUser("base", "rui", "rescuer")); err != nil {
			t.Fatal(err)
		}
		tm.add("base", pair)
		begin := func() string {
			t.Helper()
			id := tm.begin("base", "pair", nil)
			pass(time.Second)
			tm.wantBoth(id, "base", "bia")
			return id
		}
		rejected, reached := begin(), begin()
		if _, err := tm.p["bia"].api.RejectTask(t.Context(), api.RejectRequest{ID: rejected, Task: "search"}); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		if x := tm.taskOf("base", rejected, "search"); x.Partner != "base" {
			t.Errorf("what bia rejected is at %s", x.Partner)
		}
		if _, err := tm.leaveNode("bia", false); err != nil {
			t.Fatal(err)
		}
		tm.p["bia"].gone()
		pass(time.Second)
		tm.wantBoth(reached, "base", "base")

		comes := func() {
			tm.p["bia"].start()
			for _, at := range []string{"base", "cab", "dock", "tablet"} {
				tm.connect("bia", at)
			}
			pass(time.Second)
		}
		comes()
		unreached := begin()
		tm.disconnect("base", "bia")
		pass(time.Second)
		if _, err := tm.leaveNode("bia", false); err != nil {
			t.Fatal(err)
		}
		tm.p["bia"].gone()
		pass(time.Second)
		tm.wantBoth(unreached, "tablet", "tablet")

		comes()
		crashed := begin()
		tm.p["bia"].crash()
		pass(3 * time.Hour)
		for _, task := range []workflow.TaskName{"search", "dig"} {
			if _, err := tm.p["base"].api.OrderTask(t.Context(),
				api.TaskOrder{User: "base", ID: crashed, Task: task, Order: api.TaskAgain}); err != nil {
				t.Fatal(err)
			}
		}
		pass(time.Second)
		tm.wantBoth(crashed, "base", "base")
	})
}

// wantBoth checks at whom the two tasks of a pair are, as a node sees it.
func (tm *team) wantBoth(id, at, want string) {
	tm.t.Helper()
	for _, x := range tm.show(at, id).Tasks {
		if x.Partner != want {
			tm.t.Errorf("%s is at %s, want %s:\n%s", x.Name, x.Partner, want, lines(tm.log(at, id)))
		}
	}
}
