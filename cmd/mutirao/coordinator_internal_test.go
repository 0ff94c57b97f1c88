package main

import (
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// An evicted coordinator is not shown as if nothing had happened.
func TestEvictedCoordinatorIsShownAsSuch(t *testing.T) {
	bea := "bea"
	for state, want := range map[string]string{
		"active":  "coordinator  bea\n",
		"evicted": "coordinator  bea (evicted; in office until its lease ends)\n",
	} {
		var out strings.Builder
		writeCoordinator(&out, &api.Coordinator{Coordinator: &bea, Term: 1},
			&api.Electorate{Number: 2, Voters: []api.Voter{{Name: bea, State: state}}})
		if !strings.HasPrefix(out.String(), want) {
			t.Errorf("%s:\n%s", state, out.String())
		}
	}
}
