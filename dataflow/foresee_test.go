package dataflow_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/dataflow"
	"github.com/mutirao-mesh/mutirao/workflow"
)

const loan = `
workflow: loan
data:
  book: {type: string}
  card: {type: boolean}
  stage: {type: string, default: asked}
  out: {type: boolean}
tasks:
  open: {when: stage == "asked", repeat: true, application: set, with: {stage: '"open"'}, out: [stage], compensate: {application: set, with: {stage: '"asked"'}}}
  show: {when: stage == "open" and card == null, repeat: true, application: desk, out: [card], compensate: {application: undo}}
  find: {when: stage == "open" and book == null, repeat: true, application: desk, out: [book], compensate: {application: set, with: {book: 'null'}}}
  lend: {when: stage == "open" and card and book != null, repeat: true, application: desk, out: [stage], compensate: {application: set, with: {stage: '"open"'}}}
  give: {when: stage == "lent" and out == null, repeat: true, application: desk, out: [out]}
final: stage == "refused" or out
`

// stuckLoan is one of which the book cannot be given.
func stuckLoan(t *testing.T) *story {
	s := begin(t, parse(t, loan), values{"stage": "asked"})
	s.done("open", values{"stage": "open"})
	s.done("show", values{"card": true})
	s.done("find", values{"book": "atlas"})
	s.done("lend", values{"stage": "lent"})
	s.b.Fail(s.jobs["give"], s.id(), "it is torn", 1)
	return s
}

// told is an outlook in one line.
func told(o dataflow.Outlook) string {
	var out []string
	for _, u := range o.Undoes {
		out = append(out, fmt.Sprintf("undoes %s of S%d sure=%t", u.Task, u.State, u.Sure))
	}
	state := fmt.Sprintf("S%d", o.State)
	for _, n := range slices.Sorted(maps.Keys(o.Changed)) {
		state += fmt.Sprintf(" %s=%v", n, o.Changed[n])
	}
	out = append(out, state)
	if o.Like >= 0 {
		out = append(out, fmt.Sprintf("like S%d", o.Like))
	}
	if len(o.Fires) > 0 {
		out = append(out, fmt.Sprintf("fires %v", o.Fires))
	}
	if o.Final {
		out = append(out, "final")
	}
	if o.Cause != "" {
		stop := dataflow.Interruption{Cause: o.Cause, Since: o.Since}
		out = append(out, fmt.Sprintf("interrupted: %s %v", &stop, o.Methods))
	}
	return strings.Join(out, "; ")
}

// What a step would lead to is said before it is taken, and comes about when it is, where that follows from the
// definition. To say it changes nothing.
func TestForesee(t *testing.T) {
	text := func(s string) *string { return &s }
	two := 2
	for _, tt := range []struct {
		step dataflow.Step
		want string
	}{
		{dataflow.Step{Method: dataflow.MethodRestart}, "S4; fires [give]"},
		{dataflow.Step{Method: dataflow.MethodOffer}, "S4; fires [give]"},
		{dataflow.Step{Method: dataflow.MethodCompensate},
			"undoes lend of S4 sure=true; S5 stage=open; like S3; interrupted: it is torn [compensate offer restart jump-forward]"},
		{
			dataflow.Step{Method: dataflow.MethodCompensate, Until: &two},
			"undoes lend of S4 sure=true; undoes find of S3 sure=true; S6 book=<nil> stage=open; like S2; interrupted: it is torn [compensate offer restart jump-forward]",
		},
		{
			dataflow.Step{Method: dataflow.MethodCompensate, When: "card == null"},
			"undoes lend of S4 sure=true; undoes find of S3 sure=true; undoes show of S2 sure=false; " +
				"S7 book=<nil> card=<nil> stage=open; like S1; interrupted: it is torn [compensate offer restart jump-forward]",
		},
		{
			dataflow.Step{Method: dataflow.MethodCompensate, Steps: 9},
			"undoes lend of S4 sure=true; undoes find of S3 sure=true; undoes show of S2 sure=false; undoes open of S1 sure=true; " +
				"S8 book=<nil> card=<nil> stage=asked; like S0; interrupted: " +
				"it is torn; since then: compensation went as far as it can, and did not come to where it was to stop (steps: 9): " +
				"there is nothing left to compensate: the state is the first, or equivalent to it [offer restart jump-forward]",
		},
		{dataflow.Step{Method: dataflow.MethodForward, Set: map[workflow.DataName]*string{"stage": text("refused")}},
			"S5 stage=refused; final"},
		{dataflow.Step{Method: dataflow.MethodForward, Set: map[workflow.DataName]*string{"stage": text("open")}},
			"would be equivalent to S3"},
		{dataflow.Step{Method: dataflow.MethodBack, Set: map[workflow.DataName]*string{"stage": text("open")}},
			"the state is consistent"},
		{dataflow.Step{Method: "hope"}, `the method "hope"`},
	} {
		s := stuckLoan(t)
		before := s.standing()
		o, why := s.b.Foresee(tt.step)
		if now := s.standing(); now != before {
			t.Errorf("%+v: to foresee it changed\n%s\nto\n%s", tt.step, before, now)
		}
		if why != "" {
			if !strings.Contains(why, tt.want) {
				t.Errorf("%+v is refused: %s, want %s", tt.step, why, tt.want)
			}
			continue
		}
		if got := told(o); got != tt.want {
			t.Errorf("%+v:\n%s, want\n%s", tt.step, got, tt.want)
		}
		s.carryOut(tt.step)
		if s.b.State() != o.State || fmt.Sprint(s.b.Values()) != fmt.Sprint(o.Values) || s.b.Ended() != o.Final ||
			(s.b.Interrupted() == nil) != (o.Cause == "") {
			t.Errorf("%+v came to S%d %v, and it was said: S%d %v", tt.step, s.b.State(), s.b.Values(), o.State,
				o.Values)
		}
	}
}

// standing is all that can be seen of a board.
func (s *story) standing() string {
	return fmt.Sprint(s.b.Values(), s.b.History(), s.b.Interrupted(), s.b.Methods(), s.b.Undoing(), s.pending(),
		s.b.Ended())
}

// carryOut takes a step, and has each compensation give back what was there before its transition.
func (s *story) carryOut(x dataflow.Step) {
	if why := s.b.Recover(x, s.id(), 1); why != "" {
		s.t.Errorf("%+v: %s", x, why)
	}
	gives := map[workflow.TaskName]values{
		"open": {"stage": "asked"}, "show": {"card": nil}, "find": {"book": nil}, "lend": {"stage": "open"},
	}
	for u := s.b.Undoing(); u != nil; u = s.b.Undoing() {
		job := dataflow.Job{Fact: s.id(), Task: u.Task}
		s.b.FireUndo(job, u.By, 1)
		s.b.Undone(job, s.id(), gives[u.Task], 1)
	}
}

// What cannot be evaluated here is taken to restore what was there. A step of which the definition says that it comes
// to nothing is refused, with that reason, whether somebody only asks for what it leads to or orders it. One that was
// ordered all the same counts, and comes to nothing.
func TestForeseeWhatIsNotCertain(t *testing.T) {
	const text = `
workflow: count
data: {n: {type: integer, default: 0, max: 9}, beside: {type: integer}, note: {type: integer}}
tasks:
  one: {label: The first, when: n == 0, repeat: true, application: desk, out: [n], compensate: {application: %s}}
  also: {when: n == 0 and beside == null, repeat: true, application: desk, out: [beside]}
  two: {when: n == 1, repeat: true, application: desk, out: [n, note]}
final: n == 9
`
	const bad = "the compensation of one (The first) is badly designed: its state is not equivalent to S0, which was before"
	for _, c := range []struct {
		undo, foreseen, refused string
		sets                    values // what comes of it; nil: it fails
	}{
		{undo: "set, with: {n: n - 1}", foreseen: "undoes one of S1 sure=true; S2 n=0; like S0; interrupted: no paper"},
		{undo: "desk", foreseen: "undoes one of S1 sure=false; S2 n=0; like S0; interrupted: no paper"},
		{undo: "set, with: {n: n % (n - 1)}", refused: "the compensation of one (The first) failed: set n to n % (n - 1): "},
		{undo: "set, with: {n: 7}", refused: bad, sets: values{"n": int64(7)}},
		{undo: "noop", refused: bad, sets: values{}},
		{undo: "fail, with: {reason: no eraser}", refused: "the compensation of one (The first) failed: no eraser"},
		{undo: "set, with: {n: n + 9}",
			refused: "the compensation of one (The first) failed: task one returned a wrong n: n: 10 is not in the range … to 9"},
	} {
		for _, method := range []string{dataflow.MethodCompensate, dataflow.MethodOffer} {
			s := begin(t, parse(t, fmt.Sprintf(text, c.undo)), values{"n": int64(0)})
			s.done("one", values{"n": int64(1)})
			s.b.Fail(s.jobs["two"], s.id(), "no paper", 1) // also, which ran beside one, is aborted
			step, before := dataflow.Step{Method: method}, s.standing()
			o, why := s.b.Foresee(step)
			may := s.b.MayRecover(step)
			if s.standing() != before {
				t.Errorf("%s of %s: to ask for it changed the board", method, c.undo)
			}
			if why != may || slices.Contains(s.b.Methods(), method) != (may == "") {
				t.Errorf("%s of %s: %q is foreseen, and it is refused: %q, of %v", method, c.undo, why, may, s.b.Methods())
			}
			if !strings.HasPrefix(why, c.refused) || (why == "") != (c.refused == "") {
				t.Errorf("%s of %s is refused: %q, want %q", method, c.undo, why, c.refused)
			}
			if why == "" {
				if got := told(o); method == dataflow.MethodCompensate && !strings.HasPrefix(got, c.foreseen) {
					t.Errorf("%s of %s: %s, want %s", method, c.undo, got, c.foreseen)
				}
				continue
			}
			s.wants("ordered all the same", s.b.Recover(step, s.id(), 1), "")
			u := s.b.Undoing()
			job := dataflow.Job{Fact: s.id(), Task: u.Task}
			s.b.FireUndo(job, u.By, 1)
			if c.sets == nil {
				s.b.UndoFailed(job, strings.TrimPrefix(why, "the compensation of one (The first) failed: "), 1)
			} else if got := s.b.Undone(job, s.id(), c.sets, 1); got != why {
				t.Errorf("%s of %s came to %q, and was said to: %q", method, c.undo, got, why)
			}
			s.wants("cause", s.b.Interrupted().Cause, "no paper")
			s.wants("it came to", s.b.Interrupted().Since, why)
			s.wants("state", s.b.State(), 1)
		}
	}
}

// Of the state to which a step leads it is said before what the history says of it afterwards: it is like the first that
// satisfies the same.
func TestAStateIsForeseenAsTheHistoryNumbersIt(t *testing.T) {
	s := begin(t, parse(t, asks), values{"a": int64(0)})
	s.done("ask", values{"a": int64(0), "note": "late"})
	s.done("ask", values{"a": int64(1)})
	s.done("tell", values{"a": int64(0)})
	s.done("ask", values{"a": int64(7)})
	s.wants("consistent", s.b.Interrupted().Consistent, false)
	zero := "0"
	var marked []string
	for _, step := range []dataflow.Step{
		{Method: dataflow.MethodBack, Set: map[workflow.DataName]*string{"a": &zero}},
		{Method: dataflow.MethodOffer},
	} {
		o, why := s.b.Foresee(step)
		s.wants("refused", why, "")
		s.wants("recover", s.b.Recover(step, s.id(), 1), "")
		s.wants("state", s.b.State(), 5)
		s.wants("the history has it like", s.b.EquivalentTo(5), 0)
		s.wants("it was foreseen like", o.Like, 0)
		s.wants("it is taken for", s.b.Last().As, 3)
		for _, r := range o.Jumped {
			marked = append(marked, fmt.Sprintf("%s of S%d by %s", r.Task, r.Output, step.Method))
		}
	}
	s.wants("what it jumps over was named", marked, []string{"ask of S4 by jump-back"})
	for i, r := range s.b.History() {
		s.wants(fmt.Sprint(i, " is jumped over"), r.Mark == dataflow.Jumped, r.Output == 4)
	}
}

// Where compensation is to stop is said if it does not come to that, before it is ordered and in the end. Until the
// current state nobody has it go.
func TestAStopThatIsNeverMet(t *testing.T) {
	now, text := 4, strings.Repeat("é", 100)
	for _, c := range []struct {
		step dataflow.Step
		want string // of the stops
	}{
		{dataflow.Step{Steps: 9}, "steps: 9"},
		{dataflow.Step{Steps: 2, When: "stage == \"lost\""}, "steps: 2, when: stage == \"lost\""},
		{dataflow.Step{When: "stage == \"" + text + "\""}, "when: stage == \"" + strings.Repeat("é", 69) + "…"},
	} {
		c.step.Method = dataflow.MethodCompensate
		s := stuckLoan(t)
		o, why := s.b.Foresee(c.step)
		s.wants("refused", why, "")
		s.carryOut(c.step)
		want := "compensation went as far as it can, and did not come to where it was to stop (" + c.want +
			"): there is nothing left to compensate: the state is the first, or equivalent to it"
		s.wants("it stays interrupted since", s.b.Interrupted().Cause, "it is torn")
		s.wants("it comes to", s.b.Interrupted().Since, want)
		s.wants("it was said to come to", o.Since, want)
	}
	s := stuckLoan(t)
	step := dataflow.Step{Method: dataflow.MethodCompensate, Until: &now}
	_, why := s.b.Foresee(step)
	s.wants("until now", why, "S4 is the current state: compensation goes back to an earlier one")
	s.wants("until now", s.b.Recover(step, s.id(), 1), why)
}

// What interrupted an instance stays what did, where a jump forward leads to a state that fires nothing.
func TestAJumpThatLeavesItInterrupted(t *testing.T) {
	s := begin(t, parse(t, asks+"constraints: [{name: few, when: a < 5}]\n"), values{"a": int64(0)})
	s.wants("fail", s.b.Fail(s.jobs["ask"], s.id(), "stopped", 7), "")
	first := *s.b.Interrupted()
	jump := func(n string) dataflow.Outlook {
		step := dataflow.Step{Method: dataflow.MethodForward, Set: map[workflow.DataName]*string{"a": &n}}
		o, _ := s.b.Foresee(step)
		s.wants("jump", s.b.Recover(step, s.id(), 9), "")
		return o
	}
	const stall = "the state fires no trigger, is not final, and nothing is pending"
	o := jump("3")
	first.State, first.Since = 1, stall
	s.wants("interrupted", *s.b.Interrupted(), first)
	s.wants("foreseen", o.Cause+"; since then: "+o.Since, s.b.Interrupted().String())
	s.wants("reason", s.b.Last().Reason, stall)
	jump("1")
	s.fire()
	s.wants("it went on", s.pending(), "tell@2")
	s.wants("told", s.done("tell", values{"a": int64(7)}), "")
	s.wants("another", s.b.Interrupted(), stall)
	s.wants("inconsistent", s.b.Interrupted().Consistent, false)
}

// A jump to a state that is not final and fires nothing is allowed where no constraint is broken: one that is decides, and
// is named.
func TestAJumpNamesTheConstraintThatDecides(t *testing.T) {
	to := func(n string) dataflow.Step {
		return dataflow.Step{Method: dataflow.MethodForward, Set: map[workflow.DataName]*string{"a": &n}}
	}
	s := begin(t, parse(t, asks+"constraints: [{name: few, when: a < 5}, {name: many, when: a > -5}]\n"),
		values{"a": int64(0)})
	s.wants("fail", s.b.Fail(s.jobs["ask"], s.id(), "stopped", 1), "")
	s.wants("refused", s.b.MayRecover(to("7")),
		"its state would be inconsistent: it is not final, fires no trigger, and breaks the constraint few: a < 5")
	s.wants("allowed", s.b.MayRecover(to("3")), "")
}
