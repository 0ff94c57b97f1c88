package assemble

import (
	"slices"
	"testing"
)

// A node takes the API's usual port whenever that is free, also after a moment in which something else had
// it; while it is taken, the node has one other port, and keeps to that.
func TestAPIPort(t *testing.T) {
	free := func(choices []string, taken ...string) string {
		for _, p := range append(choices, "40001", "40002") {
			if !slices.Contains(taken, p) {
				return p
			}
		}
		return ""
	}
	var before []string
	for i, x := range []struct {
		taken []string
		want  string
	}{
		{nil, "7878"},
		{[]string{"7878"}, "40001"}, // another node came first
		{nil, "7878"},
		{[]string{"7878"}, "40001"}, // as the last time, when it could not have the usual one
		{[]string{"7878", "40001"}, "40002"},
		{[]string{"7878"}, "40002"},
	} {
		port := free(apiChoices(before), x.taken...)
		if port != x.want {
			t.Errorf("start %d, with %v taken: port %s, want %s", i+1, x.taken, port, x.want)
		}
		before = apiRemembered(before, port)
	}
}
