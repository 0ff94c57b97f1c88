package node_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/api"
)

// offeredTo is to whom the first task of an instance is offered, as a node sees it.
func (tm *team) offeredTo(at, id string) []string {
	tm.t.Helper()
	return tm.show(at, id).Tasks[0].OfferedTo
}

func (tm *team) wantOffered(at, id string, want ...string) {
	tm.t.Helper()
	got := slices.Sorted(slices.Values(tm.offeredTo(at, id)))
	if !slices.Equal(got, want) {
		tm.t.Errorf("it is offered to %v, want %v", got, want)
	}
}

// notifying begins an instance of rounds by a policy.
func (tm *team) notifying(at, policy string) string {
	tm.t.Helper()
	st, err := tm.p[at].api.Start(tm.t.Context(), api.StartRequest{Workflow: "rounds-" + at, Notify: policy})
	if err != nil {
		tm.t.Fatal(err)
	}
	pass(time.Second)
	return st.ID
}

// Whoever signs in at a node that is connected already, or is granted the role there, comes later than those to whom an
// item was offered: it is offered to them too, and the policy that chooses who came last chooses them. A certificate
// that is renewed, and a restart, change nothing of that.
func TestWhoSignsInOrIsGrantedARoleComesLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base", "tablet", "phone")
		if err := tm.signIn("tablet", tm.addUser("base", "ana", "nurse")); err != nil {
			t.Fatal(err)
		}
		if err := tm.signIn("phone", tm.addUser("base", "bia")); err != nil {
			t.Fatal(err)
		}
		token := tm.addUser("base", "rui", "nurse")
		pass(time.Minute)
		tm.add("base", rounds("base"))
		var ids []string
		for _, policy := range []string{"fewest-assigned 1", "fewest-selected 1", "latest-connected 1"} {
			id := tm.notifying("base", policy)
			tm.wantOffered("base", id, "ana")
			ids = append(ids, id)
		}

		pass(time.Minute)
		if err := tm.signIn("tablet", token); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		for _, id := range ids {
			tm.wantOffered("base", id, "ana", "rui")
		}
		tm.wantOffered("base", tm.notifying("base", "latest-connected 1"), "rui")

		pass(time.Minute)
		if _, err := tm.p["base"].api.GrantRole(t.Context(), api.RoleRequest{User: "bia", Role: "nurse"}); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		for _, id := range ids {
			tm.wantOffered("base", id, "ana", "bia", "rui")
		}
		tm.wantOffered("base", tm.notifying("base", "latest-connected 1"), "bia")

		pass(time.Minute) // another role makes nobody come
		if _, err := tm.p["base"].api.GrantRole(t.Context(), api.RoleRequest{User: "ana", Role: "cook"}); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		tm.wantOffered("base", tm.notifying("base", "latest-connected 1"), "bia")
	})
}

// A partner that leaves for good takes nothing new on: no policy chooses it, and what was offered to it alone is
// offered to another.
func TestWhoLeavesIsOfferedNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) { c.ConnectionTime = time.Minute }, "base:nurse", "tablet", "cab:nurse")
		pass(time.Minute)
		if err := tm.signIn("tablet", tm.addUser("base", "ana", "nurse")); err != nil {
			t.Fatal(err)
		}
		tm.add("base", rounds("base"))
		tm.add("cab", rounds("cab"))
		pass(time.Minute)
		tm.disconnect("base", "cab")
		tm.disconnect("tablet", "cab")
		pass(10 * time.Minute) // cab is seen to come later than the tablet
		tm.connect("base", "cab")
		tm.connect("tablet", "cab")
		pass(time.Minute)
		before := tm.notifying("base", "latest-connected 1")
		tm.wantOffered("base", before, "cab")
		own := tm.notifying("cab", "all")
		if err := tm.claim("tablet", "ana", api.ClaimSelect, tm.itemIn("tablet", "ana", own)); err != nil {
			t.Fatal(err)
		}
		if l, err := tm.leaveNode("cab", true); err != nil || l.Left || len(l.Stays) == 0 {
			t.Fatalf("cab leaves: %+v, %v; want what ana has to stay", l, err)
		}
		pass(time.Second)
		tm.wantOffered("base", before, "ana", "cab")
		tm.wantOffered("base", tm.notifying("base", "latest-connected 1"), "ana")
	})
}

// itemIn is the item of an instance on somebody's list.
func (tm *team) itemIn(at, user, id string) string {
	tm.t.Helper()
	for _, x := range tm.items(at, user) {
		if x.Instance == id {
			return x.ID
		}
	}
	tm.t.Fatalf("nothing of %s is on the list of %s", id, user)
	return ""
}
