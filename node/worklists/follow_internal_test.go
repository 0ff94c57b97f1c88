package worklists

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/codec"
	"github.com/mutirao-mesh/mutirao/node/store/kv/kvtest"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
	"github.com/mutirao-mesh/mutirao/worklist/own"
)

// devices are the nodes of one user, bia, each with its desk, and others. A word is who says it, and what.
type devices struct {
	t     *testing.T
	desks map[workflow.PartnerID]*Desk
	asked int // requests
	bytes int // of requests and answers
	why   map[string]int
	cut   bool
}

// deviceAt is how the desk of a node sees the others.
type deviceAt struct {
	Peers
	*devices
	self workflow.PartnerID
}

func (d deviceAt) Up(workflow.PartnerID) bool { return !d.cut }

func (d deviceAt) Refuse(why string, _ workflow.PartnerID) { d.why[why]++ }

func (d deviceAt) Request(
	_ context.Context, p workflow.PartnerID, _ []string, _ string, req []byte, _ time.Duration,
) ([]byte, error) {
	if d.cut {
		return nil, errors.New("cut off")
	}
	out, err := d.desks[p].AnswerFollow(d.self, req)
	d.asked, d.bytes = d.asked+1, d.bytes+len(req)+len(out)
	return out, err
}

// biasKey speaks for bia at one node.
type biasKey struct {
	onlyBia
	*devices
	self workflow.PartnerID
}

func (b biasKey) Speak(w users.Who, signed [sha256.Size]byte) ([]byte, error) {
	return fmt.Appendf(nil, "%s %s %x", w.ID, b.self, signed), nil
}

func (b biasKey) MaySpeak(word []byte, signed [sha256.Size]byte, from workflow.PartnerID) error {
	if string(word) != fmt.Sprintf("bia %s %x", from, signed) {
		return errors.New("it is not bia's word")
	}
	return nil
}

func (b biasKey) MayAsk(person string, from workflow.PartnerID) error {
	if _, is := b.desks[from]; !is || person != "bia" {
		return errors.New("bia is not there")
	}
	return nil
}

func (b biasKey) Elsewhere() (out []users.Elsewhere) {
	for p := range b.desks {
		if p != b.self {
			out = append(out, users.Elsewhere{Who: users.Who{ID: "bia", Name: "bia"}, At: p})
		}
	}
	return out
}

func devicesOf(t *testing.T, names ...workflow.PartnerID) *devices {
	t.Helper()
	all := &devices{t: t, desks: map[workflow.PartnerID]*Desk{}, why: map[string]int{}}
	for _, self := range names {
		d, err := New(Surroundings{
			Self: self, Store: kvtest.New(), Clock: wallClock{}, Peers: deviceAt{devices: all, self: self},
			People: biasKey{devices: all, self: self}, Instances: &nothing{}, Log: slog.New(slog.DiscardHandler),
			Nudge: func() {}, Publish: func(api.Event) {}, Name: func(p workflow.PartnerID) string { return string(p) },
		})
		if err != nil {
			t.Fatal(err)
		}
		all.desks[self] = d
	}
	return all
}

// round has one node compare with another.
func (d *devices) round(a, b workflow.PartnerID) {
	d.t.Helper()
	who := users.Who{ID: "bia", Name: "bia"}
	if err := d.desks[a].followWith(users.Elsewhere{Who: who, At: b}); err != nil {
		d.t.Fatal(err)
	}
}

func (d *devices) alike(a, b workflow.PartnerID) bool {
	return own.Sums(d.desks[a].recordsOf("bia")) == own.Sums(d.desks[b].recordsOf("bia"))
}

func (d *devices) take(at workflow.PartnerID, records ...own.Record) {
	d.t.Helper()
	if _, err := d.desks[at].takeFollowed(users.Who{ID: "bia"}, records, at); err != nil {
		d.t.Fatal(err)
	}
}

func spotAt(i int, count uint64, by workflow.PartnerID) own.Record {
	return own.Record{Spot: &worklist.Spot{
		Instance: workflow.InstanceID{byte(i), byte(i >> 8)}, Item: worklist.Item{Slot: "weigh"}, Row: int64(i),
		Part: "8", Count: count, By: by,
	}}
}

func readOf(i, marks int) own.Record {
	r := &own.Read{Instance: workflow.InstanceID{byte(i), byte(i >> 8)}, Noted: int64(i + 1)}
	for m := range marks {
		r.Marks = append(r.Marks, own.Mark{byte(m), byte(m >> 8)})
	}
	return own.Record{Read: r}
}

// All that one node may keep of a user arrives at another that has nothing, in as many messages as it takes; then
// one change costs a small part of it, and none next to nothing. It is there after a restart.
func TestAllThatAUserSetArrives(t *testing.T) {
	d := devicesOf(t, "pc", "phone")
	var all []own.Record
	for i := range own.MaxSpots {
		all = append(all, spotAt(i, uint64(i+1), "pc"))
	}
	for i := range own.MaxMarked {
		all = append(all, readOf(i, 40))
	}
	all = append(all, readOf(3, own.MaxMarks), own.Record{Switch: &own.Switch{On: true, Count: 1, By: "pc"}})
	d.take("pc", all...)
	d.round("phone", "pc")
	if !d.alike("pc", "phone") || len(d.desks["phone"].recordsOf("bia")) != own.MaxSpots+own.MaxMarked+1 {
		t.Fatalf("the phone has %d records of %d", len(d.desks["phone"].recordsOf("bia")), len(all)-1)
	}
	t.Logf("all: %d requests, %d bytes", d.asked, d.bytes)
	for i, most := range []int{15_000, 3_000} {
		d.asked, d.bytes = 0, 0
		if i == 0 {
			d.take("phone", spotAt(7, 5000, "phone"))
		}
		d.round("phone", "pc")
		t.Logf("%d changes: %d requests, %d bytes", 1-i, d.asked, d.bytes)
		if !d.alike("pc", "phone") || d.bytes > most {
			t.Errorf("%d changes cost %d bytes, want at most %d; alike: %t", 1-i, d.bytes, most, d.alike("pc", "phone"))
		}
	}
	again, err := New(d.desks["phone"].in)
	if err != nil {
		t.Fatal(err)
	}
	if own.Sums(again.recordsOf("bia")) != own.Sums(d.desks["pc"].recordsOf("bia")) {
		t.Error("after a restart the phone has something else")
	}
}

// Where one of two has no room for what the other keeps, they do not tell it again and again.
func TestNothingIsToldInVainTwice(t *testing.T) {
	d := devicesOf(t, "pc", "phone")
	for i := range own.MaxMarked {
		d.take("pc", readOf(i, 1))
		d.take("phone", readOf(i+own.MaxMarked, 1))
	}
	d.round("pc", "phone")
	d.round("pc", "phone")
	d.asked, d.bytes = 0, 0
	d.round("pc", "phone")
	if n := len(d.desks["pc"].seen); n > 2*own.MaxMarked || d.asked > 1 {
		t.Errorf("the PC keeps what was read of %d instances, and asks %d times", n, d.asked)
	}
}

// A node at which the user is not, or that says what the user did not, has nothing taken in, and is told nothing.
func TestWhoIsNotThatUserSaysNothing(t *testing.T) {
	d := devicesOf(t, "pc", "phone")
	d.take("pc", spotAt(1, 1, "pc"))
	bia := users.Who{ID: "bia", Name: "bia"}
	say := func(by, to workflow.PartnerID, tell telling) []byte {
		b, err := d.desks[by].sayFollow(bia, to, tell)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	evil := telling{User: "bia", Asks: true, Records: []toldRecord{toldOf(spotAt(2, 9, "phone"))}}
	forged, err := wire.EncodeFollow(wire.Follow{Says: codec.Encode(evil), Word: []byte("bia phone")})
	if err != nil {
		t.Fatal(err)
	}
	malformed := evil
	malformed.Records = []toldRecord{{}}
	rui := evil
	rui.User = "rui"
	for name, c := range map[string]struct {
		from workflow.PartnerID
		req  []byte
		why  string
	}{
		"a stranger's word":               {"stranger", say("phone", "pc", evil), "follow-of-others"},
		"a word that was said to another": {"phone", say("phone", "tablet", evil), "follow-of-others"},
		"a forged one":                    {"phone", forged, "follow-of-others"},
		"for somebody else":               {"phone", say("phone", "pc", rui), "follow-of-others"},
		"a record of nothing":             {"phone", say("phone", "pc", malformed), "follow-malformed"},
		"nothing":                         {"phone", nil, "follow-malformed"},
	} {
		clear(d.why)
		if out, err := d.desks["pc"].AnswerFollow(c.from, c.req); err == nil || len(out) > 0 || d.why[c.why] != 1 {
			t.Errorf("%s: %q, %v, counted %v, want %s", name, out, err, d.why, c.why)
		}
		if n := len(d.desks["pc"].recordsOf("bia")); n != 1 {
			t.Fatalf("%s: the PC has %d records", name, n)
		}
	}
	if _, err := d.desks["pc"].AnswerFollow("phone", say("phone", "pc", evil)); err != nil {
		t.Errorf("bia's own word: %v", err)
	}
	clear(d.why)
	for range followRation.Burst + 1 {
		_, _ = d.desks["pc"].AnswerFollow("phone", nil)
	}
	if d.why["follow-too-fast"] == 0 {
		t.Errorf("%d questions at once are answered: %v", followRation.Burst+1, d.why)
	}
}

// What versions before this one wrote of prefetching is read, and is this node's own.
func TestASettingOfAnEarlierVersion(t *testing.T) {
	got, err := readSetting(codec.Encode(settingBefore{Prefetch: true, AtMost: 7}), "here")
	if want := (own.Switch{On: true, AtMost: 7, Count: 1, By: "here"}); err != nil || got != want {
		t.Errorf("it is %+v, %v; want %+v", got, err, want)
	}
}

// Whatever a node says of a user, it is read as what a device may say, or refused, and not read twice differently.
func FuzzTelling(f *testing.F) {
	f.Add(codec.Encode(telling{User: "bia", Asks: true, Sums: own.Sums([]own.Record{spotAt(1, 1, "pc")})}))
	f.Add(codec.Encode(telling{User: "bia", Records: []toldRecord{
		toldOf(spotAt(1, 1, "pc")), toldOf(readOf(2, 3)),
		toldOf(own.Record{Switch: &own.Switch{On: true, AtMost: 9, Count: 2, By: "phone"}}),
	}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, records, err := decodeTelling(b)
		if err != nil {
			return
		}
		is := &own.State{Hand: worklist.NewHand(), Read: map[workflow.InstanceID]own.Read{}}
		for _, r := range records {
			if r.Check() != nil {
				t.Fatalf("it passes: %+v", r)
			}
			is.Merge(r)
			back, err := toldOf(r).record()
			if err != nil || string(codec.Encode(toldOf(back))) != string(codec.Encode(toldOf(r))) {
				t.Fatalf("%+v comes out as %+v, %v", r, back, err)
			}
		}
		for _, r := range records {
			if is.Merge(r) && r.Read == nil {
				t.Fatalf("%+v is news twice", r)
			}
		}
	})
}
