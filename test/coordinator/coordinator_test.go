//go:build unix

// Package coordinator_test elects coordinators among real processes, which are
// killed, stopped and continued.
package coordinator_test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/contingency/waits"
	"github.com/mutirao-mesh/mutirao/internal/test/testnode"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

func TestMain(m *testing.M) { testnode.Main(m) }

// lease of the votes in these tests: long enough for a busy machine.
const lease = 2 * time.Second

type process struct{ *testnode.Node }

func (p *process) status() *api.Coordinator {
	p.T.Helper()
	c, err := p.API.CoordinatorStatus(p.T.Context())
	if err != nil {
		p.T.Fatal(err)
	}
	return c
}

// coordinator is the partner that p takes for the coordinator; empty: nobody.
func (p *process) coordinator() string {
	p.T.Helper()
	if c := p.status(); c.Coordinator != nil {
		return *c.Coordinator
	}
	return ""
}

// mesh starts a mesh of processes, all of which vote.
func mesh(t *testing.T, names ...string) map[string]*process {
	t.Helper()
	return meshWith(t, "preset: local", lease, names...)
}

func meshWith(t *testing.T, config string, lease time.Duration, names ...string) map[string]*process {
	t.Helper()
	all := map[string]*process{}
	var nodes []*testnode.Node
	for _, name := range names {
		n := testnode.New(t, name)
		n.Configure(config)
		all[name], nodes = &process{n}, append(nodes, n)
	}
	nodes[0].Found(nodes[1:]...)
	for _, n := range nodes {
		eventually(t, n.Name+" sees all", func() bool { return n.Sees("active", names...) })
	}
	r := api.ElectorateRequest{Set: names, Lease: api.Span(lease)}
	if _, err := nodes[0].API.SetElectorate(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		eventually(t, p.Name+" knows the electorate", func() bool { return len(p.status().Electorate) == len(names) })
	}
	return all
}

// active counts the partners that p sees active, itself included.
func (p *process) active() int {
	n := 0
	for _, state := range p.States() {
		if state == "active" {
			n++
		}
	}
	return n
}

// elect has p stand until it is elected: voters that changed lists or
// restarted wait for a lease first.
func (p *process) elect() *api.Coordinator {
	p.T.Helper()
	c, err := p.API.Elect(p.T.Context(), api.ElectRequest{})
	if err != nil {
		p.T.Fatalf("%s is not elected: %v", p.Name, err)
	}
	return c
}

// agree waits until these processes take one for the coordinator.
func agree(t *testing.T, who string, among ...*process) {
	t.Helper()
	for _, p := range among {
		eventually(t, fmt.Sprintf("%s follows %q", p.Name, who), func() bool { return p.coordinator() == who })
	}
}

// eventually polls cond.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	testnode.Within(t, 2*time.Minute, what, cond)
}

func TestKilledCoordinatorIsSucceeded(t *testing.T) {
	t.Parallel()
	all := mesh(t, "one", "two", "three", "four", "five")
	first := all["two"].elect()
	if len(first.Votes) < 3 || first.Majority != 3 || len(first.Electorate) != 5 {
		t.Fatalf("elected with %+v, want a majority of five", first)
	}
	agree(t, "two", all["one"], all["three"], all["four"], all["five"])

	all["two"].End()
	agree(t, "", all["one"], all["three"])
	second := all["three"].elect()
	if second.Term <= first.Term {
		t.Errorf("term %d after %d", second.Term, first.Term)
	}
	agree(t, "three", all["one"], all["four"], all["five"])

	// The old coordinator, when it is back, follows the new one.
	all["two"].Start()
	agree(t, "three", all["two"])

	if err := all["three"].API.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
	agree(t, "", all["one"], all["two"], all["three"], all["four"])
	if third := all["two"].elect(); third.Term <= second.Term {
		t.Errorf("term %d after %d", third.Term, second.Term)
	}
	agree(t, "two", all["one"], all["three"], all["four"], all["five"])
}

func TestMinorityElectsNobodyUntilTheFounderOverrides(t *testing.T) {
	t.Parallel()
	all := mesh(t, "one", "two", "three", "four", "five")
	for _, lost := range []string{"three", "four", "five"} {
		all[lost].End()
	}
	eventually(t, "the partner list shrinks",
		func() bool { return all["one"].active() == 2 && all["two"].active() == 2 })
	for _, candidate := range []string{"one", "two"} { // one stands itself, and has two stand
		start := time.Now()
		_, err := all["one"].API.Elect(t.Context(), api.ElectRequest{Candidate: candidate})
		if err == nil || !strings.Contains(err.Error(), "no majority (") ||
			!strings.Contains(err.Error(), " of 3 votes): ") ||
			!strings.Contains(err.Error(), "four did not answer") {
			t.Errorf("%s stands among two of five: %v", candidate, err)
		}
		t.Logf("%s stood in vain for %s", candidate, time.Since(start))
	}
	agree(t, "", all["one"], all["two"])

	// The two that are left cannot hand over to themselves either.
	r := api.ElectorateRequest{Set: []string{"one", "two"}}
	if _, err := all["one"].API.SetElectorate(t.Context(), r); err == nil ||
		!strings.Contains(err.Error(), "2 of the 3 consents needed") {
		t.Errorf("two of five hand over: %v", err)
	}

	r.Override = true
	e, err := all["one"].API.SetElectorate(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if !e.Override || !strings.Contains(e.Warning, "may keep or elect a coordinator of its own") || e.Number != 1000 ||
		e.Majority != 2 {
		t.Errorf("the override is not shown for what it is: %+v", e)
	}
	eventually(t, "two learns of the override", func() bool {
		e, err := all["two"].API.Electorate(t.Context())
		return err == nil && e.Override && e.Number == 1000
	})
	all["two"].elect()
	agree(t, "two", all["one"])

	// The lost ones, when they are back, follow the founder's list: the three of
	// them elect nobody.
	for _, back := range []string{"three", "four", "five"} {
		all[back].Start()
	}
	agree(t, "two", all["three"], all["four"], all["five"])
}

// watch is an instance that somebody must see to.
const watch = `
workflow: watch
tasks:
  look: {type: manual}
`

// hears reports whether p lists a running instance that others reported to it.
func (p *process) hears(id string) bool {
	p.T.Helper()
	list, err := p.API.Instances(p.T.Context(), false)
	if err != nil {
		p.T.Fatal(err)
	}
	return slices.ContainsFunc(list, func(in api.InstanceSummary) bool {
		return in.ID == id && in.State == workflow.InstanceRunning && len(in.KnownBy) > 0
	})
}

// A coordinator that was stopped past its lease does nothing with its old
// term: from the moment it runs again it neither takes itself for the
// coordinator nor is followed, and what was reported to it is no longer shown.
func TestStoppedCoordinatorIsOutOfOffice(t *testing.T) {
	t.Parallel()
	all := mesh(t, "one", "two", "three")
	old := all["two"].elect()
	agree(t, "two", all["one"], all["three"])
	if _, err := all["three"].API.AddWorkflow(t.Context(), "watch.yaml", []byte(watch)); err != nil {
		t.Fatal(err)
	}
	st, err := all["three"].API.Start(t.Context(),
		api.StartRequest{Workflow: "watch", Assign: map[string]string{"main": "three"}})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "two hears of three's instance", func() bool { return all["two"].hears(st.ID) })

	all["two"].Signal(syscall.SIGSTOP)
	agree(t, "", all["one"], all["three"])
	successor := all["one"].elect()
	if successor.Term <= old.Term {
		t.Fatalf("term %d after %d", successor.Term, old.Term)
	}
	agree(t, "one", all["three"])
	eventually(t, "one hears of three's instance", func() bool { return all["one"].hears(st.ID) })

	all["two"].Signal(syscall.SIGCONT)
	for end := time.Now().Add(2 * lease); time.Now().Before(end); {
		for _, p := range []*process{all["one"], all["two"], all["three"]} {
			c := p.status()
			if c.Coordinator != nil && (*c.Coordinator != "one" || c.Term < successor.Term) {
				t.Fatalf("after it was continued, %s takes %s in term %d for the coordinator", p.Name, *c.Coordinator,
					c.Term)
			}
		}
		if all["two"].hears(st.ID) {
			t.Fatal("after it was continued, two shows what was reported to the coordinator")
		}
		<-time.After(5 * time.Millisecond)
	}
	agree(t, "one", all["two"], all["three"])
	if err := all["two"].API.Resign(t.Context()); err == nil || !strings.Contains(err.Error(), "one is") {
		t.Errorf("the old coordinator resigns: %v", err)
	}
}

// relay goes from one partner to another and back.
const relay = `
workflow: relay
coordination: orchestration
tasks:
  a: {type: manual}
  b: {after: a, type: manual}
  c: {after: b, type: manual}
  d: {after: c, type: manual}
partitions:
  pa: [a]
  pb: [b]
  pc: [c]
  pd: [d]
`

// A coordinator that falls silent while it hands work on, before it has acknowledged it,
// after, or when it has handed on, holds that up for less than a guardian-timeout, though
// its lease lasts longer, and nobody misses its signs of life yet.
func TestHandOversPastASilentCoordinator(t *testing.T) {
	const lease = 25 * time.Second
	all := meshWith(t, "preset: local\nconnection-time: 1m", lease, "one", "two", "three")
	one := all["one"]
	eventually(t, "one is elected", func() bool { // its voters wait for the lease that was theirs when they started
		_, err := one.API.Elect(t.Context(), api.ElectRequest{})
		return err == nil
	})
	agree(t, "one", all["two"], all["three"])
	if _, err := one.API.AddWorkflow(t.Context(), "relay.yaml", []byte(relay)); err != nil {
		t.Fatal(err)
	}
	st, err := one.API.Start(t.Context(),
		api.StartRequest{
			Workflow: "relay", Assign: map[string]string{"pa": "two", "pb": "three", "pc": "two", "pd": "three"},
		})
	if err != nil {
		t.Fatal(err)
	}
	at, to := all["two"], all["three"]
	eventually(t, "a is ready", func() bool { return at.state(st.ID, "a") == workflow.Ready })
	for _, x := range []struct {
		done, next workflow.TaskName
		after      time.Duration
	}{{"a", "b", 0}, {"b", "c", 3 * time.Millisecond}, {"c", "d", 20 * time.Millisecond}} {
		agree(t, "one", at, to)
		began := time.Now()
		if err := at.API.FinishTask(t.Context(), api.FinishRequest{ID: st.ID, Task: x.done}); err != nil {
			t.Fatal(err)
		}
		<-time.After(x.after)
		one.Signal(syscall.SIGSTOP)
		eventually(t, string(x.next)+" is ready", func() bool { return to.state(st.ID, x.next) == workflow.Ready })
		took := time.Since(began)
		one.Signal(syscall.SIGCONT)
		t.Logf("stopped %s after %s was done: %s is ready after %s", x.after, x.done, x.next, took)
		if took >= waits.GuardianTimeout {
			t.Errorf("%s is ready %s after %s was done: want it within %s", x.next, took, x.done,
				waits.GuardianTimeout)
		}
		at, to = to, at
	}
}

// state is that of a task, as far as p knows.
func (p *process) state(id string, task workflow.TaskName) workflow.State {
	in, err := p.API.Show(p.T.Context(), id)
	if err != nil {
		return ""
	}
	for _, t := range in.Tasks {
		if t.Name == task {
			return t.State
		}
	}
	return ""
}
