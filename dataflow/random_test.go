package dataflow_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/dataflow"
	"github.com/mutirao-mesh/mutirao/internal/test/sample"
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
	def    *workflow.Definition
	r      *rand.Rand
	seen   map[string]int                                       // what came about, by kind
	result func(t *workflow.Task, input values) (values, error) // with which a transition ends
	value  func(d *workflow.DataDecl) workflow.Value            // that a jump sets, or a compensation that is bad
}

// countingRun is one of anyFlow.
func countingRun(t *testing.T, r *rand.Rand, seen map[string]int) *anyRun {
	def := parse(t, anyFlow)
	x := &anyRun{story: begin(t, def, values{"n": int64(0)}), def: def, r: r, seen: seen}
	x.result, x.value = x.outputs, func(*workflow.DataDecl) workflow.Value { return int64(r.IntN(6)) }
	return x
}

// all is what a board says of itself.
func (x *anyRun) all() string {
	b := x.b
	return fmt.Sprint(b.History(), b.Values(), b.State(), b.Ended(), b.Interrupted(), b.Undoing(), x.pending())
}

// outputs are data for some of the data that a task sets: mostly those with which the flow goes on.
func (x *anyRun) outputs(t *workflow.Task, _ values) (values, error) {
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
	return out, nil
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
		out, err := x.result(p.Task, p.Input)
		if err != nil || x.r.IntN(10) == 0 {
			x.wants("fail", b.Fail(p.Job, x.id(), "no luck", 1), "")
			break
		}
		b.Done(p.Job, x.id(), out, 1)
		x.fire()
	case !b.Ended():
		x.grows()
	}
	x.check()
}

// grows has the instance come to the next age at which something may come out otherwise.
func (x *anyRun) grows() {
	next, later := x.b.NextAge()
	x.wants("an age is to come where nothing is pending", later, true)
	x.age(next)
	x.seen["waited"]++
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
		for _, d := range x.def.Data {
			updates[d.Name] = before[d.Name]
		}
	} else {
		d := &x.def.Data[x.r.IntN(len(x.def.Data))]
		updates[d.Name] = x.value(d)
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
		for i := range x.def.Data {
			if d := &x.def.Data[i]; x.r.IntN(2) == 0 {
				s.Set[d.Name] = textOf(x.value(d))
			}
		}
		if x.r.IntN(10) == 0 {
			s.Set["nothing"] = nil
		}
	}
	return s
}

// textOf is a value as people write it; nil: null.
func textOf(v workflow.Value) *string {
	if v == nil {
		return nil
	}
	text := fmt.Sprint(v)
	return &text
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
	_, later := b.NextAge()
	switch final := dataflow.Holds(x.def.Final, b.Values()); {
	case b.Ended() && (stop != nil || pending > 0 || !final || !x.keeps(b.Values())):
		x.t.Errorf("it has ended, with %d pending, interrupted %v, with %v", pending, stop, b.Values())
	case b.Ended():
	case stop != nil && pending > 0:
		x.t.Errorf("it is interrupted, and %d transitions are pending", pending)
	case stop == nil && pending == 0 && !later:
		x.t.Errorf("it runs, and nothing is pending: %v", b.Values())
	case stop == nil && !x.keeps(b.Values()):
		x.t.Errorf("it runs, and its data break a constraint: %v", b.Values())
	case stop != nil && b.Undoing() == nil && len(b.Methods()) == 0:
		x.t.Errorf("it is interrupted (%s), and no method is allowed", stop.Cause)
	}
	for _, m := range b.Methods() {
		if m != dataflow.MethodBack && m != dataflow.MethodForward && b.MayRecover(dataflow.Step{Method: m}) != "" {
			x.t.Errorf("%s is among the methods that are allowed, and refused", m)
		}
	}
}

// keeps reports whether data keep the strict constraints.
func (x *anyRun) keeps(data values) bool {
	return !slices.ContainsFunc(x.def.Constraints, func(c workflow.Constraint) bool {
		return c.Strict && c.When != nil && !dataflow.Holds(c.When, data)
	})
}

// end brings the instance to an end, whatever happened before: what is being undone ends or fails, what runs fails,
// and somebody jumps to a final state.
func (x *anyRun) end() {
	for range 20 {
		switch u := x.b.Undoing(); {
		case x.b.Ended():
			return
		case u != nil && u.Job == (dataflow.Job{}):
			x.b.FireUndo(dataflow.Job{Fact: x.id(), Task: u.Task}, u.By, 1)
		case u != nil:
			x.b.UndoFailed(u.Job, "fog", 1)
		case x.b.Interrupted() != nil:
			x.jumpToAnEnd()
			return
		case len(x.b.Pending()) == 0:
			x.grows()
		default:
			x.b.Fail(x.b.Pending()[0].Job, x.id(), "no luck", 1)
		}
		x.check()
	}
	x.t.Errorf("nobody can interrupt it: %v", x.pending())
}

// jumpToAnEnd has somebody jump to data that satisfy final and keep the strict constraints. Where there are such, that is
// allowed and ends the instance, unless the history has a state which is equivalent: one that is final and breaks a strict
// constraint. If there are none, nobody but who cancels it brings it to an end.
func (x *anyRun) jumpToAnEnd() {
	var like int
	for range 400 {
		data, set := values{}, map[workflow.DataName]*string{}
		for i := range x.def.Data {
			d := &x.def.Data[i]
			v := x.value(d)
			if set[d.Name] = textOf(v); v != nil {
				data[d.Name] = v
			}
		}
		if !dataflow.Holds(x.def.Final, data) || !x.keeps(data) {
			continue
		}
		s := dataflow.Step{Method: dataflow.MethodForward, Set: set}
		why := x.b.MayRecover(s)
		if why == "" {
			x.recover(s)
			x.wants("it has ended", x.b.Ended(), true)
			x.check()
			x.seen["jumped to its end"]++
			return
		}
		if _, err := fmt.Sscanf(why, "its state would be equivalent to S%d: ", &like); err != nil {
			x.t.Errorf("nobody may end it with %v: %s", data, why)
			return
		}
		if was := x.b.ValuesAt(like); !dataflow.Holds(x.def.Final, was) || x.keeps(was) {
			x.t.Errorf("nobody may end it with %v: %s, which was %v", data, why, was)
		}
		x.seen["its end would be like an exception"]++
	}
	x.seen["no end"]++
}

// Whatever fails, and whatever somebody orders about that, no instance runs in an inconsistent state, a step that is
// refused changes nothing, and the instance can be brought to an end.
func TestAnyRecovery(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(sample.Of(160, 400)) {
		x := countingRun(t, rand.New(rand.NewPCG(seed, 16)), seen)
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
	cameAbout(t, seen, whatComesAbout...)
	if seen["no end"] > 0 {
		t.Errorf("%d instances were not brought to an end", seen["no end"])
	}
}

// whatComesAbout in random runs, of any flow.
var whatComesAbout = []string{
	"compensate", "offer", "restart", "jump-back", "jump-forward", "refused: compensate", "refused: offer",
	"refused: restart", "refused: jump-back", "refused: jump-forward", "compensated", "compensation failed",
	"badly designed", "ended by itself", "jumped to its end",
}

func cameAbout(t *testing.T, seen map[string]int, what ...string) {
	t.Helper()
	for _, what := range what {
		if seen[what] == 0 {
			t.Errorf("%s: that never came about: %v", what, seen)
		}
	}
	t.Log(seen)
}

// The same of random flows: of one or more tasks over a few data, some of which can be compensated.
func TestAnyRecoveryOfAnyFlow(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(sample.Of(500, 1500)) {
		r := rand.New(rand.NewPCG(seed, 18))
		text := recoverable(r, smallFlow(r))
		def, err := workflow.Parse("flow.yaml", []byte(text))
		if err != nil || def.FlowObstacle() != "" {
			continue
		}
		data := (&doubtful{def: def, r: r, defaults: r.IntN(2) == 0}).starts()
		if dataflow.New(def).Rejects(data) != "" {
			continue
		}
		x := &anyRun{story: begin(t, def, data), def: def, r: r, seen: seen}
		x.value = func(d *workflow.DataDecl) workflow.Value { return anyValue(r, d) }
		x.result = func(t *workflow.Task, input values) (values, error) { return anyResult(r, def, t, input) }
		seen["flows"]++
		for range 40 {
			if x.b.Ended() {
				seen["ended by itself"]++
				break
			}
			x.step()
		}
		x.end()
		if t.Failed() {
			t.Fatalf("seed %d\n%s%v", seed, text, data)
		}
	}
	cameAbout(t, seen, append(slices.Clone(whatComesAbout), "waited")...)
	if seen["no end"] > seen["flows"]/4 {
		t.Errorf("too many flows have no end: %v", seen)
	}
}

// recoverable is a random flow in which some tasks have compensations, and some constraints are not strict.
func recoverable(r *rand.Rand, text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if task, is := strings.CutSuffix(line, "]}"); is && r.IntN(4) > 0 {
			lines[i] = task + "], compensate: {application: undo}}"
		}
		if r.IntN(3) == 0 {
			lines[i] = strings.Replace(lines[i], ", strict: true", "", 1)
		}
	}
	return strings.Join(lines, "\n")
}

// counted counts to five. With 4 it leads nowhere and keeps its constraints, with 6 it breaks one, with 9 a strict one.
const counted = `
workflow: w
data: {n: {type: integer, default: 0, max: 20}, photo: {type: file}}
tasks:
  go: {when: n < 4, repeat: true, application: x, out: [n], compensate: {application: unx}}
conditions: {one: n == 1, two: n == 2, three: n == 3}
constraints: [{name: few, when: n < 6}, {name: bound, when: n < 9, strict: true}]
final: n == 5
`

// counts has things happen one after the other: go=N, fail, undo (a compensation from its order to its end), or a
// method, of which a jump says to which number.
func (s *story) counts(words string) {
	s.t.Helper()
	for _, word := range strings.Fields(words) {
		verb, to, _ := strings.Cut(word, "=")
		switch n, _ := strconv.ParseInt(to, 10, 64); verb {
		case "go":
			s.wants(word, s.done("go", values{"n": n}), "")
		case "fail":
			s.wants(word, s.b.Fail(s.jobs["go"], s.id(), "no luck", 1), "")
		case "undo":
			s.wants(word, s.b.Recover(dataflow.Step{Method: dataflow.MethodCompensate}, s.id(), 1), "")
			s.undoes()
		default:
			step := dataflow.Step{Method: verb}
			if to != "" {
				step.Set = map[workflow.DataName]*string{"n": &to}
			}
			s.wants(word, s.b.Recover(step, s.id(), 1), "")
			s.fire()
		}
	}
}

// undoes has the compensation that is to be done bring back what was there before.
func (s *story) undoes() {
	s.t.Helper()
	u := s.b.Undoing()
	i := slices.IndexFunc(s.b.History(), func(r dataflow.Record) bool { return r.ID == u.By })
	input := s.b.History()[i].Input
	before, after := s.b.ValuesAt(input), values{}
	for n := range s.b.ValuesAt(input + 1) {
		after[n] = before[n]
	}
	job := dataflow.Job{Fact: s.id(), Task: u.Task}
	s.wants("begin", s.b.FireUndo(job, u.By, 1), "")
	s.wants("undone", s.b.Undone(job, s.id(), after, 1), "")
	s.fire()
}

// Each rule of each method of recovery has a step that breaks it: that is refused with the reason, and changes nothing.
func TestRefusedSteps(t *testing.T) {
	const (
		compensate, offer, restart = dataflow.MethodCompensate, dataflow.MethodOffer, dataflow.MethodRestart
		back, forward              = dataflow.MethodBack, dataflow.MethodForward
		running                    = "the instance is not interrupted"
		underWay                   = "a recovery is under way: its compensations have not ended; only a jump"
		stops                      = "only compensate stops after steps, until a state, or when a condition holds"
		stall                      = "the state is inconsistent (the state fires no trigger, is not final, and nothing is pending)"
		strict                     = "the state is inconsistent (the state breaks the constraint bound: n < 9): only a jump"
		first                      = "there is nothing left to compensate: the state is the first, or equivalent to it"
		again                      = "the current state fires no trigger, and is not final: offered, it would be"
		likeNone                   = "its state would be equivalent to no state of the history that a transition produced which"
		breaks                     = "its state breaks the constraint bound: n < 9"
		nowhere                    = "its state would be inconsistent: it is not final, fires no trigger, and breaks the constraint few"
		undo                       = ", compensate: {application: unx}"
		constraints                = "constraints: [{name: few, when: n < 6}, {name: bound, when: n < 9, strict: true}]\n"
	)
	set := func(n workflow.DataName, text string) map[workflow.DataName]*string {
		return map[workflow.DataName]*string{n: &text}
	}
	to := func(method, n string) dataflow.Step { return dataflow.Step{Method: method, Set: set("n", n)} }
	until := func(n int) dataflow.Step { return dataflow.Step{Method: compensate, Until: &n} }
	for _, c := range []struct {
		after   string // what happened (counts)
		without string // what the flow does not have
		step    dataflow.Step
		want    string
	}{
		// An instance that runs, or has ended, is not recovered.
		{"go=1", "", dataflow.Step{Method: compensate}, running},
		{"go=1", "", dataflow.Step{Method: offer}, running},
		{"go=1", "", dataflow.Step{Method: restart}, running},
		{"go=1", "", to(back, "0"), running},
		{"go=1", "", to(forward, "2"), running},
		{"go=5", "", to(forward, "2"), running},
		// Of what a recovery under way allows.
		{"go=1 fail compensate", "", dataflow.Step{Method: compensate}, underWay},
		{"go=1 fail compensate", "", dataflow.Step{Method: offer}, underWay},
		{"go=1 fail compensate", "", dataflow.Step{Method: restart}, underWay},
		{"go=1 fail compensate", "", to(back, "0"), underWay},
		// Of what a step may say.
		{"go=1 fail", "", dataflow.Step{Method: offer, Steps: 1}, stops},
		{"go=1 fail", "", dataflow.Step{Method: restart, Until: new(int)}, stops},
		{"go=7", "", dataflow.Step{Method: back, Set: set("n", "0"), When: "n == 0"}, stops},
		{"go=7", "", dataflow.Step{Method: forward, Set: set("n", "3"), Steps: 1}, stops},
		{"go=1 fail", "", to(compensate, "1"), "only a jump sets data"},
		{"go=1 fail", "", to(offer, "1"), "only a jump sets data"},
		{"go=1 fail", "", to(restart, "1"), "only a jump sets data"},
		{"go=1 fail", "", dataflow.Step{Method: "wish"}, `the method "wish": there are compensate, offer`},
		{"go=1 fail", "", dataflow.Step{Method: compensate, From: new(int)}, "it was meant for S0, and the instance is in S1"},
		{"go=1 fail", "", dataflow.Step{Method: restart, Interruption: "00"}, "it was meant for an interruption that is over"},
		{"go=1 fail compensate", "", dataflow.Step{Method: forward, Set: set("n", "2"), From: new(int)}, "it was meant for S0"},
		// Of a state that is inconsistent.
		{"go=7", "", dataflow.Step{Method: compensate}, stall},
		{"go=7", "", dataflow.Step{Method: offer}, stall},
		{"go=7", "", dataflow.Step{Method: restart}, stall},
		{"go=9", "", dataflow.Step{Method: compensate}, strict},
		{"go=9", "", dataflow.Step{Method: offer}, strict},
		{"go=9", "", dataflow.Step{Method: restart}, strict},
		{"go=4", constraints, dataflow.Step{Method: restart}, stall},
		// Of chained compensation.
		{"go=1 fail", "", dataflow.Step{Method: compensate, Steps: -1}, "-1 steps: want 1 or more"},
		{"go=1 fail", "", until(-1), "there is no state S-1: the history has S0 to S1"},
		{"go=1 fail", "", until(2), "there is no state S2: the history has S0 to S1"},
		{"go=1 fail", "", until(1), "S1 is the current state: compensation goes back to an earlier one"},
		{"go=1 fail", "", dataflow.Step{Method: compensate, When: "n <"}, "the condition of when: "},
		{"fail", "", dataflow.Step{Method: compensate}, first},
		{"go=1 fail undo", "", dataflow.Step{Method: compensate}, first},
		{"go=7 jump-back=0", "", dataflow.Step{Method: compensate}, first},
		{"go=7 jump-forward=2 fail", "", dataflow.Step{Method: compensate},
			"a jump-forward produced the state, which cannot be compensated: use a forward jump"},
		{"go=1 fail", undo, dataflow.Step{Method: compensate}, "transition go has no compensation: give it one"},
		// Of what is offered.
		{"go=4", "", dataflow.Step{Method: offer}, again},
		{"go=4", "", dataflow.Step{Method: restart}, again},
		// Of both jumps.
		{"go=7", "", dataflow.Step{Method: back, Set: set("nothing", "1")}, "the workflow has no data nothing"},
		{"go=7", "", dataflow.Step{Method: forward, Set: set("nothing", "1")}, "the workflow has no data nothing"},
		{"go=7", "", to(back, "21"), "n: 21 is not in the range"},
		{"go=7", "", to(forward, "many"), "n: "},
		{"go=7", "", dataflow.Step{Method: forward, Set: set("photo", "roof.jpg")},
			"photo is a file: a jump may set it to null only, as it brings no content"},
		{"go=7", "", to(back, "9"), breaks},
		{"go=7", "", to(forward, "9"), breaks},
		{"go=7", "", to(back, "8"), nowhere},
		{"go=7", "", to(forward, "8"), nowhere},
		{"go=7", "", dataflow.Step{Method: back}, nowhere},
		{"go=7", constraints, to(back, "4"), "its state would be inconsistent: it is not final, and fires no trigger"},
		{"go=7", constraints, to(forward, "4"), "its state would be inconsistent: it is not final, and fires no trigger"},
		// Of a jump back: from where, and to which states.
		{"go=1 fail", "", to(back, "0"), "the state is consistent: a jump back leads out of inconsistent ones only"},
		{"go=4", "", to(back, "0"), "the state is consistent: a jump back leads out of inconsistent ones only"},
		{"go=1 go=7", "", to(back, "2"), likeNone},
		// That state was an exception, though the data are right now; it was compensated, and so was what that brought.
		{"go=7", "", to(back, "4"), likeNone},
		{"go=1 go=2 fail undo restart go=7", "", to(back, "2"), likeNone},
		{"go=1 go=2 fail undo undo restart go=7", "", to(back, "1"), likeNone},
		// It was jumped over, and so was what a jump brought; only a jump forward brought it.
		{"go=1 go=2 go=7 jump-back=1 restart go=7", "", to(back, "2"), likeNone},
		{"go=1 go=7 jump-back=1 restart go=7 jump-back=0 restart go=7", "", to(back, "1"), likeNone},
		{"go=7 jump-forward=2 go=7", "", to(back, "2"), likeNone},
		// Of a jump forward: the state is like none, whatever became of that.
		{"go=1 fail", "", to(forward, "0"), "its state would be equivalent to S0"},
		{"go=1 fail", "", dataflow.Step{Method: forward}, "its state would be equivalent to S1"},
		{"go=7", "", to(forward, "4"), "its state would be equivalent to S1"},
		{"go=1 go=2 fail undo", "", to(forward, "2"), "its state would be equivalent to S2"},
		{"go=1 go=2 go=7 jump-back=1", "", to(forward, "2"), "its state would be equivalent to S2"},
		{"go=7 jump-forward=2 go=7", "", to(forward, "2"), "its state would be equivalent to S2"},
	} {
		s := begin(t, parse(t, strings.Replace(counted, c.without, "", 1)), values{"n": int64(0)})
		s.counts(c.after)
		s.refuses(fmt.Sprintf("after %q, %+v", c.after, c.step), c.step, c.want)
	}

	// What ran beside the last transition came to nothing, so that is to be undone before its state is offered.
	s := begin(t, parse(t, strings.Replace(anyFlow, undo, "", 1)), values{"n": int64(0)})
	s.done("left", values{"a": int64(0)})
	s.wants("fail", s.b.Fail(s.jobs["right"], s.id(), "no luck", 2), "")
	s.refuses("offer", dataflow.Step{Method: offer}, "transition left has no compensation: give it one")
	s.wants("nothing to undo", s.b.FireUndo(dataflow.Job{Task: "left"}, s.id(), 1), "nothing is to be compensated")
}

// refuses has a step refused: it is said before, it is said of the order, and neither changes anything.
func (s *story) refuses(what string, x dataflow.Step, want string) {
	s.t.Helper()
	before := s.standing()
	may, ordered := s.b.MayRecover(x), s.b.Recover(x, s.id(), 1)
	if !strings.HasPrefix(may, want) || ordered != may {
		s.t.Errorf("%s: asked before %q, and ordered %q, want %q", what, may, ordered, want)
	}
	if now := s.standing(); now != before {
		s.t.Errorf("%s: it is refused, and changed\n%s\nto\n%s", what, before, now)
	}
}

// Chained compensation goes on until all holds that it is to stop at, and not beyond.
func TestWhereCompensationStops(t *testing.T) {
	two := 2
	for _, c := range []struct {
		step dataflow.Step
		want int // how many compensations that takes
		n    int64
	}{
		{dataflow.Step{}, 1, 2},
		{dataflow.Step{Steps: 2}, 2, 1},
		{dataflow.Step{Until: &two}, 1, 2},
		{dataflow.Step{Until: &two, Steps: 2}, 3, 2},
		{dataflow.Step{When: "n <= 2"}, 1, 2},
		{dataflow.Step{When: "n <= 2", Steps: 2}, 2, 1},
		{dataflow.Step{When: "n == 1", Steps: 1}, 2, 1},
		{dataflow.Step{When: "n <= 2", Until: &two, Steps: 2}, 3, 2},
		{dataflow.Step{When: "n == 1", Until: &two}, 5, 0}, // as far as it can: no state is like both
	} {
		s := begin(t, parse(t, counted), values{"n": int64(0)})
		s.counts("go=1 go=2 go=1 go=2 go=3 fail")
		c.step.Method = dataflow.MethodCompensate
		s.wants("order", s.b.Recover(c.step, s.id(), 1), "")
		undone := 0
		for ; s.b.Undoing() != nil; undone++ {
			s.undoes()
		}
		what := fmt.Sprintf("%+v", c.step)
		s.wants(what+" undoes", undone, c.want)
		s.wants(what+" comes to", s.b.Values(), values{"n": c.n})
		s.wants(what+" leaves it interrupted", s.b.Interrupted(), "no luck"+s.since())
	}
}

// since is what came of the interruption since, as it is shown.
func (s *story) since() string {
	if x := s.b.Interrupted(); x != nil && x.Since != "" {
		return "; since then: " + x.Since
	}
	return ""
}

// A chain stops at a compensation that is badly designed. Those before it stand.
func TestAChainStopsAtABadCompensation(t *testing.T) {
	s := begin(t, parse(t, counted), values{"n": int64(0)})
	s.counts("go=1 go=2 go=3 fail")
	s.wants("order", s.b.Recover(dataflow.Step{Method: dataflow.MethodCompensate, Steps: 3}, s.id(), 1), "")
	s.undoes()
	u := s.b.Undoing()
	job := dataflow.Job{Fact: s.id(), Task: u.Task}
	s.wants("begin", s.b.FireUndo(job, u.By, 1), "")
	const bad = "the compensation of go is badly designed: its state is not equivalent to S1, which was before"
	s.wants("undone", s.b.Undone(job, s.id(), values{"n": int64(0)}, 1), bad)
	s.wants("goes on", s.b.Undoing() == nil, true)
	s.wants("values", s.b.Values(), values{"n": int64(2)})
	s.wants("state", s.b.State(), 4)
	s.wants("interrupted", s.b.Interrupted(), "no luck; since then: "+bad)
	var marks []string
	for _, r := range s.b.History() {
		marks = append(marks, fmt.Sprintf("%s %s", r.Kind, r.Mark))
	}
	s.wants("history", strings.Join(marks, ", "), "initial , transition , transition , transition compensated, "+
		"transition aborted, compensation , compensation aborted")
	s.wants("it can be tried again", s.b.MayRecover(dataflow.Step{Method: dataflow.MethodCompensate}), "")
}

// What ran beside the transition that brought the state, and was aborted, compensated or jumped over, has it undone
// before its state is offered: back to the oldest state that fired some of that. What ran before or after has not, nor
// has what nobody had taken.
func TestWhatAnOfferUndoes(t *testing.T) {
	const lanes = `
workflow: w
data: {n: {type: integer, default: 0}, x: {type: integer}, y: {type: integer}}
tasks:
  join: {when: x == 1 and y == 1 and n == 0, repeat: true, application: x, out: [n]}
  one: {when: x == null, repeat: true, application: x, out: [x], compensate: {application: unx}}
  two: {when: y == null, repeat: true, application: x, out: [y], compensate: {application: unx}}
final: n == 2
`
	const aside = "  aside: {when: x == 1 and y == null, repeat: true, application: x, out: [n]}\n"
	const third = "  z: {when: x == null, repeat: true, application: x, out: [n]}\n"
	for _, c := range []struct {
		what            string
		also            string // tasks
		happens         string // NAME: it ends well; NAME!: it fails; NAME+: somebody takes it; bad: two ends with data that lead nowhere
		undoes, pending string
	}{
		{"what ran beside it was aborted", "", "one two!", "one", "one@2 two@2"},
		{"another had begun that before it was lost", "", "one over two!", "one", "one@2 two@2"},
		{"nobody had taken what was aborted", "", "two: one two!", "", "two@1"},
		{"that was taken after it had ended", "", "two: one two+ two!", "", "two@1"},
		{"that was taken before it ended", "", "two: two+ one two!", "one", "one@2 two@2"},
		{"that was taken from one who was lost", "", "two: two+ one over two!", "one", "one@2 two@2"},
		{"that was taken, and a lost one's again", "", "two: one two+ over two+ two!", "", "two@1"},
		{"from when it was had is not known", "", "one: one two!", "one", "one@2 two@2"},
		{"it was taken after what failed", "", "one: two! restart two one+ one join!", "", "join@2"},
		{"that had ended before it began", "", "two! restart one two join!", "", "join@2"},
		{"what failed is what that state fired", "", "one two join!", "", "join@2"},
		{"what ran beside it was compensated", "", "one two join! undo", "one", "one@4 two@4"},
		{"what ran beside it was jumped over", "", "one bad back", "one", "one@4 two@4"},
		{"beside it ran what an older state fired", aside + third, "one over two z!", "two one", "one@4 two@4 z@4"},
	} {
		def := parse(t, strings.Replace(lanes, "final:", c.also+"final:", 1))
		words := strings.Fields(c.happens)
		var waits []workflow.TaskName
		if w, is := strings.CutSuffix(words[0], ":"); is {
			waits, words = append(waits, workflow.TaskName(w)), words[1:]
		}
		s := begin(t, def, values{"n": int64(0)}, waits...)
		for _, word := range words {
			taken, takes := strings.CutSuffix(word, "+")
			switch name, fails := strings.CutSuffix(word, "!"); {
			case takes:
				s.b.Take(s.jobs[workflow.TaskName(taken)], 1)
			case fails:
				s.wants(word, s.b.Fail(s.jobs[workflow.TaskName(name)], s.id(), "no luck", 1), "")
			case word == "over":
				s.b.HandOver()
				s.fire()
			case word == "restart":
				s.wants(word, s.b.Recover(dataflow.Step{Method: dataflow.MethodRestart}, s.id(), 1), "")
				s.fire()
			case word == "undo":
				s.wants(word, s.b.Recover(dataflow.Step{Method: dataflow.MethodCompensate}, s.id(), 1), "")
				s.undoes()
			case word == "bad":
				s.wants(word, s.done("two", values{"y": int64(5)}), "")
			case word == "back":
				step := dataflow.Step{Method: dataflow.MethodBack, Set: map[workflow.DataName]*string{"y": nil}}
				s.wants(word, s.b.Recover(step, s.id(), 1), "")
			default:
				out := map[string]workflow.DataName{"one": "x", "two": "y"}[word]
				s.wants(word, s.done(workflow.TaskName(word), values{out: int64(1)}), "")
			}
		}
		s.wants("offer", s.b.Recover(dataflow.Step{Method: dataflow.MethodOffer}, s.id(), 1), "")
		var undone []string
		for u := s.b.Undoing(); u != nil; u = s.b.Undoing() {
			undone = append(undone, string(u.Task))
			s.undoes()
		}
		s.wants(c.what+": undone", strings.Join(undone, " "), c.undoes)
		s.fire()
		s.wants(c.what+": pending", s.pending(), c.pending)
	}
}
