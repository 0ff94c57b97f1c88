package main

import (
	"errors"
	"testing"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/apitest"
)

// Where the node goes down while instances are amended, that is said, and not that the others cannot take the change.
func TestNoNodeIsLeftToAmend(t *testing.T) {
	asked := 0
	node := &apitest.Fake{OnAmend: func(r api.AmendRequest) (*api.Amended, error) {
		if asked++; asked > 1 {
			return nil, api.Errorf(api.NoNode, "no node is running")
		}
		return &api.Amended{ID: r.ID}, nil
	}}
	u := &ui{out: t.Output(), err: t.Output(), quiet: true}
	out, err := (&applier{to: "a, b,c"}).apply(t.Context(), u, node, &api.Workflow{}, "f.yaml", nil)
	var no *api.Error
	if !errors.As(err, &no) || no.Exit() != 4 || len(out) != 1 || asked != 2 {
		t.Errorf("%v, %+v, after %d", err, out, asked)
	}
}
