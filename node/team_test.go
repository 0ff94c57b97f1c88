package node_test

import (
	"context"
	"crypto/ed25519"
	_ "embed"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/runner"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// bubbleStart is when every synctest bubble begins.
var bubbleStart = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// elapsed is the time since the test began, in milliseconds.
func elapsed() int { return int(time.Since(bubbleStart).Milliseconds()) }

// pass lets time go by, in the bubble of a test.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// bubbleClock reads the clock of a synctest bubble as all three clocks.
type bubbleClock struct{}

func (bubbleClock) Now() moment.Now {
	since := time.Since(bubbleStart) + time.Hour // booted an hour ago
	return moment.Now{Awake: since, Boot: since, Wall: time.Now()}
}

// BootID names the one boot that a test has.
func (bubbleClock) BootID() string { return "bubble" }

func (bubbleClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// hand runs tasks by hand: a task that is held goes on when it is let go, all
// others succeed at once.
type hand struct {
	mu      sync.Mutex
	started []runner.Job
	held    map[workflow.TaskName]bool
	waiting map[workflow.TaskName]func(runner.Result)
	takes   time.Duration      // more than 0: tasks are done one after the other, each in that time
	free    time.Time          // when the last of them will be done
	begins  func(j runner.Job) // called when a task begins; nil: nothing is
}

func newHand() *hand {
	return &hand{held: map[workflow.TaskName]bool{}, waiting: map[workflow.TaskName]func(runner.Result){}}
}

// hold has tasks wait until they are let go.
func (h *hand) hold(tasks ...workflow.TaskName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range tasks {
		h.held[t] = true
	}
}

// work has tasks take time, one after the other.
func (h *hand) work(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.takes = d
}

// letAllGo has the tasks that wait succeed, and holds none any more.
func (h *hand) letAllGo() {
	h.mu.Lock()
	waiting := h.waiting
	h.waiting = map[workflow.TaskName]func(runner.Result){}
	clear(h.held)
	h.mu.Unlock()
	for _, done := range waiting {
		done(runner.Result{})
	}
}

// Has implements node.Runner.
func (h *hand) Has(workflow.ApplicationName) bool { return true }

// Cancel implements node.Runner.
func (h *hand) Cancel(string) {}

// Start implements node.Runner.
func (h *hand) Start(j runner.Job, done func(runner.Result)) {
	if h.begins != nil {
		h.begins(j)
	}
	h.mu.Lock()
	h.started = append(h.started, j)
	if h.takes > 0 {
		if now := time.Now(); h.free.Before(now) {
			h.free = now
		}
		h.free = h.free.Add(h.takes)
		time.AfterFunc(time.Until(h.free), func() { done(runner.Result{}) })
		h.mu.Unlock()
		return
	}
	if h.held[j.Task] {
		h.waiting[j.Task] = done
		h.mu.Unlock()
		return
	}
	h.mu.Unlock()
	done(runner.Result{})
}

// letGo has a held task succeed, and succeed at once if it is run again.
func (h *hand) letGo(t *testing.T, task workflow.TaskName) {
	t.Helper()
	h.end(t, task, runner.Result{})
}

// fail has a held task fail.
func (h *hand) fail(t *testing.T, task workflow.TaskName) {
	t.Helper()
	h.end(t, task, runner.Result{Failed: true, Reason: "told to fail"})
}

func (h *hand) end(t *testing.T, task workflow.TaskName, res runner.Result) {
	t.Helper()
	h.mu.Lock()
	done := h.waiting[task]
	delete(h.waiting, task)
	delete(h.held, task)
	h.mu.Unlock()
	if done == nil {
		t.Fatalf("task %s does not run", task)
	}
	done(res)
}

// runs is how often a task was started.
func (h *hand) runs(task workflow.TaskName) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, j := range h.started {
		if j.Task == task {
			n++
		}
	}
	return n
}

// testLogger logs to standard error when MUTIRAO_TEST_LOG is set.
func testLogger(name string) *slog.Logger {
	if os.Getenv("MUTIRAO_TEST_LOG") == "" {
		return nil
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})).With("node", name)
}

// partner is one node of a team. disk and dir stay when its process ends.
type partner struct {
	t    *testing.T
	f    *fabric
	name string
	dir  string
	disk *disk
	hand *hand
	// adjust changes the configuration at the next start.
	adjust func(*configs.Config)
	// fit changes what the node is put together from at the next start.
	fit func(*node.Parts)
	// at are the addresses that it has from the next start on.
	at []string

	node *node.Node
	api  api.Service // of node
	plug *plug
	stop context.CancelFunc
	done chan error
}

// start starts the partner's node; it is connected with nobody.
func (p *partner) start() {
	p.t.Helper()
	m, err := node.LoadMember(p.dir)
	if err != nil {
		p.t.Fatal(err)
	}
	cfg := configs.Default(configs.LAN)
	cfg.Shards = 1
	cfg.ConnectionTime = time.Hour
	cfg.Capabilities = []workflow.Capability{workflow.Capability("is-" + p.name)}
	if p.adjust != nil {
		p.adjust(&cfg)
	}
	parts := node.Parts{
		Member: m, Config: cfg, Store: p.disk, Runner: p.hand, Clock: bubbleClock{}, Version: "test",
		Logger: testLogger(p.name), Keys: node.UserKeysIn(p.dir), Loud: true,
	}
	if p.fit != nil {
		p.fit(&parts)
	}
	p.node, err = node.New(parts)
	if err != nil {
		p.t.Fatal(err)
	}
	p.api = p.node.Service()
	p.plug = p.f.plugIn(m.ID(), p.disk, p.node, "at "+p.name)
	if p.at != nil {
		p.plug.addrs = p.at
	}
	if err := p.node.Begin(p.plug.network()); err != nil {
		p.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(p.t.Context())
	p.stop, p.done = stop, make(chan error, 1)
	n, done := p.node, p.done
	go func() { done <- n.Run(ctx) }()
}

// crash ends the partner's node as kill -9 does: commits under way are lost, and
// nothing more is said.
func (p *partner) crash() {
	p.f.unplug(p.plug)
	p.disk.loseWaiting()
	p.end()
}

// leave has the partner's node go down in good order; what it said last arrives.
func (p *partner) leave() {
	p.t.Helper()
	p.end()
	synctest.Wait()
	p.f.unplug(p.plug)
}

func (p *partner) end() {
	p.t.Helper()
	p.stop()
	if err := <-p.done; err != nil {
		p.t.Errorf("%s: %v", p.name, err)
	}
	p.node, p.api = nil, nil
}

func (p *partner) id() workflow.PartnerID { return p.plug.id }

// team is a mesh of running nodes in one bubble.
type team struct {
	t *testing.T
	f *fabric
	p map[string]*partner
}

// newTeam founds a mesh of these partners, started and connected. What follows a
// colon in a name is its role. It must be called inside a bubble.
func newTeam(t *testing.T, names ...string) *team {
	t.Helper()
	return newTeamOf(t, nil, names...)
}

// newTeamOf is newTeam with another configuration.
func newTeamOf(t *testing.T, adjust func(*configs.Config), names ...string) *team {
	t.Helper()
	return newTeamWith(t, adjust, nil, names...)
}

// newTeamWith is newTeamOf with other parts.
func newTeamWith(t *testing.T, adjust func(*configs.Config), fit func(*node.Parts), names ...string) *team {
	t.Helper()
	tm := &team{t: t, f: newFabric(t), p: map[string]*partner{}}
	root := t.TempDir()
	names = slices.Clone(names)
	for i, name := range names {
		name, role, _ := strings.Cut(name, ":")
		names[i] = name
		roles := slices.DeleteFunc([]string{role}, func(r string) bool { return r == "" })
		p := &partner{
			t: t, f: tm.f, name: name, dir: filepath.Join(root, name), disk: newDisk(), hand: newHand(), adjust: adjust,
			fit: fit,
		}
		if i == 0 {
			if _, err := node.Init(p.dir, node.InitOptions{Mesh: "test", Name: name, Roles: roles}); err != nil {
				t.Fatal(err)
			}
		} else {
			inv, err := tm.p[names[0]].api.Invite(t.Context(), api.InviteRequest{Roles: roles})
			if err != nil {
				t.Fatal(err)
			}
			if err := tm.join(p, inv.Token); err != nil {
				t.Fatal(err)
			}
		}
		tm.p[name] = p
		p.start()
	}
	t.Cleanup(tm.close)
	for i, a := range names {
		for _, b := range names[:i] {
			tm.connect(a, b)
		}
	}
	synctest.Wait()
	return tm
}

func (tm *team) close() {
	for _, p := range tm.p {
		if p.node != nil {
			tm.f.unplug(p.plug)
			p.disk.loseWaiting()
			p.end()
		}
	}
	synctest.Wait()
}

// join redeems an invitation for a partner.
func (tm *team) join(p *partner, token string) error {
	_, err := node.Join(tm.t.Context(), p.dir, token, p.name,
		func(key ed25519.PrivateKey) (node.Requester, func(), error) {
			return stranger{tm.f, trust.IDOf(key.Public().(ed25519.PublicKey))}, func() {}, nil
		})
	return err
}

func (tm *team) connect(a, b string)    { tm.f.connect(tm.p[a].plug, tm.p[b].plug) }
func (tm *team) disconnect(a, b string) { tm.f.disconnect(tm.p[a].plug, tm.p[b].plug) }

// add adds a workflow at a partner and waits until all connected ones have it.
func (tm *team) add(at, source string) {
	tm.t.Helper()
	if _, err := tm.p[at].api.AddWorkflow(tm.t.Context(), "test.yaml", []byte(source)); err != nil {
		tm.t.Fatal(err)
	}
	synctest.Wait()
}

// begin starts an instance at a partner.
func (tm *team) begin(at, name string, assign map[string]string) string {
	tm.t.Helper()
	st, err := tm.p[at].api.Start(tm.t.Context(), api.StartRequest{Workflow: name, Assign: assign})
	if err != nil {
		tm.t.Fatal(err)
	}
	synctest.Wait()
	return st.ID
}

// state is how an instance stands at a partner; "" if it is not known there.
func (tm *team) state(at, id string) workflow.InstanceState {
	tm.t.Helper()
	in, err := tm.p[at].api.Show(tm.t.Context(), id)
	if err != nil {
		return ""
	}
	return in.State
}

// task is how a task stands at a partner.
func (tm *team) task(at, id string, name workflow.TaskName) workflow.State {
	tm.t.Helper()
	in, err := tm.p[at].api.Show(tm.t.Context(), id)
	if err != nil {
		tm.t.Fatalf("%s cannot show %s: %v", at, id, err)
	}
	for _, x := range in.Tasks {
		if x.Name == name {
			return x.State
		}
	}
	tm.t.Fatalf("no task %s", name)
	return ""
}

// succeeds lets time pass until an instance has succeeded at these partners, and
// tells how long that took.
func (tm *team) succeeds(id string, within time.Duration, at ...string) time.Duration {
	tm.t.Helper()
	began := time.Now()
	for _, name := range at {
		for tm.state(name, id) != workflow.InstanceSucceeded {
			if time.Since(began) > within {
				tm.t.Fatalf("not within %v at %s: success; it is %q there\n%s", within, name, tm.state(name, id),
					lines(tm.log(name, id)))
			}
			pass(10 * time.Millisecond)
		}
	}
	return time.Since(began)
}

// once checks that each of the tasks succeeded exactly once and that the
// partners' logs are the same.
func (tm *team) once(id string, tasks []string, at ...string) {
	tm.t.Helper()
	var first []string
	for _, name := range at {
		log := tm.log(name, id)
		if first == nil {
			first = log
		} else if !slices.Equal(first, log) {
			tm.t.Errorf("the logs of %s and %s differ:\n%s\n\n%s", at[0], name, lines(first), lines(log))
		}
	}
	entries, err := tm.p[at[0]].api.Log(tm.t.Context(), id)
	if err != nil {
		tm.t.Fatal(err)
	}
	n := map[string]int{}
	for _, e := range entries {
		if e.Succeeds() && e.Counted {
			n[string(e.Task)]++
		}
	}
	for _, task := range tasks {
		if n[task] != 1 {
			tm.t.Errorf("task %s succeeded %d times:\n%s", task, n[task], lines(first))
		}
	}
}

// log is an instance's log at a partner, a line for each fact.
func (tm *team) log(at, id string) []string {
	entries, err := tm.p[at].api.Log(tm.t.Context(), id)
	if err != nil {
		return []string{err.Error()}
	}
	var out []string
	for _, e := range entries {
		out = append(out, fmt.Sprintf("%d %s %d %.10s %s %s %s %v", e.Time, e.Author, e.Seq, e.Fact, e.Kind, e.Task,
			e.Text, e.Counted))
	}
	return out
}

func lines(s []string) string {
	out := ""
	for _, l := range s {
		out += l + "\n"
	}
	return out
}

// counter is one of a partner's counters.
func (tm *team) counter(at, name string) uint64 {
	tm.t.Helper()
	st, err := tm.p[at].api.Status(tm.t.Context())
	if err != nil {
		tm.t.Fatal(err)
	}
	return st.Counters[name]
}

// chain is a workflow of tasks a, b, c, each in a partition of its own: pa, pb, pc.
const chain = `
workflow: chain
tasks:
  a: {}
  b: {after: a}
  c: {after: b}
partitions:
  pa: [a]
  pb: [b]
  pc: [c]
`

//go:embed assemble/testdata/eleven.yaml
var eleven string

var elevenTasks = []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"}

var acrossThree = map[string]string{"p1": "one", "p2": "two", "p3": "three"}
