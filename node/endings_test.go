package node_test

import (
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
