package node_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/membership/users"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// user is a user as a node lists it; the zero value, if it does not.
func (tm *team) user(at, name string) api.User {
	tm.t.Helper()
	list, err := tm.p[at].api.Users(tm.t.Context())
	if err != nil {
		tm.t.Fatal(err)
	}
	i := slices.IndexFunc(list, func(u api.User) bool { return u.Name == name })
	if i < 0 {
		return api.User{}
	}
	return list[i]
}

func (tm *team) addUser(at, name string, roles ...string) string {
	tm.t.Helper()
	tok, err := tm.p[at].api.AddUser(tm.t.Context(), api.UserRequest{Name: name, Roles: roles})
	if err != nil {
		tm.t.Fatal(err)
	}
	return tok.Token
}

func (tm *team) signIn(at, token string) error {
	_, err := tm.p[at].api.SignInUser(tm.t.Context(), token)
	return err
}

// keyFiles are the files of users' keys in a partner's folder.
func (p *partner) keyFiles() []os.FileInfo {
	p.t.Helper()
	list, err := os.ReadDir(filepath.Join(p.dir, "users"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		p.t.Fatal(err)
	}
	var out []os.FileInfo
	for _, f := range list {
		info, err := f.Info()
		if err != nil {
			p.t.Fatal(err)
		}
		out = append(out, info)
	}
	return out
}

// Users, their devices and roles are the same on all nodes, whoever was away when, and
// survive a crash right after they were acknowledged.
func TestUsersSpreadAndOutliveCrashes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three")
		tm.disconnect("one", "three")
		tm.disconnect("two", "three")
		token := tm.addUser("one", "bia", "crew")
		tm.p["one"].crash()
		tm.p["one"].start()
		tm.connect("one", "two")
		pass(time.Second)
		if err := tm.signIn("two", token); err != nil {
			t.Fatal("after a crash of the node that made the token:", err)
		}
		tm.p["two"].crash()
		tm.p["two"].start()
		tm.connect("one", "two")
		pass(time.Second)
		if u := tm.user("two", "bia"); !u.Here || !slices.Equal(u.Devices, []string{"two"}) {
			t.Errorf("after a crash of the node at which she signed in: %+v", u)
		}
		files := tm.p["two"].keyFiles()
		if len(files) != 1 || files[0].Mode().Perm() != 0o600 {
			t.Errorf("her key is in %v", files)
		}
		if _, err := tm.p["one"].api.GrantRole(t.Context(), api.RoleRequest{User: "bia", Role: "driver"}); err != nil {
			t.Fatal(err)
		}
		tm.p["one"].leave()
		tm.connect("two", "three") // who brings what it was told
		pass(time.Second)
		if u := tm.user("three", "bia"); !u.Active || u.Here || !slices.Equal(u.Roles, []string{"crew", "driver"}) {
			t.Errorf("by way of another: %+v", u)
		}
		tm.p["one"].start()
		if _, err := tm.p["one"].api.RemoveUser(t.Context(), "bia"); err != nil {
			t.Fatal(err)
		}
		tm.connect("one", "three")
		pass(time.Second)
		for _, at := range []string{"one", "two", "three"} {
			if u := tm.user(at, "bia"); u.Name != "" {
				t.Errorf("%s lists a user that was removed: %+v", at, u)
			}
		}
		if _, err := tm.p["two"].api.LinkUser(t.Context(), "bia", 0); err == nil {
			t.Error("a user that was removed links another device")
		}
		if _, err := tm.p["two"].api.SignOutUser(t.Context(), api.SignOutRequest{User: "bia"}); err != nil || len(tm.p["two"].keyFiles()) > 0 {
			t.Errorf("its key stays: %v, %v", err, tm.p["two"].keyFiles())
		}
	})
}

// A node that comes back to several partners, all of whom know the same users that it does
// not, is sent them by one, and sends them to nobody.
func TestUsersAreFetchedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three", "four")
		for _, p := range []string{"one", "two", "three"} {
			tm.disconnect("four", p)
		}
		for i := range 100 {
			tm.addUser("one", fmt.Sprintf("u%d", i))
		}
		pass(2 * time.Minute)
		four, sent := tm.p["four"].id(), map[workflow.PartnerID]int{}
		for _, p := range []string{"one", "two", "three"} {
			tm.connect("four", p)
		}
		pass(2 * time.Minute)
		if n := len(listNames(tm, "four")); n != 104 {
			t.Errorf("it lists %d, want 100 users and 4 partners", n)
		}
		tm.f.sent(func(c carried) bool {
			if c.m.Users != nil && (c.to == four || c.from == four) {
				sent[c.from] += len(c.m.Users.List)
			}
			return false
		})
		all := 0
		for _, n := range sent {
			all += n
		}
		if all != 100 || sent[four] != 0 {
			t.Errorf("records to it and from it: %v; want 100 from one partner", sent)
		}
	})
}

// What lies among the keys of users and is none keeps nobody from working: the node starts,
// the users whose keys are there are signed in, and the doctor names the rest.
func TestStrayFilesAmongTheKeysOfUsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one")
		if err := tm.signIn("one", tm.addUser("one", "bia")); err != nil {
			t.Fatal(err)
		}
		tm.p["one"].leave()
		dir := filepath.Join(tm.p["one"].dir, "users")
		own := tm.p["one"].keyFiles()[0].Name()
		id := strings.Repeat("0123456789abcdef", 2)
		for name, mode := range map[string]os.FileMode{"notes": 0o600, id: 0o644} {
			file := filepath.Join(dir, name)
			if err := errors.Join(os.WriteFile(file, []byte("no key\n"), 0o600), os.Chmod(file, mode)); err != nil {
				t.Fatal(err)
			}
		}
		key, err := os.ReadFile(filepath.Join(dir, own))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "copy"), key, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		tm.p["one"].start()
		if u := tm.user("one", "bia"); !u.Here {
			t.Errorf("the user is signed in no more: %+v", u)
		}
		d, err := tm.p["one"].api.Doctor(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(d.Findings, func(f api.Finding) bool { return f.Check == "users" })
		for _, name := range []string{"notes", id, `"copy"`} {
			if i < 0 || !strings.Contains(d.Findings[i].What, name) {
				t.Errorf("the doctor does not name %s: %+v", name, d.Findings)
			}
		}
	})
}

// A device signs a user in by way of a member that both can reach; if the answer is lost,
// the same token does it again, with the same key.
func TestSigningInOverLossesAndOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three")
		token := tm.addUser("one", "bia")
		pass(time.Second)
		tm.disconnect("one", "three")
		tm.disconnect("two", "three")
		tm.f.hide(tm.p["one"].id(), true)
		if err := tm.signIn("three", token); err == nil {
			t.Error("signed in with nobody to ask")
		}
		before := tm.p["three"].keyFiles()
		if len(before) != 1 {
			t.Fatalf("the key is not kept for another attempt: %v", before)
		}
		tm.f.hide(tm.p["one"].id(), false)
		tm.connect("two", "three")
		pass(time.Second)
		if err := tm.signIn("three", token); err != nil {
			t.Fatal(err)
		}
		if after := tm.p["three"].keyFiles(); len(after) != 1 || !after[0].ModTime().Equal(before[0].ModTime()) {
			t.Error("another key was made")
		}
		wantRefusal(t, "another device with the same token", tm.signIn("two", token), "used already")
		// Nothing proves a refusal, and the key may have been certified all the same: it stays.
		if n := len(tm.p["two"].keyFiles()); n != 1 {
			t.Errorf("after a refusal there are %d keys, want 1", n)
		}
	})
}

// With a partner that is evicted the users' keys at its node are void, and a device that
// was linked there; a device that an administrator signed in stays.
func TestUsersOfAnEvictedPartner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three")
		if err := tm.signIn("two", tm.addUser("one", "bia")); err != nil {
			t.Fatal(err)
		}
		link, err := tm.p["two"].api.LinkUser(t.Context(), "bia", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if err := tm.signIn("three", link.Token); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		if u := tm.user("one", "bia"); !slices.Equal(u.Devices, []string{"three", "two"}) {
			t.Fatalf("before: %+v", u)
		}
		tm.expel("one", "two")
		pass(time.Second)
		for _, at := range []string{"one", "three"} {
			if u := tm.user(at, "bia"); len(u.Devices) != 0 || u.Active {
				t.Errorf("at %s: %+v", at, u)
			}
		}
		if err := tm.signIn("three", tm.addUser("one", "bia")); err != nil {
			t.Fatal(err)
		}
		if u := tm.user("three", "bia"); !u.Here || len(u.Devices) != 1 {
			t.Errorf("signed in again: %+v", u)
		}
	})
}

// A user has the capabilities of the nodes at which the user works, and none of those that have left for good, though
// the user's key is still there.
func TestAUserHasNothingOfNodesThatAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three")
		tm.profile("two", api.ProfileChange{Capabilities: &[]string{"boat"}})
		if err := tm.signIn("two", tm.addUser("one", "bia", "crew")); err != nil {
			t.Fatal(err)
		}
		link, err := tm.p["two"].api.LinkUser(t.Context(), "bia", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if err := tm.signIn("three", link.Token); err != nil {
			t.Fatal(err)
		}
		tm.add("one", `
workflow: crossing
distribution: {mechanism: Typical}
tasks:
  row: {type: manual, role: crew, suitability: {boat: 1}}
`)
		pass(time.Second)
		offered := func() []string {
			id := tm.begin("one", "crossing", map[string]string{"main": "one"})
			pass(time.Second)
			return tm.show("one", id).Tasks[0].OfferedTo
		}
		if to := offered(); !slices.Equal(to, []string{"bia"}) {
			t.Fatalf("while the node with the boat is here it is offered to %v", to)
		}
		if _, err := tm.leaveNode("two", true); err != nil {
			t.Fatal(err)
		}
		tm.p["two"].gone()
		pass(time.Minute)
		if to := offered(); len(to) > 0 {
			t.Errorf("when it has left for good it is offered to %v", to)
		}
	})
}

// Of those to whom an item is offered nobody is named who was removed since.
func TestAnOfferNamesNobodyWhoWasRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three")
		for at, user := range map[string]string{"two": "bia", "three": "rui"} {
			tm.profile(at, api.ProfileChange{Capabilities: &[]string{"boat"}})
			if err := tm.signIn(at, tm.addUser("one", user, "crew")); err != nil {
				t.Fatal(err)
			}
		}
		tm.add("one", `
workflow: crossing
distribution: {mechanism: Typical}
tasks:
  row: {type: manual, role: crew, suitability: {boat: 1}}
`)
		pass(time.Second)
		id := tm.begin("one", "crossing", map[string]string{"main": "one"})
		pass(time.Second)
		if to := tm.show("one", id).Tasks[0].OfferedTo; !slices.Equal(to, []string{"bia", "rui"}) {
			t.Fatalf("it is offered to %v", to)
		}
		if _, err := tm.p["one"].api.RemoveUser(t.Context(), "rui"); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		if to := tm.show("one", id).Tasks[0].OfferedTo; !slices.Equal(to, []string{"bia"}) {
			t.Errorf("after rui was removed it is offered to %v", to)
		}
	})
}

// A member that is no administrator and sends records about users gets none in; what it
// sends is counted, and people see of whom.
func TestAMemberCannotMakeUsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		tm.addUser("one", "bia")
		pass(time.Second)
		m := &wire.Message{Users: &wire.Records{}}
		for range 100 {
			m.Users.List = append(m.Users.List, []byte("no record"))
		}
		frame, err := wire.Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		for range 200 { // 20,000 of them
			tm.p["one"].node.OnFrame(tm.p["two"].id(), frame)
		}
		counted := map[string]uint64{}
		list, err := tm.p["one"].api.Partners(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range list {
			for _, r := range p.Refused {
				counted[p.Name+" "+r.Reason] = r.Times
			}
		}
		verified, tooFast := counted["two user-record"], counted["two users-too-fast"]
		if verified > 2*users.MaxRecords || verified == 0 || tooFast == 0 {
			t.Errorf("counted: %v", counted)
		}
		d, err := tm.p["one"].api.Doctor(context.Background())
		if err != nil || !slices.ContainsFunc(d.Findings,
			func(f api.Finding) bool { return strings.Contains(f.What, "records about users") }) {
			t.Errorf("the doctor does not say it: %v", err)
		}
		if n := len(listNames(tm, "one")); n != 3 {
			t.Errorf("%d users are listed", n)
		}
	})
}

func listNames(tm *team, at string) (out []string) {
	list, err := tm.p[at].api.Users(tm.t.Context())
	if err != nil {
		tm.t.Fatal(err)
	}
	for _, u := range list {
		out = append(out, u.Name)
	}
	return out
}

// People's tasks count for the partner that has them: to do, begun, done; also once the
// instance has ended, and after a restart.
func TestPeoplesWorkIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		tm.add("one", "workflow: visit\nversion: 1\ntasks:\n  go: {type: manual}\n")
		id := tm.begin("one", "visit", map[string]string{"main": "two"})
		pass(5 * time.Second)
		counts := func(at string) [3]int {
			u := tm.user(at, "two")
			return [3]int{u.Done, u.Assigned, u.Selected}
		}
		is := func(what string, want [3]int) {
			t.Helper()
			for _, at := range []string{"one", "two"} {
				if got := counts(at); got != want {
					t.Errorf("%s, at %s: %v, want %v", what, at, got, want)
				}
			}
		}
		is("to do", [3]int{0, 1, 0})
		two := tm.p["two"].api
		if err := two.BeginTask(t.Context(), api.BeginRequest{ID: id, Task: "go"}); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		is("begun", [3]int{0, 0, 1})
		if err := two.FinishTask(t.Context(), api.FinishRequest{ID: id, Task: "go"}); err != nil {
			t.Fatal(err)
		}
		pass(5 * time.Second)
		is("done", [3]int{1, 0, 0})
		tm.p["one"].leave()
		tm.p["one"].start()
		pass(time.Second)
		if got := counts("one"); got != [3]int{1, 0, 0} {
			t.Errorf("after a restart: %v", got)
		}
	})
}
