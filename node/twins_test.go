package node_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// Every partner is a user by its own name, so nobody else may have it: that is refused where it is known, also of a
// partner that is gone and may be back. Where two sides of a split gave it, nobody is taken for the other: the name is
// refused, with both IDs, and the list and the doctor say so and what to do, until one of them is removed.
func TestAUserWithTheNameOfAPartner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one")
		tm.welcome("one", "two", api.InviteRequest{Delegate: true}, "one")
		tm.welcome("one", "tom", api.InviteRequest{}, "one", "two")
		tm.p["tom"].crash()
		pass(time.Hour)
		if state := tm.partnerState("one", "tom"); state != "expired" {
			t.Fatalf("tom is %s", state)
		}
		_, err := tm.p["one"].api.AddUser(t.Context(), api.UserRequest{Name: "tom"})
		wantCode(t, err, api.Refused, "there is a partner tom already")
		tm.disconnect("one", "two")
		if err := tm.signIn("one", tm.addUser("one", "zoe")); err != nil {
			t.Fatal(err)
		}
		tm.welcome("two", "zoe", api.InviteRequest{}, "two")
		tm.connect("one", "two")
		tm.connect("one", "zoe")
		pass(time.Minute)
		list, err := tm.p["one"].api.Users(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		of := map[bool]api.User{} // partner?
		for _, u := range list {
			if u.Name == "zoe" {
				of[u.Partner] = u
			} else if u.Namesake != "" {
				t.Errorf("%s is said to have a namesake", u.Name)
			}
		}
		if of[true].ID == "" || of[true].Namesake != of[false].ID || of[false].Namesake != of[true].ID {
			t.Fatalf("listed as %+v", list)
		}
		for _, at := range []string{"one", "two", "zoe"} {
			_, err := tm.p[at].api.Worklist(t.Context(), api.WorklistQuery{User: "zoe"})
			wantCode(t, err, api.Invalid, "a user and a partner are called zoe: say which by ID, "+of[false].ID+" (the user) or "+of[true].ID)
			if f := tm.finding(at, "users"); f.State != api.FindingWarning || !strings.Contains(f.What, "zoe is the name of user "+of[false].ID) ||
				!strings.Contains(f.Mend, "mutirao user remove ID") {
				t.Errorf("the doctor of %s says %+v", at, f)
			}
		}
		if _, err := tm.p["one"].api.Worklist(t.Context(), api.WorklistQuery{User: of[false].ID}); err != nil {
			t.Errorf("by its ID the user has no list: %v", err)
		}
		if _, err := tm.p["zoe"].api.Worklist(t.Context(), api.WorklistQuery{User: of[true].ID}); err != nil {
			t.Errorf("by its ID the partner has no list: %v", err)
		}
		if _, err := tm.p["one"].api.RemoveUser(t.Context(), "zoe"); err == nil {
			t.Error("one of two was removed by the name of both")
		}
		if _, err := tm.p["one"].api.RemoveUser(t.Context(), of[false].ID); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		if _, err := tm.p["zoe"].api.Worklist(t.Context(), api.WorklistQuery{User: "zoe"}); err != nil {
			t.Errorf("once the other is removed: %v", err)
		}
		if f := tm.finding("two", "users"); f.State != "" {
			t.Errorf("once the other is removed the doctor says %+v", f)
		}
	})
}
