package node_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// listed are the workflows that a partner lists.
func (tm *team) listed(at string) []workflow.Name {
	tm.t.Helper()
	ws, err := tm.p[at].api.Workflows(tm.t.Context())
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

// A founder or delegate who lists something under the name of a member takes the name over, and is told what is
// not listed any more because of that.
func TestWhoTakesANameOverIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		add := func(at string, version int) *api.Workflow {
			t.Helper()
			w, err := tm.p[at].api.AddWorkflow(t.Context(), "w.yaml",
				fmt.Appendf(nil, "{workflow: w, version: %d, tasks: {a: {}}}", version))
			if err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
			return w
		}
		add("two", 1)
		if w := add("two", 2); len(w.Notes) > 0 {
			t.Errorf("two added to its own, and is told %q", w.Notes)
		}
		w := add("one", 3)
		if len(w.Notes) != 1 || !strings.Contains(w.Notes[0], "not listed any more: w@2, w@1") {
			t.Errorf("one took a name over that had two editions of another, and is told %q", w.Notes)
		}
		tm.wantListed("two", 1)
	})
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
		if _, err := tm.p["one"].api.RemoveWorkflow(t.Context(), "chain"); err != nil {
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

// Of several editions of a name the one that was added last is started by it; all are
// removed by it, and nothing older comes to light.
func TestEditions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		tm.add("one", "version: 7"+chain)
		time.Sleep(time.Second)
		tm.add("one", "version: 3"+chain)
		time.Sleep(time.Second)
		tm.add("one", chain)
		for _, name := range []string{"one", "two"} {
			list, err := tm.p[name].api.Workflows(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range list {
				if w.Current != (w.Version == 0) {
					t.Errorf("%s: chain@%d is said to be what chain starts: %v", name, w.Version, w.Current)
				}
				one, err := tm.p[name].api.Workflow(t.Context(), fmt.Sprintf("chain@%d", w.Version))
				if err != nil || one.Current != w.Current {
					t.Errorf("%s: chain@%d by itself is current: %+v, %v", name, w.Version, one, err)
				}
			}
		}
		id := tm.begin("two", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "two"})
		in, err := tm.p["two"].api.Show(t.Context(), id)
		if err != nil || in.Version != 0 {
			t.Errorf("chain started version %v (%v), want what was added last", in, err)
		}
		removed, err := tm.p["one"].api.RemoveWorkflow(t.Context(), "chain@3")
		if err != nil || len(removed) != 1 || removed[0].Version != 3 || removed[0].Newest != "chain@0" {
			t.Errorf("chain@3: removed %v, %v, want version 3, and that chain@0 is started from then on", removed, err)
		}
		synctest.Wait()
		tm.wantListed("two", 2)
		removed, err = tm.p["one"].api.RemoveWorkflow(t.Context(), "chain")
		if err != nil || len(removed) != 2 || removed[0].Newest != "" || removed[1].Newest != "" {
			t.Errorf("chain: removed %v, %v, want both editions, and that none is left", removed, err)
		}
		synctest.Wait()
		tm.wantListed("one", 0)
		tm.wantListed("two", 0)
		if _, err := tm.p["two"].api.Start(t.Context(), api.StartRequest{Workflow: "chain"}); err == nil {
			t.Error("an older edition was started")
		}
	})
}

// Editions that were added and removed while a node was away are the same there once it
// is back, whether it was out of reach or down: those that are left, which of them the
// name starts, and nothing older.
func TestEditionsOfWhoWasAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three")
		add := func(at string, version int) {
			time.Sleep(time.Second)
			tm.add(at, fmt.Sprintf("version: %d", version)+chain)
		}
		remove := func(at, ref string) {
			t.Helper()
			time.Sleep(time.Second)
			if _, err := tm.p[at].api.RemoveWorkflow(t.Context(), ref); err != nil {
				t.Fatal(err)
			}
		}
		want := func(when string, current int, versions ...int) {
			t.Helper()
			synctest.Wait()
			pass(time.Minute) // what did not come with the first greeting is asked for again
			for _, at := range []string{"one", "two", "three"} {
				list, err := tm.p[at].api.Workflows(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				var got []int
				for _, w := range list {
					if got = append(got, w.Version); w.Current != (w.Version == current) {
						t.Errorf("%s, at %s: chain@%d is what chain starts: %v", when, at, w.Version, w.Current)
					}
				}
				if slices.Sort(got); !slices.Equal(got, versions) {
					t.Errorf("%s, at %s: there are versions %v, want %v", when, at, got, versions)
				}
				st, err := tm.p[at].api.Start(t.Context(),
					api.StartRequest{Workflow: "chain", Assign: map[string]string{"pa": at, "pb": at, "pc": at}})
				if (err == nil) != (len(versions) > 0) {
					t.Errorf("%s, at %s: start of chain: %v", when, at, err)
				}
				if err == nil {
					synctest.Wait()
					if v := tm.show(at, st.ID).Version; v != current {
						t.Errorf("%s, at %s: chain started version %d, want %d", when, at, v, current)
					}
				}
			}
		}
		add("one", 7)
		want("before", 7, 7)

		tm.disconnect("one", "three") // out of reach
		tm.disconnect("two", "three")
		add("one", 3)
		add("one", 5)
		add("one", 2)
		remove("one", "chain@2")
		tm.connect("two", "three") // it tells of what one added
		want("out of reach while some were added", 5, 3, 5, 7)

		tm.p["three"].crash() // down
		remove("one", "chain@7")
		remove("one", "chain@5")
		add("one", 7)
		tm.p["three"].start()
		tm.connect("one", "three")
		tm.connect("two", "three")
		want("down while some were removed, and one was added again", 7, 3, 7)

		tm.p["three"].crash()
		remove("one", "chain")
		tm.p["three"].start()
		tm.connect("two", "three")
		tm.connect("one", "three")
		want("down while all were removed", 0)
	})
}

// What was removed can be added again, and an instance of what was removed goes on.
func TestRemovedDefinition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		tm.add("one", chain)
		tm.p["one"].hand.hold("a")
		id := tm.begin("one", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "two"})
		if _, err := tm.p["one"].api.RemoveWorkflow(t.Context(), "chain"); err != nil {
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
		_, err := tm.p["one"].api.AddWorkflow(t.Context(), "test.yaml", []byte(small(5)))
		if refused := (*api.Error)(nil); !errors.As(err, &refused) || refused.Code != api.Refused ||
			!strings.Contains(err.Error(), "lists 5 workflows") {
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
			if _, err := tm.p["one"].api.RemoveWorkflow(t.Context(), string(name)); err != nil {
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
			if _, err := tm.p["one"].api.RemoveWorkflow(t.Context(), fmt.Sprintf("small-%d", i)); err != nil {
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

// What nobody lists any more is deleted when no instance uses it, and so is what came
// with an instance of which only the summary is left; one member brings no more such
// than its share, the node's own user always has room, and the refused member is
// counted.
func TestDefinitionsThatNobodyUsesAreDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 8
		tm := newTeamOf(t, func(c *configs.Config) { c.Limits.Workflows, c.Limits.Keep = limit, 6*time.Hour }, "ana",
			"mal", "vic")
		vic, mal := tm.p["vic"], tm.p["mal"]
		kept := func() (bodies, listings int) {
			for kind, n := range map[byte]*int{'d': &bodies, 't': &listings} {
				if err := vic.disk.Scan([]byte{kind}, func(_, _ []byte) error { *n++; return nil }); err != nil {
					t.Fatal(err)
				}
			}
			return bodies, listings
		}
		gone := func(n int) {
			tm.add("mal", small(n))
			if _, err := mal.api.RemoveWorkflow(t.Context(), fmt.Sprintf("small-%d", n)); err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
		}
		for i := range 3 * limit {
			gone(i)
		}
		pass(2 * time.Minute)
		if b, l := kept(); b > 0 || l > limit/4 {
			t.Errorf("after mal listed %d workflows and took them off again vic keeps %d definitions and %d listings",
				3*limit, b, l)
		}
		// What was swept away can be listed again, and used.
		last := 3*limit - 1
		tm.add("mal", small(last))
		tm.wantListed("vic", 1)
		tm.succeeds(tm.begin("vic", fmt.Sprintf("small-%d", last), map[string]string{"main": "vic"}), time.Second,
			"vic")
		if _, err := mal.api.RemoveWorkflow(t.Context(), fmt.Sprintf("small-%d", last)); err != nil {
			t.Fatal(err)
		}

		// Instances of workflows that vic does not list: as many as mal's share.
		tm.disconnect("mal", "vic")
		tm.disconnect("ana", "mal")
		tm.disconnect("ana", "vic")
		synctest.Wait()
		var ids []string
		for i := range limit {
			n := 100 + i
			tm.add("mal", small(n))
			ids = append(ids, tm.begin("mal", fmt.Sprintf("small-%d", n), map[string]string{"main": "vic"}))
			if _, err := mal.api.RemoveWorkflow(t.Context(), fmt.Sprintf("small-%d", n)); err != nil {
				t.Fatal(err)
			}
		}
		tm.connect("mal", "vic")
		pass(time.Minute)
		var taken []string
		for _, id := range ids {
			if _, err := vic.api.Show(t.Context(), id); err == nil {
				taken = append(taken, id)
				tm.succeeds(id, time.Second, "vic")
			}
		}
		if b, _ := kept(); len(taken) != limit/4 || b > limit/4+1 {
			t.Errorf("vic took in %d of mal's instances, and keeps %d definitions; want %d", len(taken), b, limit/4)
		}
		if l := tm.refused("vic", "mal"); len(l) == 0 || l[0].Reason != "definitions-beside-over-share" {
			t.Errorf("of mal is refused: %+v", l)
		}
		for i := range limit {
			tm.add("vic", small(200+i))
			tm.succeeds(tm.begin("vic", fmt.Sprintf("small-%d", 200+i), map[string]string{"main": "vic"}), time.Second,
				"vic")
			if _, err := vic.api.RemoveWorkflow(t.Context(), fmt.Sprintf("small-%d", 200+i)); err != nil {
				t.Fatal(err)
			}
		}
		vic.crash()
		vic.start()
		if b, _ := kept(); b < limit {
			t.Errorf("of the definitions that its own instances use vic keeps %d, want %d and more", b, limit)
		}
		for _, id := range taken {
			if _, err := vic.api.Diagram(t.Context(), id, "dot"); err != nil {
				t.Errorf("an instance that vic keeps cannot be drawn: %v", err)
			}
		}
		pass(8 * time.Hour)
		if b, _ := kept(); b > limit/4 {
			t.Errorf("when all instances are given up vic keeps %d definitions", b)
		}
	})
}
