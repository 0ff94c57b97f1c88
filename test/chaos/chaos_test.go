//go:build linux

package chaos_test

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"
)

var (
	lasts = flag.Duration("for", 0, "go on for as long as this, in rounds of a minute or so; at most 3h")
	seed  = flag.Uint64("seed", 0, "the seed of what goes wrong; 0: at random (it is told)")
)

// short is the one round that runs with every test; long ones differ.
var short = pace{
	trouble: 600 * time.Millisecond, starts: 800 * time.Millisecond, persons: 400 * time.Millisecond,
	minutes: []time.Duration{40 * time.Millisecond, 100 * time.Millisecond},
}

const shortSpan = 15 * time.Second

// TestChaos has five nodes go through all that can go wrong. Without -for it
// is one short round.
//
//	go test ./test/chaos -for 1h -seed 7 -timeout 0 -v
//	go test ./test/chaos -for 1h -seed 7 -timeout 0 -v -liar
func TestChaos(t *testing.T) {
	if *seed == 0 {
		*seed = rand.Uint64() | 1
	}
	t.Logf("-seed %d", *seed)
	r := rand.New(rand.NewPCG(*seed, 0))
	tm := newTeam(t)
	if tm == nil {
		return
	}
	if *lasts == 0 {
		tm.round(r, shortSpan, short)
	}
	for time.Since(tm.begun) < min(*lasts, jump/2) && len(tm.violated()) == 0 {
		tm.round(r, between(r, 10*time.Second, 80*time.Second), anyPace(r))
		tm.tell()
	}
	tm.again()
	tm.tell()
	for _, v := range tm.violated() {
		t.Error(v)
	}
}

// anyPace is that of a round of a long run: from seldom trouble to more than
// anybody should have, from instances of a second to some of a minute.
func anyPace(r *rand.Rand) pace {
	p := pace{
		trouble: []time.Duration{300 * time.Millisecond, time.Second, 3 * time.Second}[r.IntN(3)],
		starts:  []time.Duration{500 * time.Millisecond, 2 * time.Second}[r.IntN(2)],
		persons: []time.Duration{200 * time.Millisecond, time.Second, 4 * time.Second}[r.IntN(3)],
		minutes: []time.Duration{40 * time.Millisecond, 150 * time.Millisecond, 500 * time.Millisecond},
	}
	p.minutes = p.minutes[:1+r.IntN(len(p.minutes))]
	return p
}

// tell logs what has happened until now.
func (tm *team) tell() {
	tm.t.Logf("%s: %s", time.Since(tm.begun).Round(time.Second), &tm.sum)
	if tm.liar == nil {
		return
	}
	tm.mu.Lock()
	l := tm.sum.lies
	tm.mu.Unlock()
	tm.t.Logf("the liar: %s\nmost anonymous memory of a node: %d MiB; of at most %d instances of the liar's at a time, "+
		"those that two nodes have were looked at: %d times the same facts and state, %d times not the same facts\n"+
		"most refusals that one run of a node counted: %s", tm.liar, l.anon, l.known, l.same, l.differ,
		counts(l.refused))
}
