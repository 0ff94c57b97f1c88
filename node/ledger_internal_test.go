package node

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// What one partner says that it holds takes at most half of what others' work of the same
// kind costs them: of a kind of which three hold an hour each, a fourth cannot say so much
// that an hour is nothing.
func TestClaimsOfOneWeighAtMostAsMuchAsTheOthers(t *testing.T) {
	says := func(p workflow.PartnerID, seconds uint16) membership.Partner {
		out := membership.Partner{Work: membership.EncodeWork([]membership.Work{{Giver: 7, Kind: 1, All: seconds}, {Giver: 8, Kind: 1, All: seconds}})}
		out.Record.Partner = p
		return out
	}
	l := newLedger("me", nil)
	l.count(entry{costs: true, holdings: []choreo.Holding{{Partner: "d", Giver: "me", Work: 2, Time: 10 * time.Hour}}}, +1)
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

// Choices are the partners as the instances' machines ask about them.
func (n *Node) Choices() choreo.Partners { return n.partners }

// GivenOut is what the ledger has of work that mechanisms gave out: each partner's, and
// what each was given last.
func (n *Node) GivenOut() string {
	l := n.partners.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for x, h := range l.lots {
		out = append(out, fmt.Sprintf("%s has %s\n", n.people.name(x.partner), h.All))
	}
	for p, f := range l.flows {
		out = append(out, fmt.Sprintf("%s was given %s last: %s\n", n.people.name(p), f.work.Task, f.time))
	}
	slices.Sort(out)
	return strings.Join(out, "")
}

// What could not be made durable is taken back, whatever was given out in between; what
// others gave since stays.
func TestLedgerTakesBack(t *testing.T) {
	work := func(p workflow.PartnerID) []choreo.Holding {
		return []choreo.Holding{{Partner: p, Giver: "me", Work: 2, Time: time.Hour, Ready: true}}
	}
	l := newLedger("me", stoppedClock{})
	one, two, three := workflow.InstanceID{1}, workflow.InstanceID{2}, workflow.InstanceID{3}
	l.add(one, work("a"), true)
	l.keep(one)
	lots, flows := maps.Clone(l.lots), maps.Clone(l.flows)
	l.add(one, work("a"), true)
	l.add(two, work("a"), true)
	l.add(two, work("b"), true)
	l.add(one, work("a"), true)
	l.takeBack(two)
	l.takeBack(one)
	if !maps.Equal(l.lots, lots) || !maps.Equal(l.flows, flows) || len(l.open) > 0 {
		t.Errorf("taken back, it has %v and %v; before it had %v and %v", l.lots, l.flows, lots, flows)
	}
	l.add(two, work("a"), true)
	l.add(three, work("a"), true)
	l.keep(three)
	l.takeBack(two)
	if got := l.flows["a"].instance; got != three {
		t.Errorf("the last that a was given is of instance %s, want %s", got, three)
	}
}

type stoppedClock struct{ Clock }

func (stoppedClock) Now() moment.Now { return moment.Now{} }
