package node

import (
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/membership"
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
