package main

import (
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// A list of work has the deadline of an item or, without one, the next of its clocks, with what happens then.
func TestAListHasTheNextClock(t *testing.T) {
	soon, late := time.Now().Add(time.Hour), time.Now().Add(50*time.Hour)
	for _, x := range []struct {
		item api.Item
		want string
	}{
		{api.Item{}, "-"},
		{api.Item{Due: &api.Due{Kind: "timeout", At: soon}}, "time-out " + clock(soon) + " (in "},
		{api.Item{Due: &api.Due{Kind: "timeout", At: soon, About: true}}, "time-out about " + clock(soon) + " (in "},
		{api.Item{Due: &api.Due{Kind: "trigger", At: soon}}, "starts by itself " + clock(soon)},
		{api.Item{Deadline: &late, Due: &api.Due{Kind: "timeout", At: soon}}, clock(late) + " (in "},
	} {
		var b strings.Builder
		u := &ui{out: &b}
		if got := nextClock(x.item); !strings.HasPrefix(got, x.want) {
			t.Errorf("it is %q, want %q", got, x.want)
		}
		u.writeItems(&b, []api.Item{x.item})
		if has := strings.Contains(b.String(), "DUE"); has != (x.want != "-") {
			t.Errorf("with %q the list is\n%s", x.want, b.String())
		}
	}
}
