package node_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/jobs"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// watchJobs has a worker beside a partner watch for jobs.
func (tm *team) watchJobs(at, worker string) api.JobWatch {
	tm.t.Helper()
	w, err := tm.p[at].api.WatchJobs(tm.t.Context(), by(worker), "weigh")
	if err != nil {
		tm.t.Fatal(err)
	}
	tm.t.Cleanup(w.Close)
	return w
}

// isTold wants a worker told of so many jobs within a time; less than 0: of nothing.
func isTold(t *testing.T, what string, w api.JobWatch, within time.Duration, waiting int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	switch n, err := w.Next(ctx); {
	case err != nil && waiting >= 0:
		t.Errorf("%s: nothing was told: %v", what, err)
	case err == nil && (n.Waiting != waiting || n.Application != "weigh"):
		t.Errorf("%s: told was %+v, want %d jobs", what, n, waiting)
	}
}

// A worker that watches is told of a job when it comes, at once, and of nothing once another has taken it; who takes
// does not watch, and gets it all the same.
func TestWorkersWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id := scales(t)
		ana, bia := tm.watchJobs("one", "ana"), tm.watchJobs("one", "bia")
		isTold(t, "one that waits", ana, time.Millisecond, 1)
		tm.mustTake("ana")
		isTold(t, "one that was taken", bia, 20*time.Second, -1) // its lease lasts for 30
		isTold(t, "one that came back", bia, time.Minute, 1)
		isTold(t, "one that came back", ana, time.Minute, 1)
		if err := tm.complete("bia", tm.mustTake("bia"), `{"weight": 12}`); err != nil {
			t.Fatal(err)
		}
		tm.wantWeight(id, workflow.Succeeded, int64(12))
		tm.begin("one", "weighing", nil)
		isTold(t, "the next", ana, time.Millisecond, 1)
		isTold(t, "the next", bia, time.Millisecond, 1)
		tm.mustTake("carla")
		isTold(t, "one that a third took", ana, 20*time.Second, -1)
	})
}

// What cannot be taken cannot be watched either, and a node that stops says so.
func TestJobsThatCannotBeWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _ := scales(t)
		one := tm.p["one"].api
		watch := func(by api.Program, app workflow.ApplicationName) error {
			w, err := one.WatchJobs(t.Context(), by, app)
			if err == nil {
				w.Close()
			}
			return err
		}
		isNo(t, "a built-in one", watch(by("a"), "set"), api.Invalid, "is built in")
		isNo(t, "no name", watch(by("a"), ""), api.Invalid, "application")
		isNo(t, "one that nobody may open", watch(api.Program{Token: "w"}, "climb"), api.Refused,
			"workers do not do application climb")
		w := tm.watchJobs("one", "ana")
		isTold(t, "the one that waits", w, time.Second, 1)
		tm.mustTake("ana")
		ended := make(chan error, 1)
		go func() {
			_, err := w.Next(t.Context())
			ended <- err
		}()
		synctest.Wait()
		tm.p["one"].crash()
		if err := <-ended; !errors.Is(err, api.ErrStopping) {
			t.Errorf("when the node stops, watching ends with %v", err)
		}
	})
}

// A worker that watches beside another node is told of the jobs that a holder has for it, and not of those that must
// not go there. However many watch there, the holder is asked once.
func TestWorkersWatchBesideAnotherNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) {
			c.Applications = map[workflow.ApplicationName]configs.Application{"weigh": {Worker: true}}
		}, "one", "two")
		tm.add("one", weighing)
		tm.add("one", strings.NewReplacer("workflow: weighing", "workflow: kept", "out: [weight]",
			"out: [weight], needs: [is-one]").Replace(weighing))
		pass(time.Second)
		ana, bia := tm.watchJobs("two", "ana"), tm.watchJobs("two", "bia")
		for range 30 {
			tm.watchJobs("two", "others").Close()
			defer tm.watchJobs("two", "others").Close()
		}
		kept := tm.begin("one", "kept", nil)
		isTold(t, "one that stays", ana, time.Minute, -1)
		asked := tm.askedForJobs()
		isTold(t, "one that stays", bia, time.Minute, -1)
		if n := asked.Load(); n < 29 || n > 31 {
			t.Errorf("in a minute the holder was asked %d times, want 30", n)
		}
		ids := map[string]bool{}
		for range 3 {
			ids[tm.begin("one", "weighing", map[string]string{"main": "one"})] = true
		}
		begun := time.Now()
		for range 3 {
			isTold(t, "one elsewhere", ana, 3*time.Second, 0)
			isTold(t, "one elsewhere", bia, 3*time.Second, 0)
			job, err := tm.p["two"].api.TakeJob(t.Context(), by("ana"), api.TakeRequest{Application: "weigh"})
			if err != nil || job == nil || !ids[job.Instance] {
				t.Fatalf("taken was %+v, %v", job, err)
			}
			delete(ids, job.Instance)
		}
		if d := time.Since(begun); d > 3*time.Second {
			t.Errorf("to be told of three jobs took %s: once one is taken, the next is asked for at once", d)
		}
		isTold(t, "no more", ana, 20*time.Second, -1)
		if job := tm.mustTake("dora"); job.Instance != kept {
			t.Errorf("beside the holder came %s", job.Instance)
		}
	})
}

// askedForJobs counts from now on how often nodes ask others for jobs, or about them.
func (tm *team) askedForJobs() *atomic.Int64 {
	n := &atomic.Int64{}
	tm.f.mu.Lock()
	defer tm.f.mu.Unlock()
	tm.f.unheard = func(_ workflow.PartnerID, protocol string) bool {
		if protocol == jobs.Protocol {
			n.Add(1)
		}
		return false
	}
	return n
}

// A holder that does not know yet how to be asked whether it has a job may have one: a worker that watches is told
// to ask for one, as often as one that waits would.
func TestAHolderFromBeforeWorkersWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) {
			c.Applications = map[workflow.ApplicationName]configs.Application{"weigh": {Worker: true}}
		}, "one", "two")
		holder := tm.p["one"].plug
		tm.f.mu.Lock()
		answer := holder.handlers[jobs.Protocol]
		holder.handlers[jobs.Protocol] = func(from workflow.PartnerID, req []byte) ([]byte, error) {
			var asked map[string]any
			if err := json.Unmarshal(req, &asked); err != nil {
				return nil, err
			}
			delete(asked, "Look")
			req, err := json.Marshal(asked)
			if err != nil {
				return nil, err
			}
			return answer(from, req)
		}
		tm.f.mu.Unlock()
		tm.add("one", weighing)
		pass(time.Second)
		ana := tm.watchJobs("two", "ana")
		for range 3 {
			isTold(t, "what may be there", ana, 3*time.Second, 0)
		}
		ana.Close()
		asked := tm.askedForJobs()
		for range 5 {
			again := tm.watchJobs("two", "ana")
			isTold(t, "what may be there", again, 3*time.Second, 0)
			again.Close()
		}
		if n := asked.Load(); n > 5 {
			t.Errorf("by one who watches again and again the holder was asked %d times in 10 s", n)
		}
		ana = tm.watchJobs("two", "ana")
		id := tm.begin("one", "weighing", map[string]string{"main": "one"})
		isTold(t, "a job", ana, 3*time.Second, 0)
		job, err := tm.p["two"].api.TakeJob(t.Context(), by("ana"), api.TakeRequest{Application: "weigh"})
		if err != nil || job == nil || job.Instance != id {
			t.Errorf("taken was %+v, %v", job, err)
		}
	})
}

// A holder that was away is asked again within seconds of its return, by whoever waits in a request and by whoever watches.
func TestAHolderThatComesBackIsAskedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) {
			c.Applications = map[workflow.ApplicationName]configs.Application{"weigh": {Worker: true}}
		}, "one", "two")
		tm.add("one", weighing)
		tm.p["one"].crash()
		took := make(chan *api.Job, 1)
		go func() {
			job, err := tm.p["two"].api.TakeJob(t.Context(), by("ana"), api.TakeRequest{Application: "weigh", Wait: "60s"})
			if err != nil {
				t.Error(err)
			}
			took <- job
		}()
		w := tm.watchJobs("two", "bia")
		pass(20 * time.Second)
		tm.p["one"].start()
		tm.connect("one", "two")
		tm.begin("one", "weighing", nil)
		start := time.Now()
		if job := <-took; job == nil || time.Since(start) > 5*time.Second {
			t.Errorf("whoever waits has %+v after %s", job, time.Since(start))
		}
		tm.begin("one", "weighing", nil)
		start = time.Now()
		if _, err := w.Next(t.Context()); err != nil || time.Since(start) > 5*time.Second {
			t.Errorf("whoever watches is told after %s: %v", time.Since(start), err)
		}
	})
}
