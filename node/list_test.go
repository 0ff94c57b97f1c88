package node_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
)

// What a list keeps of an instance in which nothing is to be said holds as long as that is so: until something happens in
// it, the time comes, or nobody is there any more who has a role. The partners of these tests compare it with the instance
// (Parts.Loud); here they do not, as is usual.
func TestWhatAListKeepsHoldsWhileItIsSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamWith(t, nil, func(x *node.Parts) { x.Loud = false }, "base")
		tm.add("base", "workflow: rounds\ntasks:\n  look: {type: manual}\n  call: {type: manual, deadline: 1h}\n  dive: {type: manual, role: diver, after: call}\n  note: {type: manual, after: dive}\n")
		if err := tm.signIn("base", tm.addUser("base", "ana", "diver")); err != nil {
			t.Fatal(err)
		}
		id := tm.begin("base", "rounds", nil)
		want := func(when string, done int, needs ...string) {
			t.Helper()
			for range 2 { // the second is what was kept
				list, err := tm.p["base"].api.Instances(t.Context(), true)
				if err != nil || len(list) != 1 {
					t.Fatal(list, err)
				}
				var kinds []string
				for _, n := range list[0].Needs {
					kinds = append(kinds, n.Kind)
				}
				if list[0].Done != done || !slices.Equal(kinds, needs) {
					t.Errorf("%s: %d done, needs %v; want %d, %v", when, list[0].Done, kinds, done, needs)
				}
			}
		}
		want("at the beginning", 0)
		tm.finish("base", id, "look")
		want("after a look", 1)
		pass(59 * time.Minute)
		want("before the deadline", 1)
		pass(2 * time.Minute)
		want("after the deadline", 1, api.NeedOverdue)
		tm.finish("base", id, "call")
		want("when the call is done", 2)
		if _, err := tm.p["base"].api.RemoveUser(t.Context(), "ana"); err != nil {
			t.Fatal(err)
		}
		want("without a diver", 2, "nobody")
	})
}

// However long the pages are, and wherever what is listed is kept, they have each instance once: those of which
// only a summary is left come last.
func TestPagesOfAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, keeping(6*time.Hour), "one")
		tm.add("one", "workflow: short\ntasks:\n  a: {}\n")
		var ids []string
		for i := range 7 {
			if i == 4 {
				pass(8 * time.Hour) // what was begun before is given up
			}
			ids = append(ids, tm.begin("one", "short", nil))
			pass(time.Second)
		}
		one := tm.p["one"].api
		for _, limit := range []int{1, 2, 3, 4, 7, 100} {
			var got []string
			closed := 0
			for q := (api.InstanceQuery{All: true, Limit: limit}); ; {
				page, err := one.InstancePage(t.Context(), q)
				if err != nil || len(page.Instances) > limit {
					t.Fatalf("limit %d: %d instances, %v", limit, len(page.Instances), err)
				}
				for _, in := range page.Instances {
					got = append(got, in.ID)
					if in.Closed != nil {
						closed++
					} else if closed > 0 {
						t.Errorf("limit %d: %s is behind a summary", limit, in.ID)
					}
				}
				if q.After = page.Next; q.After == "" {
					break
				}
			}
			slices.Sort(got)
			if want := slices.Sorted(slices.Values(ids)); !slices.Equal(got, want) || closed != 4 {
				t.Errorf("limit %d: %v with %d summaries, want %v with 4", limit, got, closed, want)
			}
		}
		for _, q := range []api.InstanceQuery{{Limit: -1}, {Limit: api.MaxPage + 1}, {After: "nonsense"}} {
			if _, err := one.InstancePage(t.Context(), q); err == nil {
				t.Errorf("%+v: %v", q, err)
			}
		}
	})
}
