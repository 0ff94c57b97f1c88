package node_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// A start says whether another participant holds the instance: as soon as one has said that it does, and
// after a while that none has.
func TestStartTellsWhoHoldsTheInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		tm.add("one", chain)
		tm.f.slow(25 * time.Millisecond)
		both := map[string]string{"pa": "one", "pb": "two", "pc": "two"}
		tm.starts("one", both, false, 50*time.Millisecond) // there and back
		tm.f.slow(0)
		tm.disconnect("one", "two")
		tm.starts("one", both, true, 3*time.Second)
	})
}

// A node that takes part alone asks nobody whether its instance is held elsewhere, and does not read what has
// ended meanwhile.
func TestStartAloneReadsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		tm.add("one", chain)
		tm.p["one"].disk.searched()
		tm.starts("one", map[string]string{"pa": "one", "pb": "one", "pc": "one"}, true, 0)
		if n := tm.p["one"].disk.searched(); n > 0 {
			t.Errorf("a start had the store searched %d times", n)
		}
	})
}

// starts starts a chain and checks what is said of who holds it, and how long that took.
func (tm *team) starts(at string, assign map[string]string, onlyHere bool, want time.Duration) {
	tm.t.Helper()
	began := time.Now()
	st, err := tm.p[at].api.Start(tm.t.Context(), api.StartRequest{Workflow: "chain", Assign: assign})
	took := time.Since(began)
	if err != nil {
		tm.t.Fatal(err)
	}
	if st.HeldOnlyHere != onlyHere || took != want {
		tm.t.Errorf("held only here: %v after %v, want %v after %v", st.HeldOnlyHere, took, onlyHere, want)
	}
}
