package dataflow_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/dataflow"
	"github.com/mutirao-mesh/mutirao/workflow"
)

type values = map[workflow.DataName]workflow.Value

func parse(t *testing.T, text string) *workflow.Definition {
	t.Helper()
	def, err := workflow.Parse("flow.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if why := def.FlowObstacle(); why != "" {
		t.Fatal(why)
	}
	return def
}

// story drives a board: each job is begun as soon as it is due.
type story struct {
	t    *testing.T
	b    *dataflow.Board
	num  int
	jobs map[workflow.TaskName]dataflow.Job
	// waits are those that somebody has to take first.
	waits map[workflow.TaskName]bool
}

func begin(t *testing.T, def *workflow.Definition, data values, waits ...workflow.TaskName) *story {
	s := &story{t: t, jobs: map[workflow.TaskName]dataflow.Job{}, waits: map[workflow.TaskName]bool{}}
	for _, w := range waits {
		s.waits[w] = true
	}
	s.b = dataflow.NewBoard(dataflow.New(def), "i", data, s.id(), 1)
	s.fire()
	return s
}

func (s *story) id() (id dataflow.ID) {
	s.num++
	copy(id[:], fmt.Sprintf("%032d", s.num))
	return id
}

func (s *story) fire() {
	for _, p := range s.b.Due() {
		job := dataflow.Job{Fact: s.id(), Task: p.Task.Name}
		if why := s.b.Fire(job, s.b.StateID(p.State), s.waits[p.Task.Name], 1); why != "" {
			s.t.Errorf("%s: %s", p.Task.Name, why)
		}
		s.jobs[p.Task.Name] = job
	}
}

// done ends a transition well, and says why that changes nothing.
func (s *story) done(task workflow.TaskName, updates values) string {
	why := s.b.Done(s.jobs[task], s.id(), updates, 1)
	s.fire()
	return why
}

func (s *story) wants(what string, got, want any) {
	s.t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		s.t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func (s *story) pending() string {
	var out []string
	for _, p := range s.b.Pending() {
		out = append(out, fmt.Sprintf("%s@%d", p.Task.Name, p.State))
	}
	return strings.Join(out, " ")
}

const parallel = `
workflow: w
data: {a: {type: integer}, b: {type: integer}, n: {type: integer, default: 0}}
tasks:
  one: {when: n == 0 and a == null, repeat: true, application: x, out: [a, n]}
  two: {when: n == 0 and b == null, repeat: true, application: x, out: [a, b, n]}
  join: {when: a != null and b != null and n == 0, repeat: true, application: x, out: [n]}
conditions: {both: a != null and b != null}
final: n == 2
`

// A result is applied to the current state, and not to the one that fired its transition.
func TestResultsAreAppliedToTheCurrentState(t *testing.T) {
	s := begin(t, parse(t, parallel), values{"n": int64(0)})
	s.wants("pending", s.pending(), "one@0 two@0")
	s.wants("one", s.done("one", values{"a": int64(1)}), "")
	s.wants("pending", s.pending(), "two@0")
	s.wants("two", s.done("two", values{"b": int64(2)}), "")
	r := s.b.Last()
	s.wants("fired by", r.FiredBy, 0)
	s.wants("input", r.Input, 1)
	s.wants("values", s.b.Values(), values{"a": int64(1), "b": int64(2), "n": int64(0)})
	s.wants("conflicts", len(r.Conflicts), 0)
	s.wants("pending", s.pending(), "join@2")
	s.wants("join", s.done("join", values{"n": int64(2)}), "")
	s.wants("ended", s.b.Ended(), true)
	s.wants("status", s.b.Last().Status, dataflow.Final)
	s.wants("pending", s.pending(), "")
}

func TestConflictsAreShownOrFail(t *testing.T) {
	s := begin(t, parse(t, parallel), values{"n": int64(0)})
	s.done("one", values{"a": int64(1)})
	s.wants("clashes", s.b.Clashes(s.jobs["two"], values{"a": int64(5)}), []workflow.DataName{})
	s.done("two", values{"a": int64(5), "b": int64(2)})
	s.wants("conflicts", s.b.Last().Conflicts, []workflow.DataName{"a"})

	s = begin(t, parse(t, strings.Replace(parallel, "two: {", "two: {on-conflict: fail, ", 1)), values{"n": int64(0)})
	s.done("one", values{"a": int64(1)})
	s.wants("clashes", s.b.Clashes(s.jobs["two"], values{"a": int64(5)}), []workflow.DataName{"a"})
	s.wants("no clash", s.b.Clashes(s.jobs["two"], values{"b": int64(5)}), []workflow.DataName{})
}

// A result whose state would be final while others are pending changes nothing.
func TestFinalWaitsForTheOthers(t *testing.T) {
	s := begin(t, parse(t, parallel), values{"n": int64(0)})
	s.wants("one", s.done("one", values{"n": int64(2), "a": int64(1)}), dataflow.FinalTooEarly)
	s.wants("state", s.b.State(), 0)
	s.wants("values", s.b.Values(), values{"n": int64(0)})
	s.wants("pending", s.pending(), "one@0 two@0")
	s.done("two", values{"b": int64(1)})
	s.wants("one", s.done("one", values{"n": int64(2), "a": int64(1)}), "")
	s.wants("ended", s.b.Ended(), true)
}

// A transition that fails interrupts the instance: all others are aborted, and nothing fires.
func TestFailureInterrupts(t *testing.T) {
	s := begin(t, parse(t, parallel), values{"n": int64(0)})
	s.wants("fail", s.b.Fail(s.jobs["one"], s.id(), "no luck", 2), "")
	x := s.b.Interrupted()
	s.wants("consistent", x.Consistent, true)
	s.wants("cause", x.Cause, "no luck")
	for _, r := range s.b.History() {
		s.wants("reason of "+string(r.Task), r.Reason, map[workflow.TaskName]string{"one": "no luck"}[r.Task])
	}
	s.wants("pending", s.pending(), "")
	s.wants("late", s.done("two", values{"b": int64(2)}), "the transition is not pending")
	aborted := 0
	for _, r := range s.b.History() {
		if r.Mark == dataflow.Aborted {
			aborted++
		}
	}
	s.wants("aborted", aborted, 2)
}

func TestStateThatLeadsNowhereInterrupts(t *testing.T) {
	text := `
workflow: w
data: {n: {type: integer, default: 0}}
tasks:
  go: {when: n == 0, repeat: true, application: x, out: [n]}
final: n == 2
`
	s := begin(t, parse(t, text), values{"n": int64(0)})
	s.done("go", values{"n": int64(1)})
	s.wants("status", s.b.Last().Status, dataflow.Exception)
	s.wants("consistent", s.b.Interrupted().Consistent, false)

	s = begin(t, parse(t, text+"constraints: [{name: few, when: n < 5}]\n"), values{"n": int64(0)})
	s.done("go", values{"n": int64(1)})
	s.wants("all rules hold", s.b.Interrupted().Consistent, true)

	s = begin(t, parse(t, text+"constraints: [{name: few, when: n < 2, strict: true}]\n"), values{"n": int64(0)})
	s.done("go", values{"n": int64(2)})
	s.wants("final and broken", s.b.Ended(), false)
	s.wants("cause", s.b.Interrupted().Cause, "the state breaks the constraint few: n < 2")
	s.wants("reason", s.b.Last().Reason, s.b.Interrupted().Cause)
}

func TestBoundAndDisabled(t *testing.T) {
	def := parse(t, `
workflow: w
data: {n: {type: integer, default: 0}}
tasks:
  go: {when: n >= 0, repeat: {times: 2}, application: x, out: [n]}
  off: {when: n >= 0, repeat: true, enabled: false, application: x, out: [n]}
final: n == 9
`)
	s := begin(t, def, values{"n": int64(0)})
	s.wants("pending", s.pending(), "go@0")
	s.done("go", values{"n": int64(1)})
	s.wants("pending", s.pending(), "go@1")
	s.done("go", values{"n": int64(2)})
	s.wants("pending", s.pending(), "")
	if s.b.Interrupted() == nil {
		t.Error("the bound is reached, and nothing else goes on: that is an exception")
	}
}

func TestWhatMayNotBegin(t *testing.T) {
	def := parse(t, strings.Replace(parallel, "final:", "initial: a == null or a > 0\nfinal:", 1))
	f := dataflow.New(def)
	for _, c := range []struct {
		data values
		want string
	}{
		{values{"n": int64(0)}, ""},
		{values{"n": int64(2)}, ""},
		{values{"n": int64(1)}, "its initial state fires no trigger, and is not final: nothing would ever happen"},
		{values{"n": int64(0), "a": int64(-1)}, "its initial condition does not hold: a == null or a > 0"},
	} {
		if got := f.Rejects(c.data); got != c.want {
			t.Errorf("%v: %q, want %q", c.data, got, c.want)
		}
	}
}

// A new holder begins what is pending once more; what the one before began does not count any more.
func TestHandOver(t *testing.T) {
	s := begin(t, parse(t, parallel), values{"n": int64(0)})
	old := s.jobs["one"]
	s.b.HandOver()
	s.fire()
	s.wants("late", s.b.Done(old, s.id(), values{"a": int64(1)}, 1), "the transition is not pending")
	s.wants("again", s.done("one", values{"a": int64(1)}), "")
	s.wants("fired by", s.b.Last().FiredBy, 0)
}

func TestEquivalence(t *testing.T) {
	s := begin(t, parse(t, `
workflow: w
data: {n: {type: integer, default: 0}, note: {type: string}}
tasks:
  go: {when: n < 5, repeat: true, application: x, out: [n, note]}
conditions: {odd: n % 2 == 1}
final: n == 9
`), values{"n": int64(0)})
	for n := range int64(3) {
		s.done("go", values{"n": n + 1, "note": fmt.Sprint(n)})
	}
	for state, want := range []int{-1, -1, 0, 1} {
		s.wants(fmt.Sprintf("S%d", state), s.b.EquivalentTo(state), want)
	}
}

// manyTriggers is a flow whose states fire go, beside triggers of which none has to be looked at for that.
func manyTriggers(beside int) string {
	var text strings.Builder
	text.WriteString(
		"workflow: w\ndata: {n: {type: integer, default: 0}, other: {type: integer, default: 0}}\ntasks:\n")
	text.WriteString("  go: {when: n >= 0, repeat: true, application: x, out: [n]}\n")
	for i := range beside {
		fmt.Fprintf(&text, "  t%d: {when: other > %d, repeat: true, application: x}\n", i, i)
	}
	text.WriteString("final: n < 0\n")
	return text.String()
}

// However long the history and however many triggers, a state costs what it changes.
func TestStateCostsWhatItChanges(t *testing.T) {
	for _, triggers := range []int{1, 10, 100, 1000} {
		s := begin(t, parse(t, manyTriggers(triggers-1)), values{"n": int64(0), "other": int64(0)})
		first, most, before := 0, 0, s.b.Steps()
		for n := range int64(10_000) {
			if why := s.done("go", values{"n": n + 1}); why != "" {
				t.Fatal(why)
			}
			cost := s.b.Steps() - before
			before, most = s.b.Steps(), max(most, cost)
			if n == 0 {
				first = cost
			}
			if cost > 2*first || cost > 10 {
				t.Fatalf("%d triggers: state %d took %d steps, the first %d: only what changed may be looked at", triggers,
					n+1, cost, first)
			}
		}
		t.Logf("%d triggers: the first state took %d steps, none of 10,000 more than %d", triggers, first, most)
	}
}

// BenchmarkState is the processor time of a new state beside so many triggers.
func BenchmarkState(b *testing.B) {
	for _, triggers := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprintf("triggers-%d", triggers), func(b *testing.B) {
			def, err := workflow.Parse("flow.yaml", []byte(manyTriggers(triggers-1)))
			if err != nil {
				b.Fatal(err)
			}
			data := values{"n": int64(0), "other": int64(0)}
			board := dataflow.NewBoard(dataflow.New(def), "i", data, dataflow.ID{}, 1)
			job := dataflow.Job{Task: "go"}
			for n := int64(1); b.Loop(); n++ {
				board.Fire(job, board.StateID(board.State()), false, 1)
				if why := board.Done(job, dataflow.ID{byte(n)}, values{"n": n}, 1); why != "" {
					b.Fatal(why)
				}
			}
		})
	}
}
