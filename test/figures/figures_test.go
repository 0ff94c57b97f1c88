//go:build unix

// Package figures_test shows each figure of docs/systems.md, Failure, and the
// stories around them, as a user sees them: the program itself, several
// processes of it, killed and frozen, and what "mutirao show" says in the end.
//
// The scenarios in testdata are testscripts, to be read as what they are: a
// definition, what is done and to whom, and the outcome. Beside the usual
// commands there are
//
//	mesh NAME...           founds a mesh with these nodes, and waits until they see each other
//	crash NAME             kill -9
//	up NAME                starts a node again
//	freeze NAME, thaw NAME SIGSTOP, SIGCONT: a node that nobody can reach
//	start NAME ARG...      "mutirao start" at a node; $ID is the instance
//	outcome NAME FILE      waits until "mutirao show" at a node gives this
//	apart NAME A B LEAST   in its log the texts A and B are at least so far apart
//
// A node's configuration is the file NAME.yaml, or else node.yaml.
package figures_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/tools/txtar"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
)

var rewrite = flag.Bool("rewrite", false, "write down what is shown, instead of comparing")

// scripts is the folder of the scenarios.
var scripts = func() string {
	dir, err := filepath.Abs("testdata")
	if err != nil {
		panic(err) // there is no working folder
	}
	return dir
}()

// patience is for what a loaded machine does at its leisure.
const patience = 2 * time.Minute

func TestFigures(t *testing.T) {
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", bin, "../../cmd/mutirao")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	testscript.Run(t, testscript.Params{
		Dir: scripts, RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("PATH", bin+string(os.PathListSeparator)+e.Getenv("PATH"))
			e.Values[nodesKey{}] = map[string]*exec.Cmd{}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"mesh":    mesh,
			"up":      func(ts *testscript.TestScript, _ bool, args []string) { up(ts, args[0]) },
			"crash":   func(ts *testscript.TestScript, _ bool, args []string) { crash(ts, args[0]) },
			"freeze":  func(ts *testscript.TestScript, _ bool, args []string) { signal(ts, args[0], syscall.SIGSTOP) },
			"thaw":    func(ts *testscript.TestScript, _ bool, args []string) { signal(ts, args[0], syscall.SIGCONT) },
			"start":   start,
			"outcome": outcome,
			"apart":   apart,
		},
	})
}

// nodesKey is where a script keeps its processes, by name.
type nodesKey struct{}

func nodesOf(ts *testscript.TestScript) map[string]*exec.Cmd {
	return ts.Value(nodesKey{}).(map[string]*exec.Cmd)
}

// command runs the program at a node, and gives what it prints.
func command(ts *testscript.TestScript, node string, args ...string) string {
	out, err := try(ts, node, args...)
	ts.Check(err)
	return out
}

func try(ts *testscript.TestScript, node string, args ...string) (string, error) {
	cmd := exec.Command(program(ts), append([]string{"--dir", node}, args...)...)
	cmd.Dir = ts.MkAbs(".")
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("mutirao %s at %s: %w: %s", strings.Join(args, " "), node, err, exit.Stderr)
	}
	return string(out), err
}

// shown is what a node shows of the instance; it may not have heard of it yet.
func shown(ts *testscript.TestScript, node string) string {
	text, err := try(ts, node, "show", ts.Getenv("ID"))
	if err != nil {
		return err.Error()
	}
	return timeless(text)
}

// mesh founds a mesh: the first node invites the others.
func mesh(ts *testscript.TestScript, _ bool, names []string) {
	for i, name := range names {
		if i == 0 {
			command(ts, name, "init", "--mesh", "figures", "--name", name)
		} else {
			var inv api.Invitation
			ts.Check(json.Unmarshal([]byte(command(ts, names[0], "invite", "-o", "json")), &inv))
			command(ts, name, "join", inv.Token, "--name", name)
		}
		configure(ts, name)
		up(ts, name)
	}
	for _, name := range names {
		within(ts, name+" sees everybody active", func() (string, bool) {
			var list []api.Partner
			ts.Check(json.Unmarshal([]byte(command(ts, name, "partners", "-o", "json")), &list))
			active := slices.DeleteFunc(list, func(p api.Partner) bool { return p.State != "active" })
			return fmt.Sprintf("%d of %d", len(active), len(names)), len(active) == len(names)
		})
	}
}

// configure copies a node's configuration from the script's files.
func configure(ts *testscript.TestScript, name string) {
	text, err := os.ReadFile(ts.MkAbs(name + ".yaml"))
	if err != nil {
		text, err = os.ReadFile(ts.MkAbs("node.yaml"))
	}
	ts.Check(err)
	ts.Check(os.WriteFile(filepath.Join(ts.MkAbs(name), "config.yaml"), text, 0o600))
}

// program is the one that was built, the first that the script would find.
func program(ts *testscript.TestScript) string {
	dir, _, _ := strings.Cut(ts.Getenv("PATH"), string(os.PathListSeparator))
	return filepath.Join(dir, "mutirao")
}

// up starts a node and waits until it answers.
func up(ts *testscript.TestScript, name string) {
	cmd := exec.Command(program(ts), "--dir", name, "up", "-q")
	cmd.Dir = ts.MkAbs(".")
	stderr, err := os.OpenFile(ts.MkAbs(name+".log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	ts.Check(err)
	defer stderr.Close()
	cmd.Stderr = stderr
	ts.Check(cmd.Start())
	nodesOf(ts)[name] = cmd
	ts.Defer(func() { end(cmd) })
	within(ts, name+" answers", func() (string, bool) {
		node, err := httpapi.Dial(ts.MkAbs(name))
		if err != nil {
			return err.Error(), false
		}
		if node.Access().PID != cmd.Process.Pid {
			return "its folder still tells of its last run", false
		}
		return "", true
	})
}

// end kills a process that may have been killed already.
func end(cmd *exec.Cmd) {
	if cmd.ProcessState == nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed: it says so
	}
}

func crash(ts *testscript.TestScript, name string) {
	cmd := nodesOf(ts)[name]
	ts.Check(cmd.Process.Kill())
	end(cmd)
}

func signal(ts *testscript.TestScript, name string, s syscall.Signal) {
	ts.Check(nodesOf(ts)[name].Process.Signal(s))
}

// start starts an instance of a definition, which it adds first.
func start(ts *testscript.TestScript, _ bool, args []string) {
	node, file := args[0], args[1]
	ref := strings.TrimSpace(command(ts, node, "workflow", "add", file))
	name, _, _ := strings.Cut(ref, "@")
	ts.Setenv("ID", strings.TrimSpace(command(ts, node, append([]string{"start", name}, args[2:]...)...)))
}

// outcome waits until a node shows the instance as a file says.
func outcome(ts *testscript.TestScript, _ bool, args []string) {
	if *rewrite {
		record(ts, args[0], args[1])
		return
	}
	want := ts.ReadFile(args[1])
	within(ts, args[0]+" shows\n"+want, func() (string, bool) {
		got := shown(ts, args[0])
		return "it shows\n" + got, got == want
	})
}

// record writes down what a node shows once that has not changed for a while.
func record(ts *testscript.TestScript, node, file string) {
	var got string
	for same := 0; same < 15; same++ {
		if now := shown(ts, node); now != got {
			got, same = now, 0
		}
		<-time.After(400 * time.Millisecond)
	}
	path := filepath.Join(scripts, ts.Name()+".txtar")
	a, err := txtar.ParseFile(path)
	ts.Check(err)
	i := slices.IndexFunc(a.Files, func(f txtar.File) bool { return f.Name == file })
	a.Files[i].Data = []byte(got)
	ts.Check(os.WriteFile(path, txtar.Format(a), 0o600))
}

var (
	blanks = regexp.MustCompile(` +\n`)
	old    = regexp.MustCompile(`(; )?as known [0-9]+ (s|min|h) ago`)
)

// timeless is what "mutirao show" says of an instance's state and tasks, but
// for its ID, when what happened, and how old that is.
func timeless(text string) string {
	head, rest, _ := strings.Cut(text, "\n")
	fields := strings.Fields(head)
	out := fields[len(fields)-1] + "\n"
	_, table, _ := strings.Cut(rest, "\nTASK")
	table = "TASK" + old.ReplaceAllString(table, "")
	from, to := strings.Index(table, "STARTED"), strings.Index(table, "REMARKS")
	for line := range strings.Lines(table) {
		switch {
		case strings.TrimSpace(line) == "", strings.HasPrefix(line, "waits for an order: "): // the tasks end here
			return blanks.ReplaceAllString(out, "\n")
		case len(line) <= to:
			out += strings.TrimRight(line[:from], " ") + "\n"
		default:
			out += line[:from] + line[to:]
		}
	}
	return blanks.ReplaceAllString(out, "\n")
}

// apart checks the time between two entries of a log, both by one author's clock.
func apart(ts *testscript.TestScript, _ bool, args []string) {
	var entries []api.LogEntry
	ts.Check(json.Unmarshal([]byte(command(ts, args[0], "log", ts.Getenv("ID"), "-o", "json")), &entries))
	at := func(text string) time.Time {
		i := slices.IndexFunc(entries, func(e api.LogEntry) bool {
			return strings.Contains(string(e.Task)+" "+e.Text, text)
		})
		if i < 0 {
			ts.Fatalf("%s has no entry %q in its log", args[0], text)
		}
		return entries[i].At
	}
	least, err := time.ParseDuration(args[3])
	ts.Check(err)
	if d := at(args[2]).Sub(at(args[1])); d < least {
		ts.Fatalf("%q came %s after %q, want %s at least", args[2], d, args[1], least)
	}
}

// within waits until cond holds.
func within(ts *testscript.TestScript, what string, cond func() (string, bool)) {
	for end := time.Now().Add(patience); ; {
		got, ok := cond()
		if ok {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("not within %s: %s\n%s", patience, what, got)
		}
		<-time.After(100 * time.Millisecond)
	}
}
