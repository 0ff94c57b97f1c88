package node_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// elect has a partner elected. A voter that has just started waits for a lease,
// which is the connectionTime of an hour, before it votes.
func (tm *team) elect(at string) {
	tm.t.Helper()
	var err error
	for began := time.Now(); time.Since(began) < 2*time.Hour; {
		if _, err = tm.p[at].api.Elect(tm.t.Context(), api.ElectRequest{}); err == nil {
			synctest.Wait()
			return
		}
	}
	tm.t.Fatalf("%s is not elected: %v", at, err)
}

// overview is an instance in a partner's list: state, progress, the partners that
// it is with, and the one that told of it; "" if it is not in it.
func (tm *team) overview(at, id string) string {
	tm.t.Helper()
	list, err := tm.p[at].api.Instances(tm.t.Context(), true)
	if err != nil {
		tm.t.Fatal(err)
	}
	for _, in := range list {
		if in.ID == id {
			by := []string{}
			for _, w := range in.KnownBy {
				by = append(by, fmt.Sprintf("%s(%s)", w.Name, w.State))
			}
			slices.Sort(by)
			return fmt.Sprintf("%s %d/%d %v by %s", in.State, in.Done, in.Tasks, in.At,
				cmp.Or(strings.Join(by, " "), "itself"))
		}
	}
	return ""
}

func (tm *team) wantOverview(at, id, want string) {
	tm.t.Helper()
	if got := tm.overview(at, id); got != want {
		tm.t.Errorf("%s lists it as %q, want %q", at, got, want)
	}
}

// The coordinator lists what it takes no part in: what ran before it took office,
// what changes, and what changed while its connections were cut. With the office
// it forgets; the next hears everything again.
func TestCoordinatorSeesTheWholeMesh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three", "four")
		tm.add("two", chain)
		tm.p["two"].hand.hold("a", "c")
		tm.p["three"].hand.hold("b")
		id := tm.begin("two", "chain", map[string]string{"pa": "two", "pb": "three", "pc": "two"})
		tm.wantOverview("one", id, "")
		tm.elect("one")
		pass(2 * time.Second)
		tm.wantOverview("one", id, "running 0/3 [two] by three(active) two(active)")
		tm.wantOverview("two", id, "running 0/3 [two] by itself")
		tm.wantOverview("four", id, "")

		tm.p["two"].hand.letGo(t, "a")
		pass(2 * time.Second)
		tm.wantOverview("one", id, "running 1/3 [three] by three(active) two(active)")

		tm.disconnect("one", "two")
		tm.disconnect("one", "three")
		tm.p["three"].hand.letGo(t, "b")
		pass(2 * time.Second)
		tm.wantOverview("one", id, "running 1/3 [three] by three(unreachable) two(unreachable)")
		tm.connect("one", "two")
		pass(2 * time.Second)
		tm.wantOverview("one", id, "running 2/3 [two] by three(unreachable) two(active)")

		if err := tm.p["one"].api.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		tm.wantOverview("one", id, "")
		tm.elect("four")
		tm.p["two"].hand.letGo(t, "c")
		pass(5 * time.Second)
		tm.wantOverview("four", id, "succeeded 3/3 [] by three(active) two(active)")
		tm.wantOverview("one", id, "")
	})
}

// However often instances change, a partner reports once in a second.
func TestReportsComeInBunches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		tm.add("two", chain)
		tm.elect("one")
		alone := map[string]string{"pa": "two", "pb": "two", "pc": "two"}
		began := elapsed()
		ids := map[string]bool{}
		for range 40 {
			ids[tm.begin("two", "chain", alone)] = true
			pass(100 * time.Millisecond)
		}
		pass(2 * time.Second)
		frames := tm.f.sent(func(c carried) bool { return c.sent >= began && len(c.m.Reports) > 0 })
		if len(frames) < 2 || len(frames) > 7 {
			t.Errorf("%d frames with reports in 6 seconds, want one a second at most", len(frames))
		}
		for _, f := range frames {
			if f.from != tm.p["two"].id() || f.to != tm.p["one"].id() {
				t.Errorf("reported from %s to %s", f.from, f.to)
			}
		}
		for id := range ids {
			if got := tm.overview("one", id); !strings.HasPrefix(got, "succeeded ") {
				t.Errorf("one lists %s as %q", id, got)
			}
		}
	})
}

// The coordinator has an instance shown that it takes no part in; nobody else may
// look at what is not theirs, and nothing may be done from there.
func TestLookingAtAnInstanceOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three", "four")
		tm.add("two", chain)
		tm.p["three"].hand.hold("b")
		id := tm.begin("two", "chain", map[string]string{"pa": "two", "pb": "three", "pc": "two"})
		tm.elect("one")
		pass(2 * time.Second)
		ctx, one := t.Context(), tm.p["one"].api

		in, err := one.Show(ctx, id[:8])
		if err != nil {
			t.Fatal(err)
		}
		own, err := tm.p["two"].api.Show(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		if in.Told == nil || in.Told.Summary || own.Told != nil || len(in.Tasks) != 3 ||
			in.Tasks[1].State != own.Tasks[1].State || in.Tasks[1].State != workflow.Running {
			t.Errorf("shown as %+v; two shows %+v", in, own)
		}
		log, err := one.Log(ctx, id)
		if err != nil || len(log) != len(tm.log("two", id)) {
			t.Errorf("a log of %d facts: %v", len(log), err)
		}
		if b, err := one.Diagram(ctx, id, "mermaid"); err != nil || !strings.Contains(string(b), "RUNNING") {
			t.Errorf("drawn as %s: %v", b, err)
		}
		wantRefusal(t, "cancelling from afar", one.Cancel(ctx, id, ""), "two answers for the instance")

		_, err = tm.ask("four", "two", wire.Look{Instance: instance(t, id)})
		wantRefusal(t, "a look by a bystander", err, "only the coordinator and participants")
		if n := tm.counter("two", "refused.look"); n != 1 {
			t.Errorf("%d looks were refused, want 1", n)
		}
		if _, err := tm.ask("three", "two", wire.Look{Instance: instance(t, id)}); err != nil {
			t.Errorf("a participant may not look: %v", err)
		}
		_, err = tm.ask("one", "four", wire.Look{Instance: instance(t, id)})
		wantRefusal(t, "a look where it is not", err, "takes no part")

		tm.disconnect("one", "two")
		tm.disconnect("one", "three")
		pass(time.Second)
		in, err = one.Show(ctx, id)
		if err != nil || in.Told == nil || !in.Told.Summary || in.Told.Done != 1 || in.Told.Tasks != 3 ||
			strings.Join(in.Told.Participants, " ") != "two three" || len(in.Tasks) != 0 {
			t.Errorf("of what nobody can be asked about a summary remains: %+v, %v", in.Told, err)
		}
		_, err = one.Log(ctx, id)
		wantRefusal(t, "the log of what nobody can be asked about", err, "cannot be reached")
		_, err = one.Diagram(ctx, id, "svg")
		wantRefusal(t, "drawing what nobody can be asked about", err, "only a summary")
	})
}

// ask has one partner look at an instance of another, whatever its own node says.
func (tm *team) ask(from, to string, l wire.Look) ([]byte, error) {
	tm.t.Helper()
	req, err := wire.EncodeLook(l)
	if err != nil {
		tm.t.Fatal(err)
	}
	return tm.p[from].plug.Request(context.Background(), tm.p[to].id(), nil, "/mutirao/look/1.0.0", req)
}

func instance(t *testing.T, id string) workflow.InstanceID {
	t.Helper()
	parsed, err := workflow.ParseInstanceID(id)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// A coordinator keeps as much as its limits say, and counts what it leaves out.
func TestOverviewIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		one := tm.p["one"]
		one.crash()
		one.adjust = func(c *configs.Config) { c.Limits.Instances = 3 }
		one.start()
		tm.connect("one", "two")
		tm.add("two", chain)
		tm.p["two"].hand.hold("a")
		tm.elect("one")
		for range 5 {
			tm.begin("two", "chain", map[string]string{"pa": "two", "pb": "two", "pc": "two"})
		}
		pass(3 * time.Second)
		list, err := one.api.Instances(t.Context(), false)
		if err != nil || len(list) != 3 {
			t.Errorf("%d instances are listed, want 3: %v", len(list), err)
		}
		if n := tm.counter("one", "reports.left-out"); n != 2 {
			t.Errorf("%d reports were left out, want 2", n)
		}
		st, err := one.api.Status(t.Context())
		if err != nil || !strings.Contains(strings.Join(st.Trouble, " "), "more instances than its list takes") {
			t.Errorf("its status does not say so: %v, %v", st.Trouble, err)
		}
		if err := one.api.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		if st, err := one.api.Status(t.Context()); err != nil || len(st.Trouble) > 0 {
			t.Errorf("after it resigned there is still trouble: %v, %v", st.Trouble, err)
		}
	})
}

// What needs a person is marked at the coordinator, too, which takes no part; with what people call it there, as far as
// the definition is known.
func TestCoordinatorSeesWhatNeedsAPerson(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three")
		tm.elect("one")
		tm.add("one", "label: A chain of three\n"+strings.Replace(chain, "b: {", "b: {label: The middle, ", 1))
		tm.p["three"].hand.hold("b")
		id := tm.begin("two", "chain", map[string]string{"pa": "two", "pb": "three", "pc": "two"})
		tm.p["three"].hand.fail(t, "b")
		pass(5 * time.Second)
		list, err := tm.p["one"].api.Instances(t.Context(), true)
		if err != nil || len(list) != 1 || list[0].ID != id {
			t.Fatalf("%v, %v", list, err)
		}
		if n := list[0].Needs; len(n) != 2 || n[0].Kind != "failed" || n[0].Number != 1 || n[0].Tasks[0] != "b" ||
			n[1].Kind != "blocked" || list[0].AsOf == nil {
			t.Errorf("b failed and blocks c, and the coordinator is shown %+v, as of %v", n, list[0].AsOf)
		} else if list[0].Label != "A chain of three" || n[0].Called("b") != "The middle" {
			t.Errorf("the coordinator calls it %q and b %q, want what the definition says", list[0].Label, n[0].Called("b"))
		}
		tm.disconnect("one", "two")
		tm.disconnect("one", "three")
		in, err := tm.p["one"].api.Show(t.Context(), id)
		if err != nil || in.Told == nil || !in.Told.Summary || in.Label != "A chain of three" {
			t.Errorf("the summary: %+v, %v", in, err)
		}
	})
}

// A coordinator that takes no part is told of what is only presumed to have failed. While its holder is gone it waits for
// an order, as another can do it.
func TestCoordinatorKnowsWhatIsPresumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three")
		tm.elect("one")
		tm.add("two", "workflow: errand\ntasks:\n  go: {}\npartitions:\n  away: [go]\n")
		tm.p["three"].hand.hold("go")
		id := tm.begin("two", "errand", map[string]string{"away": "three"})
		pass(time.Second)
		tm.disconnect("one", "three")
		tm.disconnect("two", "three")
		pass(time.Hour)
		one := tm.p["one"].api
		list, err := one.Instances(t.Context(), true)
		if err != nil || len(list) != 1 || list[0].ID != id || list[0].State != workflow.InstanceFailed ||
			len(list[0].Needs) != 1 {
			t.Fatalf("%+v, %v", list, err)
		}
		if n := list[0].Needs[0]; n.Kind != api.NeedFailed || n.Number != 1 || n.Presumed != 0 || !n.Waits() {
			t.Errorf("go is presumed to have failed, and the coordinator is shown %+v", n)
		}
		if list, err = one.Instances(t.Context(), false); err != nil || len(list) != 1 {
			t.Errorf("it is not among those that wait for an order: %+v, %v", list, err)
		}
	})
}
