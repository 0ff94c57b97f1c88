package node_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// oneCrane has two lifts with the one crane, which the quay gives out.
const oneCrane = `
workflow: harbour
tasks:
  lift:  {type: manual, role: crew, offline: true, holds: crane}
  lower: {type: manual, role: crew, offline: true, holds: crane}
  plan:  {type: manual}
partitions:
  sea:   {tasks: [lift], partner: boat}
  land:  {tasks: [lower], partner: base}
  depot: {tasks: [plan], partner: quay}
resources:
  crane: {capacity: 1, partition: depot}
`

// What somebody locked is presumed to have failed while its holder is out of reach, and the one crane is given to another.
// Both go on when that is back: all are told of it, the same everywhere, until one of them has ended. Who has an item is
// not told to wait for the crane, and the result under the lock counts.
func TestWhoeverUsesTheOneCraneTogetherIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base:crew", "boat:crew", "quay")
		tm.add("base", oneCrane)
		id := tm.begin("base", "harbour", nil)
		pass(time.Second)
		all := []string{"base", "boat", "quay"}
		if err := tm.claim("boat", "boat", api.ClaimLock, tm.itemOf("boat", "boat", "lift").ID); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		tm.p["boat"].crash()
		pass(time.Hour)
		lower := tm.itemOf("base", "base", "lower")
		wantShared(t, "free", lower.Shared, "crane is in use by lift as well")
		if err := tm.claim("base", "base", api.ClaimLock, lower.ID); err != nil {
			t.Fatal(err)
		}
		both := time.Now()
		pass(time.Minute)
		tm.p["boat"].start()
		tm.connect("boat", "base")
		tm.connect("boat", "quay")
		pass(time.Minute)
		for _, at := range all {
			in := tm.show(at, id)
			if len(in.Incidents) != 1 || in.Incidents[0].At.Sub(both).Abs() > 2*time.Second ||
				!strings.HasPrefix(in.Incidents[0].What, "more tasks use crane at once than there is of it (1): "+
					"it is given to lower, and in use by lift as well") {
				t.Errorf("at %s what is to be looked at is %+v, want that lift and lower use the crane since %v", at, in.Incidents, both)
			}
			wantShared(t, at, tm.taskOf(at, id, "lower").Shared, "crane is in use by lift as well")
			if x := tm.taskOf(at, id, "lift"); len(x.WaitsFor) > 0 {
				t.Errorf("at %s lift, which goes on, waits for %+v", at, x.WaitsFor)
			}
		}
		lift := tm.itemOf("boat", "boat", "lift")
		if lift.State != api.ItemLocked || len(lift.WaitsFor) > 0 {
			t.Errorf("at its user lift is %s and waits for %+v", lift.State, lift.WaitsFor)
		}
		wantShared(t, "lift", lift.Shared, "crane is in use by lower as well")
		wantShared(t, "lower", tm.itemOf("base", "base", "lower").Shared, "crane is in use by lift as well")
		if err := tm.hand("boat", "boat", lift.ID, nil); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		for _, at := range all {
			in := tm.show(at, id)
			if x := tm.taskOf(at, id, "lift"); x.State != workflow.Succeeded || len(in.Incidents) > 0 {
				t.Errorf("at %s lift is %s once it is handed in, and to be looked at is %+v", at, x.State, in.Incidents)
			}
		}
		wantShared(t, "alone", tm.itemOf("base", "base", "lower").Shared)
	})
}

// A device that is started again out of reach says still of what was locked there that others use the crane as well.
func TestADeviceRemembersWhoUsesTheCraneAsWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base:crew", "boat:crew", "quay", "tablet")
		if err := tm.signIn("tablet", tm.addUser("base", "bia", "crew")); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		tm.add("base", oneCrane)
		tm.begin("base", "harbour", nil)
		pass(time.Second)
		if err := tm.claim("tablet", "bia", api.ClaimLock, tm.itemOf("tablet", "bia", "lift").ID); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		for _, at := range []string{"base", "quay", "tablet"} {
			tm.disconnect(at, "boat")
		}
		pass(3 * time.Hour)
		if err := tm.claim("base", "base", api.ClaimLock, tm.itemOf("base", "base", "lower").ID); err != nil {
			t.Fatal(err)
		}
		for _, at := range []string{"base", "quay", "tablet"} {
			tm.connect(at, "boat")
		}
		pass(time.Minute)
		wantShared(t, "in reach", tm.itemOf("tablet", "bia", "lift").Shared, "crane is in use by lower as well")
		for _, at := range []string{"base", "boat", "quay"} {
			tm.disconnect(at, "tablet")
		}
		tm.p["tablet"].crash()
		tm.p["tablet"].start()
		pass(time.Minute)
		wantShared(t, "out of reach", tm.itemOf("tablet", "bia", "lift").Shared, "crane is in use by lower as well")
	})
}

func wantShared(t *testing.T, of string, got []api.Lack, want ...string) {
	t.Helper()
	var texts []string
	for _, l := range got {
		texts = append(texts, l.Text)
	}
	if strings.Join(texts, "; ") != strings.Join(want, "; ") {
		t.Errorf("%s: used with others is %q, want %q", of, texts, want)
	}
}
