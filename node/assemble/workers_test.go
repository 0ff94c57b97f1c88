package assemble_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
	"github.com/mutirao-mesh/mutirao/node/assemble"
	"github.com/mutirao-mesh/mutirao/node/store"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/worker"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// served runs one node where workers do the application weigh.
func served(
	tb testing.TB, preset configs.Preset, also ...func(dir string, c *configs.Config),
) (h *assemble.Host, url, token string) {
	tb.Helper()
	dir := filepath.Join(tb.TempDir(), "one")
	if _, err := node.Init(dir, node.InitOptions{Mesh: "test", Name: "one"}); err != nil {
		tb.Fatal(err)
	}
	cfg := configs.Default(preset)
	cfg.Discovery, cfg.Listen = false, []string{"/ip4/127.0.0.1/udp/0/quic-v1"}
	cfg.Applications = map[workflow.ApplicationName]configs.Application{"weigh": {Worker: true}}
	for _, change := range also {
		change(dir, &cfg)
	}
	h, err := assemble.Open(dir, cfg, "test", nil)
	if err != nil {
		tb.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	tb.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			tb.Error(err)
		}
	})
	<-h.Ready()
	c, err := httpapi.Dial(dir)
	if err != nil {
		tb.Fatal(err)
	}
	made, err := c.AddToken(ctx, httpapi.TokenRequest{Name: "scales", Scope: "worker:weigh"})
	if err != nil {
		tb.Fatal(err)
	}
	url, _, _ = c.Way()
	return h, url, made.Token
}

// A worker that waits takes less than 50 kB of the node's memory, whether its request waits or a stream tells it.
func TestMemoryOfWaitingWorkers(t *testing.T) {
	const body = `{"application":"weigh","wait":"60s"}`
	for _, way := range []struct{ name, does, head, body, in string }{
		{"request", "POST /v1/jobs/take", "Content-Type: application/json\r\n", body, "(*Pool).Await("},
		{"stream", "GET /v1/jobs/events?application=weigh", "", "", "(*Watching).Next("},
	} {
		t.Run(way.name, func(t *testing.T) {
			_, url, token := served(t, configs.Local)
			weighWaiting(t, url, fmt.Sprintf("%s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n%s"+
				"Content-Length: %d\r\n\r\n%s", way.does, token, way.head, len(way.body), way.body), way.in)
		})
	}
}

// weighWaiting weighs workers that wait in a function, once they have made a request.
func weighWaiting(t *testing.T, url, request, in string) {
	const workers, most = 1000, 50_000
	used := func() uint64 {
		for range 3 { // what pools keep goes at the second, stacks that were used after that
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	before := used()
	for range workers {
		c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if _, err := c.Write([]byte(request)); err != nil {
			t.Fatal(err)
		}
	}
	for strings.Count(stacks(), in) < workers {
		<-time.After(500 * time.Millisecond)
	}
	each := (int(used()) - int(before)) / workers
	t.Logf("%d bytes for each waiting worker, with its end of the connection", each)
	if each > most {
		t.Errorf("%d bytes for each waiting worker, at most %d", each, most)
	}
}

// stacks are those of all goroutines.
func stacks() string {
	b := make([]byte, 64<<20)
	return string(b[:runtime.Stack(b, true)])
}

// transitions is how many an instance of counting makes, one after the other.
const transitions = 20

// counting is a flow of which each data state fires one transition, until its data have come to their end.
func counting(does string) string {
	return fmt.Sprintf(`
workflow: counting
data: {n: {type: integer, default: 0}}
tasks:
  go: {when: n < %d, repeat: true, application: %s, in: [n], out: [n]}
final: n == %d
`, transitions, does, transitions)
}

// BenchmarkWorkers counts transitions of data states per second with 64 workers over HTTP on loopback, each with two
// durable commits (that a worker has the job, and the result) beside that of its instance, and the floor of one commit for
// each. Run it with a fixed number of instances, as -benchtime 128x: more than there are workers.
func BenchmarkWorkers(b *testing.B) {
	inBothWays(b, benchmarkWorkers)
}

func benchmarkWorkers(b *testing.B, by func(http.RoundTripper) http.RoundTripper) {
	dir := b.TempDir()
	before := commits(b, dir)
	h, url, token := served(b, configs.LAN)
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	if _, err := h.Service().AddWorkflow(ctx, "counting.yaml", []byte(counting("weigh"))); err != nil {
		b.Fatal(err)
	}
	var done atomic.Int64
	all := make(chan struct{})
	var workers, starters sync.WaitGroup
	c := &worker.Client{
		URL: url, Token: token, HTTP: &http.Client{Transport: by(&http.Transport{MaxIdleConnsPerHost: 200})},
	}
	o := worker.Options{Application: "weigh", Name: "bench", Jobs: 64, Ended: func(*worker.Job, worker.Ending) {
		if done.Add(1) == int64(b.N*transitions) {
			close(all)
		}
	}}
	b.ResetTimer()
	workers.Go(func() {
		err := c.Run(ctx, o, func(_ context.Context, job *worker.Job, _ worker.Report) (map[string]any, error) {
			n, err := job.Input["n"].(interface{ Int64() (int64, error) }).Int64()
			return map[string]any{"n": n + 1}, err
		})
		if err != nil {
			b.Error(err)
		}
	})
	var left atomic.Int64
	left.Store(int64(b.N))
	for range 64 {
		starters.Go(func() {
			for left.Add(-1) >= 0 {
				if _, err := h.Service().Start(ctx, api.StartRequest{Workflow: "counting"}); err != nil {
					b.Error(err)
				}
			}
		})
	}
	starters.Wait()
	if !b.Failed() {
		<-all
	}
	b.StopTimer()
	besideFloor(b, dir, before)
	stop()
	workers.Wait()
}

// BenchmarkSets counts the transitions of the same flow where the built-in set does them in the node, of 64 instances at a
// time, beside the same floor.
func BenchmarkSets(b *testing.B) {
	dir, err := os.MkdirTemp(os.Getenv("MUTIRAO_BENCH_DIR"), "mutirao-bench-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	before := commits(b, dir)
	newBenchMesh(b, "one").run(b, counting("set, with: {n: n + 1}"), 64, transitions, nil)
	besideFloor(b, dir, before)
}

// commits is how many durable commits of 1 KiB a store makes in a second for 64 callers that each wait for their own, as
// BenchmarkCommit of node/store has it.
func commits(b *testing.B, dir string) float64 {
	b.Helper()
	s, err := store.Open(dir, store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	const many = 4000
	var left atomic.Int64
	left.Store(many)
	var all sync.WaitGroup
	begun, value := time.Now(), make([]byte, 1024)
	for range 64 {
		all.Go(func() {
			for n := left.Add(-1); n >= 0; n = left.Add(-1) {
				if err := s.CommitWait([]kv.Write{{Key: fmt.Appendf(nil, "key/%012d", n), Value: value}}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	return many / time.Since(begun).Seconds()
}

// besideFloor reports the transitions of a run, and how many durable commits there is time for in one, by those before the
// run and after it.
func besideFloor(b *testing.B, dir string, before float64) {
	rate, floor := float64(b.N*transitions)/b.Elapsed().Seconds(), (before+commits(b, dir))/2
	b.ReportMetric(rate, "transitions/s")
	b.ReportMetric(floor, "commits/s")
	b.ReportMetric(floor/rate, "commits/transition")
}

// deafened has no stream of events reach whoever makes requests by it.
type deafened struct{ http.RoundTripper }

func (d deafened) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet {
		return nil, errors.New("no streams here")
	}
	return d.RoundTripper.RoundTrip(r)
}

// inBothWays has workers be told by the stream of events, and wait in requests.
func inBothWays(b *testing.B, bench func(b *testing.B, by func(http.RoundTripper) http.RoundTripper)) {
	b.Run("told", func(b *testing.B) {
		bench(b, func(t http.RoundTripper) http.RoundTripper { return t })
	})
	b.Run("waiting", func(b *testing.B) {
		bench(b, func(t http.RoundTripper) http.RoundTripper { return deafened{t} })
	})
}

// BenchmarkWorkerIsFree is how long it takes from the start of an instance until a worker that was free has its job.
func BenchmarkWorkerIsFree(b *testing.B) {
	inBothWays(b, benchmarkWorkerIsFree)
}

func benchmarkWorkerIsFree(b *testing.B, by func(http.RoundTripper) http.RoundTripper) {
	h, url, token := served(b, configs.LAN)
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	if _, err := h.Service().AddWorkflow(ctx, "one.yaml",
		[]byte("workflow: one\ntasks:\n  weigh: {application: weigh}\n")); err != nil {
		b.Fatal(err)
	}
	has, ended := make(chan struct{}), make(chan error, 1)
	c := &worker.Client{URL: url, Token: token, HTTP: &http.Client{Transport: by(&http.Transport{})}}
	go func() {
		o := worker.Options{Application: "weigh", Ended: func(*worker.Job, worker.Ending) { has <- struct{}{} }}
		ended <- c.Run(ctx, o,
			func(context.Context, *worker.Job, worker.Report) (map[string]any, error) {
				has <- struct{}{}
				return nil, nil
			})
	}()
	for b.Loop() {
		b.StopTimer()
		<-time.After(20 * time.Millisecond) // the worker is free by then
		b.StartTimer()
		if _, err := h.Service().Start(ctx, api.StartRequest{Workflow: "one"}); err != nil {
			b.Fatal(err)
		}
		<-has
		b.StopTimer()
		<-has
		b.StartTimer()
	}
	stop()
	if err := <-ended; err != nil {
		b.Error(err)
	}
}
