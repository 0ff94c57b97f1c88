package node_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// wantLease demands for how long, about, whoever has an item has it.
func wantLease(t *testing.T, x *api.Item, want time.Duration) {
	t.Helper()
	if x.LeaseUntil == nil {
		t.Errorf("no lease is said of %s (%s)", x.Task, x.State)
	} else if left := time.Until(*x.LeaseUntil); (left - want).Abs() > time.Minute {
		t.Errorf("of the lease of %s (%s) %s are left, want %s", x.Task, x.State, left, want)
	}
}

// Whoever has an item is told for how long, and so is whoever looks at what another has.
func TestALeaseIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _ := nurses(t)
		free := tm.items("tablet", "bia")[0]
		if free.LeaseUntil != nil {
			t.Errorf("what nobody has is had until %v", free.LeaseUntil)
		}
		if err := tm.claim("tablet", "bia", api.ClaimSelect, free.ID); err != nil {
			t.Fatal(err)
		}
		pass(time.Hour)
		wantLease(t, &tm.items("tablet", "bia")[0], 23*time.Hour)
		s, err := tm.p["base"].api.ItemSheet(t.Context(), api.ItemQuery{User: "ana", Item: free.ID})
		if err != nil || s.Item.TakenBy != "bia" {
			t.Fatalf("it is with %q: %v", s.Item.TakenBy, err)
		}
		wantLease(t, &s.Item, 23*time.Hour)
	})
}

// A lock lasts as long as the absence that its user's device announced: till then the device says that its user has it,
// and so does its holder to whoever looks there, also after a restart; and once the user is back, for the hour in which
// what was done is handed in.
func TestTheLeaseOfALockLastsAsLongAsTheAbsence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _, _ := offline(t)
		const day = 24 * time.Hour
		locked := tm.items("tablet", "bia")[0]
		want := func(left time.Duration) {
			t.Helper()
			wantLease(t, &tm.items("tablet", "bia")[0], left)
			s, err := tm.p["base"].api.ItemSheet(t.Context(), api.ItemQuery{User: "ana", Item: locked.ID})
			if err != nil || s.Item.TakenBy != "bia" {
				t.Fatalf("at base it is with %q: %v", s.Item.TakenBy, err)
			}
			wantLease(t, &s.Item, left)
		}
		pass(4 * day)
		want(3 * day)
		tm.goesFor("tablet", 2*day)
		want(3*day - time.Minute)
		tm.comesBack("tablet", "base")
		tm.goesFor("tablet", 7*day)
		want(7 * day)
		tm.p["base"].crash()
		tm.p["base"].start()
		tm.p["tablet"].crash()
		tm.p["tablet"].start()
		pass(5 * day)
		want(2 * day) // the lease itself is over for two days
		tm.comesBack("tablet", "base")
		want(time.Hour - time.Minute)
	})
}

// Nobody has a lock longer than eight days beyond its lease by being away.
func TestAnAbsenceMakesALockLongerByEightDaysAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _, _ := offline(t)
		const day = 24 * time.Hour
		locked := tm.items("tablet", "bia")[0]
		tm.goesFor("tablet", 8*day)
		pass(6 * day)
		tm.comesBack("tablet", "base")
		tm.goesFor("tablet", 8*day)
		pass(7*day + 23*time.Hour)
		tm.comesBack("tablet", "base")
		tm.goesFor("tablet", 8*day)
		s, err := tm.p["base"].api.ItemSheet(t.Context(), api.ItemQuery{User: "ana", Item: locked.ID})
		if err != nil {
			t.Fatal(err)
		}
		wantLease(t, &tm.items("tablet", "bia")[0], day+57*time.Minute)
		wantLease(t, &s.Item, day+57*time.Minute)
	})
}

// It is said also of a locked item whose partner cannot be asked, and of a device that was started again.
func TestTheLeaseOfALockIsSaidOutOfReach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const day = 24 * time.Hour
		tm, _, _ := offline(t)
		wantLease(t, &tm.items("tablet", "bia")[0], 7*day)
		tm.p["tablet"].crash()
		tm.p["tablet"].start()
		pass(3 * day)
		wantLease(t, &tm.items("tablet", "bia")[0], 4*day)
		pass(5 * day)
		if x := tm.items("tablet", "bia")[0]; x.LeaseUntil != nil {
			t.Errorf("a lease that is over is until %v", x.LeaseUntil)
		}
	})
}
