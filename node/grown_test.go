package node_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// By a mechanism that pulls more people see an item the longer it waits, though nobody does anything. Who looks at a list
// at another node is told when that comes, and not before; and so is who looks at one here.
func TestAListFollowsWhatGrows(t *testing.T) {
	for _, tt := range []struct {
		name, rules, of string
		sees            time.Duration
	}{
		// Bia is above 0.5 when the urgency is above 0.5/0.55: 0.8 at first, and 0.02 more each minute.
		{"urgency grows", "urgency-growth: 0.02", "", 327 * time.Second},
		// Hers is 0.44, and the threshold 0.5 at first, and nothing after the hour that the task has: 88 % of it are left.
		{"the threshold falls", "relax: true", "timeout: 1h, ", 432 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tm := newTeam(t, "base", "tablet")
				for user, at := range map[string]string{"lia": "base", "bia": "tablet"} {
					if err := tm.signIn(at, tm.addUser("base", user, "nurse")); err != nil {
						t.Fatal(err)
					}
				}
				pass(time.Second)
				tm.add("base", "workflow: rota\ndistribution: {mechanism: Typical, "+tt.rules+"}\ntasks:\n"+
					"  weigh: {type: manual, role: nurse, "+tt.of+"suitability: {lia: 1, bia: 0.55}}\n"+
					"partitions: {ward: {tasks: [weigh], partner: base}}\n")
				if _, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "rota"}); err != nil {
					t.Fatal(err)
				}
				here, there := tm.watch("base", "instance"), tm.watch("tablet", "worklist")
				pass(2 * time.Second)
				tm.wantItems("base", "lia", "weigh READY")
				tm.wantItems("tablet", "bia")
				wasHere, wasThere := here(), there()
				waited := 2 * time.Second
				for ; waited < tt.sees-time.Second; waited += time.Second {
					pass(time.Second)
					if waited%(20*time.Second) == 0 { // as a page asks that somebody looks at
						tm.wantItems("tablet", "bia")
					}
				}
				if here() > wasHere || there() > wasThere {
					t.Errorf("told before: here %d times, there %d", here()-wasHere, there()-wasThere)
				}
				pass(4 * time.Second)
				if here() == wasHere || there() == wasThere {
					t.Errorf("not told in time: here %d times, there %d", here()-wasHere, there()-wasThere)
				}
				tm.wantItems("tablet", "bia", "weigh READY")
			})
		})
	}
}
