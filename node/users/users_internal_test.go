package users

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/membership/trust/trusttest"
	"github.com/mutirao-mesh/mutirao/membership/users"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// world is all that surrounds the users of one node, and what happened in it.
type world struct {
	t      *testing.T
	team   trusttest.Team
	issuer trust.Issuer
	now    time.Time
	awake  time.Duration
	full   bool // the disk
	stored map[string][]byte
	keys   map[string]ed25519.PrivateKey
	said   []string // what happened, in order
	last   *wire.Message
	drawn  uint16
	topic  *Topic
}

// found is the world of the founder's node.
func found(t *testing.T) *world {
	t.Helper()
	team := trusttest.New(t)
	w := &world{
		t: t, team: team, issuer: team.Ana, now: trusttest.Noon, stored: map[string][]byte{},
		keys: map[string]ed25519.PrivateKey{},
	}
	w.restart()
	return w
}

// restart loads what is stored.
func (w *world) restart() {
	w.t.Helper()
	set, err := Load(w.team.Mesh, w, w.team.Known)
	if err != nil {
		w.t.Fatal(err)
	}
	w.topic, err = New(set, Surroundings{
		Self: w.issuer.ID(), Mesh: w.team.Mesh, Clock: w, Log: slog.New(slog.DiscardHandler), Peers: w, Members: w,
		Certificates: w, Keys: ring{w}, Random: w.random, Lifetime: trusttest.Year, Nudge: func() {},
		Publish: func(api.Event) {},
		Person: func(word []byte, signed [sha256.Size]byte) (users.Person, error) {
			s, err := users.DecodeSpoken(word)
			if err == nil {
				err = s.Signature.Verify(signed)
			}
			if err != nil {
				return users.Person{}, err
			}
			return s.Shown(w.team.Mesh)
		},
		Work:  func(context.Context) (map[string]Work, error) { return nil, nil },
		Waits: func(string) []string { return nil },
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) CommitWait(writes []kv.Write) error {
	if w.full {
		return kv.ErrFull
	}
	w.say("stored")
	for _, x := range writes {
		if w.stored[string(x.Key)] = x.Value; x.Delete {
			delete(w.stored, string(x.Key))
		}
	}
	return nil
}

func (w *world) Scan(prefix []byte, fn func(key, value []byte) error) error {
	for k, v := range w.stored {
		if strings.HasPrefix(k, string(prefix)) {
			if err := fn([]byte(k), v); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *world) say(format string, args ...any) {
	w.said = append(w.said, fmt.Sprintf(format, args...))
}

// happened is what happened since it was last asked.
func (w *world) happened() string {
	out := strings.Join(w.said, ", ")
	w.said = nil
	return out
}

func (w *world) random(n int) []byte {
	w.drawn++
	return slices.Repeat([]byte{byte(w.drawn), byte(w.drawn >> 8)}, n/2)
}

func (w *world) Now() moment.Now { return moment.Now{Wall: w.now, Awake: w.awake} }

func (w *world) Up(workflow.PartnerID) bool { return true }

func (w *world) UpPeers() []workflow.PartnerID { return []workflow.PartnerID{"eva", "rui"} }

func (w *world) Addrs() []string { return nil }

func (w *world) Transmit(p workflow.PartnerID, m *wire.Message) {
	w.last = m
	switch u := m.Users; {
	case u.Asks:
		w.say("%s is asked", p)
	case len(u.List) > 0:
		w.say("%s is sent %d", p, len(u.List))
	default:
		w.say("%s is told the digest", p)
	}
}

func (w *world) Broadcast(m *wire.Message) { w.Transmit("everybody", m) }

func (w *world) Refuse(why string, p workflow.PartnerID) { w.say("%s of %s refused", why, p) }

func (w *world) Request(context.Context, workflow.PartnerID, []string, string, []byte, time.Duration) ([]byte, error) {
	return nil, errors.New("nobody answers")
}

func (w *world) All() []membership.Partner {
	return []membership.Partner{{Record: membership.Record{Chain: trust.Chain{{Name: "engine"}}}}}
}

func (w *world) Get(workflow.PartnerID) (membership.Partner, bool) { return membership.Partner{}, true }

func (w *world) Known(p workflow.PartnerID) bool { return p == trusttest.IDOf("davi") }

func (w *world) Resolve(string) (workflow.PartnerID, error) { return "", membership.ErrNoPartner }

func (w *world) Name(p workflow.PartnerID) string {
	w.unlocked("the name of a partner")
	return string(p)
}

func (w *world) MayAdminister(string) error { return nil }

func (w *world) Issuer() trust.Issuer {
	w.unlocked("this node's certificate")
	return w.issuer
}

// unlocked checks that nobody is asked while what is known of users is locked.
func (w *world) unlocked(what string) {
	w.t.Helper()
	if !w.topic.Set.mu.TryLock() {
		w.t.Errorf("%s is asked for with a lock held", what)
		return
	}
	w.topic.Set.mu.Unlock()
}

// ring keeps keys in memory.
type ring struct{ w *world }

func (r ring) Make(user string) (ed25519.PrivateKey, error) {
	if r.w.keys[user] == nil {
		r.w.keys[user] = trusttest.KeyOf(string(r.w.random(8)))
	}
	return r.w.keys[user], nil
}

func (r ring) All() (map[string]ed25519.PrivateKey, []error) { return r.w.keys, nil }

func (r ring) Remove(user string) error { delete(r.w.keys, user); return nil }

// deliver gives another world's topic what the last message said.
func deliver(to *world, from workflow.PartnerID, list ...[]byte) {
	to.topic.Take(from, &wire.Message{Users: &wire.Records{List: list}})
}

// A user, and the token, are durable before anybody hears of them; a use of the token is
// durable before the certificate is given out. After a restart all of it is there.
func TestWhatIsSaidOfUsersIsStoredFirst(t *testing.T) {
	w := found(t)
	w.full = true
	if _, err := w.topic.Add(api.UserRequest{Name: "bia"}); !errors.Is(err, kv.ErrFull) || w.happened() != "" {
		t.Errorf("with a full disk: %v", err)
	}
	if n := len(w.topic.users(w.now)); n != 0 {
		t.Errorf("%d users of which nothing is stored", n)
	}
	w.full = false
	tok, err := w.topic.Add(api.UserRequest{Name: "bia", Roles: []string{"crew"}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := w.happened(), "stored, eva is sent 1, rui is sent 1"; got != want {
		t.Errorf("what happened: %s; want %s", got, want)
	}
	w.restart()
	word, err := users.ParseToken(tok.Token)
	if err != nil {
		t.Fatal(err)
	}
	req := users.EncodeRequest(users.NewRequest(word, trusttest.KeyOf("phone"), trusttest.KeyOf("engine")))
	w.full = true
	if _, err := w.topic.Redeem("engine", req); !errors.Is(err, kv.ErrFull) {
		t.Errorf("a use with a full disk: %v", err)
	}
	w.full = false
	first, err := w.topic.Redeem("engine", req)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := w.happened(), "sign-in of engine refused, stored, eva is sent 1, rui is sent 1"; got != want {
		t.Errorf("what happened: %s; want %s", got, want)
	}
	w.restart()
	again, err := w.topic.Redeem("engine", req)
	if err != nil || string(again) != string(first) {
		t.Errorf("the same key again, after a restart: %v", err)
	}
	if us := w.topic.users(w.now); len(us) != 1 || len(us[0].Devices) != 1 || !us[0].HasRole("crew") {
		t.Errorf("after a restart: %v", us)
	}
}

// A token for which there is no room leaves no user behind, and nothing that keeps the node
// from starting again.
func TestNoRoomForAToken(t *testing.T) {
	w := found(t)
	for i := range users.MaxTickets {
		if _, err := w.topic.Add(api.UserRequest{Name: fmt.Sprintf("u%d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	var refused *api.Error
	if _, err := w.topic.Add(api.UserRequest{Name: "bia"}); !errors.As(err, &refused) || refused.Code != api.Refused {
		t.Errorf("one more: %v; want it refused", err)
	}
	w.restart()
	if n := len(w.topic.users(w.now)); n != users.MaxTickets {
		t.Errorf("there are %d users, want %d", n, users.MaxTickets)
	}
}

// A record of others counts at once, even if it cannot be stored, and is passed on to all
// but the one that told of it. What one lacks is found by digests.
func TestRecordsOfOthersCountAtOnce(t *testing.T) {
	teller, w := found(t), found(t)
	if _, err := teller.topic.Add(api.UserRequest{Name: "bia"}); err != nil {
		t.Fatal(err)
	}
	record := teller.last.Users.List[0]
	var greeting wire.Message
	teller.topic.Greet("us", &greeting)
	w.topic.Take("eva", &greeting)
	if got, want := w.happened(), "eva is asked"; got != want {
		t.Errorf("eva has another digest: %s; want %s", got, want)
	}
	teller.happened()
	teller.topic.Take("us", w.last)
	if got, want := teller.happened(), "us is sent 1"; got != want {
		t.Errorf("we ask: %s; want %s", got, want)
	}
	w.full = true // and another tells it, before eva answers
	deliver(w, "rui", record, []byte("junk"))
	if got, want := w.happened(), "user-record of rui refused, eva is sent 1"; got != want { // the junk
		t.Errorf("what happened: %s; want %s", got, want)
	}
	if us := w.topic.users(w.now); len(us) != 1 {
		t.Errorf("users: %v", us)
	}
	deliver(w, "rui", record)
	if got := w.happened(); got != "" {
		t.Errorf("what is known already: %s", got)
	}
}

// Records that come together are stored together, and what one of them replaces goes with them.
func TestRecordsAreStoredTogether(t *testing.T) {
	teller, w := found(t), found(t)
	var list [][]byte
	made := func() {
		list = append(list, teller.last.Users.List...)
	}
	for i := range 100 {
		if _, err := teller.topic.Add(api.UserRequest{Name: fmt.Sprintf("u%d", i)}); err != nil {
			t.Fatal(err)
		}
		made()
	}
	for _, given := range []bool{true, false} { // the second takes the place of the first
		if _, err := teller.topic.ChangeRole(api.RoleRequest{User: "u1", Role: "crew"}, given); err != nil {
			t.Fatal(err)
		}
		made()
	}
	w.topic.Digest() // of none
	deliver(w, "eva", list...)
	if got, want := w.happened(), "stored, rui is sent 102"; got != want {
		t.Errorf("what happened: %s; want %s", got, want)
	}
	if len(w.stored) != 101 {
		t.Errorf("%d records are stored, want 100 users and the last change of a role", len(w.stored))
	}
	before := w.topic.Digest()
	if n := testing.AllocsPerRun(10, func() { w.topic.Digest() }); n > 0 {
		t.Errorf("a digest that has not changed is worked out again: %v allocations", n)
	}
	w.restart()
	if w.topic.Digest() != before {
		t.Error("after a restart it knows something else")
	}
}

// Others are told of a certificate once. Signing in again, after it could not be stored, says so
// only when it is.
func TestSigningInIsToldOnceAndStored(t *testing.T) {
	w := found(t)
	tok, err := w.topic.Add(api.UserRequest{Name: "bia"})
	if err != nil {
		t.Fatal(err)
	}
	w.happened()
	if _, err := w.topic.SignIn(t.Context(), tok.Token); err != nil {
		t.Fatal(err)
	}
	if got, want := w.happened(), "stored, eva is sent 1, rui is sent 1, stored"; got != want {
		t.Errorf("what happened: %s; want %s", got, want)
	}
	id := w.topic.users(w.now)[0].Devices[0]
	key := string(recordKey(users.Record{Device: &id}.ID()))
	delete(w.stored, key) // as if another had told it here when the disk was full
	w.full = true
	if _, err := w.topic.SignIn(t.Context(), tok.Token); !errors.Is(err, kv.ErrFull) {
		t.Errorf("with a full disk: %v", err)
	}
	w.full = false
	if _, err := w.topic.SignIn(t.Context(), tok.Token); err != nil || w.stored[key] == nil {
		t.Errorf("again: %v; stored: %t", err, w.stored[key] != nil)
	}
}

// A delegate that makes users without end fills its share. It is counted against the
// delegate, whoever brings it; what has no room is not asked for again and again; the
// founder goes on.
func TestADelegateThatFloods(t *testing.T) {
	w := found(t)
	var list [][]byte
	for n := range users.MaxOfDelegate + 100 {
		serial := trust.Serial{1, byte(n), byte(n >> 8)}
		a, err := users.NewAccount(w.team.Davi, fmt.Sprintf("u%d", n), nil, serial, trust.WallOf(w.now))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, users.EncodeRecord(users.Record{Account: &a}))
	}
	deliver(w, "eva", list...)
	davi := fmt.Sprintf("users-over-share of %s refused", trusttest.IDOf("davi"))
	if n := strings.Count(w.happened(), davi); n != 100 {
		t.Errorf("%d refusals are counted against the delegate", n)
	}
	if n := len(w.topic.users(w.now)); n != users.MaxOfDelegate {
		t.Errorf("%d users are listed", n)
	}
	if n := len(w.topic.IDs()); n != len(list) {
		t.Errorf("%d records are named to partners, want all %d, so that they are not sent again", n, len(list))
	}
	if _, err := w.topic.Add(api.UserRequest{Name: "bia"}); err != nil {
		t.Errorf("the founder: %v", err)
	}
	w.happened()
	for range 2*users.MaxRecords/len(list) + 1 {
		deliver(w, "eva", list...)
	}
	if got := w.happened(); !strings.Contains(got, "users-too-fast of eva refused") {
		t.Errorf("a partner that sends all again and again is not slowed down: %.80s", got)
	}
	all := trusttest.IDOf("davi")
	e, err := w.team.Ana.Evict(trust.Eviction{Partner: all, At: trust.WallOf(w.now)}, w.team.Known, nil)
	if err == nil {
		_, err = w.team.Known.Add(e)
	}
	if us := w.topic.users(w.now); err != nil || len(us) != 1 {
		t.Errorf("after the delegate's eviction %d users are listed: %v", len(us), err)
	}
}

// The certificates of users' keys are renewed before they end, and their end is the end
// where nobody renews them.
func TestKeysAreRenewed(t *testing.T) {
	w := found(t)
	tok, err := w.topic.Add(api.UserRequest{Name: "bia"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.topic.SignIn(t.Context(), tok.Token); err != nil {
		t.Fatal(err)
	}
	until := func() time.Time {
		us := w.topic.users(w.now)
		if len(us) != 1 || len(us[0].Devices) != 1 {
			t.Fatalf("users: %v", us)
		}
		return us[0].Devices[0].Leaf().NotAfter.Time()
	}
	first := until()
	pass := func(d time.Duration) {
		w.now, w.awake = w.now.Add(d), w.awake+d
		w.topic.Tick(w.Now())
	}
	pass(trusttest.Year / 2)
	if !until().Equal(first) {
		t.Error("renewed at half the time")
	}
	pass(trusttest.Year * 3 / 10)
	if !until().After(first) {
		t.Error("not renewed")
	}
	records := 0
	for k := range w.stored {
		if k[0] == Prefix {
			records++
		}
	}
	if records != 2 {
		t.Errorf("%d records are stored, want the account and the last certificate", records)
	}
	w.now = until().Add(25 * time.Hour)
	if us := w.topic.users(w.now); len(us) != 1 || len(us[0].Devices) != 0 {
		t.Errorf("after the end: %v", us)
	}
}

// A key that was removed, by an administrator or just before a crash, is not certified
// again: the user signs in with a new one.
func TestARemovedKeyIsNotUsedAgain(t *testing.T) {
	w := found(t)
	again := func() {
		t.Helper()
		tok, err := w.topic.Add(api.UserRequest{Name: "bia"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.topic.SignIn(t.Context(), tok.Token); err != nil {
			t.Fatal(err)
		}
		if us := w.topic.users(w.now); len(us) != 1 || len(us[0].Devices) != 1 {
			t.Fatalf("users: %v", us)
		}
	}
	again()
	u := w.topic.users(w.now)[0]
	old := w.keys[u.ID.String()]
	if _, err := w.topic.SignOut(api.SignOutRequest{User: "bia"}); err != nil {
		t.Fatal(err)
	}
	w.keys[u.ID.String()] = old // it was not deleted before a crash
	w.restart()
	again()
	if _, err := w.topic.Remove(string(w.topic.users(w.now)[0].Devices[0].Leaf().Key)); err != nil {
		t.Fatal(err)
	}
	again()
}

// A user whose key was certified by a clock that was far ahead signs in by another token, on
// the same device, once that clock is right.
func TestSigningInAfterAClockWasAhead(t *testing.T) {
	w := found(t)
	right := w.now
	signIn := func() error {
		tok, err := w.topic.Add(api.UserRequest{Name: "bia"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.topic.SignIn(t.Context(), tok.Token)
		return err
	}
	w.now = right.Add(trusttest.Year / 2)
	if err := signIn(); err != nil {
		t.Fatal(err)
	}
	w.now = right
	if us := w.topic.users(w.now); len(us) != 1 || len(us[0].Devices) != 0 {
		t.Fatalf("by a clock that is right: %v", us)
	}
	w.restart()
	if err := signIn(); err != nil {
		t.Errorf("with another token: %v", err)
	}
	if us := w.topic.users(w.now); len(us) != 1 || len(us[0].Devices) != 1 || len(w.keys) != 1 {
		t.Errorf("signed in again: %v", us)
	}
	if _, err := w.topic.ChangeRole(api.RoleRequest{User: "bia", Role: "crew"}, true); err != nil {
		t.Error(err)
	}
	link, err := w.topic.Link("bia", 0)
	if err != nil {
		t.Fatal(err)
	}
	word, err := users.ParseToken(link.Token)
	if err == nil {
		_, err = w.topic.Redeem("engine",
			users.EncodeRequest(users.NewRequest(word, trusttest.KeyOf("phone"), trusttest.KeyOf("engine"))))
	}
	if err != nil {
		t.Fatal(err)
	}
	if out, err := w.topic.SignOut(api.SignOutRequest{User: "bia"}); err != nil ||
		!slices.Equal(out.Devices, []string{string(trusttest.IDOf("engine"))}) {
		t.Errorf("signed out: %v, %v; want the other device left", out, err)
	}
}

// Names of users differ from those of users and partners, also to the eye.
func TestNamesOfUsers(t *testing.T) {
	w := found(t)
	for _, c := range []struct {
		name, why string
		code      api.Code
	}{
		{"lia", "", ""},
		{"1ia", "looks like that of the user lia", api.Refused},
		{"Lia", "looks like that of the user lia", api.Refused},
		{"engine", "there is a partner engine already", api.Refused},
		{"ENGINE", "looks like that of the partner engine", api.Refused},
		{"", "user name", api.Invalid},
		{"two words", "user name", api.Invalid},
		{"b\u0456a", "user name", api.Invalid}, // a Cyrillic letter among Latin ones
		{strings.Repeat("x", 129), "at most 128", api.Invalid},
	} {
		_, err := w.topic.Add(api.UserRequest{Name: c.name})
		var e *api.Error
		if c.why == "" && err == nil {
			continue
		}
		if !errors.As(err, &e) || e.Code != c.code || !strings.Contains(e.Message, c.why) {
			t.Errorf("%q: %v, want %s with %q", c.name, err, c.code, c.why)
		}
	}
}

// What roles users have is known at once when one is given or taken away, and within a second of
// what nobody says here: an eviction.
func TestRolesOfUsers(t *testing.T) {
	w := found(t)
	want := func(roles ...workflow.RoleName) {
		t.Helper()
		if got := w.topic.RolesOfUsers(w.now); !slices.Equal(got, roles) {
			t.Errorf("users have the roles %q, want %q", got, roles)
		}
	}
	want()
	for _, name := range []string{"lia", "bia"} {
		if _, err := w.topic.Add(api.UserRequest{Name: name, Roles: []string{"nurse"}}); err != nil {
			t.Fatal(err)
		}
	}
	want("nurse")
	if _, err := w.topic.ChangeRole(api.RoleRequest{User: "lia", Role: "cook"}, true); err != nil {
		t.Fatal(err)
	}
	want("cook", "nurse")
	if _, err := w.topic.Remove("lia"); err != nil {
		t.Fatal(err)
	}
	want("nurse")
	a, err := users.NewAccount(w.team.Davi, "rui", []workflow.RoleName{"pilot"}, trusttest.Serial("rui"),
		trust.WallOf(w.now))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.topic.add(users.Record{Account: &a}); err != nil {
		t.Fatal(err)
	}
	want("nurse", "pilot")
	w.team.Evict(t, w.team.Ana, "davi", trust.Serial{})
	w.now = w.now.Add(allFor)
	want("nurse")
}

// Of several users of one name whose keys are at a node, those who were removed are not meant: by the name the other
// one signs out, and then whoever was removed, of whom that is said.
func TestWhoWasRemovedIsNotSignedOutForAnother(t *testing.T) {
	w := found(t)
	signIn := func() string {
		t.Helper()
		tok, err := w.topic.Add(api.UserRequest{Name: "bia"})
		if err != nil {
			t.Fatal(err)
		}
		in, err := w.topic.SignIn(t.Context(), tok.Token)
		if err != nil {
			t.Fatal(err)
		}
		return in.ID
	}
	gone := signIn()
	if _, err := w.topic.Remove("bia"); err != nil {
		t.Fatal(err)
	}
	here := signIn()
	for _, want := range []api.SignedOut{
		{Name: "bia", ID: here, Devices: []string{}}, {Name: "bia", ID: gone, Devices: []string{}, Removed: true},
	} {
		if out, err := w.topic.SignOut(api.SignOutRequest{User: "bia"}); err != nil || !reflect.DeepEqual(*out, want) {
			t.Errorf("signed out: %+v, %v; want %+v", out, err, want)
		}
	}
	if _, err := w.topic.SignOut(api.SignOutRequest{User: "bia"}); err == nil {
		t.Error("nobody is left, and somebody was signed out")
	}
}

// A name is taken, and found, also as some keyboards and file systems write it, with an accent of its own.
func TestAUserIsFoundByAnotherFormOfTheName(t *testing.T) {
	w := found(t)
	if _, err := w.topic.Add(api.UserRequest{Name: "Zoe\u0308"}); err != nil {
		t.Fatal(err)
	}
	tok, err := w.topic.Add(api.UserRequest{Name: "Zo\u00eb"}) // another token of the same user
	if err == nil {
		_, err = w.topic.SignIn(t.Context(), tok.Token)
	}
	if err != nil {
		t.Fatal(err)
	}
	const other = "Zoe\u0308"
	if _, err := w.topic.ChangeRole(api.RoleRequest{User: other, Role: "crew"}, true); err != nil {
		t.Error(err)
	}
	if _, err := w.topic.Link(other, 0); err != nil {
		t.Error(err)
	}
	if _, err := w.topic.SignOut(api.SignOutRequest{User: other}); err != nil {
		t.Error(err)
	}
	if _, err := w.topic.Remove(other); err != nil {
		t.Error(err)
	}
	if _, err := w.topic.Remove(other); err == nil || !strings.Contains(err.Error(), "was removed") {
		t.Errorf("once more: %v, want that the user was removed", err)
	}
}
