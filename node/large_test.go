package node_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/runner"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// TestJoinOfThousandsAtANode: a workflow in which one task waits for 6,800 others runs
// to its end, and the node answers meanwhile. In real time: a node that loops would keep
// a simulated clock from ever moving.
func TestJoinOfThousandsAtANode(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs 6,801 tasks")
	}
	const n = 6800
	var b strings.Builder
	b.WriteString("workflow: fanin\ntasks:\n")
	for i := range n {
		fmt.Fprintf(&b, "  t%d: {}\n", i)
	}
	b.WriteString("  join: {after: [")
	for i := range n {
		fmt.Fprintf(&b, "t%d, ", i)
	}
	b.WriteString("]}\n")
	dir := t.TempDir()
	if _, err := node.Init(dir, node.InitOptions{Mesh: "test", Name: "one"}); err != nil {
		t.Fatal(err)
	}
	m, err := node.LoadMember(dir)
	if err != nil {
		t.Fatal(err)
	}
	cfg := configs.Default(configs.LAN)
	cfg.Shards = 1
	nd, err := node.New(node.Parts{
		Member: m, Config: cfg, Store: newDisk(), Runner: newHand(), Clock: node.NewSystemClock(), Version: "test",
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := nd.Begin(newFabric(t).plugIn(m.ID(), newDisk(), nd, "here").network()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = nd.Run(ctx) }()
	defer func() { stop(); <-ended }()
	if _, err := nd.Service().AddWorkflow(ctx, "x.yaml", []byte(b.String())); err != nil {
		t.Fatalf("refused: %v", err)
	}
	st, err := nd.Service().Start(ctx, api.StartRequest{Workflow: "fanin"})
	if err != nil {
		t.Fatal(err)
	}
	news := make(chan struct{}, 1) // it is over; a watcher may miss that among so many events
	go func() {
		_ = nd.Service().Watch(ctx, func(e api.Event) error {
			if e.Kind == "instance" && e.Text != string(workflow.InstanceRunning) {
				news <- struct{}{}
				return context.Canceled
			}
			return nil
		})
	}()
	for {
		in, err := nd.Service().Show(ctx, st.ID)
		if err != nil {
			t.Fatal(err)
		}
		if in.State != workflow.InstanceRunning {
			if in.State != workflow.InstanceSucceeded {
				t.Errorf("it is %s", in.State)
			}
			return
		}
		select {
		case <-news:
		case <-time.After(5 * time.Second):
		}
	}
}

// What is larger than a value, or than a fact, may be is refused where a person says it, and fails
// the task where an application does: each time with the limit.
func TestMoreThanAFactMayHold(t *testing.T) {
	for _, c := range []struct {
		what, limit string
		values      int // that 300 KiB come in
	}{
		{"one value", "at most 65536 are allowed", 1},
		{"five values", "at most 262144 may be recorded", 5},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tm := newTeam(t, "one")
				tm.add("one", `
workflow: reports
data: {v1: {type: string}, v2: {type: string}, v3: {type: string}, v4: {type: string}, v5: {type: string}}
tasks:
  write: {type: manual, out: [v1, v2, v3, v4, v5]}
  scan:  {out: [v1, v2, v3, v4, v5]}
`)
				one, texts, values := tm.p["one"], map[string]string{}, map[workflow.DataName]workflow.Value{}
				for i := range c.values {
					name, part := fmt.Sprintf("v%d", i+1), strings.Repeat("x", 300<<10/c.values)
					texts[name], values[workflow.DataName(name)] = part, part
				}
				_, err := one.api.Start(t.Context(), api.StartRequest{Workflow: "reports", Input: texts})
				if err == nil || !strings.Contains(err.Error(), c.limit) || tm.running("one") != 0 {
					t.Errorf("start with 300 KiB: %v, and %d instances; want an error that says %q, and none", err,
						tm.running("one"), c.limit)
				}
				one.hand.hold("scan")
				id := tm.begin("one", "reports", nil)
				says := func(texts map[string]string) error {
					return one.api.FinishTask(t.Context(), api.FinishRequest{ID: id, Task: "write", Outputs: texts})
				}
				if err := says(texts); err == nil || !strings.Contains(err.Error(), c.limit) {
					t.Errorf("a person's result of 300 KiB: %v, want an error that says %q", err, c.limit)
				}
				if got := tm.task("one", id, "write"); got != workflow.Ready {
					t.Errorf("after that the task is %s, want READY", got)
				}
				if err := says(map[string]string{"v1": "short"}); err != nil {
					t.Errorf("a shorter result is refused: %v", err)
				}
				one.hand.end(t, "scan", runner.Result{Outputs: values})
				synctest.Wait()
				if x := tm.taskOf("one", id, "scan"); x.State != workflow.Failed ||
					!strings.Contains(x.Reason, c.limit) {
					t.Errorf("after a result of 300 KiB the application's task is %s: %q; want FAILED, with %q",
						x.State, x.Reason, c.limit)
				}
				if got := tm.state("one", id); got != workflow.InstanceFailed {
					t.Errorf("the instance is %s, want failed", got)
				}
			})
		})
	}
}
