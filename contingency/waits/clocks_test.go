package waits

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// A wait that is dropped, since something joined what it is for, is not on the disk any
// more when the next fact is, among however many: restored after a crash it would be
// over too early. One of few that begins is stored at once, one of many with the next.
func TestWhatIsStoredOfWaits(t *testing.T) {
	now := time.Minute
	answer := func(i int) Key { return Key{Kind: Answer, Name: fmt.Sprintf("p%d", i)} }
	for _, n := range []int{3, 100} {
		cs := New[struct{}](new(int))
		for i := range n {
			cs.Begin(answer(i), 0, now)
		}
		ws := cs.ToSave(now, 1)
		if ws == nil || len(ws.All) != n {
			t.Fatalf("of %d waits are stored: %v", n, ws)
		}
		now += time.Millisecond
		cs.Drop(answer(1))
		cs.Begin(answer(1).HandOver(), 0, now)
		ws = cs.ToSave(now, 1)
		if ws == nil || slices.ContainsFunc(ws.All, func(w Wait) bool { return w.Key == answer(1) }) {
			t.Errorf("of %d waits one was dropped, and stays stored: %v", n, ws)
		}
		now += time.Millisecond
		cs.Begin(answer(n), 0, now)
		if ws = cs.ToSave(now, 1); (ws != nil) != (n <= fewWaits-1) {
			t.Errorf("one more than %d waits began, and these are stored at once: %v", n, ws)
		}
	}
}

// A wait that nobody wants any more is not on the disk any more when the next fact is: it may be wanted again, and
// restored it would count the time in between. Of many that are about an attempt each it stays until the next are
// stored.
func TestWhatIsSweptIsNotStored(t *testing.T) {
	for _, x := range []struct {
		kind  Kind
		n     int
		stays bool
	}{{Partition, 3, false}, {Attempt, 3, false}, {Partition, 100, false}, {Attempt, 100, true}, {Timeout, 100, false}} {
		cs := New[struct{}](new(int))
		key := func(i int) Key { return Key{Kind: x.kind, Name: fmt.Sprintf("w%d", i)} }
		for i := range x.n {
			cs.Run(key(i), true, 0)
		}
		cs.ToSave(0, 1)
		wanted := map[Key]bool{}
		cs.Pass()
		for i := range x.n - 1 {
			wanted[key(i)] = true
			cs.Run(key(i), true, time.Millisecond)
		}
		cs.Sweep()
		cs.Only(wanted)
		ws := cs.ToSave(time.Millisecond, 1)
		gone := ws != nil && !slices.ContainsFunc(ws.All, func(w Wait) bool { return w.Key == key(x.n-1) })
		if gone == x.stays {
			t.Errorf("one of %d waits of kind %d was not wanted; that it stays stored is %t", x.n, x.kind, !gone)
		}
	}
}

// A clock rests while what it is for does, and goes on from there.
func TestAClockRests(t *testing.T) {
	cs, k := New[struct{}](new(int)), Key{Kind: Partition, Name: "p"}
	for _, at := range []struct {
		now, want time.Duration
		running   bool
	}{
		{0, 0, true},
		{3 * time.Second, 3 * time.Second, false},
		{9 * time.Second, 3 * time.Second, true},
		{10 * time.Second, 4 * time.Second, true},
		{8 * time.Second, 3 * time.Second, true}, // a clock that went back counts nothing off
	} {
		if got := cs.Run(k, at.running, at.now); got != at.want {
			t.Errorf("at %s it has run for %s, want %s", at.now, got, at.want)
		}
	}
}

// What was stored goes on after a break: what ran has run meanwhile, what rested has not. What
// facts may have begin again does so if other facts are here than were looked at.
func TestWaitsOutliveABreak(t *testing.T) {
	timeout, resting := Key{Kind: Timeout, Name: "a"}, Key{Kind: Partition, Name: "p"}
	answer := Key{Kind: Answer, Name: "q"}
	was := New[struct{}](new(int))
	was.Run(timeout, true, 0)
	was.Run(resting, true, 0)
	was.Run(resting, false, time.Second)
	was.Begin(answer, 0, 0).Known = 7
	stored := was.ToSave(10*time.Second, 9)
	if stored.Known != 7 {
		t.Errorf("%d facts were looked at, want the 7 of the answer", stored.Known)
	}
	for _, x := range []struct {
		facts int
		want  map[Key]time.Duration
	}{
		{7, map[Key]time.Duration{timeout: 40 * time.Second, resting: time.Second, answer: 40 * time.Second}},
		{8, map[Key]time.Duration{timeout: 40 * time.Second, resting: time.Second}},
	} {
		cs, now := New[struct{}](new(int)), 2*time.Second // of another boot
		cs.Restore(*stored, 30*time.Second, now, x.facts)
		if cs.Len() != len(x.want) {
			t.Errorf("with %d facts there are %d waits, want %d", x.facts, cs.Len(), len(x.want))
		}
		for k, want := range x.want {
			if c := cs.Get(k); c == nil || c.Read(now) != want {
				t.Errorf("with %d facts the clock of %v is %+v, want %s", x.facts, k, c, want)
			}
		}
		if again := cs.ToSave(now, x.facts); (again != nil) != (x.facts != 7) {
			t.Errorf("with %d facts is stored at once: %v; what began again must not be over too early", x.facts, again)
		}
	}
}

// Of others only what a pass finds wanted stays; of own tasks what was not ended.
func TestAPassEndsWhatNobodyWants(t *testing.T) {
	cs := New[struct{}](new(int))
	own, wanted, kept, gone := Key{Kind: Timeout, Name: "a"}, Key{Kind: Attempt, Name: "b"},
		Key{Kind: Answer, Name: "p"}, Key{Kind: Gone, Name: "q"}
	for _, k := range []Key{own, wanted, kept.HandOver(), gone} {
		cs.Run(k, true, 0)
	}
	cs.Pass()
	cs.Run(wanted, true, time.Second)
	cs.Keep(kept)
	cs.Sweep()
	for k, stays := range map[Key]bool{own: true, wanted: true, kept.HandOver(): true, gone: false} {
		if (cs.Get(k) != nil) != stays {
			t.Errorf("that the wait %v stays is %t", k, !stays)
		}
	}
	if cs.BeginAfter(kept, 0, time.Second); cs.Get(kept.HandOver()) != nil {
		t.Error("what was handed over is still waited for to be")
	}
	if cs.Only(map[Key]bool{}); cs.Get(own) != nil || cs.Get(wanted) == nil {
		t.Error("only the own ones end that are not wanted")
	}
}

// Leases last for days, and there may be many of them: where nothing else runs they are stored once in an hour, and
// outlast passes over what is waited for of others.
func TestLeasesAreStoredSeldom(t *testing.T) {
	steps := 0
	cs := New[struct{}](&steps)
	lease := Key{Kind: Lease, Name: "a"}
	cs.Begin(lease, time.Minute, 0)
	if ws := cs.ToSave(0, 1); ws == nil || len(ws.All) != 1 || ws.All[0].Elapsed != time.Minute {
		t.Fatalf("as it begins %+v is stored", ws)
	}
	if at, ok := cs.NextSave(); at != time.Hour || !ok {
		t.Errorf("it is stored again at %s, %t, want in an hour", at, ok)
	}
	cs.Pass()
	cs.Sweep()
	if ws := cs.ToSave(59*time.Minute, 1); ws != nil {
		t.Errorf("before an hour is over %+v is stored", ws)
	}
	cs.Run(Key{Kind: Gone, Name: "p"}, true, 0)
	if at, ok := cs.NextSave(); at != saveEvery || !ok {
		t.Errorf("with another wait they are stored at %s, %t, want after %s", at, ok, saveEvery)
	}
	cs.End(Key{Kind: Gone, Name: "p"})
	cs.Leases(func(string) (time.Duration, bool) { return time.Hour, true })
	if at, _ := cs.NextSave(); at != 3*time.Minute {
		t.Errorf("a lease of an hour is stored at %s, want each 3m", at)
	}
	ws := cs.ToSave(time.Hour, 1)
	back := New[struct{}](&steps)
	back.Restore(*ws, 2*time.Hour, 7*time.Hour, 1)
	if c := back.Get(lease); c == nil || c.Read(8*time.Hour) != 4*time.Hour+time.Minute {
		t.Errorf("restored it is %+v", c)
	}
	back.Leases(func(string) (time.Duration, bool) { return 0, false })
	if ws := back.ToSave(9*time.Hour, 1); back.LenLeases() != 0 || ws == nil || len(ws.All) != 0 {
		t.Errorf("once it is over %+v is stored", ws)
	}
}
