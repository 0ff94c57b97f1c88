package users

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/membership/trust/trusttest"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// world is a mesh with users, and a set that knows all that was said of them.
type world struct {
	testing.TB
	trusttest.Team
	*Set
	said []Record
}

func newWorld(t testing.TB) *world {
	tm := trusttest.New(t)
	return &world{TB: t, Team: tm, Set: NewSet(tm.Mesh, tm.Known)}
}

var noon = trust.WallOf(trusttest.Noon)

// say adds a record that must be new and good.
func (w *world) say(r Record, err error) Record {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
	if _, fresh, err := w.Add(r); err != nil || !fresh {
		w.Fatalf("a record is not taken in: %v, %v", fresh, err)
	}
	w.said = append(w.said, r)
	return r
}

// user makes a user.
func (w *world) user(by trust.Issuer, name string, roles ...workflow.RoleName) Account {
	w.Helper()
	a, err := NewAccount(by, name, roles, trusttest.Serial(name), noon)
	return *w.say(Record{Account: &a}, err).Account
}

// cert describes the certificate of a key at a node.
func (w *world) cert(a Account, key, node string) Certificate {
	c := Certificate{
		Key: trusttest.IDOf(key), Node: trusttest.IDOf(node), Serial: trusttest.Serial(key),
		NotBefore: noon, NotAfter: trust.WallOf(trusttest.Noon.Add(trusttest.Year)),
	}
	c.Consent = Consent(trusttest.KeyOf(node), w.Mesh.ID(), a.ID(), c.Key)
	return c
}

// device certifies a user's first key.
func (w *world) device(by trust.Issuer, a Account, key, node string) Device {
	w.Helper()
	d, err := Certify(by, a, w.cert(a, key, node))
	return *w.say(Record{Device: &d}, err).Device
}

// link has a user's key bring in another.
func (w *world) link(key string, d Device, other, node string) Device {
	w.Helper()
	next, err := Link(w.Mesh, trusttest.KeyOf(key), d, w.cert(d.Account, other, node))
	return *w.say(Record{Device: &next}, err).Device
}

func (w *world) change(by trust.Issuer, a Account, role workflow.RoleName, given bool) {
	w.Helper()
	w.say(w.ChangeRole(by, a.ID(), role, given, trusttest.Serial(fmt.Sprint(role, given, len(w.said))), noon))
}

func (w *world) remove(by trust.Issuer, a Account, key string) {
	w.Helper()
	var id workflow.PartnerID
	if key != "" {
		id = trusttest.IDOf(key)
	}
	w.say(Remove(by, a.ID(), id, trusttest.Serial("remove "+key), noon))
}

func (w *world) signOut(key string, d Device) {
	w.Helper()
	w.say(w.SignOut(trusttest.KeyOf(key), d, trusttest.Serial("out "+key), noon))
}

// good are the keys that are good, of those named.
func (w *world) good(a Account, keys ...string) (out []string) {
	for _, k := range keys {
		if _, err := w.Key(a.ID(), trusttest.IDOf(k), trusttest.Noon); err == nil {
			out = append(out, k)
		}
	}
	return out
}

func equal(t testing.TB, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// An administrator makes a user; the user's keys certify further ones; roles change. All
// nodes say the same of it.
func TestAUserWithDevicesAndRoles(t *testing.T) {
	w := newWorld(t)
	bia := w.user(w.Davi, "bia", "crew", "attendant")
	phone := w.device(w.Davi, bia, "phone", "engine")
	w.link("phone", phone, "desk", "station")
	w.change(w.Ana, bia, "driver", true)
	w.change(w.Davi, bia, "crew", false)
	u, err := w.User(bia.ID(), trusttest.Noon)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "roles", u.Roles, trusttest.Roles("attendant", "driver"))
	var at []workflow.PartnerID
	for _, d := range u.Devices {
		at = append(at, d.Leaf().Node)
	}
	slices.Sort(at)
	want := []workflow.PartnerID{trusttest.IDOf("engine"), trusttest.IDOf("station")}
	slices.Sort(want)
	equal(t, "devices", at, want)
	w.change(w.Ana, bia, "crew", true)
	u, _ = w.User(bia.ID(), trusttest.Noon)
	if !u.HasRole("crew") || u.HasRole("cook") {
		t.Errorf("roles are %v", u.Roles)
	}
	// Side by side, where neither knows of the other.
	given, err := w.ChangeRole(w.Ana, bia.ID(), "pilot", true, trusttest.Serial("given"), noon)
	taken, terr := w.ChangeRole(w.Davi, bia.ID(), "pilot", false, trusttest.Serial("taken"), noon)
	w.say(taken, terr)
	w.say(given, err)
	if u, _ = w.User(bia.ID(), trusttest.Noon); u.HasRole("pilot") {
		t.Error("a role is given that was taken away side by side")
	}
}

// A user that is removed is no user any more, on whatever device; a removed key takes with
// it those that it brought in, and a user that signs out leaves them.
func TestRemovals(t *testing.T) {
	w := newWorld(t)
	bia := w.user(w.Ana, "bia")
	one := w.device(w.Ana, bia, "one", "engine")
	two := w.link("one", one, "two", "station")
	w.link("two", two, "three", "tablet")
	equal(t, "at first", w.good(bia, "one", "two", "three"), []string{"one", "two", "three"})

	w.signOut("one", one)
	equal(t, "signed out", w.good(bia, "one", "two", "three"), []string{"two", "three"})
	w.link("one", one, "late", "tablet") // dated back, as far as anybody can tell
	equal(t, "linked after signing out", w.good(bia, "late"), []string(nil))
	w.remove(w.Davi, bia, "two")
	equal(t, "two is removed", w.good(bia, "one", "two", "three"), []string(nil))

	rui := w.user(w.Ana, "rui")
	w.device(w.Ana, rui, "four", "engine")
	w.remove(w.Davi, rui, "")
	if _, err := w.Key(rui.ID(), trusttest.IDOf("four"), trusttest.Noon); !errors.Is(err, ErrRemoved) {
		t.Errorf("of a removed user: %v", err)
	}
	if _, err := w.User(rui.ID(), trusttest.Noon); !errors.Is(err, ErrRemoved) {
		t.Errorf("a removed user: %v", err)
	}
}

// A thief of a device that signs out, to keep what it has linked, keeps nothing once an
// administrator has removed the device: also what an administrator has renewed since.
func TestAThiefKeepsNothing(t *testing.T) {
	w := newWorld(t)
	bia := w.user(w.Ana, "bia")
	lost := w.device(w.Ana, bia, "lost", "engine")
	bad := w.link("lost", lost, "bad", "mal")
	renewed, err := w.Renew(w.Ana, bad, trusttest.Year, trusttest.Serial("again"), trusttest.Noon.Add(time.Hour))
	w.say(Record{Device: &renewed}, err)
	worse, err := w.Renew(w.Ana, w.link("bad", bad, "worse", "mal"), trusttest.Year, trusttest.Serial("worse"),
		trusttest.Noon.Add(time.Hour))
	w.say(Record{Device: &worse}, err)
	w.signOut("lost", lost)
	equal(t, "before", w.good(bia, "lost", "bad", "worse"), []string{"bad", "worse"})
	w.remove(w.Ana, bia, "lost")
	equal(t, "after", w.good(bia, "lost", "bad", "worse"), []string(nil))
}

// With a partner that is evicted, the keys at its node are void, and what they brought in.
func TestKeysAtAnEvictedPartner(t *testing.T) {
	w := newWorld(t)
	bia := w.user(w.Ana, "bia")
	lost := w.device(w.Ana, bia, "lost", "engine")
	w.link("lost", lost, "other", "station")
	w.device(w.Ana, bia, "own", "station")
	w.Evict(t, w.Davi, "engine", trust.Serial{})
	equal(t, "keys", w.good(bia, "lost", "other", "own"), []string{"own"})
}

// With a delegate that is evicted, what it said of users is void, unless the founder
// keeps it.
func TestUsersOfAnEvictedDelegate(t *testing.T) {
	for _, kept := range []bool{false, true} {
		w := newWorld(t)
		bia, rui := w.user(w.Davi, "bia"), w.user(w.Ana, "rui", "crew")
		w.device(w.Davi, bia, "phone", "engine")
		w.device(w.Davi, rui, "desk", "engine")
		w.change(w.Davi, rui, "crew", false)
		eva := w.user(w.Ana, "eva")
		w.remove(w.Davi, eva, "")
		var keep []trust.Serial
		if kept {
			keep = w.IssuedBy(trusttest.IDOf("davi"))
		}
		e, err := w.Ana.Evict(trust.Eviction{Partner: trusttest.IDOf("davi"), At: noon}, w.Known, nil, keep...)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Known.Add(e); err != nil {
			t.Fatal(err)
		}
		_, err = w.User(bia.ID(), trusttest.Noon)
		u, _ := w.User(rui.ID(), trusttest.Noon)
		equal(t, "bia is a user", err == nil, kept)
		_, err = w.User(eva.ID(), trusttest.Noon)
		equal(t, "eva is removed", errors.Is(err, ErrRemoved), kept)
		equal(t, "rui has no role", len(u.Roles) == 0, kept)
		equal(t, "rui's key is good", len(u.Devices) == 1, kept)
		// What it signs, or dates back, after its eviction is void in any case.
		late, err := NewAccount(w.Davi, "late", nil, trusttest.Serial("late"), noon)
		w.say(Record{Account: &late}, err)
		if _, err := w.User(late.ID(), trusttest.Noon); !errors.Is(err, trust.ErrRevoked) {
			t.Errorf("made after the eviction: %v", err)
		}
	}
}

// By a great number a delegate has the last word about a role among delegates. The number
// is bounded, so that the founder goes above it, and with the delegate's eviction it is void.
func TestARoleChangeOfAGreatNumber(t *testing.T) {
	w := newWorld(t)
	bia := w.user(w.Ana, "bia", "crew")
	second := trust.Issuer{Mesh: w.Mesh, Key: trusttest.KeyOf("eva")}
	second.Chain = w.Issue(t, w.Ana, trust.Certificate{
		Partner: second.ID(), Name: "eva", Delegate: true, Serial: trusttest.Serial("eva"),
	})
	takes := func(number uint64) Record {
		c := RoleChange{
			Mesh: w.Mesh.ID(), User: bia.ID(), Role: "crew", Number: number,
			By: wordOf(w.Davi, trusttest.Serial(fmt.Sprint(number)), noon),
		}
		c.By.Signature = trust.Sign(w.Davi.Key, roleDomain, c.body())
		return Record{Role: &c}
	}
	crew := func(want bool, when string) {
		t.Helper()
		u, err := w.User(bia.ID(), trusttest.Noon)
		equal(t, "bia has the role "+when, err == nil && u.HasRole("crew"), want)
	}
	for _, beyond := range []uint64{MaxNumber + 1, 1 << 63, 1<<64 - 1} {
		if _, fresh, err := w.Add(takes(beyond)); fresh || err == nil {
			t.Errorf("a delegate's change %d is taken in: %v", beyond, err)
		}
	}
	crew(true, "after what was refused")
	w.say(takes(MaxNumber), nil)
	crew(false, "after the greatest number")
	if _, err := w.ChangeRole(second, bia.ID(), "crew", true, trusttest.Serial("second"), noon); err == nil {
		t.Error("another delegate goes above the greatest number")
	}
	above, err := w.ChangeRole(w.Ana, bia.ID(), "crew", true, trusttest.Serial("above"), noon)
	if err != nil {
		t.Fatalf("the founder cannot go above a delegate's number: %v", err)
	}
	w.Evict(t, w.Davi, "engine", trust.Serial{}) // of somebody else: nothing changes
	crew(false, "before the delegate's eviction")
	w.Evict(t, w.Ana, "davi", trust.Serial{})
	crew(true, "after the delegate's eviction")
	w.change(second, bia, "crew", false)
	crew(false, "when another delegate changes it then")
	w.say(above, nil)
	crew(true, "after the founder's change")
}

// Certificates end, and are renewed before by the founder, or by the delegate that made the
// user.
func TestCertificatesEndAndAreRenewed(t *testing.T) {
	w := newWorld(t)
	bia := w.user(w.Davi, "bia")
	w.device(w.Davi, bia, "phone", "engine")
	key := trusttest.IDOf("phone")
	end := trusttest.Noon.Add(trusttest.Year)
	if _, err := w.Key(bia.ID(), key, end.Add(25*time.Hour)); !errors.Is(err, trust.ErrExpired) {
		t.Errorf("after the end: %v", err)
	}
	if _, err := w.Key(bia.ID(), key, trusttest.Noon.Add(-25*time.Hour)); !errors.Is(err, trust.ErrNotYet) {
		t.Errorf("before the beginning: %v", err)
	}
	late := trusttest.Noon.Add(trusttest.Year * 4 / 5)
	for by, want := range map[string]int{"ana": 1, "davi": 1, "engine": 0} {
		equal(t, "due for "+by, len(w.Due(trusttest.IDOf(by), trusttest.Year/4, late)), want)
	}
	equal(t, "due at noon", len(w.Due(w.Ana.ID(), trusttest.Year/4, trusttest.Noon)), 0)
	again, err := w.Renew(w.Ana, w.Due(w.Ana.ID(), trusttest.Year/4, late)[0], trusttest.Year,
		trusttest.Serial("again"), late)
	w.say(Record{Device: &again}, err)
	if _, err := w.Key(bia.ID(), key, end.Add(25*time.Hour)); err != nil {
		t.Errorf("renewed: %v", err)
	}
	equal(t, "due after that", len(w.Due(w.Ana.ID(), trusttest.Year/4, late)), 0)
}

// What nobody may say, or what was altered, is refused.
func TestForgedRecordsAreRefused(t *testing.T) {
	w := newWorld(t)
	bia := w.user(w.Ana, "bia")
	phone := w.device(w.Ana, bia, "phone", "engine")
	member := trust.Issuer{Mesh: w.Mesh, Key: trusttest.KeyOf("mal"), Chain: w.Member(t, w.Davi, "mal")}
	serial := trusttest.Serial("mal")
	altered := bia
	altered.Roles = trusttest.Roles("chief")
	stolen := phone
	stolen.Chain = []Certificate{phone.Leaf()}
	stolen.Chain[0].Key = trusttest.IDOf("mal")
	elsewhere := w.cert(bia, "other", "engine")
	elsewhere.Node = trusttest.IDOf("station")
	rui := w.user(w.Ana, "rui")
	linked := func(change func(*Certificate)) Record {
		d, err := Link(w.Mesh, trusttest.KeyOf("phone"), phone, w.cert(bia, "x", "mal"))
		if err != nil {
			t.Fatal(err)
		}
		c := &d.Chain[0]
		change(c)
		c.Signature = trust.Sign(trusttest.KeyOf("phone"), deviceDomain, c.body())
		return Record{Device: &d}
	}
	cases := map[string]func() (Record, error){
		"a delegate dates its word after its certificate": func() (Record, error) {
			a := Account{Mesh: w.Mesh.ID(), Name: "late", By: wordOf(w.Davi, serial, noon)}
			a.By.At = w.Davi.Chain.Leaf().NotAfter + 1
			a.By.Signature = trust.Sign(w.Davi.Key, accountDomain, a.body())
			return Record{Account: &a}, nil
		},
		"an administrator's removal keeps keys": func() (Record, error) {
			r := Removal{Mesh: w.Mesh.ID(), User: bia.ID(), Key: trusttest.IDOf("x"), By: wordOf(w.Ana, serial, noon)}
			r.Keep = []workflow.PartnerID{trusttest.IDOf("y")}
			r.By.Signature = trust.Sign(w.Ana.Key, removalDomain, r.body())
			return Record{Removal: &r}, nil
		},
		"a link outlives what linked it": func() (Record, error) {
			return linked(func(c *Certificate) { c.NotAfter += 86400 }), nil
		},
		"a link hides what linked it": func() (Record, error) {
			return linked(func(c *Certificate) { c.Linked = "" }), nil
		},
		"a key of another user": func() (Record, error) {
			d, err := Certify(w.Ana, bia, w.cert(bia, "fresh", "engine"))
			d.Account = rui
			return Record{Device: &d}, err
		},
		"a member makes a user": func() (Record, error) {
			a, err := NewAccount(member, "mal-2", nil, serial, noon)
			return Record{Account: &a}, err
		},
		"a member gives a role": func() (Record,
			error) {
			return w.ChangeRole(member, bia.ID(), "chief", true, serial, noon)
		},
		"a member removes a user":  func() (Record, error) { return Remove(member, bia.ID(), "", serial, noon) },
		"an account is altered":    func() (Record, error) { return Record{Account: &altered}, nil },
		"a certificate is altered": func() (Record, error) { return Record{Device: &stolen}, nil },
		"a node did not consent": func() (Record,
			error) {
			d, err := Certify(w.Ana, bia, elsewhere)
			return Record{Device: &d}, err
		},
		"a member certifies a key": func() (Record, error) {
			d, err := Certify(member, bia, w.cert(bia, "x", "mal"))
			return Record{Device: &d}, err
		},
		"another key links a device": func() (Record, error) {
			d, err := Link(w.Mesh, trusttest.KeyOf("mal"), phone, w.cert(bia, "x", "mal"))
			return Record{Device: &d}, err
		},
		"a key removes another": func() (Record, error) {
			r, err := w.SignOut(trusttest.KeyOf("mal"), phone, serial, noon)
			return r, err
		},
	}
	for what, make := range cases {
		r, _ := make() // what an honest node would not send
		if r.Account == nil && r.Device == nil && r.Role == nil && r.Removal == nil {
			t.Fatalf("%s: nothing was made", what)
		}
		_, fresh, err := w.Add(r)
		if fresh || !errors.Is(err, trust.ErrForged) && !errors.Is(err, trust.ErrNotAllowed) {
			t.Errorf("%s: %v, %v", what, fresh, err)
		}
	}
	other := newWorld(t)
	other.Set = NewSet(trust.Mesh{Name: "other", Founder: w.Mesh.Founder}, nil)
	for _, r := range w.said {
		if _, _, err := other.Add(r); !errors.Is(err, trust.ErrWrongMesh) {
			t.Errorf("in another mesh: %v", err)
		}
	}
}

// A key links others in a row up to the limit, and its own end bounds theirs.
func TestLinksInARow(t *testing.T) {
	w := newWorld(t)
	bia := w.user(w.Ana, "bia")
	d, key := w.device(w.Ana, bia, "k0", "n0"), "k0"
	for i := 1; i < MaxLinks; i++ {
		next := fmt.Sprintf("k%d", i)
		d, key = w.link(key, d, next, fmt.Sprintf("n%d", i)), next
	}
	if _, err := Link(w.Mesh, trusttest.KeyOf(key), d, w.cert(bia, "last", "n")); err == nil {
		t.Errorf("more than %d keys in a row", MaxLinks)
	}
	c := w.cert(bia, "long", "n")
	c.NotAfter = trust.WallOf(trusttest.Noon.Add(2 * trusttest.Year))
	long, err := Link(w.Mesh, trusttest.KeyOf("k0"), Device{bia, d.Chain[MaxLinks-1:]}, c)
	if err != nil || long.Leaf().NotAfter != d.Leaf().NotAfter {
		t.Errorf("a link ends at %v, %v", long.Leaf().NotAfter, err)
	}
}

// Certificates that an administrator made to lead in circles make no key good, and each is
// looked at once: by all ways through them it would never end.
func TestCirclesOfKeys(t *testing.T) {
	w := newWorld(t)
	bia := w.user(w.Ana, "bia")
	for i := range 40 {
		between := fmt.Sprintf("k%d", i)
		c := w.cert(bia, between, "n"+between)
		c.Linked = trusttest.IDOf("k")
		root, err := Certify(w.Ana, bia, c)
		if err != nil {
			t.Fatal(err)
		}
		w.link(between, root, "k", "n")
	}
	if got := w.good(bia, "k", "k0", "k39"); len(got) > 0 {
		t.Errorf("%v are good", got)
	}
}

// One administrator, or one user, fills no more than its share, and others go on.
func TestOneAuthorCannotFillTheSet(t *testing.T) {
	w := newWorld(t)
	var err error
	n := 0
	for ; n <= MaxOfDelegate && err == nil; n++ {
		a, aerr := NewAccount(w.Davi, "x", nil, trust.Serial{1, byte(n), byte(n >> 8)}, noon)
		if aerr != nil {
			t.Fatal(aerr)
		}
		_, _, err = w.Add(Record{Account: &a})
	}
	if !errors.Is(err, ErrNoRoom) || n != MaxOfDelegate+1 {
		t.Errorf("a delegate: %v after %d", err, n)
	}
	bia := w.user(w.Ana, "bia")
	phone := w.device(w.Ana, bia, "phone", "engine")
	for n, err = 0, nil; n <= MaxOfUser && err == nil; n++ {
		c := w.cert(bia, fmt.Sprintf("key-%d", n), "engine")
		d, lerr := Link(w.Mesh, trusttest.KeyOf("phone"), phone, c)
		if lerr != nil {
			t.Fatal(lerr)
		}
		_, _, err = w.Add(Record{Device: &d})
	}
	if !errors.Is(err, ErrNoRoom) || n != MaxOfUser+1 {
		t.Errorf("a user: %v after %d", err, n)
	}
	w.user(w.Ana, "rui")
	equal(t, "what davi is answerable for", w.Loads(w.Davi.ID())[0],
		Load{"records about users", MaxOfDelegate, MaxOfDelegate})
}

// links has a key link so many others, and says how many were taken in.
func (w *world) links(key string, d Device, n int) (taken int) {
	w.Helper()
	for i := range n {
		next, err := Link(w.Mesh, trusttest.KeyOf(key), d, w.cert(d.Account, fmt.Sprintf("%s-%d", key, i), "mal"))
		if err != nil {
			w.Fatal(err)
		}
		if _, fresh, err := w.Add(Record{Device: &next}); err == nil && fresh {
			taken++
		}
	}
	return taken
}

// A delegate that certifies keys of its own for the founder's users, which sign what they can,
// takes nothing of the founder's share, and nothing of what those users' own keys may sign.
func TestWhatADelegatesKeysSignIsInItsShare(t *testing.T) {
	w := newWorld(t)
	bia := w.user(w.Ana, "bia")
	phone := w.device(w.Ana, bia, "phone", "engine")
	other := w.device(w.Davi, bia, "false", "mal")
	before := w.Loads(w.Ana.ID())
	equal(t, "links of the delegate's key", w.links("false", other, MaxOfUser+1), MaxOfUser)
	equal(t, "the founder's share", w.Loads(w.Ana.ID()), before)
	equal(t, "the delegate's share", w.Loads(w.Davi.ID())[0].Count, MaxOfUser+1)
	w.link("phone", phone, "desk", "station")
	equal(t, "the user's own keys", w.good(bia, "phone", "desk"), []string{"phone", "desk"})
}

// Where all room for records about users is taken, by one user or by a whole share, users sign
// out still, and administrators remove users and keys, and take roles away.
func TestThereIsRoomToTakeAway(t *testing.T) {
	w := newWorld(t)
	bia := w.user(w.Davi, "bia", "crew")
	phone := w.device(w.Davi, bia, "phone", "engine")
	equal(t, "links", w.links("phone", phone, MaxOfUser+1), MaxOfUser)
	for n := w.Loads(w.Davi.ID())[0].Count; n < MaxOfDelegate; n++ {
		a, err := NewAccount(w.Davi, "x", nil, trust.Serial{1, byte(n), byte(n >> 8)}, noon)
		w.say(Record{Account: &a}, err)
	}
	given, err := w.ChangeRole(w.Davi, bia.ID(), "cook", true, trusttest.Serial("given"), noon)
	if _, _, aerr := w.Add(given); err != nil || !errors.Is(aerr, ErrNoRoom) {
		t.Errorf("one more record: %v, %v; the share is not full", err, aerr)
	}
	w.change(w.Davi, bia, "crew", false)
	w.remove(w.Davi, bia, "phone-1")
	w.signOut("phone", phone)
	w.remove(w.Davi, bia, "")
	if _, err := w.User(bia.ID(), trusttest.Noon); !errors.Is(err, ErrRemoved) {
		t.Errorf("a user that was removed: %v", err)
	}
	// What is stored is read again in another order, and all of it is taken in.
	again := NewSet(w.Mesh, w.Known)
	for _, id := range w.IDs() {
		if _, _, err := again.Add(w.known[id].Record); err != nil {
			t.Fatal(err)
		}
	}
	equal(t, "digests", again.Digest(), w.Digest())
}

// What a user list costs grows with the users, and not with their square.
func TestLabelsOfManyUsers(t *testing.T) {
	var all []User
	for i := range 2 * MaxRecords {
		all = append(all, User{ID: ID{byte(i), byte(i >> 8)}, Name: fmt.Sprintf("user-%d", i)})
	}
	all[7].Name = all[9].Name
	began := time.Now()
	labels := Labels(all)
	if took := time.Since(began); took > time.Second { // 10 ms, and by comparing all with all a minute
		t.Errorf("the labels of %d users take %v", len(all), took)
	}
	equal(t, "labels", labels[7:10], []string{
		"user-9 (" + all[7].ID.Short() + ")", "user-8", "user-9 (" + all[9].ID.Short() + ")",
	})
}

// An administrator's clock that is far ahead, when it renews a key or certifies it first, makes
// the key good for nobody only until that is mended.
func TestClocksOfAdministratorsThatAreAhead(t *testing.T) {
	w := newWorld(t)
	bia := w.user(w.Ana, "bia")
	w.device(w.Ana, bia, "phone", "engine")
	ahead := trusttest.Noon.Add(trusttest.Year * 4 / 5)
	again, err := w.Renew(w.Ana, w.Due(w.Ana.ID(), trusttest.Year/4, ahead)[0], trusttest.Year,
		trusttest.Serial("again"), ahead)
	w.say(Record{Device: &again}, err)
	equal(t, "renewed by a clock that is ahead", w.good(bia, "phone"), []string{"phone"})
	end := ahead.Add(trusttest.Year)
	if _, err := w.Key(bia.ID(), trusttest.IDOf("phone"), end); err != nil {
		t.Errorf("before its new end: %v", err)
	}
	late := end.Add(-trusttest.Year / 8)
	third, err := w.Renew(w.Ana, again, trusttest.Year, trusttest.Serial("third"), late)
	w.say(Record{Device: &third}, err)
	equal(t, "the third one ends", third.Leaf().NotAfter, trust.WallOf(late.Add(trusttest.Year)))

	c := w.cert(bia, "desk", "station")
	c.NotBefore, c.NotAfter = trust.WallOf(ahead), trust.WallOf(end)
	d, err := Certify(w.Ana, bia, c)
	w.say(Record{Device: &d}, err)
	equal(t, "certified by a clock that is ahead", w.good(bia, "desk"), []string(nil))
	c = w.cert(bia, "desk", "station")
	c.Number = w.NextNumber(bia.ID(), c.Key, w.Ana.ID())
	right, err := Certify(w.Ana, bia, c)
	w.say(Record{Device: &right}, err)
	equal(t, "certified again, by a clock that is right", w.good(bia, "desk"), []string{"desk"})
}

// Of two removals of one key by itself, of which a thief may have made one, the one that keeps
// fewer others counts, whichever comes first.
func TestTheRemovalThatKeepsFewerCounts(t *testing.T) {
	for n := range 8 { // by their IDs one would come first in half of them
		w := newWorld(t)
		bia := w.user(w.Ana, "bia")
		lost := w.device(w.Ana, bia, "lost", "engine")
		fewer, err := w.SignOut(trusttest.KeyOf("lost"), lost, trust.Serial{1, byte(n)}, noon)
		if err != nil {
			t.Fatal(err)
		}
		w.link("lost", lost, "bad", "mal")
		more, err := w.SignOut(trusttest.KeyOf("lost"), lost, trust.Serial{2, byte(n)}, noon)
		if err != nil {
			t.Fatal(err)
		}
		for i, order := range [][]Record{{fewer, more}, {more, fewer}} {
			s := NewSet(w.Mesh, w.Known)
			for _, r := range slices.Concat(w.said, order) {
				if _, _, err := s.Add(r); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := s.Key(bia.ID(), trusttest.IDOf("bad"), trusttest.Noon); !errors.Is(err, ErrRemoved) {
				t.Errorf("%d, %d: what the thief keeps is %v", n, i, err)
			}
		}
	}
}

// Whatever the order in which records and evictions come, and however often, nodes that
// know the same say the same, and find out by their digests what one of them lacks.
func TestSetsConverge(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		var evictions []trust.Eviction
		admins := []trust.Issuer{w.Ana, w.Davi}
		admin := func(name string) trust.Issuer { return rapid.SampledFrom(admins).Draw(rt, name) }
		var accounts []Account
		var devices []Device
		names := map[workflow.PartnerID]string{}
		for i := range rapid.IntRange(1, 10).Draw(rt, "steps") {
			key, node := fmt.Sprintf("key-%d", i), rapid.SampledFrom([]string{"engine", "station"}).Draw(rt, "node")
			serial := trust.Serial{byte(i + 1)}
			var r Record
			var err error
			step := rapid.IntRange(0, 6).Draw(rt, "step")
			switch {
			case step == 0 || len(accounts) == 0:
				var a Account
				a, err = NewAccount(admin("by"), fmt.Sprintf("user-%d", i), trusttest.Roles("crew"), serial, noon)
				accounts, r = append(accounts, a), Record{Account: &a}
			case step == 1 || len(devices) == 0:
				var d Device
				a := rapid.SampledFrom(accounts).Draw(rt, "user")
				c := w.cert(a, key, node)
				names[c.Key] = key
				d, err = Certify(admin("by"), a, c)
				devices, r = append(devices, d), Record{Device: &d}
			case step == 2:
				d := rapid.SampledFrom(devices).Draw(rt, "device")
				if len(d.Chain) == MaxLinks {
					continue
				}
				c := w.cert(d.Account, key, node)
				names[c.Key] = key
				d, err = Link(w.Mesh, trusttest.KeyOf(names[d.Leaf().Key]), d, c)
				devices, r = append(devices, d), Record{Device: &d}
			case step == 3:
				a := rapid.SampledFrom(accounts).Draw(rt, "user")
				r, err = w.ChangeRole(admin("by"), a.ID(),
					rapid.SampledFrom(trusttest.Roles("crew", "cook")).Draw(rt, "role"), rapid.Bool().Draw(rt, "given"),
					serial, noon)
			case step == 4:
				d := rapid.SampledFrom(devices).Draw(rt, "device")
				r, err = w.SignOut(trusttest.KeyOf(names[d.Leaf().Key]), d, serial, noon)
			case step == 5:
				d := rapid.SampledFrom(devices).Draw(rt, "device")
				k := rapid.SampledFrom([]workflow.PartnerID{"", d.Leaf().Key}).Draw(rt, "what")
				r, err = Remove(admin("by"), d.Leaf().User, k, serial, noon)
			default:
				d := rapid.SampledFrom(devices).Draw(rt, "device")
				at := trusttest.Noon.Add(time.Duration(i) * time.Hour)
				d, err = w.Renew(admin("by"), d, trusttest.Year, serial, at)
				r = Record{Device: &d}
			}
			if err != nil {
				rt.Fatal(err)
			}
			w.said = append(w.said, r)
			if rapid.Bool().Draw(rt, "heard") { // else what follows is said without knowing of it
				if _, _, err := w.Add(r); err != nil {
					rt.Fatal(err)
				}
			}
		}
		if rapid.Bool().Draw(rt, "an eviction") {
			by, whom := w.Ana, rapid.SampledFrom([]string{"davi", "engine"}).Draw(rt, "whom")
			keep := w.IssuedBy(trusttest.IDOf(whom))
			e, err := by.Evict(trust.Eviction{Partner: trusttest.IDOf(whom), At: noon}, w.Known, nil, keep...)
			if err != nil {
				rt.Fatal(err)
			}
			evictions = append(evictions, e)
		}
		var all []string
		var digest [sha256.Size]byte
		for i := range 2 {
			rng := rand.New(rand.NewPCG(uint64(i), rapid.Uint64().Draw(rt, "order")))
			known := trust.NewRevocations(w.Mesh)
			s := NewSet(w.Mesh, known)
			order := append(slices.Clone(w.said), w.said...)
			rng.Shuffle(len(order), func(a, b int) { order[a], order[b] = order[b], order[a] })
			evicted := rng.IntN(len(order))
			for k, r := range order {
				if k == evicted {
					for _, e := range evictions {
						if _, err := known.Add(e); err != nil {
							rt.Fatal(err)
						}
					}
				}
				r, err := DecodeRecord(EncodeRecord(r))
				if err != nil {
					rt.Fatal(err)
				}
				if _, _, err := s.Add(r); err != nil {
					rt.Fatal(err)
				}
			}
			all = append(all, s.describe())
			d := s.Digest()
			if i > 0 && (all[i] != all[0] || d != digest) {
				rt.Fatalf("sets differ:\n%s\n---\n%s", all[0], all[i])
			}
			digest = d
		}
	})
}

// describe is all that a set says of its users.
func (s *Set) describe() string {
	var b strings.Builder
	for _, u := range s.Users(trusttest.Noon) {
		fmt.Fprintln(&b, u.Name, u.ID, u.Roles)
		for _, d := range u.Devices {
			fmt.Fprintln(&b, " ", d.Leaf().Key, d.Leaf().NotAfter, len(d.Chain))
		}
	}
	return b.String()
}

// Users are found by name or by whole ID; of several with one name people need the ID.
func TestNames(t *testing.T) {
	w := newWorld(t)
	bia := w.user(w.Ana, "bia")
	w.user(w.Davi, "rui")
	other := w.user(w.Davi, "rui-2")
	_ = other
	if u, err := w.Resolve("bia", trusttest.Noon); err != nil || u.ID != bia.ID() {
		t.Errorf("bia: %v", err)
	}
	if u, err := w.Resolve(bia.ID().String(), trusttest.Noon); err != nil || u.Name != "bia" {
		t.Errorf("bia's ID: %v", err)
	}
	if _, err := w.Resolve("eva", trusttest.Noon); !errors.Is(err, ErrNoUser) {
		t.Errorf("eva: %v", err)
	}
	if u, err := w.Resolve(bia.ID().Short(), trusttest.Noon); err != nil || u.Name != "bia" {
		t.Errorf("the beginning of an ID, as it is shown: %v", err)
	}
	if _, err := w.Resolve(bia.ID().Short()[:4], trusttest.Noon); !errors.Is(err, ErrNoUser) {
		t.Errorf("less than is shown, which could be a name: %v", err)
	}
	if u, ok := w.Namesake("bіа", trusttest.Noon); !ok || u.Name != "bia" { // Cyrillic i and a
		t.Errorf("a name that looks like bia: %v", u.Name)
	}
	for name, like := range map[string]bool{"BIA": true, "Bía": true, "bi\u0301a": true, "bea": false, "bie": false} {
		if _, ok := w.Namesake(name, trusttest.Noon); ok != like {
			t.Errorf("%s is taken for another user: %t", name, ok)
		}
	}
	twin, err := NewAccount(w.Davi, "bia", nil, trusttest.Serial("twin"), noon)
	w.say(Record{Account: &twin}, err)
	if _, err := w.Resolve("bia", trusttest.Noon); !errors.Is(err, membership.ErrAmbiguous) ||
		!strings.Contains(err.Error(), bia.ID().String()) {
		t.Errorf("two of one name: %v", err)
	}
	if u, err := w.Resolve("bia ("+twin.ID().Short()+")", trusttest.Noon); err != nil || u.ID != twin.ID() {
		t.Errorf("the label: %v", err)
	}
}

// Errors about users who were removed say the names that people know, also where an ID was given; an ID only where
// several are or were called so.
func TestRemovedUsersAreNamed(t *testing.T) {
	w := newWorld(t)
	rui := w.user(w.Ana, "rui")
	w.device(w.Ana, rui, "four", "engine")
	says := func(what, want string, err error) {
		t.Helper()
		if err == nil || err.Error() != want || !errors.Is(err, ErrRemoved) {
			t.Errorf("%s: %v, want %s", what, err, want)
		}
	}
	w.remove(w.Ana, rui, "four")
	_, err := w.Key(rui.ID(), trusttest.IDOf("four"), trusttest.Noon)
	says("a removed key", "this key of user rui is removed", err)
	w.remove(w.Ana, rui, "")
	for _, text := range []string{"rui", rui.ID().String(), rui.ID().Short()} {
		_, err := w.Resolve(text, trusttest.Noon)
		says(text, "no such user: user rui was removed", err)
		if !errors.Is(err, ErrNoUser) {
			t.Errorf("%s: %v is another kind of error", text, err)
		}
	}
	if _, err := w.Resolve("eva", trusttest.Noon); err == nil || err.Error() != `no such user: "eva"` {
		t.Errorf("who never was: %v", err)
	}
	twin, err := NewAccount(w.Davi, "rui", nil, trusttest.Serial("twin"), noon)
	w.say(Record{Account: &twin}, err)
	if u, err := w.Resolve("rui", trusttest.Noon); err != nil || u.ID != twin.ID() {
		t.Errorf("who is called so now: %v, %v", u, err)
	}
	_, err = w.Resolve(rui.ID().String(), trusttest.Noon)
	says("one of two", "no such user: user rui ("+rui.ID().Short()+") was removed", err)
	w.remove(w.Ana, twin, "")
	_, err = w.Resolve("rui", trusttest.Noon)
	says("both", "no such user: all who were called rui were removed", err)
}

// What a user did by a key whose certificate has ended is told from what anybody else says: nothing else is judged late.
func TestAWordByAKeyThatEnded(t *testing.T) {
	w := newWorld(t)
	bia, rui := w.user(w.Ana, "bia", "crew"), w.user(w.Ana, "rui")
	w.device(w.Ana, bia, "phone", "engine")
	w.device(w.Ana, rui, "four", "engine")
	fact, engine := sha256.Sum256([]byte("done")), trusttest.IDOf("engine")
	after := trusttest.Noon.Add(100 * 366 * 24 * time.Hour)
	late := func(key string, user ID, author workflow.PartnerID, at time.Time) error {
		return w.JudgeLate(Sign(trusttest.KeyOf(key), user, fact), fact, author, at)
	}
	if _, err := w.Judge(Sign(trusttest.KeyOf("phone"), bia.ID(), fact), fact, engine, after); !errors.Is(err, trust.ErrExpired) {
		t.Fatalf("its certificate has not ended: %v", err)
	}
	if err := late("phone", bia.ID(), engine, after); err != nil {
		t.Errorf("what bia did before: %v", err)
	}
	for what, err := range map[string]error{
		"while the key is good":        late("phone", bia.ID(), engine, trusttest.Noon),
		"before the certificate began": late("phone", bia.ID(), engine, trusttest.Noon.Add(-100*366*24*time.Hour)),
		"by another's key":             late("four", bia.ID(), engine, after),
		"in another's name":            late("phone", rui.ID(), engine, after),
		"shown by another partner":     late("phone", bia.ID(), trusttest.IDOf("truck"), after),
		"for another fact": w.JudgeLate(Sign(trusttest.KeyOf("phone"), bia.ID(), fact), sha256.Sum256([]byte("else")),
			engine, after),
	} {
		if err == nil {
			t.Errorf("%s it is kept", what)
		}
	}
	w.remove(w.Ana, bia, "phone")
	if err := late("phone", bia.ID(), engine, after); !errors.Is(err, ErrRemoved) {
		t.Errorf("by a key that was removed: %v", err)
	}
}

// A user's word for a fact counts for that fact alone, in the user's own name, by a key
// that is good and at the node that wrote the fact.
func TestAUsersWord(t *testing.T) {
	w := newWorld(t)
	bia, rui := w.user(w.Ana, "bia", "crew"), w.user(w.Ana, "rui")
	w.device(w.Ana, bia, "phone", "engine")
	fact, engine := sha256.Sum256([]byte("done")), trusttest.IDOf("engine")
	g := Sign(trusttest.KeyOf("phone"), bia.ID(), fact)
	u, err := w.Judge(g, fact, engine, trusttest.Noon)
	if err != nil || u.Name != "bia" || !u.HasRole("crew") {
		t.Errorf("bia's word: %v, %v", u, err)
	}
	back, err := DecodeSignature(EncodeSignature(g))
	if err != nil || back.Verify(fact) != nil {
		t.Errorf("written and read: %v", err)
	}
	is := func(what string, g Signature, fact [32]byte, author workflow.PartnerID, at time.Time, want error) {
		t.Helper()
		if _, err := w.Judge(g, fact, author, at); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	is("another fact", g, sha256.Sum256([]byte("failed")), engine, trusttest.Noon, trust.ErrForged)
	asRui := g
	asRui.User = rui.ID()
	is("in another's name", asRui, fact, engine, trusttest.Noon, trust.ErrForged)
	is("a key of another", Sign(trusttest.KeyOf("phone"), rui.ID(), fact), fact, engine, trusttest.Noon, ErrNoUser)
	is("a partner that claims it", g, fact, trusttest.IDOf("station"), trusttest.Noon, trust.ErrNotAllowed)
	is("a partner that signs itself", Sign(trusttest.KeyOf("engine"), bia.ID(), fact), fact, engine, trusttest.Noon,
		ErrNoUser)
	is("after the certificate's end", g, fact, engine, trusttest.Noon.Add(trusttest.Year+25*time.Hour),
		trust.ErrExpired)
	w.remove(w.Ana, bia, "phone")
	is("of a removed key", g, fact, engine, trusttest.Noon, ErrRemoved)
}

// A token signs one device in, which may ask again; nobody else learns anything from it.
func TestSigningIn(t *testing.T) {
	w := newWorld(t)
	bia := w.user(w.Ana, "bia")
	secret := Secret{7}
	word := Token{
		Mesh: w.Mesh.ID(), User: bia.ID(), Name: "bia", Node: w.Ana.ID(),
		Addresses: []string{"/ip4/10.0.0.1/udp/4001/quic-v1"},
		Secret:    secret, Expires: noon + 3600,
	}
	tok, err := ParseToken(strings.ToUpper(word.Text()))
	if err != nil || tok.Fits(w.Mesh, trusttest.Noon) != nil {
		t.Fatalf("the token cannot be read: %v", err)
	}
	ts := NewTickets(w.Ana.ID())
	ticket := Ticket{Secret: secret, User: bia.ID(), Expires: word.Expires, Lifetime: trusttest.Year}
	if err := ts.Keep(ticket); err != nil {
		t.Fatal(err)
	}
	key, node := trusttest.KeyOf("phone"), trusttest.KeyOf("engine")
	r := NewRequest(tok, key, node)
	got, err := ts.Redeem(r, trusttest.Noon)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Certify(w.Ana, bia, got.Certificate(r, trusttest.Serial("x"), trusttest.Noon))
	w.say(Record{Device: &d}, err)
	got.Redeemed = &d
	if err := ts.Keep(got); err != nil {
		t.Fatal(err)
	}
	again, err := ts.Redeem(r, trusttest.Noon.Add(2*time.Hour))
	if err != nil || again.Redeemed == nil {
		t.Errorf("the same key again: %v", err)
	}
	refused := func(what string, r Request, at time.Time, want error) {
		t.Helper()
		if _, err := ts.Redeem(r, at); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	refused("another key", NewRequest(tok, trusttest.KeyOf("other"), node), trusttest.Noon, ErrUsed)
	guess := tok
	guess.Secret = Secret{8}
	wrong := NewRequest(guess, key, node)
	refused("an unknown secret", wrong, trusttest.Noon, ErrNoTicket)
	wrong.Ticket = secret.ID()
	refused("a guessed secret", wrong, trusttest.Noon, trust.ErrForged)
	unsigned := r
	unsigned.Signature = make([]byte, 64)
	refused("without the key's signature", unsigned, trusttest.Noon, trust.ErrForged)
	other := tok
	other.User = ID{1}
	refused("for another user", NewRequest(other, key, node), trusttest.Noon, trust.ErrForged)
	swapped := r
	swapped.Key = trusttest.IDOf("mal")
	refused("another's key put in", swapped, trusttest.Noon, trust.ErrForged)
	if err := ts.Keep(Ticket{Secret: Secret{9}, User: bia.ID(), Expires: noon + 60, Lifetime: time.Hour}); err != nil {
		t.Fatal(err)
	}
	tok.Secret = Secret{9}
	refused("too late", NewRequest(tok, key, node), trusttest.Noon.Add(time.Hour), trust.ErrExpired)
	equal(t, "tickets to forget", len(ts.Expired(trusttest.Noon.Add(48*time.Hour))), 2)
	if err := tok.Fits(w.Mesh, trusttest.Noon.Add(48*time.Hour)); !errors.Is(err, trust.ErrExpired) {
		t.Errorf("an old token: %v", err)
	}
	if _, err := ParseToken("mutirao1abc"); !errors.Is(err, ErrBadToken) {
		t.Errorf("an invitation: %v", err)
	}
}
