package node_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
)

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
