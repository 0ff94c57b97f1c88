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
