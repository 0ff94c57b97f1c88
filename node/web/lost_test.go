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
		"the task was given to another partner", "the instance was cancelled", "the task had failed by then", "the task is over",
		"the task is not needed any more", "the task was stopped", "the data are final",
		"the task was presumed to have failed, and ask stands in for it",
		"the task is presumed to have failed, and ask stands in for it", "the instance was interrupted",
		"the task was presumed to have failed, and what waits for it goes on",
	}
	for _, c := range []worklist.Cause{
		worklist.ByLease, worklist.ByRemoval, worklist.ByDeadline, worklist.ByOrder, worklist.ByDelegation,
		worklist.ByEscalation, worklist.ByReturn,
	} {
		whys = append(whys, string(c))
	}
	for _, why := range whys {
		text := worklists.Because(why)
		if got := languages()[1].reason(text); got == text || strings.Contains(got, why) {
			t.Errorf("%q is said as %q", text, got)
		}
	}
}

// What this node cannot show, as it takes no part in the instance, is not linked to.
func TestNoLinkLeadsWhereNothingIs(t *testing.T) {
	for _, path := range []string{"/", "/outbox"} {
		body := get(t, newPage(brigade()), path, "en").Body.String()
		if text := prose(body); !strings.Contains(text, map[string]string{"/": "watch", "/outbox": "file roof.jpg"}[path]) {
			t.Errorf("%s does not show it:\n%s", path, text)
		}
		if strings.Contains(body, "/instances/99") {
			t.Errorf("%s links to an instance that is not here", path)
		}
	}
}
