package runner_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/runner"
)

// pooledJob is a job of the application weigh.
func pooledJob(instance string) runner.Job {
	return runner.Job{Key: instance, Instance: instance, Application: "weigh"}
}

// watching are so many who watch a pool, each with a token of its own.
func watching(t *testing.T, p *runner.Pool, n int) (all []*runner.Watcher) {
	t.Helper()
	for i := range n {
		w, err := p.Watch("weigh", fmt.Sprint(i))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, w)
	}
	return all
}

// toldOf is how many of them were told since they were asked last, and of how many jobs the last of these.
func toldOf(all []*runner.Watcher) (n, jobs int) {
	for _, w := range all {
		select {
		case <-w.Told():
			if waiting, told := w.Look(); told {
				n, jobs = n+1, waiting
			}
		default:
		}
	}
	return n, jobs
}

func start(p *runner.Pool, instances ...string) {
	for _, instance := range instances {
		p.Start(pooledJob(instance), nil, func(runner.Result) {})
	}
}

func anyJob(runner.Job) bool { return true }

// take has a worker take a job of the pool.
func take(t *testing.T, p *runner.Pool, lease string) {
	t.Helper()
	o := p.Reserve("weigh", anyJob)
	if o == nil {
		t.Fatal("no job waits")
	}
	o.Give(lease, runner.Worker{}, runner.LeaseTerm)
}

// A job is told when it comes, and when it comes back; whoever begins to watch is told of those that wait. Several are
// told as one, and not at all once somebody has taken them.
func TestWatchersAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &runner.Pool{}
		want := func(what string, all []*runner.Watcher, n, jobs int) {
			t.Helper()
			if told, waiting := toldOf(all); told != n || waiting != jobs {
				t.Errorf("%s: %d were told of %d jobs, want %d of %d", what, told, waiting, n, jobs)
			}
		}
		two := watching(t, p, 2)
		want("no job", two, 0, 0)
		start(p, "a")
		want("a job", two, 2, 1)
		start(p, "b", "c")
		want("two more", two, 2, 3)
		want("no more", two, 0, 0)
		want("one who comes", watching(t, p, 1), 1, 3)
		for _, lease := range []string{"1", "2", "3"} {
			take(t, p, lease)
		}
		<-time.After(time.Second)
		want("all were taken", two, 0, 0)
		if _, err := p.GiveBack("1", runner.Worker{}); err != nil {
			t.Fatal(err)
		}
		want("it rests", two, 0, 0)
		<-time.After(1100 * time.Millisecond)
		want("one is back", two, 2, 1)
		take(t, p, "4")
		start(p, "d")
		take(t, p, "5")
		want("another was faster", two, 0, 0)
		<-time.After(runner.LeaseTerm + 5*time.Second)
		want("their leases lapsed", two, 2, 4)
		p.Close()
	})
}

// Of one job not hundreds are told at once: a few are, in turn, and the others a moment later where it still waits.
// While it does, all are told again and again, as what is told may be lost; of further jobs they are told with that.
func TestNotAllWatchersAreToldAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &runner.Pool{}
		all := watching(t, p, 40)
		told := map[int]bool{}
		for i := range 5 {
			start(p, fmt.Sprint(i))
			n := 0
			for k, w := range all {
				if of, _ := toldOf([]*runner.Watcher{w}); of > 0 {
					n, told[k] = n+1, true
				}
			}
			if n != 8 {
				t.Errorf("%d were told of a job at once, want 8", n)
			}
			take(t, p, fmt.Sprint(i))
			p.Cancel(fmt.Sprint(i))
		}
		if len(told) != len(all) {
			t.Errorf("of five jobs %d were told in all, want each of %d once", len(told), len(all))
		}
		<-time.After(time.Second)
		start(p, "still")
		<-time.After(30 * time.Millisecond)
		if n, _ := toldOf(all); n != len(all) {
			t.Errorf("%d were told of a job that still waits, want all", n)
		}
		start(p, "more")
		if n, _ := toldOf(all); n != 0 {
			t.Errorf("%d were told of one more at once", n)
		}
		<-time.After(300 * time.Millisecond)
		if n, jobs := toldOf(all); n != len(all) || jobs != 2 {
			t.Errorf("%d were told of %d, want all of 2", n, jobs)
		}
		<-time.After(time.Minute)
		toldOf(all)
		times := 0
		for range 60 {
			<-time.After(time.Second)
			if n, _ := toldOf(all); n == len(all) {
				times++
			}
		}
		if times < 3 || times > 5 {
			t.Errorf("of jobs for which nobody comes they were told %d times in a minute, want 4", times)
		}
		start(p, "yet another")
		<-time.After(300 * time.Millisecond)
		if n, jobs := toldOf(all); n != len(all) || jobs != 3 {
			t.Errorf("%d were told of %d, want all of 3", n, jobs)
		}
		for _, lease := range []string{"x", "y", "z"} {
			take(t, p, lease)
		}
		<-time.After(time.Second)
		start(p, "after")
		if n, _ := toldOf(all); n != 8 {
			t.Errorf("%d were told of the next at once, want 8", n)
		}
		p.Close()
	})
}

// Whoever waits for a job is woken whoever watches, and whoever watches is told whoever waits.
func TestWatchersAndThoseWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &runner.Pool{}
		all := watching(t, p, 3)
		woken := make(chan error, 3)
		ctx, cancel := context.WithCancel(t.Context())
		for range 3 {
			go func() { woken <- p.Await(ctx, "weigh") }()
		}
		synctest.Wait()
		start(p, "a", "b")
		synctest.Wait()
		if n, _ := toldOf(all); n != 3 || len(woken) != 2 {
			t.Errorf("%d were told, and %d woken; want 3 and 2", n, len(woken))
		}
		cancel()
		synctest.Wait()
		p.Close()
	})
}

// How many watch is bounded, in all and for one token. Who has gone makes room, and is told no more.
func TestHowManyMayWatch(t *testing.T) {
	p := &runner.Pool{}
	defer p.Close()
	var all []*runner.Watcher
	for token := range 4 {
		for range 1024 {
			w, err := p.Watch("weigh", fmt.Sprint(token))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, w)
		}
		if _, err := p.Watch("climb", fmt.Sprint(token)); err == nil {
			t.Error("more than 1,024 with one token")
		} else if token == 0 && !errors.Is(err, runner.ErrTokenWatches) {
			t.Error(err)
		}
	}
	if _, err := p.Watch("weigh", "another"); !errors.Is(err, runner.ErrWatched) {
		t.Errorf("more than 4,096: %v", err)
	}
	gone := all[0]
	gone.Close()
	gone.Close()
	w, err := p.Watch("weigh", "another")
	if err != nil {
		t.Fatal(err)
	}
	start(p, "a")
	p.Elsewhere("weigh")
	if n, _ := toldOf([]*runner.Watcher{gone}); n != 0 {
		t.Error("one that has gone was told")
	}
	if n, _ := toldOf([]*runner.Watcher{w}); n != 1 {
		t.Error("one that came in its place was not told")
	}
}

// Whoever watches counts as a worker that comes for jobs, for as long as it watches.
func TestWatchersAreSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &runner.Pool{}
		defer p.Close()
		w := watching(t, p, 1)[0]
		<-time.After(time.Hour)
		if d := time.Since(p.Seen("weigh")); d > 0 {
			t.Errorf("while it watches, a worker was seen %s ago", d)
		}
		w.Close()
		<-time.After(time.Hour)
		if d := time.Since(p.Seen("weigh")); d != time.Hour {
			t.Errorf("an hour after it watched, a worker was seen %s ago", d)
		}
	})
}
