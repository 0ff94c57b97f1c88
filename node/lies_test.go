package node_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// What a member may see, and what it can say that is not true (docs/security.md).

// tellsOf reports whether partners were sent facts of an instance since a moment.
func (tm *team) tellsOf(id, to string, since int) bool {
	of, at := instance(tm.t, id), tm.p[to].id()
	return len(tm.f.sent(func(c carried) bool {
		return c.to == at && c.sent >= since &&
			slices.ContainsFunc(c.m.Facts, func(f wire.Facts) bool { return f.Instance == of })
	})) > 0
}

// All who take part see all data of an instance, whatever their tasks need, also when they
// have done all of theirs. Who takes no part sees nothing and is sent nothing; and who is
// evicted sees nothing more.
func TestParticipantsSeeAllDataAndOthersNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "ana", "bea", "mal", "out")
		tm.add("ana", `
workflow: secret
data: {x: {type: string}, y: {type: string}}
tasks:
  first:  {type: manual, out: [x]}
  second: {after: first, type: manual, out: [x, y]}
  wash:   {type: manual}
partitions: {pa: [first], pb: [second], pm: [wash]}
`)
		id := tm.begin("ana", "secret", map[string]string{"pa": "ana", "pb": "bea", "pm": "mal"})
		tm.finish("mal", id, "wash")
		write := func(by string, task workflow.TaskName, out map[string]string) {
			t.Helper()
			if err := tm.p[by].api.FinishTask(t.Context(),
				api.FinishRequest{ID: id, Task: task, Outputs: out}); err != nil {
				t.Fatal(err)
			}
			pass(10 * time.Minute)
		}
		write("ana", "first", map[string]string{"x": "where it is"})
		if got := tm.show("mal", id).Data["x"]; got != "where it is" {
			t.Errorf("mal takes part, and x is %v to it", got)
		}
		if _, err := tm.p["out"].api.Show(t.Context(), id); err == nil || tm.tellsOf(id, "out", 0) {
			t.Errorf("out takes no part, is told of it: %t, and shows it: %v", tm.tellsOf(id, "out", 0), err)
		}
		_, err := tm.ask("out", "ana", wire.Look{Instance: instance(t, id)})
		wantRefusal(t, "a look by out", err, "only the coordinator and participants")
		tm.expel("ana", "mal")
		pass(time.Minute)
		evicted := elapsed()
		write("bea", "second", map[string]string{"x": "where it went", "y": "who has it"})
		if got := tm.show("mal", id).Data; got["x"] != "where it is" || got["y"] != nil ||
			tm.tellsOf(id, "mal", evicted) {
			t.Errorf("after its eviction mal has %v", got)
		}
	})
}

// False reports to the coordinator change what its list says, with the name of whoever
// reported, and nothing else: neither the instance, nor what others show of it.
func TestFalseReportsChangeNoInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three", "mal")
		tm.add("two", chain)
		tm.p["three"].hand.hold("b")
		id := tm.begin("two", "chain", map[string]string{"pa": "two", "pb": "three", "pc": "two"})
		tm.elect("one")
		pass(2 * time.Second)
		tm.wantOverview("one", id, "running 1/3 [three] by three(active) two(active)")
		before := lines(tm.log("two", id))
		lie := wire.Report{
			Instance: instance(t, id), Workflow: "chain", Version: 1, State: workflow.InstanceFailed,
			Started: time.Now().UnixMilli(),
			Facts:   0, Done: 3, Tasks: 3, At: []workflow.PartnerID{tm.p["mal"].id()}, // 0: there will be no more
		}
		madeUp := lie
		madeUp.Instance = workflow.InstanceID{1, 2, 3}
		tm.p["mal"].say(tm.p["one"], &wire.Message{Reports: []wire.Report{lie, madeUp}})
		tm.wantOverview("one", id, "failed 3/3 [mal] by mal(active) three(active) two(active)")
		tm.wantOverview("one", madeUp.Instance.String(), "failed 3/3 [mal] by mal(active)")
		if in := tm.show("one", id); in.State != workflow.InstanceRunning || in.Told == nil ||
			in.Told.By.Name == "mal" {
			t.Errorf("one is shown %s, by %+v; want that it runs, by who takes part", in.State, in.Told)
		}
		if in := tm.show("one", madeUp.Instance.String()); in.Told == nil || !in.Told.Summary ||
			in.Told.By.Name != "mal" {
			t.Errorf("what mal made up is shown as %+v", in.Told)
		}
		if now := lines(tm.log("two", id)); now != before || tm.state("two", id) != workflow.InstanceRunning ||
			tm.running("three") != 1 {
			t.Errorf("the instance changed by reports:\n%s\nbefore:\n%s", now, before)
		}
		tm.p["three"].hand.letGo(t, "b")
		tm.succeeds(id, time.Minute, "two", "three")
		tm.once(id, []string{"a", "b", "c"}, "two", "three")
	})
}

// A false profile attracts work, and what it says of data sets is taken for true where it
// has the right types. It gives no role: that is in the certificate.
func TestAFalseProfileAttractsWorkAndGivesNoRole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "ana:medic", "bea", "mal")
		tm.add("ana", `
workflow: aid
data: {map: {type: string}}
tasks:
  draw:  {type: manual, needs: [drone], out: [map], produces: flood-map}
  carry: {after: draw, in: [map], needs: [truck]}
  treat: {type: manual, role: medic}
partitions: {air: [draw], road: [carry], doctor: [treat]}
`)
		whole, little := 1.0, 0.1
		tm.profile("ana", api.ProfileChange{Suitability: map[string]float64{"treat": little}, Availability: &little})
		tm.profile("bea", api.ProfileChange{
			Capabilities: &[]string{"truck", "drone"}, Suitability: map[string]float64{"carry": 0.9},
		})
		start := func() (*api.Started, map[string]string) {
			t.Helper()
			st, err := tm.p["ana"].api.Start(t.Context(), api.StartRequest{Workflow: "aid", Mechanism: "Push"})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			at := map[string]string{}
			for _, p := range tm.show("ana", st.ID).Partitions {
				at[string(p.Name)] = p.Partner
			}
			return st, at
		}
		if _, at := start(); at["road"] != "bea" || at["air"] != "bea" {
			t.Fatalf("before anybody lies the work is at %v", at)
		}
		tm.profile("mal", api.ProfileChange{
			Capabilities: &[]string{"truck", "drone", "medic"}, Availability: &whole,
			Suitability: map[string]float64{"carry": 1, "treat": 1, "medic": 1, "draw": 1},
		})
		if _, err := tm.p["mal"].api.AddData(t.Context(), "flood-map", []byte("all is dry"),
			api.DataTerms{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		st, at := start()
		treat := tm.taskOf("ana", st.ID, "treat")
		if at["road"] != "mal" || treat.Partner != "ana" {
			t.Errorf("carry is at %s, treat at %s; want mal, which says what it likes, and ana, which has the role",
				at["road"], treat.Partner)
		}
		if treat.Why == nil || len(treat.Why.Candidates) != 1 {
			t.Errorf("the candidates for the treatment are %+v, want ana alone", treat.Why)
		}
		if got := tm.show("ana", st.ID).Data["map"]; tm.taskOf("ana", st.ID, "draw").Dropped == nil ||
			got != "all is dry" {
			t.Errorf("of mal's data set nothing is taken: the map is %v", got)
		}
		if roles := tm.row("ana", "mal").Roles; len(roles) > 0 {
			t.Errorf("mal is listed with the roles %v", roles)
		}
		given := tm.begin("ana", "aid", map[string]string{"air": "bea", "road": "bea", "doctor": "mal"})
		err := tm.p["mal"].api.FinishTask(t.Context(), api.FinishRequest{ID: given, Task: "treat"})
		if treats := tm.taskOf("ana", given, "treat").Partner; treats != "ana" || err == nil {
			t.Errorf("where mal was given the work by hand %s treats; mal finishes it: %v", treats, err)
		}
	})
}

// A member sees the partner list, with names, roles and addresses, and all workflows, with
// who listed them. An eviction ends that: it hears of nothing that comes after.
func TestAMemberSeesThePartnerListUntilItsEviction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "ana:medic", "bea:diver", "mal")
		tm.add("bea", chain)
		for _, name := range []string{"ana", "bea"} {
			of, at := tm.row("mal", name), tm.row(name, name)
			if of.ID != tm.p[name].id() || !slices.Equal(of.Roles, at.Roles) || len(of.Roles) != 1 ||
				!slices.Equal(of.Addresses, []string{"at " + name}) || of.State != "active" {
				t.Errorf("mal sees of %s %+v", name, of)
			}
		}
		if ws, err := tm.p["mal"].api.Workflows(t.Context()); err != nil || len(ws) != 1 || ws[0].Author != "bea" {
			t.Errorf("mal sees the workflows %+v, %v", ws, err)
		}
		tm.expel("ana", "mal")
		pass(time.Minute)
		evicted := elapsed()
		tm.welcome("ana", "new", api.InviteRequest{Roles: []string{"pilot"}}, "ana", "bea")
		tm.p["bea"].plug.addrs = []string{"elsewhere"}
		tm.add("ana", strings.Replace(chain, "workflow: chain", "workflow: later", 1))
		tm.profile("bea", api.ProfileChange{Capabilities: &[]string{"new-boat"}})
		pass(time.Hour)
		if s := tm.partnerState("bea", "new"); s != "active" ||
			!slices.Contains(tm.row("ana", "bea").Addresses, "elsewhere") {
			t.Fatalf("new is %s to bea, whom ana lists as %+v: the test shows nothing", s, tm.row("ana", "bea"))
		}
		if s := tm.partnerState("mal", "new"); s != "unknown" ||
			slices.Contains(tm.row("mal", "bea").Addresses, "elsewhere") {
			t.Errorf("after its eviction mal lists new as %s, and bea as %+v", s, tm.row("mal", "bea"))
		}
		tm.wantListed("bea", 2)
		tm.wantListed("mal", 1)
		told := tm.f.sent(func(c carried) bool { return c.to == tm.p["mal"].id() && c.sent > evicted })
		if len(told) > 0 {
			t.Errorf("after its eviction mal is sent %d messages", len(told))
		}
	})
}

// A role is lent by doing in its own name what a friend says, or by giving the key away:
// what the friend does under its own name does not count, though the holder passes the
// task on to it and lends it the certificate.
func TestARoleCannotBeLent(t *testing.T) {
	for _, by := range []string{"own name", "lent certificate", "key"} {
		synctest.Test(t, func(t *testing.T) {
			tm := newTeam(t, "ana:medic", "bea", "mal")
			tm.add("bea", `
workflow: aid
data: {dose: {type: integer}}
tasks:
  treat: {type: manual, role: medic, out: [dose]}
  carry: {after: treat, type: manual}
  wash:  {type: manual}
partitions: {doctor: [treat], crew: [carry], base: [wash]}
`)
			id := tm.begin("bea", "aid", map[string]string{"doctor": "ana", "crew": "bea", "base": "mal"})
			ana, mal := tm.forger("ana", id), tm.forger("mal", id)
			genesis := tm.headSent(ana.id)
			first := fact.AttemptID{Slot: "treat"}
			does := func(l *forger, a fact.AttemptID, knew fact.Head, shows trust.Chain) {
				l.says("bea", knew, fact.Body{
					Start: &fact.Start{Attempt: a, Try: 1}, Credentials: trust.EncodeChain(shows),
				})
				outputs := map[workflow.DataName]workflow.Value{"dose": int64(9)}
				l.says("bea", knew, fact.Body{Success: &fact.Success{Attempt: a, Try: 1, Outputs: outputs}})
			}
			who := ""
			switch by {
			case "key":
				ana.via = tm.p["mal"] // mal has a copy of it
				does(ana, first, genesis, ana.key.Chain)
				who = "ana"
			default:
				passed := ana.says("bea", genesis,
					fact.Body{Assign: &fact.Assign{After: first, Task: "treat", Partner: mal.p.id()}})
				shows := mal.key.Chain
				if by == "lent certificate" {
					shows = ana.key.Chain
				}
				does(mal, fact.AttemptID{Fact: passed, Slot: "treat"},
					fact.Head{Chain: ana.chain, Seq: 1, ID: passed}, shows)
			}
			done := ""
			entries, err := tm.p["bea"].api.Log(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if e.Succeeds() && e.Counted {
					done = e.Author
				}
			}
			if got := tm.show("bea", id).Data["dose"]; done != who || (got != nil) != (who != "") {
				t.Errorf("by its %s mal has the treatment counted as that of %q, dose %v; want %q", by, done, got, who)
			}
		})
	}
}
