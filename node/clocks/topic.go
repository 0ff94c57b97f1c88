// Package clocks compares this node's wall clock with those of its partners, as they tell
// them on contact and when they were set, and finds whose is wrong.
//
// Promises: nothing is decided by them but that a clock which is wrong ends nobody's certificate for what the user has
// taken; they are for people. One partner, or a few, prove nothing against this clock: only what most say.
//
// What it needs of the rest of a node it names in small interfaces; nothing but the node
// puts it together.
//
// It imports membership/moment, membership/trust, node/wire and workflow; node and
// node/doctor import it.
package clocks

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Wall clocks that differ by more than these are worth a word. People read
// them, and certificates and invitations end by them; waits do not.
const (
	clockOff   = time.Minute
	clockWrong = trust.ClockSkew / 2
)

// lookEvery is how often a node looks whether its own clock was set.
const lookEvery = time.Minute

// born is when the machine started by a wall clock that says wall now: it moves
// only when somebody sets that clock.
func born(wall time.Time, now moment.Now) time.Time { return wall.Add(-now.Boot).Round(0) }

// Clock reads this node's clocks.
type Clock interface{ Now() moment.Now }

// Peers are the connected partners.
type Peers interface {
	UpPeers() []workflow.PartnerID
	Transmit(p workflow.PartnerID, m *wire.Message)
}

// Findings are what is told of a check: that all is well, that something is odd, or that
// it is wrong, and how to mend it.
type Findings interface {
	OK(check, format string, args ...any)
	Warn(check, what, mend string)
	Wrong(check, what, mend string)
}

// Surroundings are what this topic needs of the rest of a node.
type Surroundings struct {
	Clock Clock
	Peers Peers
	// Gone reports whether a partner was evicted or left for good: its clock says nothing any more.
	Gone func(workflow.PartnerID) bool
	// Label is what people call a partner in a sentence.
	Label func(workflow.PartnerID) string
	// Chain is this node's certificate.
	Chain func() trust.Chain
}

// Topic is the wall clocks of partners.
type Topic struct {
	in   Surroundings
	born time.Time // by the wall clock when the node started
	told time.Time // born, by the wall clock when it was told to all last; only Tick uses it

	mu sync.Mutex                       // guards of
	of map[workflow.PartnerID]time.Time // born, by the partners' wall clocks
}

// New begins with this node's clock as it is.
func New(in Surroundings) *Topic {
	now := in.Clock.Now()
	b := born(now.Wall, now)
	return &Topic{in: in, born: b, told: b, of: map[workflow.PartnerID]time.Time{}}
}

// Greet tells this node's wall clock.
func (k *Topic) Greet(_ workflow.PartnerID, m *wire.Message) {
	m.Wall = k.in.Clock.Now().Wall.UnixMilli()
}

// Tick tells all again once this wall clock was set: what they heard on contact may be from before a time service set it,
// and would prove theirs wrong.
func (k *Topic) Tick(now moment.Now) time.Duration {
	b := born(now.Wall, now)
	if b.Sub(k.told).Abs() < clockOff {
		return lookEvery
	}
	k.told = b
	for _, p := range k.in.Peers.UpPeers() {
		k.in.Peers.Transmit(p, &wire.Message{Wall: now.Wall.UnixMilli()})
	}
	return lookEvery
}

// Take notes a partner's wall clock.
func (k *Topic) Take(from workflow.PartnerID, m *wire.Message) {
	ms := m.Wall
	if ms <= 0 || ms > wire.MaxWall {
		return // it has none, or none that anybody can show
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.of[from] = born(time.UnixMilli(ms), k.in.Clock.Now())
}

// ahead is how far this clock is ahead of that of each partner that told its
// own and is not gone.
func (k *Topic) ahead() map[workflow.PartnerID]time.Duration {
	now := k.in.Clock.Now()
	ours := born(now.Wall, now)
	k.mu.Lock()
	out := map[workflow.PartnerID]time.Duration{}
	for p, theirs := range k.of {
		out[p] = ours.Sub(theirs).Round(time.Second)
	}
	k.mu.Unlock()
	maps.DeleteFunc(out, func(p workflow.PartnerID, _ time.Duration) bool { return k.in.Gone(p) })
	return out
}

// AheadOf is how far this clock is ahead of a partner's, as that one told it last; 0: it did not since this
// node was started.
func (k *Topic) AheadOf(p workflow.PartnerID) time.Duration {
	now := k.in.Clock.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	theirs, told := k.of[p]
	if !told {
		return 0
	}
	return born(now.Wall, now).Sub(theirs)
}

// agreed finds how far this clock is ahead as most partners have it: ok is false if
// no more than half of them say about the same, or there is only one to ask.
func agreed(ahead map[workflow.PartnerID]time.Duration) (off time.Duration, ok bool) {
	all := slices.Sorted(maps.Values(ahead))
	if len(all) < 2 {
		return 0, false
	}
	need := len(all)/2 + 1
	for i := 0; i+need <= len(all); i++ {
		if some := all[i : i+need]; some[need-1]-some[0] < clockOff {
			return some[need/2], true
		}
	}
	return 0, false
}

// Wrong reports whether this clock is wrong: most partners say so, or by it this node's own certificate, which is renewed
// long before it ends, is not valid yet or has ended.
func (k *Topic) Wrong() bool {
	off, most := agreed(k.ahead())
	notYet, ended := k.certificate()
	return most && off.Abs() >= clockWrong || notYet || ended
}

// certificate reports whether by this clock this node's own certificate is not valid yet, or has ended.
func (k *Topic) certificate() (notYet, ended bool) {
	now, skew, leaf := trust.WallOf(k.in.Clock.Now().Wall), trust.Wall(trust.ClockSkew/time.Second), k.in.Chain().Leaf()
	return now+skew < leaf.NotBefore, now-skew > leaf.NotAfter
}

// Check compares this clock with the partners'. One of them, or a few, prove
// nothing against it: only what most say.
func (k *Topic) Check(d Findings) {
	now := k.in.Clock.Now()
	set := born(now.Wall, now).Sub(k.born).Round(time.Second)
	ahead := k.ahead()
	off, most := agreed(ahead)
	what := fmt.Sprintf("this clock is %s %s the partners'", off.Abs(), aheadOrBehind(off))
	odd := k.odd(ahead, off)
	notYet, _ := k.certificate()
	switch {
	case most && off.Abs() >= clockWrong:
		d.Wrong("clock", what, setClock)
	case notYet:
		d.Wrong("clock",
			fmt.Sprintf("this clock says %s, before this node's certificate was made",
				now.Wall.UTC().Format(time.DateOnly)),
			setClock)
	case most && off.Abs() >= clockOff:
		d.Warn("clock", what, "set it: times shown to people would mislead them")
	case set.Abs() >= clockOff:
		d.Warn("clock",
			fmt.Sprintf("this clock was set %s %s while the node ran", set.Abs(), forwardOrBack(set)),
			"times that it wrote before are off by that; waits do not depend on it. "+
				"If it jumps by itself, see to the machine's time service")
	case len(ahead) == 0:
		d.OK("clock", "no partner to compare it with yet")
	case len(odd) > 0 && most:
		d.Warn("clock", "differs from this one and most others: the clock of "+strings.Join(odd, ", "),
			"have it set there")
	case len(odd) > 0:
		d.Warn("clock",
			"differs from this one: the clock of "+strings.Join(odd, ", "),
			"too few partners agree to say whose is wrong: compare this one with another source, and set whichever is off")
	case len(ahead) == 1:
		d.OK("clock", "agrees with 1 partner")
	default:
		d.OK("clock", "agrees with %d partners", len(ahead))
	}
}

const setClock = "set it: at a day's difference certificates count as expired, or as not valid yet"

// odd names the partners whose clocks differ from this one, as most have it, and says
// by how much; at most three.
func (k *Topic) odd(ahead map[workflow.PartnerID]time.Duration, off time.Duration) []string {
	var out []string
	for _, p := range slices.Sorted(maps.Keys(ahead)) {
		if by := ahead[p] - off; by.Abs() >= clockOff {
			out = append(out, fmt.Sprintf("%s (%s %s this one)", k.in.Label(p), by.Abs(), aheadOrBehind(-by)))
		}
	}
	if len(out) > 3 {
		out = append(out[:3], fmt.Sprintf("%d more", len(out)-3))
	}
	return out
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
