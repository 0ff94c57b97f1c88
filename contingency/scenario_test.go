package contingency_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/mutirao-mesh/mutirao/contingency"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// TestScenarios runs testdata/scenarios/*.txt: a graph, how it stands, what
// fails, and what the failures do. Commands:
//
//	define    reads a definition; every task is NOT_READY then
//	stand     reads how slots stand, a line each: TASK STATE; released: RELEASED
//	fail      reads failures, a line each: SLOT [TASK] [waiting]; TASK is the
//	          contingency that failed in the slot, waiting says that it had not begun.
//	          It prints the responses. The slots then stand as they say.
//
// Run with -rewrite to record, and review the difference.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/scenarios", func(t *testing.T, path string) {
		s := &scenario{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			return s.run(t, d)
		})
	})
}

type scenario struct {
	def    *workflow.Definition
	states states
}

func (s *scenario) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "define":
		def, err := workflow.Parse("scenario.yaml", []byte(d.Input))
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		s.def, s.states = def, states{}
		return ""
	case "stand":
		for line := range strings.Lines(d.Input) {
			f := strings.Fields(line)
			s.states[s.task(t, d, f[0])] = f[1]
		}
		return ""
	case "fail":
		return s.fail(t, d)
	}
	d.Fatalf(t, "unknown command %q", d.Cmd)
	return ""
}

func (s *scenario) task(t *testing.T, d *datadriven.TestData, name string) workflow.TaskName {
	if s.def.Task(workflow.TaskName(name)) == nil {
		d.Fatalf(t, "no task %q", name)
	}
	return workflow.TaskName(name)
}

func (s *scenario) fail(t *testing.T, d *datadriven.TestData) string {
	var failures []contingency.Failure
	for line := range strings.Lines(d.Input) {
		f := contingency.Failure{Begun: true}
		for i, word := range strings.Fields(line) {
			switch {
			case word == "waiting":
				f.Begun = false
			case i == 0:
				f.Slot = s.task(t, d, word)
				f.Task = f.Slot
			default:
				f.Task = s.task(t, d, word)
			}
		}
		failures = append(failures, f)
	}
	var b strings.Builder
	for _, r := range contingency.Respond(s.def, failures, s.states) {
		fmt.Fprintf(&b, "%s: %s failed: %s", r.Slot, r.Failed, r.Kind)
		switch r.Kind {
		case workflow.FailContingency:
			fmt.Fprintf(&b, " %s", r.Contingency)
			s.states[r.Slot] = "READY"
		case workflow.FailRelease:
			s.states[r.Slot] = "RELEASED"
		default:
			s.states[r.Slot] = "FAILED"
		}
		b.WriteString("\n")
	}
	if b.Len() == 0 {
		return "nothing\n"
	}
	return b.String()
}

// states is a view of how slots stand, by the names of workflow.State and RELEASED.
type states map[workflow.TaskName]string

// TaskTerm answers as the state of the slot does.
func (s states) TaskTerm(tr workflow.Transition, t workflow.TaskName) workflow.Finding {
	yes, no, byFailure := workflow.Finding{Truth: workflow.True}, workflow.Finding{}, workflow.Finding{ByFailure: true}
	switch at := s[t]; at {
	case "SUCCEEDED":
		if tr == workflow.BecameFailed {
			return no
		}
		return yes
	case "FAILED":
		if tr == workflow.BecameSucceeded {
			return byFailure
		}
		return yes
	case "RELEASED":
		if tr == workflow.BecameSucceeded {
			return workflow.Finding{Dropped: true}
		}
		return yes
	case "BLOCKED":
		return byFailure
	case "SKIPPED":
		return no
	case "READY", "RUNNING":
		if tr == workflow.BecameReady || (tr == workflow.BecameRunning && at == "RUNNING") {
			return yes
		}
	}
	return workflow.Finding{Truth: workflow.Undecided}
}

// DataTerm is undecided: the scenarios are about tasks.
func (s states) DataTerm(*workflow.Expr) workflow.Finding {
	return workflow.Finding{Truth: workflow.Undecided}
}

// The same failures in any order have the same responses.
func TestOrderOfFailures(t *testing.T) {
	def, err := workflow.Parse("order.yaml", []byte("workflow: order\ntasks:\n"+
		"  a: {on-failure: {contingency: x}}\n  b: {after: a, on-failure: release}\n  c: {after: b}\n  d: {after: c, on-failure: {contingency: x}}\n  x: {}\n"))
	if err != nil {
		t.Fatal(err)
	}
	fs := []contingency.Failure{
		{Slot: "a", Task: "a", Begun: true}, {Slot: "b", Task: "b"}, {Slot: "c", Task: "c"}, {Slot: "d", Task: "d"},
	}
	want := fmt.Sprint(contingency.Respond(def, fs, states{"a": "RUNNING"}))
	for i := range fs {
		for j := range fs {
			fs[i], fs[j] = fs[j], fs[i]
			if got := fmt.Sprint(contingency.Respond(def, fs, states{"a": "RUNNING"})); got != want {
				t.Errorf("%v: %s, want %s", fs, got, want)
			}
		}
	}
}
