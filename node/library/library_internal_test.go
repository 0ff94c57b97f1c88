package library

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/store/kv/kvtest"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// noon is the moment at which all of this takes place.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

type signer = trust.Issuer

// signing is a member, and what it thinks of the others' certificates.
type signing struct {
	signer
	evicted func(trust.Chain) bool
}

func (s signing) Issuer() trust.Issuer        { return s.signer }
func (s signing) Good(chain trust.Chain) bool { return s.evicted == nil || !s.evicted(chain) }

// mesh is a founder, a delegate and members, by name.
func mesh(t *testing.T) map[string]signing {
	t.Helper()
	key := func(seed byte) ed25519.PrivateKey {
		return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
	}
	m := trust.Mesh{Name: "test", Founder: trust.IDOf(key(1).Public().(ed25519.PublicKey))}
	founder := trust.Issuer{Mesh: m, Key: key(1)}
	out := map[string]signing{}
	for i, name := range []string{"ana", "dina", "bea", "mal"} {
		is := trust.Issuer{Mesh: m, Key: key(byte(i + 1))}
		chain, err := founder.Issue(trust.Certificate{
			Partner: is.ID(), Name: name, Delegate: i < 2, Serial: trust.Serial{byte(i + 1)},
			NotBefore: trust.WallOf(noon.Add(-time.Hour * time.Duration(24*i+24))),
			NotAfter:  trust.WallOf(noon.Add(1000 * time.Hour)),
		})
		if err != nil {
			t.Fatal(err)
		}
		is.Chain = chain
		out[name] = signing{signer: is}
	}
	return out
}

// shelved are the definitions of a founder's node.
func shelved(t *testing.T, limit int) (*Definitions, *kvtest.Shelf) {
	t.Helper()
	s := kvtest.New()
	return known(t, s, limit, mesh(t)["ana"]), s
}

// known are the definitions that somebody's store holds.
func known(t *testing.T, s *kvtest.Shelf, limit int, by signing) *Definitions {
	t.Helper()
	d, err := Load(s, Room{All: limit, One: limit / 4, Shares: 4}, by, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// of is a definition by its name and version.
func of(t *testing.T, name string, version int) *workflow.Definition {
	t.Helper()
	def, err := workflow.Parse("test.yaml",
		fmt.Appendf(nil, "workflow: %s\nversion: %d\ntasks: {a: {}}\n", name, version))
	if err != nil {
		t.Fatal(err)
	}
	return decoded(t, def).Def
}

// tiny is the n-th of many definitions.
func tiny(t *testing.T, n int) *workflow.Definition {
	t.Helper()
	return of(t, fmt.Sprintf("tiny-%d", n), 0)
}

// decoded is a definition as it comes from elsewhere.
func decoded(t *testing.T, def *workflow.Definition) *Definition {
	t.Helper()
	e, err := decode(def.Canonical())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// A few bytes of text may be thousands of tasks: what a member fills of the room is counted with all rounds.
func TestRoundsOfLoopsTakeRoom(t *testing.T) {
	def, err := workflow.Parse("loop", []byte("workflow: w\ntasks: {a: {}, b: {after: a, repeat: {times: 64, from: a}}}"))
	if err != nil {
		t.Fatal(err)
	}
	if l := newListing(decoded(t, def)); l.size != len(def.WrittenOut()) || l.size < 20*len(def.Canonical()) {
		t.Errorf("%d bytes count of %d, written out %d", l.size, len(def.Canonical()), len(def.WrittenOut()))
	}
}

// says is what a member's node sends of a definition that it lists and takes off
// again, number notices in all, from a moment on.
func (s signing) says(t *testing.T, def *workflow.Definition, number int, at time.Time) wire.Definition {
	t.Helper()
	w := wire.Definition{Canonical: def.Canonical()}
	for i := range number {
		n, err := s.Announce(trust.Notice{
			Definition: def.Hash(), Name: def.Name, Author: s.ID(), Number: uint64(i + 1), Removed: i%2 == 1,
			At: trust.WallOf(at),
		})
		if err != nil {
			t.Fatal(err)
		}
		w.Notices = append(w.Notices, trust.EncodeNotice(n))
	}
	if number%2 == 0 {
		w.Canonical = nil
	}
	return w
}

func always(workflow.PartnerID, int) bool { return true }

// hears has definitions take in what somebody says.
func (d *Definitions) hears(w wire.Definition) (news bool, err error) {
	news, _, err = d.merge(w, noon, always)
	return news, err
}

// A removal of what is not listed here says nothing new: it is not kept, however
// often it comes, whatever comes with it.
func TestRemovalOfWhatIsNotListed(t *testing.T) {
	d, s := shelved(t, 2)
	bea := mesh(t)["bea"]
	for i := range 10 {
		w := bea.says(t, tiny(t, i), 2, noon)
		w.Canonical = tiny(t, i).Canonical()
		if news, err := d.hears(w); news || err != nil {
			t.Errorf("the removal of what was never here is news: %t, %v", news, err)
		}
	}
	if len(s.Data) > 0 {
		t.Errorf("%d removals of what was never here are kept", len(s.Data))
	}
	var removals []wire.Definition
	for i := range 5 {
		l, _, err := d.addOne(tiny(t, i), noon)
		if err != nil {
			t.Fatal(err)
		}
		say, err := d.remove(l, noon.Add(time.Duration(i)*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		removals = append(removals, say...)
	}
	for i, w := range removals[:3] {
		if news, err := d.hears(w); news || err != nil {
			t.Errorf("the removal %d that was forgotten is news when a partner repeats it: %t, %v", i, news, err)
		}
	}
}

// A definition for which there was no room is no trouble any more when its
// author removes it.
func TestNoRoomForWhatIsRemoved(t *testing.T) {
	d, _ := shelved(t, 1)
	dina := mesh(t)["dina"]
	if _, err := d.hears(dina.says(t, tiny(t, 0), 1, noon)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.hears(dina.says(t, tiny(t, 1), 1, noon)); !errors.Is(err, errNoRoom) || d.Trouble() == "" {
		t.Fatalf("a second workflow: %v, trouble %q", err, d.Trouble())
	}
	if _, _, err := d.addOne(tiny(t, 2), noon); err != nil {
		t.Errorf("the node's own user has no room: %v", err)
	}
	if _, err := d.hears(dina.says(t, tiny(t, 1), 2, noon)); err != nil || d.Trouble() != "" {
		t.Errorf("after its removal: %v, trouble %q", err, d.Trouble())
	}
}

// A definition that came with an instance while it was being listed stays listed.
func TestDefinitionsChangeOneAfterTheOther(t *testing.T) {
	d, s := shelved(t, 10)
	first := make(chan struct{})
	takes := []time.Duration{50 * time.Millisecond, 0}
	s.Takes = func() time.Duration {
		next := takes[0]
		if takes = takes[1:]; len(takes) == 1 {
			close(first)
		}
		return next
	}
	def := tiny(t, 0)
	kept, came := make(chan error, 1), decoded(t, def)
	go func() { kept <- d.Keep(came) }()
	<-first
	if news, err := d.hears(mesh(t)["bea"].says(t, def, 1, noon)); !news || err != nil {
		t.Errorf("what a partner lists is news: %t, %v", news, err)
	}
	if err := <-kept; err != nil {
		t.Error(err)
	}
	if len(d.list()) != 1 {
		t.Error("it is not listed")
	}
}

// Only its author, the founder and delegates take a definition off the list, and
// nobody makes that, or listing it, impossible by a great number.
func TestNoticesAreProved(t *testing.T) {
	all, def := mesh(t), tiny(t, 0)
	bea, mal, dina := all["bea"], all["mal"], all["dina"]
	d, _ := shelved(t, 10)
	listed := bea.says(t, def, 1, noon)
	if news, err := d.hears(listed); !news || err != nil {
		t.Fatal(news, err)
	}
	sign := func(by signing, number uint64, removed bool) wire.Definition {
		n := trust.Notice{
			Mesh: by.Mesh.ID(), Definition: def.Hash(), Name: def.Name, Author: bea.ID(), Number: number,
			Removed: removed,
			At:      trust.WallOf(noon), Issuer: by.ID(), Chain: by.Chain,
		}
		n, _ = by.Announce(n) // not all that is signed here is in order
		return wire.Definition{Notices: [][]byte{listed.Notices[0], trust.EncodeNotice(n)}}
	}
	cut := bea.says(t, def, 4, noon)
	cut.Notices = slices.Delete(cut.Notices, 1, 3)
	for what, w := range map[string]wire.Definition{
		"a stranger to it takes it off": sign(mal, 2, true),
		"with a gap in the numbers":     cut,
		"with a great number":           sign(bea, 1<<32, true),
		"that lists it twice":           sign(bea, 2, false),
	} {
		if news, err := d.hears(w); news || err == nil || len(d.list()) != 1 {
			t.Errorf("%s: news %t, %v; %d are listed", what, news, err, len(d.list()))
		}
	}
	e, _ := shelved(t, 10)
	e.rights = signing{all["ana"].signer, func(c trust.Chain) bool { return c.Leaf().Name == "dina" }}
	for _, x := range []struct {
		d    *Definitions
		good bool
	}{{d, true}, {e, false}} {
		_, _ = x.d.hears(listed)
		if news, err := x.d.hears(sign(dina, 2, true)); news != x.good || (err == nil) != x.good {
			t.Errorf("a delegate, evicted or not (%t), takes it off: news %t, %v", !x.good, news, err)
		}
	}
	own := known(t, kvtest.New(), 10, bea)
	for range trust.MaxNotices / 2 {
		l, _, err := own.addOne(def, noon)
		if err == nil {
			_, err = own.remove(l, noon)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := own.addOne(def, noon); err == nil || !strings.Contains(err.Error(), "as often as it can be") {
		t.Errorf("once more: %v", err)
	}
}

// A name is the founder's and delegates' once one of them lists something under it,
// else that of the first to list it; and all who know the same list the same, in
// whatever order they came to know it.
func TestNamesHaveOwners(t *testing.T) {
	all := mesh(t)
	for _, c := range []struct {
		name string
		said []wire.Definition
		want string
	}{
		{"a member squats on the founder's name", []wire.Definition{
			all["ana"].says(t, of(t, "w", 1), 1, noon),
			all["mal"].says(t, of(t, "w", 2), 1, noon.Add(-time.Hour))}, "[w@1]"},
		{"and on another member's", []wire.Definition{
			all["bea"].says(t, of(t, "w", 1), 1, noon),
			all["mal"].says(t, of(t, "w", 2), 1, noon.Add(time.Second))}, "[w@1]"},
		{"and lists another's definition as its own", []wire.Definition{
			all["bea"].says(t, of(t, "w", 1), 1, noon),
			all["mal"].says(t, of(t, "w", 1), 1, noon.Add(time.Second))}, "[w@1]"},
		{"a delegate takes a name over", []wire.Definition{
			all["bea"].says(t, of(t, "w", 1), 1, noon),
			all["dina"].says(t, of(t, "w", 2), 1, noon.Add(time.Hour))}, "[w@2]"},
		{"founder and delegate share one", []wire.Definition{
			all["ana"].says(t, of(t, "w", 1), 1, noon), all["dina"].says(t, of(t, "w", 2), 1, noon)}, "[w@2 w@1]"},
		{"a name stays with its owner when nothing is listed under it", []wire.Definition{
			all["bea"].says(t, of(t, "w", 1), 1, noon), all["bea"].says(t, of(t, "w", 1), 2, noon),
			all["mal"].says(t, of(t, "w", 2), 1, noon.Add(time.Second))}, "[]"},
	} {
		for seed := range uint64(8) {
			d := known(t, kvtest.New(), 10, all["ana"])
			order := rand.New(rand.NewPCG(seed, 0)).Perm(len(c.said))
			for range 2 { // as on a second contact
				for _, i := range order {
					_, _ = d.hears(c.said[i])
				}
			}
			var have []string
			for _, l := range d.list() {
				have = append(have, fmt.Sprintf("%s@%d", l.about.Name, l.about.Version))
			}
			if fmt.Sprint(have) != c.want {
				t.Errorf("%s, in the order %v: %v, want %s", c.name, order, have, c.want)
			}
		}
	}
	d := known(t, kvtest.New(), 10, all["mal"])
	if _, err := d.hears(all["bea"].says(t, of(t, "w", 1), 1, noon.Add(-time.Hour))); err != nil {
		t.Fatal(err)
	}
	_, _, err := d.addOne(of(t, "w", 2), noon)
	if no := (*api.Error)(nil); !errors.As(err, &no) || no.Code != api.NotAllowed {
		t.Errorf("a name that is another's: %v", err)
	}
	if _, err = d.remove(d.list()[0], noon); err == nil {
		t.Error("a member takes off what is another's")
	}
}

// Two who had not heard of each other list the very same under one name: nothing is refused of the later, as it is
// listed. Of something else under that name it is said so.
func TestTheSameUnderOneNameIsNoRefusal(t *testing.T) {
	all := mesh(t)
	for _, owner := range []string{"ana", "bea"} {
		d := known(t, kvtest.New(), 10, all["ana"])
		if _, err := d.hears(all[owner].says(t, of(t, "w", 1), 1, noon)); err != nil {
			t.Fatal(err)
		}
		same := all["mal"].says(t, of(t, "w", 1), 1, noon.Add(time.Second))
		if news, err := d.hears(same); news || err != nil {
			t.Errorf("the same as %s listed: %t, %v", owner, news, err)
		}
		if lacks := d.lacking([]wire.DefinitionStamp{d.stampOf(t, same)}); len(lacks) > 0 {
			t.Errorf("what is not taken in is asked for: %v", lacks)
		}
		if _, err := d.hears(all["mal"].says(t, of(t, "w", 2), 1, noon.Add(time.Second))); !errors.Is(err, errNotTheir) {
			t.Errorf("something else under the name: %v", err)
		}
	}
}

// stampOf is the stamp of what somebody says.
func (d *Definitions) stampOf(t *testing.T, w wire.Definition) wire.DefinitionStamp {
	t.Helper()
	o, err := d.read(w)
	if err != nil {
		t.Fatal(err)
	}
	return o.stamp(o.hash)
}

// One member lists a share of what the node takes from all, and all bytes of it are
// counted; the founder and delegates list as many as there is room for.
func TestShareOfDefinitions(t *testing.T) {
	all := mesh(t)
	d := known(t, kvtest.New(), 40, all["bea"])
	for i := range 30 {
		_, err := d.hears(all["mal"].says(t, of(t, fmt.Sprint("m", i), 0), 1, noon))
		if i < 10 && err != nil || i >= 10 && !errors.Is(err, errNoShare) {
			t.Errorf("definition %d of a member's: %v", i, err)
		}
	}
	for i := range 31 {
		_, err := d.hears(all["dina"].says(t, of(t, fmt.Sprint("d", i), 0), 1, noon))
		if i < 30 && err != nil || i == 30 && !errors.Is(err, errNoRoom) {
			t.Errorf("definition %d of a delegate's: %v", i, err)
		}
	}
	for i := range 40 {
		if _, _, err := d.addOne(of(t, fmt.Sprint("own", i), 0), noon); err != nil {
			t.Errorf("definition %d of this node's: %v", i, err)
		}
	}
	if _, _, err := d.addOne(of(t, "own40", 0), noon); err == nil {
		t.Error("one more than there may be")
	}
}

// What is refused of others is refused of one's own user, in the same words.
func TestOneCheckForAllDefinitions(t *testing.T) {
	all := mesh(t)
	var b strings.Builder
	b.WriteString("workflow: long\ntasks:\n")
	for i := range 4000 {
		fmt.Fprintf(&b, "  t%d: {doc: %s}\n", i, strings.Repeat("x", 100))
	}
	def, err := workflow.Parse("test.yaml", []byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	d, _ := shelved(t, 10)
	_, theirs := d.hears(all["bea"].says(t, def, 1, noon))
	_, _, ours := d.addOne(def, noon)
	if theirs == nil || ours == nil || theirs.Error() != ours.Error() || Check(def).Error() != ours.Error() ||
		!strings.Contains(ours.Error(), "at most 393216 can be spread") {
		t.Errorf("of others: %v\nour own: %v", theirs, ours)
	}
}

// A start reads what is listed, and none of the definitions; what was taken apart
// once is not taken apart again while it is in use; and greetings are answered with
// what is stored.
func TestStartReadsNoDefinition(t *testing.T) {
	d, s := shelved(t, 2000)
	for i := range 300 {
		if _, _, err := d.addOne(tiny(t, i), noon); err != nil {
			t.Fatal(err)
		}
	}
	s.Reads = 0
	d = known(t, s, 2000, mesh(t)["ana"])
	if n := len(d.list()); n != 300 || s.Reads != 300 {
		t.Errorf("%d are listed after %d reads", n, s.Reads)
	}
	sent := 0
	for w, err := range d.newer(nil) {
		if err != nil || len(w.Canonical) == 0 {
			t.Error(err)
		}
		sent++
	}
	if sent != 300 || d.recent[0] != nil {
		t.Errorf("%d were sent; taken apart for that: %v", sent, d.recent[0] != nil)
	}
	spent := 0
	d, _ = shelved(t, 10)
	count := func(_ workflow.PartnerID, bytes int) bool { spent += bytes; return true }
	w := mesh(t)["bea"].says(t, tiny(t, 0), 1, noon)
	for range 5 {
		if _, _, err := d.merge(w, noon, count); err != nil {
			t.Fatal(err)
		}
	}
	if spent != len(w.Canonical) {
		t.Errorf("%d bytes were taken apart, of %d", spent, len(w.Canonical))
	}
	none := func(workflow.PartnerID, int) bool { return false }
	if _, _, err := d.merge(mesh(t)["bea"].says(t, tiny(t, 1), 1, noon), noon, none); !errors.Is(err, errTooFast) {
		t.Errorf("beyond the ration: %v", err)
	}
}

// called is a partner list on which all have one name.
type called string

func (called) Known(workflow.PartnerID) bool      { return true }
func (n called) Name(workflow.PartnerID) string   { return string(n) }
func (n called) Called(workflow.PartnerID) string { return string(n) }
func (called) Say(err error) string               { return err.Error() }

// A permit for what a partner lists, given by its name, takes whoever has that name; given
// by its ID, it does not.
func TestPermitByNameTakesNamesakes(t *testing.T) {
	all := mesh(t)
	d := known(t, kvtest.New(), 10, all["ana"])
	fire := of(t, "fire-call", 1)
	if _, err := d.hears(all["mal"].says(t, fire, 1, noon)); err != nil {
		t.Fatal(err)
	}
	o := New(d, Surroundings{Members: called("bea")}).OriginOf(decoded(t, fire))
	for permit, want := range map[configs.Permit]bool{
		"fire-call by bea": true, configs.Permit("fire-call by " + string(all["bea"].ID())): false,
	} {
		if app := (configs.Application{Allow: []configs.Permit{permit}}); app.Allows(o) != want {
			t.Errorf("%s: %t", permit, !want)
		}
	}
}

// A member that lists a definition of another's name has it run nothing.
func TestOriginOfDefinitions(t *testing.T) {
	all := mesh(t)
	d := known(t, kvtest.New(), 10, all["ana"])
	fire := of(t, "fire-call", 1)
	app := configs.Application{Allow: []configs.Permit{"fire-call"}}
	if app.Allows(d.origin(decoded(t, fire))) {
		t.Error("what nobody lists may use it")
	}
	if _, err := d.hears(all["mal"].says(t, fire, 1, noon)); err != nil {
		t.Fatal(err)
	}
	o := d.origin(decoded(t, fire))
	if app.Allows(o) {
		t.Error("what any member lists may use it")
	}
	for permit, want := range map[configs.Permit]bool{
		configs.Permit("fire-call by " + string(all["mal"].ID())): true,
		configs.Permit("fire-call by " + string(all["bea"].ID())): false,
		configs.Permit("fire-call@" + fire.Hash().String()[:16]):  true, "fire-call@0123456789abcdef": false,
		"other": false,
	} {
		if app := (configs.Application{Allow: []configs.Permit{permit}}); app.Allows(o) != want {
			t.Errorf("%s: %t", permit, !want)
		}
	}
	if _, err := d.hears(all["dina"].says(t, fire, 1, noon)); err != nil {
		t.Fatal(err)
	}
	if !app.Allows(d.origin(decoded(t, fire))) {
		t.Error("what a delegate lists may not use it")
	}
}

// One definition that cannot be read keeps no other from a partner.
func TestUnreadableDefinition(t *testing.T) {
	d, s := shelved(t, 10)
	for i := range 5 {
		if _, _, err := d.addOne(tiny(t, i), noon); err != nil {
			t.Fatal(err)
		}
	}
	d = known(t, s, 10, mesh(t)["ana"])
	for _, l := range d.entries {
		l.parsed = weak.Pointer[Definition]{}
	}
	s.Blind[string(definitionKey(tiny(t, 0).Hash()))] = errors.New("bad block")
	sent, failed := 0, 0
	for _, err := range d.newer(nil) {
		if sent++; err != nil {
			sent, failed = sent-1, failed+1
		}
	}
	if sent != 4 || failed != 1 {
		t.Errorf("%d were sent, %d could not be read", sent, failed)
	}
	if _, err := d.Get(tiny(t, 0).Hash()); err == nil || d.listing(tiny(t, 0).Hash()) != nil {
		t.Errorf("what cannot be read is still here, so that no partner sends it again: %v", err)
	}
}

// Of what one member took off the list so many notices are remembered, of others' as
// before; what nobody lists or uses is deleted, and whatever happens meanwhile what is
// used or listed again is here whole.
func TestSweepOfDefinitions(t *testing.T) {
	all := mesh(t)
	d, s := shelved(t, 16)
	none := func() func(workflow.Hash) bool { return func(workflow.Hash) bool { return false } }
	hear := func(by string, n, notices int) {
		t.Helper()
		if _, err := d.hears(all[by].says(t, tiny(t, n), notices, noon)); err != nil {
			t.Fatal(err)
		}
	}
	hear("bea", 0, 1)
	hear("bea", 0, 2)
	for i := 1; i <= 40; i++ {
		hear("mal", i, 1)
		hear("mal", i, 2)
	}
	used := tiny(t, 40).Hash()
	if err := d.Sweep(func() func(workflow.Hash) bool { return nil }); err != nil || !d.has(tiny(t, 1).Hash()) {
		t.Fatalf("though it was not known what is used, some were deleted: %v", err)
	}
	if err := d.Sweep(func() func(workflow.Hash) bool { return func(h workflow.Hash) bool { return h == used } }); err != nil {
		t.Fatal(err)
	}
	for range 2 { // also after a start
		bodies, removals := 0, map[workflow.PartnerID]int{}
		for _, l := range d.entries {
			if _, err := s.Get(definitionKey(l.hash)); err == nil {
				bodies++
			}
			for p := range l.claims {
				removals[p]++
			}
		}
		if bodies != 1 || !d.has(used) || removals[all["mal"].ID()] != 4 || removals[all["bea"].ID()] != 1 {
			t.Errorf("there are %d definitions, and the removals %v", bodies, removals)
		}
		d = known(t, s, 16, all["ana"])
	}
	if _, err := d.Get(tiny(t, 0).Hash()); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("what was deleted is read: %v", err)
	}
	hear("bea", 0, 3)
	if _, err := d.Get(tiny(t, 0).Hash()); err != nil || len(d.list()) != 1 {
		t.Errorf("what is listed again cannot be read: %v", err)
	}
	hear("bea", 0, 4)
	if err := errors.Join(d.Sweep(none), d.Keep(decoded(t, tiny(t, 0)))); err != nil {
		t.Fatal(err)
	}
	d = known(t, s, 16, all["ana"])
	if _, err := d.Get(tiny(t, 0).Hash()); err != nil {
		t.Errorf("what came with an instance after that cannot be read: %v", err)
	}
}

// Of editions that were added within one second the last is what the name means, whatever
// their versions; also after one by a clock that was ahead. What is listed stays as it is.
func TestTheEditionAddedLastIsTheNewest(t *testing.T) {
	d, _ := shelved(t, 10)
	for i, version := range []int{7, 3, 5, 1} {
		at := noon
		if i == 1 {
			at = noon.Add(time.Hour) // this clock was ahead for a while
		}
		if _, _, err := d.addOne(of(t, "w", version), at); err != nil {
			t.Fatal(err)
		}
		if l, err := d.find("w"); err != nil || l.about.Version != version {
			t.Errorf("w is version %d (%v), want %d, which was added last", l.about.Version, err, version)
		}
	}
	_, say, err := d.addOne(of(t, "w", 7), noon.Add(2*time.Hour))
	if err != nil || len(say) > 0 {
		t.Errorf("an edition that is listed is listed again: %v, %v", say, err)
	}
	if l, err := d.find("w"); err != nil || l.about.Version != 1 {
		t.Errorf("w is version %d (%v), want 1, which was added last", l.about.Version, err)
	}
}

// addOne is add of one definition.
func (d *Definitions) addOne(def *workflow.Definition, now time.Time) (*listing, []wire.Definition, error) {
	all, err := d.add(now, def.Canonical())
	if err != nil {
		return nil, nil, err
	}
	return all[0].listing, all[0].say, nil
}

// Several that are added together are listed all or none: the disk takes them with one write, and of two who add some at
// once the second finds what room the first left.
func TestSeveralAreListedTogether(t *testing.T) {
	t.Run("the disk", func(t *testing.T) {
		d, s := shelved(t, 10)
		writes := 0
		s.Takes = func() time.Duration { writes++; return 0 }
		all, err := d.add(noon, tiny(t, 0).Canonical(), tiny(t, 1).Canonical(), tiny(t, 2).Canonical())
		if err != nil || len(all) != 3 || len(d.list()) != 3 || writes != 1 {
			t.Errorf("%d are listed, of %d, with %d writes: %v", len(d.list()), len(all), writes, err)
		}
		if again := known(t, s, 10, mesh(t)["ana"]); len(again.list()) != 3 {
			t.Errorf("after a restart %d are listed", len(again.list()))
		}
	})
	t.Run("two at once", func(t *testing.T) {
		d, _ := shelved(t, 5)
		errs := make(chan error, 2)
		for i := range 2 {
			go func() {
				var forms [][]byte
				for n := range 3 {
					forms = append(forms, tiny(t, 10*i+n).Canonical())
				}
				_, err := d.add(noon, forms...)
				errs <- err
			}()
		}
		if one, other := <-errs, <-errs; (one == nil) == (other == nil) || len(d.list()) != 3 {
			t.Errorf("%d are listed: %v, %v", len(d.list()), one, other)
		}
	})
}
