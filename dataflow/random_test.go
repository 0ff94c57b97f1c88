package dataflow_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/dataflow"
	"github.com/mutirao-mesh/mutirao/workflow"
)

const anyFlow = `
workflow: w
data: {n: {type: integer, default: 0}, a: {type: integer}, b: {type: integer}}
tasks:
  left: {when: n < 4 and (a == null or a < n), repeat: true, application: x, out: [a], compensate: {application: unx}}
  right: {when: n < 4 and (b == null or b < n), repeat: true, application: x, out: [b], compensate: {application: unx}}
  step: {when: n < 4 and a == n and b == n, repeat: true, application: x, out: [n, a], compensate: {application: unx}}
  end: {when: n == 4, repeat: true, application: x, out: [n]}
constraints: [{name: bound, when: n <= 5, strict: true}]
final: n == 5
`

// anyRun is a random run of a flow: transitions end well, badly, or with data that lead nowhere, and somebody orders
// steps of recovery, of which many are not allowed.
type anyRun struct {
	*story
	r    *rand.Rand
	seen map[string]int // what came about, by kind
}

// all is what a board says of itself.
func (x *anyRun) all() string {
	b := x.b
	return fmt.Sprint(b.History(), b.Values(), b.State(), b.Ended(), b.Interrupted(), b.Undoing(), x.pending())
}

// outputs are data for some of the data that a task sets: mostly those with which the flow goes on.
func (x *anyRun) outputs(t *workflow.Task) values {
	out := values{}
	n, _ := x.b.Values()["n"].(int64)
	for _, d := range t.Out {
		switch k := x.r.IntN(12); {
		case k == 0:
			out[d] = nil
		case k == 1:
			out[d] = int64(x.r.IntN(8) - 1)
		case d == "n":
			out[d] = n + 1
		case t.Name != "step":
			out[d] = n
		}
	}
	if out["n"] == nil { // it has to be a number
		delete(out, "n")
	}
	return out
}

// step has something happen.
func (x *anyRun) step() {
	b := x.b
	switch u := b.Undoing(); {
	case u != nil:
		x.undo(u)
	case b.Interrupted() != nil || x.r.IntN(8) == 0:
		x.recover(x.anyStep())
	case len(b.Pending()) > 0:
		p := b.Pending()[x.r.IntN(len(b.Pending()))]
		if x.r.IntN(10) == 0 {
			x.wants("fail", b.Fail(p.Job, x.id(), "no luck", 1), "")
			break
		}
		b.Done(p.Job, x.id(), x.outputs(p.Task), 1)
		x.fire()
	}
	x.check()
}

// undo carries on with a compensation; now and then with something that is none.
func (x *anyRun) undo(u *dataflow.Undo) {
	job := dataflow.Job{Fact: x.id(), Task: u.Task}
	refused := func(what, got, want string) {
		x.t.Helper()
		if !strings.Contains(got, want) {
			x.t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	if u.Job == (dataflow.Job{}) {
		before := x.all()
		refused("of another", x.b.FireUndo(job, x.id(), 1), "something else is to be compensated")
		refused("undone before it began", x.b.Undone(job, x.id(), values{}, 1), "the compensation is not pending")
		refused("failed before it began", x.b.UndoFailed(job, "fog", 1), "the compensation is not pending")
		x.wants("nothing changed", x.all() == before, true)
		x.wants("begin", x.b.FireUndo(job, u.By, 1), "")
		refused("twice", x.b.FireUndo(dataflow.Job{Fact: x.id(), Task: u.Task}, u.By, 1), "the compensation runs already")
		return
	}
	refused("another job", x.b.Undone(job, x.id(), values{}, 1), "the compensation is not pending")
	if x.r.IntN(6) == 0 {
		x.wants("fail", x.b.UndoFailed(u.Job, "fog", 1), "")
		x.seen["compensation failed"]++
		return
	}
	updates := values{}
	i := slices.IndexFunc(x.b.History(), func(r dataflow.Record) bool { return r.ID == u.By })
	if before := x.b.ValuesAt(x.b.History()[i].Input); x.r.IntN(6) > 0 {
		for _, d := range []workflow.DataName{"n", "a", "b"} {
			updates[d] = before[d]
		}
	} else {
		updates["a"] = int64(x.r.IntN(5))
	}
	if x.b.Undone(u.Job, x.id(), updates, 1) == "" {
		x.seen["compensated"]++
	} else {
		x.seen["badly designed"]++
	}
	x.fire()
}

// anyStep is a step of recovery that may be allowed or not.
func (x *anyRun) anyStep() (s dataflow.Step) {
	methods := []string{
		dataflow.MethodCompensate, dataflow.MethodOffer, dataflow.MethodRestart, dataflow.MethodBack,
		dataflow.MethodForward,
	}
	s.Method = methods[x.r.IntN(len(methods))]
	if x.r.IntN(3) == 0 {
		s.Steps = x.r.IntN(5) - 1
	}
	if x.r.IntN(4) == 0 {
		until := x.r.IntN(x.b.State()+3) - 1
		s.Until = &until
	}
	if x.r.IntN(4) == 0 {
		s.When = []string{"n == 0", "a == null", "n <", "nobody"}[x.r.IntN(4)]
	}
	jumps := s.Method == dataflow.MethodBack || s.Method == dataflow.MethodForward
	if jumps || x.r.IntN(10) == 0 {
		s.Set = map[workflow.DataName]*string{}
		for _, d := range []workflow.DataName{"n", "a", "b"} {
			if text := fmt.Sprint(x.r.IntN(6)); x.r.IntN(2) == 0 {
				s.Set[d] = &text
			}
		}
		if x.r.IntN(10) == 0 {
			s.Set["nothing"] = nil
		}
	}
	return s
}

// recover orders a step. What is refused changes nothing, and what is not is carried out.
func (x *anyRun) recover(s dataflow.Step) {
	before, why := x.all(), x.b.MayRecover(s)
	if after := x.all(); after != before {
		x.t.Errorf("to ask whether %s is allowed changed the board:\n%s\n%s", s.Method, before, after)
	}
	if got := x.b.Recover(s, x.id(), 1); got != why {
		x.t.Errorf("%s: %q, and asked before %q", s.Method, got, why)
	}
	if why != "" {
		x.seen["refused: "+s.Method]++
		if after := x.all(); after != before {
			x.t.Errorf("%s is refused (%s) and changed the board:\n%s\n%s", s.Method, why, before, after)
		}
		return
	}
	x.seen[s.Method]++
	x.fire()
}

// check holds the board against what must always be so.
func (x *anyRun) check() {
	x.t.Helper()
	b := x.b
	stop, pending := b.Interrupted(), len(b.Pending())
	switch n, _ := b.Values()["n"].(int64); {
	case b.Ended() && (stop != nil || pending > 0 || n != 5):
		x.t.Errorf("it has ended, with %d pending, interrupted %v, n = %d", pending, stop, n)
	case b.Ended():
	case stop != nil && pending > 0:
		x.t.Errorf("it is interrupted, and %d transitions are pending", pending)
	case stop == nil && pending == 0:
		x.t.Errorf("it runs, and nothing is pending: %v", b.Values())
	case stop == nil && n > 5:
		x.t.Errorf("it runs, and its data break a constraint: n = %d", n)
	case stop != nil && b.Undoing() == nil && len(b.Methods()) == 0:
		x.t.Errorf("it is interrupted (%s), and no method is allowed", stop.Cause)
	}
	for _, m := range b.Methods() {
		if m != dataflow.MethodBack && m != dataflow.MethodForward && b.MayRecover(dataflow.Step{Method: m}) != "" {
			x.t.Errorf("%s is among the methods that are allowed, and refused", m)
		}
	}
}

// end brings the instance to an end, whatever happened before: what is being undone ends or fails, what runs fails,
// and somebody jumps to a final state.
func (x *anyRun) end() {
	for range 10 {
		switch u := x.b.Undoing(); {
		case x.b.Ended():
			return
		case u != nil && u.Job == (dataflow.Job{}):
			x.b.FireUndo(dataflow.Job{Fact: x.id(), Task: u.Task}, u.By, 1)
		case u != nil:
			x.b.UndoFailed(u.Job, "fog", 1)
		case x.b.Interrupted() == nil:
			x.b.Fail(x.b.Pending()[0].Job, x.id(), "no luck", 1)
		default:
			five := "5"
			x.recover(dataflow.Step{Method: dataflow.MethodForward, Set: map[workflow.DataName]*string{"n": &five}})
		}
		x.check()
	}
	x.t.Errorf("it cannot be brought to an end: %+v, %v", x.b.Interrupted(), x.b.Values())
}

// Whatever fails, and whatever somebody orders about that, no instance runs in an inconsistent state, a step that is
// refused changes nothing, and the instance can be brought to an end.
func TestAnyRecovery(t *testing.T) {
	seen := map[string]int{}
	def := parse(t, anyFlow)
	for seed := range uint64(400) {
		x := &anyRun{story: begin(t, def, values{"n": int64(0)}), r: rand.New(rand.NewPCG(seed, 16)), seen: seen}
		for range 60 {
			if x.b.Ended() {
				seen["ended by itself"]++
				break
			}
			x.step()
		}
		x.end()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	for _, what := range []string{
		"compensate", "offer", "restart", "jump-back", "jump-forward", "refused: compensate", "refused: offer",
		"refused: restart", "refused: jump-back", "refused: jump-forward", "compensated", "badly designed",
		"compensation failed", "ended by itself",
	} {
		if seen[what] == 0 {
			t.Errorf("%s: that never came about: %v", what, seen)
		}
	}
	t.Log(seen)
}

// Each of these is refused, with the reason.
func TestRefusedSteps(t *testing.T) {
	one, minus := "1", -1
	interrupted := func() *story {
		s := begin(t, parse(t, anyFlow), values{"n": int64(0)})
		s.done("left", values{"a": int64(0)})
		s.wants("fail", s.b.Fail(s.jobs["right"], s.id(), "no luck", 2), "")
		return s
	}
	for want, step := range map[string]dataflow.Step{
		"only a jump sets data": {
			Method: dataflow.MethodRestart, Set: map[workflow.DataName]*string{"n": &one},
		},
		"-1 steps: want 1 or more":               {Method: dataflow.MethodCompensate, Steps: -1},
		"there is no state S-1: the history has": {Method: dataflow.MethodCompensate, Until: &minus},
		"the condition of when: ":                {Method: dataflow.MethodCompensate, When: "n <"},
		"the workflow has no data nothing": {Method: dataflow.MethodForward,
			Set: map[workflow.DataName]*string{"nothing": &one}},
		`the method "wish": there are compensate, offer`: {Method: "wish"},
	} {
		s := interrupted()
		if why := s.b.MayRecover(step); !strings.Contains(why, want) {
			t.Errorf("%+v: %q, want %q", step, why, want)
		}
	}
	s := begin(t, parse(t, `
workflow: w
data: {n: {type: integer, default: 0}, photo: {type: file}}
tasks:
  go: {when: n == 0, repeat: true, application: x, out: [n, photo]}
final: n == 2
`), values{"n": int64(0)})
	s.wants("fail", s.b.Fail(s.jobs["go"], s.id(), "no luck", 2), "")
	text := "roof.jpg"
	s.wants("a file", s.b.MayRecover(dataflow.Step{
		Method: dataflow.MethodForward, Set: map[workflow.DataName]*string{"photo": &text, "n": &one},
	}), "photo is a file: a jump may set it to null only, as it brings no content")
	s.wants("nothing to undo", s.b.FireUndo(dataflow.Job{Task: "go"}, s.id(), 1), "nothing is to be compensated")
}
