package node_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/joining"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// newcomer is somebody with an empty folder.
func (tm *team) newcomer(name string) *partner {
	return &partner{
		t: tm.t, f: tm.f, name: name, dir: filepath.Join(tm.t.TempDir(), name), disk: newDisk(), hand: newHand(),
	}
}

// idIn is whose folder it is.
func idIn(t *testing.T, dir string) workflow.PartnerID {
	t.Helper()
	m, err := node.LoadMember(dir)
	if err != nil {
		t.Fatal(err)
	}
	return m.ID()
}

func (tm *team) invite(at string, r api.InviteRequest) string {
	tm.t.Helper()
	inv, err := tm.p[at].api.Invite(tm.t.Context(), r)
	if err != nil {
		tm.t.Fatal(err)
	}
	return inv.Token
}

func wantRefusal(t *testing.T, what string, err error, why string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("%s: %v; want a refusal that says %q", what, err, why)
	}
}

// An invitation is good for as many uses as it says, and for as long; it is
// counted durably, so a restart of its issuer gives nothing away.
func TestInvitation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one")
		one := tm.p["one"]
		twice := tm.invite("one", api.InviteRequest{Uses: 2, Roles: []string{"crew"}})
		short := tm.invite("one", api.InviteRequest{Expires: api.Span(time.Hour)})
		a := tm.newcomer("a")
		if err := tm.join(a, twice); err != nil {
			t.Fatal(err)
		}
		wantRefusal(t, "joining twice into one folder", tm.join(a, twice), "belongs to a mesh already")
		one.crash()
		one.start()
		if err := tm.join(tm.newcomer("b"), twice); err != nil {
			t.Fatal("after a restart of the issuer:", err)
		}
		wantRefusal(t, "a third use of two", tm.join(tm.newcomer("c"), twice), "used up")
		one.crash()
		one.start()
		wantRefusal(t, "a third use of two, after a restart", tm.join(tm.newcomer("d"), twice), "used up")
		pass(2 * time.Hour)
		wantRefusal(t, "an expired invitation", tm.join(tm.newcomer("e"), short), "expired")
		one.crash()
		wantRefusal(t, "an issuer that is away", tm.join(tm.newcomer("f"), twice), "no answer at")
		one.start()

		a.start()
		tm.p["a"] = a
		st, err := a.api.Status(t.Context())
		if err != nil || len(st.Roles) != 1 || st.Roles[0] != "crew" {
			t.Errorf("the newcomer's roles are %v, %v; want crew", st.Roles, err)
		}
		_, err = a.api.Invite(t.Context(), api.InviteRequest{})
		wantRefusal(t, "an invitation by a member who is no delegate", err, "may not invite")
	})
}

// Two partners of one name could not be told apart; a member that is gone for
// good has left its name to others.
func TestJoiningByANameThatIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		twice := tm.invite("one", api.InviteRequest{Uses: 2})
		wantRefusal(t, "another one", tm.join(tm.newcomer("one"), twice), "the name one is taken in mesh test")
		wantRefusal(t, "another two", tm.join(tm.newcomer("two"), twice), "the name two is taken in mesh test")
		tm.expel("one", "two")
		synctest.Wait()
		if err := tm.join(tm.newcomer("two"), twice); err != nil {
			t.Errorf("two, whose device was lost, with another: %v", err)
		}
		if err := tm.join(tm.newcomer("three"), twice); err != nil {
			t.Errorf("the refusals cost a use: %v", err)
		}
	})
}

// Sentences tell two partners of one name apart.
func TestSentencesTellNamesakesApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		tm.add("one", chain)
		id := tm.begin("one", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "one"})
		pass(10 * time.Second)
		first := tm.p["two"].id()
		token := tm.invite("one", api.InviteRequest{})
		tm.expel("one", "two")
		synctest.Wait()
		again := tm.newcomer("two")
		if err := tm.join(again, token); err != nil {
			t.Fatal(err)
		}
		again.start()
		tm.p["two"] = again
		tm.connect("one", "two")
		pass(10 * time.Second)
		log, err := tm.p["one"].api.Log(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if want := "pb=two (" + first.Short() + ")"; !strings.Contains(log[0].Text, want) {
			t.Errorf("%s; want %s", log[0].Text, want)
		}
		label := "two (" + first.Short() + ")"
		tm.add("one", surveys)
		flight, _ := tm.survey("one", "north") // at the second two
		wantRefusal(t, "to complete what another holds",
			tm.p["one"].api.FinishTask(t.Context(), api.FinishRequest{ID: flight, Task: "fly"}),
			"task fly is held by two ("+again.id().Short()+")")
		for _, p := range tm.show("one", id).Partitions {
			if p.Name == "pb" && p.Partner != label {
				t.Errorf("pb is at %s, want %s", p.Partner, label)
			}
		}
		_, err = tm.p["one"].api.SetElectorate(t.Context(), api.ElectorateRequest{Set: []string{"one", label}})
		wantRefusal(t, "an evicted voter, named as people are shown it", err, label+" was evicted and cannot vote")
		_, err = tm.p["one"].api.Elect(t.Context(), api.ElectRequest{Candidate: label})
		wantRefusal(t, "an evicted candidate", err, label+" was evicted and cannot be coordinator")
	})
}

// Nor could those whose names look the same: in two alphabets, or in a mixture.
func TestJoiningByANameThatLooksLikeAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "cop")
		once := tm.invite("one", api.InviteRequest{})
		wantRefusal(t, "cop in Cyrillic", tm.join(tm.newcomer("\u0441\u043e\u0440"), once),
			"looks like cop, which is taken in mesh test")
		wantRefusal(t, "one with a Cyrillic o", tm.join(tm.newcomer("\u043ene"), once), "letters of one alphabet")
		if err := tm.join(tm.newcomer("\u043a\u043e\u0442"), once); err != nil {
			t.Errorf("a Cyrillic name that is nobody else's: %v", err)
		}
	})
}

// Whoever joined and was never up can be evicted by whom it has its certificate of, by name or whole ID, also
// after a restart and when the invitation has run out. It is on no partner list.
func TestEvictingWhoWasNeverUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		twice := tm.invite("one", api.InviteRequest{Uses: 4, Expires: api.Span(time.Hour)})
		for _, name := range []string{"never", "ever", "later", "double"} {
			p := tm.newcomer(name)
			if err := tm.join(p, twice); err != nil {
				t.Fatal(err)
			}
			tm.p[name] = p
		}
		again := tm.newcomer("double")
		if err := tm.join(again, tm.invite("one", api.InviteRequest{})); err != nil {
			t.Fatal(err)
		}
		ever := tm.p["ever"]
		ever.start()
		tm.connect("ever", "one")
		pass(26 * time.Hour)
		tm.p["one"].crash()
		tm.p["one"].start()
		tm.connect("one", "two")
		tm.connect("one", "ever")
		evict := func(at, who string, check bool) (*api.Evicted, error) {
			return tm.p[at].api.Evict(t.Context(), api.EvictRequest{Partner: who, Check: check})
		}
		if _, err := evict("one", "never-invited", false); err == nil ||
			!strings.Contains(err.Error(), "no such partner") {
			t.Errorf("somebody who is not there: %v", err)
		}
		if _, err := evict("two", "never", false); err == nil {
			t.Error("two, who invited nobody, evicts somebody whom it does not know")
		}
		for _, again := range []bool{false, true} {
			if e, err := evict("one", "never", true); err != nil || !e.Unseen || e.Name != "never" ||
				e.Already != again {
				t.Errorf("it is only asked about (evicted: %t): %+v, %v", again, e, err)
			}
			if e, err := evict("one", "never", false); err != nil || !e.Unseen || e.Already != again {
				t.Errorf("it is evicted (before: %t): %+v, %v", again, e, err)
			}
		}
		if e, err := evict("one", "ever", true); err != nil || e.Unseen {
			t.Errorf("somebody who was up: %+v, %v", e, err)
		}
		if _, err := evict("one", "double", false); err == nil ||
			!strings.Contains(err.Error(), "2 partners joined as") {
			t.Errorf("two of one name: %v", err)
		}
		for _, p := range []*partner{tm.p["double"], again} {
			if e, err := evict("one", string(idIn(t, p.dir)), false); err != nil || !e.Unseen {
				t.Errorf("one of two of a name, by its ID: %+v, %v", e, err)
			}
		}
		tm.p["never"].start()
		tm.p["later"].start()
		tm.connect("two", "later")
		pass(time.Minute)
		if !tm.p["two"].node.Evicted(tm.p["never"].id()) || tm.p["two"].node.Evicted(tm.p["later"].id()) {
			t.Error("two was not told who is evicted")
		}
		if e, err := evict("one", "later", false); err != nil || e.Unseen {
			t.Errorf("somebody who came late is evicted from the list: %+v, %v", e, err)
		}
	})
}

// A join that was refused, or reached nobody, leaves the folder as it was: nothing where there was
// nothing, and all that was there. Where the answer to it was lost, the key stays, and the same invitation goes on.
func TestAJoinThatFailedLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one")
		once := tm.invite("one", api.InviteRequest{})
		other := tm.invite("one", api.InviteRequest{})
		if err := tm.join(tm.newcomer("a"), once); err != nil {
			t.Fatal(err)
		}
		deep := tm.newcomer("b")
		deep.dir = filepath.Join(deep.dir, "c", "d")
		wantRefusal(t, "a second use of one", tm.join(deep, once), "used up")
		if _, err := os.Stat(filepath.Dir(filepath.Dir(deep.dir))); !os.IsNotExist(err) {
			t.Errorf("of the folder something was left: %v", err)
		}
		full := tm.newcomer("c")
		if err := os.MkdirAll(full.dir, 0o700); err != nil {
			t.Fatal(err)
		}
		note := filepath.Join(full.dir, "note")
		if err := os.WriteFile(note, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		wantRefusal(t, "a second use of one", tm.join(full, once), "used up")
		if list, err := os.ReadDir(full.dir); err != nil || len(list) != 1 || list[0].Name() != "note" {
			t.Errorf("a folder with a note has %v (%v)", list, err)
		}
		tm.p["one"].crash()
		wantRefusal(t, "an issuer that is away", tm.join(full, other), "no answer at")
		if list, err := os.ReadDir(full.dir); err != nil || len(list) != 1 {
			t.Errorf("nobody was reached, and a folder with a note has %v (%v)", list, err)
		}
		tm.p["one"].start()
		lost := tm.newcomer("e")
		tm.f.unheard = func(_ workflow.PartnerID, protocol string) bool { return protocol == joining.ProtocolProof }
		wantRefusal(t, "an answer that was lost", tm.join(lost, other), "no answer at")
		key, err := os.ReadFile(filepath.Join(lost.dir, "key"))
		if err != nil {
			t.Fatal("the key that may be certified is gone: ", err)
		}
		tm.f.unheard = nil
		if err := tm.join(lost, other); err != nil {
			t.Fatal(err)
		}
		if same, err := os.ReadFile(filepath.Join(lost.dir, "key")); err != nil || string(same) != string(key) {
			t.Errorf("another key was made (%v)", err)
		}
		// Its answer was lost, and then the issuer refuses: nothing was issued, and nothing stays.
		times := 0
		tm.f.unheard = func(_ workflow.PartnerID, protocol string) bool {
			if protocol == joining.ProtocolProof {
				times++
			}
			return protocol == joining.ProtocolProof && times == 1
		}
		taken := tm.newcomer("one")
		taken.dir = filepath.Join(taken.dir, "again")
		wantRefusal(t, "a name that is taken", tm.join(taken, tm.invite("one", api.InviteRequest{})), "is taken")
		if _, err := os.Stat(taken.dir); times < 2 || !os.IsNotExist(err) {
			t.Errorf("after %d answers the folder is there: %v", times, err)
		}
	})
}

// A newcomer that cannot reach the issuer has a member that the invitation names pass
// its requests on; the uses are counted all the same, and a refusal is the issuer's.
func TestJoiningByAnotherMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		once := tm.invite("one", api.InviteRequest{Roles: []string{"crew"}})
		tm.f.hide(tm.p["one"].id(), true)
		a := tm.newcomer("a")
		if err := tm.join(a, once); err != nil {
			t.Fatal(err)
		}
		wantRefusal(t, "a second use of one", tm.join(tm.newcomer("b"), once), "invitation is used up: 1 of 1 uses")
		tm.disconnect("one", "two")
		synctest.Wait()
		wantRefusal(t, "an issuer that nobody reaches", tm.join(tm.newcomer("c"), once), errNoIssuer)

		tm.f.hide(tm.p["one"].id(), false)
		tm.p["a"] = a
		a.start()
		tm.connect("a", "one")
		synctest.Wait()
		if s := tm.partnerState("one", "a"); s != "active" {
			t.Errorf("one takes the newcomer for %s, want active", s)
		}
	})
}

const errNoIssuer = "the partner that made the invitation cannot be reached from here either"

// A use that cannot be stored is not granted, and not counted.
func TestInvitationOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one")
		once := tm.invite("one", api.InviteRequest{})
		tm.p["one"].disk.failWith(kv.ErrFull)
		a := tm.newcomer("a")
		wantRefusal(t, "joining while the issuer's disk is full", tm.join(a, once), "full")
		tm.p["one"].disk.failWith(nil)
		if err := tm.join(a, once); err != nil {
			t.Errorf("the failed attempt cost the invitation: %v", err)
		}
		wantRefusal(t, "a second use of one", tm.join(tm.newcomer("b"), once), "used up")
	})
}

// A node's own name, and the partners that it met, outlive a restart; partners
// that went down in good order come back.
func TestPartnersAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		one, two := tm.p["one"], tm.p["two"]
		two.leave()
		if s := tm.partnerState("one", "two"); s != "unreachable" {
			t.Errorf("one thinks that two is %s, want unreachable", s)
		}
		one.leave()
		two.start()
		one.start()
		for from, to := range map[*partner]*partner{one: two, two: one} {
			if want, at := from.plug.wants(to.id()); !want && from == two {
				t.Errorf("%s does not look for %s (at %v)", from.name, to.name, at)
			}
		}
		tm.connect("one", "two")
		synctest.Wait()
		for _, x := range [][2]string{{"one", "two"}, {"two", "one"}} {
			if s := tm.partnerState(x[0], x[1]); s != "active" {
				t.Errorf("%s thinks that %s is %s, want active", x[0], x[1], s)
			}
		}
	})
}

// Both leave at one moment, as on a Ctrl-C of a whole team: each hears the
// other's farewell. When they are back they must look for each other.
func TestPartnersWhoLeftTogetherFindEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		one, two := tm.p["one"], tm.p["two"]
		one.stop()
		two.stop()
		one.leave()
		two.leave()
		one.start()
		two.start()
		ofOne, at := one.plug.wants(two.id())
		ofTwo, _ := two.plug.wants(one.id())
		if !ofOne && !ofTwo {
			t.Errorf("neither looks for the other (one knows two at %v)", at)
		}
	})
}

func (tm *team) partnerState(at, name string) string {
	tm.t.Helper()
	ps, err := tm.p[at].api.Partners(tm.t.Context())
	if err != nil {
		tm.t.Fatal(err)
	}
	for _, p := range ps {
		if p.Name == name {
			return p.State
		}
	}
	return "unknown"
}
