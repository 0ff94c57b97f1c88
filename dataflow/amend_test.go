package dataflow_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/dataflow"
	"github.com/mutirao-mesh/mutirao/internal/test/sample"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// amend has a board go by a definition in which pieces of the text are others.
func (s *story) amend(text string, pairs ...string) string {
	s.t.Helper()
	changed := strings.NewReplacer(pairs...).Replace(text)
	if changed == text {
		s.t.Fatalf("%q changes nothing", pairs)
	}
	why := s.b.Amend(dataflow.New(parse(s.t, changed)), s.id(), 1)
	s.fire()
	return why
}

// What was fired goes on, and the state that there is fires what is new, once.
func TestAChangedFlowFiresWhatIsNew(t *testing.T) {
	s := begin(t, parse(t, parallel), values{"n": int64(0)})
	s.wants("amended", s.amend(parallel, "  join:",
		"  look: {when: n == 0, repeat: {times: 1}, application: x, out: [n]}\n  join:"), "")
	s.wants("pending", s.pending(), "look@0 one@0 two@0")
	s.wants("states", s.b.State(), 0)
	s.wants("look", s.done("look", nil), "")
	s.wants("pending", s.pending(), "one@0 two@0")
	s.wants("the same once more", s.b.Amend(s.b.Flow(), s.id(), 1), "it goes by that definition already")
	s.wants("amended", s.amend(parallel, "two: {when: n == 0 and b == null", "two: {when: n == 1"), "")
	s.wants("one that is gone", s.pending(), "one@0 two@0")
	s.wants("two", s.done("two", values{"n": int64(1)}), "")
	s.wants("pending", s.pending(), "one@0 two@2")
}

// Data that are new have their defaults, in a state of their own; what may not have its value any more is null.
func TestAChangedFlowHasNewData(t *testing.T) {
	s := begin(t, parse(t, parallel), values{"n": int64(0)})
	s.wants("amended", s.amend(parallel, "a: {type: integer}", "a: {type: integer}, k: {type: integer, default: 3}"), "")
	s.wants("values", s.b.Values(), values{"k": int64(3), "n": int64(0)})
	s.wants("kind", s.b.Last().Kind, dataflow.Amendment)
	s.wants("it is like the first", s.b.EquivalentTo(1), 0)
	s.wants("amended", s.amend(parallel, "a: {type: integer}", "a: {type: integer}, k: {type: string, default: x}"), "")
	s.wants("values", s.b.Values(), values{"n": int64(0)})
	s.wants("states", s.b.State(), 2)
	s.wants("past", s.b.ValuesAt(1), values{"k": int64(3), "n": int64(0)})
	s.wants("one", s.done("one", values{"a": int64(1)}), "")
	s.wants("conflicts", len(s.b.Last().Conflicts), 0)
}

// A value that was within the limits when it was set stays, though they are narrower now.
func TestANarrowedValueStays(t *testing.T) {
	s := begin(t, parse(t, parallel), values{"n": int64(0)})
	s.wants("one", s.done("one", values{"a": int64(5)}), "")
	s.wants("amended", s.amend(parallel, "a: {type: integer}", "a: {type: integer, max: 3}"), "")
	s.wants("values", s.b.Values(), values{"a": int64(5), "n": int64(0)})
	s.wants("states", s.b.State(), 1)
}

// A state that is final by the changed definition fires nothing more, and ends the instance once nothing is pending. No
// result is taken whose state would be final while others are pending, so it is not to go by such a definition yet.
func TestAChangedEnd(t *testing.T) {
	const end = "final: n == 0 and (a == null or a > 0)"
	changed := func(final string) *dataflow.Flow {
		return dataflow.New(parse(t, strings.Replace(parallel, "final: n == 2", final, 1)))
	}
	s := begin(t, parse(t, parallel), values{"n": int64(0)})
	s.wants("it waits", s.b.AwaitsEnds(changed(end)), true)
	s.wants("it need not wait", s.b.AwaitsEnds(changed("final: n == 1")), false)
	s.wants("amended", s.amend(parallel, "final: n == 2", end), "")
	s.wants("ended", s.b.Ended(), false)
	s.wants("one", s.done("one", values{"a": int64(1)}), dataflow.FinalTooEarly)
	s.wants("two", s.done("two", values{"b": int64(1)}), dataflow.FinalTooEarly)
	s.wants("one", s.done("one", values{"a": int64(0)}), "")
	s.wants("two", s.done("two", values{"b": int64(1)}), "")
	s.wants("pending", s.pending(), "join@2")

	s = begin(t, parse(t, parallel), values{"n": int64(0)})
	s.wants("one", s.done("one", values{"a": int64(1)}), "")
	s.wants("it need not wait", s.b.AwaitsEnds(changed(end)), false)
	s.wants("amended", s.amend(parallel, "final: n == 2", end), "")
	s.wants("two", s.done("two", values{"b": int64(1)}), "")
	s.wants("pending", s.pending(), "")
	s.wants("ended", s.b.Ended(), true)
	s.wants("too late", s.amend(parallel, "final: n == 2", "final: n == 1"), "a final state ended the instance")

	s = begin(t, parse(t, parallel), values{"n": int64(0)})
	s.done("one", values{"a": int64(1)})
	s.done("two", values{"b": int64(1)})
	s.wants("pending", s.pending(), "join@2")
	s.wants("fail", s.b.Fail(s.jobs["join"], s.id(), "no luck", 1), "")
	s.wants("amended", s.amend(parallel, "final: n == 2", "final: n == 0", "when: a != null and b", "when: n == 7 and b"), "")
	s.wants("interrupted", s.b.Interrupted() != nil, true)
	s.wants("restart", s.b.Recover(dataflow.Step{Method: dataflow.MethodRestart}, s.id(), 1), "")
	s.wants("ended", s.b.Ended(), true)
}

// A strict constraint that the state breaks interrupts; without it the state is consistent again. So is one at which
// nothing was pending, and which fires something by now.
func TestChangedConstraintsOfAFlow(t *testing.T) {
	const strict = "constraints: [{name: low, when: a < 3, strict: true}]\nfinal: n == 2"
	s := begin(t, parse(t, parallel), values{"n": int64(0)})
	s.done("one", values{"a": int64(5)})
	s.wants("amended", s.amend(parallel, "final: n == 2", strict), "")
	s.wants("interrupted", s.b.Interrupted().Cause, "the state breaks the constraint low: a < 3")
	s.wants("consistent", s.b.Interrupted().Consistent, false)
	s.wants("methods", s.b.Methods(), "[jump-back jump-forward]")
	s.wants("pending", s.pending(), "")
	s.wants("amended", s.amend(parallel, "final: n == 2", "final: n == 3"), "")
	s.wants("consistent", s.b.Interrupted().Consistent, true)
	s.wants("restart", s.b.Recover(dataflow.Step{Method: dataflow.MethodRestart}, s.id(), 1), "")
	s.fire()
	s.wants("pending", s.pending(), "two@1")

	s.wants("nothing is pending", s.done("two", values{"n": int64(9)}), "")
	s.wants("consistent", s.b.Interrupted().Consistent, false)
	s.wants("amended", s.amend(parallel, "join: {when:", "join: {when: n == 9 or"), "")
	s.wants("methods", s.b.Methods(), "[offer restart jump-forward]")
	const cause = "the state fires no trigger, is not final, and nothing is pending"
	s.wants("amended", s.amend(parallel, "final: n == 2", strict), "")
	s.wants("consistent", s.b.Interrupted().Consistent, false)
	s.wants("cause", s.b.Interrupted(), cause+"; since then: the state breaks the constraint low: a < 3")
	s.wants("amended", s.amend(parallel, "join: {when:", "join: {when: n == 9 or"), "")
	s.wants("cause", s.b.Interrupted(), cause)
}

// A trigger that is not there any more, as two definitions did not go together, comes to nothing. A compensation that is
// new can be asked for; one that is gone while a recovery waits for it ends that.
func TestATriggerIsGone(t *testing.T) {
	s := begin(t, parse(t, parallel), values{"n": int64(0)})
	s.done("one", values{"a": int64(5)})
	s.wants("fail", s.b.Fail(s.jobs["two"], s.id(), "no luck", 1), "")
	s.wants("undo", s.b.MayRecover(dataflow.Step{Method: dataflow.MethodCompensate}),
		"transition one has no compensation: give it one by an amendment (mutirao amend), or use a forward jump")
	const undo = "out: [a, n], compensate: {application: y}"
	s.wants("amended", s.amend(parallel, "out: [a, n]", undo), "")
	s.wants("undo", s.b.Recover(dataflow.Step{Method: dataflow.MethodCompensate}, s.id(), 1), "")
	s.wants("amended", s.amend(parallel, "final: n == 2", "final: n == 4"), "")
	s.wants("undoing", s.b.Undoing() == nil, true)
	s.wants("amended", s.amend(parallel, "out: [a, n]", undo), "")
	s.wants("undo", s.b.Recover(dataflow.Step{Method: dataflow.MethodCompensate}, s.id(), 1), "")
	job := dataflow.Job{Fact: s.id(), Task: "one"}
	s.wants("begin", s.b.FireUndo(job, s.b.Undoing().By, 1), "")
	s.wants("undone", s.b.Undone(job, s.id(), values{"a": nil}, 1), "")
	s.wants("as", s.b.Last().As, 0)

	s = begin(t, parse(t, parallel), values{"n": int64(0)})
	s.wants("amended", s.amend(parallel, "  one: {when: n == 0 and a == null, repeat: true, application: x, out: [a, n]}\n", ""), "")
	s.wants("pending", s.pending(), "two@0")
	s.wants("history", s.b.History()[1].Mark, dataflow.Aborted)
	s.wants("one", s.b.Done(s.jobs["one"], s.id(), values{"a": int64(1)}, 1), "the transition is not pending")
	s.wants("a jump over it", s.b.Fail(s.jobs["two"], s.id(), "no luck", 1), "")
	s.wants("methods", s.b.Methods(), "[offer restart jump-forward]")

	s = begin(t, parse(t, parallel), values{"n": int64(0)})
	s.done("one", values{"a": int64(5)})
	s.wants("amended", s.amend(parallel, "  one: {when: n == 0 and a == null, repeat: true, application: x, out: [a, n]}\n", ""), "")
	s.wants("fail", s.b.Fail(s.jobs["two"], s.id(), "no luck", 1), "")
	s.wants("undo", s.b.MayRecover(dataflow.Step{Method: dataflow.MethodCompensate}),
		"transition one is not in the definition any more: use a forward jump")
}

// Whatever is amended on the way, and whatever fails and is recovered: no instance runs at a state at which nothing is
// pending, or which breaks a strict constraint, and it can be brought to an end.
func TestAnyAmendedFlow(t *testing.T) {
	amended, seen := 0, map[string]int{}
	for seed := range uint64(sample.Of(120, 300)) {
		r := rand.New(rand.NewPCG(seed, 17))
		x := countingRun(t, r, seen)
		for range 60 {
			if x.b.Ended() {
				break
			}
			if r.IntN(6) == 0 {
				one := func(all ...string) string { return all[r.IntN(len(all))] }
				x.b.Amend(dataflow.New(parse(t, strings.NewReplacer(
					"b: {type: integer}", "b: {type: integer}"+one("", ", k: {type: integer, default: 1}", ", k: {type: string}"),
					"n <= 5", one("n <= 5", "n <= 5 and (a == null or a < 60)"),
					"(b == null", one("(b == null", "(a != null"), "n == 4", one("n == 4", "n >= 4"),
					"final", one("final", "conditions: {many: n > 2}\nfinal"),
					", compensate: {application: unx}", one(", compensate: {application: unx}", ""),
				).Replace(anyFlow))), x.id(), 1)
				amended++
				x.fire()
				x.check()
				continue
			}
			x.step()
		}
		x.end()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if amended == 0 || seen["compensated"] == 0 || seen["offer"] == 0 {
		t.Errorf("%d amendments, %v", amended, seen)
	}
}

// To read the history again by changed conditions costs what to make it did.
func TestAnAmendmentCostsWhatTheHistoryDid(t *testing.T) {
	const text = "workflow: w\ndata: {n: {type: integer, default: 0}}\ntasks:\n" +
		"  go: {when: n >= 0, repeat: true, application: x, out: [n]}\nfinal: n < 0\n"
	s := begin(t, parse(t, text), values{"n": int64(0)})
	for i := range int64(1000) {
		s.done("go", values{"n": i + 1})
	}
	before := s.b.Steps()
	s.wants("amended", s.amend(text, "final", "conditions: {many: n > 500}\nfinal"), "")
	if cost := s.b.Steps() - before; cost > 2*before {
		t.Errorf("it costs %d steps, the history %d", cost, before)
	}
	s.wants("like", s.b.EquivalentTo(700), 501)
}

const asks = `
workflow: eq
data: {a: {type: integer, default: 0}, note: {type: string}}
tasks:
  ask: {when: a == 0, repeat: true, type: manual, out: [a, note], compensate: {application: x}}
  tell: {when: a == 1, repeat: true, type: manual, out: [a, note]}
final: a == 2
`

// A state has no data that were added after it, so it is held against others without them, as it is shown: whether a
// jump forward is allowed, and what is said to be like what, goes by that.
func TestAStateIsJudgedAsItIsShown(t *testing.T) {
	null, end := (*string)(nil), "end"
	extra := []string{"note: {type: string}", "note: {type: string}, extra: {type: string, default: end}",
		"final:", "conditions: {ex: 'extra == \"end\"'}\nfinal:"}
	jump := func(set *string) dataflow.Step {
		return dataflow.Step{Method: dataflow.MethodForward, Set: map[workflow.DataName]*string{"extra": set}}
	}
	s := begin(t, parse(t, asks), values{"a": int64(0)})
	s.wants("amended", s.amend(asks, extra...), "")
	s.wants("the first", s.b.ValuesAt(0), values{"a": int64(0)})
	s.wants("changed", s.b.ValuesAt(1), values{"a": int64(0), "extra": "end"})
	s.wants("it is not like the first", s.b.EquivalentTo(1), -1)
	s.wants("fail", s.b.Fail(s.jobs["ask"], s.id(), "stopped", 1), "")
	const like = "its state would be equivalent to S%d: a forward jump leads to a state that is equivalent to none in the history"
	s.wants("as at first", s.b.Recover(jump(null), s.id(), 1), fmt.Sprintf(like, 0))
	s.wants("as it is", s.b.Recover(jump(&end), s.id(), 1), fmt.Sprintf(like, 1))
	s.wants("states", s.b.State(), 1)

	s = begin(t, parse(t, asks), values{"a": int64(0)})
	s.wants("amended", s.amend(asks, append([]string{
		"final: a == 2", "conditions: {ex: 'extra == \"end\"'}\nfinal: a == 2 or extra == \"end\"",
	}, extra...)...), "")
	s.wants("fail", s.b.Fail(s.jobs["ask"], s.id(), "stopped", 1), "")
	s.wants("as at first", s.b.Recover(jump(null), s.id(), 1), fmt.Sprintf(like, 0))
	s.wants("restart", s.b.Recover(dataflow.Step{Method: dataflow.MethodRestart}, s.id(), 1), "")
	s.wants("ended", s.b.Ended(), true)
	s.wants("status", s.b.Last().Status, dataflow.Final)
	s.wants("it is not like the first", s.b.EquivalentTo(1), -1)
}

// What is undone leaves what amendments have changed since: its state is taken for the one before all the same. So is
// one to which a jump back leads, if an amendment made it of one that may be jumped to.
func TestWhatIsUndoneLeavesWhatAmendmentsChanged(t *testing.T) {
	extra := []string{"note: {type: string}", "note: {type: string}, extra: {type: string, default: end}",
		"final:", "conditions: {ex: 'extra == \"end\"'}\nfinal:"}
	undo := func(updates values) *story {
		s := begin(t, parse(t, asks), values{"a": int64(0)})
		s.wants("ask", s.done("ask", values{"a": int64(1)}), "")
		s.wants("amended", s.amend(asks, extra...), "")
		s.wants("fail", s.b.Fail(s.jobs["tell"], s.id(), "stopped", 1), "")
		zero := 0
		step := dataflow.Step{Method: dataflow.MethodCompensate, Until: &zero}
		out, why := s.b.Foresee(step)
		s.wants("foreseen", told(out)+why, "undoes ask of S1 sure=false; S3 a=0; interrupted: stopped [offer restart jump-forward]")
		s.wants("undo", s.b.Recover(step, s.id(), 1), "")
		job := dataflow.Job{Fact: s.id(), Task: "ask"}
		s.wants("begin", s.b.FireUndo(job, s.b.Undoing().By, 1), "")
		why = s.b.Undone(job, s.id(), updates, 1)
		s.wants("undone", why, "")
		s.wants("as", s.b.Last().As, 0)
		s.wants("it stopped", s.b.Interrupted().Cause, "stopped")
		return s
	}
	undo(values{"a": int64(0)})
	undo(values{"a": int64(0), "extra": nil})

	s := begin(t, parse(t, asks), values{"a": int64(0)})
	s.wants("amended", s.amend(asks, extra...), "")
	s.wants("ask", s.done("ask", values{"a": int64(7)}), "")
	s.wants("consistent", s.b.Interrupted().Consistent, false)
	zero := "0"
	back := dataflow.Step{Method: dataflow.MethodBack, Set: map[workflow.DataName]*string{"a": &zero}}
	s.wants("back", s.b.Recover(back, s.id(), 1), "")
	s.wants("as", s.b.Last().As, 0)
	s.wants("like", s.b.EquivalentTo(3), 1)
	s.wants("ask", s.b.History()[2].Mark, dataflow.Jumped)
}
