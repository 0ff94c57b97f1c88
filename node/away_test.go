package node_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/files"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// visits is a plan whose tasks may be done out of reach; visit reads a file.
const visits = `
workflow: visits
data:
  plan:   {type: file}
  weight: {type: integer}
tasks:
  visit: {type: manual, role: nurse, offline: true, in: [plan], out: [weight]}
  feed:  {type: manual, role: nurse, offline: true, after: visit}
partitions: {ward: {tasks: [visit, feed], partner: base}}
`

// goesAway has a node disconnect, accepting these questions.
func (tm *team) goesAway(at string, accept ...string) *api.Contact {
	tm.t.Helper()
	c, err := tm.p[at].api.Disconnect(tm.t.Context(), api.DisconnectRequest{Accept: accept})
	if err != nil {
		tm.t.Fatal(err)
	}
	return c
}

// comesBack has a node reconnect, and be found by another.
func (tm *team) comesBack(at, by string) {
	tm.t.Helper()
	if c, err := tm.p[at].api.Reconnect(tm.t.Context()); err != nil || c.State != api.IsConnected || c.Since != nil {
		tm.t.Fatalf("it is %+v, %v", c, err)
	}
	tm.disconnect(at, by) // of one that stayed
	tm.connect(at, by)
	pass(time.Minute)
}

// contact is how a node stands to its partners.
func (tm *team) contact(at string) *api.Contact {
	tm.t.Helper()
	c, err := tm.p[at].api.Contact(tm.t.Context())
	if err != nil {
		tm.t.Fatal(err)
	}
	return c
}

func (tm *team) wantContact(at, state, asks string) {
	tm.t.Helper()
	if c := tm.contact(at); c.State != state || c.Asks != asks {
		tm.t.Errorf("%s is %s and asks %q (%s), want %s and %q", at, c.State, c.Asks, c.Why, state, asks)
	}
}

// rounds begins an instance of a workflow at base, and waits until the tablet hears of its first task.
func (tm *team) rounds(name string, inputs map[string]string) (id, item string) {
	tm.t.Helper()
	st, err := tm.p["base"].api.Start(tm.t.Context(), api.StartRequest{Workflow: name, Input: inputs})
	if err != nil {
		tm.t.Fatal(err)
	}
	pass(time.Second)
	for _, x := range tm.items("tablet", "bia") {
		if x.Instance == st.ID {
			return st.ID, x.ID
		}
	}
	tm.t.Fatalf("the tablet does not know the task of %s", st.ID)
	return "", ""
}

// wardTeam is a team with stores for files.
type wardTeam struct {
	*team
	stores map[workflow.PartnerID]*files.Store
}

// aWard is a mesh in which bia is at the tablet and ana at base.
func aWard(t *testing.T, others ...string) *wardTeam { return aWardOf(t, nil, others...) }

// aWardOf is aWard with other settings.
func aWardOf(t *testing.T, adjust func(*configs.Config), others ...string) *wardTeam {
	root, stores := t.TempDir(), map[workflow.PartnerID]*files.Store{}
	tm := newTeamWith(t, adjust, func(p *node.Parts) {
		content, err := files.Open(filepath.Join(root, string(p.Member.ID())), files.Options{Limit: 64 << 20})
		if err != nil {
			t.Fatal(err)
		}
		p.Files, stores[p.Member.ID()] = content, content
	}, append([]string{"base:nurse", "tablet"}, others...)...)
	tm.signInNurses()
	tm.add("base", visits)
	return &wardTeam{tm, stores}
}

// Whoever goes out of reach is told of what only its node holds and nobody has taken: nobody else can do it meanwhile.
func TestUntakenTasksAreNamedBeforeItGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := aWard(t)
		id, visit := tm.rounds("visits", nil)
		c := tm.goesAway("base")
		if c.State != api.IsDisconnected || len(c.Own) != 1 || c.Own[0].ID != visit || c.Own[0].Instance != id {
			t.Errorf("it is %+v", c)
		}
		if c = tm.contact("base"); len(c.Own) != 1 {
			t.Errorf("later it says %+v", c)
		}
	})
}

// What a node was only given to perform, and nobody there has taken, goes to another who can do it before it is out of
// reach, and to nobody where there is no other. What somebody there has locked, and what it holds as the holder of a
// partition, stays.
func TestWhatWasGivenToPerformIsPassedOnBeforeItGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) { c.ConnectionTime = 20 * time.Second }, "base:keeper", "ana:rescuer",
			"bia:rescuer")
		if err := tm.signIn("bia", tm.addUser("base", "rui", "rescuer")); err != nil {
			t.Fatal(err)
		}
		plan := strings.ReplaceAll(rescue, "type: manual", "type: manual, offline: true")
		tm.add("base", plan)
		tm.add("base", strings.NewReplacer("workflow: rescue", "workflow: own", "partner: base", "partner: bia").Replace(plan))
		free, task := tm.search("Sel-push")
		if task.Partner != "bia" {
			t.Fatalf("the search is at %s", task.Partner)
		}
		tm.disconnect("base", "ana")
		tm.disconnect("bia", "ana")
		synctest.Wait()
		locked, _ := tm.search("Sel-push")
		own := tm.begin("base", "own", nil)
		pass(time.Second)
		tm.connect("base", "ana")
		tm.connect("bia", "ana")
		pass(time.Second)
		for _, x := range tm.items("bia", "rui") {
			if x.Instance == locked {
				if err := tm.claim("bia", "rui", api.ClaimLock, x.ID); err != nil {
					t.Fatal(err)
				}
			}
		}
		tm.goesAway("bia")
		pass(time.Second)
		c := tm.contact("bia")
		if c.State != api.IsDisconnected || len(c.Along) != 1 || c.Along[0].Instance != locked ||
			slices.ContainsFunc(c.Own, func(x api.Item) bool { return x.Instance == free }) {
			t.Errorf("it is %+v", c)
		}
		if len(c.Passed) != 1 || c.Passed[0].Instance != free || c.Passed[0].Task != "search" || c.Passed[0].Partner != "ana" {
			t.Errorf("it says that it passed on %+v", c.Passed)
		} else if list, id := tm.items("ana", "ana"), c.Passed[0].ID; !slices.ContainsFunc(list,
			func(x api.Item) bool { return x.ID == id }) {
			t.Errorf("what it passed on is %q, and not among %+v", id, list)
		}
		for id, want := range map[string]string{free: "ana", locked: "bia", own: "bia"} {
			if x := tm.show("base", id).Tasks[0]; x.Partner != want {
				t.Errorf("the search of %s is at %s, want %s:\n%s", id, x.Partner, want, lines(tm.log("base", id)))
			}
		}
		pass(time.Minute)
		if err := tm.p["ana"].api.FinishTask(t.Context(), api.FinishRequest{ID: free, Task: "search"}); err != nil {
			t.Error(err)
		}
		tm.succeeds(free, time.Minute, "base", "ana")

		alone, task := tm.search("Sel-push") // nobody else can do it now
		if task.Partner != "ana" {
			t.Fatalf("the search is at %s", task.Partner)
		}
		if c := tm.goesAway("ana"); c.State != api.IsDisconnected {
			t.Errorf("it is %+v", c)
		}
		pass(time.Second)
		if x := tm.show("base", alone).Tasks[0]; x.Partner != "ana" {
			t.Errorf("the search that only ana can do is at %s", x.Partner)
		}
	})
}

// Where only users have the role of what a node was given to perform, it goes before that node is out of reach to whoever
// has its partition, else to a node at which one of them works whom the policy chooses, and they can take it from there.
// Where nobody can it stays, which is said.
func TestWhatOnlyUsersCanDoIsPassedOnBeforeItGoes(t *testing.T) {
	for _, c := range []struct {
		lost []string // whom ana cannot reach
		want string
	}{
		{nil, "base"}, {[]string{"base"}, "phone"}, {[]string{"base", "phone"}, "tablet"},
		{[]string{"base", "phone", "tablet"}, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			tm := newTeam(t, "base:keeper", "ana:rescuer", "phone", "tablet")
			for at, user := range map[string]string{"tablet": "rui", "phone": "eva", "ana": "ida"} {
				if err := tm.signIn(at, tm.addUser("base", user, "rescuer")); err != nil {
					t.Fatal(err)
				}
			}
			tm.add("base", rescue)
			start := func(notify string) (string, api.Task) {
				st, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{
					Workflow: "rescue", Mechanism: "Sel-push", Notify: notify,
				})
				if err != nil {
					t.Fatal(err)
				}
				pass(time.Second)
				return st.ID, tm.show("base", st.ID).Tasks[0]
			}
			tm.disconnect("base", "ana")
			synctest.Wait()
			busy, _ := start("all")
			pass(time.Second)
			for _, x := range tm.items("tablet", "rui") {
				if x.Instance == busy {
					if err := tm.claim("tablet", "rui", api.ClaimSelect, x.ID); err != nil {
						t.Fatal(err)
					}
				}
			}
			tm.connect("base", "ana")
			pass(10 * time.Second) // all have heard how much each has
			id, task := start("fewest-selected 1")
			if task.Partner != "ana" {
				t.Fatalf("the search is at %s", task.Partner)
			}
			for _, p := range c.lost {
				tm.disconnect("ana", p)
			}
			pass(time.Second)
			tm.goesAway("ana")
			pass(leaveTime)
			is := tm.contact("ana")
			if is.State != api.IsDisconnected {
				t.Fatalf("it is %+v", is)
			}
			if c.want == "" {
				if len(is.Passed) != 0 || len(is.Stays) != 1 || is.Stays[0].Instance != id || is.Stays[0].Task != "search" ||
					is.Stays[0].Reason != "nobody else with role rescuer can be reached" {
					t.Errorf("it says that it passed on %+v, and that %+v stays", is.Passed, is.Stays)
				}
				return
			}
			if len(is.Passed) != 1 || is.Passed[0].Partner != c.want || len(is.Stays) != 0 {
				t.Errorf("it says that it passed on %+v, and that %+v stays, want %s", is.Passed, is.Stays, c.want)
			}
			if x := tm.show(c.want, id).Tasks[0]; x.Partner != c.want {
				t.Errorf("the search is at %s, want %s", x.Partner, c.want)
			}
			item := tm.itemOf("phone", "eva", "search").ID // who has less than rui is offered it, wherever it is
			if err := errors.Join(tm.claim("phone", "eva", api.ClaimSelect, item), tm.hand("phone", "eva", item, nil)); err != nil {
				t.Error(err)
			}
			if x := tm.show(c.want, id).Tasks[0]; x.State != workflow.Succeeded {
				t.Errorf("the search that goes to %s is %s:\n%s", c.want, x.State, lines(tm.log(c.want, id)))
			}
		})
	}
}

// leaveTime is longer than a node waits for others to hear what it passed on.
const leaveTime = 15 * time.Second

// What a node holds itself can be taken, given back and done while it is out of reach: it is not named before it goes, and
// who asks then is told what is still to be done.
func TestOwnItemsOutOfReach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _, items := aheadIn(t, strings.NewReplacer(" role: nurse, offline: true, after: weigh", "",
			"partner: kitchen", "partner: tablet").Replace(round))
		weigh, feed := items[0], items[1]
		if err := errors.Join(tm.claim("tablet", "bia", api.ClaimLock, weigh),
			tm.claim("tablet", "bia", api.ClaimSelect, feed)); err != nil {
			t.Fatal(err)
		}
		want := func(when string, along, own int) {
			t.Helper()
			c := tm.goesAway("tablet")
			if c.State != api.IsDisconnected || c.Asks != "" || len(c.Along) != along || len(c.Own) != own {
				t.Errorf("%s: it is %s and asks %q, with %v and %v, want %d and %d", when, c.State, c.Asks, c.Along, c.Own,
					along, own)
			}
		}
		want("at first", 1, 1)
		if err := errors.Join(tm.claim("tablet", "bia", api.ClaimRelease, feed),
			tm.claim("tablet", "bia", api.ClaimSelect, feed)); err != nil {
			t.Error(err)
		}
		want("taken anew", 1, 1)
		if err := tm.hand("tablet", "bia", feed, nil); err != nil {
			t.Error(err)
		}
		want("its own is done", 1, 0)
		if err := tm.hand("tablet", "bia", weigh, map[string]string{"weight": "3"}); err != nil {
			t.Error(err)
		}
		want("all is done", 0, 0)
	})
}

// A week out of reach as planned: what was locked is done, also after a crash, and arrives; what was
// taken from its user meanwhile is refused with the reason, and the work is kept beside.
func TestAWeekDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := aWard(t)
		first, visit := tm.rounds("visits", nil)
		second, late := tm.rounds("visits", nil)
		_, selected := tm.rounds("visits", nil)
		for item, how := range map[string]string{visit: api.ClaimLock, late: api.ClaimLock, selected: api.ClaimSelect} {
			if err := tm.claim("tablet", "bia", how, item); err != nil {
				t.Fatal(err)
			}
		}

		// What is selected and not locked is named first; nobody is told before that is accepted.
		c := tm.goesAway("tablet")
		if c.State != api.IsLeaving || c.Asks != "not-locked" || len(c.Items) != 1 || c.Items[0].ID != selected {
			t.Errorf("it is %+v", c)
		}
		if x := tm.row("base", "tablet"); x.State != "active" || x.Reason != "" {
			t.Errorf("base shows it as %s, %s", x.State, x.Reason)
		}
		if c = tm.goesAway("tablet", "not-locked"); c.State != api.IsDisconnected || c.Since == nil ||
			len(c.Along) != 2 || !c.Along[0].Prefetched || !c.Along[1].Prefetched {
			t.Errorf("it is %+v", c)
		}
		pass(time.Second)
		if x := tm.row("base", "tablet"); x.State != "unreachable" || x.Reason != "going down" {
			t.Errorf("base shows it as %s, %s", x.State, x.Reason)
		}

		// Nobody reaches it, and it says so.
		tm.connect("base", "tablet")
		pass(time.Hour)
		if x := tm.row("tablet", "base"); x.State != "unreachable" {
			t.Errorf("it shows base as %s: that it hears nothing is its own doing", x.State)
		}
		if st, err := tm.p["tablet"].api.Status(t.Context()); err != nil || st.Disconnected == nil {
			t.Errorf("its status is %+v, %v", st, err)
		}
		if f := tm.finding("tablet", "contact"); f.State != api.FindingWarning ||
			f.Mend != "mutirao worklist reconnect" {
			t.Errorf("the doctor says %+v", f)
		}
		wantCode(t, tm.hand("tablet", "bia", selected, nil), api.Refused, "disconnected on purpose")
		if c := tm.goesAway("tablet"); c.State != api.IsDisconnected { // twice is once
			t.Errorf("it is %+v", c)
		}

		// Work goes on, also after a crash; then the lease of seven days runs out.
		for n, item := range []string{visit, late} {
			if n == 1 {
				pass(8 * 24 * time.Hour)
				if err := tm.claim("base", "ana", api.ClaimLock, late); err != nil {
					t.Fatal(err)
				}
				tm.p["tablet"].crash()
				tm.p["tablet"].start()
				tm.connect("base", "tablet")
				pass(time.Minute)
				tm.wantContact("tablet", api.IsDisconnected, "")
			}
			if err := tm.hand("tablet", "bia", item, map[string]string{"weight": "3"}); err != nil {
				t.Fatal(err)
			}
		}
		if tm.stateOf("base", first, "visit") == "SUCCEEDED" || len(tm.outbox("tablet")) != 2 {
			t.Errorf("something was handed in: %q", tm.outbox("tablet"))
		}

		tm.comesBack("tablet", "base")
		if x := tm.row("base", "tablet"); x.State != "active" {
			t.Errorf("base shows it as %s, %s", x.State, x.Reason)
		}
		for _, x := range tm.outbox("tablet") {
			if !strings.Contains(x, "it is kept there") {
				t.Errorf("in the outbox: %s", x)
			}
		}
		in := tm.show("base", second)
		if !slices.ContainsFunc(in.Incidents,
			func(i api.Incident) bool { return strings.Contains(i.What, "a result of bia is kept") }) {
			t.Errorf("what bia did is not shown: %+v", in.Incidents)
		}
		tm.p["tablet"].crash()
		tm.p["tablet"].start()
		tm.wantContact("tablet", api.IsConnected, "")
	})
}

// weekly is a plan of one week, in the middle of which an item passes to who answers for it.
const weekly = `
workflow: weekly
warnings: [48h]
transfer: 24h
data:
  weight: {type: integer}
tasks:
  visit: {type: manual, role: nurse, offline: true, deadline: 120h, out: [weight]}
  mend:  {type: manual, role: nurse, offline: true, deadline: 240h}
partitions: {ward: {tasks: [visit, mend], partner: base}}
`

// A week out of reach as planned, with deadlines: the device warns by its own clock, also after a crash, and says that an
// item passes to who answers for the instance. What was done of that one afterwards is refused with the reason, kept
// beside, and can be adopted; the other counts.
func TestAWeekDisconnectedWithDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const day = 24 * time.Hour
		tm := aWard(t)
		tm.add("base", weekly)
		st, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "weekly", Responsible: "ana"})
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		items := map[string]string{}
		for _, x := range tm.items("tablet", "bia") {
			items[x.Task] = x.ID
			if err := tm.claim("tablet", "bia", api.ClaimLock, x.ID); err != nil {
				t.Fatal(err)
			}
		}
		c, err := tm.p["tablet"].api.Disconnect(t.Context(), api.DisconnectRequest{For: api.Span(8 * day)})
		if err != nil || c.State != api.IsDisconnected || len(c.Along) != 2 {
			t.Fatalf("it is %+v, %v", c, err)
		}

		pass(3 * day)
		tm.wantLeft("tablet", "bia", "visit", 2*day)
		tm.wantLeft("tablet", "bia", "mend", 7*day)
		warned := "weekly deadline: visit is due in 2d, and passes to the responsible user with 1d left"
		tm.wantMessages("tablet", "bia", "*"+warned)
		tm.readAll("tablet", "bia")
		tm.p["tablet"].crash()
		pass(day)
		tm.p["tablet"].start()
		pass(time.Minute)
		tm.wantLeft("tablet", "bia", "visit", day-time.Minute)
		tm.wantMessages("tablet", "bia", warned, "*weekly deadline: visit passes to the responsible user, as it is due in 1d: "+
			"what you make of it from now on is kept, and does not count by itself")
		had := tm.items("tablet", "bia")
		if len(had) != 2 || slices.ContainsFunc(had, func(x api.Item) bool { return x.State != api.ItemLocked }) {
			t.Errorf("bia has %+v", had)
		}
		tm.wantItems("base", "ana", "visit SELECTED")

		pass(2 * day)
		for task, out := range map[string]map[string]string{"visit": {"weight": "3"}, "mend": nil} {
			done, err := tm.p["tablet"].api.FinishItem(t.Context(), api.ItemResult{User: "bia", Item: items[task], Outputs: out})
			if err != nil {
				t.Errorf("%s: %v", task, err)
			} else if to := done.HasPassed(); (to == "ana") != (task == "visit") {
				t.Errorf("%s has passed to %q", task, to)
			}
		}
		pass(day)
		tm.comesBack("tablet", "base")
		const why = "as it had passed to the responsible user, with its deadline near"
		tm.wantOutbox("tablet", "bia|visit|completed||it does not count, "+why+"; it is kept there")
		tm.wantKeptAlone("tablet", 0)
		tm.wantItems("tablet", "bia")
		tm.wantItems("base", "ana", "visit SELECTED")
		in := tm.show("base", st.ID)
		kept := slices.IndexFunc(in.Incidents, func(x api.Incident) bool { return x.Result != "" })
		if kept < 0 || !strings.Contains(in.Incidents[kept].What, "a result of bia is kept and does not count, "+why) ||
			in.Data["weight"] != nil {
			t.Fatalf("weight is %v, and there are incidents: %+v", in.Data["weight"], in.Incidents)
		}
		if got := tm.stateOf("base", st.ID, "mend"); got != "SUCCEEDED running" {
			t.Errorf("mend is %s", got)
		}
		if _, err := tm.p["base"].api.AdoptResult(t.Context(),
			api.AdoptRequest{User: "ana", ID: st.ID, Result: in.Incidents[kept].Result}); err != nil {
			t.Error(err)
		}
		if in := tm.show("base", st.ID); in.Data["weight"] != int64(3) || in.State != workflow.InstanceSucceeded {
			t.Errorf("adopted it is %s, with %v", in.State, in.Data)
		}
	})
}

// A result of the planned absence arrives by itself, once, and the successor begins.
func TestADisconnectedResultArrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := aWard(t)
		id, visit := tm.rounds("visits", nil)
		if err := tm.claim("tablet", "bia", api.ClaimLock, visit); err != nil {
			t.Fatal(err)
		}
		tm.goesAway("tablet")
		pass(long(3 * 24 * time.Hour))
		if err := tm.hand("tablet", "bia", visit, map[string]string{"weight": "3"}); err != nil {
			t.Fatal(err)
		}
		tm.wantOutbox("tablet", "bia|visit|completed|base")
		tm.comesBack("tablet", "base")
		tm.wantOutbox("tablet")
		if in := tm.show("base", id); in.Data["weight"] != int64(3) || in.Tasks[0].PerformedBy != "bia" {
			t.Errorf("weight is %v, by %s", in.Data["weight"], in.Tasks[0].PerformedBy)
		}
		tm.wantItems("tablet", "bia", "feed READY")
	})
}

// Whoever stays after all is a partner as before, at whatever step; so is who crashes on the way, or
// whose disk does not take that it goes.
func TestStaysAfterAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := aWard(t)
		_, item := tm.rounds("visits", nil)
		if err := tm.claim("tablet", "bia", api.ClaimSelect, item); err != nil {
			t.Fatal(err)
		}
		asks := api.DisconnectRequest{Within: api.Span(20 * time.Minute), For: api.Span(6 * time.Hour)}
		c, err := tm.p["tablet"].api.Disconnect(t.Context(), asks)
		if err != nil || c.Within != asks.Within || c.For != asks.For {
			t.Errorf("what was asked for is %+v, %v", c, err)
		}
		tm.wantContact("tablet", api.IsLeaving, "not-locked")
		tm.comesBack("tablet", "base")
		tm.wantContact("tablet", api.IsConnected, "")

		tm.goesAway("tablet") // and whoever was asked is gone
		pass(5 * time.Minute)
		tm.wantContact("tablet", api.IsConnected, "")

		tm.p["tablet"].disk.failWith(kv.ErrFull)
		tm.goesAway("tablet", "not-locked")
		tm.wantContact("tablet", api.IsLeaving, "trouble")
		pass(time.Second)
		if x := tm.row("base", "tablet"); x.State != "active" || x.Reason != "takes nothing new on" {
			t.Errorf("base shows it as %s, %s", x.State, x.Reason)
		}
		tm.comesBack("tablet", "base")
		tm.p["tablet"].disk.failWith(nil)
		if x := tm.row("base", "tablet"); x.State != "active" || x.Reason != "" {
			t.Errorf("base shows it as %s, %s", x.State, x.Reason)
		}

		// The disk takes that it goes, and then not that it comes back: it stays away, and says so.
		tm.goesAway("tablet", "not-locked")
		tm.p["tablet"].disk.failWith(kv.ErrFull)
		if _, err := tm.p["tablet"].api.Reconnect(t.Context()); err == nil {
			t.Error("it is back, and a restart would not know")
		}
		tm.wantContact("tablet", api.IsDisconnected, "")
		_, err = tm.p["tablet"].api.Leave(t.Context(), api.LeaveRequest{})
		wantCode(t, err, api.Refused, "disconnected on purpose")
		tm.p["tablet"].disk.failWith(nil)
		tm.comesBack("tablet", "base")
		if err := tm.claim("tablet", "bia", api.ClaimRelease, item); err != nil {
			t.Error(err)
		}
	})
}

// The files of locked items come first, to a node that takes no part in the instance; one that nobody
// gives is asked about, and what came is there out of reach.
func TestFilesComeBeforeItGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := aWard(t)
		content := bytes.Repeat([]byte("plan"), 1<<20) // four chunks
		f, err := tm.p["base"].api.PutFile(t.Context(), "plan.pdf", bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		_, visit := tm.rounds("visits", map[string]string{"plan": f.Value})
		if err := tm.claim("tablet", "bia", api.ClaimLock, visit); err != nil {
			t.Fatal(err)
		}
		answer := tm.p["base"].plug.handlers[files.Protocol]
		tm.p["base"].plug.HandleRequest(files.Protocol, false,
			func(workflow.PartnerID, []byte) ([]byte, error) { return nil, io.ErrClosedPipe })
		tm.goesAway("tablet")
		tm.wantContact("tablet", api.IsLeaving, "")
		pass(10 * time.Second)
		tm.wantContact("tablet", api.IsLeaving, "missing")
		tm.p["base"].plug.HandleRequest(files.Protocol, false, answer)
		pass(time.Minute)
		tm.wantContact("tablet", api.IsDisconnected, "")
		if c := tm.contact("tablet"); len(c.Along) != 1 || c.Along[0].ID != visit || !c.Along[0].Prefetched {
			t.Errorf("it took %+v along", c.Along)
		}
		pass(2 * 24 * time.Hour) // content that no instance here has goes after a day
		if !tm.here("tablet", f.Value) {
			t.Error("its file is not here")
		}
		tm.p["tablet"].crash()
		tm.p["tablet"].start()
		if !tm.here("tablet", f.Value) {
			t.Error("its file is not here after a crash")
		}
	})
}

// here reports whether the content of a file is at a node.
func (tm *wardTeam) here(at, value string) bool {
	tm.t.Helper()
	f, err := workflow.ParseFile(value)
	if err != nil {
		tm.t.Fatal(err)
	}
	_, here := tm.stores[tm.p[at].id()].Path(f)
	return here
}

// Files come before they are needed where that is switched on, at most as fast as was said, also after a
// crash; whoever disconnects meanwhile does not wait for that.
func TestFilesComeBeforeTheyAreNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := aWard(t)
		f, err := tm.p["base"].api.PutFile(t.Context(), "plan.pdf",
			bytes.NewReader(bytes.Repeat([]byte("plan"), 1<<20)))
		if err != nil {
			t.Fatal(err)
		}
		_, visit := tm.rounds("visits", map[string]string{"plan": f.Value})
		set := func(on bool, atMost int64) {
			t.Helper()
			p, err := tm.p["tablet"].api.SetPrefetch(t.Context(),
				api.PrefetchRequest{User: "bia", On: on, AtMost: atMost})
			if err != nil || p.On != on || p.AtMost != atMost {
				t.Fatalf("it is %+v, %v", p, err)
			}
		}
		set(true, 1<<20)
		pass(2 * time.Minute)
		if tm.here("tablet", f.Value) {
			t.Error("the file of an item came that nobody has taken")
		}
		if err := tm.claim("tablet", "bia", api.ClaimSelect, visit); err != nil {
			t.Fatal(err)
		}
		set(false, 0)
		pass(2 * time.Minute)
		if tm.here("tablet", f.Value) {
			t.Error("a file came although that was switched off")
		}
		set(true, 1<<20)
		pass(2 * time.Second)
		if tm.here("tablet", f.Value) {
			t.Error("four chunks came in two seconds, one a second is allowed")
		}
		tm.p["tablet"].crash()
		tm.p["tablet"].start()
		tm.connect("base", "tablet")
		pass(time.Minute)
		if x := tm.items("tablet", "bia")[0]; !tm.here("tablet", f.Value) || !x.Prefetched || x.Size != f.Size {
			t.Errorf("after a minute and a crash it is not here: %+v", x)
		}

		other, err := tm.p["base"].api.PutFile(t.Context(), "more.pdf",
			bytes.NewReader(bytes.Repeat([]byte("more"), 1<<20)))
		if err != nil {
			t.Fatal(err)
		}
		set(true, 1000)
		_, next := tm.rounds("visits", map[string]string{"plan": other.Value})
		for _, x := range tm.items("tablet", "bia") {
			if x.Size == other.Size && x.State == api.ItemReady {
				next = x.ID
			}
		}
		if err := tm.claim("tablet", "bia", api.ClaimLock, next); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		if tm.here("tablet", other.Value) {
			t.Error("four megabytes came in a minute, at a thousand bytes a second")
		}
		tm.goesAway("tablet", "not-locked")
		pass(5 * time.Second)
		tm.wantContact("tablet", api.IsDisconnected, "")
	})
}

// What is on the device with all that it needs comes first when that is asked for: its files, and its application.
func TestWhatIsHereComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := aWard(t)
		tm.add("base", "workflow: drawing\ntasks: {draw: {type: semi-automatic, application: editor, role: nurse}}\n"+
			"partitions: {ward: {tasks: [draw], partner: base}}\n")
		f, err := tm.p["base"].api.PutFile(t.Context(), "plan.pdf", strings.NewReader("the river"))
		if err != nil {
			t.Fatal(err)
		}
		_, read := tm.rounds("visits", map[string]string{"plan": f.Value})
		tm.rounds("drawing", nil)
		tm.rounds("visits", nil)
		want := func(when, order string, want ...string) {
			t.Helper()
			list, err := tm.p["tablet"].api.Worklist(t.Context(), api.WorklistQuery{User: "bia", Order: order})
			var got []string
			for _, x := range list {
				got = append(got, fmt.Sprintf("%s %d", x.Task, x.Size))
			}
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s, by %s, the list is %q, %v; want %q", when, order, got, err, want)
			}
		}
		const big, small, draw = "visit 9", "visit 0", "draw 0"
		want("at first", api.OrderArrival, big, draw, small)
		want("at first", api.OrderHere, small, big, draw)
		c := api.ProfileChange{Applications: &[]string{"editor"}}
		if _, err := tm.p["tablet"].api.SetProfile(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		want("with an editor", api.OrderHere, draw, small, big)
		if err := tm.claim("tablet", "bia", api.ClaimLock, read); err != nil {
			t.Fatal(err)
		}
		if _, err := tm.p["tablet"].api.SetPrefetch(t.Context(), api.PrefetchRequest{User: "bia", On: true}); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Minute)
		want("once its file is here", api.OrderHere, big, draw, small)
	})
}

// A file comes from whoever gave it where the holder of the task may not have it, since it has not the task's
// role; whoever has not the item gets it from neither.
func TestAFileComesFromItsGiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root, stores := t.TempDir(), map[workflow.PartnerID]*files.Store{}
		tm := &wardTeam{newTeamWith(t, nil, func(p *node.Parts) {
			content, err := files.Open(filepath.Join(root, string(p.Member.ID())), files.Options{Limit: 64 << 20})
			if err != nil {
				t.Fatal(err)
			}
			p.Files, stores[p.Member.ID()] = content, content
		}, "base", "crew", "tablet"), stores}
		if err := tm.signIn("tablet", tm.addUser("base", "bia", "nurse")); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		tm.add("crew", visits)
		f, err := tm.p["crew"].api.PutFile(t.Context(), "plan.pdf", strings.NewReader("the river"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tm.p["crew"].api.Start(t.Context(),
			api.StartRequest{Workflow: "visits", Input: map[string]string{"plan": f.Value}}); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		if tm.here("base", f.Value) {
			t.Error("base has not the role of the task, and has its file")
		}
		item := tm.items("tablet", "bia")[0].ID
		get := func() (string, error) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, content, err := tm.p["tablet"].api.ItemFile(ctx, api.ItemQuery{User: "bia", Item: item}, "plan")
			if err != nil {
				return "", err
			}
			b, err := io.ReadAll(content)
			return string(b), errors.Join(err, content.Close())
		}
		_, err = get()
		wantCode(t, err, api.Refused, "bia does not have visit")
		if err := tm.claim("tablet", "bia", api.ClaimSelect, item); err != nil {
			t.Fatal(err)
		}
		coming := func() *api.Coming {
			sheet, err := tm.p["tablet"].api.ItemSheet(t.Context(), api.ItemQuery{User: "bia", Item: item})
			if err != nil {
				t.Fatal(err)
			}
			return sheet.Coming
		}
		if c := coming(); c == nil || c.Files != 1 || c.Bytes != f.Size || !c.Reachable || c.Advice != "open" {
			t.Errorf("what is not here: %+v", c)
		}
		tm.disconnect("tablet", "crew")
		tm.disconnect("tablet", "base")
		pass(time.Second)
		if c := coming(); c != nil && c.Advice != "wait" { // a selected item is not kept here
			t.Errorf("what is not here, out of reach: %+v", c)
		}
		tm.connect("tablet", "crew")
		tm.connect("tablet", "base")
		pass(time.Minute)
		if text, err := get(); err != nil || text != "the river" {
			t.Errorf("it is %q, %v", text, err)
		}
		if c := coming(); c != nil {
			t.Errorf("all is here, and yet: %+v", c)
		}
	})
}

// The link is lost after the holder has heard a request, and before its answer comes: what was asked for was
// granted, the list says so, and asking again is asking once; what was done is handed in once.
func TestCutInTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := aWard(t)
		id, visit := tm.rounds("visits", nil)
		cut := func(on bool) {
			tm.f.mu.Lock()
			defer tm.f.mu.Unlock()
			tm.f.unheard = nil
			if on {
				tm.f.unheard = func(_ workflow.PartnerID,
					protocol string) bool {
					return protocol == "/mutirao/claim/1.0.0"
				}
			}
		}
		for _, x := range [][2]string{{api.ClaimSelect, "SELECTED"}, {api.ClaimLock, "LOCKED"}} {
			how, state := x[0], x[1]
			cut(true)
			wantCode(t, tm.claim("tablet", "bia", how, visit), api.Refused, "may have written it down")
			tm.disconnect("base", "tablet")
			pass(time.Minute)
			cut(false)
			tm.connect("base", "tablet")
			pass(time.Minute)
			tm.wantItems("tablet", "bia", "visit "+state)
			if err := tm.claim("tablet", "bia", how, visit); err != nil {
				t.Errorf("to %s again: %v", how, err)
			}
			if err := tm.claim("tablet", "bia", api.ClaimRelease, visit); err != nil {
				t.Error(err)
			}
		}
		if err := tm.claim("tablet", "bia", api.ClaimLock, visit); err != nil {
			t.Fatal(err)
		}
		cut(true)
		if err := tm.hand("tablet", "bia", visit, map[string]string{"weight": "3"}); err != nil {
			t.Fatal(err)
		}
		tm.wantOutbox("tablet", "bia|visit|completed|base")
		tm.p["tablet"].crash()
		tm.p["tablet"].start()
		pass(time.Hour)
		tm.connect("base", "tablet")
		pass(time.Minute) // it is heard again and again, and no answer comes
		cut(false)
		pass(time.Minute)
		tm.wantOutbox("tablet")
		in := tm.show("base", id)
		if in.Data["weight"] != int64(3) || len(in.Incidents) > 0 {
			t.Errorf("weight is %v, and there are incidents: %+v", in.Data["weight"], in.Incidents)
		}
	})
}

// crossing is a file that comes from a node to another one, over a link that breaks once.
type crossing struct {
	mu     sync.Mutex
	asked  map[int64]int // pieces, by where they begin
	broken bool
}

// counts notes that a piece was asked for. It reports whether the link breaks by it.
func (c *crossing) counts(a wire.FileAsk, pieces *int) (breaks bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f, err := workflow.ParseFile(a.File); err == nil && !a.Sums && a.Offset < f.Size {
		c.asked[a.Offset]++
		*pieces--
		breaks = *pieces == -1
		c.broken = c.broken || breaks
	}
	return breaks
}

// breaksOnce has the link of two nodes break after so many pieces of a file came from one to the other: what is under
// way is not heard, and they are not connected any more.
func (tm *wardTeam) breaksOnce(from, to string, pieces int) *crossing {
	c := &crossing{asked: map[int64]int{}}
	answer := tm.p[from].plug.handlers[files.Protocol]
	tm.p[from].plug.HandleRequest(files.Protocol, false, func(by workflow.PartnerID, req []byte) ([]byte, error) {
		a, err := wire.DecodeFileAsk(req)
		if err != nil {
			return nil, err
		}
		if c.counts(a, &pieces) {
			tm.disconnect(from, to) // c.mu is free by now, which the net takes while it is locked itself
		}
		return answer(by, req)
	})
	tm.f.mu.Lock()
	defer tm.f.mu.Unlock()
	tm.f.unheard = func(_ workflow.PartnerID, protocol string) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.broken && protocol == files.Protocol
	}
	return c
}

// heals has them be connected again; nothing came meanwhile.
func (tm *wardTeam) heals(c *crossing, from, to string) {
	c.mu.Lock()
	if !c.broken {
		tm.t.Error("the link did not break")
	}
	c.broken = false
	c.mu.Unlock()
	tm.connect(from, to)
}

// wantGoesOn demands that of a file of so many bytes no more was asked for twice than a chunk for each break.
func (c *crossing) wantGoesOn(t *testing.T, size, breaks int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	twice := 0
	for _, n := range c.asked {
		twice += n - 1
	}
	if len(c.asked) != size/files.Piece || twice == 0 || twice > breaks*files.Chunk/files.Piece {
		t.Errorf("%d pieces were asked for, %d of them twice", len(c.asked), twice)
	}
}

// The link is lost while the file of an item comes to the device of whoever has it (worklist open --to, or the page): it
// is waited for, also by a device that was started again, what came is not asked for again, and the item is done.
func TestCutWhileTheFileOfAnItemComes(t *testing.T) {
	for how, state := range map[string]string{api.ClaimSelect: "SELECTED", api.ClaimLock: "LOCKED"} {
		synctest.Test(t, func(t *testing.T) {
			tm := aWard(t)
			plan := bytes.Repeat([]byte("plan"), 1<<20) // four chunks
			f, err := tm.p["base"].api.PutFile(t.Context(), "plan.pdf", bytes.NewReader(plan))
			if err != nil {
				t.Fatal(err)
			}
			id, visit := tm.rounds("visits", map[string]string{"plan": f.Value})
			if err := tm.claim("tablet", "bia", how, visit); err != nil {
				t.Fatal(err)
			}
			opened := make(chan error, 1)
			open := func(within time.Duration) {
				ctx, cancel := context.WithTimeout(t.Context(), within)
				defer cancel()
				_, r, err := tm.p["tablet"].api.ItemFile(ctx, api.ItemQuery{User: "bia", Item: visit}, "plan")
				if err == nil {
					var b []byte
					if b, err = io.ReadAll(r); err == nil && !bytes.Equal(b, plan) {
						err = errors.New("other bytes came")
					}
					r.Close()
				}
				opened <- err
			}
			over := tm.breaksOnce("base", "tablet", 5)
			go open(24 * time.Hour)
			pass(time.Minute)
			select {
			case err := <-opened:
				t.Fatalf("out of reach it is opened: %v", err)
			default:
			}
			breaks := 1
			if how == api.ClaimLock {
				breaks++
				tm.p["tablet"].crash()
				<-opened
				tm.p["tablet"].start()
				pass(time.Minute)
				tm.wantItems("tablet", "bia", "visit "+state)
				go open(time.Minute)
				pass(2 * time.Minute)
				err := <-opened
				wantCode(t, err, api.NotYet, "plan.pdf is not here yet: base: cannot be reached")
				if n := strings.Count(err.Error(), "base:"); n != 1 { // it holds the task, and gave the file
					t.Errorf("base is named %d times: %v", n, err)
				}
				go open(24 * time.Hour)
			}
			pass(time.Hour)
			tm.heals(over, "base", "tablet")
			if err := <-opened; err != nil {
				t.Error(err)
			}
			over.wantGoesOn(t, len(plan), breaks)
			tm.wantItems("tablet", "bia", "visit "+state)
			if err := tm.hand("tablet", "bia", visit, map[string]string{"weight": "3"}); err != nil {
				t.Error(err)
			}
			if in := tm.show("base", id); in.Data["weight"] != int64(3) || len(in.Incidents) > 0 {
				t.Errorf("weight is %v, and there are incidents: %+v", in.Data["weight"], in.Incidents)
			}
		})
	}
}

// While who holds a task is away as announced, everybody is told so, and until when: lists do not show what is free
// there as if it could be taken, and whoever asks for it is told what it waits for.
func TestWhatAnAbsentPartnerHoldsIsShownAsThat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := aWard(t, "crew:nurse")
		tm.add("base", "workflow: both\ntasks:\n  visit: {type: manual, role: nurse, offline: true}\n"+
			"  look: {type: manual, role: nurse, after: visit}\n"+
			"partitions: {ward: {tasks: [visit], partner: base}, van: {tasks: [look], partner: crew}}\n")
		id, visit := tm.rounds("both", nil)
		back := time.Now().Add(48 * time.Hour)
		c, err := tm.p["base"].api.Disconnect(t.Context(), api.DisconnectRequest{For: api.Span(48 * time.Hour)})
		if err != nil || c.State != api.IsDisconnected {
			t.Fatalf("%+v, %v", c, err)
		}
		pass(time.Minute)
		want := func(what string, a *api.Absence) {
			t.Helper()
			if a == nil || a.Partner != "base" || a.Until.Sub(back).Abs() > time.Minute || a.Since.IsZero() {
				t.Errorf("%s says %+v, want base until about %s", what, a, back)
			}
		}
		x := tm.items("tablet", "bia")[0]
		want("the list", x.Away)
		err = tm.claim("tablet", "bia", api.ClaimSelect, visit)
		wantCode(t, err, api.Refused, "base, who holds visit, is away as announced until about 2000-01-0")
		in := tm.show("crew", id)
		want("the task", in.Tasks[0].Away)
		if in.Tasks[1].Away != nil {
			t.Errorf("what waits for it is shown as %+v", in.Tasks[1].Away)
		}
		list, err := tm.p["crew"].api.Instances(t.Context(), false)
		if err != nil || len(list) != 1 || len(list[0].Away) != 1 {
			t.Fatalf("the instances are %+v, %v", list, err)
		}
		want("the list of instances", &list[0].Away[0])
		tm.comesBack("base", "tablet")
		if x := tm.items("tablet", "bia")[0]; x.Away != nil {
			t.Errorf("it is back, and %+v", x.Away)
		}
		if err := tm.claim("tablet", "bia", api.ClaimSelect, visit); err != nil {
			t.Error(err)
		}
	})
}
