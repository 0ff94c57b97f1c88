package node_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// slowList has a partner take so long for what it is asked about lists.
func (tm *team) slowList(at string, takes func() time.Duration) {
	plug := tm.p[at].plug
	for _, protocol := range []string{worklists.ProtocolItems, worklists.ProtocolAhead} {
		was := plug.handlers[protocol]
		plug.HandleRequest(protocol, false, func(from workflow.PartnerID, req []byte) ([]byte, error) {
			time.Sleep(takes())
			return was(from, req)
		})
	}
}

// took is how long a user's list takes, and what it has.
func (tm *team) took(at, user string, ahead bool) (time.Duration, []string) {
	tm.t.Helper()
	began := time.Now()
	list, err := tm.p[at].api.Worklist(tm.t.Context(), api.WorklistQuery{User: user, Ahead: ahead})
	if err != nil {
		tm.t.Fatal(err)
	}
	var out []string
	for _, x := range list {
		out = append(out, x.Task+" "+x.State)
	}
	return time.Since(began), out
}

// A list does not wait for a partner that is slow and of which something is known: that is shown, and what the partner
// says is on the list that is asked for next, for which whoever watches is told once. One of which nothing is known is
// waited for.
func TestAListDoesNotWaitForASlowPartner(t *testing.T) {
	for _, ahead := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			tm, _ := nurses(t)
			const slow = 900 * time.Millisecond
			var takes atomic.Int64
			takes.Store(int64(slow))
			tm.slowList("base", func() time.Duration { return time.Duration(takes.Load()) })
			free := []string{"weigh READY"}
			if took, got := tm.took("tablet", "bia", ahead); !slices.Equal(got, free) || took < slow || took > 2*time.Second {
				t.Errorf("of base nothing was known; after %s the list has %q", took, got)
			}
			pass(time.Minute)
			item := tm.items("base", "ana")[0].ID
			if err := tm.claim("base", "ana", api.ClaimSelect, item); err != nil {
				t.Fatal(err)
			}
			pass(3 * time.Second)
			told := tm.watch("tablet", "worklist")
			if took, got := tm.took("tablet", "bia", ahead); took > 600*time.Millisecond || !slices.Equal(got, free) {
				t.Errorf("after %s the list has %q", took, got)
			}
			if got := tm.unanswered("tablet", "bia"); !slices.Equal(got, []string{"base"}) {
				t.Errorf("%q did not answer, want base", got)
			}
			pass(time.Second)
			if n := told(); n < 1 || n > 2 {
				t.Fatalf("it has answered, and who watches was told %d times", n)
			}
			was := told()
			if took, got := tm.took("tablet", "bia", ahead); took > 600*time.Millisecond || len(got) > 0 {
				t.Errorf("after %s the list has %q", took, got)
			}
			if got := tm.unanswered("tablet", "bia"); len(got) > 0 {
				t.Errorf("%q answered a moment ago, and are named", got)
			}
			pass(3 * time.Second)
			if n := told() - was; n > 0 {
				t.Errorf("nothing changed, and who watches was told %d times", n)
			}

			// Once it is quick again it is heard at once.
			takes.Store(0)
			pass(time.Minute)
			if err := tm.claim("base", "ana", api.ClaimRelease, item); err != nil {
				t.Fatal(err)
			}
			if took, got := tm.took("tablet", "bia", ahead); took > 100*time.Millisecond || !slices.Equal(got, free) {
				t.Errorf("it is quick again; after %s the list has %q", took, got)
			}
		})
	}
}

// A partner that hangs is asked by few at a time, however often somebody looks.
func TestAPartnerThatHangsIsAskedByFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _ := nurses(t)
		if _, got := tm.took("tablet", "bia", false); len(got) != 1 {
			t.Fatalf("the list has %q", got)
		}
		var asked atomic.Int64
		var quick atomic.Bool
		tm.slowList("base", func() time.Duration {
			if asked.Add(1); quick.Load() {
				return 0
			}
			return time.Hour
		})
		for range 10 {
			go func() { _, _ = tm.p["tablet"].api.Worklist(t.Context(), api.WorklistQuery{User: "bia"}) }()
		}
		pass(time.Second)
		if n := asked.Load(); n < 1 || n > 2 {
			t.Errorf("it was asked %d times at once", n)
		}
		quick.Store(true)
		pass(2 * time.Hour)
	})
}
