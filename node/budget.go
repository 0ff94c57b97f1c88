package node

import (
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// What a member can have this node do at will is rationed by member: reading
// definitions, answering greetings, and reading ended instances that are not in memory
// any more. What exceeds the ration is not done; it is
// counted, and this node asks for it again later.

// ration is what may be spent: at most burst at once, and each again after a while.
type ration struct {
	burst int
	each  time.Duration // for one more
}

var (
	// readingRation is in bytes of definitions: 4 MiB at once, and one every minute.
	readingRation = ration{4 << 20, time.Minute / (1 << 20)}
	// greetingRation is in greetings that are answered.
	greetingRation = ration{8, 10 * time.Second}
	// comparingRation is in ended instances, and in facts of them by comparingFacts.
	comparingRation = ration{4 * maxCompared, 100 * time.Millisecond}
)

// budgets are what members have spent.
type budgets struct {
	ration ration
	mu     sync.Mutex // guards of
	of     map[workflow.PartnerID]spent
}

// spent is how much was spent at a moment (Awake).
type spent struct {
	much int
	at   time.Duration
}

func newBudgets(r ration) *budgets { return &budgets{ration: r, of: map[workflow.PartnerID]spent{}} }

// spend reports whether a member may have so much done now, and notes it.
func (b *budgets) spend(p workflow.PartnerID, much int, now time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.of[p]
	if back := int((now - s.at) / b.ration.each); back > 0 {
		s = spent{max(s.much-back, 0), now}
	}
	if s.much+much > b.ration.burst {
		return false
	}
	if len(b.of) >= maxRefused {
		for other, o := range b.of { // those that have spent nothing lately
			if int((now-o.at)/b.ration.each) >= o.much {
				delete(b.of, other)
			}
		}
	}
	b.of[p] = spent{s.much + much, s.at}
	return true
}

// comparingFacts is how many facts of an ended instance are one more to be paid.
const comparingFacts = 64
