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

// A worker is told that its compensation does not lead to where the instance was, and so comes to nothing.
func TestAWorkersResultThatUndoesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) {
			c.Applications = map[workflow.ApplicationName]configs.Application{"take-back": {Worker: true}}
		}, "one")
		tm.add("one", "workflow: hire\ndata: {key: {type: integer}, out: {type: boolean}}\ntasks:\n"+
			"  key: {when: key == null, repeat: true, type: manual, out: [key], compensate: {application: take-back}}\n"+
			"  hand: {when: key > 0 and out == null, repeat: true, type: manual, out: [out]}\nfinal: out\n")
		id := tm.begin("one", "hire", nil)
		pass(time.Second)
		tm.ends("one", id, api.FinishRequest{Task: "key", Outputs: map[string]string{"key": "1"}})
		pass(time.Second)
		tm.ends("one", id, api.FinishRequest{Task: "hand", Failed: true, Reason: "no key"})
		pass(time.Second)
		undo := func(outputs string) error {
			t.Helper()
			_, err := tm.p["one"].api.OrderTask(t.Context(), api.TaskOrder{
				ID: id, Order: api.TaskRecover, Recover: &api.RecoveryStep{Method: "compensate"},
			})
			if err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
			job, err := tm.p["one"].api.TakeJob(t.Context(), by("ana"),
				api.TakeRequest{Application: "take-back", Worker: "ana"})
			if err != nil || job == nil {
				t.Fatalf("no job: %v", err)
			}
			return tm.complete("ana", job, outputs)
		}
		isNo(t, "what leads nowhere", undo(`{"key": 7}`), api.Refused,
			"failed by this result: the compensation of key is badly designed: its state is not equivalent to S0")
		pass(time.Second)
		if in := tm.show("one", id); in.Data["key"] != int64(1) {
			t.Errorf("the key is %v", in.Data["key"])
		}
		if err := undo(`{"key": null}`); err != nil {
			t.Error(err)
		}
		pass(time.Second)
		if in := tm.show("one", id); in.Data["key"] != nil {
			t.Errorf("the key is %v", in.Data["key"])
		}
	})
}
