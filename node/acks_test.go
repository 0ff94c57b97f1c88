package node_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/wire"
)

// pingPong is a chain of n tasks that partners one and two do by turns, each in a partition of its own.
func pingPong(n int) (source string, assign map[string]string) {
	var tasks, partitions strings.Builder
	assign = map[string]string{}
	for i := range n {
		fmt.Fprintf(&tasks, "  t%d: {", i)
		if i > 0 {
			fmt.Fprintf(&tasks, "after: t%d", i-1)
		}
		tasks.WriteString("}\n")
		fmt.Fprintf(&partitions, "  p%d: [t%d]\n", i, i)
		assign[fmt.Sprintf("p%d", i)] = []string{"one", "two"}[i%2]
	}
	return "workflow: ping-pong\ntasks:\n" + tasks.String() + "partitions:\n" + partitions.String(), assign
}

// acknowledgements are those that a partner has sent.
func (tm *team) acknowledgements(from string) int {
	return len(tm.f.sent(func(c carried) bool {
		return c.from == tm.p[from].id() && slices.ContainsFunc(c.m.Heads,
			func(h wire.Heads) bool { return h.Mode == wire.Acknowledge })
	}))
}

// Where work goes to and fro, the facts of each say what it has of the other's.
func TestFactsAcknowledge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const tasks, most = 30, 3 // that the instance is here, that it has ended, and once at a turn of the clock
		tm := newTeam(t, "one", "two")
		source, assign := pingPong(tasks)
		tm.add("one", source)
		id := tm.begin("one", "ping-pong", assign)
		tm.succeeds(id, time.Minute, "one", "two")
		pass(time.Second)
		for _, p := range []string{"one", "two"} {
			if n := tm.acknowledgements(p); n > most {
				t.Errorf("%s acknowledged %d times what its facts say, want at most %d", p, n, most)
			}
			if n := tm.counter(p, "resent"); n > 0 {
				t.Errorf("%s sent %d times again what was acknowledged", p, n)
			}
		}
	})
}

// saidHeads counts the messages in which a partner has said what it has of an instance, for whatever reason.
func (tm *team) saidHeads(from string) int {
	return len(tm.f.sent(func(c carried) bool { return c.from == tm.p[from].id() && len(c.m.Heads) > 0 }))
}

// Where nothing is written that would say it, an acknowledgement comes a little later, and before a node goes down.
func TestAnAcknowledgementWaitsALittle(t *testing.T) {
	for _, goes := range []bool{false, true} {
		t.Run(fmt.Sprintf("two goes down: %v", goes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tm := newTeam(t, "one", "two")
				tm.add("one", `
workflow: joined
tasks:
  a: {}
  b: {}
  c: {after: [a, b]}
partitions:
  before: [a, b]
  after: [c]
`)
				one, two := tm.p["one"], tm.p["two"]
				one.hand.hold("a", "b")
				tm.begin("one", "joined", map[string]string{"before": "one", "after": "two"})
				pass(time.Second)
				before, told := tm.acknowledgements("two"), tm.saidHeads("two")
				one.hand.letGo(t, "a")
				synctest.Wait()
				if n := tm.acknowledgements("two"); n != before {
					t.Errorf("two acknowledged at once, %d times", n-before)
				}
				if goes {
					two.leave()
				} else {
					pass(150 * time.Millisecond)
				}
				// They compare at a moment of their own, which says it as well.
				if n := tm.acknowledgements("two"); n > before+1 || tm.saidHeads("two") == told {
					t.Errorf("two acknowledged %d times, want once", n-before)
				}
			})
		})
	}
}

// What has ended leaves the memory of all when each has heard of the others that they know it, without being asked.
func TestAllHearOfTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three")
		tm.add("one", eleven)
		id := tm.begin("one", "eleven", acrossThree)
		tm.succeeds(id, time.Second, "one", "two", "three")
		pass(200 * time.Millisecond)
		asks := tm.f.sent(func(c carried) bool {
			return slices.ContainsFunc(c.m.Heads, func(h wire.Heads) bool { return h.Mode == wire.Ask && len(h.Heads) > 0 })
		})
		if len(asks) > 0 {
			t.Errorf("%d questions were asked", len(asks))
		}
		for _, p := range []string{"one", "two", "three"} {
			tm.p[p].disk.searched()
			if tm.state(p, id); tm.p[p].disk.searched() == 0 {
				t.Errorf("%s keeps it in memory", p)
			}
		}
	})
}
