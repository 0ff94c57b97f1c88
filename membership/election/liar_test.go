package election

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// liar is what a voter does that votes for everybody who asks, as often as asked,
// whatever it has granted to others, and tells nobody of the other.
func liar(name string) flaws {
	return flaws{only: name, twoVotes: true, ignoreLeases: true, hideClaims: true}
}

// A voter that votes for two in one term has both elected, and keeps both in office as
// long as these do not hear of each other. Then one of them steps down, and knows why:
// the votes show who voted twice. In the lower of two terms it steps down likewise.
func TestAVoterThatVotesForTwo(t *testing.T) {
	for _, terms := range []string{"one", "two"} {
		w := newWorld(t, 3, 3, liar("n3"))
		w.atOnce = 2
		w.settle(testLease + time.Second)
		if terms == "two" { // n2 used terms up before, where nobody heard it
			w.cut = func(int, int) bool { return true }
			w.elect(1)
			w.settle(2 * patiently * testLease)
		}
		w.cut = func(from, to int) bool { return from+to == 1 } // n1 and n2 both reach n3
		w.elect(0)
		w.elect(1)
		w.settle(3 * testLease)
		if lead := w.leaders(); !slices.Equal(lead, []int{0, 1}) {
			t.Fatalf("in %s: leaders are %v, want n1 and n2: it can\n%s", terms, lead, w.story())
		}
		w.cut = nil
		w.settle(testLease)
		lead := w.leaders()
		if len(lead) != 1 {
			t.Fatalf("in %s: leaders are %v a lease after they reach each other\n%s", terms, lead, w.story())
		}
		lower := w.nodes[1-lead[0]].name
		said := func(what string) bool {
			return slices.ContainsFunc(w.trace, func(line string) bool {
				return strings.Contains(line, lower+" "+string(StoppedBeing)) && strings.Contains(line, what)
			})
		}
		if !said(ErrLowerOffice.Error()) || said(w.id(2).Short()+" voted for both") != (terms == "one") {
			t.Errorf("in %s: %s does not say why it stepped down\n%s", terms, lower, w.story())
		}
		for i := range 2 {
			if m, _ := w.nodes[i].election.Coordinator(w.now(i)); m.Holder != w.id(lead[0]) {
				t.Errorf("in %s: n%d follows another", terms, i+1)
			}
		}
	}
}

// However a voter lies, and whatever is lost, no three lead at once; and once messages
// arrive, no two that tell others so.
func TestALyingVoterMakesTwoCoordinatorsAtMost(t *testing.T) {
	two := 0
	for seed := range lives(300) {
		rng := rand.New(rand.NewPCG(seed, 7))
		w := newWorld(t, 5, 5, liar("n5"))
		w.atOnce = 2
		honest := func() []int { return slices.DeleteFunc(w.leaders(), func(i int) bool { return i == 4 }) }
		w.settle(testLease + time.Second)
		w.cut = func(from, to int) bool { return from < 4 && to < 4 && from/2 != to/2 } // both sides reach n5
		w.elect(0)
		w.elect(2)
		for range 10 {
			w.chaos(rng, 30, false)
			two += len(honest()) / 2
		}
		w.cut = nil
		w.settle(2 * testLease)
		if lead := honest(); w.bad != "" || len(lead) > 1 {
			t.Fatalf("seed %d: %s; leaders are %v in the end\n%s", seed, w.bad, lead, w.story())
		}
	}
	t.Logf("two led at once at %d moments", two)
	if two == 0 {
		t.Error("the voter's lies come to nothing: the test shows nothing")
	}
}
