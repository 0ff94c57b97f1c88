package node_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// An instance that was blocked and goes on has ended when that is done, not when it was blocked.
func TestTheEndIsTheOneThatCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamWith(t, connectionTime(15*time.Second), nil, "one", "two")
		tm.add("one", "workflow: alarm\ntasks:\n  ring: {timeout: 10s}\npartitions:\n  main: [ring]\n")
		pass(time.Second)
		tm.p["two"].crash()
		pass(time.Second)
		id := tm.begin("one", "alarm", map[string]string{"main": "two"})
		pass(5 * time.Minute)
		if in := tm.show("one", id); in.State != workflow.InstanceBlocked && in.State != workflow.InstanceFailed {
			t.Fatalf("without two it is %s: the test does not test what it should", in.State)
		}
		tm.p["two"].start()
		tm.connect("one", "two")
		pass(30 * time.Second)
		for _, at := range []string{"one", "two"} {
			in := tm.show(at, id)
			ring := tm.taskOf(at, id, "ring")
			if in.State != workflow.InstanceSucceeded || in.Ended == nil || ring.Ended == nil ||
				in.Ended.Before(*ring.Ended) {
				t.Errorf("at %s it is %s, ended %v, its only task ended %v", at, in.State, in.Ended, ring.Ended)
			}
		}
		if in := tm.show("one", id); in.Ended != nil {
			pass(time.Minute)
			tm.p["one"].crash()
			tm.p["one"].start()
			pass(time.Minute)
			if again := tm.show("one", id); again.Ended == nil || !again.Ended.Equal(*in.Ended) {
				t.Errorf("after a restart it ended %v, before it %v", again.Ended, in.Ended)
			}
		}
	})
}

// When an instance ended is the same wherever that is known, whenever somebody heard of it: the time of what ended it.
func TestItEndedAtOneMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		tm.add("one", patrol)
		tm.add("one", hire)
		done, stopped, cancelled := tm.begin("one", "patrol", nil), tm.begin("one", "patrol", nil), tm.begin("one", "patrol", nil)
		flow := tm.begin("one", "hire", nil)
		pass(10 * time.Second)
		tm.finish("two", done, "walk")
		pass(10 * time.Second)
		tm.disconnect("one", "two")
		want := map[string]time.Time{}
		in := func(wait time.Duration, id string, end func()) {
			t.Helper()
			pass(wait)
			end()
			want[id] = time.Now()
		}
		in(10*time.Second, done, func() { tm.finish("one", done, "rest") })
		in(10*time.Second, cancelled, func() {
			if err := tm.p["one"].api.Cancel(t.Context(), cancelled, "enough"); err != nil {
				t.Fatal(err)
			}
		})
		in(10*time.Second, flow, func() {
			for _, r := range []api.FinishRequest{
				{ID: flow, Task: "choose", Outputs: map[string]string{"car": "red"}},
				{ID: flow, Task: "agree", Outputs: map[string]string{"status": "agreed"}},
			} {
				if err := tm.p["two"].api.FinishTask(t.Context(), r); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			}
		})
		pass(time.Minute)
		tm.connect("one", "two")
		pass(10 * time.Second)
		in(10*time.Second, stopped, func() { // what comes after a failure that is released is left
			if err := tm.p["two"].api.FinishTask(t.Context(), api.FinishRequest{
				ID: stopped, Task: "walk", Failed: true, Reason: "rain",
			}); err != nil {
				t.Fatal(err)
			}
			pass(10 * time.Second)
			tm.finish("one", stopped, "rest")
		})
		pass(10 * time.Second)
		same := func() {
			t.Helper()
			for id, at := range want {
				for _, who := range []string{"one", "two"} {
					rows, err := tm.p[who].api.Instances(t.Context(), true)
					if err != nil {
						t.Fatal(err)
					}
					i := slices.IndexFunc(rows, func(r api.InstanceSummary) bool { return r.ID == id })
					if x := tm.show(who, id); x.Ended == nil || !x.Ended.Equal(at) || i < 0 || rows[i].Ended == nil ||
						!rows[i].Ended.Equal(at) {
						t.Errorf("%s: %s of %s, %s, ended %v, want %s", who, x.Workflow, id, x.State, x.Ended, at)
					}
				}
			}
		}
		same()
		tm.p["two"].crash()
		tm.p["two"].start()
		tm.connect("one", "two")
		pass(time.Minute)
		same()
	})
}

// Whether a node may leave for good can be asked before anything is done.
func TestLeavingForGoodIsChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		for name, may := range map[string]bool{"one": false, "two": true} {
			_, err := tm.p[name].api.Leave(t.Context(), api.LeaveRequest{ForGood: true, Check: true})
			if (err == nil) != may {
				t.Errorf("may %s leave for good: %v", name, err)
			}
			pass(time.Minute)
			if p := tm.row("two", name); p.State != "active" {
				t.Errorf("%s is %s: nothing was to be done", name, p.State)
			}
		}
	})
}
