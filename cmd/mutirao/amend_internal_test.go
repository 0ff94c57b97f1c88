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

// What all instances that were left have in common says the exit status; of several reasons it is a refusal.
func TestWhatCouldNotBeAmendedSaysWhy(t *testing.T) {
	node := &apitest.Fake{OnAmend: func(r api.AmendRequest) (*api.Amended, error) {
		codes := map[string]api.Code{"gone": api.NotFound, "theirs": api.NotAllowed, "done": api.Refused}
		if code := codes[r.ID]; code != "" {
			return nil, api.Errorf(code, "%s it is", code)
		}
		return &api.Amended{ID: r.ID}, nil
	}}
	for to, want := range map[string]int{
		"gone": 3, "a,gone": 3, "gone,gone": 3, "theirs,a": 5, "theirs,theirs": 5, "done": 6, "gone,theirs": 6,
		"gone,theirs,gone": 6, "theirs,done": 6, "done,gone": 6,
	} {
		u := &ui{out: t.Output(), err: t.Output(), quiet: true}
		_, err := (&applier{to: to}).apply(t.Context(), u, node, &api.Workflow{}, "f.yaml", nil)
		var no *exitError
		if !errors.As(err, &no) || no.status != want {
			t.Errorf("%s: %v, want the exit status %d", to, err, want)
		}
	}
}

// Whoever amends is asked before anything is added; all that run are meant by one word, also with a comma too much.
func TestWhoAmendsIsAskedFirst(t *testing.T) {
	node := &apitest.Fake{}
	node.OnUsers = func() ([]api.User, error) {
		return []api.User{{Name: "na", Here: true, Partner: true}, {Name: "ana", Here: true}, {Name: "bia", Here: true}}, nil
	}
	t.Setenv(userVariable, "")
	for to, want := range map[applier]bool{
		{}: true, {to: "running"}: false, {to: "3f9a"}: false, {to: "running", user: userFlag{"bia"}}: true,
	} {
		if err := to.speaker(t.Context(), node); (err == nil) != want {
			t.Errorf("%+v: %v", to, err)
		}
	}
	if got := (&applier{to: "running, "}).ids(); len(got) != 1 || got[0] != running {
		t.Errorf("running with a comma too much is %q", got)
	}
}
