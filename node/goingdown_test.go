package node_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/contingency/waits"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// guarded is a workflow in which b has a contingency and c waits for b.
const guarded = `
workflow: guarded
tasks:
  a: {}
  b: {after: a, type: manual, on-failure: {contingency: b2}}
  b2: {}
  c: {after: b, type: manual}
partitions:
  pa: [a]
  pb: [b]
  pc: [c]
`

// row is a partner in another's list.
func (tm *team) row(at, of string) api.Partner {
	tm.t.Helper()
	list, err := tm.p[at].api.Partners(tm.t.Context())
	if err != nil {
		tm.t.Fatal(err)
	}
	for _, p := range list {
		if p.Name == of {
			return p
		}
	}
	tm.t.Fatalf("%s does not list %s", at, of)
	return api.Partner{}
}

// finish has a person complete a task.
func (tm *team) finish(at, id string, task workflow.TaskName) {
	tm.t.Helper()
	if err := tm.p[at].api.FinishTask(tm.t.Context(), api.FinishRequest{ID: id, Task: task}); err != nil {
		tm.t.Fatal(err)
	}
	synctest.Wait()
}

// A node that stops and is back within its connectionTime has lost nothing:
// nobody judges what it holds, ready or not.
func TestRestartKeepsWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) { c.ConnectionTime = 20 * time.Second }, "one", "two", "three")
		tm.add("one", guarded)
		id := tm.begin("one", "guarded", map[string]string{"pa": "one", "pb": "two", "pc": "two"})
		for range 3 {
			began := time.Now()
			tm.p["two"].leave()
			for _, at := range []string{"one", "three"} {
				p := tm.row(at, "two")
				if p.State != "unreachable" || p.Reason != "going down" || p.Since == nil ||
					p.Since.Sub(began).Abs() > time.Second {
					t.Errorf("%s shows two as %s since %v (%s), want unreachable since %v (going down)", at, p.State,
						p.Since, p.Reason, began)
				}
			}
			pass(15 * time.Second)
			tm.p["two"].start()
			tm.connect("two", "one")
			tm.connect("two", "three")
			pass(30 * time.Second)
			if p := tm.row("one", "two"); p.State != "active" || p.Reason != "" {
				t.Errorf("two is back, and %s (%s) to one", p.State, p.Reason)
			}
			if b, c := tm.task("one", id, "b"), tm.task("one", id, "c"); b != workflow.Ready || c != workflow.NotReady {
				t.Fatalf("after a restart b is %s and c %s, want READY and NOT_READY:\n%s", b, c,
					lines(tm.log("one", id)))
			}
		}
		tm.finish("two", id, "b")
		tm.finish("two", id, "c")
		tm.succeeds(id, time.Minute, "one", "two")
		tm.once(id, []string{"a", "b", "c"}, "one", "two")
	})
}

// A node that does not come back is judged when its connectionTime has run out,
// not before and not later.
func TestGoingDownForTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) { c.ConnectionTime = 20 * time.Second }, "one", "two", "three")
		tm.add("one", guarded)
		id := tm.begin("one", "guarded", map[string]string{"pa": "one", "pb": "two", "pc": "one"})
		tm.p["two"].leave()
		pass(19 * time.Second)
		if s := tm.task("one", id, "b"); s != workflow.Ready {
			t.Errorf("before its connectionTime is over b is %s, want READY", s)
		}
		pass(2 * time.Second)
		if p := tm.row("one", "two"); p.State != "expired" || p.Reason != "not back within its connection time" {
			t.Errorf("two is %s (%s), want expired", p.State, p.Reason)
		}
		tm.finish("one", id, "c")
		tm.succeeds(id, time.Minute, "one")
		if in, err := tm.p["one"].api.Show(t.Context(), id); err != nil || in.Tasks[1].ReplacedBy == nil ||
			*in.Tasks[1].ReplacedBy != "b2" {
			t.Errorf("b2 does not stand in for b: %+v, %v", in, err)
		}
	})
}

// Nothing new is given to one that goes down, but what somebody gives it by hand.
func TestNoNewWorkForOneThatGoesDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) { c.ConnectionTime = 5 * time.Minute }, "one", "two", "three")
		const pick = `
workflow: NAME
distribution: {MECHANISM}
tasks:
  t: {type: manual, needs: [NEEDS]}
partitions:
  p: [t]
`
		for name, how := range map[string]string{"plain": "", "push": "mechanism: Push"} {
			text := strings.NewReplacer("NAME", name, "MECHANISM", how, "NEEDS", "is-two").Replace(pick)
			if how == "" {
				text = strings.Replace(text, "distribution: {}\n", "", 1)
			}
			tm.add("one", text)
		}
		tm.p["two"].leave()
		for _, name := range []string{"plain", "push"} {
			_, err := tm.p["one"].api.Start(t.Context(), api.StartRequest{Workflow: name})
			wantRefusal(t, "a start of "+name+" for which only two can be taken", err,
				"nobody can take it but two, which is going down")
		}
		id := tm.begin("one", "plain", map[string]string{"p": "two"})
		tm.p["two"].start()
		tm.connect("one", "two")
		pass(time.Second)
		tm.finish("two", id, "t")
		tm.succeeds(id, time.Minute, "one")
	})
}

// What an amendment adds to a partition is for its holder, also while that one goes down in good order or is away as it
// announced: it has the task when it is back. What it can have all the same does not move.
func TestAmendedWhileItsHolderIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, away := range []bool{false, true} {
			tm := newTeamOf(t, func(c *configs.Config) { c.ConnectionTime = time.Hour }, "one", "two", "three")
			const held = `
workflow: held
administrators: chief
tasks:
  walk: {type: manual, timeout: 5h}
  rest: {type: manual, timeout: 5h}
partitions:
  there: {tasks: [walk], partner: two}
  here:  {tasks: [rest], partner: one}
`
			tm.add("one", held)
			id := tm.begin("one", "held", nil)
			pass(time.Second)
			if away {
				_, err := tm.p["two"].api.Disconnect(t.Context(), api.DisconnectRequest{For: api.Span(10 * time.Minute)})
				if err != nil {
					t.Fatal(err)
				}
			} else {
				tm.p["two"].leave()
			}
			pass(time.Second)
			r := api.AmendRequest{ID: id, File: "held.yaml", User: "one", Source: strings.NewReplacer(
				"tasks: [walk], partner: two", "tasks: [walk, extra], roles: []", "tasks:\n", "tasks:\n  extra: {}\n",
			).Replace(held)}
			done, err := tm.p["one"].api.AmendInstance(t.Context(), r)
			if err != nil || strings.Contains(strings.Join(done.Lines, "\n"), "moves to") {
				t.Fatalf("away as announced: %v; amended: %+v, %v", away, done, err)
			}
			if away {
				tm.comesBack("two", "one")
			} else {
				tm.p["two"].start()
				tm.connect("two", "one")
				pass(time.Minute) // nobody waits for the result, so it travels with the next comparison
			}
			if x := tm.taskOf("one", id, "extra"); x.State != workflow.Succeeded || x.Partner != "two" {
				t.Errorf("away as announced: %v; it is %s at %s", away, x.State, x.Partner)
			}
		}
	})
}

// A coordinator that goes down gives its office up: nobody waits for its lease, and
// a node that is configured to stands at once.
func TestCoordinatorThatGoesDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) { c.ConnectionTime = 5 * time.Minute }, "one", "two", "three")
		tm.electorate("one", "two", "three")
		three := tm.p["three"]
		three.crash()
		three.adjust = func(c *configs.Config) { c.ConnectionTime = 5 * time.Minute; c.Candidate = true }
		pass(10 * time.Minute)
		if _, err := tm.p["one"].api.Elect(t.Context(), api.ElectRequest{}); err != nil {
			t.Fatal(err)
		}
		three.start()
		tm.connect("one", "three")
		tm.connect("two", "three")
		pass(10 * time.Minute)
		tm.wantCoordinator("one", "two", "three")
		tm.p["one"].leave()
		tm.wantCoordinator("", "two", "three")
		pass(time.Minute) // of a lease of five
		tm.wantCoordinator("three", "two", "three")
	})
}

// A coordinator that dies without anybody noticing, as on a link that swallows all,
// holds a hand-over up for less than a guardian-timeout, however long its lease and
// however seldom partners give signs of life: also where it has acknowledged what it
// then hands on to nobody.
func TestHandOverPastADeadCoordinator(t *testing.T) {
	t.Run("before it acknowledges", func(t *testing.T) {
		handOverPastTheDead(t, func(one, from, to workflow.PartnerID, _ *wire.Message) bool {
			return from == one || to == one
		})
	})
	t.Run("when it has acknowledged", func(t *testing.T) {
		handOverPastTheDead(t, func(one, from, _ workflow.PartnerID, m *wire.Message) bool {
			acknowledges := func(h wire.Heads) bool { return h.Mode == wire.Acknowledge }
			return from == one && !slices.ContainsFunc(m.Heads, acknowledges)
		})
	})
}

func handOverPastTheDead(t *testing.T, lost func(one, from, to workflow.PartnerID, m *wire.Message) bool) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) { c.ConnectionTime = 10 * time.Minute }, "one", "two", "three")
		tm.add("one", `
workflow: handed
coordination: orchestration
tasks:
  a: {type: manual}
  b: {after: a, type: manual}
  c: {after: b, type: manual}
  d: {after: c, type: manual}
  e: {after: d, type: manual}
  f: {after: e}
partitions:
  pa: [a]
  pb: [b]
  pc: [c]
  pd: [d]
  pe: [e]
  pf: [f]
`)
		pass(15 * time.Minute) // a voter waits for a lease after a start
		if _, err := tm.p["one"].api.Elect(t.Context(), api.ElectRequest{}); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		id := tm.begin("one", "handed", map[string]string{
			"pa": "two", "pb": "three", "pc": "two", "pd": "three", "pe": "two", "pf": "three",
		})
		pass(time.Minute)
		one := tm.p["one"].id()
		tm.f.losing(func(from, to workflow.PartnerID, m *wire.Message) bool { return lost(one, from, to, m) })
		tm.wantCoordinator("one", "two", "three")
		at, to := "two", "three"
		for _, x := range []struct{ done, next workflow.TaskName }{
			{"a", "b"}, {"b", "c"}, {"c", "d"}, {"d", "e"}, {"e", "f"},
		} {
			began := time.Now()
			tm.finish(at, id, x.done)
			for tm.task(to, id, x.next) == workflow.NotReady {
				if time.Since(began) >= waits.GuardianTimeout {
					t.Fatalf("%s at %s does not go on %s after %s", x.next, to, waits.GuardianTimeout, x.done)
				}
				pass(100 * time.Millisecond)
			}
			t.Logf("%s after %s", x.next, time.Since(began))
			at, to = to, at
			pass(7 * time.Second) // so that partners compare at other moments
		}
		tm.succeeds(id, waits.GuardianTimeout, "three")
	})
}

// Who takes nothing new on goes on with what it has, also after a restart: a person's task that it was given by
// hand, and that nobody has begun, stays with it.
func TestRestartOfOneThatTakesNothingKeepsItsWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base", "ana:rescuer", "bia:rescuer")
		tm.add("base", strings.NewReplacer(", suitability: {ana: 0.9, bia: 1.0, cai: 0.8}", "", ", partner: base", "").
			Replace(rescue))
		id := tm.begin("base", "rescue", map[string]string{"plan": "ana"})
		ana := tm.p["ana"]
		none := 0.0
		tm.profile("ana", api.ProfileChange{Availability: &none})
		ana.leave()
		pass(4 * time.Second)
		ana.start()
		tm.connect("ana", "base")
		tm.connect("ana", "bia")
		pass(time.Minute)
		if x := tm.show("base", id).Tasks[0]; x.Partner != "ana" || x.State != workflow.Ready {
			t.Errorf("after a restart of ana the search is %s at %s, want READY at ana:\n%s", x.State, x.Partner,
				lines(tm.log("base", id)))
		}
	})
}
