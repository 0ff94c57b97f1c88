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
		out = append(out, fmt.Sprintf("interrupted: %s %v", o.Cause, o.Methods))
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
		s.b.FireUndo(job, u.By)
		s.b.Undone(job, s.id(), gives[u.Task], 1, 1)
	}
}

// What cannot be evaluated here is taken to restore what was there; what is known to be wrong is said to be.
func TestForeseeWhatIsNotCertain(t *testing.T) {
	const text = `
workflow: count
data: {n: {type: integer, default: 0}, note: {type: integer}}
tasks:
  one: {when: n == 0, repeat: true, application: desk, out: [n], compensate: {application: set, with: {n: %s}}}
  two: {when: n == 1, repeat: true, application: desk, out: [n, note]}
final: n == 9
`
	for undo, want := range map[string]string{
		"n - 1": "undoes one of S1 sure=true; S2 n=0; like S0; interrupted: no paper [restart offer jump-forward]",
		"7":     "undoes one of S1 sure=true; S1; interrupted: the compensation of one is badly designed",
	} {
		s := begin(t, parse(t, fmt.Sprintf(text, undo)), values{"n": int64(0)})
		s.done("one", values{"n": int64(1)})
		s.b.Fail(s.jobs["two"], s.id(), "no paper", 1)
		o, why := s.b.Foresee(dataflow.Step{Method: dataflow.MethodCompensate})
		if got := told(o); why != "" || !strings.HasPrefix(got, strings.Split(want, " [")[0]) {
			t.Errorf("%s: %s %s, want %s", undo, why, got, want)
		}
	}
}
