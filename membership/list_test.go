package membership

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/membership/trust/trusttest"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// at is a moment so many seconds after the test began.
func at(seconds int) moment.Now {
	d := time.Duration(seconds) * time.Second
	return moment.Now{Awake: d, Boot: d, Wall: trusttest.Noon.Add(d)}
}

// recordOf is name's record boot.seq, with a connection time of 15 s.
func recordOf(t testing.TB, tm trusttest.Team, name string, boot, seq uint64, change ...func(*Record)) Record {
	t.Helper()
	r := Record{
		Partner: trusttest.IDOf(name), Version: Version{boot, seq},
		Addresses:      []string{"/ip4/10.0.0.1/udp/4001/quic-v1"},
		ConnectionTime: 15 * time.Second, Chain: tm.Member(t, tm.Davi, name),
	}
	for _, f := range change {
		f(&r)
	}
	return r.Sign(trusttest.KeyOf(name))
}

// beatOf confirms record base of boot.
func beatOf(name string, boot, seq, base uint64) Beat {
	return Beat{
		Partner: trusttest.IDOf(name), Version: Version{boot, seq}, Base: base, Load: 500,
	}.Sign(trusttest.KeyOf(name))
}

// The scenario files tell stories about the partner list, in seconds of the
// observer's awake time. See testdata/list.txt for the words.
func TestListScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/list", func(t *testing.T, path string) {
		s := listStory{Team: trusttest.New(t)}
		s.restart()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return s.step(t, d) })
	})
}

// listStory is the list of partner "me" as a scenario drives it.
type listStory struct {
	trusttest.Team
	list *List
	now  moment.Now
	// slept is for how long the observer slept in all; its Awake clock stood still.
	slept time.Duration
}

// restart begins with an empty list.
func (s *listStory) restart() { s.list = NewList(s.Mesh, trusttest.IDOf("me"), s.Known) }

func (s *listStory) step(t *testing.T, d *datadriven.TestData) string {
	var sec int
	if d.MaybeScanArgs(t, "at", &sec) {
		s.now = at(sec)
		s.now.Boot, s.now.Wall = s.now.Boot+s.slept, s.now.Wall.Add(s.slept)
	}
	switch d.Cmd {
	case "record":
		return s.record(t, d)
	case "beat":
		var name string
		var v Version
		var base uint64
		s.scan(t, d, &name, &v)
		d.ScanArgs(t, "base", &base)
		events, err := s.list.Beat(beatOf(name, v.Boot, v.Seq, base), age(t, d), s.now)
		return s.told(events, err)
	case "pulse":
		var name string
		var v Version
		s.scan(t, d, &name, &v)
		events, err := s.list.Pulse(trusttest.IDOf(name), v, 500, s.now)
		return s.told(events, err)
	case "hint":
		var name, what string
		d.ScanArgs(t, "of", &name)
		d.ScanArgs(t, "is", &what)
		return s.told(s.list.Hint(trusttest.IDOf(name), what == "reachable", s.now), nil)
	case "tick":
		events, next, ok := s.list.Tick(s.now)
		if !ok {
			return s.told(events, nil) + "nothing to wait for\n"
		}
		return s.told(events, nil) + fmt.Sprintf("next at %s\n", next)
	case "gap":
		s.list.Gap(s.now)
		return "ok\n"
	case "sleep":
		d.ScanArgs(t, "for", &sec)
		s.slept += time.Duration(sec) * time.Second
		return "ok\n"
	case "evict":
		var name string
		d.ScanArgs(t, "of", &name)
		s.Evict(t, s.Ana, name, trust.Serial{}, s.chains()...)
		return s.told(s.list.Review(s.now), nil)
	case "restart":
		return s.reload(t)
	case "list":
		return s.show()
	default:
		return "unknown command " + d.Cmd
	}
}

// scan reads of=name and v=boot.seq.
func (s *listStory) scan(t *testing.T, d *datadriven.TestData, name *string, v *Version) {
	var text string
	d.ScanArgs(t, "of", name)
	d.ScanArgs(t, "v", &text)
	if _, err := fmt.Sscanf(text, "%d.%d", &v.Boot, &v.Seq); err != nil {
		t.Fatal(err)
	}
}

// age reads age=seconds.
func age(t *testing.T, d *datadriven.TestData) time.Duration {
	var sec int
	d.MaybeScanArgs(t, "age", &sec)
	return time.Duration(sec) * time.Second
}

// record applies, or publishes if it is of "me", a record.
func (s *listStory) record(t *testing.T, d *datadriven.TestData) string {
	var name, address string
	var v Version
	var away int
	s.scan(t, d, &name, &v)
	d.MaybeScanArgs(t, "away", &away)
	r := recordOf(t, s.Team, name, v.Boot, v.Seq, func(r *Record) {
		switch {
		case d.HasArg("left"):
			r.Going = Leaves
		case d.HasArg("left-for-good"):
			r.Going = LeavesForGood
		case d.HasArg("going-down"):
			r.Going = GoesDown
		case away > 0:
			r.Going, r.Away = GoesDown, time.Duration(away)*time.Second
		}
		if d.MaybeScanArgs(t, "address", &address) {
			r.Addresses = []string{address}
		}
		if d.HasArg("forged") {
			r.Chain[0].Roles = trusttest.Roles("commander")
		}
		if d.HasArg("ran-out") {
			day := trust.Wall(24 * 60 * 60)
			r.Chain = s.Issue(t, s.Ana, trust.Certificate{
				Partner: r.Partner, Name: name, Roles: trusttest.Roles("crew"), Serial: trusttest.Serial(name + "-0"),
				NotBefore: trust.WallOf(trusttest.Noon) - 9*day, NotAfter: trust.WallOf(trusttest.Noon) - 8*day,
			})
		}
		if d.HasArg("renewed") {
			r.Chain = s.Issue(t, s.Davi,
				trust.Certificate{
					Partner: r.Partner, Name: name, Roles: trusttest.Roles("crew", "pilot"),
					Serial: trusttest.Serial("new"), NotBefore: trust.WallOf(trusttest.Noon) + 1,
				})
		}
	})
	if d.HasArg("recalled") {
		return s.told(s.list.Recall(r, s.now))
	}
	if name == "me" && !d.HasArg("foreign") {
		return s.told(s.list.Publish(r, s.now))
	}
	return s.told(s.list.Apply(r, age(t, d), s.now))
}

// reload goes through the store, as a restart does.
func (s *listStory) reload(t *testing.T) string {
	stored := s.list.Snapshot()
	s.restart()
	for _, one := range stored {
		back, err := DecodeStored(EncodeStored(one))
		if err != nil {
			t.Fatal(err)
		}
		s.list.Restore(back, s.now)
	}
	return s.show()
}

func (s *listStory) chains() []trust.Chain {
	var out []trust.Chain
	for _, p := range s.list.Partners() {
		out = append(out, p.Record.Chain)
	}
	return out
}

// told writes events with names instead of IDs.
func (s *listStory) told(events []Event, err error) string {
	var b strings.Builder
	for _, ev := range events {
		fmt.Fprintf(&b, "%s %s", s.list.Label(ev.Partner), ev.Kind)
		if ev.Kind == EventOutrun {
			fmt.Fprintf(&b, " by %s", ev.Version)
		}
		b.WriteByte('\n')
	}
	if err != nil {
		named := said.Render(err, func(id workflow.PartnerID) string {
			for _, name := range []string{"ana", "bia", "caio", "davi", "me"} {
				if trusttest.IDOf(name) == id {
					return name
				}
			}
			return string(id)
		})
		fmt.Fprintf(&b, "refused: %s\n", named)
	}
	if b.Len() == 0 {
		return "nothing\n"
	}
	return b.String()
}

// show writes the list, a partner a line.
func (s *listStory) show() string {
	var b strings.Builder
	for _, p := range s.list.Partners() {
		why := ""
		if reason := p.Reason(); p.State == Unreachable || p.State == Expired {
			why = fmt.Sprintf(" since %s (%s)", p.Since.Time().Format(time.TimeOnly), reason)
		}
		if p.Absent() {
			why += " until " + p.Until.Time().Format(time.TimeOnly)
		}
		fmt.Fprintf(&b, "%s %s%s %s %v %v load %d, validated %s\n", p.Record.Name(), p.State, why, p.Record.Version,
			p.Record.Roles(),
			p.Record.Addresses, p.Load, p.Validated.Time().Format(time.TimeOnly))
	}
	return b.String()
}

// Which record is kept, and who is in, does not depend on the order in which
// records arrive, nor on repetitions.
func TestListIsIndependentOfOrder(t *testing.T) {
	tm := trusttest.New(t)
	var records []Record
	for _, name := range []string{"bia", "caio"} {
		renewed := tm.Issue(t, tm.Davi, trust.Certificate{
			Partner: trusttest.IDOf(name), Name: name, Serial: trusttest.Serial("new"),
			NotBefore: trust.WallOf(trusttest.Noon) + 1,
		})
		for boot := uint64(1); boot <= 2; boot++ {
			for seq := uint64(1); seq <= 2; seq++ {
				for twin := range 2 {
					records = append(records, recordOf(t, tm, name, boot, seq, func(r *Record) {
						r.Load = PerMille(twin)
						if seq == 2 && boot == 2 && name == "caio" {
							r.Going = Leaves
						}
						if boot == 1 && seq == 2 {
							r.Chain = renewed
						}
					}))
				}
			}
		}
	}
	fold := func(order []Record) []Record {
		l := NewList(tm.Mesh, trusttest.IDOf("me"), tm.Known)
		for _, r := range order {
			if _, err := l.Apply(r, 0, at(1)); err != nil && !errors.Is(err, ErrReplaced) {
				t.Fatal(err)
			}
		}
		var out []Record
		for _, p := range l.Partners() {
			out = append(out, p.Record)
		}
		return out
	}
	want := fold(records)
	rapid.Check(t, func(t *rapid.T) {
		order := rapid.Permutation(records).Draw(t, "order")
		order = append(order, rapid.SliceOfN(rapid.SampledFrom(records), 0, 5).Draw(t, "again")...)
		if diff := cmp.Diff(want, fold(order)); diff != "" {
			t.Fatalf("another order gives another list: %s", diff)
		}
	})
}

// Whatever two nodes have heard of, one exchange each way makes them equal.
func TestDigestsFindTheDifference(t *testing.T) {
	tm := trusttest.New(t)
	names := []string{"bia", "caio", "gil"}
	records, beats := map[string][]Record{}, map[string][]Beat{}
	for _, name := range names {
		for base := uint64(1); base <= 5; base += 2 {
			records[name] = append(records[name], recordOf(t, tm, name, 1, base))
			beats[name] = append(beats[name], beatOf(name, 1, base+1, base))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		var lists [2]*List
		for i := range lists {
			lists[i] = NewList(tm.Mesh, trusttest.IDOf(fmt.Sprint("node", i)), tm.Known)
			for _, name := range names {
				for k := range rapid.IntRange(0, 3).Draw(t, "records") {
					mustApply(t, lists[i], records[name][k:k+1], nil)
					if rapid.Bool().Draw(t, "beat") {
						mustApply(t, lists[i], nil, beats[name][k:k+1])
					}
				}
			}
		}
		for i, l := range lists {
			digest, err := DecodeDigest(EncodeDigest(lists[1-i].Digest()))
			if err != nil {
				t.Fatal(err)
			}
			r, b := l.Newer(digest)
			mustApply(t, lists[1-i], r, b)
		}
		if diff := cmp.Diff(lists[0].Digest(), lists[1].Digest()); diff != "" {
			t.Fatalf("the lists differ: %s", diff)
		}
		if r, b := lists[0].Newer(lists[1].Digest()); len(r)+len(b) > 0 {
			t.Fatalf("equal lists still send %d records and %d beats", len(r), len(b))
		}
	})
}

func mustApply(t *rapid.T, l *List, records []Record, beats []Beat) {
	for _, r := range records {
		if _, err := l.Apply(r, 0, at(1)); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range beats {
		if _, err := l.Beat(b, 0, at(1)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRecordIsRefused(t *testing.T) {
	tm := trusttest.New(t)
	tooMany := make([]string, trust.MaxAddresses+1)
	for i := range tooMany {
		tooMany[i] = "/ip4/10.0.0.1/tcp/1"
	}
	for _, c := range []struct {
		name   string
		change func(*Record)
		what   string
	}{
		{"addresses", func(r *Record) { r.Addresses = tooMany }, "17 addresses: at most 16"},
		{"address", func(r *Record) { r.Addresses = []string{strings.Repeat("x", trust.MaxAddress+1)} },
			"of 257 bytes: want 1 to 256"},
		{"capabilities", func(r *Record) { r.Capabilities = make([]workflow.Capability, MaxItems+1) },
			"129 capabilities: at most 128"},
		{"size", func(r *Record) {
			r.Capabilities = []workflow.Capability{workflow.Capability(strings.Repeat("x", MaxRecord))}
		}, "at most 16384"},
		{"connection time", func(r *Record) { r.ConnectionTime = time.Millisecond },
			"connection time 1ms: want 3s to 168h"},
		{"absence", func(r *Record) { r.Going, r.Away = GoesDown, MaxAway+1 }, "want 0 to 192h0m0s"},
		{"negative absence", func(r *Record) { r.Going, r.Away = GoesDown, -1 }, "want 0 to 192h0m0s"},
		{"absent and here", func(r *Record) { r.Away = time.Hour }, "away for 1h0m0s, and it does not go down: want 0"},
		{"another's certificate", func(r *Record) { r.Chain = tm.Member(t, tm.Davi, "caio") },
			"with the certificate of"},
		{"no certificate", func(r *Record) { r.Chain = nil }, "with the certificate of"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := NewList(tm.Mesh, trusttest.IDOf("me"), tm.Known)
			_, err := l.Apply(recordOf(t, tm, "bia", 1, 1, c.change), 0, at(1))
			if err == nil || !strings.Contains(err.Error(), c.what) || len(l.Partners()) > 0 {
				t.Errorf("error %v, want %q", err, c.what)
			}
		})
	}
	forged := recordOf(t, tm, "bia", 1, 1)
	forged.Load = 7
	_, err := NewList(tm.Mesh, trusttest.IDOf("me"), tm.Known).Apply(forged, 0, at(1))
	trusttest.Refused(t, err, trust.ErrForged, "record")
}

func TestFullListForgetsWhoIsGoneLongest(t *testing.T) {
	tm := trusttest.New(t)
	l := NewList(tm.Mesh, trusttest.IDOf("me"), tm.Known)
	for i := range MaxPartners {
		name := fmt.Sprint("p", i)
		l.Restore(Stored{Record: recordOf(t, tm, name, 1, 1), Validated: trust.Wall(i)}, at(0))
	}
	_, err := l.Apply(recordOf(t, tm, "bia", 1, 1), 0, at(1))
	trusttest.Refused(t, err, ErrListFull, "1024 partners, and none is gone")
	for _, i := range []int{7, 5, 9} {
		if _, err := l.Apply(recordOf(t, tm, fmt.Sprint("p", i), 1, 2, func(r *Record) { r.Going = Leaves }), 0, at(i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Apply(recordOf(t, tm, "bia", 1, 1), 0, at(10)); err != nil {
		t.Fatal(err)
	}
	if _, ok := l.Get(trusttest.IDOf("p5")); ok {
		t.Error("p5, gone longest, is still there")
	}
	if _, ok := l.Get(trusttest.IDOf("p7")); !ok || len(l.Partners()) != MaxPartners {
		t.Error("more than one was forgotten")
	}
}

// Whoever has the key of an evicted delegate can make as many members as it likes, whose certificates are void.
func TestSoManyAreRecalled(t *testing.T) {
	tm := trusttest.New(t)
	l := NewList(tm.Mesh, trusttest.IDOf("me"), tm.Known)
	tm.Evict(t, tm.Ana, "davi", trust.Serial{})
	for i := range MaxRecalled {
		if _, err := l.Recall(recordOf(t, tm, fmt.Sprint("p", i), 1, 1), at(0)); err != nil {
			t.Fatal(err)
		}
	}
	_, err := l.Recall(recordOf(t, tm, "bia", 1, 1), at(1))
	if err == nil || !strings.Contains(err.Error(), "256 such are listed, at most 256") {
		t.Errorf("one more: %v", err)
	}
}

func TestNames(t *testing.T) {
	tm := trusttest.New(t)
	l := NewList(tm.Mesh, trusttest.IDOf("me"), tm.Known)
	twin := func(r *Record) {
		r.Chain = tm.Issue(t, tm.Ana, trust.Certificate{
			Partner: r.Partner, Name: "bia", Serial: trusttest.Serial("twin"),
		})
	}
	asItIs := func(*Record) {}
	for name, change := range map[string]func(*Record){
		"bia": asItIs, "caio": asItIs, "eve": twin, "zo\u00eb": asItIs,
	} {
		if _, err := l.Apply(recordOf(t, tm, name, 1, 1, change), 0, at(1)); err != nil {
			t.Fatal(err)
		}
	}
	short := trusttest.IDOf("bia").Short()
	for text, want := range map[string]workflow.PartnerID{
		"caio": trusttest.IDOf("caio"), string(trusttest.IDOf("bia")): trusttest.IDOf("bia"),
		"zoe\u0308": trusttest.IDOf("zo\u00eb"), // as some keyboards and file systems write it
		short:       trusttest.IDOf("bia"), workflow.CommonID + short: trusttest.IDOf("bia"),
	} {
		if got, err := l.Resolve(text); err != nil || got != want {
			t.Errorf("Resolve(%q) = %s, %v, want %s", text, got, err, want)
		}
	}
	_, err := l.Resolve("bia")
	trusttest.Refused(t, err, ErrAmbiguous, short)
	_, err = l.Resolve("nobody")
	trusttest.Refused(t, err, ErrNoPartner, `"nobody"`)
	if got, want := l.Label(trusttest.IDOf("bia")), "bia ("+short+")"; got != want {
		t.Errorf("Label = %q, want %q", got, want)
	}
	if got, err := l.Resolve("bia (" + short + ")"); err != nil || got != trusttest.IDOf("bia") {
		t.Errorf("what people are shown is resolved to %s, %v", got, err)
	}
	if got := l.Label(trusttest.IDOf("caio")); got != "caio" {
		t.Errorf("Label = %q, want caio", got)
	}
	if _, err := l.Apply(recordOf(t, tm, "eve", 1, 2, twin, func(r *Record) { r.Going = Leaves }), 0, at(2)); err != nil {
		t.Fatal(err)
	}
	if got, err := l.Resolve("bia"); err != nil || got != trusttest.IDOf("bia") {
		t.Errorf("Resolve(bia) = %s, %v, although the other bia left", got, err)
	}
	l.partners[trusttest.IDOf("bia")].State = Expired
	_, err = l.Resolve("bia")
	trusttest.Refused(t, err, ErrAmbiguous, short) // both are gone, and both are members
	l.partners[trusttest.IDOf("eve")].State = Evicted
	if got, err := l.Resolve("bia"); err != nil || got != trusttest.IDOf("bia") {
		t.Errorf("Resolve(bia) = %s, %v, although the other bia was evicted", got, err)
	}
	l.partners[trusttest.IDOf("bia")].State = Evicted
	_, err = l.Resolve("bia")
	trusttest.Refused(t, err, ErrAmbiguous, "which were all evicted")
}

// Whatever its connectionTime, a partner that falls silent is unreachable before it
// expires, also for a node that looks late; and that is no wrong alarm where one of its
// three signs of life is lost.
func TestUnreachableBeforeExpired(t *testing.T) {
	tm := trusttest.New(t)
	rapid.Check(t, func(r *rapid.T) {
		ct := time.Duration(rapid.Int64Range(int64(MinConnectionTime), int64(MaxConnectionTime)).
			Draw(r, "connection time"))
		late := time.Duration(rapid.Int64Range(0, int64(lateness)).Draw(r, "late"))
		l := NewList(tm.Mesh, trusttest.IDOf("me"), tm.Known)
		at := func(d time.Duration) moment.Now { return moment.Now{Awake: d, Boot: d, Wall: trusttest.Noon.Add(d)} }
		rec := recordOf(t, tm, "bia", 1, 1, func(r *Record) { r.ConnectionTime = ct })
		if _, err := l.Apply(rec, 0, at(0)); err != nil {
			r.Fatal(err)
		}
		if events, _, _ := l.Tick(at(ct * 10 / 16)); len(events) > 0 {
			r.Fatalf("after a lost sign of life: %v", events)
		}
		_, next, ok := l.Tick(at(ct * 10 / 16))
		var seen []EventKind
		for ok {
			var events []Event
			events, next, ok = l.Tick(at(next + late))
			for _, e := range events {
				seen = append(seen, e.Kind)
			}
		}
		if diff := cmp.Diff([]EventKind{EventUnreachable, EventExpired}, seen); diff != "" {
			r.Fatal(diff)
		}
	})
}

// A partner that took in a later record of one that left for good is told its last word all
// the same, and does not bring the later record back.
func TestLastWordReachesEverybody(t *testing.T) {
	tm := trusttest.New(t)
	a, b := NewList(tm.Mesh, trusttest.IDOf("ana"), tm.Known), NewList(tm.Mesh, trusttest.IDOf("caio"), tm.Known)
	last := recordOf(t, tm, "bia", 1, 2, func(r *Record) { r.Going = LeavesForGood })
	later := recordOf(t, tm, "bia", 2, 1)
	for l, r := range map[*List]Record{a: last, b: later} {
		if _, err := l.Apply(r, 0, at(1)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		for _, x := range [][2]*List{{a, b}, {b, a}} {
			records, _ := x[0].Newer(x[1].Digest())
			for _, r := range records {
				if _, err := x[1].Apply(r, 0, at(1)); err != nil && !errors.Is(err, ErrLeft) {
					t.Fatal(err)
				}
			}
		}
	}
	for _, l := range []*List{a, b} {
		if p, _ := l.Get(trusttest.IDOf("bia")); p.State != Left || !p.ForGood() {
			t.Errorf("bia is %s, record %s: want left for good", p.State, p.Record.Version)
		}
	}
}

// What a beat tells of work it tells once, and not more that can be done now than there is:
// a claim that is repeated would weigh more.
func TestBeatsThatTellOfWorkTwice(t *testing.T) {
	for _, c := range []struct {
		name string
		work []Work
		ok   bool
	}{
		{"each once", []Work{{1, 1, 5, 9}, {1, 2, 9, 9}, {2, 1, 0, 9}}, true},
		{"twice", []Work{{1, 1, 5, 9}, {2, 1, 5, 9}, {1, 1, 5, 9}}, false},
		{"more now than there is", []Work{{1, 1, 10, 9}}, false},
	} {
		b := beatOf("a", 1, 2, 1)
		b.Work = EncodeWork(c.work)
		if err := b.Sign(trusttest.KeyOf("a")).Verify(); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
