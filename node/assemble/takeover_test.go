package assemble_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// late is a workflow in which a person never does a task in time, whose
// contingency is at another partner.
const (
	late = `
workflow: late
tasks:
  ask:    {}
  answer: {after: ask, type: manual, timeout: 1s, on-failure: {contingency: rescue}}
  rescue: {}
partitions:
  p1: [ask, answer]
  p2: [rescue]
`
	lateAfter = time.Second
)

// BenchmarkTakeover is the time from a task's time-out to its contingency's
// start on another node, over the configured time-out: the holder notices,
// judges, has that on its disk, and tells; the other has it on its disk, too,
// and starts, durably. Facts carry milliseconds. 20 instances wait at a time.
//
//	go test -run '^$' -bench Takeover -benchtime 1000x ./node/assemble
func BenchmarkTakeover(b *testing.B) {
	m := newBenchMesh(b, "one", "two")
	ctx, svc := context.Background(), m.hosts[0].Service()
	w, err := svc.AddWorkflow(ctx, "late.yaml", []byte(late))
	if err != nil {
		b.Fatal(err)
	}
	var left atomic.Int64
	left.Store(int64(b.N))
	var mu sync.Mutex // guards over
	var over []time.Duration
	var all sync.WaitGroup
	b.ResetTimer()
	for range 20 {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				st, err := svc.Start(ctx,
					api.StartRequest{Workflow: string(w.Name), Assign: map[string]string{"p1": "one", "p2": "two"}})
				if err != nil {
					b.Error(err)
					return
				}
				m.end(st.ID)
				entries, err := svc.Log(ctx, st.ID)
				if err != nil {
					b.Error(err)
					return
				}
				mu.Lock()
				over = append(over, written(entries, api.LogEntry.Starts, "rescue").
					Sub(written(entries, api.LogEntry.Succeeds, "ask"))-lateAfter)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	b.StopTimer()
	slices.Sort(over)
	if len(over) == 0 {
		return
	}
	for q, unit := range map[float64]string{0.5: "p50-ms", 0.99: "p99-ms", 1: "max-ms"} {
		b.ReportMetric(float64(over[int(q*float64(len(over)-1))].Milliseconds()), unit)
	}
}

// written is when a fact about a task was written that says this.
func written(entries []api.LogEntry, says func(api.LogEntry) bool, t workflow.TaskName) time.Time {
	i := slices.IndexFunc(entries, func(e api.LogEntry) bool { return says(e) && e.Task == t })
	return entries[i].At
}
