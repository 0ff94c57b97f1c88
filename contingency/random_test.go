package contingency_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mutirao-mesh/mutirao/contingency"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Of random definitions, most with circles of data, and random failures taken together,
// nothing is done to a slot that can begin no more for what is done to the others: worked
// out a second time, from nothing, as the language says it. No rule says "not": what comes
// to a rest could make it hold, and then something is under way once more.
func TestNothingIsDoneToWhatIsBlocked(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		def, src := randomDefinition(rt)
		s := standing{def: def, states: states{}}
		for _, task := range def.Tasks {
			if !task.ContingencyOnly && rapid.IntRange(0, 3).Draw(rt, "stands") == 0 {
				s.states[task.Name] = rapid.SampledFrom([]string{
					"RUNNING", "RUNNING", "SUCCEEDED", "FAILED", "RELEASED",
				}).Draw(rt, "as")
			}
		}
		before := s.with(nil)
		var failures []contingency.Failure
		for _, task := range def.Tasks {
			at := before.states[task.Name]
			if !task.ContingencyOnly && (at == "" || at == "READY" || at == "RUNNING") &&
				rapid.IntRange(0, 2).Draw(rt, "fails") > 0 {
				failures = append(failures, contingency.Failure{Slot: task.Name, Task: task.Name, Begun: at != ""})
			}
		}
		if len(failures) == 0 {
			return
		}
		rt.Logf("%s\n%v\n%v", src, before.states, failures)
		responses := contingency.Respond(def, failures, before)
		if len(responses) == 0 {
			rt.Errorf("no failure is answered")
		}
		for i, r := range responses {
			f := failures[slices.IndexFunc(failures, func(f contingency.Failure) bool { return f.Slot == r.Slot })]
			others := slices.Delete(slices.Clone(responses), i, i+1)
			if at := s.with(others).states[r.Slot]; !f.Begun && (at == "BLOCKED" || at == "SKIPPED") {
				rt.Errorf("%s is %s by what is done to the others, and it is done to it as well: %v", r.Slot, at,
					responses)
			}
		}
	})
}

func randomDefinition(rt *rapid.T) (*workflow.Definition, string) {
	for {
		var b strings.Builder
		b.WriteString("workflow: random\ndata: {x: {type: integer}, y: {type: integer, default: 3}, z: {type: integer}}\ntasks:\n  cx: {}\n")
		for i := range rapid.IntRange(2, 9).Draw(rt, "tasks") {
			fmt.Fprintf(&b, "  t%d: {%s}\n", i, strings.Join(randomTask(rt, i), ", "))
		}
		def, err := workflow.Parse("random.yaml", []byte(b.String()))
		if err == nil {
			return def, b.String()
		}
		var problems workflow.Errors
		if !errors.As(err, &problems) {
			rt.Fatal(err)
		}
	}
}

func randomTask(rt *rapid.T, i int) []string {
	keys := []string{"timeout: 10m"}
	var terms []string
	for range rapid.IntRange(0, 3).Draw(rt, "terms") {
		if i == 0 || rapid.Bool().Draw(rt, "data") {
			terms = append(terms, rapid.SampledFrom([]string{
				"x > 1", "y > 4", "z > 2", "x > 1", "y > 4", "z > 2", "y > 1", "x == y",
			}).Draw(rt, "term"))
			continue
		}
		tr := rapid.SampledFrom([]string{"succeeded", "succeeded", "succeeded", "failed", "running", "ready"}).
			Draw(rt, "transition")
		terms = append(terms, fmt.Sprintf(`%s("t%d")`, tr, rapid.IntRange(0, i-1).Draw(rt, "of")))
	}
	if len(terms) > 0 {
		keys = append(keys, "when: '"+strings.Join(terms,
			rapid.SampledFrom([]string{" and ", " or ", " or "}).Draw(rt, "op"))+"'")
		if rapid.IntRange(0, 7).Draw(rt, "waits") == 0 {
			keys = append(keys, "time-to-wait: 30m")
		}
	}
	if out := rapid.SampledFrom([]string{"", "", "out: [x]", "out: [y]", "out: [z]", "out: [x, z]"}).Draw(rt, "out"); out != "" {
		keys = append(keys, out)
	}
	if choice := rapid.SampledFrom([]string{"", "on-failure: release", "on-failure: {contingency: cx}"}).
		Draw(rt, "choice"); choice != "" {
		keys = append(keys, choice)
	}
	return keys
}

// standing is how slots stand: states are those that are recorded, or with what follows.
type standing struct {
	states
	def       *workflow.Definition
	unstarted map[workflow.TaskName]bool // failed without a start
	of        *workflow.Task             // whose rule asks
	idle      bool
}

// with is how the slots stand once these responses were given. A contingency leaves its
// slot as it is: waiting, or under way.
func (s standing) with(rs []contingency.Response) standing {
	before := s.states
	s.states, s.unstarted = maps.Clone(before), map[workflow.TaskName]bool{}
	for _, r := range rs {
		s.unstarted[r.Slot] = before[r.Slot] != "RUNNING" && r.Kind != workflow.FailContingency
		switch {
		case r.Kind == workflow.FailRelease:
			s.states[r.Slot] = "RELEASED"
		case r.Kind != workflow.FailContingency:
			s.states[r.Slot] = "FAILED"
		}
	}
	recorded := s.states
	s.states = maps.Clone(recorded)
	s.follow(recorded)
	if s.circles() && s.atRest() {
		s.idle = true
		s.follow(recorded)
	}
	return s
}

// follow works out the states that are not recorded.
func (s standing) follow(recorded states) {
	for more := true; more; {
		more = false
		for _, t := range s.def.Tasks {
			if t.ContingencyOnly || recorded[t.Name] != "" {
				continue
			}
			if at := s.comes(t); at != s.states[t.Name] {
				s.states[t.Name], more = at, true
			}
		}
	}
}

func (s standing) comes(t *workflow.Task) string {
	f := s.rule(t)
	switch {
	case f.Truth == workflow.True && !asksData(t):
		return "READY"
	case f.Truth == workflow.Impossible && f.ByFailure:
		return "BLOCKED"
	case f.Truth == workflow.Impossible:
		return "SKIPPED"
	}
	return ""
}

func (s standing) rule(t *workflow.Task) workflow.Finding {
	s.of = t
	f := t.Rule.Eval(s)
	if f.Dropped {
		f = workflow.Finding{Truth: workflow.True}
	}
	return f
}

func asksData(t *workflow.Task) (asks bool) {
	t.Rule.Terms(func(r *workflow.Rule) { asks = asks || r.Op == workflow.OpData })
	return asks
}

// atRest reports whether something waits for data and nothing is under way.
func (s standing) atRest() (waits bool) {
	for _, t := range s.def.Tasks {
		switch at := s.states[t.Name]; {
		case t.ContingencyOnly:
		case at == "READY", at == "RUNNING":
			return false
		case at != "":
		case t.TimeToWait > 0, s.rule(t).Truth == workflow.True:
			return false
		default:
			waits = waits || asksData(t)
		}
	}
	return waits
}

// circles reports whether tasks wait for each other, by what they write.
func (s standing) circles() bool {
	left := slices.Clone(s.def.Tasks)
	for n := -1; n != len(left); {
		n = len(left)
		before := slices.Clone(left)
		left = slices.DeleteFunc(left, func(t *workflow.Task) bool {
			return !slices.ContainsFunc(before, func(x *workflow.Task) bool { return s.waitsFor(t, x) })
		})
	}
	return len(left) > 0
}

func (s standing) waitsFor(t, x *workflow.Task) (waits bool) {
	t.Rule.Terms(func(r *workflow.Rule) {
		if r.Op == workflow.OpTask {
			waits = waits || r.Task == x.Name
			return
		}
		for _, n := range r.Data.Names() {
			waits = waits || t != x && slices.Contains(s.mayWrite(x), n)
		}
	})
	return waits
}

// mayWrite are the data of a task, and of what may stand in for it.
func (s standing) mayWrite(t *workflow.Task) (out []workflow.DataName) {
	for ; t != nil; t = s.def.Task(t.Contingency) {
		out = append(out, t.Out...)
	}
	return out
}

// TaskTerm answers for the slots, and says what must not disarm an emergency task.
func (s standing) TaskTerm(tr workflow.Transition, t workflow.TaskName) workflow.Finding {
	f := s.states.TaskTerm(tr, t)
	if s.unstarted[t] && (tr == workflow.BecameReady || tr == workflow.BecameRunning) {
		f = workflow.Finding{ByFailure: true}
	}
	f.BySuccess = s.states[t] == "SUCCEEDED" && f.Truth == workflow.Impossible
	return contingency.Spared(f, s.of != nil && s.of.TimeToWait > 0)
}

// DataTerm is undecided while somebody else may write what it asks for. Only y has a value.
func (s standing) DataTerm(e *workflow.Expr) workflow.Finding {
	if v, err := e.Eval(workflow.Env{Data: map[workflow.DataName]workflow.Value{"y": int64(3)}}); err == nil &&
		v == true {
		return workflow.Finding{Truth: workflow.True}
	}
	moves := slices.ContainsFunc(s.def.Tasks, func(t *workflow.Task) bool {
		at := s.states[t.Name]
		open := !t.ContingencyOnly && t != s.of && (at == "" || at == "READY" || at == "RUNNING")
		return open && slices.ContainsFunc(e.Names(),
			func(n workflow.DataName) bool { return slices.Contains(s.mayWrite(t), n) })
	})
	if s.of != nil && s.of.TimeToWait > 0 || moves && !s.idle {
		return workflow.Finding{Truth: workflow.Undecided}
	}
	return workflow.Finding{}
}
