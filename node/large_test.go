package node_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
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
	nd, err := node.New(node.Parts{Member: m, Config: cfg, Store: newDisk(), Runner: newHand(), Clock: node.NewSystemClock(), Version: "test"})
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
	if _, err := nd.AddWorkflow(ctx, "x.yaml", []byte(b.String())); err != nil {
		t.Fatalf("refused: %v", err)
	}
	st, err := nd.Start(ctx, api.StartRequest{Workflow: "fanin"})
	if err != nil {
		t.Fatal(err)
	}
	news := make(chan struct{}, 1) // it is over; a watcher may miss that among so many events
	go func() {
		_ = nd.Watch(ctx, func(e api.Event) error {
			if e.Kind == "instance" && e.Text != string(workflow.InstanceRunning) {
				news <- struct{}{}
				return context.Canceled
			}
			return nil
		})
	}()
	for {
		in, err := nd.Show(ctx, st.ID)
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
