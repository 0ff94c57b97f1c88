package choreo

import (
	"errors"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/membership/election"
	"github.com/mutirao-mesh/mutirao/workflow"
)

const guarded = `
workflow: guarded
data: {x: {type: integer}}
tasks:
  a:  {out: [x], on-failure: {contingency: a2}}
  a2: {on-failure: block}
  b:  {after: a, on-failure: release}
  c:  {after: b}
partitions:
  p1: [a, c]
  p2: [b]
`

// guardedMesh has a running at one; everybody knows.
func guardedMesh(t testing.TB) *mesh {
	w := newMesh(t, parse(t, guarded))
	at := map[workflow.PartitionName]workflow.PartnerID{"p1": "one", "p2": "two"}
	if err := w.start("one", w.genesis(at, "one", "two", "three")); err != nil {
		t.Fatal(err)
	}
	w.stabilize(false)
	w.meetAll()
	w.stabilize(false)
	return w
}

// as opens a machine for a partner, or a stranger, that has all that one has.
func (w *mesh) as(p workflow.PartnerID, of *Machine) *Machine {
	w.t.Helper()
	facts := received(of)
	m, err := Open(Self{Partner: p, Incarnation: fact.Incarnation{7}, Trust: testTrust{}}, w.def, w.plan, facts[0])
	if err == nil {
		err = m.Load(facts[1:], false)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return m
}

// received are a machine's facts, as they come from it.
func received(m *Machine) []fact.Received {
	out := make([]fact.Received, len(m.log.Order()))
	for i, e := range m.log.Order() {
		out[i] = fact.Received{Fact: e.Fact, ID: e.ID, Raw: e.Raw, Att: e.Att}
	}
	return out
}

// meaning is a fingerprint without the list of facts and refusals.
func meaning(m *Machine) string {
	var out []string
	for l := range strings.SplitSeq(string(m.Fingerprint()), "\n") {
		if !strings.HasPrefix(l, "fact ") && !strings.HasPrefix(l, "refused ") {
			out = append(out, l)
		}
	}
	return strings.Join(out, "\n")
}

// TestFactsWithoutEntitlement: what somebody may not say is kept, counted as
// refused with the reason, and changes nothing.
func TestFactsWithoutEntitlement(t *testing.T) {
	a, b := fact.AttemptID{Slot: "a"}, fact.AttemptID{Slot: "b"}
	verdict := func(acts ...fact.Action) fact.Body {
		return fact.Body{Verdict: &fact.Verdict{Cause: fact.CauseTimeout, Actions: acts}}
	}
	for _, c := range []struct {
		what  string
		by    workflow.PartnerID
		body  fact.Body
		cause string
	}{
		{"a stranger sees", "stranger", fact.Body{Seen: &fact.Seen{}}, "takes no part"},
		{"a stranger cancels", "stranger", fact.Body{Cancel: &fact.Cancel{}}, "takes no part"},
		{"a stranger judges", "stranger", verdict(fact.Action{Attempt: b, Kind: workflow.FailRelease}),
			"takes no part"},
		{"another starts", "two", fact.Body{Start: &fact.Start{Attempt: a, Try: 2}}, "does not hold"},
		{"another succeeds", "three", fact.Body{Success: &fact.Success{
			Attempt: a, Try: 1, Outputs: map[workflow.DataName]workflow.Value{"x": int64(9)},
		}}, "does not hold"},
		{"another is ready", "three", fact.Body{Ready: &fact.ReadyBody{Attempt: b, Trigger: true}}, "does not hold"},
		{"another's try failed", "two", fact.Body{TryFailed: &fact.TryFailed{Attempt: a, Try: 1}}, "does not hold"},
		{"another's try goes to a worker", "two", fact.Body{Lease: &fact.Lease{Attempt: a, Try: 1}}, "does not hold"},
		{"another calls off", "two", fact.Body{CalledOff: &fact.CalledOff{Attempt: a}}, "does not hold"},
		{"start of nothing", "one", fact.Body{Start: &fact.Start{Attempt: fact.AttemptID{Slot: "z"}, Try: 1}},
			"does not know"},
		{"success of an attempt that nobody assigned", "one",
			fact.Body{Success: &fact.Success{Attempt: fact.AttemptID{Fact: fact.ID{1}, Slot: "a"},
				Try: 1}}, "does not know"},
		{"release where a contingency was chosen", "two", verdict(fact.Action{Attempt: a, Kind: workflow.FailRelease}),
			"judges nothing"},
		{"block where release was chosen", "one", verdict(fact.Action{Attempt: b, Kind: workflow.FailBlock}),
			"judges nothing"},
		{"another contingency than chosen", "two",
			verdict(fact.Action{Attempt: a, Kind: workflow.FailContingency, Task: "c",
				Partner: "two"}), "judges nothing"},
		{"a contingency with a release", "two",
			verdict(fact.Action{Attempt: b, Kind: workflow.FailRelease, Task: "a2"}),
			"judges nothing"},
		{"a verdict on what does not exist", "two",
			verdict(fact.Action{Attempt: fact.AttemptID{Slot: "a2"}, Kind: workflow.FailBlock}), "judges nothing"},
		{"an assignment that nobody asked for", "two",
			fact.Body{Assign: &fact.Assign{After: a, Task: "a2", Partner: "two"}},
			"no verdict asked"},
		{"an assignment after nothing", "two",
			fact.Body{Assign: &fact.Assign{After: fact.AttemptID{Slot: "z"}, Task: "a2",
				Partner: "two"}}, "does not know"},
		{"an assignment to nobody", "two", fact.Body{Assign: &fact.Assign{After: a, Task: "a2"}}, "does not know"},
		{"compensation of nothing", "one", fact.Body{Start: &fact.Start{Attempt: fact.AttemptID{Fact: fact.ID{5},
			Slot: "a"}, Try: 1}},
			"does not know"},
		{"a result of another type", "one",
			fact.Body{Success: &fact.Success{Attempt: a, Try: 1,
				Outputs: map[workflow.DataName]workflow.Value{"x": "many"}}},
			"may not have such a result"},
		{"a result that is not the task's", "two",
			fact.Body{Success: &fact.Success{Attempt: b, Try: 1,
				Outputs: map[workflow.DataName]workflow.Value{"x": int64(1)}}},
			"may not have such a result"},
		{"another has done it", "two", fact.Body{
			Start: &fact.Start{Attempt: a, Try: 1}, Success: &fact.Success{Attempt: a, Try: 1},
		}, "does not hold"},
		{"done before what it waits for", "two", fact.Body{
			Start: &fact.Start{Attempt: b, Try: 1}, Success: &fact.Success{Attempt: b, Try: 1},
		}, "its rule did not hold"},
		{"done with a result that is not the task's", "two", fact.Body{
			Start:   &fact.Start{Attempt: b, Try: 1},
			Success: &fact.Success{Attempt: b, Try: 1, Outputs: map[workflow.DataName]workflow.Value{"x": int64(1)}},
		}, "may not have such a result"},
		{"a stranger is written off", "one", fact.Body{WriteOff: &fact.WriteOff{Partner: "stranger"}}, "takes no part"},
	} {
		t.Run(c.what, func(t *testing.T) {
			w := guardedMesh(t)
			victim := w.nodes["one"].m
			before := meaning(victim)
			liar := w.as(c.by, victim)
			e := liar.mustAppend(w.moment(), c.body)
			if _, err := victim.Receive(c.by, []fact.Received{encoded(t, e.Fact)}); err != nil {
				t.Fatalf("it is well formed and belongs here: %v", err)
			}
			if got := meaning(victim); got != before {
				t.Errorf("it changed the state:\n%s\nbefore:\n%s", got, before)
			}
			if victim.log.ByID()[e.ID].Counted {
				t.Error("it counts")
			}
			if !anyReason(victim, c.cause) {
				t.Errorf("refusals %v, want one about %q", victim.state.Refused(), c.cause)
			}
			w.shuffledMatches(t, victim)
		})
	}
}

func anyReason(m *Machine, part string) bool {
	for why := range m.state.Refused() {
		if strings.Contains(why, part) {
			return true
		}
	}
	return false
}

// A verdict by somebody who knew of the success does not count; by somebody who
// did not, it does, and the success stands all the same.
func TestVerdictAgainstASuccess(t *testing.T) {
	act := fact.Action{Attempt: fact.AttemptID{Slot: "a"}, Kind: workflow.FailContingency, Task: "a2", Partner: "three"}
	for _, knew := range []bool{true, false} {
		w := guardedMesh(t)
		one := w.nodes["one"].m
		judge := w.as("two", one)
		done := one.mustAppend(w.moment(), fact.Body{Success: &fact.Success{Attempt: fact.AttemptID{Slot: "a"},
			Try: 1}})
		if knew {
			if _, err := judge.Receive("one", []fact.Received{encoded(t, done.Fact)}); err != nil {
				t.Fatal(err)
			}
		}
		e := judge.mustAppend(w.moment(), fact.Body{Verdict: &fact.Verdict{Cause: fact.CauseExpired,
			Actions: []fact.Action{act}}})
		if _, err := one.Receive("two", []fact.Received{encoded(t, e.Fact)}); err != nil {
			t.Fatal(err)
		}
		if got := one.log.ByID()[e.ID].Counted; got == knew {
			t.Errorf("knew %t: the verdict counts: %t", knew, got)
		}
		if sl := one.state.BySlot()["a"]; sl.State != workflow.Succeeded || sl.Pick.Depth != 1 {
			t.Errorf("knew %t: a is %s", knew, sl.State)
		}
		w.shuffledMatches(t, one)
	}
}

// However many verdicts others write on an attempt, its holder's own counts: a
// holder whose word is refused would say it again and again.
func TestVerdictsOfOthersLeaveTheHoldersItsPlace(t *testing.T) {
	w := guardedMesh(t)
	one := w.nodes["one"].m
	liar := w.as("two", one)
	act := fact.Action{Attempt: fact.AttemptID{Slot: "a"}, Kind: workflow.FailContingency, Task: "a2"}
	for n := range fact.MaxVerdicts + 1 {
		e := liar.mustAppend(w.moment(), fact.Body{Verdict: &fact.Verdict{Cause: fact.CauseTimeout,
			Actions: []fact.Action{act}}})
		if _, err := one.Receive("two", []fact.Received{encoded(t, e.Fact)}); err != nil {
			t.Fatal(err)
		}
		if got := one.log.ByID()[e.ID].Counted; got != (n < fact.MaxVerdicts) {
			t.Fatalf("verdict %d of the others counts: %t", n+1, got)
		}
	}
	a := one.state.BySlot()["a"].Attempts[0]
	if !one.deciding(w.moment(), w).fail(a, fact.CauseReported, "the pump is broken") || !a.EndedByHolder() {
		t.Errorf("what its holder says of it does not count: %v", one.state.Refused())
	}
	w.shuffledMatches(t, one)
	for range fact.MaxVerdicts {
		if !one.deciding(w.moment(), w).fail(a, fact.CauseReported, "the pump is broken") {
			return
		}
	}
	t.Errorf("its holder's verdicts count without end")
}

// One verdict judges a slot once: a second action on it would make two
// attempts with one name.
func TestVerdictThatNamesASlotTwice(t *testing.T) {
	w := guardedMesh(t)
	one := w.nodes["one"].m
	liar := w.as("two", one)
	act := fact.Action{Attempt: fact.AttemptID{Slot: "a"}, Kind: workflow.FailContingency, Task: "a2", Partner: "three"}
	other := act
	other.Partner = "two"
	e := liar.mustAppend(w.moment(), fact.Body{Verdict: &fact.Verdict{Cause: fact.CauseTimeout,
		Actions: []fact.Action{act, other, act}}})
	if _, err := one.Receive("two", []fact.Received{encoded(t, e.Fact)}); err != nil {
		t.Fatal(err)
	}
	if got := len(one.state.BySlot()["a"].Attempts); got != 2 {
		t.Errorf("a has %d attempts, want the original and one contingency", got)
	}
	w.shuffledMatches(t, one)
}

// A start may build upon earlier slots alone: what it claims of later slots, or
// of its own, holds nothing up and does not depend on the order of arrival.
func TestStartThatClaimsToBuildUponLaterSlots(t *testing.T) {
	w := newMesh(t, parse(t, `
workflow: claims
tasks:
  a:  {on-failure: {contingency: a2}}
  a2: {}
  b:  {after: a, on-failure: {contingency: b2}}
  b2: {}
`))
	if err := w.start("one", w.genesis(map[workflow.PartitionName]workflow.PartnerID{"main": "one"}, "one",
		"two")); err != nil {
		t.Fatal(err)
	}
	one, two := w.nodes["one"].m, w.as("two", w.nodes["one"].m)
	verdict := two.mustAppend(w.moment(), fact.Body{Verdict: &fact.Verdict{Cause: fact.CauseExpired,
		Actions: []fact.Action{
			{Attempt: fact.AttemptID{Slot: "a"}, Kind: workflow.FailContingency, Task: "a2", Partner: "two"},
			{Attempt: fact.AttemptID{Slot: "b"}, Kind: workflow.FailContingency, Task: "b2", Partner: "two"}}}})
	a2, b2 := fact.AttemptID{Fact: verdict.ID, Slot: "a"}, fact.AttemptID{Fact: verdict.ID, Slot: "b"}
	late := two.mustAppend(w.moment(), fact.Body{Success: &fact.Success{Attempt: b2, Try: 1}})
	two.mustAppend(w.moment(), fact.Body{Start: &fact.Start{
		Attempt: a2, Try: 1, Consumed: []fact.Consumption{{Slot: "b", Fact: late.ID}},
	}})
	two.mustAppend(w.moment(), fact.Body{Success: &fact.Success{Attempt: a2, Try: 1}})
	first := one.mustAppend(w.moment(), fact.Body{Success: &fact.Success{Attempt: fact.AttemptID{Slot: "b"}, Try: 1}})
	if _, err := two.Receive("one", []fact.Received{encoded(t, one.log.Order()[1].Fact),
		encoded(t, first.Fact)}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // what was concluded before must not matter
		two.mustAppend(w.moment(), fact.Body{Seen: &fact.Seen{}})
		mustMatch(t, "folded as they came, and all at once", two, w.scratch(two))
	}
	w.shuffledMatches(t, two)
}

// A fact of another instance, with its author's signature, names chains as those of this
// one are named. So nothing of a bundle with one is looked at.
func TestAnotherInstanceSaysNothingHere(t *testing.T) {
	w := guardedMesh(t)
	m := w.nodes["one"].m
	f := *w.as("two", m).mustAppend(w.moment(), fact.Body{Seen: &fact.Seen{}}).Fact
	f.Instance[0]++
	f.Seen = []fact.Head{{Chain: fact.Chain{Author: "three"}, Seq: 7}}
	m.door.decline(fact.ID{9}, Declined{Author: "three", Why: TooManyFacts}) // from now on names matter
	if _, err := m.Receive("two", []fact.Received{encoded(t, &f)}); !errors.Is(err, log.ErrOtherInstance) {
		t.Errorf("error %v, want %v", err, log.ErrOtherInstance)
	}
	if n := len(m.door.named["two"]); n > 0 {
		t.Errorf("%d chains are named by what is not of this instance", n)
	}
}

// TestFactsThatDoNotFit are refused by Receive with an error, and change nothing.
func TestFactsThatDoNotFit(t *testing.T) {
	for _, c := range []struct {
		what string
		want error
		bend func(f *fact.Fact, m *Machine)
	}{
		{"another instance", log.ErrOtherInstance, func(f *fact.Fact, _ *Machine) { f.Instance[0]++ }},
		{"a second genesis", log.ErrOtherInstance,
			func(f *fact.Fact, m *Machine) { *f = *m.log.Genesis().Fact; f.At++ }},
		{"a gap", log.ErrMissingPast, func(f *fact.Fact, _ *Machine) { f.Seq, f.Prev = 3, fact.ID{1} }},
		{"a number that does not follow", fact.ErrInvalid,
			func(f *fact.Fact, m *Machine) { f.Seq, f.Prev = 9, m.own.ID; f.Chain = m.chain }},
		{"another's fact as its previous", fact.ErrInvalid,
			func(f *fact.Fact, m *Machine) { f.Seq, f.Prev = m.own.Fact.Seq+1, m.own.ID }},
		{"a head that nobody has", log.ErrMissingPast, func(f *fact.Fact, _ *Machine) { f.Seen[0].ID[0]++ }},
		{"a head under another's name", fact.ErrInvalid,
			func(f *fact.Fact, _ *Machine) { f.Seen[0].Chain.Author = "three" }},
		{"a head with another number", fact.ErrInvalid, func(f *fact.Fact, _ *Machine) { f.Seen[0].Seq++ }},
		{"a head in another incarnation", fact.ErrInvalid,
			func(f *fact.Fact, _ *Machine) { f.Seen[0].Chain.Incarnation[3]++ }},
	} {
		t.Run(c.what, func(t *testing.T) {
			w := guardedMesh(t)
			m := w.nodes["one"].m
			before := string(m.Fingerprint())
			f := *w.as("two", m).mustAppend(w.moment(), fact.Body{Seen: &fact.Seen{}}).Fact
			f.Seen = append([]fact.Head(nil), f.Seen...)
			c.bend(&f, m)
			if _, err := m.Receive("two", []fact.Received{encoded(t, &f)}); !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
			if got := string(m.Fingerprint()); got != before {
				t.Errorf("it changed the replica:\n%s", firstDifference([]byte(before), []byte(got)))
			}
		})
	}
}

// A coordinator that knew of a later one when it judged judges as any participant: its
// proof of an office that is over puts it before nobody. One that could not know of it
// is held against the later one only.
func TestOfficeThatIsOver(t *testing.T) {
	for _, knew := range []bool{true, false} {
		w := guardedMesh(t)
		one := w.nodes["one"].m
		former, later := w.as("three", one), w.as("two", one)
		act := fact.Action{Attempt: fact.AttemptID{Slot: "a"}, Kind: workflow.FailContingency, Task: "a2"}
		say := func(m *Machine, term uint64, act fact.Action) fact.Received {
			t.Helper()
			v := &fact.Verdict{Cause: fact.CauseExpired, Actions: []fact.Action{act}}
			if term > 0 {
				v.Office = &fact.Office{Office: election.Office{Term: term, Number: 1}}
			}
			r := encoded(t, m.mustAppend(w.moment(), fact.Body{Verdict: v}).Fact)
			r.Att = &fact.Attestation{}
			return r
		}
		other := fact.Action{Attempt: fact.AttemptID{Slot: "b"}, Kind: workflow.FailRelease}
		newer := say(later, 4, other)
		if knew {
			if _, err := former.Receive("two", []fact.Received{newer}); err != nil {
				t.Fatal(err)
			}
		}
		act.Partner = "three"
		its := say(former, 3, act)
		act.Partner = "one"
		own := say(one, 0, act)
		if _, err := one.Receive("two", []fact.Received{newer, its}); err != nil {
			t.Fatal(err)
		}
		want := own.ID
		if !knew {
			want = its.ID
		}
		if a := one.state.BySlot()["a"].Current; a.ID.Fact != want {
			t.Errorf("knew %t: %s has the task by %s, refused %v", knew, a.Partner, a.ID.Fact.Short(),
				one.state.Refused())
		}
		w.shuffledMatches(t, one)
		w.office = &fact.Office{Office: election.Office{Term: 3, Number: 1}}
		if got := one.looking(Moment{}, w).officeNow(); got != nil {
			t.Errorf("this node judges in an office of term %d though it knows of term 4", got.Term)
		}
		w.office = &fact.Office{Office: election.Office{Term: 5, Number: 1}}
		if got := one.looking(Moment{}, w).officeNow(); got != w.office {
			t.Errorf("this node does not judge in its office: %v", got)
		}
	}
}

// A fact about an attempt that its author did not know is refused for that, whether or not the
// attempt is known where the fact comes in, and whatever else is wrong with it.
func TestRefusalReasonInAnyOrder(t *testing.T) {
	w := guardedMesh(t)
	one := w.nodes["one"].m
	g := one.log.Genesis()
	mk := func(author workflow.PartnerID, b fact.Body) fact.Received {
		return penOf(t, one, author, 7).write(b, g.Head())
	}
	act := fact.Action{Attempt: fact.AttemptID{Slot: "a"}, Kind: workflow.FailContingency, Task: "a2", Partner: "two"}
	verdict := mk("two", fact.Body{Verdict: &fact.Verdict{Cause: fact.CauseTimeout, Actions: []fact.Action{act}}})
	given := fact.AttemptID{Fact: verdict.ID, Slot: "a"}
	for _, c := range []struct {
		what, why string
		body      fact.Body
	}{
		{"a start by who does not hold it", "does not know", startOf(given)},
		{"a result that may not be", "does not know",
			fact.Body{Success: &fact.Success{Attempt: given, Try: 1,
				Outputs: map[workflow.DataName]workflow.Value{"y": "no"}}}},
		{"a call-off", "does not know", fact.Body{CalledOff: &fact.CalledOff{Attempt: given}}},
		{"an assignment for which no verdict asked", "does not know",
			fact.Body{Assign: &fact.Assign{After: given, Verdict: fact.ID{1}, Task: "a2", Partner: "three"}}},
		{"passing on what another holds", "does not know",
			fact.Body{Assign: &fact.Assign{After: given, Task: "a2", Partner: "three"}}},
		{"a verdict", "judges nothing", fact.Body{Verdict: &fact.Verdict{
			Cause: fact.CauseTimeout, Actions: []fact.Action{{Attempt: given, Kind: workflow.FailBlock}},
		}}},
	} {
		late := mk("three", c.body)
		take := func(fs ...fact.Received) *Machine {
			m, err := Open(Self{Partner: "x", Incarnation: fact.Incarnation{9}, Trust: testTrust{}}, w.def, w.plan,
				fact.Received{Fact: g.Fact, ID: g.ID, Raw: g.Raw})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range fs {
				m.mustTake(t, f)
			}
			return m
		}
		before, after := take(late, verdict), take(verdict, late)
		for order, m := range map[string]*Machine{"before": before, "after": after} {
			if e := m.log.ByID()[late.ID]; e.Counted || !strings.Contains(e.Why, c.why) {
				t.Errorf("%s, taken in %s the attempt: counts %t, refused as %q, want %q", c.what, order, e.Counted,
					e.Why, c.why)
			}
		}
		mustMatch(t, c.what+" in two orders", before, after)
	}
}

// A partner shows its certificates once in an instance, however many tasks with a role it does,
// also where its store was made again meanwhile.
func TestCertificatesAreShownOnce(t *testing.T) {
	w := relayMesh(t)
	shown := func(when string, want int) {
		t.Helper()
		n := 0
		for _, e := range w.nodes["one"].m.log.Order() {
			if len(e.Fact.Body.Credentials) > 0 && e.Fact.Chain.Author == "two" {
				n++
			}
		}
		if n != want {
			t.Errorf("%s two has shown its certificates %d times, want %d", when, n, want)
		}
	}
	shown("before its tasks", 0)
	w.say("two", "b", 1)
	w.stabilize(true)
	shown("after one task with a role", 1)
	w.restore(w.nodes["two"], w.nodes["two"].backup(), fact.Incarnation{2})
	w.say("two", "d")
	w.stabilize(true)
	shown("after two tasks with a role", 1)
	if got := w.nodes["one"].m.Overall(); got != workflow.InstanceSucceeded {
		t.Errorf("the instance is %s", got)
	}
}
