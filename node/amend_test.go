package node_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

const patrol = `
workflow: patrol
version: 1
administrators: chief
tasks:
  walk: {type: manual, timeout: 1h, on-failure: release}
  rest: {type: manual, after: walk, timeout: 1h, on-failure: release}
partitions:
  there: {tasks: [walk], partner: two}
  here:  {tasks: [rest], partner: one}
`

// amend has a user at a node amend an instance of patrol, in which pieces of the text are others.
func (tm *team) amend(at, user, id string, pairs ...string) (*api.Amended, error) {
	tm.t.Helper()
	done, err := tm.p[at].node.AmendInstance(tm.t.Context(), api.AmendRequest{
		User: user, ID: id, File: "patrol.yaml", Source: strings.NewReplacer(pairs...).Replace(patrol),
	})
	synctest.Wait()
	return done, err
}

// Whoever holds a task goes by the amended limit from when it hears of it; who had not heard of it judged by the old
// one, and that stands. Who may not, and what cannot be changed, is refused, and changes nothing.
func TestAmendedLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three")
		tm.add("one", patrol)
		told, untold := tm.begin("one", "patrol", nil), tm.begin("one", "patrol", nil)
		if _, err := tm.amend("two", "two", told, "timeout: 1h, on", "timeout: 5h, on"); err == nil {
			t.Error("one who does not decide about it amends it")
		} else {
			wantCode(t, err, api.NotAllowed, "")
		}
		_, err := tm.amend("one", "one", told, "rest: {type: manual, after: walk", "rest: {type: manual, offline: true, after: walk")
		wantCode(t, err, api.Refused, "cannot be changed so yet: task rest, offline")
		if in := tm.show("two", told); in.Version != 1 || len(in.Amended) > 0 {
			t.Errorf("it was changed: %+v", in.Amended)
		}
		if done, err := tm.amend("one", "one", told, "version: 1", "version: 2", "walk: {type: manual, timeout: 1h",
			"walk: {type: manual, timeout: 5h"); err != nil || done.Version != 2 || done.Already {
			t.Fatalf("%+v, %v", done, err)
		}
		for _, at := range []string{"one", "two"} {
			if in := tm.show(at, told); in.Version != 2 || len(in.Amended) != 1 || in.Amended[0].User != "one" ||
				strings.Join(in.Amended[0].Lines, "; ") != "workflow, version: 2; task walk, timeout: 5h" {
				t.Errorf("%s shows %d, %+v", at, in.Version, in.Amended)
			}
		}
		tm.disconnect("one", "two")
		tm.disconnect("three", "two") // else it hears of the second change by way of the third
		pass(time.Second)
		if _, err := tm.amend("one", "one", untold, "walk: {type: manual, timeout: 1h",
			"walk: {type: manual, timeout: 5h"); err != nil {
			t.Fatal(err)
		}
		pass(70 * time.Minute)
		if s := tm.task("two", told, "walk"); s != workflow.Ready {
			t.Errorf("with five hours walk is %s after 70 minutes", s)
		}
		if s := tm.task("two", untold, "walk"); s != workflow.Failed {
			t.Errorf("with an hour, as far as its holder knows, walk is %s after 70 minutes", s)
		}
		tm.connect("one", "two")
		tm.connect("three", "two")
		pass(5 * time.Second)
		for _, id := range []string{told, untold} {
			a, _ := tm.p["one"].node.Fingerprint(t.Context(), id)
			b, _ := tm.p["two"].node.Fingerprint(t.Context(), id)
			if string(a) != string(b) {
				t.Errorf("they differ:\n%s\n%s", a, b)
			}
		}
		if s := tm.task("one", untold, "walk"); s != workflow.Failed {
			t.Errorf("what its holder said is %s", s)
		}
	})
}

// Many instances are amended while a partner is cut off that holds a part of each. When it is back, all agree, and
// none was missed; a restart of the one that amended them changes nothing.
func TestManyInstancesAreAmended(t *testing.T) {
	const many = 100
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three")
		tm.add("one", patrol)
		var ids []string
		for range many {
			ids = append(ids, tm.begin("one", "patrol", nil))
		}
		tm.disconnect("one", "two")
		tm.disconnect("three", "two")
		pass(time.Second)
		for _, id := range ids {
			if _, err := tm.amend("one", "one", id, "version: 1", "version: 2", "timeout: 1h, on",
				"timeout: 9h, on"); err != nil {
				t.Fatal(err)
			}
		}
		tm.p["one"].crash()
		tm.p["one"].start()
		tm.connect("one", "three")
		if in := tm.show("two", ids[0]); in.Version != 1 {
			t.Errorf("version %d at one that is cut off", in.Version)
		}
		tm.connect("one", "two")
		tm.connect("three", "two")
		pass(10 * time.Second)
		for _, id := range ids {
			a, _ := tm.p["one"].node.Fingerprint(t.Context(), id)
			b, _ := tm.p["two"].node.Fingerprint(t.Context(), id)
			if in := tm.show("two", id); in.Version != 2 || string(a) != string(b) {
				t.Fatalf("%s: version %d, and they agree: %t", id, in.Version, string(a) == string(b))
			}
		}
	})
}
