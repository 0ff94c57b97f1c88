package realproc_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// atATime is how many instances are under way together.
const atATime = 64

// An instance of eleven tasks that touch nothing outside, over three processes, 64 at a time, is so many facts at each
// node, and so many bytes between all of them together.
func TestWhatElevenTasksCost(t *testing.T) {
	const instances, mostFacts, mostBytes = 512, 13, 6000
	tm := newTeam(t, "one", "two", "three")
	tm.workflow(elevenWith("application: noop"))
	ids := tm.runEleven(instances, acrossThree, nil)
	bytes, frames := tm.traffic()
	t.Logf("for each of %d instances: %.1f frames, %d bytes", instances, float64(frames)/instances, bytes/instances)
	if bytes/instances > mostBytes {
		t.Errorf("for an instance %d bytes went between the nodes, at most %d", bytes/instances, mostBytes)
	}
	for _, id := range ids {
		if n := len(tm.ps[0].log(id)); n > mostFacts {
			t.Fatalf("an instance has %d facts, at most %d:\n%s", n, mostFacts, tm.tell(id))
		}
	}
}

// BenchmarkThreeProcesses runs b.N such instances, started and awaited through the API: run it with a fixed number, as
// -benchtime 3000x, and flowfloor before and after (docs/performance.md). What is counted is the nodes', not this
// program's.
func BenchmarkThreeProcesses(b *testing.B) { elevenOver(b, acrossThree, "one", "two", "three") }

// BenchmarkOneProcess is the same with one node.
func BenchmarkOneProcess(b *testing.B) {
	elevenOver(b, map[string]string{"p1": "one", "p2": "one", "p3": "one"}, "one")
}

func elevenOver(b *testing.B, assign map[string]string, nodes ...string) {
	tm := newTeam(b, nodes...)
	tm.workflow(elevenWith("application: noop"))
	before := tm.processorTime()
	var took []time.Duration
	b.ResetTimer()
	began := time.Now()
	tm.runEleven(b.N, assign, &took)
	span := time.Since(began)
	b.StopTimer()
	slices.Sort(took)
	n := float64(b.N)
	bytes, frames := tm.traffic()
	b.ReportMetric(n/span.Seconds(), "instances/s")
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64((tm.processorTime()-before).Microseconds())/1000/n, "cpu-ms/instance")
	b.ReportMetric(float64(bytes)/n, "wire-B/instance")
	b.ReportMetric(float64(frames)/n, "frames/instance")
	most := 0
	for _, p := range tm.ps {
		most = max(most, p.rss())
	}
	b.ReportMetric(float64(most), "rss-MiB")
}

// runEleven runs so many instances, whose partitions are assigned so, and says which; took, if it is not nil, is how
// long each took.
func (tm *team) runEleven(n int, assign map[string]string, took *[]time.Duration) (ids []string) {
	tm.t.Helper()
	one := tm.ps[0].client
	ends := awaited{over: map[string]chan struct{}{}, gap: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go one.Watch(ctx, ends.heard)
	var left atomic.Int64
	left.Store(int64(n))
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range atATime {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				began, missed := time.Now(), ends.missed()
				st, err := one.Start(ctx, api.StartRequest{Workflow: "eleven", Assign: assign})
				if err != nil {
					tm.t.Error(err)
					return
				}
				if !ends.wait(ctx, one, st.ID, missed) {
					tm.t.Errorf("%s has not ended within %s", st.ID, patience)
					return
				}
				mu.Lock()
				ids = append(ids, st.ID)
				if took != nil {
					*took = append(*took, time.Since(began))
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return ids
}

// awaited are the ends of instances.
type awaited struct {
	mu   sync.Mutex
	over map[string]chan struct{}
	gap  chan struct{} // closed, and another in its place, once events were left out
}

// of is closed when an instance has succeeded.
func (a *awaited) of(id string) chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over[id] == nil {
		a.over[id] = make(chan struct{})
	}
	return a.over[id]
}

// missed is closed once events were left out.
func (a *awaited) missed() chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.gap
}

// wait waits until an instance has succeeded, and reports whether it has. A watcher that does not keep up misses
// events, and is told so: missed is what that was to close when the instance began. Then it asks.
func (a *awaited) wait(ctx context.Context, c *httpapi.Client, id string, missed chan struct{}) bool {
	late := time.After(patience)
	for {
		select {
		case <-a.of(id):
			return true
		case <-missed:
		case <-late:
			return false
		}
		missed = a.missed()
		if in, err := c.Show(ctx, id); err == nil && in.State == workflow.InstanceSucceeded {
			return true
		}
	}
}

func (a *awaited) heard(e api.Event) error {
	if e.Kind == api.EventGap {
		a.mu.Lock()
		close(a.gap)
		a.gap = make(chan struct{})
		a.mu.Unlock()
	}
	if e.Kind == "instance" && e.Text == "succeeded" {
		select {
		case <-a.of(e.Instance):
		default:
			close(a.of(e.Instance))
		}
	}
	return nil
}

// traffic is what the nodes sent each other since they began.
func (tm *team) traffic() (bytes, frames int) {
	tm.t.Helper()
	for _, p := range tm.ps {
		st := p.status()
		bytes, frames = bytes+int(st.Traffic.BytesOut), frames+int(st.Traffic.FramesOut)
	}
	return bytes, frames
}

// processorTime is what the nodes took of it since they began.
func (tm *team) processorTime() (sum time.Duration) {
	tm.t.Helper()
	for _, p := range tm.ps {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
		if err != nil {
			tm.t.Fatal(err)
		}
		// After the name, which may have blanks: 12th and 13th, in hundredths of a second.
		fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		for _, f := range fields[11:13] {
			n, err := strconv.Atoi(f)
			if err != nil {
				tm.t.Fatal(err)
			}
			sum += time.Duration(n) * 10 * time.Millisecond
		}
	}
	return sum
}
