package choreo

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/membership/election"
	"github.com/mutirao-mesh/mutirao/membership/trust"
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
	m, err := Open(Self{Partner: p, Incarnation: Incarnation{7}, Trust: testTrust{}}, w.def, w.plan, facts[0])
	if err == nil {
		err = m.Load(facts[1:], false)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return m
}

// received are a machine's facts, as they come from it.
func received(m *Machine) []Received {
	out := make([]Received, len(m.log.order))
	for i, e := range m.log.order {
		out[i] = Received{Fact: e.fact, ID: e.id, Raw: e.raw, Att: e.att}
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
	a, b := AttemptID{Slot: "a"}, AttemptID{Slot: "b"}
	verdict := func(acts ...Action) Body { return Body{Verdict: &Verdict{Cause: CauseTimeout, Actions: acts}} }
	for _, c := range []struct {
		what  string
		by    workflow.PartnerID
		body  Body
		cause string
	}{
		{"a stranger sees", "stranger", Body{Seen: &Seen{}}, "takes no part"},
		{"a stranger cancels", "stranger", Body{Cancel: &Cancel{}}, "takes no part"},
		{"a stranger judges", "stranger", verdict(Action{Attempt: b, Kind: workflow.FailRelease}), "takes no part"},
		{"another starts", "two", Body{Start: &Start{Attempt: a, Try: 2}}, "does not hold"},
		{"another succeeds", "three", Body{Success: &Success{
			Attempt: a, Try: 1, Outputs: map[workflow.DataName]workflow.Value{"x": int64(9)},
		}}, "does not hold"},
		{"another is ready", "three", Body{Ready: &ReadyBody{Attempt: b, Trigger: true}}, "does not hold"},
		{"another's try failed", "two", Body{TryFailed: &TryFailed{Attempt: a, Try: 1}}, "does not hold"},
		{"another's try goes to a worker", "two", Body{Lease: &Lease{Attempt: a, Try: 1}}, "does not hold"},
		{"another calls off", "two", Body{CalledOff: &CalledOff{Attempt: a}}, "does not hold"},
		{"start of nothing", "one", Body{Start: &Start{Attempt: AttemptID{Slot: "z"}, Try: 1}}, "does not know"},
		{"success of an attempt that nobody assigned", "one",
			Body{Success: &Success{Attempt: AttemptID{Fact: FactID{1}, Slot: "a"}, Try: 1}}, "does not know"},
		{"release where a contingency was chosen", "two", verdict(Action{Attempt: a, Kind: workflow.FailRelease}),
			"judges nothing"},
		{"block where release was chosen", "one", verdict(Action{Attempt: b, Kind: workflow.FailBlock}),
			"judges nothing"},
		{"another contingency than chosen", "two",
			verdict(Action{Attempt: a, Kind: workflow.FailContingency, Task: "c", Partner: "two"}), "judges nothing"},
		{"a contingency with a release", "two", verdict(Action{Attempt: b, Kind: workflow.FailRelease, Task: "a2"}),
			"judges nothing"},
		{"a verdict on what does not exist", "two",
			verdict(Action{Attempt: AttemptID{Slot: "a2"}, Kind: workflow.FailBlock}), "judges nothing"},
		{"an assignment that nobody asked for", "two", Body{Assign: &Assign{After: a, Task: "a2", Partner: "two"}},
			"no verdict asked"},
		{"an assignment after nothing", "two",
			Body{Assign: &Assign{After: AttemptID{Slot: "z"}, Task: "a2", Partner: "two"}}, "does not know"},
		{"an assignment to nobody", "two", Body{Assign: &Assign{After: a, Task: "a2"}}, "does not know"},
		{"compensation of nothing", "one", Body{Start: &Start{Attempt: AttemptID{Fact: FactID{5}, Slot: "a"}, Try: 1}},
			"does not know"},
		{"a result of another type", "one",
			Body{Success: &Success{Attempt: a, Try: 1, Outputs: map[workflow.DataName]workflow.Value{"x": "many"}}},
			"may not have such a result"},
		{"a result that is not the task's", "two",
			Body{Success: &Success{Attempt: b, Try: 1, Outputs: map[workflow.DataName]workflow.Value{"x": int64(1)}}},
			"may not have such a result"},
		{"a stranger is written off", "one", Body{WriteOff: &WriteOff{Partner: "stranger"}}, "takes no part"},
	} {
		t.Run(c.what, func(t *testing.T) {
			w := guardedMesh(t)
			victim := w.nodes["one"].m
			before := meaning(victim)
			liar := w.as(c.by, victim)
			e := liar.mustAppend(w.moment(), c.body)
			if _, err := victim.Receive(c.by, []Received{encoded(t, e.fact)}); err != nil {
				t.Fatalf("it is well formed and belongs here: %v", err)
			}
			if got := meaning(victim); got != before {
				t.Errorf("it changed the state:\n%s\nbefore:\n%s", got, before)
			}
			if victim.log.byID[e.id].counted {
				t.Error("it counts")
			}
			if !anyReason(victim, c.cause) {
				t.Errorf("refusals %v, want one about %q", victim.state.refused, c.cause)
			}
			w.shuffledMatches(t, victim)
		})
	}
}

func anyReason(m *Machine, part string) bool {
	for why := range m.state.refused {
		if strings.Contains(why, part) {
			return true
		}
	}
	return false
}

// A verdict by somebody who knew of the success does not count; by somebody who
// did not, it does, and the success stands all the same.
func TestVerdictAgainstASuccess(t *testing.T) {
	act := Action{Attempt: AttemptID{Slot: "a"}, Kind: workflow.FailContingency, Task: "a2", Partner: "three"}
	for _, knew := range []bool{true, false} {
		w := guardedMesh(t)
		one := w.nodes["one"].m
		judge := w.as("two", one)
		done := one.mustAppend(w.moment(), Body{Success: &Success{Attempt: AttemptID{Slot: "a"}, Try: 1}})
		if knew {
			if _, err := judge.Receive("one", []Received{encoded(t, done.fact)}); err != nil {
				t.Fatal(err)
			}
		}
		e := judge.mustAppend(w.moment(), Body{Verdict: &Verdict{Cause: CauseExpired, Actions: []Action{act}}})
		if _, err := one.Receive("two", []Received{encoded(t, e.fact)}); err != nil {
			t.Fatal(err)
		}
		if got := one.log.byID[e.id].counted; got == knew {
			t.Errorf("knew %t: the verdict counts: %t", knew, got)
		}
		if sl := one.state.bySlot["a"]; sl.State != workflow.Succeeded || sl.Pick.Depth != 1 {
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
	act := Action{Attempt: AttemptID{Slot: "a"}, Kind: workflow.FailContingency, Task: "a2"}
	for n := range MaxVerdicts + 1 {
		e := liar.mustAppend(w.moment(), Body{Verdict: &Verdict{Cause: CauseTimeout, Actions: []Action{act}}})
		if _, err := one.Receive("two", []Received{encoded(t, e.fact)}); err != nil {
			t.Fatal(err)
		}
		if got := one.log.byID[e.id].counted; got != (n < MaxVerdicts) {
			t.Fatalf("verdict %d of the others counts: %t", n+1, got)
		}
	}
	a := one.state.bySlot["a"].Attempts[0]
	if !one.deciding(w.moment(), w).fail(a, CauseReported, "the pump is broken") || !a.endedByHolder() {
		t.Errorf("what its holder says of it does not count: %v", one.state.refused)
	}
	w.shuffledMatches(t, one)
	for range MaxVerdicts {
		if !one.deciding(w.moment(), w).fail(a, CauseReported, "the pump is broken") {
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
	act := Action{Attempt: AttemptID{Slot: "a"}, Kind: workflow.FailContingency, Task: "a2", Partner: "three"}
	other := act
	other.Partner = "two"
	e := liar.mustAppend(w.moment(), Body{Verdict: &Verdict{Cause: CauseTimeout, Actions: []Action{act, other, act}}})
	if _, err := one.Receive("two", []Received{encoded(t, e.fact)}); err != nil {
		t.Fatal(err)
	}
	if got := len(one.state.bySlot["a"].Attempts); got != 2 {
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
	if err := w.start("one", w.genesis(map[workflow.PartitionName]workflow.PartnerID{"main": "one"}, "one", "two")); err != nil {
		t.Fatal(err)
	}
	one, two := w.nodes["one"].m, w.as("two", w.nodes["one"].m)
	verdict := two.mustAppend(w.moment(), Body{Verdict: &Verdict{Cause: CauseExpired, Actions: []Action{
		{Attempt: AttemptID{Slot: "a"}, Kind: workflow.FailContingency, Task: "a2", Partner: "two"},
		{Attempt: AttemptID{Slot: "b"}, Kind: workflow.FailContingency, Task: "b2", Partner: "two"}}}})
	a2, b2 := AttemptID{Fact: verdict.id, Slot: "a"}, AttemptID{Fact: verdict.id, Slot: "b"}
	late := two.mustAppend(w.moment(), Body{Success: &Success{Attempt: b2, Try: 1}})
	two.mustAppend(w.moment(), Body{Start: &Start{
		Attempt: a2, Try: 1, Consumed: []Consumption{{Slot: "b", Fact: late.id}},
	}})
	two.mustAppend(w.moment(), Body{Success: &Success{Attempt: a2, Try: 1}})
	first := one.mustAppend(w.moment(), Body{Success: &Success{Attempt: AttemptID{Slot: "b"}, Try: 1}})
	if _, err := two.Receive("one", []Received{encoded(t, one.log.order[1].fact), encoded(t, first.fact)}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // what was concluded before must not matter
		two.mustAppend(w.moment(), Body{Seen: &Seen{}})
		mustMatch(t, "folded as they came, and all at once", two, w.scratch(two))
	}
	w.shuffledMatches(t, two)
}

// A fact of another instance, with its author's signature, names chains as those of this
// one are named. So nothing of a bundle with one is looked at.
func TestAnotherInstanceSaysNothingHere(t *testing.T) {
	w := guardedMesh(t)
	m := w.nodes["one"].m
	f := *w.as("two", m).mustAppend(w.moment(), Body{Seen: &Seen{}}).fact
	f.Instance[0]++
	f.Seen = []Head{{Chain: Chain{Author: "three"}, Seq: 7}}
	m.door.decline(FactID{9}, Declined{Author: "three", Why: TooManyFacts}) // from now on names matter
	if _, err := m.Receive("two", []Received{encoded(t, &f)}); !errors.Is(err, ErrOtherInstance) {
		t.Errorf("error %v, want %v", err, ErrOtherInstance)
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
		bend func(f *Fact, m *Machine)
	}{
		{"another instance", ErrOtherInstance, func(f *Fact, _ *Machine) { f.Instance[0]++ }},
		{"a second genesis", ErrOtherInstance, func(f *Fact, m *Machine) { *f = *m.log.genesis.fact; f.At++ }},
		{"a gap", ErrMissingPast, func(f *Fact, _ *Machine) { f.Seq, f.Prev = 3, FactID{1} }},
		{"a number that does not follow", ErrFactInvalid,
			func(f *Fact, m *Machine) { f.Seq, f.Prev = 9, m.own.id; f.Chain = m.chain }},
		{"another's fact as its previous", ErrFactInvalid,
			func(f *Fact, m *Machine) { f.Seq, f.Prev = m.own.fact.Seq+1, m.own.id }},
		{"a head that nobody has", ErrMissingPast, func(f *Fact, _ *Machine) { f.Seen[0].ID[0]++ }},
		{"a head under another's name", ErrFactInvalid, func(f *Fact, _ *Machine) { f.Seen[0].Chain.Author = "three" }},
		{"a head with another number", ErrFactInvalid, func(f *Fact, _ *Machine) { f.Seen[0].Seq++ }},
		{"a head in another incarnation", ErrFactInvalid,
			func(f *Fact, _ *Machine) { f.Seen[0].Chain.Incarnation[3]++ }},
	} {
		t.Run(c.what, func(t *testing.T) {
			w := guardedMesh(t)
			m := w.nodes["one"].m
			before := string(m.Fingerprint())
			f := *w.as("two", m).mustAppend(w.moment(), Body{Seen: &Seen{}}).fact
			f.Seen = append([]Head(nil), f.Seen...)
			c.bend(&f, m)
			if _, err := m.Receive("two", []Received{encoded(t, &f)}); !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
			if got := string(m.Fingerprint()); got != before {
				t.Errorf("it changed the replica:\n%s", firstDifference([]byte(before), []byte(got)))
			}
		})
	}
}

// TestAttestationsOfOthers: a fact passes only with its own author's signature
// over its own name.
func TestAttestationsOfOthers(t *testing.T) {
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
	other := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{2}, ed25519.SeedSize))
	author := trust.IDOf(key.Public().(ed25519.PublicKey))
	ids := []FactID{{1}, {2}, {3}}
	sign := func(k ed25519.PrivateKey, domain string) []*Attestation {
		return Attest(ids, func(_ string, msg []byte) []byte { return trust.Sign(k, domain, msg) })
	}
	if err := verify(author, ids[0], sign(key, attestDomain)[0]); err != nil {
		t.Fatalf("its author's own: %v", err)
	}
	for what, err := range map[string]error{
		"another's key":  verify(author, ids[0], sign(other, attestDomain)[0]),
		"another domain": verify(author, ids[0], sign(key, "vote")[0]),
		"none":           verify(author, ids[0], nil),
		"another fact's": verify(author, ids[0], sign(key, attestDomain)[1]),
		"another author": verify(trust.IDOf(other.Public().(ed25519.PublicKey)), ids[0],
			sign(key, attestDomain)[0]),
		"an author of no key": verify("one", ids[0], sign(key, attestDomain)[0]),
		"a short signature":   verify(author, ids[0], &Attestation{Sig: make([]byte, 63)}),
		"a path too long": verify(author, ids[0],
			&Attestation{Sig: make([]byte, 64), Path: make([][32]byte, maxPath+1)}),
	} {
		if !errors.Is(err, ErrForged) {
			t.Errorf("%s: error %v, want ErrForged", what, err)
		}
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
		act := Action{Attempt: AttemptID{Slot: "a"}, Kind: workflow.FailContingency, Task: "a2"}
		say := func(m *Machine, term uint64, act Action) Received {
			t.Helper()
			v := &Verdict{Cause: CauseExpired, Actions: []Action{act}}
			if term > 0 {
				v.Office = &Office{Office: election.Office{Term: term, Number: 1}}
			}
			r := encoded(t, m.mustAppend(w.moment(), Body{Verdict: v}).fact)
			r.Att = &Attestation{}
			return r
		}
		other := Action{Attempt: AttemptID{Slot: "b"}, Kind: workflow.FailRelease}
		newer := say(later, 4, other)
		if knew {
			if _, err := former.Receive("two", []Received{newer}); err != nil {
				t.Fatal(err)
			}
		}
		act.Partner = "three"
		its := say(former, 3, act)
		act.Partner = "one"
		own := say(one, 0, act)
		if _, err := one.Receive("two", []Received{newer, its}); err != nil {
			t.Fatal(err)
		}
		want := own.ID
		if !knew {
			want = its.ID
		}
		if a := one.state.bySlot["a"].Current; a.ID.Fact != want {
			t.Errorf("knew %t: %s has the task by %s, refused %v", knew, a.Partner, a.ID.Fact.Short(),
				one.state.refused)
		}
		w.shuffledMatches(t, one)
		w.office = &Office{Office: election.Office{Term: 3, Number: 1}}
		if got := one.looking(Moment{}, w).officeNow(); got != nil {
			t.Errorf("this node judges in an office of term %d though it knows of term 4", got.Term)
		}
		w.office = &Office{Office: election.Office{Term: 5, Number: 1}}
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
	g := one.log.genesis
	mk := func(author workflow.PartnerID, b Body) Received { return penOf(t, one, author, 7).write(b, g.head()) }
	act := Action{Attempt: AttemptID{Slot: "a"}, Kind: workflow.FailContingency, Task: "a2", Partner: "two"}
	verdict := mk("two", Body{Verdict: &Verdict{Cause: CauseTimeout, Actions: []Action{act}}})
	given := AttemptID{Fact: verdict.ID, Slot: "a"}
	for _, c := range []struct {
		what, why string
		body      Body
	}{
		{"a start by who does not hold it", "does not know", startOf(given)},
		{"a result that may not be", "does not know",
			Body{Success: &Success{Attempt: given, Try: 1, Outputs: map[workflow.DataName]workflow.Value{"y": "no"}}}},
		{"a call-off", "does not know", Body{CalledOff: &CalledOff{Attempt: given}}},
		{"an assignment for which no verdict asked", "does not know",
			Body{Assign: &Assign{After: given, Verdict: FactID{1}, Task: "a2", Partner: "three"}}},
		{"passing on what another holds", "does not know",
			Body{Assign: &Assign{After: given, Task: "a2", Partner: "three"}}},
		{"a verdict", "judges nothing", Body{Verdict: &Verdict{
			Cause: CauseTimeout, Actions: []Action{{Attempt: given, Kind: workflow.FailBlock}},
		}}},
	} {
		late := mk("three", c.body)
		take := func(fs ...Received) *Machine {
			m, err := Open(Self{Partner: "x", Incarnation: Incarnation{9}, Trust: testTrust{}}, w.def, w.plan,
				Received{Fact: g.fact, ID: g.id, Raw: g.raw})
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
			if e := m.log.byID[late.ID]; e.counted || !strings.Contains(e.why, c.why) {
				t.Errorf("%s, taken in %s the attempt: counts %t, refused as %q, want %q", c.what, order, e.counted,
					e.why, c.why)
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
		for _, e := range w.nodes["one"].m.log.order {
			if len(e.fact.Body.Credentials) > 0 && e.fact.Chain.Author == "two" {
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
	w.restore(w.nodes["two"], w.nodes["two"].backup(), Incarnation{2})
	w.say("two", "d")
	w.stabilize(true)
	shown("after two tasks with a role", 1)
	if got := w.nodes["one"].m.Overall(); got != workflow.InstanceSucceeded {
		t.Errorf("the instance is %s", got)
	}
}
