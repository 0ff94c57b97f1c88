package node_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// answers starts a workflow at base, and says who answers for the instance, as base and another
// node show it.
func (tm *team) answers(r api.StartRequest) (who string, notes []string) {
	tm.t.Helper()
	st, err := tm.p["base"].api.Start(tm.t.Context(), r)
	if err != nil {
		tm.t.Fatal(err)
	}
	synctest.Wait()
	return string(tm.show("base", st.ID).Responsible), st.Notes
}

// Who answers for an instance is whom the start names, else the definition, else who starts it.
func TestWhoAnswersForAnInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _ := nurses(t) // bia at the tablet, ana at base
		tm.add("base", strings.Replace(rota, "workflow: rota", "workflow: led\nresponsible: bia", 1))
		for _, x := range []struct {
			in   api.StartRequest
			want string
		}{
			{api.StartRequest{Workflow: "rota"}, "ana"}, // the one user who is signed in
			{api.StartRequest{Workflow: "rota", User: "base"}, "base"},
			{api.StartRequest{Workflow: "rota", Responsible: "tablet"}, "tablet"},
			{api.StartRequest{Workflow: "rota", Responsible: "bia", User: "base"}, "bia"},
			{api.StartRequest{Workflow: "led"}, "bia"},
			{api.StartRequest{Workflow: "led", Responsible: "ana"}, "ana"},
		} {
			if who, notes := tm.answers(x.in); who != x.want ||
				slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, "responsible") }) {
				t.Errorf("%+v: %s answers, want %s; notes %q", x.in, who, x.want, notes)
			}
		}
		tm.add("base", strings.Replace(rota, "workflow: rota", "workflow: far\nresponsible: nix", 1))
		who, notes := tm.answers(api.StartRequest{Workflow: "far"})
		if text := strings.Join(notes, "; "); who != "ana" ||
			!strings.Contains(text, "ana decides about the instance in place of nix") {
			t.Errorf("%s answers; notes %q", who, notes)
		}
		_, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "rota", Responsible: "nix"})
		wantCode(t, err, api.NotFound, `no such user: "nix"`)
		_, err = tm.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "rota", User: "bia"})
		wantCode(t, err, api.Refused, "is not signed in at this node")

		// Where several users are signed in, the partner starts what nobody is named for.
		if err := tm.signIn("base", tm.addUser("base", "rui", "nurse")); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		if who, _ := tm.answers(api.StartRequest{Workflow: "rota"}); who != "base" {
			t.Errorf("%s answers, want base", who)
		}
	})
}

// weighingFailed are the nurses, of whom bia took the task weigh and said that it failed, as there are no scales.
func weighingFailed(t *testing.T) (tm *team, id string) {
	tm, id = nurses(t)
	item := tm.items("tablet", "bia")[0].ID
	if err := tm.claim("tablet", "bia", api.ClaimSelect, item); err != nil {
		t.Fatal(err)
	}
	if _, err := tm.p["tablet"].api.FinishItem(t.Context(),
		api.ItemResult{User: "bia", Item: item, Failed: true, Reason: "no scales"}); err != nil {
		t.Fatal(err)
	}
	pass(time.Second)
	return tm, id
}

// What somebody said of a failure counted, also when the task is done once more as that was ordered: nothing is kept
// beside it, and nobody is told to have lost anything.
func TestAFailureCountedThoughItIsDoneOnceMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id := weighingFailed(t)
		if err := tm.order("base", "ana", id, api.TaskAgain, "weigh"); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		tm.wantItems("tablet", "bia", "weigh READY")
		if in := tm.show("base", id); len(in.Incidents) > 0 {
			t.Errorf("there are incidents: %+v", in.Incidents)
		}
		if lost, err := tm.p["tablet"].api.WorklistLost(t.Context(), "bia"); err != nil || len(lost) > 0 {
			t.Errorf("bia is told to have lost %+v, %v", lost, err)
		}
	})
}

// An instance that waits for an order, and is not in memory any more, is listed by what it is about and by what its
// workflow is called, also at a node that takes no part, in messages, and after a restart.
func TestWhatWaitsForAnOrderKeepsItsSubject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _ := nurses(t)
		tm.add("base", strings.NewReplacer("workflow: ward", "workflow: ward\nlabel: Our ward\nadministrators: nurse").Replace(ward))
		st, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{
			Workflow: "ward", Responsible: "bia", Input: map[string]string{"patient": "Rua 3", "bed": "7"},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := tm.p["base"].api.FinishTask(t.Context(), api.FinishRequest{
			ID: st.ID, Task: "weigh", Failed: true, Reason: "no scales",
		}); err != nil {
			t.Fatal(err)
		}
		said := func(when string) {
			t.Helper()
			pass(10 * time.Minute)
			for _, at := range []string{"base", "tablet"} {
				list, err := tm.p[at].api.Instances(t.Context(), false)
				if err != nil {
					t.Fatal(err)
				}
				i := slices.IndexFunc(list, func(x api.InstanceSummary) bool { return x.ID == st.ID })
				if i < 0 || list[i].Subject != "Rua 3, bed 7" || list[i].Label != "Our ward" {
					t.Errorf("%s, at %s: %+v", when, at, list)
				}
			}
			list, err := tm.p["tablet"].api.Messages(t.Context(), api.MessagesQuery{User: "bia"})
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(list, func(m api.Message) bool { return m.Instance == st.ID && m.Asks })
			if i < 0 || list[i].Subject != "Rua 3, bed 7" || list[i].WorkflowLabel != "Our ward" {
				t.Errorf("%s the messages are %+v", when, list)
			}
		}
		said("once it waits")
		tm.p["base"].crash()
		tm.p["base"].start()
		tm.connect("base", "tablet")
		said("after a restart")
	})
}

// order has a user at a node order something about a task.
func (tm *team) order(at, user, id, what string, task workflow.TaskName) error {
	tm.t.Helper()
	_, err := tm.p[at].api.OrderTask(tm.t.Context(),
		api.TaskOrder{User: user, ID: id, Task: task, Order: what, Reason: "so be it"})
	synctest.Wait()
	return err
}

// Of what was left out by order nobody is said to have performed it, and the reason of the failure is still said. Where
// nobody is named, and one user is signed in, it is asked for that user: a refusal says so, and how the partner is
// named.
func TestARefusalSaysForWhomItWasAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base:nurse", "crew")
		tm.add("base", "workflow: solo\ntasks: {weigh: {type: manual, role: nurse}}\n")
		if err := tm.signIn("base", tm.addUser("base", "cia", "nurse")); err != nil {
			t.Fatal(err)
		}
		st, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "solo", User: "base"})
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		for user, want := range map[string]string{
			"": "for cia, who is signed in here: base answers for the instance", "cia": "base answers for the instance",
		} {
			err := tm.order("base", user, st.ID, api.TaskStop, "weigh")
			wantCode(t, err, api.NotAllowed, want)
			var no *api.Error
			if errors.As(err, &no); strings.Contains(no.Hint, "for the partner: --user base") != (user == "") {
				t.Errorf("the hint for %q is %q", user, no.Hint)
			}
		}
	})
}

// Whoever decides once more that a failure stays as it is hears who did so before.
func TestWhatWasDecidedIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id := weighingFailed(t)
		if err := tm.order("base", "ana", id, api.TaskContinue, "weigh"); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		wantCode(t, tm.order("base", "ana", id, api.TaskContinue, "weigh"), api.Refused,
			"that was decided about weigh already, by ana at 20")
		if err := tm.order("base", "ana", id, api.TaskSkip, "weigh"); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		weigh := tm.taskOf("base", id, "weigh")
		if weigh.PerformedBy != "" || weigh.Reason != "left out by order: so be it; it had failed: no scales" {
			t.Errorf("it was performed by %q: %s", weigh.PerformedBy, weigh.Reason)
		}
		wantCode(t, tm.order("base", "ana", id, api.TaskAgain, "weigh"), api.Refused,
			"that was decided about weigh already, by ana at 20")
		id = tm.begin("base", "rota", nil)
		if err := tm.order("base", "ana", id, api.TaskStop, "weigh"); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		wantCode(t, tm.order("base", "ana", id, api.TaskContinue, "weigh"), api.Refused,
			"that was decided about weigh already, by ana at 20")
	})
}

// What others presume to have failed at a holder that is gone is listed as that; whoever has it done once more hears
// which tasks wait for it and are at one that is gone, too.
func TestWhatIsAtAHolderThatIsGoneIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base:nurse", "boat:nurse")
		tm.add("base", `
workflow: bridge
tasks:
  look:  {type: manual, role: nurse}
  tell:  {type: manual, role: nurse, after: look}
  write: {type: manual, role: nurse, after: tell}
  wait:  {type: manual, role: nurse}
partitions:
  far:  {tasks: [look, tell], partner: boat}
  near: {tasks: [write, wait], partner: base}
`)
		id := tm.begin("base", "bridge", nil)
		pass(time.Second)
		presumed := func() (out []string) {
			for _, x := range tm.items("base", "base") {
				if x.Instance == id && x.Task != "wait" {
					out = append(out, x.Task+" "+x.State+" "+x.Presumed)
				}
			}
			return out
		}
		if got := presumed(); !slices.Equal(got, []string{"look READY "}) {
			t.Errorf("base may take %q", got)
		}
		tm.p["boat"].crash()
		tm.disconnect("base", "boat")
		pass(3 * time.Hour)
		if got := presumed(); !slices.Equal(got, []string{"look READY expired"}) {
			t.Errorf("with boat gone base may take %q", got)
		}
		for _, what := range []string{api.TaskStop, api.TaskSkip, api.TaskAgain} {
			_, err := tm.p["base"].api.OrderTask(t.Context(),
				api.TaskOrder{User: "base", ID: id, Task: "tell", Order: what, Reason: "fog"})
			wantCode(t, err, api.Refused,
				"task tell is held by boat, and only its holder can carry that out: the partner has expired: it was not heard of since ")
			if no := (*api.Error)(nil); errors.As(err, &no) && !strings.HasPrefix(no.Hint, "it waits for what failed: look; ") {
				t.Errorf("what can be done about tell: %q", no.Hint)
			}
		}
		done, err := tm.p["base"].api.OrderTask(t.Context(),
			api.TaskOrder{User: "base", ID: id, Task: "look", Order: api.TaskAgain, To: "base"})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(done.GoneToo, []workflow.TaskName{"tell"}) {
			t.Errorf("what wants an order of its own is %q", done.GoneToo)
		}
	})
}

// Where several are signed in, nobody is named, and the partner does not answer for an instance, it is asked who
// cancels it.
func TestSomebodyIsNamedToCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base")
		tm.add("base", "workflow: round\ntasks: {look: {type: manual}}\n")
		for _, name := range []string{"ana", "bia"} {
			if err := tm.signIn("base", tm.addUser("base", name)); err != nil {
				t.Fatal(err)
			}
		}
		st, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "round", User: "ana"})
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		wantCode(t, tm.order("base", "", st.ID, api.TaskCancel, ""), api.Invalid, "say who with --user")
		wantCode(t, tm.order("base", "base", st.ID, api.TaskCancel, ""), api.NotAllowed, "ana answers for the instance")
		if err := tm.order("base", "ana", st.ID, api.TaskCancel, ""); err != nil {
			t.Error(err)
		}
	})
}

// stateOf is the state of a task, and of its instance, as a node shows it.
func (tm *team) stateOf(at, id string, task workflow.TaskName) string {
	tm.t.Helper()
	in := tm.show(at, id)
	i := slices.IndexFunc(in.Tasks, func(t api.Task) bool { return t.Name == task })
	return string(in.Tasks[i].State) + " " + string(in.State)
}

// An order that names the attempt it is about does nothing to another: not while that goes on, nor once it has failed as
// well, whichever node it comes from, and after a crash.
func TestAnOrderIsAboutTheAttemptThatItNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _ := nurses(t)
		st, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "rota", Responsible: "bia"})
		if err != nil {
			t.Fatal(err)
		}
		id := st.ID
		fail := func() string {
			t.Helper()
			err := tm.p["base"].api.FinishTask(t.Context(), api.FinishRequest{ID: id, Task: "weigh", Failed: true, Reason: "no scales"})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			asks := tm.show("base", id).Asks
			if len(asks) != 1 || asks[0].Item == "" {
				t.Fatalf("it asks %+v", asks)
			}
			return asks[0].Item
		}
		order := func(order, item string) error {
			_, err := tm.p["tablet"].api.OrderTask(t.Context(),
				api.TaskOrder{User: "bia", ID: id, Task: "weigh", Order: order, Item: item})
			return err
		}
		first := fail()
		if err := order(api.TaskAgain, first); err != nil {
			t.Fatal(err)
		}
		for _, o := range []string{api.TaskAgain, api.TaskStop, api.TaskContinue} {
			wantCode(t, order(o, first), api.Refused, "of task weigh there is another attempt by now")
		}
		if got := tm.stateOf("base", id, "weigh"); got != "READY running" {
			t.Errorf("weigh is %s", got)
		}
		second := fail()
		if first == second {
			t.Fatalf("both attempts are %s", first)
		}
		tm.p["base"].crash()
		tm.p["base"].start()
		tm.connect("base", "tablet")
		pass(time.Second)
		for _, o := range []string{api.TaskAgain, api.TaskStop, api.TaskContinue} {
			wantCode(t, order(o, first), api.Refused, "task weigh was done once more since, and has failed again")
		}
		if err := order(api.TaskAgain, second); err != nil {
			t.Error(err)
		}
	})
}

// Who answers for an instance decides about a failure, also from a node that takes no part; others are
// refused, and who has to be reached is named. What was ordered outlives a crash, and is done once.
func TestOrdersAboutAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _ := nurses(t) // bia at the tablet, ana at base
		tm.add("base", strings.Replace(rota, "workflow: rota", "workflow: led\nadministrators: chief", 1))
		if err := tm.signIn("phone", tm.addUser("base", "rui", "chief")); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		st, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "led", Responsible: "bia"})
		if err != nil {
			t.Fatal(err)
		}
		id := st.ID
		fail := func(task workflow.TaskName) {
			err := tm.p["base"].api.FinishTask(t.Context(),
				api.FinishRequest{ID: id, Task: task, Failed: true, Reason: "no scales"})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		fail("weigh")
		in := tm.show("base", id)
		if len(in.Asks) != 1 || in.Asks[0].Task != "weigh" ||
			!slices.Contains(in.Asks[0].Commands, "mutirao task again "+id+" weigh") || in.Responsible != "bia" {
			t.Errorf("%s answers; it asks %+v", in.Responsible, in.Asks)
		}
		anas, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "led", Responsible: "ana"})
		if err != nil {
			t.Fatal(err)
		}
		for of, want := range map[string]api.Deciding{
			id:      {User: "ana", May: false, Responsible: "bia", Administrators: "chief"},
			anas.ID: {User: "ana", May: true, MayCancel: true, Responsible: "ana", Administrators: "chief"},
		} {
			if d, err := tm.p["base"].api.Deciding(t.Context(), api.DecidingQuery{User: "ana", ID: of}); err != nil ||
				*d != want {
				t.Errorf("who decides is %+v, %v, want %+v", d, err, want)
			}
		}
		there := api.Deciding{User: "bia", May: true, MayCancel: true, Responsible: "bia", Administrators: "chief"}
		if d, err := tm.p["tablet"].api.Deciding(t.Context(), api.DecidingQuery{User: "bia", ID: id}); err != nil || *d != there {
			t.Errorf("at a node that takes no part whoever decides is %+v, %v", d, err)
		}
		_, err = tm.p["base"].api.ForeseeRecovery(t.Context(), "", id, api.RecoveryStep{Method: "offer"})
		wantCode(t, err, api.Refused, "is not driven by its data")
		wantCode(t, tm.order("base", "ana", id, api.TaskAgain, "weigh"), api.NotAllowed,
			"bia answers for the instance: that is decided by bia, or by who has the role chief")
		wantCode(t, tm.order("base", "base", id, api.TaskCancel, ""), api.NotAllowed, "bia answers for the instance")
		wantCode(t, tm.p["base"].api.Cancel(t.Context(), id, "why not"), api.NotAllowed,
			"bia answers for the instance")
		wantCode(t, tm.order("tablet", "tablet", id, api.TaskAgain, "weigh"), api.NotAllowed,
			"bia answers for the instance")
		wantCode(t, tm.order("tablet", "bia", id, api.TaskAgain, "feed"), api.Refused, "nothing is to be decided")
		wantCode(t, tm.order("tablet", "bia", id, api.TaskAgain, "dance"), api.NotFound, "dance")
		wantCode(t, tm.order("tablet", "bia", "ffff", api.TaskAgain, "weigh"), api.NotFound, "no instance")
		wantCode(t, tm.order("tablet", "bia", id, "dance", "weigh"), api.Invalid, "dance")

		tm.disconnect("base", "tablet")
		pass(time.Second)
		wantCode(t, tm.order("tablet", "bia", id, api.TaskAgain, "weigh"), api.Refused,
			"nobody can be asked now that is known to: base")
		tm.connect("base", "tablet")
		pass(time.Second)
		wantCode(t, tm.order("tablet", "bia", id[:8], api.TaskAgain, "weigh"), api.Refused,
			"not signed for what another completes")
		if err := tm.order("tablet", "bia", id, api.TaskAgain, "weigh"); err != nil {
			t.Fatal(err)
		}
		if got := tm.stateOf("base", id, "weigh"); got != "READY running" {
			t.Errorf("weigh is %s", got)
		}
		tm.p["base"].crash()
		tm.p["base"].start()
		tm.connect("base", "tablet")
		tm.connect("base", "phone")
		pass(time.Second)
		if in := tm.show("base", id); tm.stateOf("base", id, "weigh") != "READY running" || in.Tasks[0].Attempt != 2 ||
			len(in.Asks) != 0 {
			t.Errorf("after a crash weigh is %s, attempt %d; it asks %+v", in.Tasks[0].State, in.Tasks[0].Attempt,
				in.Asks)
		}
		wantCode(t, tm.order("tablet", "bia", id, api.TaskAgain, "weigh"), api.Refused, "that was decided about weigh already, by bia at 20")

		// An administrator stops it, and then leaves it so.
		if err := tm.order("phone", "rui", id, api.TaskStop, "weigh"); err != nil {
			t.Fatal(err)
		}
		if got := tm.stateOf("base", id, "weigh"); got != "FAILED blocked" {
			t.Errorf("weigh is %s", got)
		}
		if asks := tm.show("base", id).Asks; len(asks) != 1 || !asks[0].Left ||
			!slices.Equal(asks[0].Orders, []string{api.TaskAgain, api.TaskSkip, api.TaskCancel}) {
			t.Errorf("of what was stopped by order, and blocks another, it says %+v", asks)
		}
		if err := tm.order("phone", "rui", id, api.TaskCancel, ""); err != nil {
			t.Fatal(err)
		}
		if got := tm.stateOf("base", id, "feed"); got != "ABORTED cancelled" {
			t.Errorf("feed is %s", got)
		}
		log, err := tm.p["base"].api.Log(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, e := range log[1:] {
			if !e.Counted {
				t.Errorf("%s does not count", e.Text)
			}
			said = append(said, e.Text)
		}
		want := []string{
			"started", "weigh failed, so what waits for it is blocked: no scales", "bia orders: again: so be it",
			"done once more by base, by that order",
			"rui orders: stop: so be it", "stopped by that order",
			"weigh failed, so what waits for it is blocked: stopped by order: so be it",
			"rui orders: cancel: so be it", "instance cancelled: so be it",
		}
		if !slices.Equal(said, want) {
			t.Errorf("the log says %q", said)
		}
	})
}

// Where who answers for an instance was removed, each partner that takes part may cancel it.
func TestNobodyAnswersAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _ := nurses(t)
		st, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "rota", Responsible: "bia"})
		if err != nil {
			t.Fatal(err)
		}
		wantCode(t, tm.order("base", "base", st.ID, api.TaskCancel, ""), api.NotAllowed, "bia answers")
		if _, err := tm.p["base"].api.RemoveUser(t.Context(), "bia"); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		wantCode(t, tm.order("base", "ana", st.ID, api.TaskCancel, ""), api.NotAllowed, "who answered for the instance")
		if in := tm.show("base", st.ID); in.Responsible != "bia" || !in.ResponsibleGone || in.Administrators != "" {
			t.Errorf("%s answers, gone: %v", in.Responsible, in.ResponsibleGone)
		}
		if err := tm.order("base", "base", st.ID, api.TaskCancel, ""); err != nil {
			t.Error(err)
		}
	})
}

// Where two did a task, as one of them was gone and another was ordered to, whoever performed it is who brought the
// result that counts.
func TestWhoseResultCountsPerformedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base:nurse", "boat:nurse", "crew:nurse")
		tm.add("base", `
workflow: bridge
data: {seen: {type: string}}
tasks:
  look: {type: manual, role: nurse, out: [seen]}
  tell: {application: noop, after: look, in: [seen]}
partitions:
  far:  {tasks: [look], partner: boat}
  near: {tasks: [tell], partner: base}
`)
		id := tm.begin("base", "bridge", nil)
		pass(time.Second)
		for _, at := range []string{"base", "crew"} {
			tm.disconnect("boat", at)
		}
		pass(3 * time.Hour)
		does := func(at string) {
			t.Helper()
			item := tm.itemOf(at, at, "look").ID
			if err := tm.claim(at, at, api.ClaimSelect, item); err != nil {
				t.Fatal(err)
			}
			if err := tm.hand(at, at, item, map[string]string{"seen": "by " + at}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := tm.p["base"].api.OrderTask(t.Context(),
			api.TaskOrder{User: "base", ID: id, Task: "look", Order: api.TaskAgain, To: "crew"}); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		does("crew")
		pass(time.Second)
		for range 5 { // so that its word is the later one, as the facts know
			for _, what := range []string{api.ClaimSelect, api.ClaimRelease} {
				if err := tm.claim("boat", "boat", what, tm.itemOf("boat", "boat", "look").ID); err != nil {
					t.Fatal(err)
				}
			}
		}
		does("boat")
		for _, at := range []string{"base", "crew"} {
			tm.connect("boat", at)
		}
		pass(time.Minute)
		for _, at := range []string{"base", "boat", "crew"} {
			look := tm.taskOf(at, id, "look")
			if seen := tm.show(at, id).Data["seen"]; seen != "by "+look.PerformedBy || look.Partner != look.PerformedBy {
				t.Errorf("at %s it was done at %s by %q, and seen %s", at, look.Partner, look.PerformedBy, seen)
			}
		}
	})
}

// The partner that had a task is gone, and others presume that it failed. Whoever answers for it has it done once more by
// another, or left out, also from a node that takes no part; what it would do all the same counts, if it did it first.
func TestWhoHadATaskIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base", "boat", "crew", "home")
		tm.add("base", "workflow: bridge\nadministrators: chief\ntasks: {look: {type: manual}, tell: {type: manual, after: look}}\n"+
			"partitions: {far: {tasks: [look], partner: boat}, near: {tasks: [tell], partner: base}}\n")
		if err := tm.signIn("home", tm.addUser("base", "bia", "chief")); err != nil {
			t.Fatal(err)
		}
		again, skipped := tm.begin("base", "bridge", nil), tm.begin("base", "bridge", nil)
		pass(time.Second)
		order := func(at, user, id, what, to string) error {
			r := api.TaskOrder{User: user, ID: id, Task: "look", Order: what, To: to}
			if what == api.TaskSkip {
				r.Reason = "the water is too high"
			}
			_, err := tm.p[at].api.OrderTask(t.Context(), r)
			pass(time.Second)
			return err
		}
		if asks := tm.show("base", again).Asks; len(asks) > 0 {
			t.Errorf("something is asked though nothing failed: %+v", asks)
		}
		tm.p["boat"].crash()
		for _, at := range []string{"base", "crew", "home"} {
			tm.disconnect("boat", at)
		}
		pass(3 * time.Hour)
		if in := tm.show("base", again); in.State != workflow.InstanceBlocked || len(in.Asks) != 1 ||
			!slices.Equal(in.Asks[0].Orders, []string{api.TaskAgain, api.TaskSkip, api.TaskCancel}) {
			t.Fatalf("it is %s, and asks %+v", in.State, in.Asks)
		}
		wantCode(t, order("crew", "crew", again, api.TaskAgain, ""), api.NotAllowed, "")
		wantCode(t, order("home", "bia", again, api.TaskAgain, "boat"), api.Refused,
			"boat cannot take look: the partner has expired: it was not heard of since ")
		for _, what := range []string{api.TaskContinue, api.TaskStop} {
			wantCode(t, order("base", "base", again, what, ""), api.Refused,
				"task look is held by boat, and only its holder can carry that out: the partner has expired: it was not heard of since ")
		}
		if err := order("home", "bia", again, api.TaskAgain, "crew"); err != nil {
			t.Fatal(err)
		}
		if look := tm.taskOf("base", again, "look"); look.State != workflow.Ready || look.Partner != "crew" {
			t.Errorf("look is %s at %s", look.State, look.Partner)
		}
		if err := order("base", "base", skipped, api.TaskSkip, ""); err != nil {
			t.Fatal(err)
		}
		if s := tm.task("base", skipped, "tell"); s != workflow.Ready {
			t.Errorf("tell is %s though look was left out", s)
		}
		tm.finish("crew", again, "look")
		tm.p["boat"].start()
		tm.connect("base", "boat")
		pass(time.Minute)
		for _, id := range []string{again, skipped} {
			tm.finish("base", id, "tell")
			pass(time.Minute)
			for _, at := range []string{"base", "boat"} {
				if in := tm.show(at, id); in.State != workflow.InstanceSucceeded {
					t.Errorf("at %s it is %s", at, in.State)
				}
			}
		}
	})
}

// TestAnOrderThatCameToNothingIsTold is about a partner that was gone and had done what was ordered to be left out, or
// to be done once more by another: whoever answers for it is told so, and whoever ordered it, also once it has ended.
func TestAnOrderThatCameToNothingIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base", "boat", "crew")
		tm.add("base", "workflow: bridge\nadministrators: chief\ntasks: {look: {type: manual}, tell: {type: manual, after: look}}\n"+
			"partitions: {far: {tasks: [look], partner: boat}, near: {tasks: [tell], partner: base}}\n")
		for _, chief := range []string{"bia", "leo"} {
			if err := tm.signIn("base", tm.addUser("base", chief, "chief")); err != nil {
				t.Fatal(err)
			}
		}
		again, skipped := tm.begin("base", "bridge", nil), tm.begin("base", "bridge", nil)
		pass(time.Second)
		for _, at := range []string{"base", "crew"} {
			tm.disconnect("boat", at)
		}
		pass(3 * time.Hour)
		for id, r := range map[string]api.TaskOrder{
			again: {Order: api.TaskAgain, To: "crew"}, skipped: {Order: api.TaskSkip, Reason: "fog"},
		} {
			tm.finish("boat", id, "look")
			r.User, r.ID, r.Task = "bia", id, "look"
			if _, err := tm.p["base"].api.OrderTask(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		pass(time.Hour)
		for _, u := range []string{"base", "bia"} {
			tm.readAll("base", u)
		}
		healed := time.Now()
		for _, at := range []string{"base", "crew"} {
			tm.connect("boat", at)
		}
		pass(time.Minute)
		told := func(u string, want int) {
			t.Helper()
			var fresh []string
			list, err := tm.p["base"].api.Messages(t.Context(), api.MessagesQuery{User: u})
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range list {
				if m.Task == "look" && !m.Read {
					fresh = append(fresh, m.Text)
					if m.At.Before(healed.Truncate(time.Second)) {
						t.Errorf("%s is told at %s, and it was known %s", m.Text, m.At, healed)
					}
				}
			}
			slices.Sort(fresh)
			if all := []string{
				"look was ordered to be done once more, which came to nothing: boat had done it meanwhile, and that result counts",
				"look was ordered to be left out, which came to nothing: boat had done it meanwhile, and that result counts",
			}; !slices.Equal(fresh, all[:want]) {
				t.Errorf("%s is told %q", u, fresh)
			}
		}
		everybody := func() {
			t.Helper()
			told("base", 2)
			told("bia", 2)
			told("leo", 0)
		}
		everybody()
		for _, id := range []string{again, skipped} {
			tm.finish("base", id, "tell")
		}
		pass(time.Hour)
		everybody()
		tm.p["base"].crash()
		tm.p["base"].start()
		pass(time.Minute)
		everybody()
		tm.readAll("base", "bia")
		told("bia", 0)
	})
}

// TestOfTwoOrdersWhoGaveTheOtherIsTold is about two orders at nodes that cannot hear of each other, in the place of a
// holder that is gone: one counts, and whoever gave the other, and whoever answers for the instance, is told that it
// came to nothing.
func TestOfTwoOrdersWhoGaveTheOtherIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base", "boat", "crew")
		tm.add("base", "workflow: bridge\nadministrators: chief\ntasks: {look: {type: manual}, tell: {type: manual, after: look}, write: {type: manual, after: tell}}\n"+
			"partitions: {far: {tasks: [look], partner: boat}, near: {tasks: [tell], partner: base}, "+
			"there: {tasks: [write], partner: crew}}\n")
		for user, at := range map[string]string{"bia": "base", "leo": "crew"} {
			if err := tm.signIn(at, tm.addUser("base", user, "chief")); err != nil {
				t.Fatal(err)
			}
		}
		id := tm.begin("base", "bridge", nil)
		pass(time.Second)
		for _, at := range []string{"base", "crew"} {
			tm.disconnect("boat", at)
		}
		pass(3 * time.Hour)
		tm.disconnect("base", "crew")
		pass(time.Minute)
		for at, r := range map[string]api.TaskOrder{
			"base": {Order: api.TaskSkip, Reason: "fog", User: "bia"}, "crew": {Order: api.TaskAgain, To: "crew", User: "leo"},
		} {
			r.ID, r.Task = id, "look"
			if _, err := tm.p[at].api.OrderTask(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		tm.connect("base", "crew")
		pass(time.Minute)
		want := []string{"look was ordered to be done once more, which came to nothing: another order about it counts"}
		for at, user := range map[string]string{"crew": "leo", "base": "bia"} { // bia answers for the instance
			list, err := tm.p[at].api.Messages(t.Context(), api.MessagesQuery{User: user})
			if err != nil {
				t.Fatal(err)
			}
			var told []string
			for _, m := range list {
				if strings.Contains(m.Text, "came to nothing") {
					told = append(told, m.Text)
				}
			}
			if !slices.Equal(told, want) {
				t.Errorf("%s is told %q, want %q", user, told, want)
			}
		}
	})
}

// TestOfTwoOrdersAtOneMomentOneIsRefused is about two orders that reach the holder before the first was carried out:
// whoever gave the second hears who decided before.
func TestOfTwoOrdersAtOneMomentOneIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base", "crew", "dock")
		tm.add("base", "workflow: bridge\nadministrators: chief\ntasks: {look: {type: manual}, tell: {type: manual, after: look}, write: {type: manual, after: tell}}\n"+
			"partitions: {far: {tasks: [look], partner: dock}, near: {tasks: [tell], partner: base}, "+
			"there: {tasks: [write], partner: crew}}\n")
		at := map[string]string{"bia": "base", "leo": "crew"}
		for user, node := range at {
			if err := tm.signIn(node, tm.addUser("base", user, "chief")); err != nil {
				t.Fatal(err)
			}
		}
		id := tm.begin("base", "bridge", nil)
		pass(time.Second)
		if err := tm.p["dock"].api.FinishTask(t.Context(),
			api.FinishRequest{ID: id, Task: "look", Failed: true, Reason: "fog"}); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		tm.p["dock"].disk.hold()
		go tm.p["dock"].api.Start(t.Context(), api.StartRequest{Workflow: "bridge"})
		synctest.Wait()
		answers := map[string]error{}
		var got sync.WaitGroup
		var mu sync.Mutex
		for user, what := range map[string]string{"leo": api.TaskSkip, "bia": api.TaskAgain} {
			got.Go(func() {
				_, err := tm.p[at[user]].api.OrderTask(t.Context(),
					api.TaskOrder{User: user, ID: id, Task: "look", Order: what, Reason: "fog"})
				mu.Lock()
				defer mu.Unlock()
				answers[user] = err
			})
			synctest.Wait()
		}
		tm.p["dock"].disk.free()
		got.Wait()
		first, late := "leo", "bia"
		if answers[first] != nil {
			first, late = late, first
		}
		if answers[first] != nil {
			t.Fatalf("both are refused: %v", answers)
		}
		wantCode(t, answers[late], api.Refused, "that was decided about look already, by "+first+" at 20")
		pass(time.Minute)
		orders := 0
		for _, line := range tm.log("base", id) {
			if strings.Contains(line, " orders: ") {
				orders++
			}
		}
		if orders != 1 {
			t.Errorf("%d orders are written down, want 1", orders)
		}
	})
}

// TestWhatStandsInIsStopped is about a task whose holder is gone, so that another stands in for it: an order about the
// task is one about that, and whoever orders it is told so, and that the task itself may still count.
func TestWhatStandsInIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base", "boat")
		tm.add("base", `
workflow: rescue
tasks:
  search: {type: manual, timeout: 9h, contingency: look}
  look: {type: manual}
partitions:
  sea:  {tasks: [search], partner: boat}
  land: {tasks: [look], partner: base}
`)
		id := tm.begin("base", "rescue", nil)
		pass(time.Second)
		tm.disconnect("base", "boat")
		pass(2 * time.Hour)
		stop := api.TaskOrder{User: "base", ID: id, Task: "search", Order: api.TaskStop}
		wantCode(t, tm.order("base", "base", id, api.TaskAgain, "search"), api.Refused,
			"look stands in for search, and is READY: nothing is to be decided about it")
		done, err := tm.p["base"].api.OrderTask(t.Context(), stop)
		if err != nil {
			t.Fatal(err)
		}
		if done.Task != "search" || done.StandIn != "look" || done.MayCount != "boat" {
			t.Errorf("what is answered is %+v", done)
		}
		pass(time.Minute)
		tm.finish("boat", id, "search") // before it hears of that
		tm.connect("base", "boat")
		pass(time.Minute)
		if got := tm.stateOf("base", id, "search"); got != "SUCCEEDED succeeded" {
			t.Errorf("search is %s", got)
		}
	})
}
