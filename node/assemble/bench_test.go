package assemble_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/assemble"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// The figures of docs/performance.md. Each benchmark runs b.N instances; run
// them with a fixed number, -benchtime 3000x, beside the floors of the same
// minute.

// BenchmarkOneNode runs the eleven tasks on one node, durable at every step:
// concurrency 1 for the time of one, 64 for throughput.
func BenchmarkOneNode(b *testing.B) {
	for _, c := range []int{1, 64} {
		b.Run(fmt.Sprintf("concurrency-%d", c), func(b *testing.B) {
			m := newBenchMesh(b, "one")
			m.run(b, eleven, c, 11, map[string]string{"p1": "one", "p2": "one", "p3": "one"})
		})
	}
}

// BenchmarkThreeNodes runs them over three nodes, connected by QUIC.
func BenchmarkThreeNodes(b *testing.B) {
	for _, c := range []int{1, 64} {
		b.Run(fmt.Sprintf("concurrency-%d", c), func(b *testing.B) {
			m := newBenchMesh(b, "one", "two", "three")
			m.run(b, eleven, c, 11, map[string]string{"p1": "one", "p2": "two", "p3": "three"})
		})
	}
}

// BenchmarkHop hands a chain of tasks to and fro between two nodes: from the
// end of a task at one to the start of its successor at the other, both
// durable. With one instance at a time it is a latency, with 256 a throughput.
func BenchmarkHop(b *testing.B) {
	const hops = 20
	for _, c := range []int{1, 256} {
		b.Run(fmt.Sprintf("concurrency-%d", c), func(b *testing.B) {
			m := newBenchMesh(b, "one", "two")
			m.run(b, pingPong(hops+1), c, hops, map[string]string{"p0": "one", "p1": "two"})
		})
	}
}

// pingPong is a chain of tasks that alternates between two partitions.
func pingPong(n int) string {
	var b strings.Builder
	parts := [2][]string{}
	b.WriteString("workflow: chain\ntasks:\n  t00: {}\n")
	for i := range n {
		if i > 0 {
			fmt.Fprintf(&b, "  t%02d: {after: t%02d}\n", i, i-1)
		}
		parts[i%2] = append(parts[i%2], fmt.Sprintf("t%02d", i))
	}
	fmt.Fprintf(&b, "partitions:\n  p0: [%s]\n  p1: [%s]\n", strings.Join(parts[0], ", "), strings.Join(parts[1], ", "))
	return b.String()
}

// benchMesh is a mesh of nodes in this process, on loopback.
type benchMesh struct {
	hosts []*assemble.Host
	mu    sync.Mutex // guards what follows
	ended map[string]time.Time
	wait  map[string]chan time.Time
}

func newBenchMesh(b *testing.B, names ...string) *benchMesh {
	b.Helper()
	ctx := context.Background()
	m := &benchMesh{ended: map[string]time.Time{}, wait: map[string]chan time.Time{}}
	root, err := os.MkdirTemp(os.Getenv("MUTIRAO_BENCH_DIR"), "mutirao-bench-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(root) })
	for i, name := range names {
		dir := filepath.Join(root, name)
		if i == 0 {
			_, err = node.Init(dir, node.InitOptions{Mesh: "bench", Name: name, Roles: []string{"crew"}})
		} else {
			var inv *api.Invitation
			if inv, err = m.hosts[0].Service().Invite(ctx, api.InviteRequest{Roles: []string{"crew"}}); err == nil {
				_, err = assemble.Join(ctx, dir, assemble.JoinOptions{Invitation: inv.Token, Name: name})
			}
		}
		if err != nil {
			b.Fatal(err)
		}
		m.up(b, dir)
	}
	for _, h := range m.hosts {
		for sees := 0; sees < len(names); {
			ps, err := h.Service().Partners(ctx)
			if err != nil {
				b.Fatal(err)
			}
			sees = 0
			for _, p := range ps {
				if p.State == "active" {
					sees++
				}
			}
			<-time.After(20 * time.Millisecond)
		}
	}
	return m
}

func (m *benchMesh) up(b *testing.B, dir string) {
	b.Helper()
	cfg := configs.Default(configs.LAN)
	cfg.Listen = []string{"/ip4/127.0.0.1/udp/0/quic-v1"}
	h, err := assemble.Open(dir, cfg, "bench", nil)
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	b.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			b.Error(err)
		}
	})
	<-h.Ready()
	if len(m.hosts) == 0 {
		go h.Service().Watch(ctx, m.heard)
	}
	m.hosts = append(m.hosts, h)
}

// heard notes the end of an instance at the first node. Asking would load it.
func (m *benchMesh) heard(e api.Event) error {
	if e.Kind != "instance" || e.Text != "succeeded" {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if ch := m.wait[e.Instance]; ch != nil {
		ch <- time.Now()
		delete(m.wait, e.Instance)
	} else if _, twice := m.ended[e.Instance]; !twice {
		m.ended[e.Instance] = time.Now()
	}
	return nil
}

func (m *benchMesh) end(id string) time.Time {
	m.mu.Lock()
	if t, ok := m.ended[id]; ok {
		delete(m.ended, id)
		m.mu.Unlock()
		return t
	}
	ch := make(chan time.Time, 1)
	m.wait[id] = ch
	m.mu.Unlock()
	for {
		select {
		case t := <-ch:
			return t
		case <-time.After(2 * time.Second): // a watcher that lags behind misses events
			in, err := m.hosts[0].Service().Show(context.Background(), id)
			if err == nil && in.State == workflow.InstanceSucceeded {
				return time.Now()
			}
		}
	}
}

// rest waits for MUTIRAO_BENCH_REST (a span, as 40s), so that what comes after the end of the
// instances is counted too: partners compare what has ended at intervals of half a minute, and
// a version that does so earlier would seem dearer. Times of ns/op then mean nothing; those of
// the instances do.
func rest(b *testing.B) {
	b.Helper()
	span := os.Getenv("MUTIRAO_BENCH_REST")
	if span == "" || b.N == 1 {
		return
	}
	d, err := time.ParseDuration(span)
	if err != nil {
		b.Fatalf("MUTIRAO_BENCH_REST: %v: want a span, as 40s", err)
	}
	<-time.After(d)
}

// run runs b.N instances, of which so many are under way at a time, and
// reports how long one takes and how many steps are done in a second.
func (m *benchMesh) run(b *testing.B, source string, concurrency, steps int, assign map[string]string) {
	ctx := context.Background()
	svc := m.hosts[0].Service()
	w, err := svc.AddWorkflow(ctx, "bench.yaml", []byte(source))
	if err != nil {
		b.Fatal(err)
	}
	var left atomic.Int64
	left.Store(int64(b.N))
	var mu sync.Mutex
	var took []time.Duration
	var wg sync.WaitGroup
	b.ResetTimer()
	begun := time.Now()
	for range concurrency {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				start := time.Now()
				st, err := svc.Start(ctx, api.StartRequest{Workflow: string(w.Name), Assign: assign})
				if err != nil {
					b.Error(err)
					return
				}
				d := m.end(st.ID).Sub(start)
				mu.Lock()
				took = append(took, d)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	el := time.Since(begun).Seconds()
	rest(b)
	b.StopTimer()
	slices.Sort(took)
	if len(took) == 0 {
		return
	}
	p := func(q float64) float64 { return float64(took[int(q*float64(len(took)-1))].Microseconds()) }
	b.ReportMetric(p(0.5), "p50-µs")
	b.ReportMetric(p(0.99), "p99-µs")
	b.ReportMetric(p(0.5)/float64(steps), "p50-µs/step")
	b.ReportMetric(float64(b.N)/el, "instances/s")
	b.ReportMetric(float64(steps*b.N)/el, "steps/s")
}
