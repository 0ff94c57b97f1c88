package node_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// held is a workflow of which the middle partition has one task that runs, one that is
// ready, one that waits, and one that only two can do.
const heldByTwo = `
workflow: held
tasks:
  a: {}
  runs:  {after: a}
  ready: {after: a, type: manual}
  waits: {after: ready, type: manual}
  own:   {after: a, type: manual, needs: [is-two]}
  end:   {after: [runs, ready, waits]}
partitions:
  pa: [a, end]
  pb: [runs, ready, waits, own]
`

// leaveNode has a partner leave.
func (tm *team) leaveNode(at string, forGood bool) (*api.Leaving, error) {
	tm.t.Helper()
	l, err := tm.p[at].api.Leave(tm.t.Context(), api.LeaveRequest{ForGood: forGood})
	synctest.Wait()
	return l, err
}

// gone waits until a partner's node has ended by itself.
func (p *partner) gone() {
	p.t.Helper()
	select {
	case err := <-p.done:
		if err != nil {
			p.t.Errorf("%s: %v", p.name, err)
		}
		p.done <- nil
	case <-time.After(time.Minute):
		p.t.Fatalf("%s did not go within a minute", p.name)
	}
	synctest.Wait()
	p.f.unplug(p.plug)
	p.node, p.api = nil, nil
}

// A node that leaves gives on what it has not begun, says what stays, goes on with that,
// and goes when it is done. Nobody judges anything. Started again, it is a partner as
// before.
func TestLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) { c.ConnectionTime = time.Minute }, "one", "two", "three")
		two := tm.p["two"]
		two.hand.hold("runs")
		tm.add("one", heldByTwo)
		id := tm.begin("one", "held", map[string]string{"pa": "one", "pb": "two"})
		l, err := tm.leaveNode("two", false)
		if err != nil {
			t.Fatal(err)
		}
		given := map[workflow.TaskName]string{}
		for _, g := range l.Given {
			given[g.Task] = g.Partner
		}
		stays := map[workflow.TaskName]bool{}
		for _, s := range l.Stays {
			stays[s.Task] = true
		}
		if len(given) != 2 || given["ready"] == "" || given["ready"] != given["waits"] || given["ready"] == "two" ||
			len(stays) != 2 || !stays["runs"] || !stays["own"] || l.Left {
			t.Fatalf("two leaves: %+v; want ready and waits given to one partner, runs and own to stay", l)
		}
		if p := tm.row("one", "two"); p.State != "active" {
			t.Errorf("two goes on with what stays, and is %s to one", p.State)
		}
		// It takes nothing new on.
		wantRefusal(t, "a partition for the partner that leaves", func() error {
			_, err := tm.p["one"].api.Start(t.Context(), api.StartRequest{Workflow: "held"})
			return err
		}(), "two")
		tm.finish(given["ready"], id, "ready")
		tm.finish("two", id, "own")
		pass(5 * time.Minute)
		if s := tm.task("one", id, "runs"); s != workflow.Running {
			t.Errorf("what has begun at two is %s, want RUNNING", s)
		}
		two.hand.letGo(t, "runs")
		two.gone()
		for _, at := range []string{"one", "three"} {
			if p := tm.row(at, "two"); p.State != "left" || p.Reason != "in good order" {
				t.Errorf("two has left, and is %s (%s) to %s", p.State, p.Reason, at)
			}
		}
		pass(5 * time.Minute)
		tm.finish(given["ready"], id, "waits")
		tm.succeeds(id, time.Minute, "one", given["ready"])
		tm.once(id, []string{"a", "runs", "ready", "waits", "own", "end"}, "one", given["ready"])

		two.start()
		tm.connect("one", "two")
		tm.connect("two", "three")
		pass(time.Second)
		if p := tm.row("one", "two"); p.State != "active" {
			t.Errorf("two is up again, and %s to one", p.State)
		}
		tm.begin("one", "held", nil)
	})
}

// Killed while it leaves, or stopped, a node is a partner as before: what it gave on is
// given on, what stayed is there.
func TestLeaveTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) { c.ConnectionTime = time.Minute }, "one", "two", "three")
		two := tm.p["two"]
		two.hand.hold("runs")
		tm.add("one", heldByTwo)
		id := tm.begin("one", "held", map[string]string{"pa": "one", "pb": "two"})
		for _, end := range []func(){two.crash, two.leave} {
			if _, err := tm.leaveNode("two", false); err != nil {
				t.Fatal(err)
			}
			end()
			two.start()
			tm.connect("one", "two")
			tm.connect("two", "three")
			pass(time.Minute)
			if p := tm.row("one", "two"); p.State != "active" {
				t.Fatalf("two is up again, and %s to one", p.State)
			}
			if s := tm.task("one", id, "runs"); s != workflow.Running {
				t.Fatalf("what two had begun is %s, want RUNNING", s)
			}
		}
	})
}

// Out of everybody's reach nothing can be given on: all stays, until somebody is there.
func TestLeaveAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) { c.ConnectionTime = time.Hour }, "one", "two", "three")
		tm.add("one", guarded)
		id := tm.begin("one", "guarded", map[string]string{"pa": "one", "pb": "two", "pc": "two"})
		tm.cut([]string{"two"}, []string{"one", "three"})
		l, err := tm.leaveNode("two", false)
		if err != nil || l.Left || len(l.Given) > 0 || len(l.Stays) != 2 {
			t.Fatalf("two leaves alone: %+v, %v; want b and c to stay", l, err)
		}
		pass(10 * time.Minute)
		tm.connect("one", "two")
		tm.p["two"].gone()
		if s := tm.task("one", id, "b"); s != workflow.Ready {
			t.Errorf("b is %s at one, want READY: it was given on", s)
		}
	})
}

// A node that leaves for good is out: its node does not start again, no later word of
// its key counts, its name is free, and nobody waits for it. The founder, and voters, do
// not.
func TestLeaveForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) { c.ConnectionTime = time.Minute }, "one", "two", "three")
		tm.electorate("one", "two")
		_, err := tm.leaveNode("one", true)
		wantRefusal(t, "the founder leaving for good", err, "the founder does not leave")
		pass(5 * time.Minute)
		_, err = tm.leaveNode("two", true)
		wantRefusal(t, "a voter leaving for good", err, "this node may vote")
		tm.electorate("one", "three")
		pass(5 * time.Minute)

		tm.add("one", guarded)
		id := tm.begin("one", "guarded", map[string]string{"pa": "one", "pb": "two", "pc": "two"})
		two := tm.p["two"]
		l, err := tm.leaveNode("two", true)
		if err != nil || !l.Left || !l.ForGood || len(l.Given) != 2 {
			t.Fatalf("two leaves for good: %+v, %v", l, err)
		}
		to := l.Given[0].Partner
		two.gone()
		for _, at := range []string{"one", "three"} {
			if p := tm.row(at, "two"); p.State != "left" || p.Reason != "for good" {
				t.Errorf("two left for good, and is %s (%s) to %s", p.State, p.Reason, at)
			}
		}
		m, err := node.LoadMember(two.dir)
		if err != nil {
			t.Fatal(err)
		}
		_, err = node.New(node.Parts{
			Member: m, Config: configs.Default(configs.Local), Store: two.disk, Runner: two.hand, Clock: bubbleClock{},
			Version: "test",
		})
		if !errors.Is(err, node.ErrLeft) {
			t.Errorf("two's node starts again: %v, want ErrLeft", err)
		}
		tm.finish(to, id, "b")
		tm.finish(to, id, "c")
		tm.succeeds(id, time.Minute, "one", to)

		inv, err := tm.p["one"].api.Invite(t.Context(), api.InviteRequest{})
		if err != nil {
			t.Fatal(err)
		}
		again := tm.newcomer("two")
		if err := tm.join(again, inv.Token); err != nil {
			t.Errorf("the name of the partner that left for good is not free: %v", err)
		}
	})
}

// Where a coordinator hands on, who leaves tells all that can be reached itself: a coordinator
// that hands nothing on (it may be one in name only) has nobody judge what was given on.
func TestLeaveBesideACoordinatorThatHandsNothingOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) { c.ConnectionTime = time.Minute }, "one", "two", "three")
		tm.add("one", `
workflow: handed
coordination: orchestration
tasks:
  a: {type: manual, on-failure: {contingency: c}}
  b: {after: a, type: manual}
  c: {type: manual}
partitions:
  pa: [a]
  pb: [b]
  pc: [c]
`)
		pass(5 * time.Minute)
		tm.elect("one")
		pass(time.Minute)
		id := tm.begin("one", "handed", map[string]string{"pa": "two", "pb": "two", "pc": "three"})
		pass(time.Minute)
		tm.wantCoordinator("one", "two", "three")
		one := tm.p["one"].id()
		tm.f.losing(func(from, _ workflow.PartnerID, m *wire.Message) bool { return from == one && len(m.Facts) > 0 })
		if _, err := tm.leaveNode("two", false); err != nil {
			t.Fatal(err)
		}
		tm.p["two"].gone()
		pass(20 * time.Second) // less than after which partners compare what they have
		for _, at := range []string{"one", "three"} {
			for _, task := range tm.show(at, id).Tasks {
				if task.Name == "a" && (task.State != workflow.Ready || task.Partner == "two") {
					t.Errorf("to %s a is %s at %s: want READY where two gave it", at, task.State, task.Partner)
				}
				if task.Name == "c" && task.State == workflow.Ready {
					t.Errorf("to %s c stands in for a, which was given on", at)
				}
			}
		}
	})
}
