package choreo

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// atEnd has of a run of facts only the last attested.
func atEnd(facts []fact.Received) []fact.Received {
	for i := range facts[:len(facts)-1] {
		facts[i].Att = nil
	}
	return facts
}

// TestRunBeyondTheShareStaysOut: of a run that is attested at its end only, and that is more
// than its author's share, nothing is taken in: else what the node says next would be
// built upon facts that nothing proves, and nobody could ever take it in. It is
// declined as a whole, and taken in as a whole as soon as there is room or another names any
// of it.
func TestRunBeyondTheShareStaysOut(t *testing.T) {
	for _, order := range []string{"in order", "reversed"} {
		w := relayMesh(t)
		m, two := w.nodes["one"].m, w.as("two", w.nodes["one"].m)
		m.Limit(Shares{Facts: 3, Bytes: 1 << 20})
		fs := atEnd(words(t, m, 6))
		if order == "reversed" {
			slices.Reverse(fs)
		}
		added, err := m.Receive("three", fs)
		if added != 0 || !m.Refuses() {
			t.Errorf("%s: %d facts are taken in (%v) which nothing proves, refused: %v", order, added, err, m.Refuses())
		}
		if order == "in order" {
			if d := m.Declined(); err != nil || len(d) != 1 ||
				d[0] != (Declined{Author: "three", Why: TooManyFacts, Facts: 6}) {
				t.Errorf("declined %v (%v), want all six", d, err)
			}
		}
		if got := m.Takes(); order == "in order" && len(got) > 0 {
			t.Errorf("it says that it takes %v, for which there is no room", got)
		}
		m.mustAppend(Moment{}, fact.Body{Seen: &fact.Seen{}})
		m.Restate("two", fact.Incarnation{7}, two.Heads())
		m.Forget("two")
		b := m.Outgoing("two", fact.MaxFact, Moment{})
		if b == nil {
			t.Fatalf("%s: it has nothing to say", order)
		}
		if err := checkBundle(m, b); err != nil {
			t.Error(order, err)
		}
		var sent []fact.Received
		for _, o := range b.Facts {
			if o.Mine && o.Attestation() == nil {
				o.Attest(&fact.Attestation{Sig: make([]byte, 64)})
			}
			sent = append(sent, fact.Received{Fact: o.e.Fact, ID: o.e.ID, Raw: o.e.Raw, Att: o.e.Att})
		}
		if _, err := two.Receive("one", sent); err != nil || !two.Has(m.own.ID) {
			t.Errorf("%s: two cannot take in what one says: %v", order, err)
		}
		if order == "reversed" {
			continue // nobody honest sends it so
		}
		m.Limit(Shares{Facts: 6, Bytes: 1 << 20})
		if got := m.Takes(); len(got) != 1 || got[0] != (Taking{"three", "three"}) {
			t.Errorf("%s: now there is room, and it takes %v", order, got)
		}
		if _, err := m.Receive("three", fs); err != nil || !m.Has(fs[0].ID) || !m.Has(fs[5].ID) {
			t.Errorf("%s: it is not taken in when there is room: %v", order, err)
		}
	}
}

// TestNamedPartOfARunComesWhole: another names a fact in the middle of a run which only its
// last proves. All of the run is taken in, beyond the share of its author, as it cannot come
// otherwise.
func TestNamedPartOfARunComesWhole(t *testing.T) {
	m := relayMesh(t).nodes["one"].m
	m.Limit(Shares{Facts: 3, Bytes: 1 << 20})
	fs := atEnd(words(t, m, 6))
	middle := fact.Head{Chain: fs[1].Fact.Chain, Seq: 2, ID: fs[1].ID}
	said := penOf(t, m, "two", 7).write(fact.Body{Seen: &fact.Seen{}}, m.log.Genesis().Head(), middle)
	if _, err := m.Receive("two", []fact.Received{said}); err == nil {
		t.Fatal("what two has built upon is missing, and nobody says so")
	}
	if added, err := m.Receive("two", append(slices.Clone(fs), said)); added != 7 || err != nil {
		t.Errorf("%d facts are taken in (%v), want the six of the run and what two says", added, err)
	}
}

// TestCutRunIsNamed: a node that a run which it declined keeps below its limit names what it
// has of the author, though nobody says that it refuses that: in few words, however
// often more of both comes.
func TestCutRunIsNamed(t *testing.T) {
	w := relayMesh(t)
	one := w.nodes["one"]
	one.m.Limit(Shares{Facts: 65, Bytes: 1 << 20})
	w.step(one)
	before := one.m.log.Authored()["one"].Facts
	p := penOf(t, one.m, "three", 7)
	has := []fact.Received{p.write(fact.Body{Seen: &fact.Seen{}}, one.m.log.Genesis().Head())}
	for i := range 60 {
		if i > 0 {
			has = []fact.Received{p.write(fact.Body{Seen: &fact.Seen{}})}
		}
		one.m.mustTake(t, has[0])
		q, run := *p, []fact.Received(nil)
		for range 66 {
			run = append(run, q.write(fact.Body{Seen: &fact.Seen{}}))
		}
		if added, err := one.m.Receive("three", atEnd(run)); added > 0 || err != nil {
			t.Fatalf("%d facts of a run are taken in: %v", added, err)
		}
		w.step(one)
		if i == 0 && one.m.namedIn(one.m.log.ByID()[has[0].ID].Strand) != 1 {
			t.Error("what it has is not named")
		}
	}
	if said := one.m.log.Authored()["one"].Facts - before; said == 0 || said > 8 {
		t.Errorf("it said %d things, want a few", said)
	}
}

// TestUnprovenRunsThatDifferConverge: a member that lies tells each of three partners of
// other runs, attested at their end only, of many lengths, in several chains that fork; each
// takes in little of it, and goes on to speak upon what it has. All come to the same facts
// that count, and what each has can be proven to others.
func TestUnprovenRunsThatDifferConverge(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 12))
		c := newThrong(t)
		c.limit = []int{2 << 10, fact.MaxFact}[r.IntN(2)]
		share := map[workflow.PartnerID]int{}
		for _, id := range honest {
			share[id] = 30 + r.IntN(10) // more than honest partners say
			c.left[id], c.spare[id] = []int{300, 900, 3 << 10, 1 << 20}[r.IntN(4)], 4<<20
		}
		room := c.room
		c.room = func(n *node) Shares {
			s := room(n)
			if s.Facts = share[n.id]; n.id == "mal" || n.id == "mol" {
				s.Facts = 0
			}
			return s
		}
		genesis := c.nodes["one"].m.log.Genesis().Head()
		n := 0
		for range 3 + r.IntN(8) {
			id := honest[r.IntN(3)]
			m := c.nodes[id].m
			p := penOf(t, m, "mal", byte(1+r.IntN(2+int(seed%4))))
			seen := []fact.Head{genesis}
			if chains := m.log.ByAuthor()["mal"]; len(chains) > 0 && r.IntN(2) == 0 { // it goes on, or forks
				s := chains[r.IntN(len(chains))].Strands[0]
				e := s.Facts[r.IntN(len(s.Facts))]
				p = &pen{t: t, instance: m.log.Instance(), chain: e.Fact.Chain, seq: e.Fact.Seq, prev: e.ID}
				seen = nil
			}
			var run []fact.Received
			for range 1 + r.IntN([]int{4, 12, 50}[r.IntN(3)]) {
				n++
				b := fact.Body{Seen: &fact.Seen{}}
				if r.IntN(2) == 0 {
					b = judges([]workflow.TaskName{"b", "c", "d"}[r.IntN(3)], fmt.Sprint(n))
				} else if r.IntN(3) == 0 {
					b = fact.Body{TryFailed: &fact.TryFailed{Attempt: fact.AttemptID{Slot: "a"}, Try: 1,
						Reason: fmt.Sprint(n)}}
				}
				run = append(run, p.write(b, seen...))
				seen = nil
				if r.IntN(12) == 0 {
					run = atEnd(run)
					c.hear(id, run)
					run = nil
				}
			}
			if len(run) > 0 {
				c.hear(id, atEnd(run))
			}
			if r.IntN(2) == 0 {
				c.nodes[id].m.mustAppend(c.moment(), fact.Body{Seen: &fact.Seen{}})
				c.step(c.nodes[id])
			}
			if r.IntN(4) == 0 {
				c.compareFor(time.Minute)
			}
			if r.IntN(8) == 0 {
				c.crash(c.nodes[id])
			}
		}
		c.compareFor(3 * time.Hour)
		c.agree(fmt.Sprintf("seed %d", seed))
		for _, id := range honest {
			m := c.nodes[id].m
			for _, s := range m.log.Strands() {
				if e := s.Last(); e.Att == nil && e.Fact.Chain.Author != id && e != m.log.Genesis() {
					t.Errorf("seed %d: nothing proves number %d of %s at %s", seed, e.Fact.Seq, e.Fact.Chain.Author, id)
				}
			}
		}
		if t.Failed() {
			break
		}
	}
}

// TestStoredSaysWhatIsOpen: of facts that go to the store those are marked after which
// something has to follow that vouches for what is stored. Two chains come mixed, and
// this node's own facts need nobody.
func TestStoredSaysWhatIsOpen(t *testing.T) {
	w := relayMesh(t)
	m := w.nodes["one"].m
	m.Decide(w.moment(), w)
	p, q := penOf(t, m, "three", 7), penOf(t, m, "two", 7)
	genesis := m.log.Genesis().Head()
	var fs []fact.Received
	for i, x := range []struct {
		by   *pen
		bare bool
	}{{p, true}, {q, true}, {p, false}, {q, true}, {q, false}, {p, false}, {q, true}, {q, false}} {
		var seen []fact.Head
		if i < 2 {
			seen = []fact.Head{genesis}
		}
		f := x.by.write(fact.Body{Seen: &fact.Seen{}}, seen...)
		if x.bare {
			f.Att = nil
		}
		fs = append(fs, f)
	}
	m.mustTake(t, fs...)
	want := []bool{true, true, true, true, false, false, true, false}
	stored := m.Decide(w.moment(), w).Persist
	for i, f := range stored {
		if open := i < len(want) && want[i]; f.Open != open {
			t.Errorf("fact %d of %d is open: %v", i, len(stored), f.Open)
		}
	}
	if len(stored) < len(want) {
		t.Errorf("%d facts are stored, want at least %d", len(stored), len(want))
	}
}

// TestBundleWithAMisnamedFactStaysOut: of a bundle whose last fact, which alone is attested,
// misnames a head that it has seen, nothing is taken in: else what is before it would stay
// with nothing that proves it, and what the node says next would be built upon that.
func TestBundleWithAMisnamedFactStaysOut(t *testing.T) {
	for _, misnamed := range []string{"head", "previous"} {
		m := relayMesh(t).nodes["one"].m
		p := penOf(t, m, "three", 7)
		first := p.write(fact.Body{Seen: &fact.Seen{}}, m.log.Genesis().Head())
		wrong := m.log.Genesis().Head()
		if misnamed == "head" {
			wrong.Seq = 9
		} else {
			p.seq++
		}
		fs := atEnd([]fact.Received{first, p.write(fact.Body{Seen: &fact.Seen{}}, wrong)})
		had := m.Len()
		if added, err := m.Receive("three", fs); added != 0 || m.Len() != had || !errors.Is(err, fact.ErrInvalid) {
			t.Errorf("%s: %d facts are taken in (%v), want none, as one is invalid", misnamed, added, err)
		}
	}
}
