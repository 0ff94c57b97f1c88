package assignment

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// What one partner says that it holds takes at most half of what others' work of the same
// kind costs them: of a kind of which three hold an hour each, a fourth cannot say so much
// that an hour is nothing.
func TestClaimsOfOneWeighAtMostAsMuchAsTheOthers(t *testing.T) {
	says := func(p workflow.PartnerID, seconds uint16) membership.Partner {
		out := membership.Partner{Work: membership.EncodeWork([]membership.Work{
			{Giver: 7, Kind: 1, All: seconds}, {Giver: 8, Kind: 1, All: seconds},
		})}
		out.Record.Partner = p
		return out
	}
	l := NewLedger("me", stoppedClock{})
	much := choreo.Holding{Partner: "d", Giver: "me", Work: 2, Time: 10 * time.Hour}
	l.count(entry{costs: true, holdings: []holding{{Holding: much}}}, +1)
	for _, c := range []struct {
		liar uint16
		want time.Duration
	}{
		{100, (4*200 + 0) * time.Second},
		{65535, (3*200 + 3*200) * time.Second},
	} {
		work := l.inHand([]membership.Partner{says("a", 100), says("b", 100), says("c", 100), says("liar", c.liar)})
		all := kinds(work)
		if got := all[1]; got != (partition.InHand{All: c.want}) {
			t.Errorf("a claim of %d s makes %v of it, want %s", c.liar, got, c.want)
		}
		if got := all[2].All; got != 10*time.Hour {
			t.Errorf("of what this node gave itself are %s", got)
		}
	}
}

// What could not be made durable is taken back, whatever was given out in between; what
// others gave since stays.
func TestLedgerTakesBack(t *testing.T) {
	work := func(p workflow.PartnerID) []choreo.Holding {
		return []choreo.Holding{{Partner: p, Giver: "me", Work: 2, Time: time.Hour, Ready: true}}
	}
	l := NewLedger("me", stoppedClock{})
	one, two, three := workflow.InstanceID{1}, workflow.InstanceID{2}, workflow.InstanceID{3}
	l.add(one, work("a"), true)
	l.Keep(one)
	lots, flows := maps.Clone(l.lots), maps.Clone(l.flows)
	l.add(one, work("a"), true)
	l.add(two, work("a"), true)
	l.add(two, work("b"), true)
	l.add(one, work("a"), true)
	l.TakeBack(two)
	l.TakeBack(one)
	if !maps.Equal(l.lots, lots) || !maps.Equal(l.flows, flows) || len(l.open) > 0 {
		t.Errorf("taken back, it has %v and %v; before it had %v and %v", l.lots, l.flows, lots, flows)
	}
	l.add(two, work("a"), true)
	l.add(three, work("a"), true)
	l.Keep(three)
	l.TakeBack(two)
	if got := l.flows["a"].instance; got != three {
		t.Errorf("the last that a was given is of instance %s, want %s", got, three)
	}
}

// A decision weighs what it gave out as if that had been entered. Its ledger is made once,
// and takes in what is new from choice to choice; only where less was given out than a
// choice was told of, as it could not be recorded, it is made again.
func TestADecisionWeighsWhatItGaveOut(t *testing.T) {
	work := func(p workflow.PartnerID, k partition.Kind) choreo.Holding {
		return choreo.Holding{Partner: p, Giver: "me", Work: k, Time: time.Hour, Ready: true}
	}
	a, b, c := work("a", 2), work("b", 2), work("me", 3)
	id := workflow.InstanceID{1}
	for _, mechanism := range []aptitude.Mechanism{aptitude.SelPush, aptitude.Push} {
		l := NewLedger("me", stoppedClock{})
		l.add(id, []choreo.Holding{a}, mechanism.Loads())
		before := maps.Clone(l.lots)
		one := &asOne{Partners: &Partners{Surroundings: Surroundings{Ledger: l}}}
		var made *Partners
		for _, x := range []struct {
			given []choreo.Holding
			again bool
		}{{nil, true}, {[]choreo.Holding{a}, true}, {[]choreo.Holding{a, b, c}, false},
			{[]choreo.Holding{a, b, c, a}, false}, {[]choreo.Holding{a, b}, true}, {[]choreo.Holding{a, c, b}, true}} {
			got := one.weighing(choreo.Work{Instance: id, Given: x.given, Mechanism: mechanism})
			want := NewLedger("me", stoppedClock{})
			want.add(id, append([]choreo.Holding{a}, x.given...), mechanism.Loads())
			for _, h := range x.given {
				want.renew(id, h)
			}
			if !maps.Equal(got.Ledger.lots, want.lots) || got.Ledger.given != want.given ||
				!maps.Equal(got.Ledger.flows, want.flows) {
				t.Errorf("%s, given %v: %v and %v, want %v and %v", mechanism, x.given, got.Ledger.lots,
					got.Ledger.flows, want.lots, want.flows)
			}
			if again := got != made; again != x.again {
				t.Errorf("%s, given %v: the ledger was made again: %t", mechanism, x.given, again)
			}
			made = got
		}
		if !maps.Equal(l.lots, before) {
			t.Errorf("%s: choices have changed the ledger itself: %v", mechanism, l.lots)
		}
	}
}

// When work that is not ready is expected to be is estimated once, when this node first knows
// of it; how long that is grows less with time.
func TestWhatIsReadyLaterIsExpectedOnce(t *testing.T) {
	l := NewLedger("me", stoppedClock{})
	later := func(p workflow.PartitionName, time time.Duration) choreo.Holding {
		return choreo.Holding{Partner: "a", Giver: "me", Work: 2, Time: time, Partition: p}
	}
	asked := 0
	in := map[workflow.PartitionName]time.Duration{"p": 10 * time.Minute, "q": 30 * time.Minute}
	begins := func() func(choreo.Holding) time.Duration {
		asked++
		return func(h choreo.Holding) time.Duration { return in[h.Partition] }
	}
	work := []choreo.Holding{later("p", 3*time.Hour), later("q", time.Hour)}
	known := l.expect(nil, work, begins)
	l.count(entry{costs: true, holdings: known}, 1)
	for _, c := range []struct{ awake, want time.Duration }{
		{0, 15 * time.Minute}, {4 * time.Minute, 11 * time.Minute}, {time.Hour, 0},
	} {
		got := l.lots[lot{"a", "me", 2}].inHand(c.awake)
		if want := (partition.InHand{All: 4 * time.Hour, Wait: c.want}); got != want {
			t.Errorf("after %s it is %+v, want %+v", c.awake, got, want)
		}
	}
	in["p"] = time.Hour // nobody asks again
	if again := l.expect(known, work, begins); !slices.Equal(again, known) || asked != 1 {
		t.Errorf("expected %v, then %v, asked %d times", known, again, asked)
	}
	l.count(entry{costs: true, holdings: known}, -1)
	if len(l.lots) > 0 {
		t.Errorf("nothing is in hand any more, and there is %v", l.lots)
	}
}

type stoppedClock struct{}

func (stoppedClock) Now() moment.Now { return moment.Now{} }
