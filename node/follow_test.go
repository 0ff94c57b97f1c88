package node_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// watch counts what of a kind a node tells from now on.
func (tm *team) watch(at, kind string) (told func() int) {
	tm.t.Helper()
	ctx, cancel := context.WithCancel(tm.t.Context())
	ended, heard := make(chan struct{}), atomic.Int64{}
	go func() {
		defer close(ended)
		_ = tm.p[at].api.Watch(ctx, func(e api.Event) error {
			if e.Kind == kind {
				heard.Add(1)
			}
			return nil
		})
	}()
	tm.t.Cleanup(func() { cancel(); <-ended })
	synctest.Wait()
	return func() int { synctest.Wait(); return int(heard.Load()) }
}

// A node that takes no part in an instance is told within 2 s that a list which it asked for is another by now: once
// for each change, and not when it has not asked for long, nor what changes nothing for its user.
func TestAListElsewhereFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _ := nurses(t)
		item := tm.items("tablet", "bia")[0].ID
		told := tm.watch("tablet", "worklist")
		pass(10 * time.Second)
		if n := told(); n > 0 {
			t.Fatalf("nothing changed, and it was told %d times", n)
		}
		if err := tm.claim("base", "ana", api.ClaimSelect, item); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Second)
		if n := told(); n != 1 {
			t.Fatalf("somebody took the item; it was told %d times, want 1", n)
		}
		tm.wantItems("tablet", "bia")

		// What it has heard of itself changes nothing: it was answered since.
		if err := tm.claim("base", "ana", api.ClaimRelease, item); err != nil {
			t.Fatal(err)
		}
		tm.wantItems("tablet", "bia", "weigh READY")
		was := told()
		pass(10 * time.Second)
		if n := told() - was; n > 0 {
			t.Errorf("it knew, and was told %d times more", n)
		}

		// Nobody looks any more.
		pass(time.Minute)
		if err := tm.claim("base", "ana", api.ClaimSelect, item); err != nil {
			t.Fatal(err)
		}
		pass(10 * time.Second)
		if n := told() - was; n > 0 {
			t.Errorf("it has not asked for a minute, and was told %d times", n)
		}
	})
}

// Nobody has a node tell its readers without end that a list changed.
func TestNewsOfListsAreRationed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _ := nurses(t)
		told := tm.watch("tablet", "worklist")
		for range 100 {
			_, _ = tm.p["base"].plug.Request(t.Context(), tm.p["tablet"].id(), nil, "/mutirao/items-changed/1.0.0", nil)
		}
		if n := told(); n == 0 || n > 25 {
			t.Errorf("of 100 that came at once its readers heard %d, want 20", n)
		}
	})
}

// What was done out of reach is handed in as soon as its partner is met again, and whoever looks at the outbox is told.
func TestItIsHandedInAtContact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := aWard(t)
		id, visit := tm.rounds("visits", nil)
		if err := tm.claim("tablet", "bia", api.ClaimLock, visit); err != nil {
			t.Fatal(err)
		}
		tm.disconnect("base", "tablet")
		if err := tm.hand("tablet", "bia", visit, map[string]string{"weight": "7"}); err != nil {
			t.Fatal(err)
		}
		pass(61300 * time.Millisecond) // so that it was tried a moment ago
		told := tm.watch("tablet", "worklist")
		tm.connect("base", "tablet")
		pass(500 * time.Millisecond)
		if is := tm.task("base", id, "visit"); !is.Done() {
			t.Errorf("half a second after they met it is %s at base", is)
		}
		if told() == 0 {
			t.Error("nobody who looks at the outbox is told")
		}
	})
}
