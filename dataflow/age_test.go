package dataflow_test

import (
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/dataflow"
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
	s.wants("begun", s.b.FireUndo(job, u.By), "")
	s.wants("undone", s.b.Undone(job, s.id(), values{"n": int64(0)}, 1, 1), "")
	s.wants("as", s.b.Last().As, 0)
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
