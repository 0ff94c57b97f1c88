package node_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// A task of a partner who was not heard of is presumed to have failed. Its holder, who goes on with it, shows it as
// it is, and who presumed what.
func TestWhatGoesOnIsShownSoByItsHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base", "boat")
		tm.add("base", `
workflow: rescue
tasks:
  search: {}
  report: {after: search}
partitions:
  sea:  {tasks: [search], partner: boat}
  land: {tasks: [report], partner: base}
`)
		tm.p["boat"].hand.hold("search")
		id := tm.begin("base", "rescue", nil)
		pass(time.Second)
		tm.disconnect("base", "boat")
		pass(time.Hour)
		search := func(at string) api.Task {
			t.Helper()
			for _, x := range tm.show(at, id).Tasks {
				if x.Name == "search" {
					return x
				}
			}
			t.Fatalf("no search at %s", at)
			return api.Task{}
		}
		if x := search("base"); x.State != workflow.Failed || x.PresumedBy != "" {
			t.Fatalf("at base search is %s, presumed by %q", x.State, x.PresumedBy)
		}
		tm.connect("base", "boat")
		pass(time.Minute)
		x := search("boat")
		if x.State != workflow.Running || x.Ended != nil || x.PresumedBy != "base" ||
			!strings.HasPrefix(x.Reason, "it goes on here, and base presumed that it failed: ") {
			t.Errorf("at boat search is %s until %v, presumed by %q: %s", x.State, x.Ended, x.PresumedBy, x.Reason)
		}
		for _, a := range tm.show("boat", id).Asks {
			if a.Task == "search" {
				t.Errorf("at boat, which works on at search, it waits for an order as if it had failed: %+v", a)
			}
		}
		list, err := tm.p["boat"].api.Instances(t.Context(), true)
		if err != nil || len(list) != 1 {
			t.Fatalf("instances at boat: %v, %v", list, err)
		}
		for _, n := range list[0].Needs {
			if slices.Contains(n.Tasks, "search") && n.Kind != api.NeedGoesOn {
				t.Errorf("at boat %s of %v needs a person, and boat works on at search", n.Kind, n.Tasks)
			}
		}
		if err := underWay(t, tm, "boat", true); err != nil {
			t.Error(err)
		}
		tm.p["boat"].hand.letGo(t, "search")
		pass(time.Minute)
		for _, at := range []string{"base", "boat"} {
			if x := search(at); x.State != workflow.Succeeded || x.PresumedBy != "" {
				t.Errorf("at %s search is %s, presumed by %q", at, x.State, x.PresumedBy)
			}
			if err := underWay(t, tm, at, false); err != nil {
				t.Error(err)
			}
		}
	})
}

// A partner that hears nobody presumes that a holder failed whom all others hear. When it is back the instance has
// failed as it presumed; that is said to be no end while the holder can be heard, for whoever waits for the end, and so
// it is of an instance that does a task of another. With the holder's success nothing has failed; when it is gone for
// the others as well, it is the end, and of that task, too, where something follows from its failure.
func TestWhatIsPresumedOfAHolderThatIsHeardIsNoEnd(t *testing.T) {
	for _, lost := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			tm := newTeam(t, "base", "boat", "far")
			const sea = `
workflow: sea
data: {seen: {type: string}}
tasks:
  search: {}
  listen: {}
partitions:
  sea:  {tasks: [search], partner: boat}
  air:  {tasks: [listen], partner: far}
`
			tm.add("base", sea)
			tm.add("base", strings.NewReplacer("workflow: sea", "workflow: depth", "search", "dive").Replace(sea))
			tm.add("base", "workflow: whole\ntasks:\n  all: {type: workflow, uses: {workflow: depth}, on-failure: release}\n")
			tm.p["boat"].hand.hold("search")
			tm.p["boat"].hand.hold("dive")
			id, whole := tm.begin("base", "sea", nil), tm.begin("base", "whole", map[string]string{"main": "base"})
			pass(time.Second)
			tm.disconnect("far", "base")
			tm.disconnect("far", "boat")
			pass(time.Hour)
			tm.connect("far", "base")
			tm.connect("far", "boat")
			pass(time.Minute)
			is := func(want workflow.InstanceState, goesOn bool) {
				t.Helper()
				for _, at := range []string{"base", "boat"} {
					if lost && at == "boat" {
						continue
					}
					if in := tm.show(at, id); in.State != want || in.MayGoOn() != goesOn {
						t.Errorf("at %s it is %s, and may go on: %t; want %s, %t: %+v", at, in.State, in.MayGoOn(), want, goesOn,
							in.Asks)
					}
				}
			}
			is(workflow.InstanceFailed, true)
			if x := tm.show("base", whole); x.State != workflow.InstanceRunning {
				t.Errorf("what it is part of is %s: %s", x.State, x.Tasks[0].Reason)
			}
			if lost {
				tm.disconnect("boat", "base")
				tm.disconnect("boat", "far")
				pass(time.Hour)
				is(workflow.InstanceFailed, false)
				if x := tm.show("base", whole); x.Tasks[0].State != workflow.Failed {
					t.Errorf("all of it is %s", x.Tasks[0].State)
				}
				return
			}
			tm.p["boat"].hand.letGo(t, "search")
			tm.p["boat"].hand.letGo(t, "dive")
			pass(time.Minute)
			is(workflow.InstanceSucceeded, false)
			if x := tm.show("base", whole); x.State != workflow.InstanceSucceeded {
				t.Errorf("what it is part of is %s: %s", x.State, x.Tasks[0].Reason)
			}
		})
	}
}

// An item whose holder is presumed to have failed by a node that heard nobody for a while goes on: whoever has it reads
// the files of its task, also from others than its holder, its deadline is shown, and it passes to who answers for the
// instance as that is near, of which both are told.
func TestAnItemGoesOnThatIsPresumedToHaveFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := aWard(t, "boat:nurse", "far")
		tm.add("base", `
workflow: sea
data: {plan: {type: file, required: true}}
tasks:
  search: {type: manual, role: nurse, in: [plan], deadline: 6h, transfer: 2h}
  listen: {}
partitions:
  sea: {tasks: [search], partner: boat}
  air: {tasks: [listen], partner: far}
`)
		f, err := tm.p["base"].api.PutFile(t.Context(), "plan.txt", strings.NewReader("to the north"))
		if err != nil {
			t.Fatal(err)
		}
		st, err := tm.p["base"].api.Start(t.Context(),
			api.StartRequest{Workflow: "sea", Input: map[string]string{"plan": f.Value}, Responsible: "ana"})
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		tm.givesNoFiles("boat")
		tm.cut([]string{"far"}, []string{"base", "boat", "tablet"})
		pass(time.Hour)
		for _, other := range []string{"base", "boat", "tablet"} {
			tm.connect("far", other)
		}
		pass(time.Minute)
		if in := tm.show("base", st.ID); in.State != workflow.InstanceFailed || !in.MayGoOn() {
			t.Fatalf("it is %s, and may go on: %t: %+v", in.State, in.MayGoOn(), in.Asks)
		}
		item := tm.itemOf("tablet", "bia", "search")
		if item.Deadline == nil || item.Transfer == nil || item.Transfer.To != "ana" {
			t.Errorf("its deadline is %v, and it passes on %+v", item.Deadline, item.Transfer)
		}
		if err := tm.claim("tablet", "bia", api.ClaimSelect, item.ID); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		list, err := tm.p["boat"].api.Users(t.Context())
		if err != nil || !slices.ContainsFunc(list, func(u api.User) bool { return u.Name == "bia" && u.Selected == 1 }) {
			t.Errorf("bia has selected it, and the users are %+v, %v", list, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, r, err := tm.p["tablet"].api.ItemFile(ctx, api.ItemQuery{User: "bia", Item: item.ID}, "plan")
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(r); err != nil || string(b) != "to the north" {
			t.Errorf("the file is %q, %v", b, err)
		}
		_ = r.Close()
		pass(3 * time.Hour)
		told := func(at, user, want string) {
			t.Helper()
			if got := tm.messages(at, user); !slices.ContainsFunc(got, func(m string) bool { return strings.Contains(m, want) }) {
				t.Errorf("%s is told\n%s\nwant %s", user, strings.Join(got, "\n"), want)
			}
		}
		told("base", "ana", "search has passed to you, as it is due in 2h")
		told("tablet", "bia", "search is no longer yours, as it passed to the responsible user, with its deadline near")
		if mine := tm.itemOf("base", "ana", "search"); mine.State != api.ItemSelected || mine.Deadline == nil {
			t.Errorf("ana has it %s, due %v", mine.State, mine.Deadline)
		}
		if err := tm.hand("base", "ana", item.ID, nil); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		if in := tm.show("base", st.ID); in.State != workflow.InstanceSucceeded {
			t.Errorf("it is %s", in.State)
		}
	})
}

// An instance that has failed only as others presume can be cancelled, at the holder that goes on and elsewhere: then
// its item is on no list any more. One that has failed as its holder says cannot.
func TestWhatIsPresumedToHaveFailedIsCancelled(t *testing.T) {
	for _, at := range []string{"base", "boat"} {
		t.Run(at, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tm := newTeam(t, "base", "boat:nurse", "far")
				tm.add("base", "workflow: sea\nadministrators: nurse\ntasks: {search: {type: manual, role: nurse}}\n"+
					"partitions: {sea: {tasks: [search], partner: boat}}\n")
				id := tm.begin("base", "sea", nil)
				pass(time.Second)
				tm.cut([]string{"boat"}, []string{"base", "far"})
				pass(2 * time.Hour)
				tm.connect("boat", "base")
				tm.connect("boat", "far")
				pass(time.Minute)
				in := tm.show("base", id)
				if in.State != workflow.InstanceFailed || len(in.Asks) != 1 || !slices.Equal(in.Asks[0].Orders, []string{api.TaskCancel}) {
					t.Fatalf("it is %s, and can be ordered %+v", in.State, in.Asks)
				}
				tm.wantItems("boat", "boat", "search READY")
				if !tm.show(at, id).Cancellable() {
					t.Error("it is not said that it can be cancelled")
				}
				if err := tm.order(at, at, id, api.TaskCancel, ""); err != nil {
					t.Fatal(err)
				}
				pass(time.Minute)
				tm.wantItems("boat", "boat")
				for _, x := range []string{"base", "boat"} {
					if s := tm.state(x, id); s != workflow.InstanceCancelled {
						t.Errorf("at %s it is %s", x, s)
					}
				}
				final := tm.begin("base", "sea", nil)
				pass(time.Second)
				if err := tm.p["boat"].api.FinishTask(t.Context(),
					api.FinishRequest{ID: final, Task: "search", Failed: true, Reason: "fog"}); err != nil {
					t.Fatal(err)
				}
				pass(time.Second)
				if tm.order(at, at, final, api.TaskContinue, "search"); tm.show(at, final).Cancellable() {
					t.Error("it is said that what has failed for good can be cancelled")
				}
				wantCode(t, tm.order(at, at, final, api.TaskCancel, ""), api.Refused, "the instance is failed already")
			})
		})
	}
}

// underWay reports whether a node lists the instance among those in which something is to happen, with the task
// that goes on there, and only where it is to.
func underWay(t *testing.T, tm *team, at string, want bool) error {
	t.Helper()
	list, err := tm.p[at].api.Instances(t.Context(), false)
	if err != nil {
		return err
	}
	if !want {
		if len(list) > 0 {
			return fmt.Errorf("at %s something is to happen in %+v", at, list)
		}
		return nil
	}
	if len(list) != 1 || !slices.Equal(list[0].At, []string{at}) {
		return fmt.Errorf("at %s, where search goes on, under way is %+v", at, list)
	}
	goesOn := func(n api.Need) bool {
		return n.Kind == api.NeedGoesOn && n.Number == 1 && slices.Equal(n.Tasks, []workflow.TaskName{"search"})
	}
	if !slices.ContainsFunc(list[0].Needs, goesOn) {
		return fmt.Errorf("at %s search goes on, and of the instance is said only %+v", at, list[0].Needs)
	}
	return nil
}

// What has failed only as others presume is listed with what is under way, and nobody is asked for an order about it; that
// somebody may order something is said while its holder is gone, and no more when that is back.
func TestWhatMayGoOnIsListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base", "boat", "far")
		tm.add("base", `
workflow: sea
tasks:
  search: {}
  listen: {}
partitions:
  sea: {tasks: [search], partner: boat}
  air: {tasks: [listen], partner: far}
`)
		tm.p["boat"].hand.hold("search")
		id := tm.begin("base", "sea", nil)
		pass(time.Second)
		cut := func(p string, from ...string) {
			for _, x := range from {
				tm.disconnect(p, x)
			}
			pass(time.Hour)
		}
		heal := func(p string, with ...string) {
			for _, x := range with {
				tm.connect(p, x)
			}
			pass(time.Minute)
		}
		listed := func(at string, waits bool) {
			t.Helper()
			list, err := tm.p[at].api.Instances(t.Context(), false)
			if err != nil {
				t.Fatal(err)
			}
			if len(list) != 1 || list[0].ID != id || list[0].State != workflow.InstanceFailed || len(list[0].Needs) != 1 ||
				list[0].Needs[0].Waits() != waits {
				t.Errorf("at %s the list has %+v, want that it waits for an order: %t", at, list, waits)
			}
		}
		cut("far", "base", "boat")
		heal("far", "base", "boat")
		listed("base", false)
		listed("far", false)
		cut("boat", "base", "far")
		listed("base", true)
		tm.p["base"].crash()
		tm.p["base"].start()
		tm.connect("base", "far")
		pass(time.Hour)
		listed("base", true)
		heal("boat", "base", "far")
		listed("base", false)
		listed("far", false)
		tm.p["boat"].hand.letGo(t, "search")
		pass(time.Minute)
		if in := tm.show("base", id); in.State != workflow.InstanceSucceeded {
			t.Errorf("in the end it is %s", in.State)
		}
	})
}

// What others presume to have failed, and goes on here, is told so to whoever answers for it, who may still say to whom
// it is offered.
func TestWhatGoesOnIsToldSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base", "boat")
		tm.add("boat", `
workflow: rescue
tasks:
  search: {type: manual}
  report: {after: search}
partitions:
  sea:  {tasks: [search], partner: boat}
  land: {tasks: [report], partner: base}
`)
		id := tm.begin("boat", "rescue", nil)
		pass(time.Second)
		tm.disconnect("base", "boat")
		pass(time.Hour)
		tm.connect("base", "boat")
		pass(time.Minute)
		tm.wantMessages("boat", "boat", "*rescue started: it has started",
			"*rescue failed: others presume that report has failed, and its holder has not said so: expired",
			"*rescue failed: others presume that search has failed, and it goes on here: expired",
			"*rescue ended: it has ended as others presume (failed), and goes on here")
		if _, err := tm.p["boat"].api.ChangeNotify(t.Context(), api.NotifyRequest{ID: id, Policy: "fewest-assigned 1"}); err != nil {
			t.Errorf("to whom it is offered: %v", err)
		}
		item := tm.items("boat", "boat")[0].ID
		if err := cmp.Or(tm.claim("boat", "boat", api.ClaimSelect, item), tm.hand("boat", "boat", item, nil)); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		tm.wantMessages("boat", "boat", "*rescue started: it has started", "*rescue ended: it has ended: succeeded")
		wantCode(t, func() error {
			_, err := tm.p["boat"].api.ChangeNotify(t.Context(), api.NotifyRequest{ID: id, Policy: "all"})
			return err
		}(), api.Refused, "the instance is succeeded already")
	})
}

// A failure that is only presumed is told so to whoever answers for the instance elsewhere than at its holder. It is told
// once more when it becomes certain, as the holder says so or is gone for good, also after a restart, and no more when the
// holder has done it.
func TestWhatIsOnlyPresumedIsToldSo(t *testing.T) {
	for _, end := range []string{"done", "failed", "evicted"} {
		t.Run(end, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tm := newTeam(t, "base", "boat", "far")
				tm.add("base", "workflow: rescue\ntasks: {search: {}}\npartitions: {sea: {tasks: [search], partner: boat}}\n")
				tm.p["boat"].hand.hold("search")
				tm.begin("base", "rescue", nil)
				pass(time.Second)
				tm.cut([]string{"boat"}, []string{"base", "far"})
				pass(2 * time.Hour)
				const begun = "rescue started: it has started"
				tm.wantMessages("base", "base", "*"+begun,
					"*rescue failed: others presume that search has failed, and its holder has not said so: expired",
					"*rescue ended: it has ended as others presume (failed), and may go on")
				tm.readAll("base", "base")
				if end == "evicted" {
					tm.expel("base", "boat")
					pass(time.Minute)
					want := []string{begun, "*rescue failed: search has failed: expired", "*rescue ended: it has ended: failed"}
					tm.wantMessages("base", "base", want...)
					tm.p["base"].crash()
					tm.p["base"].start()
					pass(time.Minute)
					tm.wantMessages("base", "base", want...)
					return
				}
				tm.connect("boat", "base")
				tm.connect("boat", "far")
				pass(time.Minute)
				tm.wantMessages("base", "base", begun,
					"rescue failed: others presume that search has failed, and its holder has not said so: expired",
					"rescue ended: it has ended as others presume (failed), and may go on")
				if end == "done" {
					tm.p["boat"].hand.letGo(t, "search")
					pass(time.Minute)
					tm.wantMessages("base", "base", begun, "*rescue ended: it has ended: succeeded")
					return
				}
				tm.p["boat"].hand.fail(t, "search")
				pass(time.Minute)
				tm.wantMessages("base", "base", begun,
					"*rescue failed: search has failed: expired; its holder gave it up: told to fail",
					"*rescue ended: it has ended: failed")
			})
		})
	}
}
