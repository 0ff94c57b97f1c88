package node_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Whoever hands in a result that makes its transition fail, as it sets what was changed meanwhile, is told so: at the
// node that holds it, and by an item from elsewhere.
func TestWhoseResultMakesATransitionFailIsTold(t *testing.T) {
	for _, role := range []string{"", "role: nurse, "} {
		synctest.Test(t, func(t *testing.T) {
			tm := newTeamOf(t, nil, "base:nurse", "tablet")
			if err := tm.signIn("tablet", tm.addUser("base", "bia", "nurse")); err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
			tm.add("base", "workflow: both\ndata: {bed: {type: integer}, fed: {type: boolean}}\ntasks:\n"+
				"  north: {when: bed == null, repeat: true, type: manual, out: [bed]}\n"+
				"  south: {when: bed == null, repeat: true, on-conflict: fail, type: manual, offline: true, "+role+"out: [bed]}\n"+
				"  feed:  {when: bed > 0 and fed == null, repeat: true, type: manual, out: [fed]}\nfinal: fed\n"+
				"partitions: {all: {tasks: [north, south, feed], partner: base}}\n")
			id := tm.begin("base", "both", nil)
			pass(time.Second)
			tm.ends("base", id, api.FinishRequest{Task: "north", Outputs: map[string]string{"bed": "3"}})
			pass(time.Second)
			var err error
			if role == "" {
				err = tm.p["base"].api.FinishTask(t.Context(),
					api.FinishRequest{ID: id, Task: "south", Outputs: map[string]string{"bed": "4"}})
			} else {
				item := tm.aheadOf("tablet", "bia")[0].ID
				if err := tm.lockAll("tablet", "bia", []string{item}); err != nil {
					t.Fatal(err)
				}
				_, err = tm.p["tablet"].api.FinishItem(t.Context(),
					api.ItemResult{User: "bia", Item: item, Outputs: map[string]string{"bed": "4"}})
			}
			wantCode(t, err, api.Refused, "south has failed by this result: it sets bed, which was changed")
			pass(time.Second)
			if got := tm.show("base", id).State; got != workflow.InstanceInterrupted {
				t.Errorf("the instance is %s", got)
			}
		})
	}
}

// So is a worker, each time that it brings that result, and no other counts.
func TestAWorkersResultThatMakesAJobFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) {
			c.Applications = map[workflow.ApplicationName]configs.Application{"weigh": {Worker: true}}
		}, "one")
		tm.add("one", "workflow: both\ndata: {bed: {type: integer}, fed: {type: boolean}}\ntasks:\n"+
			"  north: {when: bed == null, repeat: true, type: manual, out: [bed]}\n"+
			"  south: {when: bed == null, repeat: true, on-conflict: fail, application: weigh, out: [bed]}\n"+
			"  feed:  {when: bed > 0 and fed == null, repeat: true, type: manual, out: [fed]}\nfinal: fed\n")
		id := tm.begin("one", "both", nil)
		pass(time.Second)
		job := tm.mustTake("ana")
		tm.ends("one", id, api.FinishRequest{Task: "north", Outputs: map[string]string{"bed": "3"}})
		for range 2 {
			isNo(t, "the result", tm.complete("ana", job, `{"bed": 4}`), api.Refused,
				"failed by this result: it sets bed, which was changed")
			pass(time.Second)
			if in := tm.show("one", id); in.State != workflow.InstanceInterrupted || in.Data["bed"] != int64(3) {
				t.Errorf("the instance is %s with %v", in.State, in.Data)
			}
		}
		isNo(t, "another result", tm.complete("ana", job, `{"bed": 5}`), api.Refused, "another result")
	})
}
