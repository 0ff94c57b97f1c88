package node_test

import (
	"encoding/json"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// A reference to a file is no value for data of another type, whoever brings it: at the start, with a task of this
// node, with an item of another, out of reach, or as a worker. Nothing is lost by that: whoever has the item still has it.
func TestAFileIsNoValueOfAnotherType(t *testing.T) {
	stray := workflow.File{Name: "note.txt", Size: 3}.String()
	const says = "report: file note.txt was given, and report is data of type string: give its value instead"
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) {
			c.Applications = map[workflow.ApplicationName]configs.Application{"weigh": {Worker: true}}
		}, "base:nurse", "tablet")
		if err := tm.signIn("tablet", tm.addUser("base", "bia", "nurse")); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		tm.add("base", "workflow: round\ndata: {report: {type: string}}\ntasks:\n"+
			"  look: {type: manual, role: nurse, offline: true, out: [report]}\n"+
			"  ask: {type: manual, out: [report]}\n  weigh: {application: weigh, out: [report]}\n"+
			"partitions: {ward: {tasks: [look, ask, weigh], partner: base}}\n")
		base, tablet := tm.p["base"].api, tm.p["tablet"].api
		_, err := base.Start(t.Context(),
			api.StartRequest{Workflow: "round", Input: map[string]string{"report": stray}})
		isNo(t, "at the start", err, api.Invalid, says)
		started, err := base.Start(t.Context(), api.StartRequest{Workflow: "round"})
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Second)

		with := map[string]string{"report": stray}
		err = base.FinishTask(t.Context(), api.FinishRequest{ID: started.ID, Task: "ask", Outputs: with})
		isNo(t, "with a task", err, api.Invalid, says)

		job, err := base.TakeJob(t.Context(), by("ana"), api.TakeRequest{Application: "weigh", Worker: "ana"})
		if err != nil || job == nil {
			t.Fatal(job, err)
		}
		tm.wantStrayJob("base", job, stray, says)

		item := tm.items("tablet", "bia")[0].ID
		if err := tm.claim("tablet", "bia", api.ClaimSelect, item); err != nil {
			t.Fatal(err)
		}
		isNo(t, "with an item", tm.hand("tablet", "bia", item, with), api.Invalid, says)
		if err := tm.claim("tablet", "bia", api.ClaimLock, item); err != nil {
			t.Fatal(err)
		}
		// What is needed to do it is kept here when it is locked.
		if _, err := tablet.ItemSheet(t.Context(), api.ItemQuery{User: "bia", Item: item}); err != nil {
			t.Fatal(err)
		}
		tm.disconnect("base", "tablet")
		synctest.Wait()
		isNo(t, "out of reach", tm.hand("tablet", "bia", item, with), api.Invalid, says)
		tm.wantOutbox("tablet")
		tm.connect("base", "tablet")
		pass(time.Minute)
		if err := tm.hand("tablet", "bia", item, map[string]string{"report": "two floors"}); err != nil {
			t.Error("what is no file is refused as well:", err)
		}
	})
}

// wantStrayJob wants a worker's result refused that says so.
func (tm *team) wantStrayJob(at string, job *api.Job, value, says string) {
	tm.t.Helper()
	err := tm.p[at].api.CompleteJob(tm.t.Context(), by("ana"), job.Lease,
		api.CompleteRequest{Outputs: map[string]json.RawMessage{"report": json.RawMessage(strconv.Quote(value))}})
	isNo(tm.t, "as a worker", err, api.Refused, says)
}
