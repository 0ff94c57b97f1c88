package node

import (
	"fmt"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Wall clocks that differ by more than these are worth a word. People read
// them, and certificates and invitations end by them; waits do not.
const (
	clockOff   = time.Minute
	clockWrong = membership.ClockSkew / 2
)

// born is when the machine started by a wall clock that says wall now: it moves
// only when somebody sets that clock.
func born(wall time.Time, now membership.Now) time.Time { return wall.Add(-now.Boot).Round(0) }

// takeClock notes a partner's wall clock.
func (n *Node) takeClock(from workflow.PartnerID, ms int64) {
	if ms == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.clocks[from] = born(time.UnixMilli(ms), n.clock.Now())
}

// skew is how far this clock is ahead of the partners': the median.
func (n *Node) skew() (ahead time.Duration, partners int) {
	now := n.clock.Now()
	ours := born(now.Wall, now)
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []time.Duration
	for _, theirs := range n.clocks {
		all = append(all, ours.Sub(theirs).Round(time.Second))
	}
	if len(all) == 0 {
		return 0, 0
	}
	slices.Sort(all)
	return all[len(all)/2], len(all)
}

func (n *Node) checkClock(d *diagnosis) {
	now := n.clock.Now()
	set := born(now.Wall, now).Sub(n.born).Round(time.Second)
	off, partners := n.skew()
	what := fmt.Sprintf("this clock is %s %s the partners'", off.Abs(), aheadOrBehind(off))
	switch {
	case off.Abs() >= clockWrong:
		d.wrong("clock", what, "set it: at a day's difference certificates count as expired")
	case off.Abs() >= clockOff:
		d.warn("clock", what, "set it: times shown to people would mislead them")
	case set.Abs() >= clockOff:
		d.warn("clock", fmt.Sprintf("this clock was set %s %s while the node ran", set.Abs(), forwardOrBack(set)), "times that it wrote before are off by that; waits do not depend on it. If it jumps by itself, see to the machine's time service")
	case partners == 0:
		d.ok("clock", "no partner to compare it with yet")
	default:
		d.ok("clock", "agrees with %d partners", partners)
	}
}

func aheadOrBehind(d time.Duration) string {
	if d < 0 {
		return "behind"
	}
	return "ahead of"
}

func forwardOrBack(d time.Duration) string {
	if d < 0 {
		return "back"
	}
	return "forward"
}
