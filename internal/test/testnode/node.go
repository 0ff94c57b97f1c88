//go:build unix

// Package testnode runs real nodes for tests, each in a process of its own: the
// test's own binary, started again.
//
// Promises: whatever Start started is killed when the test ends, if not before.
// Nodes are driven and looked at by their API alone, as users do.
//
// Tests call Main from their TestMain.
//
// It imports configs, node, node/api, node/api/httpapi and node/assemble; only tests
// import it.
package testnode

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
	"github.com/mutirao-mesh/mutirao/node/assemble"
)

// What a process is told by its environment.
const (
	folderVar = "MUTIRAO_TEST_FOLDER"     // the node to run
	inviteVar = "MUTIRAO_TEST_INVITATION" // set: it joins first
	logVar    = "MUTIRAO_TEST_LOG"        // set: nodes log in full
)

// T is what a test is told by: *testing.T.
type T interface {
	Helper()
	TempDir() string
	Cleanup(func())
	Context() context.Context
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// Main runs the tests or, in a process that Start started, the node of a folder,
// with what the tests want to go on beside it in there.
func Main(m interface{ Run() int }, beside ...func(ctx context.Context, dir string)) {
	dir := os.Getenv(folderVar)
	if dir == "" {
		os.Exit(m.Run())
	}
	if err := run(dir, beside); err != nil {
		fmt.Fprintln(os.Stderr, filepath.Base(dir), err)
		os.Exit(1)
	}
}

func run(dir string, beside []func(context.Context, string)) error {
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
		log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})).
			With("node", filepath.Base(dir))
	}
	assemble.Economise(cfg)
	h, err := assemble.Open(dir, cfg, "test", log)
	if err != nil {
		return err
	}
	for _, fn := range beside {
		go fn(ctx, dir)
	}
	return h.Run(ctx)
}

// Node is a node in a process of its own.
type Node struct {
	T       T
	Name    string
	Dir     string
	Roles   []string    // that it is given when it founds a mesh or joins one
	Command []string    // what runs this binary in another network; nil: it runs in ours
	Process *os.Process // nil: it does not run
	API     *httpapi.Client
}

// New names a node and gives it a folder.
func New(t T, name string) *Node {
	return &Node{T: t, Name: name, Dir: filepath.Join(t.TempDir(), name)}
}

// Configure writes the node's configuration. Out of another network its API
// reaches us by the file system only.
func (n *Node) Configure(lines ...string) {
	n.T.Helper()
	if err := os.MkdirAll(n.Dir, 0o700); err != nil {
		n.T.Fatal(err)
	}
	text := strings.Join(lines, "\n") + "\n"
	if n.Command != nil {
		text += "api: unix:api.sock\n"
	}
	if err := os.WriteFile(filepath.Join(n.Dir, configs.File), []byte(text), 0o600); err != nil {
		n.T.Fatal(err)
	}
}

// Found has the node found a mesh, and admit others.
func (n *Node) Found(others ...*Node) {
	n.T.Helper()
	if _, err := node.Init(n.Dir, node.InitOptions{Mesh: "test", Name: n.Name, Roles: n.Roles}); err != nil {
		n.T.Fatal(err)
	}
	n.Start()
	n.Admit(others...)
}

// Admit starts nodes, one after the other, that join by an invitation of n.
func (n *Node) Admit(others ...*Node) {
	n.T.Helper()
	for _, o := range others {
		inv, err := n.API.Invite(n.T.Context(), api.InviteRequest{Roles: o.Roles})
		if err != nil {
			n.T.Fatal(err)
		}
		o.start(inviteVar + "=" + inv.Token)
	}
}

// Start runs a member until End or the test's end; it returns when it answers.
func (n *Node) Start() {
	n.T.Helper()
	n.start()
}

func (n *Node) start(env ...string) {
	n.T.Helper()
	args := n.Command
	if args == nil {
		args = os.Args[:1]
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(append(os.Environ(), folderVar+"="+n.Dir), env...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		n.T.Fatal(err)
	}
	n.Process = cmd.Process
	n.T.Cleanup(n.End)
	Within(n.T, 2*time.Minute, n.Name+" answers", func() bool {
		var err error
		if n.API, err = httpapi.Dial(n.Dir); err != nil {
			return false
		}
		_, err = n.API.Status(n.T.Context())
		return err == nil
	})
}

// End kills the process, whatever state it is in.
func (n *Node) End() {
	if n.Process == nil {
		return
	}
	if err := n.Process.Kill(); err != nil {
		n.T.Errorf("kill %s: %v", n.Name, err)
	}
	_, _ = n.Process.Wait() // killed: it says so
	n.Process = nil
}

// Signal sends the process a signal.
func (n *Node) Signal(s syscall.Signal) {
	n.T.Helper()
	if err := n.Process.Signal(s); err != nil {
		n.T.Fatal(err)
	}
}

// States are the states of all partners, as n sees them, by name.
func (n *Node) States() map[string]string {
	ctx, cancel := context.WithTimeout(n.T.Context(), 5*time.Second)
	defer cancel()
	out := map[string]string{}
	all, err := n.API.Partners(ctx)
	if err != nil {
		return out
	}
	for _, x := range all {
		out[x.Name] = x.State
	}
	return out
}

// Sees reports whether n sees each of the named partners in that state.
func (n *Node) Sees(state string, names ...string) bool {
	got := n.States()
	return !slices.ContainsFunc(names, func(name string) bool { return got[name] != state })
}

// Within waits until cond holds, at most d, and returns how long it took.
func Within(t T, d time.Duration, what string, cond func() bool) time.Duration {
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
