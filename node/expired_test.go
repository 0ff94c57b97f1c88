package node_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// A partner that has expired is still expired after a restart, and so gets no work
// until it is heard of; one that came back before the restart is not taken for expired.
func TestExpiredAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three")
		restart := func() {
			tm.p["one"].crash()
			tm.p["one"].start()
			tm.connect("one", "two")
		}
		tm.p["three"].crash()
		pass(3 * time.Hour)
		if s := tm.partnerState("one", "three"); s != "expired" {
			t.Fatalf("three is %s to one, want expired", s)
		}
		restart()
		if s := tm.partnerState("one", "three"); s != "expired" {
			t.Errorf("after a restart three is %s to one, want expired", s)
		}
		tm.p["three"].start()
		tm.connect("three", "one")
		tm.connect("three", "two")
		pass(time.Minute)
		if s := tm.partnerState("one", "three"); s != "active" {
			t.Fatalf("three is back, and %s to one", s)
		}
		tm.p["three"].crash()
		restart()
		if s := tm.partnerState("one", "three"); s != "unreachable" {
			t.Errorf("three was here until the restart, and is %s to one, want unreachable", s)
		}
		// All have expired to each other: they meet nevertheless.
		tm.p["three"].start()
		tm.connect("three", "one")
		tm.connect("three", "two")
		pass(time.Minute)
		tm.disconnect("one", "two")
		tm.disconnect("one", "three")
		pass(3 * time.Hour)
		restart()
		tm.connect("one", "three")
		pass(time.Minute)
		if a, b := tm.partnerState("one", "two"), tm.partnerState("two", "one"); a != "active" || b != "active" {
			t.Errorf("a minute after a restart two is %s to one, and one %s to two, want active", a, b)
		}
	})
}

// A partner that came back while nothing could be stored is not gone again after a restart.
func TestBackWhileTheDiskIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		tm.disconnect("one", "two")
		pass(3 * time.Hour)
		if s := tm.partnerState("one", "two"); s != "expired" {
			t.Fatalf("two is %s to one, want expired", s)
		}
		one := tm.p["one"]
		one.disk.failWith(kv.ErrFull)
		tm.connect("one", "two")
		pass(time.Minute)
		if s := tm.partnerState("one", "two"); s != "active" {
			t.Fatalf("two is back, and %s to one", s)
		}
		one.disk.failWith(nil)
		pass(time.Hour)
		one.crash()
		one.start()
		if s := tm.partnerState("one", "two"); s != "unreachable" {
			t.Errorf("two was here until the restart, and is %s to one, want unreachable", s)
		}
	})
}

// A node that crashes while its disk is full finds a partner expired that was back: it knows
// better, and keeps that, as soon as it hears from the partner, or of it from another.
func TestCrashWhileTheDiskIsFull(t *testing.T) {
	for _, by := range []string{"two", "three"} {
		t.Run("heard from "+by, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tm := newTeam(t, "one", "two", "three")
				one := tm.p["one"]
				tm.disconnect("one", "two")
				tm.disconnect("two", "three")
				pass(3 * time.Hour)
				one.disk.failWith(kv.ErrFull)
				tm.connect("one", "two")
				tm.connect("two", "three")
				pass(time.Minute)
				if s := tm.partnerState("one", "two"); s != "active" {
					t.Fatalf("two is back, and %s to one", s)
				}
				one.crash()
				one.disk.failWith(nil)
				one.start()
				if s := tm.partnerState("one", "two"); s != "expired" {
					t.Fatalf("two is %s to one, which could not store that it was back", s)
				}
				tm.connect("one", by)
				pass(500 * time.Millisecond) // before anything is judged
				want := map[string]string{"two": "active", "three": "unreachable"}[by]
				if s := tm.partnerState("one", "two"); s != want {
					t.Errorf("one has heard from %s, and two is %s to it, want %s", by, s, want)
				}
				one.crash()
				one.start()
				if s := tm.partnerState("one", "two"); s != "unreachable" {
					t.Errorf("two was here until the restart, and is %s to one, want unreachable", s)
				}
			})
		})
	}
}

// A partner that tells of an instance is here, even if it was gone until then: nobody judges
// in an instance that it has just been told of.
func TestGoneUntilItsInstanceCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three")
		tm.add("two", chain)
		pass(time.Minute)
		one, two := tm.p["one"], tm.p["two"]
		two.hand.hold("a")
		one.disk.failWith(kv.ErrFull)
		id := tm.begin("two", "chain", map[string]string{"pa": "two", "pb": "three", "pc": "one"})
		pass(time.Second)
		tm.disconnect("one", "two")
		tm.disconnect("one", "three")
		one.disk.failWith(nil)
		pass(3 * time.Hour)
		tm.f.losing(func(_, to workflow.PartnerID, m *wire.Message) bool { return to == one.id() && len(m.Facts) == 0 })
		tm.connect("one", "two") // what two says of itself is lost
		pass(500 * time.Millisecond)
		tm.f.losing(nil)
		tm.disconnect("one", "two")
		tm.connect("one", "two")
		pass(time.Minute)
		log, err := one.api.Log(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range log {
			if e.Kind == "verdict" && e.Author == "one" {
				t.Errorf("one judges two, of whom it has just heard: %s", e.Text)
			}
		}
	})
}
