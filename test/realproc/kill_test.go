package realproc_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/test/sample"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// randomly is a source of chance whose seed is told, and can be given.
func randomly(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	if text := os.Getenv("MUTIRAO_SEED"); text != "" {
		if _, err := fmt.Sscan(text, &seed); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("MUTIRAO_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func milliseconds(rnd *rand.Rand, most int) time.Duration {
	return time.Duration(rnd.IntN(most)) * time.Millisecond
}

// The eleven tasks run over three processes that are killed at any moment, also
// two at a time, and started again at once or after a while.
func TestKilledAtRandom(t *testing.T) {
	t.Parallel()
	rnd := randomly(t)
	tm := newTeam(t, "one", "two", "three")
	tm.workflow(elevenOf(15 * time.Millisecond))
	for round := range sample.Of(10, 200) {
		id := tm.begin("eleven", acrossThree)
		for range 1 + rnd.IntN(3) {
			<-time.After(milliseconds(rnd, 200))
			victims := slices.Clone(tm.ps)
			rnd.Shuffle(len(victims), func(i, j int) { victims[i], victims[j] = victims[j], victims[i] })
			victims = victims[:1+rnd.IntN(2)]
			pause := time.Duration(0)
			if rnd.IntN(2) == 0 {
				pause = milliseconds(rnd, 300)
			}
			all(victims, func(p *proc) {
				p.kill()
				<-time.After(pause)
				p.start()
			})
		}
		tm.succeeded(id, elevenTasks...)
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
}

// crashPoint is a moment at which a node kills itself.
type crashPoint struct {
	node string
	at   string
	n    int
}

func (c crashPoint) String() string { return fmt.Sprintf("%s %s:%d", c.node, c.at, c.n) }

// load is what the nodes do while one of them is killed.
type load struct {
	name, source string // of the workflow
	assign       map[string]string
	ended        func(tm *team, id string) // waits for the end of an instance, and checks it
	ready        func(tm *team)            // what is to be done once, before the first instance; nil: nothing
	look         func(tm *team, id string) // does what there is to do on the way, and notes what nodes show; nil: nothing
}

// eleven is the load of the eleven tasks.
func eleven(source string) load {
	return load{name: "eleven", source: source, assign: acrossThree, ended: func(tm *team, id string) {
		tm.succeeded(id, elevenTasks...)
	}}
}

// Every node is killed before and after each of its commits and each of its
// sends, from its start to the end of the instance: of tasks that run for a while, of tasks
// whose start and success are one fact, of tasks that repeat as the data say, and of such that workers do, with a
// failure after which an administrator orders steps of recovery.
func TestKilledAtEveryWrite(t *testing.T) {
	for _, c := range []struct {
		name  string
		load  load
		few   int // points, where not all are tried
		teams int // that share the points
		nodes []string
	}{
		{"started and ended", eleven(elevenOf(time.Millisecond)), 40, 1, []string{"one", "two", "three"}},
		{"done at once", eleven(elevenWith("application: noop")), 12, 1, []string{"one", "two", "three"}},
		{"driven by data", load{
			name: "counting", source: counting, assign: map[string]string{"main": "two"},
			ended: (*team).counted, look: (*team).look,
		}, 12, 1, []string{"one", "two"}},
		{"done by workers and recovered", load{
			name: "weighing", source: weighing, assign: map[string]string{"main": "two"}, ready: (*team).hire,
			ended: (*team).weighed, look: (*team).weigh,
			// A worker that has not heard that it was given a job has a minute to come back for it.
		}, 4, 4, []string{"one", "two"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			killedAtEveryWrite(t, c.load, c.few, c.teams, c.nodes)
		})
	}
}

// counting is a flow that comes to its end in nine transitions, some of which run beside each other.
const counting = `
workflow: counting
data: {n: {type: integer, default: 0}, a: {type: integer}, b: {type: integer}}
tasks:
  left: {when: n < 3 and (a == null or a < n), repeat: true, application: set, with: {a: n}, out: [a]}
  right: {when: n < 3 and (b == null or b < n), repeat: true, application: set, with: {b: n}, out: [b]}
  step: {when: n < 3 and a == n and b == n, repeat: true, application: set, with: {n: n + 1}, out: [n]}
final: n == 3
partitions: {main: [left, right, step]}
`

// counted waits until an instance of counting has ended at both nodes, which have the same history then: each state once,
// made from the one before, and at first those that a node showed before it was killed.
func (tm *team) counted(id string) {
	tm.t.Helper()
	for _, p := range tm.ps {
		until(tm.t, p.name+" has the end of "+id, patience, func() bool { return p.state(id) == workflow.InstanceSucceeded })
	}
	until(tm.t, "the histories of "+id+" are equal", patience, func() bool {
		return slices.Equal(tm.ps[0].history(id), tm.ps[1].history(id))
	})
	states, err := tm.ps[0].client.History(context.Background(), id)
	if err != nil {
		tm.t.Fatal(err)
	}
	done := map[workflow.TaskName]int{}
	for i, s := range states {
		switch {
		case s.State == nil || *s.State != i || s.Mark != "" || i > 0 && *s.Input != i-1:
			tm.t.Errorf("record %d is %+v, want state %d, made from the one before", i, s, i)
		case i > 0:
			done[*s.Transition]++
		}
	}
	if len(states) != 10 || done["left"] != 3 || done["right"] != 3 || done["step"] != 3 {
		tm.t.Errorf("there are %d states, by %v", len(states), done)
	}
	tm.goesOn(id)
}

// goesOn checks that each node shows at first what it showed before one was killed, and then what came after it.
func (tm *team) goesOn(id string) {
	tm.t.Helper()
	for _, p := range tm.ps {
		if now := p.history(id); len(now) < len(p.shown) || !slices.Equal(now[:len(p.shown)], p.shown) {
			tm.t.Errorf("%s showed %q before somebody was killed, and now %q", p.name, p.shown, now)
		}
	}
	if tm.t.Failed() {
		tm.t.Log(tm.tell(id))
	}
}

// history is what a node shows of the states of an instance, a line for each, without the marks, which come later; nil:
// it cannot be told.
func (p *proc) history(id string) (out []string) {
	states, err := p.client.History(context.Background(), id)
	if err != nil {
		return nil
	}
	for i, s := range states {
		out = append(out, fmt.Sprintf("%d %s %v %v", i, s.Kind, s.Attributes, s.Ended))
	}
	return out
}

func killedAtEveryWrite(t *testing.T, x load, few, teams int, nodes []string) {
	rnd := randomly(t)
	var points []crashPoint
	t.Run("never", func(t *testing.T) { points = newTeamFor(t, x, nodes).crashPoints(x) })
	// Counted while no other load is on: who has more to wait for sends more, and points beyond the end are not reached.
	t.Parallel()
	t.Logf("%d crash points", len(points))
	if !sample.Whole() {
		rnd.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
		points = points[:min(len(points), few)]
	}
	reached := make([]int, teams) // by team
	t.Run("team", func(t *testing.T) {
		for i := range teams {
			t.Run(strconv.Itoa(i+1), func(t *testing.T) {
				t.Parallel()
				tm := newTeamFor(t, x, nodes)
				for n := i; n < len(points); n += teams {
					if tm.crashAt(x, points[n]) {
						reached[i]++
					}
					if t.Failed() {
						t.Fatal("killed at ", points[n])
					}
				}
			})
		}
	})
	sum := 0
	for _, n := range reached {
		sum += n
	}
	t.Logf("%d of %d points were reached", sum, len(points))
	if sum < len(points)/2 {
		t.Errorf("only %d of %d crash points were reached", sum, len(points))
	}
}

// newTeamFor is a team that is ready for a load.
func newTeamFor(t *testing.T, x load, nodes []string) *team {
	t.Helper()
	tm := newTeam(t, nodes...)
	tm.workflow(x.source)
	if x.ready != nil {
		x.ready(tm)
	}
	return tm
}

// crashPoints counts what each node does in a run without a crash.
func (tm *team) crashPoints(x load) []crashPoint {
	tm.t.Helper()
	var out []crashPoint
	for _, p := range tm.ps {
		p.kill()
		p.launch(countOnly)
		if !p.ready() {
			tm.t.Fatal(p.stderr())
		}
		tm.together()
		tm.hands = hands{}
		x.ended(tm, tm.begin(x.name, x.assign))
		p.kill()
		p.start()
		for file, ats := range map[string][]string{
			commitsFile: {beforeCommit, afterCommit}, sendsFile: {beforeSend, afterSend},
		} {
			b, err := os.ReadFile(filepath.Join(p.dir, file))
			var n int
			if err == nil {
				_, err = fmt.Sscan(string(b), &n)
			}
			if err != nil {
				tm.t.Fatal(err)
			}
			for _, at := range ats {
				for i := range n {
					out = append(out, crashPoint{p.name, at, i + 1})
				}
			}
		}
	}
	return out
}

// crashAt runs an instance with a node that dies at a point, and is started
// again. It reports whether it came to that.
func (tm *team) crashAt(x load, c crashPoint) (reached bool) {
	tm.t.Helper()
	all(tm.ps, func(p *proc) { p.shown = nil })
	tm.hands = hands{}
	p := tm.node(c.node)
	p.kill()
	p.launch(fmt.Sprintf("%s:%d", c.at, c.n))
	started := p.ready()
	id := ""
	if started {
		id = tm.tryBegin(x, p)
		for id != "" && !p.hasExited() && !tm.doneEverywhere(id) {
			<-time.After(5 * time.Millisecond)
			if x.look != nil {
				x.look(tm, id)
			}
		}
	}
	reached = p.hasExited()
	p.kill()
	p.start()
	if id == "" {
		id = tm.begin(x.name, x.assign)
	}
	x.ended(tm, id)
	return reached
}

// look notes what each node shows of the states of an instance.
func (tm *team) look(id string) {
	for _, p := range tm.ps {
		if now := p.history(id); now != nil {
			p.shown = now
		}
	}
}

// tryBegin starts an instance. If the first node dies over it, the instance is
// there when that is back, or not at all: "".
func (tm *team) tryBegin(x load, mortal *proc) string {
	tm.t.Helper()
	st, err := tm.ps[0].client.Start(context.Background(), api.StartRequest{Workflow: x.name, Assign: x.assign})
	if err == nil {
		return st.ID
	}
	select {
	case <-mortal.exited:
	case <-time.After(10 * time.Second):
		tm.t.Fatalf("start: %v, and %s lives", err, mortal.name)
	}
	return ""
}

func (tm *team) doneEverywhere(id string) bool {
	return !slices.ContainsFunc(tm.ps, func(p *proc) bool { return p.state(id) != workflow.InstanceSucceeded })
}
