package node_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// What is not acknowledged is sent again after a second, then after twice as
// long each time, at most every 30 s, with up to a quarter on top.
func TestUnacknowledgedIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		tm.add("one", chain)
		tm.f.losing(func(_, _ workflow.PartnerID, m *wire.Message) bool { return len(m.Facts)+len(m.Heads) > 0 })
		id := tm.begin("one", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "two"})
		pass(5 * time.Minute)
		var at []int
		for _, c := range tm.f.sent(hasFacts) {
			at = append(at, c.sent)
		}
		for len(at) > 1 && at[1]-at[0] < 900 { // a and its success, before anything is overdue
			at = at[1:]
		}
		if len(at) < 8 {
			t.Fatalf("sent at %v ms: too seldom", at)
		}
		want := time.Second
		for i := range at[1:] {
			pause := time.Duration(at[i+1]-at[i]) * time.Millisecond
			// It is looked at in steps of 200 ms.
			if low, high := want-200*time.Millisecond, want+want/4+400*time.Millisecond; pause < low || pause > high {
				t.Errorf("try %d came %v after the one before, want %v to %v (sent at %v ms)", i+2, pause, low, high,
					at)
			}
			want = min(2*want, 30*time.Second)
		}
		tm.f.losing(nil)
		tm.succeeds(id, 40*time.Second, "one", "two")
	})
}

// On reconnection what is owed is sent at once, whatever the pause had grown to.
func TestReconnectionSendsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		tm.add("one", chain)
		tm.p["one"].hand.hold("a")
		id := tm.begin("one", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "two"})
		tm.f.losing(func(_, _ workflow.PartnerID, m *wire.Message) bool { return len(m.Facts)+len(m.Heads) > 0 })
		tm.p["one"].hand.letGo(t, "a")
		pass(90 * time.Second)
		tm.disconnect("one", "two")
		tm.f.losing(nil)
		pass(time.Minute)
		sent := len(tm.f.sent(hasFacts))
		pass(10 * time.Second)
		if n := len(tm.f.sent(hasFacts)) - sent; n > 0 {
			t.Errorf("%d frames were sent to a partner that is not connected", n)
		}
		tm.connect("one", "two")
		synctest.Wait()
		if s := tm.state("two", id); s != workflow.InstanceSucceeded {
			t.Errorf("after reconnecting, two has the instance %s; want it succeeded at once", s)
		}
		tm.succeeds(id, time.Second, "one", "two")
		tm.once(id, []string{"a", "b", "c"}, "one", "two")
	})
}

// Where nothing is to be said nothing is sent but signs of life.
func TestSilenceWhenAllIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three")
		tm.add("one", eleven)
		id := tm.begin("one", "eleven", acrossThree)
		tm.succeeds(id, time.Second, "one", "two", "three")
		pass(time.Minute)
		before := len(tm.f.sent(func(c carried) bool { return len(c.m.Facts)+len(c.m.Heads) > 0 }))
		pass(10 * time.Minute)
		if n := len(tm.f.sent(func(c carried) bool { return len(c.m.Facts)+len(c.m.Heads) > 0 })) - before; n > 0 {
			t.Errorf("%d frames about an instance that all have whole", n)
		}
	})
}

// Two partners that never meet hear of each other's work from the third.
func TestThirdPartiesFactsArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three")
		tm.add("one", chain)
		tm.disconnect("one", "three")
		synctest.Wait()
		id := tm.begin("one", "chain", map[string]string{"pa": "one", "pb": "three", "pc": "two"})
		tm.succeeds(id, 3*time.Minute, "one", "two", "three")
		pass(time.Minute)
		tm.once(id, []string{"a", "b", "c"}, "one", "two", "three")
	})
}

// A partner that was away gets, on contact, all that it missed, third parties'
// facts included, though their authors are away now.
func TestContactBringsWhatWasMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three")
		tm.add("one", chain)
		id := tm.begin("one", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "three"})
		_ = id
		tm.disconnect("one", "three")
		tm.disconnect("two", "three")
		synctest.Wait()
		tm.p["three"].hand.hold("c")
		second := tm.begin("one", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "three"})
		tm.p["one"].crash()
		tm.connect("two", "three")
		synctest.Wait()
		tm.p["three"].hand.letGo(t, "c")
		synctest.Wait()
		if s := tm.state("three", second); s != workflow.InstanceSucceeded {
			t.Errorf("three has the second instance %q, want it succeeded with what two had", s)
		}
		tm.p["one"].start()
		tm.connect("one", "three")
		tm.connect("one", "two")
		tm.succeeds(second, time.Second, "one", "two", "three")
		tm.once(second, []string{"a", "b", "c"}, "one", "two", "three")
	})
}

// A node that was brought in by a verdict reports to a partner that has not
// heard of the verdict yet, and cannot hear of it from its author.
func TestNewcomerBringsTheVerdictItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three")
		tm.add("one", `
workflow: replaced
tasks:
  a: {application: fail, on-failure: {contingency: instead}}
  instead: {needs: [is-three]}
  b: {after: a}
partitions: {pa: [a], pb: [b]}
`)
		tm.p["one"].hand.hold("a")
		id := tm.begin("one", "replaced", map[string]string{"pa": "one", "pb": "two"})
		tm.disconnect("one", "two")
		synctest.Wait()
		tm.p["one"].hand.fail(t, "a")
		synctest.Wait()
		tm.p["one"].crash()
		pass(2 * time.Minute)
		if s := tm.task("two", id, "b"); s != workflow.Succeeded {
			t.Errorf("b is %s at two, though three did what replaces a\n%s\n%s", s, lines(tm.log("two", id)),
				lines(tm.log("three", id)))
		}
	})
}

// A member that takes no part in an instance can plant it nowhere, genuine as its facts are.
func TestInstanceFromWhoTakesNoPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three", "four")
		tm.add("one", chain)
		tm.begin("one", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "two"})
		genuine := tm.f.sent(hasFacts)[0].m
		frame, err := wire.Encode(genuine)
		if err != nil {
			t.Fatal(err)
		}
		four := tm.p["four"]
		four.node.OnFrame(tm.p["three"].id(), frame)
		synctest.Wait()
		if n := tm.counter("four", "refused.facts-from-no-participant"); n != 1 {
			t.Errorf("refused %d times, want once", n)
		}
		if f := tm.finding("four", "refused"); f.State != api.FindingWarning ||
			f.What != "of three: 1 × facts of instances in which it takes no part" {
			t.Errorf("doctor says %s %q, want a warning about three", f.State, f.What)
		}
		if list := tm.refused("four", "three"); len(list) != 1 || list[0].Times != 1 ||
			list[0].Reason != "facts-from-no-participant" {
			t.Errorf("the partner list says %+v was refused of three", list)
		}
		pass(time.Minute)
		if l, _ := four.api.Instances(t.Context(), true); len(l) > 0 {
			t.Errorf("four holds %v, want nothing", l)
		}
	})
}

// A member that takes part in an instance cannot plant it where no part of it is,
// genuine as its facts are: nobody would tell that node more, and it would take the
// room of the instance's initiator.
func TestInstanceInWhichANodeTakesNoPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "four")
		tm.add("one", chain)
		tm.begin("one", "chain", map[string]string{"pa": "one", "pb": "two", "pc": "two"})
		frame, err := wire.Encode(tm.f.sent(hasFacts)[0].m)
		if err != nil {
			t.Fatal(err)
		}
		four := tm.p["four"]
		four.node.OnFrame(tm.p["two"].id(), frame)
		synctest.Wait()
		if n := tm.counter("four", "refused.instance-of-others"); n != 1 {
			t.Errorf("refused %d times, want once", n)
		}
		if f := tm.finding("four", "refused"); f.What != "of two: 1 × instances in which this node takes no part" {
			t.Errorf("doctor says %q, want what two sent", f.What)
		}
		pass(time.Minute)
		if l, _ := four.api.Instances(t.Context(), true); len(l) > 0 {
			t.Errorf("four holds %v, want nothing", l)
		}
	})
}
