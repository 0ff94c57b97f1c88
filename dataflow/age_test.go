package dataflow_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/dataflow"
	"github.com/mutirao-mesh/mutirao/workflow"
)

const waiting = `
workflow: w
data: {n: {type: integer, default: 0}}
tasks:
  early: {when: n == 0 and instance.age < duration("1h"), repeat: true, application: x, out: [n], compensate: {application: unx}}
  late: {when: n == 1 and instance.age >= duration("2h"), repeat: true, application: x, out: [n]}
  once: {when: n == 1 or n == 3, application: x, out: [n]}
final: n == 9
`

// age has the instance come to an age, and says why that changes nothing.
func (s *story) age(d time.Duration) string {
	why := s.b.Age(d, s.id(), 1)
	s.fire()
	return why
}

// An age fires what the state satisfies by then, and only what nothing else fires is waited for.
func TestAgesFireTriggers(t *testing.T) {
	def := parse(t, waiting)
	s := begin(t, def, values{"n": int64(0)})
	s.wants("pending", s.pending(), "early@0")
	s.wants("half an hour", s.age(30*time.Minute), "no condition comes out otherwise at that age")
	s.wants("an hour", s.age(time.Hour), "")
	s.wants("pending", s.pending(), "early@0")
	s.wants("early", s.done("early", values{"n": int64(1)}), "")
	s.wants("pending", s.pending(), "once@1")
	s.wants("once", s.done("once", values{"n": int64(1)}), "")
	s.wants("pending", s.pending(), "")
	s.wants("interrupted", s.b.Interrupted() == nil, true)
	next, has := s.b.NextAge()
	s.wants("next age", next, 2*time.Hour)
	s.wants("there is one", has, true)
	s.wants("two hours", s.age(2*time.Hour+time.Second), "")
	s.wants("pending", s.pending(), "late@2")
	s.wants("again", s.age(3*time.Hour), "no condition comes out otherwise at that age")
	s.wants("late", s.done("late", values{"n": int64(3)}), "")
	s.wants("interrupted", s.b.Interrupted() == nil, false) // once fired once, and no age is to come
	s.wants("first", dataflow.New(def).Rejects(values{"n": int64(1)}), "")
	s.wants("never", dataflow.New(def).Rejects(values{"n": int64(2)}) == "", false)
}

// Time makes no two states differ: what is compensated is equivalent to what was before, however old the instance is.
func TestEquivalenceAsksForNoAge(t *testing.T) {
	s := begin(t, parse(t, waiting), values{"n": int64(0)})
	s.wants("early", s.done("early", values{"n": int64(1)}), "")
	s.wants("two hours", s.age(2*time.Hour), "")
	s.wants("fails", s.b.Fail(s.jobs["late"], s.id(), "no", 1), "")
	s.wants("recover", s.b.Recover(dataflow.Step{Method: dataflow.MethodCompensate}, s.id(), 1), "")
	u := s.b.Undoing()
	job := dataflow.Job{Fact: s.id(), Task: u.Task}
	s.wants("begun", s.b.FireUndo(job, u.By, 1), "")
	s.wants("undone", s.b.Undone(job, s.id(), values{"n": int64(0)}, 1), "")
	s.wants("as", s.b.Last().As, 0)
}

// Two states that fire something else at some age are not equivalent, however old the instance is: what leads from one to
// the other undoes nothing.
func TestStatesThatDifferAtSomeAge(t *testing.T) {
	s := begin(t, parse(t, `
workflow: w
data: {s: {type: string, default: a}}
tasks:
  one: {when: s == "a", repeat: true, application: x, out: [s]}
  two: {when: s == "b" and instance.age > duration("1h"), repeat: true, application: x, out: [s], compensate: {application: unx}}
  three: {when: s == "c" and instance.age > duration("1h"), repeat: true, application: x, out: [s]}
final: s == "z"
`), values{"s": "a"})
	s.wants("one", s.done("one", values{"s": "b"}), "")
	s.wants("two hours", s.age(2*time.Hour), "")
	s.wants("two", s.done("two", values{"s": "c"}), "")
	s.wants("equivalent to", s.b.EquivalentTo(2), -1)
	s.wants("fails", s.b.Fail(s.jobs["three"], s.id(), "no", 1), "")
	back := "b"
	_, why := s.b.Foresee(dataflow.Step{Method: dataflow.MethodForward, Set: map[workflow.DataName]*string{"s": &back}})
	s.wants("forward", why, "its state would be equivalent to S1: a forward jump leads to a state that is equivalent to none in the history")
	s.wants("recover", s.b.Recover(dataflow.Step{Method: dataflow.MethodCompensate}, s.id(), 1), "")
	u := s.b.Undoing()
	job := dataflow.Job{Fact: s.id(), Task: u.Task}
	s.wants("begun", s.b.FireUndo(job, u.By, 1), "")
	s.wants("undone", s.b.Undone(job, s.id(), values{"s": "c"}, 1),
		"the compensation of two is badly designed: its state is not equivalent to S1, which was before")
}

// A compensation may bring no state that breaks a strict constraint: what was there stays.
func TestCompensationKeepsStrictConstraints(t *testing.T) {
	const text = `
workflow: w
data: {s: {type: string, default: a}, n: {type: integer, default: 0}}
tasks:
  one: {when: s == "a", repeat: true, application: x, out: [s, n], compensate: {application: UNDO}}
  two: {when: s == "b", repeat: true, application: x, out: [s]}
constraints: [{name: few, when: n < 10, strict: true}]
final: s == "z"
`
	const why = "the compensation of one is badly designed: its state breaks the constraint few: n < 10"
	begun := func(undo string) *story {
		s := begin(t, parse(t, strings.Replace(text, "UNDO", undo, 1)), values{"s": "a", "n": int64(0)})
		s.wants("one", s.done("one", values{"s": "b"}), "")
		s.wants("fails", s.b.Fail(s.jobs["two"], s.id(), "no", 1), "")
		return s
	}
	step := dataflow.Step{Method: dataflow.MethodCompensate}
	s := begun("unx")
	s.wants("recover", s.b.Recover(step, s.id(), 1), "")
	u := s.b.Undoing()
	job := dataflow.Job{Fact: s.id(), Task: u.Task}
	s.wants("begun", s.b.FireUndo(job, u.By, 1), "")
	s.wants("undone", s.b.Undone(job, s.id(), values{"s": "a", "n": int64(99)}, 1), why)
	s.wants("state", s.b.State(), 1)
	s.wants("s", s.b.Values()["s"], "b")
	s = begun(`set, with: {s: '"a"', n: '99'}`) // known beforehand
	s.wants("may recover", s.b.MayRecover(step), why)
}

// A trigger that does not repeat fires once, unless what it fired came to nothing.
func TestOnceIsNotTwice(t *testing.T) {
	s := begin(t, parse(t, waiting), values{"n": int64(1)})
	s.wants("pending", s.pending(), "once@0")
	s.wants("fails", s.b.Fail(s.jobs["once"], s.id(), "no", 1), "")
	s.wants("recover", s.b.Recover(dataflow.Step{Method: dataflow.MethodRestart}, s.id(), 1), "")
	s.wants("pending", s.pending(), "once@0")
	s.fire()
	s.wants("once", s.done("once", values{"n": int64(3)}), "")
	s.wants("pending", s.pending(), "")
}
