//go:build linux

package netns_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/test/testnode"
	"github.com/mutirao-mesh/mutirao/node/api"
)

// patient is the connection time of a node that is killed and comes back: a busy
// machine takes its time to start a process.
const patient = 5 * time.Minute

// onLoopback is a mesh on this machine only. The last node is patient.
func onLoopback(t *testing.T, count int) []*testnode.Node {
	t.Helper()
	all := newNodes(t, count)
	for _, p := range all {
		listenAt(p, 1)
	}
	listenAt(all[count-1], 1, "connection-time: "+patient.String())
	all[0].Found(all[1:]...)
	return all
}

// listenAt makes a LAN node with an address of its own, of this machine only.
func listenAt(p *testnode.Node, host int, more ...string) {
	p.Configure(append(more, "preset: lan",
		fmt.Sprintf("listen: [/ip4/127.0.0.%d/udp/0/quic-v1, /ip4/127.0.0.%d/tcp/0]", host, host))...)
}

const hop = `
workflow: hop
tasks:
  first: {}
  second: {after: first}
partitions:
  here:  [first]
  there: [second]
`

// Ten processes with the LAN preset: everybody sees everybody; one is killed and
// comes back elsewhere; another is killed and does not.
func TestTenProcesses(t *testing.T) {
	all := onLoopback(t, 10)
	t.Logf("all see all %s after the last join", allSee(t, healing, all, "active", names(all)...))

	comesBackElsewhere(t, all)
	staysAway(t, all)
}

// comesBackElsewhere kills one; what it is sent meanwhile waits for it. It
// returns within its connectionTime, at another address and port.
func comesBackElsewhere(t *testing.T, all []*testnode.Node) {
	away, others := all[9], all[:9]
	start := time.Now()
	away.End()
	t.Logf("killed: unreachable everywhere after %s", allSee(t, healing, others, "unreachable", away.Name))
	if _, err := all[0].API.AddWorkflow(t.Context(), "hop.yaml", []byte(hop)); err != nil {
		t.Fatal(err)
	}
	st, err := all[0].API.Start(t.Context(),
		api.StartRequest{Workflow: "hop", Assign: map[string]string{"here": all[1].Name, "there": away.Name}})
	if err != nil {
		t.Fatal(err)
	}
	listenAt(away, 2, "connection-time: "+patient.String())
	away.Start()
	if gone := time.Since(start); gone >= patient {
		t.Fatalf("the restart came %s after the kill, later than its connection time", gone)
	}
	took := testnode.Within(t, healing, "what was pending is done by the one who came back", func() bool {
		in, err := all[0].API.Show(t.Context(), st.ID)
		return err == nil && in.State == "succeeded"
	})
	t.Logf("back elsewhere: what was pending was done after %s", took)
	t.Logf("back elsewhere: seen by all after another %s", allSee(t, healing, others, "active", away.Name))
	in, err := all[0].API.Show(t.Context(), st.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range in.Tasks {
		if task.Name == "second" && (task.Partner != away.Name || task.Attempt != 1) {
			t.Errorf("second was done by %s as attempt %d: want %s, attempt 1", task.Partner, task.Attempt, away.Name)
		}
	}
}

// staysAway kills one for good.
func staysAway(t *testing.T, all []*testnode.Node) {
	gone, others := all[5], append(append([]*testnode.Node{}, all[:5]...), all[6:]...)
	const connectionTime = 15 * time.Second
	start := time.Now()
	gone.End()
	t.Logf("killed: unreachable everywhere after %s", allSee(t, healing, others, "unreachable", gone.Name))
	allSee(t, connectionTime+healing, others, "expired", gone.Name)
	took := time.Since(start)
	t.Logf("killed: expired everywhere after %s", took)
	if took < connectionTime/2 {
		t.Errorf("expired %s after it was killed: its connectionTime is %s", took, connectionTime)
	}
}
