package node_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A node that was evicted while it was away asks why nobody admits it, also
// when to its knowledge everybody else has expired; and remembers after a
// restart.
func TestTheEvictedLearnWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three")
		trouble := func() string {
			st, err := tm.p["two"].api.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return strings.Join(st.Trouble, "; ")
		}
		tm.disconnect("two", "one")
		tm.disconnect("two", "three")
		pass(3 * time.Hour)
		for _, other := range []string{"one", "three"} {
			if s := tm.partnerState("two", other); s != "expired" {
				t.Fatalf("two thinks that %s is %s, want expired", other, s)
			}
		}
		if got := trouble(); got != "" {
			t.Errorf("trouble before anything happened: %s", got)
		}
		tm.expel("one", "two")
		pass(15 * time.Second)
		const want = "no member: two is evicted by one at "
		if got := trouble(); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, ": split") {
			t.Errorf("trouble %q, want %q…", got, want)
		}
		tm.p["two"].crash()
		tm.p["two"].start()
		if got := trouble(); !strings.HasPrefix(got, want) {
			t.Errorf("after a restart: trouble %q, want %q…", got, want)
		}
	})
}
