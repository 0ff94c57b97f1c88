// Package peers runs the eleven tasks of node/assemble/testdata/eleven.yaml on two engines that other people wrote, each
// embedded in one process with SQLite: DBOS Transact and go-workflows. It is a module of its own, so that the project
// depends on neither. Beside ours, by turns:
//
//	cd test/peers && MUTIRAO_BENCH_DIR=DIR go test -run '^$' -bench . -benchtime 200x
//	MUTIRAO_BENCH_DIR=DIR go test -run '^$' -bench OneNode -benchtime 3000x ./node/assemble
//
// Comparable: the graph, tasks that do nothing, all in one process on one disk, each step durable before what follows
// from it (synchronous=FULL), and what is measured, from the request to start to the end as the caller learns of it.
// Not comparable: neither engine has other nodes, so nothing is signed or sent; DBOS notes the end of a step only, ours
// the start as well, for noop in one fact with the end; a task of a peer is a call of a Go function, ours is looked up
// in a definition. Go-workflows polls: every millisecond here, since its default, 200 ms, would measure the interval.
package peers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cschleiden/go-workflows/backend"
	"github.com/cschleiden/go-workflows/backend/sqlite"
	"github.com/cschleiden/go-workflows/client"
	"github.com/cschleiden/go-workflows/core"
	"github.com/cschleiden/go-workflows/registry"
	"github.com/cschleiden/go-workflows/worker"
	"github.com/cschleiden/go-workflows/workflow"
	"github.com/dbos-inc/dbos-transact-golang/dbos"
	_ "github.com/dbos-inc/dbos-transact-golang/dbos/driver/sqlite"
)

// task is one of the eleven, by its place in the order, and those that it follows.
type task struct {
	name  string
	after []int
}

// eleven are the tasks in an order in which each may be started once those before it that it follows have ended. Both
// engines replay a workflow, and number its steps as they are started: so that order must be the same each time.
var eleven = []task{
	{name: "a"},
	{name: "e"},
	{name: "b", after: []int{0}},
	{name: "f", after: []int{1}},
	{name: "c", after: []int{0, 1}},
	{name: "g", after: []int{3}},
	{name: "d", after: []int{2, 4}},
	{name: "h", after: []int{6}},
	{name: "i", after: []int{7}},
	{name: "j", after: []int{7, 5}},
	{name: "k", after: []int{8, 9}},
}

// run starts each task when those that it follows have ended, and waits for the last.
func run(start func(t task) (wait func() error, err error)) error {
	waits := make([]func() error, len(eleven))
	for i, t := range eleven {
		for _, p := range t.after {
			if err := waits[p](); err != nil {
				return fmt.Errorf("task %s: %w", eleven[p].name, err)
			}
		}
		w, err := start(t)
		if err != nil {
			return fmt.Errorf("task %s: %w", t.name, err)
		}
		waits[i] = w
	}
	return waits[len(waits)-1]()
}

// once asks for an outcome a single time, however many tasks wait for it.
func once(wait func() error) func() error {
	var done bool
	var err error
	return func() error {
		if !done {
			done, err = true, wait()
		}
		return err
	}
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// BenchmarkDBOS runs each task as a step.
func BenchmarkDBOS(b *testing.B) {
	each(b, func(b *testing.B, _ int) func(n int64) error {
		ctx, err := dbos.NewContext(context.Background(), dbos.Config{
			AppName: "peers", SQLiteSystemDB: database(b, 8), Logger: quiet})
		if err != nil {
			b.Fatal(err)
		}
		dbos.RegisterWorkflow(ctx, elevenSteps)
		if err := dbos.Launch(ctx); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			if err := dbos.Shutdown(ctx, time.Minute); err != nil {
				b.Error(err)
			}
		})
		return func(n int64) error {
			h, err := dbos.RunWorkflow(ctx, elevenSteps, n)
			if err != nil {
				return err
			}
			_, err = h.GetResult()
			return err
		}
	})
}

func elevenSteps(ctx dbos.Context, n int64) (int64, error) {
	return n, run(func(task) (func() error, error) {
		ch, err := dbos.Go(ctx, func(context.Context) (bool, error) { return true, nil })
		return once(func() error { return (<-ch).Err }), err
	})
}

// BenchmarkGoWorkflows runs each task as an activity.
func BenchmarkGoWorkflows(b *testing.B) {
	each(b, func(b *testing.B, concurrency int) func(n int64) error {
		// Several connections that write would be refused by SQLite at times, so its own backend has one.
		store := sqlite.NewSqliteBackendWithDB(database(b, 1), sqlite.WithApplyMigrations(true),
			sqlite.WithBackendOptions(backend.WithLogger(quiet)))
		opts := worker.DefaultOptions
		opts.WorkflowPollingInterval, opts.ActivityPollingInterval = time.Millisecond, time.Millisecond
		opts.WorkflowExecutorCacheSize = max(opts.WorkflowExecutorCacheSize, 2*concurrency)
		w := worker.New(store, &opts)
		ends := &lastTasks{begun: map[int64]chan struct{}{}}
		last := func(_ context.Context, n int64) (bool, error) { ends.begin(n); return true, nil }
		flow := func(ctx workflow.Context, n int64) (int64, error) { return n, elevenActivities(ctx, n) }
		err := errors.Join(
			w.RegisterWorkflow(flow, named("eleven")),
			w.RegisterActivity(noop, named("noop")),
			w.RegisterActivity(last, named("last")))
		if err != nil {
			b.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		if err := w.Start(ctx); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			stop()
			if err := w.WaitForCompletion(); err != nil {
				b.Error(err)
			}
		})
		c := client.New(store)
		return func(n int64) error {
			begun := ends.await(n)
			in, err := c.CreateWorkflowInstance(ctx, client.WorkflowInstanceOptions{InstanceID: fmt.Sprint(n)}, "eleven", n)
			if err != nil {
				return err
			}
			<-begun
			return ended(ctx, c, in)
		}
	})
}

func elevenActivities(ctx workflow.Context, n int64) error {
	return run(func(t task) (func() error, error) {
		var f workflow.Future[bool]
		if t.name == eleven[len(eleven)-1].name {
			f = workflow.ExecuteActivity[bool](ctx, workflow.DefaultActivityOptions, "last", n)
		} else {
			f = workflow.ExecuteActivity[bool](ctx, workflow.DefaultActivityOptions, "noop")
		}
		return once(func() error { _, err := f.Get(ctx); return err }), nil
	})
}

func noop(context.Context) (bool, error) { return true, nil }

func named(name string) registry.RegisterOption { return registry.WithName(name) }

// lastTasks tells who awaits an instance that its last task has begun: from then on it is worth asking for its end.
type lastTasks struct {
	mu    sync.Mutex
	begun map[int64]chan struct{}
}

func (l *lastTasks) await(n int64) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	ch := make(chan struct{})
	l.begun[n] = ch
	return ch
}

func (l *lastTasks) begin(n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ch := l.begun[n]; ch != nil {
		close(ch)
		delete(l.begun, n)
	}
}

// ended asks each millisecond: what the client offers waits longer from time to time, up to a second.
func ended(ctx context.Context, c *client.Client, in *workflow.Instance) error {
	for {
		st, err := c.GetWorkflowInstanceState(ctx, in)
		if err != nil || st == core.WorkflowInstanceStateFinished {
			return err
		}
		<-time.After(time.Millisecond)
	}
}

// database is a new one that syncs at each commit, which is checked.
func database(b *testing.B, connections int) *sql.DB {
	b.Helper()
	dir, err := os.MkdirTemp(os.Getenv("MUTIRAO_BENCH_DIR"), "mutirao-peers-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "db")+"?_txlock=immediate&_pragma=busy_timeout(5000)"+
		"&_pragma=foreign_keys(1)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	const full = 2
	var level int
	if err := db.QueryRow("PRAGMA synchronous").Scan(&level); err != nil || level != full {
		b.Fatalf("synchronous is %d, %v: want %d, a sync at each commit", level, err, full)
	}
	return db
}

// each runs b.N instances, one and 64 at a time, on an engine of their own.
func each(b *testing.B, open func(b *testing.B, concurrency int) func(n int64) error) {
	for _, c := range []int{1, 64} {
		b.Run(fmt.Sprintf("concurrency-%d", c), func(b *testing.B) {
			do := open(b, c)
			var next atomic.Int64
			var mu sync.Mutex
			var took []time.Duration
			var wg sync.WaitGroup
			before := processorTime(b)
			b.ResetTimer()
			began := time.Now()
			for range c {
				wg.Go(func() {
					for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
						start := time.Now()
						if err := do(n); err != nil {
							b.Error(err)
							return
						}
						mu.Lock()
						took = append(took, time.Since(start))
						mu.Unlock()
					}
				})
			}
			wg.Wait()
			span := time.Since(began)
			b.StopTimer()
			if len(took) == 0 {
				return
			}
			slices.Sort(took)
			b.ReportMetric(float64(len(took))/span.Seconds(), "instances/s")
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64((processorTime(b)-before).Microseconds())/1000/float64(len(took)), "cpu-ms/instance")
		})
	}
}

// processorTime is what this process took of it.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
