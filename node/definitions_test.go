package node_test

import (
	"testing"
	"testing/synctest"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// listed are the workflows that a partner lists.
func (tm *team) listed(at string) []workflow.Name {
	tm.t.Helper()
	ws, err := tm.p[at].node.Workflows(tm.t.Context())
	if err != nil {
		tm.t.Fatal(err)
	}
	var out []workflow.Name
	for _, w := range ws {
		out = append(out, w.Name)
	}
	return out
}

func (tm *team) wantListed(at string, want int) {
	tm.t.Helper()
	if got := tm.listed(at); len(got) != want {
		tm.t.Errorf("%s lists %v, want %d workflows", at, got, want)
	}
}

// Definitions and removals reach everybody: the connected at once, through
// others where there is no direct way, and the absent when they come back.
func TestDefinitionsSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three")
		tm.disconnect("one", "three")
		synctest.Wait()
		tm.add("one", chain)
		tm.wantListed("two", 1)
		tm.wantListed("three", 1) // through two
		tm.disconnect("two", "three")
		synctest.Wait()
		tm.add("one", eleven)
		if err := tm.p["two"].node.RemoveWorkflow(t.Context(), "chain"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		tm.wantListed("one", 1)
		tm.wantListed("three", 1) // still the old one
		tm.p["one"].crash()
		tm.connect("two", "three")
		synctest.Wait()
		if got := tm.listed("three"); len(got) != 1 || got[0] != "eleven" {
			t.Errorf("three lists %v after it met two, want eleven alone", got)
		}
		tm.p["one"].start()
		tm.connect("one", "three")
		synctest.Wait()
		for _, name := range []string{"one", "two", "three"} {
			tm.wantListed(name, 1)
		}
	})
}

// What was removed can be added again, and an instance of what was removed goes on.
func TestRemovedDefinition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		tm.add("one", chain)
		tm.p["one"].hand.hold("a")
		id := tm.begin("one", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "two"})
		if err := tm.p["two"].node.RemoveWorkflow(t.Context(), "chain"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		tm.p["two"].crash()
		tm.p["two"].start()
		tm.connect("one", "two")
		tm.p["one"].hand.letGo(t, "a")
		synctest.Wait()
		if s := tm.state("two", id); s != workflow.InstanceSucceeded {
			t.Errorf("an instance of a removed workflow is %s, want it to go on", s)
		}
		tm.add("one", chain)
		tm.wantListed("one", 1)
		tm.wantListed("two", 1)
	})
}
