package web

import (
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// Why somebody lost an item is said in Portuguese, whatever it was.
func TestEveryReasonOfALossIsSaid(t *testing.T) {
	whys := []string{
		"given back", "taken back", "another end stands", "another grant prevails", "another result of the task counts",
		"the task that it stands in for was done after all", "the item was done meanwhile",
		"the task was given to another partner",
	}
	for _, c := range []worklist.Cause{
		worklist.ByLease, worklist.ByRemoval, worklist.ByDeadline, worklist.ByOrder, worklist.ByDelegation,
		worklist.ByEscalation, worklist.ByReturn,
	} {
		whys = append(whys, string(c))
	}
	for _, why := range whys {
		text := worklists.Because(why)
		if got := languages[1].reason(text); got == text || strings.Contains(got, why) {
			t.Errorf("%q is said as %q", text, got)
		}
	}
}
