package workflow

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A written rule, as a tree that the test builds itself.
type written struct {
	op   string // and, or, not, term, data
	args []*written
	tr   Transition
	task TaskName
	name string
}

func drawRule(t *rapid.T, depth int) *written {
	op := "term"
	if depth > 0 {
		op = rapid.SampledFrom([]string{"and", "or", "not", "term", "data"}).Draw(t, "op")
	}
	w := &written{op: op}
	switch op {
	case "and", "or":
		w.args = []*written{drawRule(t, depth-1), drawRule(t, depth-1)}
	case "not":
		w.args = []*written{drawRule(t, depth-1)}
	case "term":
		w.tr = rapid.SampledFrom([]Transition{BecameReady, BecameRunning, BecameSucceeded, BecameFailed}).
			Draw(t, "transition")
		w.task = rapid.SampledFrom([]TaskName{"a", "b", "c"}).Draw(t, "task")
	case "data":
		w.name = rapid.SampledFrom([]string{"p", "q", "r"}).Draw(t, "data")
	}
	return w
}

func (w *written) text() string {
	switch w.op {
	case "not":
		return "not (" + w.args[0].text() + ")"
	case "term":
		return fmt.Sprintf("%s(%q)", w.tr, w.task)
	case "data":
		return w.name
	}
	return "(" + w.args[0].text() + ") " + w.op + " (" + w.args[1].text() + ")"
}

// naive evaluates the tree as it stands, in Kleene's three values.
func (w *written) naive(v fixedView) Truth {
	switch w.op {
	case "and":
		return min(w.args[0].naive(v), w.args[1].naive(v))
	case "or":
		return max(w.args[0].naive(v), w.args[1].naive(v))
	case "not":
		return True - w.args[0].naive(v)
	case "term":
		return v.terms[string(w.tr)+string(w.task)]
	}
	return truthOf(v.env.Data[DataName(w.name)])
}

// fixedView answers every leaf from tables; null data are undecided.
type fixedView struct {
	terms map[string]Truth
	env   Env
}

func (v fixedView) TaskTerm(tr Transition, t TaskName) Finding {
	return Finding{Truth: v.terms[string(tr)+string(t)]}
}

func (v fixedView) DataTerm(e *Expr) Finding {
	value, err := e.Eval(v.env)
	if err != nil {
		panic(err)
	}
	return Finding{Truth: truthOf(value)}
}

func truthOf(v Value) Truth {
	switch v {
	case nil:
		return Undecided
	case true:
		return True
	}
	return Impossible
}

// The rule in negation normal form comes to the same as what was written,
// whatever is known of tasks and data.
func TestRuleMeansWhatWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawRule(t, 4)
		s := testScope()
		for _, n := range []DataName{"p", "q", "r"} {
			s.data[n] = &DataDecl{Name: n, Type: TypeBoolean}
		}
		tree, mistake := parseExpr(w.text())
		if mistake != nil {
			t.Fatal(w.text(), mistake)
		}
		rule := newRuler(s, tree, func(_ int, _, message string) { t.Fatal(w.text(), message) }).rule(tree, false)
		checkNormalForm(t, rule)
		for range 8 {
			v := fixedView{terms: map[string]Truth{}, env: Env{Data: map[DataName]Value{}}}
			for _, tr := range []Transition{BecameReady, BecameRunning, BecameSucceeded, BecameFailed} {
				for _, task := range []string{"a", "b", "c"} {
					v.terms[string(tr)+task] = rapid.SampledFrom([]Truth{Impossible, Undecided, True}).Draw(t, "truth")
				}
			}
			for _, n := range []DataName{"p", "q", "r"} {
				v.env.Data[n] = rapid.SampledFrom([]Value{nil, true, false}).Draw(t, "value")
			}
			if have, want := rule.Eval(v).Truth, w.naive(v); have != want {
				t.Fatalf("%s is %v, as a rule %v", w.text(), want, have)
			}
		}
	})
}

// checkNormalForm: and and or alternate and have several sides; data leaves
// that stand side by side are one leaf unless a task term parts them.
func checkNormalForm(t *rapid.T, r *Rule) {
	if r.Op == OpTask || r.Op == OpData {
		return
	}
	if len(r.Args) < 2 {
		t.Fatalf("an and or or with %d sides", len(r.Args))
	}
	for _, a := range r.Args {
		if a.Op == r.Op {
			t.Fatal("a chain of one operator is not flat")
		}
		checkNormalForm(t, a)
	}
}

// describe prints a rule for the tables below.
func describe(r *Rule) string {
	if r == nil {
		return "at start"
	}
	switch r.Op {
	case OpTask:
		s := string(r.Transition) + " " + string(r.Task)
		if r.Negated {
			s = "not " + s
		}
		return s
	case OpData:
		return "{" + r.Data.String() + "}"
	}
	var parts []string
	for _, a := range r.Args {
		parts = append(parts, describe(a))
	}
	op := " & "
	if r.Op == OpOr {
		op = " | "
	}
	return "(" + strings.Join(parts, op) + ")"
}

func TestRules(t *testing.T) {
	for _, c := range []struct{ keys, want string }{
		{`{}`, `at start`},
		{`{after: a}`, `succeeded a`},
		{`{after: [b, a]}`, `(succeeded a & succeeded b)`},
		{`{after: [b, a], when: succeeded("c") and n > 1}`, `(succeeded a & succeeded b & succeeded c & {n > 1})`},
		{`{after: a, when: n > 1 or failed("b")}`, `(succeeded a & ({n > 1} | failed b))`},
		{`{when: n > 1 and n < 9 and ready("a")}`, `({n > 1 and n < 9} & ready a)`},
		{`{when: 'not (running("a") and n > 1)'}`, `(not running a | {not (n > 1)})`},
		{`{when: 'not (not failed("a") or n > 1)'}`, `(failed a & {not (n > 1)})`},
		{`{when: 'n > 1 && !(n == 2) || n == null'}`, `{(n > 1 and not (n == 2)) or n == null}`},
		{`{when: instance.age > duration("90m")}`, `{instance.age > duration("90m")}`},
		{`{when: true}`, `{true}`},
	} {
		src := fmt.Sprintf("workflow: f\ndata: {n: {type: integer}}\ntasks: {a: {}, b: {}, c: {}, t: %s}", c.keys)
		d, err := Parse("f", []byte(src))
		if err != nil {
			t.Errorf("%s: %v", c.keys, err)
			continue
		}
		if have := describe(d.Task("t").Rule); have != c.want {
			t.Errorf("%s\nhave %s\nwant %s", c.keys, have, c.want)
		}
	}
}

// Dropped terms vanish; a rule with nothing left is true; an impossible side
// that traces to a failure says so.
func TestRuleFindings(t *testing.T) {
	d, err := Parse("f", []byte(`
workflow: f
tasks:
  a: {}
  b: {}
  both: {after: [a, b]}
  either: {when: succeeded("a") or succeeded("b")}
  without: {when: not failed("a")}
`))
	if err != nil {
		t.Fatal(err)
	}
	dropped, blocked, skipped := Finding{Dropped: true}, Finding{Truth: Impossible, ByFailure: true},
		Finding{Truth: Impossible}
	undecided, holds := Finding{Truth: Undecided}, Finding{Truth: True}
	for _, c := range []struct {
		task TaskName
		a, b Finding
		want Finding
	}{
		{"both", dropped, undecided, undecided},
		{"both", dropped, dropped, holds},
		{"both", blocked, holds, blocked},
		{"both", blocked, skipped, blocked},
		{"both", skipped, undecided, skipped},
		{"either", dropped, skipped, skipped},
		{"either", blocked, undecided, undecided},
		{"either", blocked, skipped, blocked},
		{"either", dropped, dropped, holds},
		{"either", blocked, holds, holds},
		{"without", dropped, undecided, holds},
		{"without", blocked, undecided, holds},
		{"without", holds, undecided, skipped},
	} {
		if have := d.Task(c.task).Rule.Eval(findings{"a": c.a, "b": c.b}); have != c.want {
			t.Errorf("%s with a %+v, b %+v: %+v, want %+v", c.task, c.a, c.b, have, c.want)
		}
	}
}

type findings map[TaskName]Finding

func (f findings) TaskTerm(_ Transition, t TaskName) Finding { return f[t] }
func (f findings) DataTerm(*Expr) Finding                    { return Finding{} }
