package assemble_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/assemble"
)

// BenchmarkOneNode runs the eleven tasks on one node, durable at every step:
// concurrency 1 for the time of one, 64 for throughput.
func BenchmarkOneNode(b *testing.B) {
	for _, c := range []int{1, 64} {
		b.Run(map[int]string{1: "concurrency-1", 64: "concurrency-64"}[c], func(b *testing.B) { benchOneNode(b, c) })
	}
}

func benchOneNode(b *testing.B, concurrency int) {
	dir := b.TempDir()
	if _, err := node.Init(dir, node.InitOptions{Mesh: "bench", Name: "one"}); err != nil {
		b.Fatal(err)
	}
	cfg := configs.Default(configs.LAN)
	cfg.Listen = []string{"/ip4/127.0.0.1/udp/0/quic-v1"}
	h, err := assemble.Open(dir, cfg, "bench", nil)
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	<-h.Ready()
	svc := h.Service()
	if _, err := svc.AddWorkflow(ctx, "eleven.yaml", []byte(eleven)); err != nil {
		b.Fatal(err)
	}
	// An instance ends when a watcher hears so; asking would load the node.
	var mu sync.Mutex
	waiting := map[string]chan struct{}{}
	ended := map[string]bool{}
	go svc.Watch(ctx, func(e api.Event) error {
		if e.Kind == "instance" && e.Text == "succeeded" {
			mu.Lock()
			if ch := waiting[e.Instance]; ch != nil {
				close(ch)
				delete(waiting, e.Instance)
			} else {
				ended[e.Instance] = true
			}
			mu.Unlock()
		}
		return nil
	})
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	b.ResetTimer()
	start := time.Now()
	for range concurrency {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				st, err := svc.Start(ctx, api.StartRequest{Workflow: "eleven"})
				if err != nil {
					b.Error(err)
					return
				}
				ch := make(chan struct{})
				mu.Lock()
				if ended[st.ID] {
					delete(ended, st.ID)
					close(ch)
				} else {
					waiting[st.ID] = ch
				}
				mu.Unlock()
				<-ch
			}
		})
	}
	wg.Wait()
	el := time.Since(start).Seconds()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/el, "instances/s")
	b.ReportMetric(11*float64(b.N)/el, "tasks/s")
	stop()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}
