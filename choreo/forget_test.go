package choreo

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/internal/test/sample"
	"github.com/mutirao-mesh/mutirao/workflow"
)

const forgettable = `
workflow: forgettable
data: {x: {type: integer}}
tasks:
  a:  {type: manual, reconcile: keep-first, out: [x], on-failure: {contingency: a2}}
  a2: {type: manual, out: [x]}
partitions:
  p1: [a]
`

// forgetting has a at one; liar takes part.
func forgetting(t *testing.T, reconcile string) *mesh {
	w := newMesh(t, parse(t, strings.Replace(forgettable, "keep-first", reconcile, 1)))
	if err := w.start("one", w.genesis(map[workflow.PartitionName]workflow.PartnerID{"p1": "one"}, "one", "two",
		"liar")); err != nil {
		t.Fatal(err)
	}
	w.stabilize(false)
	w.takers["a2"], w.lies = "two", true
	return w
}

// tell has a partner say something in its own chain, which all hear, and all of
// whom say that they did.
func (w *mesh) tell(p workflow.PartnerID, b fact.Body) *log.Entry {
	w.t.Helper()
	e := w.must(w.nodes[p].m.deciding(w.moment(), nil).append(b))
	for _, q := range w.names() {
		w.nodes[q].m.owe(p)
		w.nodes[p].m.owe(q)
	}
	w.step(w.nodes[p])
	w.meetAll()
	w.stabilize(false)
	for _, q := range w.names() {
		w.must(w.nodes[q].m.deciding(w.moment(), nil).append(fact.Body{Seen: &fact.Seen{}}))
	}
	w.meetAll()
	w.stabilize(false)
	return e
}

func (w *mesh) must(e *log.Entry, err error) *log.Entry {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

// fresh is what an author says in a fresh chain that has seen the genesis alone.
func (w *mesh) fresh(author workflow.PartnerID, bodies ...func(last fact.ID) fact.Body) []fact.Received {
	w.t.Helper()
	g := w.nodes["one"].m.log.Genesis()
	var out []fact.Received
	for i, body := range bodies {
		f := &fact.Fact{
			Format: fact.Format, Instance: w.nodes["one"].m.log.Instance(),
			Chain: fact.Chain{Author: author, Incarnation: fact.Incarnation{0xbb}}, Seq: uint64(i + 1),
		}
		if i == 0 {
			f.Seen, f.Body = []fact.Head{g.Head()}, body(fact.ID{})
		} else {
			f.Prev, f.Body = out[i-1].ID, body(out[i-1].ID)
		}
		r := encoded(w.t, f)
		r.Att = &fact.Attestation{}
		out = append(out, r)
	}
	return out
}

func says(b fact.Body) func(fact.ID) fact.Body { return func(fact.ID) fact.Body { return b } }

// A partner that has shown that it knew of a result cannot judge it away in a
// fresh chain.
func TestFreshChainKnowsOfTheSuccessThatItJudgesAway(t *testing.T) {
	for _, shown := range []bool{true, false} {
		w := forgetting(t, "keep-replacement")
		w.say("one", "a", 1)
		w.meetAll()
		w.stabilize(false)
		if shown {
			w.tell("liar", fact.Body{Seen: &fact.Seen{}})
		}
		one := w.nodes["one"].m
		if _, err := one.Receive("liar", w.takesOver()); err != nil {
			t.Fatal(err)
		}
		want := workflow.PartnerID("liar")
		if shown {
			want = "one"
		}
		if got := one.state.BySlot()["a"].Pick.Partner; got != want {
			t.Errorf("shown %t: the slot's success is that of %s, want %s", shown, got, want)
		}
		w.shuffledMatches(t, one)
	}
}

// Nor can a holder come first by a success that it dates back.
func TestFreshChainKnowsOfTheSuccessThatItComesBefore(t *testing.T) {
	w := forgetting(t, "keep-first")
	w.tell("two", fact.Body{Verdict: &fact.Verdict{Cause: fact.CauseExpired, Actions: []fact.Action{
		{Attempt: fact.AttemptID{Slot: "a"}, Kind: workflow.FailContingency, Task: "a2", Partner: "two"}}}})
	w.say("two", "a2", 2)
	w.meetAll()
	w.stabilize(false)
	w.tell("one", fact.Body{Seen: &fact.Seen{}})
	a, two := fact.AttemptID{Slot: "a"}, w.nodes["two"].m
	lie := w.fresh("one", says(fact.Body{Start: &fact.Start{Attempt: a, Try: 1}}),
		says(fact.Body{Success: &fact.Success{Attempt: a, Try: 1}}))
	if _, err := two.Receive("one", lie); err != nil {
		t.Fatal(err)
	}
	if got := two.state.BySlot()["a"].Pick.Partner; got != "two" {
		t.Errorf("the slot's success is the back-dated one of %s", got)
	}
	w.shuffledMatches(t, two)
}

// A result that everybody has does not give way to another of the same attempt
// that is dated back.
func TestFreshChainDoesNotRewriteAResult(t *testing.T) {
	w := forgetting(t, "keep-first")
	w.say("one", "a", 1)
	w.meetAll()
	w.stabilize(false)
	w.tell("one", fact.Body{Seen: &fact.Seen{}})
	a, two := fact.AttemptID{Slot: "a"}, w.nodes["two"].m
	lie := w.fresh("one", says(fact.Body{Start: &fact.Start{Attempt: a, Try: 1}}),
		says(fact.Body{Success: &fact.Success{Attempt: a, Try: 1,
			Outputs: map[workflow.DataName]workflow.Value{"x": int64(9)}}}))
	if _, err := two.Receive("one", lie); err != nil {
		t.Fatal(err)
	}
	if got := two.state.Data()["x"].Value; got != int64(1) {
		t.Errorf("x is %v, it was 1 for everybody", got)
	}
	w.shuffledMatches(t, two)
}

// A holder that gave its attempt up, and was heard to, does not succeed in it.
func TestFreshChainDoesNotForgetThatItGaveUp(t *testing.T) {
	for _, fresh := range []bool{true, false} {
		w := forgetting(t, "keep-original")
		one := w.nodes["one"]
		if err := one.m.Finish("a", Result{Failed: true}, w.moment(), w); err != nil {
			t.Fatal(err)
		}
		w.step(one)
		w.meetAll()
		w.stabilize(false)
		w.tell("one", fact.Body{Seen: &fact.Seen{}})
		a, two := fact.AttemptID{Slot: "a"}, w.nodes["two"].m
		if fresh {
			lie := w.fresh("one", says(fact.Body{Start: &fact.Start{Attempt: a, Try: 1}}),
				says(fact.Body{Success: &fact.Success{Attempt: a, Try: 1}}))
			if _, err := two.Receive("one", lie); err != nil {
				t.Fatal(err)
			}
		} else {
			w.tell("one", fact.Body{Success: &fact.Success{Attempt: a, Try: 1}})
		}
		if sl := two.state.BySlot()["a"]; sl.Pick != nil {
			t.Errorf("fresh chain %t: its later word ends the slot", fresh)
		}
		w.say("two", "a2", 2)
		if sl := two.state.BySlot()["a"]; sl.Pick == nil || sl.Pick.Partner != "two" {
			t.Errorf("fresh chain %t: the contingency's success is not the slot's", fresh)
		}
		w.shuffledMatches(t, two)
	}
}

// A fact that does not count shows nothing: a node that knows of it does not name it. What it
// says that its author knew would weigh until the next of the others says anything.
func TestWhatDoesNotCountShowsNothing(t *testing.T) {
	w := forgetting(t, "keep-replacement")
	w.say("one", "a", 1)
	w.meetAll()
	w.stabilize(false)
	liar := w.nodes["liar"].m
	of := w.must(liar.deciding(w.moment(), nil).append(fact.Body{Start: &fact.Start{Attempt: fact.AttemptID{Slot: "a"},
		Try: 1}}))
	one := w.nodes["one"].m
	if _, err := one.Receive("liar", []fact.Received{{Fact: of.Fact, ID: of.ID, Raw: of.Raw,
		Att: &fact.Attestation{}}}); err != nil {
		t.Fatal(err)
	}
	if e := one.log.ByID()[of.ID]; e == nil || e.Counted {
		t.Fatal("that another holds the attempt is not held against a start")
	}
	if _, err := one.Receive("liar", w.takesOver()); err != nil {
		t.Fatal(err)
	}
	before := one.state.BySlot()["a"].Pick
	if before.Partner != "liar" {
		t.Errorf("the slot's success is that of %s, by what does not count", before.Partner)
	}
	w.must(one.deciding(w.moment(), nil).append(fact.Body{Seen: &fact.Seen{}}))
	if after := one.state.BySlot()["a"].Pick; after != before {
		t.Errorf("the slot's success was that of %s, and is that of %s as others were heard of", before.Partner,
			after.Partner)
	}
	w.shuffledMatches(t, one)
	mustMean(t, "without what does not count", one, w.counting(one))
}

// counting folds what counts of a machine's facts, with its past.
func (w *mesh) counting(m *Machine) *Machine {
	w.t.Helper()
	return w.scratchOf(m, func(e *log.Entry) bool {
		return slices.ContainsFunc(m.log.Order(), func(x *log.Entry) bool { return x.Counted && m.log.Knew(x, e) })
	})
}

// mustMean fails the test where what counts means something else for one machine than for
// another.
func mustMean(t testing.TB, what string, a, b *Machine) {
	t.Helper()
	if d := firstDifference(countingLines(a), countingLines(b)); d != "" {
		t.Fatalf("%s: states differ, %s", what, d)
	}
}

func countingLines(m *Machine) (out []byte) {
	for line := range bytes.Lines(m.Fingerprint()) {
		if !bytes.HasPrefix(line, []byte("refused ")) && !bytes.HasSuffix(line, []byte("counted=false\n")) {
			out = append(out, line...)
		}
	}
	return out
}

// TestForgettersInAnyOrder: histories with authors who speak in several chains, of
// which some deny what others knew, mean the same in every order of arrival, and without
// what does not count.
func TestForgettersInAnyOrder(t *testing.T) {
	seeds := uint64(sample.Of(80, 250))
	if testing.Short() {
		seeds = 50
	}
	void, behind := 0, 0
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 4))
		w, m := forgetfulMesh(t, r, 60, false)
		for range 4 {
			mustMatch(t, "in another order", m, w.shuffled(m, r.IntN))
		}
		mustMean(t, fmt.Sprintf("seed %d: without what does not count", seed), m, w.counting(m))
		for _, sl := range m.state.Slots() {
			for _, a := range sl.Attempts {
				behind += min(len(a.Blame), 1)
				if slices.ContainsFunc(a.Rulings, func(r *state.Ruling) bool { return r.Void }) {
					void++
				}
			}
		}
	}
	t.Logf("%d histories: %d attempts with void verdicts, %d successes put behind others", seeds, void, behind)
	if void < int(seeds)/20 || behind < int(seeds)/20 {
		t.Error("too few of them")
	}
}

// TestForkersInAnyOrder: histories with authors who fork their chains and go on in others, and
// do, judge and build upon what they knew to be done, mean the same in every order of arrival.
func TestForkersInAnyOrder(t *testing.T) {
	seeds := uint64(sample.Of(60, 150))
	if testing.Short() {
		seeds = 40
	}
	despite, props := 0, 0
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 5))
		w, m := forgetfulMesh(t, r, 80, true)
		for range 6 {
			mustMatch(t, fmt.Sprintf("seed %d: in another order", seed), m, w.shuffled(m, r.IntN))
		}
		for _, sl := range m.state.Slots() {
			for _, a := range sl.Attempts {
				despite += state.AsInt(m.state.DespiteOthers(a, a.Base))
				for _, u := range a.Users {
					props += state.AsInt(m.log.Forkers()[u.Partner] && m.state.Props(u, a) &&
						!m.state.DeniesOthers(a, u.Base))
				}
			}
		}
	}
	t.Logf("%d histories: %d attempts done despite a success, %d of which their authors would hold up", seeds, despite,
		props)
}

// forgetfulMesh is a mesh whose ann has received so many forgetful facts, as far as they are valid.
func forgetfulMesh(t *testing.T, r *rand.Rand, facts int, forks bool) (*mesh, *Machine) {
	t.Helper()
	w := randomMesh(t, r.IntN)
	m := w.nodes["ann"].m
	for range facts {
		_, err := m.Receive("somebody", []fact.Received{forgetful(r, m, forks)})
		if err != nil && !errors.Is(err, log.ErrMissingPast) && !errors.Is(err, fact.ErrInvalid) {
			t.Fatal(err)
		}
	}
	return w, m
}

// forgetful is a fact of a participant in one of three chains of its own, perhaps a fork of
// it, which knows anything from the genesis alone to all that is here.
func forgetful(r *rand.Rand, m *Machine, forks bool) fact.Received {
	l := m.log
	var live []*state.Attempt
	for _, sl := range m.state.Slots() {
		live = append(live, sl.Attempts...)
	}
	a := live[r.IntN(len(live))]
	f := &fact.Fact{
		Format: fact.Format, Instance: l.Instance(),
		Chain: fact.Chain{Author: a.Partner, Incarnation: fact.Incarnation{byte(r.IntN(3))}}, Seq: 1,
	}
	switch r.IntN(5) {
	case 0:
		f.Chain.Author = []workflow.PartnerID{"ann", "bob", "cy"}[r.IntN(3)]
		f.Body.Verdict = &fact.Verdict{Cause: fact.CauseTimeout,
			Actions: []fact.Action{{Attempt: a.ID, Kind: a.Task.OnFailure, Task: a.Task.Contingency,
				Partner: []workflow.PartnerID{"ann", "bob", "cy", "dan"}[r.IntN(4)]}}}
		if a.Task.OnFailure == "" {
			f.Body.Verdict.Actions[0].Kind = workflow.FailBlock
		}
		if f.Body.Verdict.Actions[0].Kind != workflow.FailContingency {
			f.Body.Verdict.Actions[0].Task, f.Body.Verdict.Actions[0].Partner = "", ""
		}
	case 1, 2:
		f.Body.Success = &fact.Success{Attempt: a.ID, Try: 1}
		if r.IntN(4) == 0 {
			f.Body.Start = &fact.Start{Attempt: a.ID, Try: 1}
		}
	case 3:
		f.Body.Start = &fact.Start{Attempt: a.ID, Try: 1}
		for _, from := range a.Slot.Mentions {
			if of := from.Attempts[r.IntN(len(from.Attempts))]; forks && of.Success() != nil {
				f.Body.Start.Consumed = append(f.Body.Start.Consumed,
					fact.Consumption{Slot: from.Task.Name, Fact: of.Success().ID})
				if h := of.Success().Head(); h.Chain != f.Chain {
					f.Seen = append(f.Seen, h)
				}
			}
		}
	default:
		f.Chain.Author = []workflow.PartnerID{"ann", "bob", "cy"}[r.IntN(3)]
		f.Body.Seen = &fact.Seen{}
	}
	if c := l.Index()[f.Chain]; c != nil {
		prev := c.Strands[0].Last()
		if forks {
			of := c.Strands[r.IntN(len(c.Strands))]
			if prev = of.Last(); r.IntN(12) == 0 {
				prev = of.Facts[r.IntN(len(of.Facts))]
			}
		}
		f.Seq, f.Prev = prev.Fact.Seq+1, prev.ID
	}
	for range r.IntN(3) {
		of := l.Order()
		if forks && r.IntN(2) == 0 { // what was said last
			of = of[max(len(of)-12, 0):]
		}
		f.Seen = append(f.Seen, of[r.IntN(len(of))].Head())
	}
	if f.Seq == 1 || a.Assigned != l.Genesis() {
		f.Seen = append(f.Seen, a.Assigned.Head())
	}
	slices.SortFunc(f.Seen, fact.Head.Compare)
	f.Seen = slices.Compact(f.Seen)
	raw, _, err := f.Encode()
	if err != nil {
		return fact.Received{Fact: l.Genesis().Fact, ID: l.Genesis().ID, Raw: l.Genesis().Raw}
	}
	g, id, err := fact.Decode(raw)
	if err != nil {
		return fact.Received{Fact: l.Genesis().Fact, ID: l.Genesis().ID, Raw: l.Genesis().Raw}
	}
	return fact.Received{Fact: g, ID: id, Raw: raw, Att: &fact.Attestation{}}
}

// takesOver are facts by which the liar, in a fresh chain, judges a, does its contingency
// a2 itself, and says that it succeeded.
func (w *mesh) takesOver() []fact.Received {
	judged := fact.Body{Verdict: &fact.Verdict{Cause: fact.CauseExpired, Actions: []fact.Action{
		{Attempt: fact.AttemptID{Slot: "a"}, Kind: workflow.FailContingency, Task: "a2", Partner: "liar"}}}}
	var a2 fact.AttemptID
	return w.fresh("liar", says(judged), func(v fact.ID) fact.Body {
		a2 = fact.AttemptID{Fact: v, Slot: "a"}
		return fact.Body{Start: &fact.Start{Attempt: a2, Try: 1}}
	}, func(fact.ID) fact.Body { return fact.Body{Success: &fact.Success{Attempt: a2, Try: 1}} })
}
