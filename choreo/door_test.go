package choreo

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// flood are first facts of chains of one author, numbered from a start.
func flood(t testing.TB, m *Machine, author workflow.PartnerID, from, n int) []fact.Received {
	t.Helper()
	return floodOf(t, m, author, from, n, fact.Body{Seen: &fact.Seen{}})
}

// floodOf is flood with what the facts say.
func floodOf(t testing.TB, m *Machine, author workflow.PartnerID, from, n int, b fact.Body) []fact.Received {
	t.Helper()
	var out []fact.Received
	for i := from; i < from+n; i++ {
		f := &fact.Fact{Format: fact.Format, Instance: m.log.Instance(),
			Chain: fact.Chain{Author: author, Incarnation: fact.Incarnation{0xee, byte(i >> 8), byte(i)}},
			Seq:   1, Seen: []fact.Head{m.log.Genesis().Head()}, Body: b}
		r := encoded(t, f)
		r.Att = &fact.Attestation{Sig: make([]byte, 64)}
		out = append(out, r)
	}
	return out
}

// TestChainFlood: a participant opens thousands of chains. Few are taken in, no error
// is made of it, what honest partners say next is short and everybody reads it.
func TestChainFlood(t *testing.T) {
	for _, n := range []int{9, 1100, 3000} {
		w := relayMesh(t)
		one := w.nodes["one"]
		facts := flood(t, one.m, "three", 0, n)
		for len(facts) > 0 {
			k := min(len(facts), 700)
			if _, err := one.m.Receive("three", facts[:k]); err != nil {
				t.Fatalf("%d chains: %v", n, err)
			}
			facts = facts[k:]
		}
		if got := len(one.m.log.ByAuthor()["three"]); got != fact.MaxChains {
			t.Errorf("%d chains: %d were taken in, want %d", n, got, fact.MaxChains)
		}
		d := one.m.Declined()
		if len(d) != 1 || d[0] != (Declined{Author: "three", Why: TooManyChains, Facts: n - fact.MaxChains}) {
			t.Errorf("%d chains: declined %v", n, d)
		}
		if got := len(one.m.door.declined); got > maxRemembered {
			t.Errorf("%d chains: %d are remembered", n, got)
		}
		w.step(one)
		w.say("two", "b", 1)
		w.stabilize(true)
		if got := one.m.Overall(); len(one.m.Heads()) > 20 {
			t.Errorf("%d chains: %d heads, the instance is %s", n, len(one.m.Heads()), got)
		}
		if err := w.sameEverywhere(); err != nil {
			t.Errorf("%d chains: %v", n, err)
		}
		w.crash(one) // its own facts can be read again
	}
}

// TestFloodsThatDifferConverge: a participant tells each partner of other chains, so
// many that no partner takes in all, be it that it may say what they say or not. What
// one has named all take in, and they end with the same facts; the liar's further
// chains nobody takes.
func TestFloodsThatDifferConverge(t *testing.T) {
	for _, batch := range []int{1, 3, 100} {
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 9))
			w := relayMesh(t)
			w.limit = []int{600, fact.MaxFact}[r.IntN(2)]
			liar := workflow.PartnerID("three")
			from, says := 0, fact.Body{Seen: &fact.Seen{}}
			if seed%2 == 1 {
				says = fact.Body{CalledOff: &fact.CalledOff{Attempt: fact.AttemptID{Slot: "b"}}}
			}
			for _, id := range []workflow.PartnerID{"one", "two"} {
				n := 1 + r.IntN(3*fact.MaxChains)
				facts := floodOf(t, w.nodes["one"].m, liar, from, n, says)
				from += n
				for part := range slices.Chunk(facts, batch) {
					if _, err := w.nodes[id].m.Receive(liar, part); err != nil {
						t.Fatal(err)
					}
				}
				w.step(w.nodes[id])
			}
			w.say("two", "b", 1)
			w.say("two", "d")
			for range 4 {
				w.meet("one", "two")
				w.stabilize(true)
			}
			one, two := w.nodes["one"].m, w.nodes["two"].m
			if d := firstDifference(one.Fingerprint(), two.Fingerprint()); d != "" {
				t.Fatalf("seed %d, %d at a time: one and two differ: %s\n%d and %d chains of the liar", seed, batch, d,
					len(one.log.ByAuthor()[liar]), len(two.log.ByAuthor()[liar]))
			}
			if one.Overall() != workflow.InstanceSucceeded {
				t.Errorf("seed %d: the instance is %s", seed, one.Overall())
			}
			if got := len(one.log.ByAuthor()[liar]); got > 2*fact.MaxChains+1 {
				t.Errorf("seed %d: %d chains of the liar at one", seed, got)
			}
			before := one.Len()
			if _, err := one.Receive(liar, flood(t, one, liar, 5000, 50)); err != nil ||
				len(one.log.ByAuthor()[liar]) >= fact.MaxChains && one.Len() != before {
				t.Errorf("seed %d: more chains were taken in: %d facts before, %d after: %v", seed, before, one.Len(),
					err)
			}
		}
	}
}

// TestForksThatDifferConverge: a participant forks its chain for each partner in other
// ways, so often that no partner takes in all. What one took in all get, though nobody
// builds upon it; the liar's further branches nobody takes.
func TestForksThatDifferConverge(t *testing.T) {
	for _, batch := range []int{1, 3, 100} {
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 10))
			w := relayMesh(t)
			w.limit = []int{600, fact.MaxFact}[r.IntN(2)]
			liar, at := workflow.PartnerID("three"), int64(0)
			chain := fact.Chain{Author: liar, Incarnation: fact.Incarnation{0xee}}
			genesis := w.nodes["one"].m.log.Genesis().Head()
			branches := func(n int) (out []fact.Received) {
				for range n {
					at++
					f := &fact.Fact{
						Format: fact.Format, Instance: w.nodes["one"].m.log.Instance(), Chain: chain, Seq: 1,
						Seen: []fact.Head{genesis}, At: at, Body: fact.Body{Seen: &fact.Seen{}},
					}
					for more := r.IntN(3); ; more-- {
						x := encoded(t, f)
						x.Att = &fact.Attestation{Sig: make([]byte, 64)}
						if out = append(out, x); more == 0 {
							break
						}
						f = &fact.Fact{
							Format: fact.Format, Instance: f.Instance, Chain: chain, Seq: f.Seq + 1, Prev: x.ID, At: at,
							Body: f.Body,
						}
					}
				}
				return out
			}
			for _, id := range []workflow.PartnerID{"one", "two"} {
				for part := range slices.Chunk(branches(1+r.IntN(3*log.MaxBranches)), batch) {
					if _, err := w.nodes[id].m.Receive(liar, part); err != nil {
						t.Fatal(err)
					}
				}
				w.step(w.nodes[id])
			}
			w.say("two", "b", 1)
			w.say("two", "d")
			for range 6 {
				w.meet("one", "two")
				w.stabilize(true)
			}
			one, two := w.nodes["one"].m, w.nodes["two"].m
			if d := firstDifference(one.Fingerprint(), two.Fingerprint()); d != "" {
				t.Fatalf("seed %d, %d at a time: one and two differ: %s\n%d and %d branches", seed, batch, d,
					len(one.log.Index()[chain].Strands), len(two.log.Index()[chain].Strands))
			}
			if len(one.log.Index()[chain].Strands) <= log.MaxBranches {
				continue
			}
			for _, e := range one.log.Order() {
				if e.Fact.Chain == chain && e.Counted {
					t.Errorf("seed %d: fact %s of a chain that was forked too often counts", seed, e.ID.Short())
				}
			}
			before := one.Len()
			if _, err := one.Receive(liar, branches(20)); err != nil || one.Len() != before {
				t.Errorf("seed %d: more branches were taken in: %d facts before, %d after: %v", seed, before, one.Len(),
					err)
			}
		}
	}
}

// TestNamesOnce: two partners of whom no more is taken in for itself name each other's
// facts once, however often they start again, and do not answer each other for ever.
func TestNamesOnce(t *testing.T) {
	w := relayMesh(t)
	for _, id := range []workflow.PartnerID{"two", "three"} {
		w.nodes[id].m.mustAppend(w.moment(), fact.Body{Seen: &fact.Seen{}})
		w.step(w.nodes[id])
	}
	w.meetAll()
	w.stabilize(false)
	for _, liar := range []workflow.PartnerID{"two", "three"} {
		for _, id := range []workflow.PartnerID{"one", "two", "three"} {
			if id != liar {
				if _, err := w.nodes[id].m.Receive(liar,
					flood(t, w.nodes[id].m, liar, 0, 2*fact.MaxChains)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	rest := 0
	for i := range 20 {
		for _, id := range []workflow.PartnerID{"one", "two", "three"} {
			w.step(w.nodes[id])
		}
		w.meetAll()
		w.stabilize(false)
		if i == 10 {
			rest = w.nodes["one"].m.Len()
		}
		for _, id := range []workflow.PartnerID{"one", "two", "three"} {
			w.crash(w.nodes[id])
		}
	}
	if got := w.nodes["one"].m.Len(); got != rest {
		t.Errorf("%d facts after ten rounds, %d after twenty", rest, got)
	}
}

// TestLiarDoesNotWashOutWhatOthersNamed: what an honest partner named is remembered,
// and so is what was not taken in of another, whatever a liar names or sends meanwhile.
func TestLiarDoesNotWashOutWhatOthersNamed(t *testing.T) {
	w := relayMesh(t)
	one, two := w.nodes["one"].m, w.as("two", w.nodes["one"].m)
	chains := flood(t, one, "three", 0, 20)
	if _, err := one.Receive("three", chains); err != nil {
		t.Fatal(err)
	}
	last := chains[len(chains)-1]
	if one.Has(last.ID) {
		t.Fatal("the last of 20 chains is taken in by itself")
	}
	names := &fact.Fact{Format: fact.Format, Instance: one.log.Instance(), Chain: two.chain, Seq: 1,
		Body: fact.Body{Seen: &fact.Seen{}},
		Seen: []fact.Head{one.log.Genesis().Head(), {Chain: last.Fact.Chain, Seq: 1, ID: last.ID}}}
	named := encoded(t, names)
	named.Att = &fact.Attestation{}
	if _, err := one.Receive("two", []fact.Received{named}); err == nil {
		t.Fatal("what two has built upon is missing, and nobody says so")
	}
	prev := chains[0]
	var noise []fact.Received
	for i := range 40 {
		f := &fact.Fact{
			Format: fact.Format, Instance: one.log.Instance(), Chain: prev.Fact.Chain, Seq: prev.Fact.Seq + 1,
			Prev: prev.ID, Body: fact.Body{Seen: &fact.Seen{}},
		}
		for j := range 200 {
			f.Seen = append(f.Seen, fact.Head{
				Chain: fact.Chain{Author: "two", Incarnation: fact.Incarnation{1, byte(i), byte(j)}}, Seq: 1,
				ID: fact.ID{1, byte(i), byte(j)},
			})
		}
		prev = encoded(t, f)
		prev.Att = &fact.Attestation{}
		noise = append(noise, prev)
	}
	_, _ = one.Receive("three", noise) // what it names is nowhere
	_, _ = one.Receive("three", flood(t, one, "three", 100, 6000))
	if n := len(one.door.declined); n > 2*maxRemembered {
		t.Errorf("%d facts that are not here are remembered", n)
	}
	if _, err := one.Receive("two", []fact.Received{last}); err != nil || !one.Has(last.ID) {
		t.Errorf("what two named is not taken in after a liar named much else: %v", err)
	}
}

// TestFactsOfPeopleWhoTakeNoPart: keys that nobody knows of are heard up to a limit
// for all of them together.
func TestFactsOfPeopleWhoTakeNoPart(t *testing.T) {
	w := relayMesh(t)
	one := w.nodes["one"].m
	for i := range 100 {
		if _, err := one.Receive("three", flood(t, one, workflow.PartnerID(fmt.Sprintf("invented-%d", i)), 0,
			20)); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(one.log.Chains()); got > 3+maxOutsiders*fact.MaxChains {
		t.Errorf("%d chains", got)
	}
}

// TestShareOfFacts: of an author's facts so many are taken in for themselves; what
// another has built upon comes in all the same.
func TestShareOfFacts(t *testing.T) {
	w := relayMesh(t)
	one, two := w.nodes["one"].m, w.nodes["two"].m
	one.Limit(Shares{Facts: 10})
	for range 30 {
		two.mustAppend(w.moment(), fact.Body{Seen: &fact.Seen{}})
	}
	two.own.Att = &fact.Attestation{}
	all := received(two)
	for i := range all { // each came by itself
		all[i].Att = &fact.Attestation{}
	}
	if _, err := one.Receive("two", all); err != nil {
		t.Fatal(err)
	}
	if got := one.log.Authored()["two"].Facts; got != 10 {
		t.Errorf("%d facts of two were taken in, want its share of 10", got)
	}
	if _, err := one.Receive("two", all[len(all)-5:]); err != nil {
		t.Errorf("what follows from what was declined is no error: %v", err)
	}
	three := w.as("three", two)
	said := encoded(t, three.mustAppend(w.moment(), fact.Body{Seen: &fact.Seen{}}).Fact)
	said.Att = &fact.Attestation{}
	if _, err := one.Receive("three", []fact.Received{said}); err == nil {
		t.Error("what three has built upon is missing, and nobody says so")
	}
	if _, err := one.Receive("three", append(all, said)); err != nil {
		t.Fatal(err)
	}
	if got, want := one.log.Authored()["two"].Facts, two.log.Authored()["two"].Facts; got != want {
		t.Errorf("%d facts of two are here, three has built upon %d", got, want)
	}
}

// TestSpareRoomForWhatOthersNamed: of what is beyond an author's bytes, and named by
// another, only so much is taken in as there is room to spare; when there is more room,
// the rest comes.
func TestSpareRoomForWhatOthersNamed(t *testing.T) {
	w := relayMesh(t)
	one, two := w.nodes["one"].m, w.nodes["two"].m
	for range 30 {
		two.mustAppend(w.moment(), fact.Body{Seen: &fact.Seen{}})
	}
	two.own.Att = &fact.Attestation{}
	all := received(two)
	for i := range all { // each came by itself
		all[i].Att = &fact.Attestation{}
	}
	size := len(all[len(all)-1].Raw)
	room := 5 * size
	limit := func(spare int) {
		one.Limit(Shares{
			Left:  func(p workflow.PartnerID) int { return max(room-one.log.Authored()[p].Bytes, 0) },
			Spare: func() int { return spare },
		})
	}
	limit(3 * size)
	three := w.as("three", two)
	said := encoded(t, three.mustAppend(w.moment(), fact.Body{Seen: &fact.Seen{}}).Fact)
	said.Att = &fact.Attestation{}
	for _, fs := range [][]fact.Received{all, {said}, all} {
		if _, err := one.Receive("three", fs); err != nil {
			t.Logf("something is missing still: %v", err)
		}
	}
	if got := one.log.Authored()["two"].Bytes; got > room+3*size {
		t.Errorf("%d bytes of two were taken in, %d for themselves and %d to spare", got, room, 3*size)
	}
	limit(100 * size)
	for _, fs := range [][]fact.Received{all, {said}, all} {
		if _, err := one.Receive("three", fs); err != nil {
			t.Logf("something is missing still: %v", err)
		}
	}
	if !one.Has(said.ID) {
		t.Errorf("%d of %d facts of two are here although there is room", one.log.Authored()["two"].Facts, len(all))
	}
}

// TestLoadedInstanceNamesNothingAgain: an instance that everybody has whole says nothing
// when it is loaded again, though more came of an author of whom all was named once.
func TestLoadedInstanceNamesNothingAgain(t *testing.T) {
	w := relayMesh(t)
	one := w.nodes["one"]
	two := w.as("two", one.m)
	chains := flood(t, one.m, "three", 0, fact.MaxChains+1)
	if _, err := one.m.Receive("three", chains[:fact.MaxChains]); err != nil {
		t.Fatal(err)
	}
	w.step(one) // names them
	last := chains[fact.MaxChains]
	named := encoded(t, &fact.Fact{Format: fact.Format, Instance: one.m.log.Instance(), Chain: two.chain, Seq: 1,
		Body: fact.Body{Seen: &fact.Seen{}},
		Seen: []fact.Head{one.m.log.Genesis().Head(), {Chain: last.Fact.Chain, Seq: 1, ID: last.ID}}})
	named.Att = &fact.Attestation{}
	if _, err := one.m.Receive("two", []fact.Received{last, named}); err != nil {
		t.Fatal(err)
	}
	w.step(one)
	facts := received(one.m)
	m, err := Open(Self{Partner: "one", Incarnation: one.m.chain.Incarnation, Trust: testTrust{}}, w.def, w.plan,
		facts[0])
	if err == nil {
		err = m.Load(facts[1:], false)
	}
	if err != nil {
		t.Fatal(err)
	}
	if r := m.Decide(w.moment(), w); len(r.Persist) > 0 {
		t.Errorf("it says %d things", len(r.Persist))
	}
}

// TestLiarDoesNotWashOutWhatOthersSetAside: what comes before a fact that an honest partner
// has set aside is remembered, whatever a liar sets aside and sends meanwhile.
func TestLiarDoesNotWashOutWhatOthersSetAside(t *testing.T) {
	w := relayMesh(t)
	one := w.nodes["one"].m
	genesis := one.log.Genesis().Head()
	tells := func(s string) fact.Body {
		return fact.Body{TryFailed: &fact.TryFailed{Attempt: fact.AttemptID{Slot: "a"}, Try: 1, Reason: s}}
	}
	var branches [][]fact.Received // more than are taken in of a chain by themselves
	for i := range log.MaxBranches + 5 {
		p := penOf(t, one, "three", 0xee)
		branches = append(branches, []fact.Received{
			p.write(tells(fmt.Sprint("first ", i)), genesis), p.write(tells(fmt.Sprint("second ", i))),
		})
	}
	last := branches[len(branches)-1]
	two := penOf(t, one, "two", 0xaa)
	one.mustTake(t, two.write(fact.Body{Seen: &fact.Seen{Aside: []fact.Head{{Chain: last[1].Fact.Chain, Seq: 2,
		ID: last[1].ID}}}},
		genesis))
	for _, b := range branches {
		if _, err := one.Receive("three", b[:1]); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := one.Receive("two", last[1:]); err != nil || one.Has(last[1].ID) {
		t.Fatalf("what two has set aside is taken in without what comes before it: %v", err)
	}

	liar, other := penOf(t, one, "three", 1), penOf(t, one, "three", 2)
	var noise []fact.Received
	var asides []fact.Head
	for i := range 8 * fact.MaxHeadsSeen {
		x := other.write(tells(fmt.Sprint(i)),
			fact.Head{
				Chain: fact.Chain{Author: "one", Incarnation: fact.Incarnation{1, byte(i >> 8), byte(i)}}, Seq: 1,
				ID: fact.ID{1, byte(i >> 8), byte(i)},
			})
		noise = append(noise, x)
		asides = append(asides, fact.Head{
			Chain: fact.Chain{Author: "two", Incarnation: fact.Incarnation{2}}, Seq: x.Fact.Seq, ID: x.ID,
		}) // a lie
	}
	for i, part := range slices.Collect(slices.Chunk(asides, fact.MaxHeadsSeen)) {
		seen := []fact.Head{}
		if i == 0 {
			seen = append(seen, genesis)
		}
		slices.SortFunc(part, fact.Head.Compare)
		one.mustTake(t, liar.write(fact.Body{Seen: &fact.Seen{Aside: part}}, seen...))
	}
	for _, x := range noise {
		_, _ = one.Receive("three", []fact.Received{x})
	}
	for _, f := range last {
		if _, err := one.Receive("two", []fact.Received{f}); err != nil {
			t.Fatal(err)
		}
	}
	if !one.Has(last[0].ID) || !one.Has(last[1].ID) {
		t.Error("what two has set aside is not taken in after a liar set much else aside")
	}
	if _, err := one.Receive("two", branches[len(branches)-2]); err != nil || one.Has(branches[len(branches)-2][0].ID) {
		t.Errorf("what nobody has set aside is taken in: %v", err)
	}
}
