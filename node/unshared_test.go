package node_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// What was done of a task that its own node holds is in the outbox until somebody else has it: a user's item, and the
// partner's own task, well done or failed; also after a crash. Then an event says that it is not any more.
func TestWhatNobodyElseHasIsInTheOutbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base:nurse", "barn")
		if err := tm.signIn("base", tm.addUser("base", "bia", "nurse")); err != nil {
			t.Fatal(err)
		}
		tm.add("base", "workflow: day\ndata: {weight: {type: integer}}\ntasks:\n"+
			"  weigh: {type: manual, role: nurse, out: [weight]}\n  sweep: {type: manual, label: Sweep the floor}\n"+
			"  mend: {type: manual, on-failure: block}\n  paint: {type: manual}\n  feed: {type: manual, after: weigh}\n"+
			"partitions: {ward: {tasks: [weigh, sweep, mend, paint], partner: base}, field: {tasks: [feed], partner: barn}}\n")
		id := tm.begin("base", "day", nil)
		pass(time.Minute)
		tm.wantOutbox("base")
		tm.disconnect("base", "barn")
		pass(time.Minute)

		item := ""
		for _, x := range tm.items("base", "bia") {
			if x.Task == "weigh" {
				item = x.ID
			}
		}
		if err := tm.claim("base", "bia", api.ClaimSelect, item); err != nil {
			t.Fatal(err)
		}
		tm.wantOutbox("base") // nothing is done yet
		if err := tm.hand("base", "bia", item, map[string]string{"weight": "3"}); err != nil {
			t.Fatal(err)
		}
		tm.ends("base", id, api.FinishRequest{Task: "sweep"})
		tm.ends("base", id, api.FinishRequest{Task: "mend", Failed: true, Reason: "no nails"})
		want := []string{"bia|weigh|completed|barn", "base|sweep|completed|barn", "base|mend|failed: no nails|barn"}
		tm.wantOutbox("base", want...)
		list, err := tm.p["base"].api.Outbox(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range list {
			if x.Instance != id || x.Workflow != "day" || !x.HeldHere || x.Alone || x.Since.IsZero() ||
				time.Since(x.Since) > time.Minute {
				t.Errorf("what is said of %s: %+v", x.Task, x)
			}
		}
		tm.p["base"].crash()
		tm.p["base"].start()
		pass(time.Minute)
		tm.wantOutbox("base", want...)

		told := tm.watch("base", "worklist")
		tm.ends("base", id, api.FinishRequest{Task: "paint"})
		before := told()
		tm.connect("base", "barn")
		pass(time.Minute)
		if told() == before {
			t.Error("nobody who watches was told that others have it")
		}
		tm.wantOutbox("base")
		for _, x := range tm.show("barn", id).Tasks {
			if x.Name == "weigh" && x.State != workflow.Succeeded {
				t.Error("barn does not have it")
			}
		}
	})
}

// Where no other partner takes part nobody takes what was done; it is said so until the instance has ended.
func TestTheOutboxOfWhoIsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base", "barn")
		tm.add("base", "workflow: day\ntasks: {weigh: {type: manual}, feed: {type: manual, after: weigh}}\n"+
			"partitions: {ward: {tasks: [weigh, feed], partner: base}}\n")
		id := tm.begin("base", "day", map[string]string{})
		pass(time.Second)
		tm.ends("base", id, api.FinishRequest{Task: "weigh"})
		pass(time.Minute)
		list, err := tm.p["base"].api.Outbox(t.Context(), "")
		if err != nil || len(list) != 1 || !list[0].Alone || len(list[0].WaitsFor) > 0 || list[0].Task != "weigh" {
			t.Errorf("the outbox is %+v, %v", list, err)
		}
		tm.ends("base", id, api.FinishRequest{Task: "feed"})
		tm.wantOutbox("base")
	})
}
