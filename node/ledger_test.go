package node_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// What a partner has finished does not keep it from the next step: of four steps, one
// after the other, the most apt performs them all.
func TestFinishedWorkTakesNobodysTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base", "alpha:crew", "beta:crew", "gamma:crew")
		tm.add("base", `
workflow: steps
tasks:
  t1: {type: manual, role: crew, suitability: {alpha: 1.0, beta: 0.15, gamma: 0.1}}
  t2: {after: t1, type: manual, role: crew, suitability: {alpha: 1.0, beta: 0.15, gamma: 0.1}}
  t3: {after: t2, type: manual, role: crew, suitability: {alpha: 1.0, beta: 0.15, gamma: 0.1}}
  t4: {after: t3, type: manual, role: crew, suitability: {alpha: 1.0, beta: 0.15, gamma: 0.1}}
partitions: {all: {tasks: [t1, t2, t3, t4], partner: base}}
distribution: {mechanism: Sel-push}
`)
		id := tm.begin("base", "steps", nil)
		for i, step := range []workflow.TaskName{"t1", "t2", "t3", "t4"} {
			pass(4 * time.Second)
			task := tm.show("base", id).Tasks[i]
			if task.Partner != "alpha" || task.State != workflow.Ready {
				t.Fatalf("%s is at %s, %s: %+v", step, task.Partner, task.State, task.Why)
			}
			if err := tm.p["alpha"].api.FinishTask(t.Context(), api.FinishRequest{ID: id, Task: step}); err != nil {
				t.Fatal(err)
			}
		}
		tm.succeeds(id, time.Minute, "base")
	})
}

// trio is a definition of three partitions, for which one is far more apt than the others.
func trio(after string) string {
	const suits = "application: saw, duration: 10m, suitability: {one: 1.0, two: 0.15, three: 0.1}"
	return strings.NewReplacer("AFTER2", after, "AFTER3", strings.ReplaceAll(after, "t1", "t2"), "SUITS", suits).Replace(`
workflow: trio
tasks:
  t1: {SUITS}
  t2: {AFTER2SUITS}
  t3: {AFTER3SUITS}
partitions: {p1: [t1], p2: [t2], p3: [t3]}
distribution: {mechanism: Sel-push}
`)
}

// performers are the holders of the partitions of an instance.
func (tm *team) performers(at, id string) (out []string) {
	for _, p := range tm.show(at, id).Partitions {
		out = append(out, p.Partner)
	}
	return out
}

// Partitions that can never be under way together do not take one another's
// partner: a chain goes to the most apt, parallel work does not.
func TestChainGoesToTheMostApt(t *testing.T) {
	for _, c := range []struct {
		after string
		want  []string
	}{
		{"after: t1, ", []string{"one", "one", "one"}},
		{"", []string{"one", "two", "three"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			tm := newTeam(t, "base", "one", "two", "three")
			for _, name := range []string{"one", "two", "three"} {
				tm.profile(name, api.ProfileChange{Applications: &[]string{"saw"}})
				tm.p[name].hand.work(10 * time.Minute)
			}
			tm.add("base", trio(c.after))
			id := tm.begin("base", "trio", nil)
			if diff := cmp.Diff(c.want, tm.performers("base", id)); diff != "" {
				t.Errorf("with %q (-want +got):\n%s", c.after, diff)
			}
		})
	}
}

// Two nodes that give out work see what the other gave: the second finds the best
// of all busy, though it has no part in the instance for which that is so.
func TestTwoGiversDoNotBothFillTheBest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) { c.ConnectionTime = 15 * time.Second }, five...)
		for _, name := range five {
			tm.profile(name, api.ProfileChange{Applications: &[]string{"saw"}})
			tm.p[name].hand.work(30 * time.Second)
		}
		tm.add("one", job)
		pass(10 * time.Second)
		if _, who := tm.give("four", "Sel-push"); who != "one" {
			t.Fatalf("the first goes to %s", who)
		}
		pass(2 * time.Second) // a beat comes early
		if id, who := tm.give("five", "Sel-push"); who != "two" {
			t.Errorf("the second, which another node gives out, goes to %s: %+v", who, tm.why("five", id))
		}
		pass(2 * time.Second)
		if id, who := tm.give("four", "Sel-push"); who != "three" { // one and two have two thirds left each
			t.Errorf("the third goes to %s: %+v", who, tm.why("four", id))
		}
		pass(time.Minute)
		if _, who := tm.give("five", "Sel-push"); who != "one" {
			t.Errorf("when all has ended, the next goes to %s", who)
		}
	})
}

// What another gave out takes up its share of its holder, and not all of it: the most apt has capacity for a second
// piece, before somebody who is hardly suited.
func TestWorkOfAnotherGiverTakesItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) { c.ConnectionTime = 15 * time.Second }, five...)
		for _, name := range []string{"one", "two"} {
			tm.profile(name, api.ProfileChange{Applications: &[]string{"saw"}})
			tm.p[name].hand.work(30 * time.Second)
		}
		tm.add("three", strings.Replace(job, "two: 0.9", "two: 0.2", 1))
		pass(10 * time.Second)
		for _, giver := range []string{"three", "four"} {
			if id, who := tm.give(giver, "Sel-push"); who != "one" {
				t.Errorf("what %s gives out goes to %s: %+v", giver, who, tm.why(giver, id))
			}
			pass(2 * time.Second) // a beat comes early
		}
	})
}

// Within one instance, too, it goes by what a partner was given last, as long as that is not done.
func TestFlowTimeWithinAnInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "base", "one", "two", "three")
		for _, name := range []string{"one", "two", "three"} {
			tm.profile(name, api.ProfileChange{Applications: &[]string{"saw"}})
			tm.p[name].hand.work(10 * time.Minute)
		}
		tm.add("base", strings.NewReplacer("two: 0.15", "two: 0.9", "three: 0.1", "three: 0.8", "mechanism: Sel-push",
			"mechanism: Sel-push-flowtime").Replace(trio("after: t1, ")))
		id := tm.begin("base", "trio", nil)
		if diff := cmp.Diff([]string{"one", "two", "three"}, tm.performers("base", id)); diff != "" {
			t.Errorf("three pieces of a chain (-want +got):\n%s", diff)
		}
	})
}

// A trace of other work sets nobody back by Sel-push-10, which takes the most
// available of those that are nearly as apt.
func TestTraceOfLoadDecidesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := sawyers(t)
		tm.add("two", `
workflow: other
tasks: {look: {type: manual, duration: 20s}}
partitions: {p: {tasks: [look], partner: one}}
`)
		tm.begin("two", "other", nil)
		pass(30 * time.Minute) // a beat says so
		if id, who := tm.give("two", "Sel-push-10"); who != "one" {
			t.Errorf("it goes to %s: %+v", who, tm.why("two", id))
		}
	})
}

// Sel-push-flowtime goes by what a partner was given last: of the apt, one that has
// been given nothing yet comes before those that have not even finished.
func TestFlowTimeIsThatOfTheLastAllocation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := sawyers(t)
		var got []string
		for range 5 {
			_, who := tm.give("five", "Sel-push-flowtime")
			got = append(got, who)
		}
		if diff := cmp.Diff([]string{"one", "two", "three", "one", "four"}, got); diff != "" {
			t.Errorf("five at once (-want +got):\n%s", diff)
		}
	})
}

// The record says of a partner that it was entitled, and never that it saw what it
// has not heard of.
func TestVerdictsSayWhatIsTrue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := sawyers(t)
		for range 3 {
			id, who := tm.give("one", "Pull")
			for partner, verdict := range verdicts(tm.why("one", id)) {
				if partner != who && verdict != "entitled, but another was drawn" && verdict != "entitled, but busy" {
					t.Errorf("of %s it says %q", partner, verdict)
				}
			}
		}
	})
}

// An ended instance says what those that did its work reached of what could be had.
func TestQualityOfAnInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := sawyers(t)
		first, _ := tm.give("five", "Sel-push")
		second, _ := tm.give("five", "Sel-push")
		if q := tm.show("five", second).Quality; q != nil {
			t.Errorf("while its only task runs, the quality is %+v", q)
		}
		pass(time.Minute)
		for id, want := range map[string]*api.Quality{
			first:  {Actual: 1, Ideal: 1, Total: 1, Tasks: 1},
			second: {Actual: 0.9, Ideal: 1, Total: 0.9, Tasks: 1}, // two has done it, one would have done it best
		} {
			if diff := cmp.Diff(want, tm.show("five", id).Quality); diff != "" {
				t.Errorf("quality (-want +got):\n%s", diff)
			}
		}
	})
}

// Where a definition or a node's configuration says so, nothing is learned, and what
// was learned is not looked at.
func TestLearningCanBeSwitchedOff(t *testing.T) {
	for _, c := range []struct {
		distribution string
		learning     bool
		want         float64
	}{
		{"{mechanism: Push}", true, 0.8},
		{"{mechanism: Push, learning: false}", true, 1},
		{"{mechanism: Push}", false, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			tm := newTeamOf(t, func(cfg *configs.Config) { cfg.Learning = c.learning }, "one", "two")
			tm.add("two", "workflow: job\ntasks: {work: {type: manual, suitability: {one: 1.0}, on-failure: release}}\ndistribution: "+c.distribution)
			id, _ := tm.give("two", "")
			if err := tm.p["one"].api.FinishTask(t.Context(),
				api.FinishRequest{ID: id, Task: "work", Failed: true}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			id, _ = tm.give("two", "")
			if got := tm.why("two", id).Candidates[0].Suitability; got != c.want {
				t.Errorf("%+v: the suitability is %v", c, got)
			}
		})
	}
}

// To choose is only a question: it changes nothing of what is known to be given out. What
// a decision gave out counts if it could be made durable, once, also after a restart.
func TestWhatIsGivenOutCountsOnceItIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const source = `
workflow: two
tasks:
  first: {application: saw}
  second: {after: first, type: manual, role: crew, duration: 10m}
partitions: {p: {tasks: [first, second], partner: base}}
distribution: {mechanism: Sel-push-flowtime}
`
		tm := newTeam(t, "base", "alpha:crew", "beta:crew")
		base := tm.p["base"]
		base.hand.hold("first")
		tm.profile("base", api.ProfileChange{Applications: &[]string{"saw"}})
		tm.add("base", source)
		id := tm.begin("base", "two", nil)
		before := base.node.GivenOut()
		same := func(when string) {
			t.Helper()
			if diff := cmp.Diff(before, base.node.GivenOut()); diff != "" {
				t.Errorf("%s, what is known to be given out is another (-before +now):\n%s", when, diff)
			}
		}

		def, err := workflow.Parse("two.yaml", []byte(source))
		if err != nil {
			t.Fatal(err)
		}
		who := map[workflow.PartnerID]bool{}
		for range 3 {
			w := choreo.Work{
				Plan: partition.New(def), Mechanism: aptitude.SelPushFlowtime, Tasks: []workflow.TaskName{"second"},
				Holder: base.id(),
			}
			c, err := base.node.Choices().Choose(w)
			if err != nil {
				t.Fatal(err)
			}
			who[c.Partner] = true
		}
		if len(who) != 1 {
			t.Errorf("the same question has the answers %v", who)
		}
		same("after three questions")

		base.disk.failWith(kv.ErrFull)
		base.hand.letGo(t, "first")
		for range 5 {
			synctest.Wait()
			same("with nothing of it durable")
			pass(time.Second)
		}
		if n := base.disk.commits; n < 3 {
			t.Fatalf("only %d commits were tried", n)
		}

		base.disk.failWith(nil)
		pass(time.Minute)
		second := tm.show("base", id).Tasks[1]
		if chosen := tm.p[second.Partner]; chosen == nil || !who[chosen.id()] {
			t.Errorf("second is at %q, which is not who was chosen first", second.Partner)
		}
		now := strings.ReplaceAll(base.node.GivenOut(), second.Partner, "it")
		if !strings.Contains(now, "it has 10m0s\n") || !strings.Contains(now, "it was given second last: 10m0s\n") {
			t.Errorf("durable, what is known to be given out is:\n%s", now)
		}

		base.crash()
		base.start()
		tm.connect("base", "alpha")
		tm.connect("base", "beta")
		pass(time.Minute)
		if got := strings.ReplaceAll(base.node.GivenOut(), second.Partner, "it"); !strings.Contains(got,
			"it has 10m0s\n") {
			t.Errorf("after a restart, what is known to be given out is:\n%s", got)
		}
	})
}

// Work of an instance counts as given out though whoever began it did not wait until that was
// durable.
func TestWorkCountsThoughNobodyWaitsForTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one")
		one := tm.p["one"]
		tm.profile("one", api.ProfileChange{Applications: &[]string{"saw"}})
		tm.add("one", job)
		one.hand.hold("work")
		one.disk.hold()
		ctx, giveUp := context.WithTimeout(t.Context(), time.Second)
		defer giveUp()
		if _, err := one.api.Start(ctx, api.StartRequest{Workflow: "job", Mechanism: "Sel-push"}); !errors.Is(err,
			context.DeadlineExceeded) {
			t.Fatalf("it was begun while the disk stood still: %v", err)
		}
		counts := func(when string) {
			t.Helper()
			if got := one.node.GivenOut(); !strings.Contains(got, "one has 10s\n") {
				t.Errorf("%s, what is known to be given out is:\n%s", when, got)
			}
		}
		synctest.Wait()
		counts("with the commit under way")
		one.disk.free()
		synctest.Wait()
		counts("durable")
		if n := one.hand.runs("work"); n != 1 {
			t.Errorf("work was started %d times", n)
		}
	})
}
