package node_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// sleeper is the clock of a device that can be suspended.
type sleeper struct {
	bubbleClock
	slept *atomic.Int64
}

func (c sleeper) Now() moment.Now {
	now := c.bubbleClock.Now()
	now.Boot += time.Duration(c.slept.Load())
	return now
}

const emergency = `
workflow: emergency
tasks:
  a: {timeout: 1h}
  b: {when: failed("a"), time-to-wait: 30s}
  c: {when: succeeded("a") or succeeded("b")}
partitions:
  pa: [a, c]
  pb: [b]
`

// A device wakes up from suspend, its wait is over, and its disk cannot be written or
// read for a while. Then it judges as after any gap: if its partner is gone the
// emergency task starts, and if the partner has finished meanwhile it does not.
func TestGapThatEndsOnAFailingDisk(t *testing.T) {
	for _, gone := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			tm := newTeamOf(t, func(c *configs.Config) { c.ConnectionTime = 10 * time.Minute }, "one")
			one := tm.p["one"]
			var slept atomic.Int64
			two := tm.newcomer("two")
			two.fit = func(p *node.Parts) { p.Clock = sleeper{slept: &slept} }
			if err := tm.join(two, tm.invite("one", api.InviteRequest{})); err != nil {
				t.Fatal(err)
			}
			tm.p["two"] = two
			two.start()
			tm.connect("one", "two")
			synctest.Wait()
			tm.add("one", emergency)
			one.hand.hold("a")
			id := tm.begin("one", "emergency", map[string]string{"pa": "one", "pb": "two"})
			pass(2 * time.Second)

			broken := errors.New("input/output error")
			two.disk.failWith(broken)
			two.disk.blindWith(broken)
			slept.Add(int64(time.Minute))
			if gone {
				one.crash()
			} else {
				one.hand.letGo(t, "a")
			}
			pass(20 * time.Second)
			if n := two.hand.runs("b"); n != 0 {
				t.Fatalf("b was started %d times while two's disk failed", n)
			}
			two.disk.failWith(nil)
			two.disk.blindWith(nil)
			pass(45 * time.Second) // the longest pause between two attempts, and the grace
			want, state := 0, workflow.Skipped
			if gone {
				want, state = 1, workflow.Succeeded
			}
			if n := two.hand.runs("b"); n != want {
				t.Errorf("partner gone: %v: b was started %d times, want %d\n%v", gone, n, want, tm.log("two", id))
			}
			if s := tm.task("two", id, "b"); s != state {
				t.Errorf("partner gone: %v: b is %s, want %s", gone, s, state)
			}
			if gone {
				one.start()
			}
		})
	}
}
