package web

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
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

// What was lost is on home until its user says that it was read; what may not count is for as long as that is so.
func TestWhatWasLostIsReadOnHome(t *testing.T) {
	f := brigade()
	var read []string
	f.OnWorklistLost = func(string) ([]api.LostItem, error) {
		return []api.LostItem{
			{ID: "1", Instance: id, Task: "hoses", Why: "taken back", At: at(0), Message: "m1", Read: len(read) > 0},
			{ID: "2", Instance: id, Task: "gate", Why: "done", At: at(0), Message: "m2", Read: true, Presumed: true},
			{ID: "3", Instance: id, Task: "roof", Why: "taken back", At: at(0), Message: "m3", Read: true},
		}, nil
	}
	f.OnReadMessages = func(r api.MessagesRead) error {
		read = r.IDs
		return nil
	}
	p := newPage(f)
	body := get(t, p, "/", "en").Body.String()
	if text := prose(body); !strings.Contains(text, "No longer yours") || !strings.Contains(text, "May not count\ngate") ||
		strings.Contains(text, "roof") || !strings.Contains(body, `name="message" value="m1"`) {
		t.Fatalf("home says\n%s", text)
	}
	w := post(t, p, sent(httpapi.Good), "en", "/messages", url.Values{"back": {"home"}, "message": {"m1"}})
	text := follow(t, p, w, "en")
	if !slices.Equal(read, []string{"m1"}) || !strings.HasPrefix(w.Header().Get("Location"), "/?") ||
		!strings.Contains(text, "They count as read.") || strings.Contains(text, "No longer yours") {
		t.Errorf("%q was read, and to %s home says\n%s", read, w.Header().Get("Location"), text)
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
