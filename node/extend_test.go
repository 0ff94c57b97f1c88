package node_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// passedOn has items that pass to the responsible user as their deadlines are near: each in its own way.
const passedOn = `
workflow: late
data:
  sails: {type: time}
warnings: [1h]
transfer: 30m
tasks:
  span:  {type: manual, role: nurse, deadline: 3h, offline: true}
  own:   {type: manual, role: nurse, deadline: 3h, transfer: 2h}
  data:  {type: manual, role: nurse, deadline: sails}
  here:  {type: manual, deadline: 5h}
  plain: {type: manual, role: nurse}
  fix:   {type: manual, role: nurse, out: sails}
partitions: {main: {tasks: [span, own, data, here, plain, fix], partner: base}}
`

// lateFor has rui, who has no role, answer from the phone for an instance at base, in which bia at the
// tablet does what nurses do.
func lateFor(t *testing.T, r api.StartRequest) (tm *team, id string) {
	tm, rotaID := nurses(t)
	if err := tm.signIn("phone", tm.addUser("base", "rui")); err != nil {
		t.Fatal(err)
	}
	pass(time.Second)
	if err := tm.p["base"].api.Cancel(t.Context(), rotaID, "no need"); err != nil {
		t.Fatal(err)
	}
	tm.add("base", passedOn)
	r.Workflow, r.Responsible = "late", "rui"
	st, err := tm.p["base"].api.Start(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return tm, st.ID
}

// itemOf is the item of a task on a user's list.
func (tm *team) itemOf(at, user, task string) api.Item {
	tm.t.Helper()
	for _, x := range tm.items(at, user) {
		if x.Task == task {
			return x
		}
	}
	tm.t.Fatalf("%s at %s has no %s", user, at, task)
	return api.Item{}
}

func (tm *team) extend(at, user, id, task string, r api.ExtendRequest) error {
	tm.t.Helper()
	r.User, r.ID, r.Task = user, id, workflow.TaskName(task)
	_, err := tm.p[at].api.ExtendDeadline(tm.t.Context(), r)
	synctest.Wait()
	return err
}

// With so much time left as the definition says an item passes to the responsible user, whoever has it, also if
// its holder was down at that moment; that user does it without the role, from wherever it is. Work that was
// done meanwhile out of reach is kept.
func TestPassesOnAsItsDeadlineIsNear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id := lateFor(t, api.StartRequest{})
		tm.wantItems("phone", "rui")
		span, fix := tm.itemOf("tablet", "bia", "span").ID, tm.itemOf("tablet", "bia", "fix").ID
		if err := tm.claim("tablet", "bia", api.ClaimLock, span); err != nil {
			t.Fatal(err)
		}
		sails := time.Now().Add(100 * time.Minute).UTC().Format(time.RFC3339)
		if err := tm.claim("tablet", "bia", api.ClaimSelect, fix); err != nil {
			t.Fatal(err)
		}
		if err := tm.hand("tablet", "bia", fix, map[string]string{"sails": sails}); err != nil {
			t.Fatal(err)
		}
		pass(59 * time.Minute)
		tm.wantItems("phone", "rui")
		pass(2 * time.Minute)
		tm.wantItems("phone", "rui", "own SELECTED")
		pass(10 * time.Minute)
		tm.wantItems("phone", "rui", "data SELECTED", "own SELECTED") // 30 minutes before it sails
		tm.disconnect("base", "tablet")
		pass(time.Hour)
		if err := tm.hand("tablet", "bia", span, nil); err != nil { // it waits in the outbox
			t.Fatal(err)
		}
		tm.p["base"].crash()
		pass(30 * time.Minute)
		tm.p["base"].start()
		tm.connect("base", "phone")
		pass(time.Minute)
		tm.wantItems("phone", "rui", "data SELECTED", "own SELECTED", "span SELECTED")
		tm.connect("base", "tablet")
		pass(time.Minute)
		tm.wantOutbox("tablet", "bia|span|completed||it does not count, as it had passed to the responsible user, with its deadline near; it is kept there")
		tm.items("tablet", "bia")
		lost, err := tm.p["tablet"].api.WorklistLost(t.Context(), "bia")
		if err != nil || len(lost) != 1 || lost[0].Task != "span" ||
			!strings.Contains(lost[0].Why, "it had passed to the responsible user, with its deadline near") {
			t.Errorf("bia lost %+v (%v)", lost, err)
		}
		if in := tm.show("base", id); !slices.ContainsFunc(in.Incidents, func(x api.Incident) bool {
			return strings.Contains(x.What, "a result of bia is kept and does not count, as it had passed to the responsible user, with its deadline near")
		}) {
			t.Errorf("incidents: %+v", in.Incidents)
		}
		pass(2 * time.Hour) // what names no role passes to somebody who is not at its holder
		for _, task := range []string{"here", "own", "span"} {
			if err := tm.hand("phone", "rui", tm.itemOf("phone", "rui", task).ID, nil); err != nil {
				t.Errorf("%s: %v", task, err)
			}
			pass(time.Second)
			if got := tm.stateOf("base", id, workflow.TaskName(task)); got != "SUCCEEDED running" {
				t.Errorf("%s is %s", task, got)
			}
		}
		pass(24 * time.Hour)
		tm.wantItems("phone", "rui", "data SELECTED") // it has no lease
		said := strings.Join(tm.log("base", id), "\n")
		if !strings.Contains(said, "passed to rui, who answers for the instance, as its deadline is near") {
			t.Errorf("log:\n%s", said)
		}
	})
}

// That nobody has the role of a task is said at each node that takes part, with what to do, as long as nobody has its
// item; that nobody can do it, not once it has passed to who answers for the instance.
func TestWhatPassedOnIsForSomebody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base", "tablet")
		tm.add("base", `
workflow: rare
transfer: 1h
tasks:
  fly:  {type: manual, role: pilot, deadline: 3h}
  rest: {type: manual}
partitions: {air: {tasks: [fly], partner: tablet}, land: {tasks: [rest], partner: base}}
`)
		st, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "rare", WaitForRole: true})
		if err != nil {
			t.Fatal(err)
		}
		wants := func(nobody, waits bool) {
			t.Helper()
			for _, at := range []string{"base", "tablet"} {
				list, err := tm.p[at].api.Instances(t.Context(), true)
				if err != nil || len(list) != 1 {
					t.Fatalf("instances at %s: %v, %v", at, list, err)
				}
				said := slices.ContainsFunc(list[0].Needs, func(n api.Need) bool { return n.Kind == "nobody" })
				why := tm.taskOf(at, st.ID, "fly").Reason
				if said != nobody || strings.Contains(why, "nobody has role pilot (have somebody join with it: ") != waits {
					t.Errorf("at %s that nobody can do it is said: %t, %q; want %t, %t", at, said, why, nobody, waits)
				}
			}
		}
		pass(time.Minute)
		wants(true, true)
		pass(2 * time.Hour)
		wants(false, false)
		if err := tm.claim("base", "base", api.ClaimRelease, tm.itemOf("base", "base", "fly").ID); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		wants(false, true) // it can be taken once more
	})
}

// Whoever has an item is not told that it passes to the responsible user once that user was removed, as it stays.
func TestNobodyIsToldThatAnItemPassesToWhoIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, rotaID := nurses(t)
		if err := tm.p["base"].api.Cancel(t.Context(), rotaID, "no need"); err != nil {
			t.Fatal(err)
		}
		tm.add("base", strings.NewReplacer("workflow: plan", "workflow: plan\ntransfer: 1h", "[1h, 30m]", "[2h]").Replace(plan))
		if _, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "plan", Responsible: "ana"}); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		if err := tm.claim("tablet", "bia", api.ClaimLock, tm.itemOf("tablet", "bia", "look").ID); err != nil {
			t.Fatal(err)
		}
		if x := tm.itemOf("tablet", "bia", "look").Transfer; x == nil || x.To != "ana" {
			t.Fatalf("to bia the item passes on: %+v", x)
		}
		if _, err := tm.p["base"].api.RemoveUser(t.Context(), "ana"); err != nil {
			t.Fatal(err)
		}
		pass(2*time.Hour + time.Minute)
		if x := tm.itemOf("tablet", "bia", "look").Transfer; x != nil {
			t.Errorf("to bia the item passes on: %+v", x)
		}
		tm.wantMessages("tablet", "bia", "*plan deadline: look is due in 2h")
	})
}

// When an item will pass to the responsible user is shown beforehand, to whoever has it also out of reach, by the own
// clock; that user is told that it has passed, and later that its deadline is over.
func TestPeopleAreToldThatAnItemPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, rotaID := nurses(t) // bia at the tablet, ana at base
		if err := tm.p["base"].api.Cancel(t.Context(), rotaID, "no need"); err != nil {
			t.Fatal(err)
		}
		tm.add("base", strings.NewReplacer("workflow: plan", "workflow: plan\ntransfer: 1h", "[1h, 30m]", "[2h]").Replace(plan))
		st, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "plan", Responsible: "ana"})
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		item := tm.itemOf("tablet", "bia", "look").ID
		if err := tm.claim("tablet", "bia", api.ClaimLock, item); err != nil {
			t.Fatal(err)
		}
		tm.disconnect("base", "tablet")
		pass(61 * time.Minute)
		x := tm.itemOf("tablet", "bia", "look").Transfer
		if x == nil || x.To != "ana" || x.Left != "58m59s" || !x.At.Equal(time.Now().Add(58*time.Minute+59*time.Second)) {
			t.Errorf("to bia the item passes on: %+v", x)
		}
		if due := tm.taskOf("base", st.ID, "look").Due; len(due) != 2 || due[0].Kind != "transfer" ||
			due[0].Left != "58m59s" || due[1].Kind != "deadline" {
			t.Errorf("base shows %+v", due)
		}
		const began = "*plan started: it has started"
		tm.wantMessages("tablet", "bia", "*plan deadline: look is due in 2h, and passes to the responsible user with 1h left")
		tm.wantMessages("base", "ana", began, "*plan deadline: look is due in 2h, and passes to you with 1h left")
		tm.readAll("tablet", "bia")
		tm.p["tablet"].crash()
		pass(time.Hour)
		tm.p["tablet"].start()
		tm.wantMessages("tablet", "bia", "plan deadline: look is due in 2h, and passes to the responsible user with 1h left",
			"*plan deadline: look passes to the responsible user, as it is due in 1h: what you make of it from now on is kept, "+
				"and does not count by itself")
		if x := tm.itemOf("tablet", "bia", "look").Transfer; x == nil || x.Left != "0s" {
			t.Errorf("it should have passed on as far as the tablet can tell: %+v", x)
		}
		passed := "*plan deadline: look has passed to you, as it is due in 1h"
		tm.wantMessages("base", "ana", began, "*plan deadline: look is due in 2h", passed)
		if x := tm.itemOf("base", "ana", "look"); x.Transfer != nil || x.State != api.ItemSelected {
			t.Errorf("ana has %s, which passes on: %+v", x.State, x.Transfer)
		}
		tm.connect("base", "tablet")
		pass(time.Minute)
		const lost = "plan lost: look is no longer yours, as it passed to the responsible user, with its deadline near"
		tm.wantMessages("tablet", "bia", "*"+lost)
		tm.readAll("tablet", "bia")
		pass(time.Hour)
		tm.wantItems("tablet", "bia")
		tm.wantMessages("tablet", "bia", lost)
		tm.wantMessages("base", "ana", began, "*plan deadline: look is due in 2h", passed,
			"*plan deadline: the deadline of look is over: let it go on, or stop it")
	})
}

// The user who decides gives a task a later deadline, once however often it is said, and by it people are warned and
// the item passes on; others may not, and an earlier one is refused.
func TestADeadlineIsExtended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id := lateFor(t, api.StartRequest{Warnings: "2h", Transfer: "10m"})
		pass(time.Hour)
		wantCode(t, tm.extend("tablet", "bia", id, "span", api.ExtendRequest{To: "2000-01-02"}), api.NotAllowed,
			"rui answers for the instance: that is decided by rui alone, as its definition names no administrators")
		wantCode(t, tm.extend("phone", "rui", id, "span", api.ExtendRequest{By: "1h"}), api.Refused, "takes no part")
		for _, bad := range []api.ExtendRequest{
			{}, {By: "1h", To: "2000-01-02"}, {By: "soon"}, {To: "soon"}, {By: "0s"}, {By: "2000000h"},
		} {
			if err := tm.extend("base", "ana", id, "span", bad); err == nil {
				t.Errorf("%+v is taken", bad)
			}
		}
		wantCode(t, tm.extend("phone", "rui", id, "span", api.ExtendRequest{To: "2000-01-01T02:00:00Z"}), api.Refused,
			"not later than the deadline")
		wantCode(t, tm.extend("phone", "rui", id, "plain", api.ExtendRequest{To: "2000-01-02"}), api.Refused,
			"no deadline in its definition")
		for range 2 {
			if err := tm.extend("phone", "rui", id, "span", api.ExtendRequest{To: "2000-01-01T06:00:00Z"}); err != nil {
				t.Fatal(err)
			}
		}
		at := time.Date(2000, 1, 1, 6, 0, 0, 0, time.UTC)
		tm.wantLeft("tablet", "bia", "span", time.Until(at).Round(time.Minute))
		tm.p["base"].crash()
		tm.p["base"].start()
		tm.connect("base", "tablet")
		tm.connect("base", "phone")
		pass(time.Second)
		tm.wantLeft("tablet", "bia", "span", time.Until(at).Round(time.Minute))
		if due := tm.taskOf("base", id, "span").Due; len(due) != 2 || !due[0].At.Equal(at.Add(-10*time.Minute)) || !due[1].At.Equal(at) {
			t.Errorf("shown: %+v", due)
		}
		pass(2 * time.Hour)
		tm.wantItems("phone", "rui", "own SELECTED") // by the start's ten minutes, not its own two hours
		pass(time.Until(at) - 5*time.Minute)
		if !slices.ContainsFunc(tm.items("phone", "rui"),
			func(x api.Item) bool { return x.Task == "span" && x.State == api.ItemSelected }) {
			t.Error("span did not pass on by its new deadline")
		}
		if err := tm.extend("phone", "rui", id, "span", api.ExtendRequest{To: "2000-01-01T09:00:00Z"}); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		item := tm.itemOf("phone", "rui", "span")
		if item.State != api.ItemSelected {
			t.Errorf("who has it keeps it: %+v", item)
		}
		if err := tm.claim("phone", "rui", api.ClaimRelease, item.ID); err != nil { // and may give it to the others
			t.Fatal(err)
		}
		if got := tm.itemOf("tablet", "bia", "span").State; got != api.ItemReady {
			t.Errorf("span is %s for bia", got)
		}
		pass(3*time.Hour - 5*time.Minute)
		if got := tm.itemOf("phone", "rui", "span").State; got != api.ItemSelected {
			t.Errorf("span is %s for rui, by the second extension", got)
		}
		said := strings.Join(tm.log("base", id), "\n")
		if n := strings.Count(said, "rui extends its deadline to 2000-01-01T06:00:00Z"); n != 1 {
			t.Errorf("it is said %d times:\n%s", n, said)
		}
	})
}

// A user who has locked an item and is in touch is told of it by its new deadline, though only messages are read there.
func TestALockedItemIsExtended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, rotaID := nurses(t)
		if err := tm.p["base"].api.Cancel(t.Context(), rotaID, "no need"); err != nil {
			t.Fatal(err)
		}
		tm.add("base", strings.Replace(plan, "workflow: plan", "workflow: plan\ntransfer: 20m", 1))
		st, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "plan", Responsible: "ana"})
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		if err := tm.claim("tablet", "bia", api.ClaimLock, tm.itemOf("tablet", "bia", "look").ID); err != nil {
			t.Fatal(err)
		}
		if err := tm.extend("base", "ana", st.ID, "look", api.ExtendRequest{By: "10h"}); err != nil {
			t.Fatal(err)
		}
		pass(170 * time.Minute)
		tm.wantMessages("tablet", "bia")
	})
}

// due has tasks of which an amendment changes the deadlines.
const due = `
workflow: due
tasks:
  a: {type: manual, deadline: 10h}
  b: {type: manual}
  c: {type: manual, deadline: 9h}
partitions: {main: {tasks: [a, b, c], partner: base}}
`

// Whoever decides amends deadlines, and what follows from them, in place of what the start said. A new one counts from when
// the task could be done, also if the node was down since; it is in place of one that was extended before.
func TestADeadlineIsAmended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base", "two")
		tm.add("base", due)
		st, err := tm.p["base"].api.Start(t.Context(),
			api.StartRequest{Workflow: "due", Warnings: "2h", Transfer: "1h"})
		if err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Hour)
		if err := tm.extend("base", "base", st.ID, "a", api.ExtendRequest{By: "10h"}); err != nil {
			t.Fatal(err)
		}
		tm.p["base"].crash()
		tm.p["base"].start()
		tm.connect("base", "two")
		pass(time.Hour)
		changed := strings.NewReplacer("deadline: 10h", "deadline: 8h, transfer: 4h, warnings: [6h]", "b: {type: manual}",
			"b: {type: manual, deadline: 7h}", ", deadline: 9h", "").Replace(due)
		done, err := tm.p["base"].api.AmendInstance(t.Context(),
			api.AmendRequest{User: "base", ID: st.ID, File: "due.yaml", Source: changed})
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		if said := tm.show("base", st.ID).Amended; len(said) != 1 || !slices.Contains(said[0].Lines, "task b, deadline: 7h") {
			t.Errorf("%+v of %+v", said, done)
		}
		tm.wantLeft("base", "base", "a", 5*time.Hour)
		tm.wantLeft("base", "base", "b", 4*time.Hour)
		if x := tm.itemOf("base", "base", "c"); x.Deadline != nil {
			t.Errorf("c is due at %s", x.Deadline)
		}
		warned := strings.Join(tm.messages("base", "base"), "\n")
		if !strings.Contains(warned, "a is due in 6h") || strings.Contains(warned, "b is due") {
			t.Errorf("warnings of before and of now: %s", warned)
		}
		pass(58 * time.Minute)
		tm.wantItems("base", "base", "a READY", "b READY", "c READY")
		pass(5 * time.Minute) // four hours before a is due, and three before b is
		tm.wantItems("base", "base", "a SELECTED", "b READY", "c READY")
		pass(2*time.Hour - 5*time.Minute)
		tm.wantItems("base", "base", "a SELECTED", "b READY", "c READY")
		pass(5 * time.Minute)
		tm.wantItems("base", "base", "a SELECTED", "b SELECTED", "c READY")
		pass(20 * time.Hour)
		tm.wantItems("base", "base", "a SELECTED", "b SELECTED", "c READY")
	})
}

// What a start says of deadlines is read before anything begins.
func TestDatesOfAStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base")
		tm.add("base", "workflow: bare\ntasks: {a: {deadline: 3h}, b: {type: manual}}\n")
		tm.add("base", "workflow: some\ntasks: {a: {type: manual, deadline: 3h}}\n")
		tm.add("base", "workflow: none\ntasks: {a: {type: manual}}\n")
		for _, c := range []struct{ workflow, warnings, transfer, says string }{
			{"none", "1h", "", "no task of none has a deadline to warn of"},
			{"bare", "", "1h", "no task of bare is done by a person and has a deadline"},
			{"some", "1h,soon", "", "--warnings 1h,soon"},
			{"some", "1h,60m", "", "60m is there twice"},
			{"some", "0s", "", "want more than 0"},
			{"some", "", "1h,2h", "want one duration"},
		} {
			_, err := tm.p["base"].api.Start(t.Context(),
				api.StartRequest{Workflow: c.workflow, Warnings: c.warnings, Transfer: c.transfer})
			wantCode(t, err, api.Invalid, c.says)
		}
		st, err := tm.p["base"].api.Start(t.Context(),
			api.StartRequest{Workflow: "some", Warnings: "1h,2h", Transfer: "3h"})
		if err != nil || !slices.ContainsFunc(st.Notes,
			func(n string) bool { return strings.Contains(n, "as soon as it can be done") }) {
			t.Fatalf("%+v, %v", st, err)
		}
		pass(time.Second)
		tm.wantItems("base", "base", "a SELECTED")
	})
}
