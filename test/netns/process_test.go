//go:build linux

// Package netns_test runs real nodes, each in a process of its own, and takes
// their network away: processes are killed, come back elsewhere, change their
// addresses, lose their links and are cut apart.
package netns_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/assemble"
)

// A process of this test is the test's own binary, told by folderVar to be the
// node of a folder; with inviteVar set it joins first.
const (
	folderVar = "MUTIRAO_NETNS_FOLDER"
	inviteVar = "MUTIRAO_NETNS_INVITATION"
	logVar    = "MUTIRAO_TEST_LOG"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(folderVar); dir != "" {
		if err := runNode(dir); err != nil {
			fmt.Fprintln(os.Stderr, filepath.Base(dir), err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func runNode(dir string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if token := os.Getenv(inviteVar); token != "" {
		if _, err := assemble.Join(ctx, dir, assemble.JoinOptions{Invitation: token, Name: filepath.Base(dir)}); err != nil {
			return err
		}
	}
	cfg, err := configs.Load(dir)
	if err != nil {
		return err
	}
	var log *slog.Logger
	if os.Getenv(logVar) != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})).With("node", filepath.Base(dir))
	}
	h, err := assemble.Open(dir, cfg, "test", log)
	if err != nil {
		return err
	}
	go tellGauges(ctx, dir)
	return h.Run(ctx)
}

// gaugesFile is where a node of this test says, on SIGUSR1, how many goroutines it
// has.
const gaugesFile = "gauges"

func tellGauges(ctx context.Context, dir string) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1)
	for {
		select {
		case <-ctx.Done():
			return
		case <-asked:
		}
		text := fmt.Sprintf("goroutines: %d\n", runtime.NumGoroutine())
		if err := os.WriteFile(filepath.Join(dir, gaugesFile), []byte(text), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}

// process is a node in a process of its own.
type process struct {
	t     *testing.T
	name  string
	dir   string
	space string // its network namespace; empty: ours
	cmd   *exec.Cmd
	node  *api.Client
}

// configure writes the node's configuration.
func (p *process) configure(lines ...string) {
	p.t.Helper()
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		p.t.Fatal(err)
	}
	text := strings.Join(append(lines, "api: unix:api.sock"), "\n") + "\n"
	if err := os.WriteFile(filepath.Join(p.dir, configs.File), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// start runs the node until end or the test's end; it has joined when it answers.
func (p *process) start(env ...string) {
	p.t.Helper()
	args := []string{os.Args[0]}
	if p.space != "" {
		args = append([]string{"ip", "netns", "exec", p.space}, args...)
	}
	p.cmd = exec.Command(args[0], args[1:]...)
	p.cmd.Env = append(append(os.Environ(), folderVar+"="+p.dir), env...)
	p.cmd.Stderr = os.Stderr
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	within(p.t, 20*time.Second, p.name+" answers", func() bool {
		var err error
		if p.node, err = api.Dial(p.dir); err != nil {
			return false
		}
		_, err = p.node.Status(p.t.Context())
		return err == nil
	})
}

// end kills the process.
func (p *process) end() {
	if p.cmd == nil {
		return
	}
	if err := p.cmd.Process.Kill(); err != nil {
		p.t.Errorf("kill %s: %v", p.name, err)
	}
	_ = p.cmd.Wait() // killed: it says so
	p.cmd = nil
}

// states are the states of all partners, as p sees them, by name.
func (p *process) states() map[string]string {
	ctx, cancel := context.WithTimeout(p.t.Context(), 5*time.Second)
	defer cancel()
	out := map[string]string{}
	all, err := p.node.Partners(ctx)
	if err != nil {
		return out
	}
	for _, x := range all {
		out[x.Name] = x.State
	}
	return out
}

// sees tells whether p sees each of the named partners in that state.
func (p *process) sees(state string, names ...string) bool {
	got := p.states()
	return !slices.ContainsFunc(names, func(name string) bool { return got[name] != state })
}

// addresses are what p knows of another's addresses.
func (p *process) addresses(of string) string {
	all, err := p.node.Partners(p.t.Context())
	if err != nil {
		return ""
	}
	for _, x := range all {
		if x.Name == of {
			return strings.Join(x.Addresses, " ")
		}
	}
	return ""
}

// within waits until cond holds, at most d, and returns how long it took.
func within(t *testing.T, d time.Duration, what string, cond func() bool) time.Duration {
	t.Helper()
	start := time.Now()
	for !cond() {
		if time.Since(start) > d {
			t.Fatalf("not within %s: %s", d, what)
		}
		<-time.After(20 * time.Millisecond)
	}
	return time.Since(start)
}

// found makes the first process, which invites the others.
func found(t *testing.T, p *process) {
	t.Helper()
	if _, err := node.Init(p.dir, node.InitOptions{Mesh: "test", Name: p.name}); err != nil {
		t.Fatal(err)
	}
	p.start()
	t.Cleanup(p.end)
}

// join starts processes that join by an invitation of the first.
func join(t *testing.T, first *process, others ...*process) {
	t.Helper()
	for _, p := range others {
		inv, err := first.node.Invite(t.Context(), api.InviteRequest{})
		if err != nil {
			t.Fatal(err)
		}
		p.start(inviteVar + "=" + inv.Token)
		t.Cleanup(p.end)
	}
}

func names(all []*process) []string {
	var out []string
	for _, p := range all {
		out = append(out, p.name)
	}
	return out
}

// allSee waits until each of the watchers sees the named partners in a state.
func allSee(t *testing.T, d time.Duration, watchers []*process, state string, who ...string) time.Duration {
	t.Helper()
	start := time.Now()
	for _, p := range watchers {
		ok := func() bool { return p.sees(state, who...) }
		for !ok() {
			if time.Since(start) > d {
				t.Fatalf("%s does not see %v %s within %s: %v", p.name, who, state, d, p.states())
			}
			<-time.After(20 * time.Millisecond)
		}
	}
	return time.Since(start)
}
