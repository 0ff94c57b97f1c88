//go:build unix

// Package coordinator_test elects coordinators among real processes, which are
// killed, stopped and continued.
package coordinator_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
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
// node of a folder.
const folderVar = "MUTIRAO_TEST_FOLDER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(folderVar); dir != "" {
		if err := runNode(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func runNode(dir string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	h, err := assemble.Open(dir, configs.Default(configs.Local), "test", nil)
	if err != nil {
		return err
	}
	return h.Run(ctx)
}

// lease of the votes in these tests: long enough for a busy machine.
const lease = 2 * time.Second

// process is a node in a process of its own.
type process struct {
	t    *testing.T
	name string
	dir  string
	cmd  *exec.Cmd
	node *api.Client
}

func (p *process) start() {
	p.t.Helper()
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), folderVar+"="+p.dir)
	p.cmd.Stderr = os.Stderr
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	eventually(p.t, p.name+" answers", func() bool {
		var err error
		if p.node, err = api.Dial(p.dir); err != nil {
			return false
		}
		_, err = p.node.Status(p.t.Context())
		return err == nil
	})
}

// end kills the process, whatever state it is in.
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

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

func (p *process) status() *api.Coordinator {
	p.t.Helper()
	c, err := p.node.CoordinatorStatus(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

// coordinator is whom p takes for the coordinator; empty: nobody.
func (p *process) coordinator() string {
	p.t.Helper()
	if c := p.status(); c.Coordinator != nil {
		return *c.Coordinator
	}
	return ""
}

// mesh starts a mesh of processes, all of which vote.
func mesh(t *testing.T, names ...string) map[string]*process {
	t.Helper()
	all := map[string]*process{}
	root := t.TempDir()
	founder := &process{t: t, name: names[0], dir: filepath.Join(root, names[0])}
	if _, err := node.Init(founder.dir, node.InitOptions{Mesh: "test", Name: names[0]}); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		p := &process{t: t, name: name, dir: filepath.Join(root, name)}
		if name != founder.name {
			inv, err := all[founder.name].node.Invite(t.Context(), api.InviteRequest{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := assemble.Join(t.Context(), p.dir, assemble.JoinOptions{Invitation: inv.Token, Name: name}); err != nil {
				t.Fatal(err)
			}
		}
		p.start()
		t.Cleanup(p.end)
		all[name] = p
	}
	for _, p := range all {
		eventually(t, p.name+" sees all", func() bool { return p.active() == len(names) })
	}
	if _, err := all[founder.name].node.SetElectorate(t.Context(), api.ElectorateRequest{Set: names, Lease: lease}); err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		eventually(t, p.name+" knows the electorate", func() bool { return len(p.status().Electorate) == len(names) })
	}
	return all
}

func (p *process) active() int {
	list, err := p.node.Partners(p.t.Context())
	if err != nil {
		return 0
	}
	return len(slices.DeleteFunc(list, func(x api.Partner) bool { return x.State != "active" }))
}

// elect has p stand until it is elected: voters that changed lists or
// restarted wait for a lease first.
func (p *process) elect() *api.Coordinator {
	p.t.Helper()
	c, err := p.node.Elect(p.t.Context(), api.ElectRequest{})
	if err != nil {
		p.t.Fatalf("%s is not elected: %v", p.name, err)
	}
	return c
}

// agree waits until these processes take one for the coordinator.
func agree(t *testing.T, who string, among ...*process) {
	t.Helper()
	for _, p := range among {
		eventually(t, fmt.Sprintf("%s follows %q", p.name, who), func() bool { return p.coordinator() == who })
	}
}

// eventually polls cond.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(40 * time.Second)
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("not within 40 s: %s", what)
		}
		<-time.After(20 * time.Millisecond)
	}
}

func TestKilledCoordinatorIsSucceeded(t *testing.T) {
	t.Parallel()
	all := mesh(t, "one", "two", "three", "four", "five")
	first := all["two"].elect()
	if len(first.Votes) < 3 || first.Majority != 3 || len(first.Electorate) != 5 {
		t.Fatalf("elected with %+v, want a majority of five", first)
	}
	agree(t, "two", all["one"], all["three"], all["four"], all["five"])

	all["two"].end()
	agree(t, "", all["one"], all["three"])
	second := all["three"].elect()
	if second.Term <= first.Term {
		t.Errorf("term %d after %d", second.Term, first.Term)
	}
	agree(t, "three", all["one"], all["four"], all["five"])

	// The old coordinator, when it is back, follows the new one.
	all["two"].start()
	agree(t, "three", all["two"])

	if err := all["three"].node.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
	agree(t, "", all["one"], all["three"], all["four"])
	if third := all["two"].elect(); third.Term <= second.Term {
		t.Errorf("term %d after %d", third.Term, second.Term)
	}
	agree(t, "two", all["one"], all["three"], all["four"], all["five"])
}

func TestMinorityElectsNobodyUntilTheFounderOverrides(t *testing.T) {
	t.Parallel()
	all := mesh(t, "one", "two", "three", "four", "five")
	for _, lost := range []string{"three", "four", "five"} {
		all[lost].end()
	}
	eventually(t, "the partner list shrinks", func() bool { return all["one"].active() == 2 && all["two"].active() == 2 })
	for _, candidate := range []string{"one", "two"} { // one stands itself, and has two stand
		start := time.Now()
		_, err := all["one"].node.Elect(t.Context(), api.ElectRequest{Candidate: candidate})
		if err == nil || !strings.Contains(err.Error(), "no majority: ") || !strings.Contains(err.Error(), "four did not answer") {
			t.Errorf("%s stands among two of five: %v", candidate, err)
		}
		t.Logf("%s stood in vain for %s", candidate, time.Since(start))
	}
	agree(t, "", all["one"], all["two"])

	// The two that are left cannot hand over to themselves either.
	r := api.ElectorateRequest{Set: []string{"one", "two"}}
	if _, err := all["one"].node.SetElectorate(t.Context(), r); err == nil || !strings.Contains(err.Error(), "2 of the 3 consents needed") {
		t.Errorf("two of five hand over: %v", err)
	}

	r.Override = true
	e, err := all["one"].node.SetElectorate(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if !e.Override || !strings.Contains(e.Warning, "may keep or elect a coordinator of its own") || e.Number != 1000 || e.Majority != 2 {
		t.Errorf("the override is not shown for what it is: %+v", e)
	}
	eventually(t, "two learns of the override", func() bool {
		e, err := all["two"].node.Electorate(t.Context())
		return err == nil && e.Override && e.Number == 1000
	})
	all["two"].elect()
	agree(t, "two", all["one"])

	// The lost ones, when they are back, follow the founder's list: the three of
	// them elect nobody.
	for _, back := range []string{"three", "four", "five"} {
		all[back].start()
	}
	agree(t, "two", all["three"], all["four"], all["five"])
}

// watch is an instance that somebody must see to.
const watch = `
workflow: watch
tasks:
  look: {type: manual}
`

// hears tells whether p lists an instance that others reported to it.
func (p *process) hears(id string) bool {
	p.t.Helper()
	list, err := p.node.Instances(p.t.Context(), false)
	if err != nil {
		p.t.Fatal(err)
	}
	return slices.ContainsFunc(list, func(in api.InstanceSummary) bool { return in.ID == id && len(in.KnownBy) > 0 })
}

// A coordinator that was stopped past its lease does nothing with its old
// term: from the moment it runs again it neither takes itself for the
// coordinator nor is followed, and what was reported to it is no longer shown.
func TestStoppedCoordinatorIsOutOfOffice(t *testing.T) {
	t.Parallel()
	all := mesh(t, "one", "two", "three")
	old := all["two"].elect()
	agree(t, "two", all["one"], all["three"])
	if _, err := all["three"].node.AddWorkflow(t.Context(), "watch.yaml", []byte(watch)); err != nil {
		t.Fatal(err)
	}
	st, err := all["three"].node.Start(t.Context(), api.StartRequest{Workflow: "watch", Assign: map[string]string{"main": "three"}})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "two hears of three's instance", func() bool { return all["two"].hears(st.ID) })

	all["two"].signal(syscall.SIGSTOP)
	agree(t, "", all["one"], all["three"])
	successor := all["one"].elect()
	if successor.Term <= old.Term {
		t.Fatalf("term %d after %d", successor.Term, old.Term)
	}
	agree(t, "one", all["three"])
	eventually(t, "one hears of three's instance", func() bool { return all["one"].hears(st.ID) })

	all["two"].signal(syscall.SIGCONT)
	for end := time.Now().Add(2 * lease); time.Now().Before(end); {
		for _, p := range []*process{all["one"], all["two"], all["three"]} {
			c := p.status()
			if c.Coordinator != nil && (*c.Coordinator != "one" || c.Term < successor.Term) {
				t.Fatalf("after it was continued, %s takes %s in term %d for the coordinator", p.name, *c.Coordinator, c.Term)
			}
		}
		if all["two"].hears(st.ID) {
			t.Fatal("after it was continued, two shows what was reported to the coordinator")
		}
		<-time.After(5 * time.Millisecond)
	}
	agree(t, "one", all["two"], all["three"])
	if err := all["two"].node.Resign(t.Context()); err == nil || !strings.Contains(err.Error(), "one is") {
		t.Errorf("the old coordinator resigns: %v", err)
	}
}
