package node_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/api"
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
		if err := tm.p["one"].node.RemoveWorkflow(t.Context(), "chain"); err != nil {
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
		if err := tm.p["one"].node.RemoveWorkflow(t.Context(), "chain"); err != nil {
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

// small is the n-th of many workflows.
func small(n int) string { return fmt.Sprintf("workflow: small-%d\ntasks: {a: {}}\n", n) }

// A node lists as many workflows as it may, says so, and is not sent again what it
// had no room for; an instance of such a one runs there all the same. What is
// removed makes room.
func TestRoomForDefinitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) { c.Limits.Workflows = 3 }, "one", "two")
		tm.p["one"].crash()
		tm.p["one"].adjust = func(c *configs.Config) { c.Limits.Workflows = 5 }
		tm.p["one"].start()
		for i := range 5 {
			tm.add("one", small(i))
		}
		_, err := tm.p["one"].node.AddWorkflow(t.Context(), "test.yaml", []byte(small(5)))
		if refused := (*api.Error)(nil); !errors.As(err, &refused) || refused.Code != api.Refused || !strings.Contains(err.Error(), "lists 5 workflows") {
			t.Errorf("the sixth workflow: %v", err)
		}
		for range 3 {
			tm.connect("one", "two")
			synctest.Wait()
			tm.disconnect("one", "two")
			synctest.Wait()
		}
		tm.connect("one", "two")
		synctest.Wait()
		tm.wantListed("two", 3)
		if n := tm.counter("two", "refused.definition"); n != 2 {
			t.Errorf("two refused %d workflows, want 2", n)
		}
		tm.wantTrouble("two", "limits.workflows")
		for _, name := range tm.listed("one") {
			tm.succeeds(tm.begin("one", string(name), map[string]string{"main": "two"}), 0, "one", "two")
		}
		tm.wantListed("two", 3)
		for _, name := range tm.listed("two")[:2] {
			if err := tm.p["one"].node.RemoveWorkflow(t.Context(), string(name)); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		tm.disconnect("one", "two")
		synctest.Wait()
		tm.connect("one", "two")
		synctest.Wait()
		tm.wantListed("one", 3)
		tm.wantListed("two", 3)
		tm.wantTrouble("two", "") // there is room for all
	})
}

// The oldest removals are forgotten when there are too many.
func TestRemovalsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) { c.Limits.Workflows = 2 }, "one", "two")
		for i := range 5 {
			tm.add("one", small(i))
			if err := tm.p["one"].node.RemoveWorkflow(t.Context(), fmt.Sprintf("small-%d", i)); err != nil {
				t.Fatal(err)
			}
			pass(1e9)
		}
		tm.wantListed("one", 0)
		tm.p["one"].crash()
		tm.p["one"].start()
		tm.connect("one", "two")
		synctest.Wait()
		for i := range 2 {
			tm.add("one", small(i)) // one of the forgotten
		}
		tm.wantListed("two", 2)
	})
}

// A definition that nobody uses is read again from the store.
func TestDefinitionIsReadWhenItIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one")
		for i := range 40 {
			tm.add("one", small(i))
		}
		runtime.GC()
		runtime.GC()
		for i := range 40 {
			tm.succeeds(tm.begin("one", fmt.Sprintf("small-%d", i), nil), 0, "one")
		}
	})
}
