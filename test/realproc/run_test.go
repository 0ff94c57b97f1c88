package realproc_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/assemble"
	"github.com/mutirao-mesh/mutirao/node/store"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// backWithin is what a partner that comes back may wait for the completions
// that it missed, beside what five starts take on this machine.
const backWithin = 2 * time.Second

// A partner is down while its predecessor completes: it gets the completion
// soon after it is back, also at another port.
func TestPartnerComesBack(t *testing.T) {
	tm := newTeam(t, "one", "two", "three")
	tm.workflow(`
workflow: relay
tasks:
  a: {application: sleep, with: {for: 50ms}}
  b: {after: a}
  w: {}
partitions: {pa: [a], pb: [b], pw: [w]}
`)
	two := tm.node("two")
	for _, move := range []bool{false, true, false, true} {
		two.kill()
		id := tm.begin("relay", map[string]string{"pa": "one", "pb": "two", "pw": "three"})
		until(t, "a is done", patience, func() bool { return tm.ps[0].task(id, "a") == workflow.Succeeded })
		if move {
			two.configure(freePort(t))
		}
		began := time.Now()
		two.start()
		most := backWithin + 5*time.Since(began)
		took := until(t, "two has the completion and did b", patience,
			func() bool { return two.task(id, "b") == workflow.Succeeded })
		t.Logf("at another port: %v; after %v", move, took.Round(time.Millisecond))
		if took > most {
			t.Errorf("it took two %v after it came back (at another port: %v); at most %v", took, move, most)
		}
		tm.succeeded(id, "a", "b", "w")
	}
}

// Two hundred instances at once: nothing is lost, and afterwards the nodes are
// about as large as before.
func TestTwoHundredInstances(t *testing.T) {
	const instances, maxRSS, moreGoroutines = 200, 400, 30
	tm := newTeam(t, "one", "two", "three")
	tm.workflow(elevenOf(5 * time.Millisecond))
	idle := map[string]int{}
	for _, p := range tm.ps {
		idle[p.name] = p.goroutines()
	}
	ids := make(chan string, instances)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			for range instances / 20 {
				p := tm.ps[i%len(tm.ps)]
				st, err := p.client.Start(context.Background(),
					api.StartRequest{Workflow: "eleven", Assign: acrossThree})
				if err != nil {
					t.Error(err)
					return
				}
				ids <- st.ID
			}
		})
	}
	wg.Wait()
	close(ids)
	if t.Failed() {
		return
	}
	most := map[string]int{}
	for _, p := range tm.ps {
		until(t, p.name+" has all instances, ended", patience, func() bool {
			most[p.name] = max(most[p.name], p.rss())
			l, err := p.client.Instances(context.Background(), true)
			ended := 0
			for _, in := range l {
				if in.State == workflow.InstanceSucceeded {
					ended++
				}
			}
			return err == nil && ended == instances
		})
	}
	for id := range ids {
		tm.succeeded(id, elevenTasks...)
	}
	for _, p := range tm.ps {
		most[p.name] = max(most[p.name], p.rss())
		t.Logf("%s: %d MiB, %d goroutines before, %d after", p.name, most[p.name], idle[p.name], p.goroutines())
		if most[p.name] > maxRSS {
			t.Errorf("%s took %d MiB, at most %d", p.name, most[p.name], maxRSS)
		}
		until(t, fmt.Sprintf("%s has about the %d goroutines that it had idle", p.name, idle[p.name]), patience,
			func() bool {
				return p.goroutines() <= idle[p.name]+moreGoroutines
			})
	}
}

// A second process on the same folder is told which one holds it.
func TestSecondProcessOnAFolder(t *testing.T) {
	tm := newTeam(t, "one")
	p := tm.ps[0]
	h, err := assemble.Open(p.dir, configs.Default(configs.Local), "test", nil)
	if err == nil {
		h.Close()
		t.Fatal("a folder in use was opened")
	}
	var locked *store.LockedError
	if !errors.As(err, &locked) || locked.PID != p.cmd.Process.Pid {
		t.Errorf("a folder in use by process %d: %v", p.cmd.Process.Pid, err)
	}
	if p.state("nothing") != "" || p.sees("active") != 1 {
		t.Error("the first process is disturbed")
	}
}

// On SIGTERM a node goes down in good order: it says so, and ends well.
func TestGoesDownInGoodOrder(t *testing.T) {
	tm := newTeam(t, "one", "two", "three")
	for range 3 {
		three := tm.node("three")
		if st := three.terminate(); st == nil || !st.Success() {
			t.Errorf("on SIGTERM: %v\n%s", st, three.stderr())
		}
		for _, p := range tm.ps[:2] {
			took := until(t, p.name+" knows that three is down", patience,
				func() bool { return p.sees("unreachable") == 1 })
			t.Logf("%s knew after %v", p.name, took.Round(time.Millisecond))
		}
		three.start()
		tm.together()
	}
}

// A whole team stops at one moment, as on Ctrl-C, and finds itself again.
func TestWholeTeamStopsAndStarts(t *testing.T) {
	tm := newTeam(t, "one", "two", "three")
	for range 3 {
		all(tm.ps, func(p *proc) { p.terminate() })
		all(tm.ps, (*proc).start)
		tm.together()
	}
}
