package realproc_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// rounds is how often something random is tried.
func rounds(short, long int) int {
	if os.Getenv(longEnv) != "" {
		return long
	}
	return short
}

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
	rnd := randomly(t)
	tm := newTeam(t, "one", "two", "three")
	tm.workflow(elevenOf(15 * time.Millisecond))
	for round := range rounds(10, 200) {
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

// Every node is killed before and after each of its commits and each of its
// sends, from its start to the end of the instance: of tasks that run for a while, and of tasks
// whose start and success are one fact.
func TestKilledAtEveryWrite(t *testing.T) {
	for _, c := range []struct {
		name, workflow string
		sample         int
	}{
		{"started and ended", elevenOf(time.Millisecond), 40},
		{"done at once", elevenWith("application: noop"), 12},
	} {
		t.Run(c.name, func(t *testing.T) { killedAtEveryWrite(t, c.workflow, c.sample) })
	}
}

func killedAtEveryWrite(t *testing.T, workflow string, sample int) {
	rnd := randomly(t)
	tm := newTeam(t, "one", "two", "three")
	tm.workflow(workflow)
	points := tm.crashPoints()
	t.Logf("%d crash points", len(points))
	if os.Getenv(longEnv) == "" {
		rnd.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
		points = points[:min(len(points), sample)]
	}
	reached := 0
	for _, c := range points {
		if tm.crashAt(c) {
			reached++
		}
		if t.Failed() {
			t.Fatal("killed at ", c)
		}
	}
	t.Logf("%d of %d points were reached", reached, len(points))
	if reached < len(points)/2 {
		t.Errorf("only %d of %d crash points were reached", reached, len(points))
	}
}

// crashPoints counts what each node does in a run without a crash.
func (tm *team) crashPoints() []crashPoint {
	tm.t.Helper()
	var out []crashPoint
	for _, p := range tm.ps {
		p.kill()
		p.launch(countOnly)
		if !p.ready() {
			tm.t.Fatal(p.stderr())
		}
		tm.together()
		id := tm.begin("eleven", acrossThree)
		tm.succeeded(id, elevenTasks...)
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
func (tm *team) crashAt(c crashPoint) (reached bool) {
	tm.t.Helper()
	p := tm.node(c.node)
	p.kill()
	p.launch(fmt.Sprintf("%s:%d", c.at, c.n))
	started := p.ready()
	id := ""
	if started {
		id = tm.tryBegin(p)
		for id != "" && !p.hasExited() && !tm.doneEverywhere(id) {
			<-time.After(5 * time.Millisecond)
		}
	}
	reached = p.hasExited()
	p.kill()
	p.start()
	if id == "" {
		id = tm.begin("eleven", acrossThree)
	}
	tm.succeeded(id, elevenTasks...)
	return reached
}

// tryBegin starts an instance. If the first node dies over it, the instance is
// there when that is back, or not at all: "".
func (tm *team) tryBegin(mortal *proc) string {
	tm.t.Helper()
	st, err := tm.ps[0].client.Start(context.Background(), api.StartRequest{Workflow: "eleven", Assign: acrossThree})
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
