package assemble

import (
	"slices"
	"testing"
)

// A node takes the API's usual port if that is free at its first start, and keeps to it, also after a moment in
// which something else had it; while it is taken, the node has one other port, and keeps to that. A node that could not
// have the usual one at its first start leaves it to whoever had it.
func TestAPIPort(t *testing.T) {
	free := func(choices []string, taken ...string) string {
		for _, p := range append(choices, "40001", "40002") {
			if !slices.Contains(taken, p) {
				return p
			}
		}
		return ""
	}
	type start struct {
		taken []string
		want  string
	}
	run := func(starts []start) {
		var before []string
		for i, x := range starts {
			port := free(apiChoices(before), x.taken...)
			if port != x.want {
				t.Errorf("start %d of %v: port %s, want %s", i+1, starts, port, x.want)
			}
			before = apiRemembered(before, port)
		}
	}
	run([]start{
		{nil, "7878"},
		{[]string{"7878"}, "40001"}, // another node came first
		{nil, "7878"},
		{[]string{"7878"}, "40001"}, // as the last time, when it could not have the usual one
		{[]string{"7878", "40001"}, "40002"},
		{[]string{"7878"}, "40002"},
	})
	run([]start{
		{[]string{"7878"}, "40001"},
		{nil, "40001"}, // it is started before the other one
		{[]string{"40001"}, "7878"},
		{nil, "40001"},
	})
}
