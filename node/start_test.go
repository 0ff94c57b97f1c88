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

// What is asked for twice with one key is started once: at one moment, after a crash, also once it has ended. With another
// key, for another user or with other data it is another one.
func TestAStartWithAKeyHappensOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base")
		tm.add("base", "workflow: note\ndata: {text: {type: string}}\ntasks: {write: {type: manual}}\n")
		tm.signIn("base", tm.addUser("base", "ana"))
		start := func(r api.StartRequest) *api.Started {
			t.Helper()
			r.Workflow = "note"
			out, err := tm.p["base"].api.Start(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		of := api.StartRequest{Key: "a", Input: api.Texts{"text": "x"}, User: "ana"}
		both := make(chan *api.Started, 2)
		for range 2 {
			go func() {
				out, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{
					Workflow: "note", Key: of.Key, Input: of.Input, User: of.User})
				if err != nil {
					t.Error(err)
				}
				both <- out
			}()
		}
		first, second := <-both, <-both
		if first.ID != second.ID || first.Already == second.Already {
			t.Fatalf("at one moment %+v and %+v", first, second)
		}
		again := func(when string) {
			t.Helper()
			if out := start(of); out.ID != first.ID || !out.Already {
				t.Errorf("%s %+v, want %s", when, out, first.ID)
			}
		}
		again("at once")
		tm.p["base"].crash()
		tm.p["base"].start()
		again("after a crash")
		seen := map[string]bool{first.ID: true}
		for what, r := range map[string]api.StartRequest{
			"another key": {Key: "b", Input: of.Input, User: "ana"}, "other data": {Key: "a", User: "ana"},
			"another user": {Key: "a", Input: of.Input, User: "base"}, "no key": {Input: of.Input, User: "ana"},
		} {
			out := start(r)
			if seen[out.ID] || out.Already {
				t.Errorf("with %s it is %+v", what, out)
			}
			seen[out.ID] = true
		}
		if out := start(api.StartRequest{Input: of.Input, User: "ana"}); seen[out.ID] {
			t.Errorf("without a key it is %+v", out)
		}
		if err := tm.p["base"].api.Cancel(t.Context(), first.ID, "over"); err != nil {
			t.Fatal(err)
		}
		pass(time.Hour)
		tm.p["base"].crash()
		tm.p["base"].start()
		again("after it has ended")
	})
}
