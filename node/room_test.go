package node_test

import (
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

// longThenLast is a workflow of so many tasks one after the other, and a last one in a
// partition of its own.
func longThenLast(tasks int) string {
	var b, names strings.Builder
	b.WriteString("workflow: long\ntasks:\n  t000: {}\n")
	names.WriteString("t000")
	for i := 1; i < tasks; i++ {
		fmt.Fprintf(&b, "  t%03d: {after: t%03d}\n", i, i-1)
		fmt.Fprintf(&names, ", t%03d", i)
	}
	fmt.Fprintf(&b, "  last: {after: t%03d}\npartitions: {long: [%s], rest: [last]}\n", tasks-1, names.String())
	return b.String()
}

// beginMany begins so many instances of longThenLast at a partner, without a pause.
func (tm *team) beginMany(at string, n int, assign map[string]string) (ids []string) {
	tm.t.Helper()
	for range n {
		st, err := tm.p[at].api.Start(tm.t.Context(), api.StartRequest{Workflow: "long", Assign: assign})
		if err != nil {
			tm.t.Fatal(err)
		}
		ids = append(ids, st.ID)
	}
	return ids
}

// Instances that one partner begins at once, more than there is room for, all end: those that
// were taken in have room to go on, however evenly they grow.
func TestInstancesBegunAtOnceAllEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) { c.Limits.Memory = 2 << 20 }, "one", "two", "three")
		tm.add("one", longThenLast(36))
		pass(time.Minute)
		tm.p["three"].hand.work(time.Second) // in turn, a task of each
		ids := tm.beginMany("two", 10, map[string]string{"long": "three", "rest": "one"})
		pass(30 * time.Minute)
		for _, r := range tm.refused("one", "three") {
			// What three sends upon a genesis before it hears that one had no room for that
			// counts as facts-not-taken: these are no facts of an instance that one took in.
			if r.Reason != "facts-not-taken" {
				t.Errorf("one refused facts of three in instances that it took in: %+v", r)
			}
		}
		for _, id := range ids {
			for _, at := range []string{"one", "two", "three"} {
				if st := tm.state(at, id); st != workflow.InstanceSucceeded {
					t.Errorf("%s at %s is %q", id[:8], at, st)
				}
			}
		}
	})
}

// What one member runs in half a minute need not fit in its share at once: when room gets
// short, what has ended is compared before its turn, and leaves the memory.
func TestEndedInstancesMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) { c.Limits.Memory = 4 << 20 }, "one", "two", "three")
		tm.add("one", longThenLast(2))
		pass(time.Minute)
		tm.p["one"].hand.work(10 * time.Millisecond)
		tm.p["three"].hand.work(10 * time.Millisecond)
		for range 100 {
			tm.beginMany("two", 1, map[string]string{"long": "three", "rest": "one"})
			pass(30 * time.Millisecond)
		}
		for _, at := range []string{"one", "three"} {
			if list := tm.refused(at, "two"); len(list) > 0 {
				t.Errorf("%s refused of two: %+v", at, list)
			}
		}
	})
}

// twoLong is a workflow of so many tasks for each of two holders, one after the other.
func twoLong(tasks int) string {
	var b strings.Builder
	b.WriteString("workflow: long\ntasks:\n")
	names := map[string][]string{}
	last := ""
	for _, part := range []string{"first", "second"} {
		for i := range tasks {
			name := fmt.Sprintf("%s%02d", part, i)
			fmt.Fprintf(&b, "  %s: {%s}\n", name, last)
			names[part], last = append(names[part], name), "after: "+name
		}
	}
	fmt.Fprintf(&b, "partitions: {first: [%s], second: [%s]}\n", strings.Join(names["first"], ", "),
		strings.Join(names["second"], ", "))
	return b.String()
}

// Two partners that each heard of other instances first, as many as there is room for, do not
// wait for each other for ever: each has room for the oldest that it lacks.
func TestPartnersFullOfWhatTheOtherLacks(t *testing.T) {
	for _, c := range []struct {
		name  string
		tasks int // so many that there is room for two instances of one member
		limit func(*configs.Config)
	}{
		{"bytes", 24, func(c *configs.Config) { c.Limits.Memory = 2 << 20 }},
		{"instances", 2, func(c *configs.Config) { c.Limits.Instances = 8 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tm := newTeamOf(t, c.limit, "one", "two", "three")
				tm.add("one", twoLong(c.tasks))
				pass(time.Minute)
				three, one := tm.p["three"].id(), tm.p["one"].id()
				begin := func(keepsFrom func(to workflow.PartnerID, id string) bool) []string {
					tm.f.losing(func(_, to workflow.PartnerID, m *wire.Message) bool {
						return slices.ContainsFunc(m.Facts,
							func(f wire.Facts) bool { return keepsFrom(to, f.Instance.String()) })
					})
					return tm.beginMany("two", 2, map[string]string{"first": "one", "second": "three"})
				}
				older := begin(func(to workflow.PartnerID, _ string) bool { return to == one })
				younger := begin(func(to workflow.PartnerID, id string) bool {
					return to == one && slices.Contains(older, id) || to == three && !slices.Contains(older, id)
				})
				if n := tm.running("three"); n != 2 || tm.state("one", younger[0]) != workflow.InstanceRunning {
					t.Fatalf("three has %d instances, one has %v", n, younger)
				}
				tm.f.losing(nil)
				pass(30 * time.Minute)
				for _, id := range slices.Concat(older, younger) {
					for _, at := range []string{"one", "two", "three"} {
						if st := tm.state(at, id); st != workflow.InstanceSucceeded {
							t.Errorf("%s at %s is %q", id[:8], at, st)
						}
					}
				}
			})
		})
	}
}

// What others pass on fills only a part of the room. The rest is for what the initiator says
// is next, which is sent again as soon as its turn comes; those that passed it on before hear
// that it is taken in now.
func TestInstanceIsTakenInOnItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) { c.Limits.Memory = 2 << 20 }, "one", "two", "three")
		tm.add("one", longThenLast(22)) // at one there is room for three instances of one member, at three for seven
		pass(time.Minute)
		tm.p["three"].hand.hold("t000") // none of them ends
		tm.disconnect("one", "two")
		ids := tm.beginMany("two", 4, map[string]string{"long": "three", "rest": "one"})
		pass(time.Minute)
		lacks := func() []string {
			return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return tm.state("one", id) != "" })
		}
		before := lacks()
		if len(before) != 3 {
			t.Fatalf("of what three passes on one lacks %v", before)
		}
		refused := func(id string) bool { return tm.incident("three", id, "one has not taken the instance in") }
		for _, id := range before {
			if !refused(id) {
				t.Fatalf("three was not told that one has no room for %s", id)
			}
		}
		tm.connect("one", "two")
		pass(time.Second)
		if after := lacks(); !slices.Equal(after, before[2:]) {
			t.Errorf("one lacks %v, and lacked %v before: want it to have the first two of those", after, before)
		}
		if refused(before[0]) || refused(before[1]) || !refused(before[2]) {
			t.Error("three is to hear that one has the first two, and only those")
		}
	})
}

// What is kept for instances whose turn it is keeps nobody's only instance out: one that needs
// more than half of its initiator's share comes from anybody where nothing else of that one is.
func TestLargeInstanceIsTakenInFromAnybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) { c.Limits.Memory = 2 << 20 }, "one", "two", "three")
		tm.add("one", longThenLast(50))
		pass(time.Minute)
		tm.p["three"].hand.hold("t000")
		tm.disconnect("one", "two")
		ids := tm.beginMany("two", 1, map[string]string{"long": "three", "rest": "one"})
		pass(time.Minute)
		if st := tm.state("one", ids[0]); st != workflow.InstanceRunning {
			t.Errorf("what three passes on is %q at one, want it taken in", st)
		}
	})
}

// What is expected in instances is taken from the share of the partner that began them: a
// liar that has another named as the holder of very many tasks takes nothing of that one's room.
func TestExpectedIsPaidByInitiator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) { c.Limits.Memory = 2 << 20 }, "one", "two", "three", "mal")
		tm.add("one", longThenLast(36))
		tm.add("one", parcel)
		pass(time.Minute)
		tm.p["three"].hand.hold("t000")
		tm.beginMany("mal", 10, map[string]string{"long": "three", "rest": "one"}) // none of them ever ends
		pass(time.Minute)
		if n, l := tm.running("one"), tm.refused("one", "mal"); n != 2 || len(l) == 0 ||
			l[0].Reason != "bytes-over-share" {
			t.Errorf("one runs %d instances of mal, want as many as have room with what three is to write, 2; refused is %+v", n, l)
		}
		for _, by := range []string{"two", "three"} {
			for range 3 {
				id := tm.begin(by, "parcel", map[string]string{"pa": "three", "pb": "one"})
				tm.succeeds(id, time.Minute, by, "one", "three")
			}
		}
	})
}

// shorter is longThenLast under a name of its own.
func shorter(tasks int) string {
	return strings.Replace(longThenLast(tasks), "workflow: long", "workflow: shorter", 1)
}

// shortOf has one partner have little memory: a member's share is 512 KiB.
func shortOf(name string) func(*configs.Config) {
	return func(c *configs.Config) {
		if slices.Contains(c.Capabilities, workflow.Capability("is-"+name)) {
			c.Limits.Memory = 2 << 20
		}
	}
}

// An instance that needs more than a partner ever has for one is refused there in words, and
// keeps nobody's turn: those that began later use all of the share.
func TestInstanceThatNeverFitsHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, shortOf("one"), "one", "two", "three")
		tm.add("two", longThenLast(150))
		tm.add("two", shorter(22)) // one has room for three, for one of them out of turn
		pass(time.Minute)
		tm.p["three"].hand.hold("t000")
		at := map[string]string{"long": "three", "rest": "one"}
		large := tm.begin("two", "long", at)
		for range 4 {
			tm.begin("two", "shorter", at)
		}
		pass(20 * time.Minute)
		if n := tm.running("one"); n != 3 || tm.state("one", large) != "" {
			t.Errorf("one runs %d instances, want as many as there is room for, 3; the large one is %q", n,
				tm.state("one", large))
		}
		if !tm.incident("two", large, "one has not taken the instance in: it is larger than that node takes") {
			t.Error("people are not told that the instance is too large for one")
		}
	})
}

// An instance of which a partner says nothing keeps nobody's turn there for long.
func TestLineGoesOnPastSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, shortOf("one"), "one", "two", "three")
		tm.add("one", longThenLast(22)) // one has room for three, for one of them out of turn
		pass(time.Minute)
		tm.p["three"].hand.hold("t000")
		at, one := map[string]string{"long": "three", "rest": "one"}, tm.p["one"].id()
		tm.f.losing(func(_, to workflow.PartnerID, m *wire.Message) bool { return to == one && len(m.Facts) > 0 })
		unheard := tm.begin("two", "long", at)
		tm.f.losing(func(_, to workflow.PartnerID, m *wire.Message) bool {
			return to == one && slices.ContainsFunc(m.Facts,
				func(f wire.Facts) bool { return f.Instance.String() == unheard })
		})
		ids := tm.beginMany("two", 3, at)
		pass(20 * time.Minute)
		if n := tm.running("one"); n != 3 || tm.state("one", unheard) != "" {
			t.Errorf("one runs %d instances, want as many as there is room for, 3", n)
		}
		tm.f.losing(nil)
		three := tm.p["three"]
		three.hand.letAllGo()
		three.crash()
		three.start() // and begins again what it ran
		tm.connect("one", "three")
		tm.connect("two", "three")
		for _, id := range append(ids, unheard) {
			tm.succeeds(id, 30*time.Minute, "one", "two", "three")
		}
	})
}

// An instance that with all that is expected in it would need more than the part that is kept
// has room on its turn all the same, beside those that fill the other half.
func TestLargeInstanceHasRoomOnItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, shortOf("one"), "one", "two", "three")
		tm.add("two", longThenLast(50))
		tm.add("two", shorter(10))
		pass(time.Minute)
		tm.p["three"].hand.hold("t000")
		at := map[string]string{"long": "three", "rest": "one"}
		for range 3 {
			tm.begin("two", "shorter", at)
		}
		large := tm.begin("two", "long", at)
		pass(time.Minute)
		if st := tm.state("one", large); tm.running("one") != 4 || st != workflow.InstanceRunning {
			t.Errorf("one runs %d instances, the large one is %q; want it to have come in beside three",
				tm.running("one"), st)
		}
	})
}

// Whose turn it is does not change with a restart, though the clock was set back before the
// second of two instances began.
func TestTurnIsTheSameAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := clockAhead(0)
		tm := newTeamWith(t, nil, clock.on, "one", "two")
		tm.add("one", longThenLast(2))
		pass(time.Minute)
		tm.p["two"].hand.hold("t000")
		tm.disconnect("one", "two")
		at := map[string]string{"long": "two", "rest": "one"}
		first := tm.begin("two", "long", at)
		pass(time.Second)
		clock.set(-2 * time.Hour)
		tm.begin("two", "long", at)
		pass(time.Second)
		tm.p["two"].crash()
		tm.p["two"].start()
		tm.connect("one", "two")
		pass(time.Minute)
		var next []string
		for _, c := range tm.f.sent(func(c carried) bool { return c.to == tm.p["one"].id() }) {
			for _, f := range c.m.Facts {
				if f.Next {
					next = append(next, f.Instance.String())
				}
			}
		}
		if n := tm.running("one"); n != 2 || len(next) == 0 || next[0] != first {
			t.Errorf("one runs %d of 2 instances; next were %v, want the one that began first, %s", n, next, first)
		}
	})
}
