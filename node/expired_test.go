package node_test

import (
	"testing"
	"testing/synctest"
	"time"
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
