package node_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// seen collects what a partner sees of another from now on: unreachable, expired, back.
func (tm *team) seen(at, of string) func() []string {
	var mu sync.Mutex
	var out []string
	ctx, cancel := context.WithCancel(tm.t.Context())
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		_ = tm.p[at].api.Watch(ctx, func(e api.Event) error {
			mu.Lock()
			defer mu.Unlock()
			if e.Kind == "partner" && e.Partner == of && e.Text != "changed" {
				out = append(out, e.Text)
			}
			return nil
		})
	}()
	synctest.Wait()
	return func() []string {
		synctest.Wait()
		cancel()
		<-watching
		return out
	}
}

func (tm *team) connectionTime(at string, d time.Duration) {
	tm.t.Helper()
	span := api.Span(d)
	tm.profile(at, api.ProfileChange{ConnectionTime: &span})
}

// A node that shortens its connection time gives its next sign of life within the new one: else its partners
// take it for gone until that time which it had planned by the old one, and its work for failed.
func TestShorterConnectionTimeCountsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, mobile, "base", "boat")
		pass(100 * time.Second) // just after a sign of life: the next one would be 93 s later
		seen := tm.seen("base", "boat")
		tm.connectionTime("boat", 3*time.Second)
		pass(5 * time.Minute)
		if got := seen(); len(got) > 0 {
			t.Errorf("boat, which is here and only shortened its connection time, was seen %v", got)
		}
	})
}

// A node that has just shortened its connection time and then falls silent is unreachable first, and expires by the new
// one, though its partners had planned to look by the old one.
func TestSilenceAfterAShorterConnectionTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, mobile, "base", "boat")
		pass(100 * time.Second)
		tm.connectionTime("boat", 4*time.Second)
		boat := tm.p["boat"].id() // its connection stays: nothing but its silence says that it is gone
		tm.f.losing(func(from, _ workflow.PartnerID, _ *wire.Message) bool { return from == boat })
		seen := tm.seen("base", "boat")
		pass(3500 * time.Millisecond)
		if s := tm.partnerState("base", "boat"); s != "unreachable" {
			t.Errorf("silent for 3.5 s of its 4 s, boat is %s", s)
		}
		pass(time.Second)
		if got := seen(); !slices.Equal(got, []string{"unreachable", "expired"}) {
			t.Errorf("silent for more than its 4 s, boat was seen %v", got)
		}
	})
}
