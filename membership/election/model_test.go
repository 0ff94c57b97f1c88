package election

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/test/sample"
	"github.com/mutirao-mesh/mutirao/membership/trust/trusttest"
)

// run is one random life of n nodes, by seed.
func run(t *testing.T, n int, seed uint64, overrides bool, f flaws) *world {
	rng := rand.New(rand.NewPCG(seed, uint64(n)))
	w := newWorld(t, n, n-rng.IntN(2), f)
	for _, m := range w.nodes {
		m.auto = rng.IntN(3) == 0
		m.rate = 0.95 + 0.2*rng.Float64()
	}
	for i := range w.nodes {
		w.restart(i) // with these settings
	}
	w.advance(testLease * 11 / 10) // let the wait after a start be over
	w.chaos(rng, 300, overrides)
	return w
}

// most is how many random lives the model check runs of each kind: as many as
// TestCheckerFindsFlaws may need for a flaw.
var most = flag.Uint64("lives", 1500, "how many random lives of elections to check of each kind")

// lives is how many of these to run.
func lives(full uint64) uint64 {
	if testing.Short() {
		return full / 10
	}
	return full
}

func TestNeverTwoCoordinators(t *testing.T) {
	for _, n := range []int{3, 5} {
		for _, overrides := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d nodes, overrides %t", n, overrides), func(t *testing.T) {
				t.Parallel()
				elected, all := uint64(0), lives(uint64(sample.Of(int(*most)/3, int(*most))))
				for seed := range all {
					w := run(t, n, seed, overrides, flaws{})
					if w.bad != "" {
						t.Fatalf("seed %d: %s\n%s", seed, w.bad, w.story())
					}
					elected += uint64(len(w.holders))
				}
				if elected < all/2 {
					t.Errorf("only %d elections in %d lives: the check sees too little", elected, all)
				}
				t.Logf("%d elections", elected)
			})
		}
	}
}

// The checker must be able to fail: each flaw is found.
func TestCheckerFindsFlaws(t *testing.T) {
	for name, f := range map[string]flaws{
		"consents are not durable": {forgetConsents: true},
		"leases are ignored":       {ignoreLeases: true},
		"an office does not end":   {endlessOffice: true},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range *most {
				if w := run(t, 3, seed, false, f); w.bad != "" {
					t.Logf("seed %d: %s", seed, w.bad)
					return
				}
			}
			t.Error("the checker does not see it")
		})
	}
}

// Once the faults end, somebody is elected who stands.
func TestElectionSucceedsAfterChaos(t *testing.T) {
	for seed := range lives(60) {
		w := run(t, 5, seed, false, flaws{})
		w.cut = nil
		w.settle(8 * testLease)
		for range 3 {
			if len(w.leaders()) == 1 {
				break
			}
			r, err := w.nodes[0].election.Elect(w.now(0))
			w.do(0, r, err)
			w.settle(5 * testLease)
		}
		if len(w.leaders()) != 1 && !w.stuck() {
			t.Fatalf("seed %d: nobody leads\n%s", seed, w.story())
		}
	}
}

// stuck reports whether so many voters gave their consents to different lists
// that only the founder can help.
func (w *world) stuck() bool {
	head, _ := w.nodes[0].election.Electorate()
	free := 0
	for i, m := range w.nodes {
		l, _ := m.election.Electorate()
		if l.compare(head) > 0 {
			head, free = l, 0
		}
		if head.Has(w.voter(i)) && m.election.ballot.Signed == nil {
			free++
		}
	}
	return free < head.Majority()
}

func TestStoppedHolderDoesNothing(t *testing.T) {
	w := newWorld(t, 3, 3, flaws{})
	w.settle(testLease + time.Second)
	w.elect(0)
	w.settle(3 * time.Second)
	mandate, ok := w.nodes[0].election.Leads(w.now(0))
	if !ok {
		t.Fatalf("n1 was not elected\n%s", w.story())
	}
	for _, suspend := range []bool{false, true} {
		w.settle(time.Second)
		before := w.real
		w.stop(0, testLease, suspend)
		w.advance(testLease)
		if _, ok := w.nodes[0].election.Leads(w.now(0)); ok {
			t.Errorf("n1 leads after it was stopped from %s to %s", before, w.real)
		}
		// What waited for it is handled as if it had no office.
		r := w.nodes[0].election.Tick(w.now(0))
		for _, env := range r.Send {
			if env.Message.Ask != nil || env.Message.Holding != nil || env.Message.Claim != nil {
				t.Errorf("n1 says %q in its old term", describe(env.Message))
			}
		}
		w.do(0, r, nil)
		if err := w.nodes[1].election.Admit(mandate.Office); err != nil {
			t.Errorf("before there is a higher office: %v", err)
		}
		w.settle(time.Second)
		w.elect(1)
		w.settle(3 * time.Second)
		if lead := w.leaders(); len(lead) != 1 || lead[0] != 1 {
			t.Fatalf("leaders are %v, want n2\n%s", lead, w.story())
		}
		trusttest.Refused(t, w.nodes[2].election.Admit(mandate.Office), ErrLowerOffice, "a higher office is known")
		r, err := w.nodes[1].election.Resign(w.now(1))
		w.do(1, r, err)
		w.settle(time.Second)
		w.elect(0)
		w.settle(3 * time.Second)
		if mandate, ok = w.nodes[0].election.Leads(w.now(0)); !ok {
			t.Fatalf("n1 was not elected again\n%s", w.story())
		}
	}
}

// elect makes node i stand.
func (w *world) elect(i int) {
	r, err := w.nodes[i].election.Elect(w.now(i))
	w.do(i, r, err)
}
