package realproc_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/test/testdisk"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// A node's disk fills up while it works: it says so, can still be asked, and
// goes on by itself when there is room. Its partners are not disturbed.
func TestNodeOnAFullDisk(t *testing.T) {
	disk := testdisk.Small(t, "140", "a node on a full disk") // a small store wants 64 MiB to be free
	if disk == "" {
		return
	}
	tm := newTeam(t, "one", "two")
	full := tm.add("full", filepath.Join(disk, "full"))
	tm.together()
	relay := func(name string, works time.Duration) {
		tm.workflow(`
workflow: ` + name + `
tasks:
  a: {application: sleep, with: {for: ` + works.String() + `}}
  b: {after: a}
  c: {after: b}
partitions: {pa: [a], pb: [b], pc: [c]}
`)
	}
	relay("relay", 300*time.Millisecond)
	relay("long-relay", 5*time.Second) // a works until the disk is full, also on a busy machine
	ctx := context.Background()
	done := tm.begin("relay", map[string]string{"pa": "full", "pb": "one", "pc": "two"})
	tm.succeeded(done, "a", "b", "c")
	holding := tm.begin("long-relay", map[string]string{"pa": "full", "pb": "one", "pc": "two"})
	until(t, "a runs", patience, func() bool { return full.task(holding, "a") == workflow.Running })
	filler := filepath.Join(disk, "filler")
	testdisk.Fill(t, filler)
	until(t, "the node says that its disk is full", patience,
		func() bool { return strings.Contains(full.trouble(), "disk full") })

	_, err := full.client.Start(ctx, api.StartRequest{
		Workflow: "relay", Assign: map[string]string{"pa": "one", "pb": "two", "pc": "full"},
	})
	var shown *api.Error
	if !errors.As(err, &shown) || shown.Code == api.Internal || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("start on a full disk: %v; want the reason", err)
	}
	_, err = full.client.AddWorkflow(ctx, "eleven.yaml", []byte(elevenOf(time.Millisecond)))
	if !errors.As(err, &shown) || shown.Code == api.Internal || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("workflow add on a full disk: %v; want the reason", err)
	}
	for range 30 {
		for _, id := range []string{done, holding} {
			if _, err := full.client.Show(ctx, id); err != nil {
				t.Errorf("show on a full disk: %v", err)
			}
			if _, err := full.client.Log(ctx, id); err != nil {
				t.Errorf("log on a full disk: %v", err)
			}
		}
		if l, err := full.client.Instances(ctx, true); err != nil || len(l) != 2 {
			t.Errorf("instances on a full disk: %v, %v; want two", l, err)
		}
		<-time.After(50 * time.Millisecond)
	}
	if s := full.state(holding); s != workflow.InstanceRunning {
		t.Errorf("on a full disk the instance is %s, want it to wait", s)
	}
	meanwhile := tm.begin("relay", map[string]string{"pa": "one", "pb": "two", "pc": "one"})
	until(t, "the others work on", patience,
		func() bool { return tm.ps[1].state(meanwhile) == workflow.InstanceSucceeded })

	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	tm.succeeded(holding, "a", "b", "c")
	until(t, "the node has no more trouble", patience, func() bool { return full.trouble() == "" })
	tm.succeeded(tm.begin("relay", map[string]string{"pa": "full", "pb": "one", "pc": "two"}), "a", "b", "c")
}

// trouble is what the node's status says is wrong.
func (p *proc) trouble() string {
	p.t.Helper()
	return strings.Join(p.status().Trouble, "; ")
}
