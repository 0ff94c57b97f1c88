package realproc_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/assemble"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// patience bounds the waits for what must happen.
const patience = 60 * time.Second

// until waits for a condition.
func until(t testing.TB, what string, within time.Duration, cond func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		if time.Since(began) > within {
			t.Fatalf("not within %v: %s", within, what)
		}
		<-tick.C
	}
	return time.Since(began)
}

// team is a mesh of nodes in processes.
type team struct {
	t   testing.TB
	dir string
	ps  []*proc

	hands hands // of those who work at an instance (weigh)
}

// newTeam founds a mesh and starts its nodes, which all see each other.
func newTeam(t testing.TB, names ...string) *team {
	t.Helper()
	tm := &team{t: t, dir: t.TempDir()}
	t.Cleanup(func() { all(tm.ps, (*proc).kill) })
	for _, name := range names {
		tm.add(name, filepath.Join(tm.dir, name))
	}
	tm.together()
	return tm
}

// add founds the mesh or lets a node join it, and starts that.
func (tm *team) add(name, dir string) *proc {
	tm.t.Helper()
	p := &proc{t: tm.t, name: name, dir: dir}
	p.configure(freePort(tm.t))
	if len(tm.ps) == 0 {
		if _, err := node.Init(p.dir, node.InitOptions{Mesh: "test", Name: name}); err != nil {
			tm.t.Fatal(err)
		}
	} else {
		tm.join(dir, name)
	}
	p.start()
	tm.ps = append(tm.ps, p)
	return p
}

// join makes a folder a member's.
func (tm *team) join(dir, name string) {
	tm.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	inv, err := tm.ps[0].client.Invite(ctx, api.InviteRequest{})
	if err != nil {
		tm.t.Fatal(err)
	}
	if _, err := assemble.Join(ctx, dir, assemble.JoinOptions{Invitation: inv.Token, Name: name}); err != nil {
		tm.t.Fatal(err)
	}
}

// together waits until all running nodes see each other.
func (tm *team) together() {
	tm.t.Helper()
	for _, p := range tm.ps {
		until(tm.t, p.name+" sees everybody", patience, func() bool {
			return p.sees("active") == len(tm.ps)
		})
	}
}

// sees counts the partners in a state, itself included.
func (p *proc) sees(state string) int {
	ps, err := p.client.Partners(context.Background())
	if err != nil {
		return 0
	}
	n := 0
	for _, x := range ps {
		if x.State == state {
			n++
		}
	}
	return n
}

func (tm *team) node(name string) *proc {
	i := slices.IndexFunc(tm.ps, func(p *proc) bool { return p.name == name })
	return tm.ps[i]
}

// workflow adds a workflow at the first node and waits until all have it.
func (tm *team) workflow(source string) {
	tm.t.Helper()
	w, err := tm.ps[0].client.AddWorkflow(context.Background(), "test.yaml", []byte(source))
	if err != nil {
		tm.t.Fatal(err)
	}
	for _, p := range tm.ps {
		until(tm.t, p.name+" has the workflow", patience, func() bool {
			_, err := p.client.Workflow(context.Background(), string(w.Name))
			return err == nil
		})
	}
}

// begin starts an instance at the first node.
func (tm *team) begin(name string, assign map[string]string) string {
	tm.t.Helper()
	st, err := tm.ps[0].client.Start(context.Background(), api.StartRequest{Workflow: name, Assign: assign})
	if err != nil {
		tm.t.Fatal(err)
	}
	return st.ID
}

// state is how an instance stands at a node, "" if that cannot be told.
func (p *proc) state(id string) workflow.InstanceState {
	in, err := p.client.Show(context.Background(), id)
	if err != nil {
		return ""
	}
	return in.State
}

// task is how a task of an instance stands at a node.
func (p *proc) task(id, name string) workflow.State {
	in, err := p.client.Show(context.Background(), id)
	if err != nil {
		return ""
	}
	for _, x := range in.Tasks {
		if string(x.Name) == name {
			return x.State
		}
	}
	return ""
}

// succeeded waits until an instance has succeeded at all nodes and their logs
// are equal, and checks that each task succeeded once.
func (tm *team) succeeded(id string, tasks ...string) {
	tm.t.Helper()
	for _, p := range tm.ps {
		began := time.Now()
		for p.state(id) != workflow.InstanceSucceeded {
			if time.Since(began) > patience {
				tm.t.Fatalf("%s: instance %s is %q after %v\n%s", p.name, id, p.state(id), patience, tm.tell(id))
			}
			<-time.After(10 * time.Millisecond)
		}
	}
	until(tm.t, "the logs of "+id+" are equal", patience, func() bool {
		first := tm.ps[0].log(id)
		return len(first) > 0 && !slices.ContainsFunc(tm.ps[1:],
			func(p *proc) bool { return !slices.Equal(first, p.log(id)) })
	})
	n := map[string]int{}
	entries, err := tm.ps[0].client.Log(context.Background(), id)
	if err != nil {
		tm.t.Fatal(err)
	}
	for _, e := range entries {
		if e.Succeeds() && e.Counted {
			n[string(e.Task)]++
		}
	}
	for _, task := range tasks {
		if n[task] != 1 {
			tm.t.Errorf("task %s succeeded %d times\n%s", task, n[task], tm.tell(id))
		}
	}
	if len(n) != len(tasks) {
		tm.t.Errorf("%d tasks succeeded, want %d: %v", len(n), len(tasks), n)
	}
}

// log is an instance's log at a node, a line for each fact.
func (p *proc) log(id string) []string {
	entries, err := p.client.Log(context.Background(), id)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		out = append(out, fmt.Sprintf("%d %s %d %.10s %s %s %s %v", e.Time, e.Author, e.Seq, e.Fact, e.Kind, e.Task,
			e.Text, e.Counted))
	}
	return out
}

// tell is all that is known of an instance, for a failed test.
func (tm *team) tell(id string) string {
	var b strings.Builder
	for _, p := range tm.ps {
		fmt.Fprintf(&b, "\n%s has %s:\n%s\n%s\n", p.name, id, strings.Join(p.log(id), "\n"), p.stderr())
	}
	return b.String()
}

// elevenOf is the workflow of figure 16 without its time-outs
// (docs/systems.md, Partitions), where every task takes so long.
func elevenOf(each time.Duration) string {
	return elevenWith(fmt.Sprintf("application: sleep, with: {for: %s}", each))
}

// elevenWith is that workflow with tasks that do this.
func elevenWith(does string) string {
	return strings.ReplaceAll(`
workflow: eleven
tasks:
  a: {TAKES}
  b: {after: a, TAKES}
  c: {after: [a, e], TAKES}
  d: {after: [b, c], TAKES}
  e: {TAKES}
  f: {after: e, TAKES}
  g: {after: f, TAKES}
  h: {after: d, TAKES}
  i: {after: h, TAKES}
  j: {after: [h, g], TAKES}
  k: {after: [i, j], TAKES}
partitions:
  p1: [a, b, c, d]
  p2: [h, i, j, k]
  p3: [e, f, g]
`, "TAKES", does)
}

var (
	elevenTasks = strings.Split("abcdefghijk", "")
	acrossThree = map[string]string{"p1": "one", "p2": "two", "p3": "three"}
)

// status is what a node says of itself.
func (p *proc) status() *api.Status {
	p.t.Helper()
	st, err := p.client.Status(context.Background())
	if err != nil {
		p.t.Fatal(err)
	}
	return st
}

// incarnation is that of a node, as facts carry it.
func (p *proc) incarnation(t testing.TB) fact.Incarnation {
	return fact.Incarnation(decodeHex(t, p.status().Incarnation))
}

// facts are the names of an instance's facts at a node, in logical order.
func (p *proc) facts(t testing.TB, id string) []fact.ID {
	t.Helper()
	entries, err := p.client.Log(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	var out []fact.ID
	for _, e := range entries {
		out = append(out, fact.ID(decodeHex(t, e.Fact)))
	}
	return out
}

func decodeHex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// finish asks for the completion of a person's task.
func finish(id, task string) api.FinishRequest {
	return api.FinishRequest{ID: id, Task: workflow.TaskName(task)}
}
