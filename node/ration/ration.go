// Package ration says how much each member may have a node do at will: so much at once,
// and again after a while. What exceeds a ration is not done; its owner counts that, and
// asks for it again later.
//
// Many goroutines may spend of one ration. It reads no clock, and remembers a bounded
// number of members.
//
// It imports workflow; node, node/files, node/jobs, node/library, node/records, node/users
// and node/worklists import it.
package ration

import (
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Ration is what may be spent: at most Burst at once, and one more each time that Each
// has passed.
type Ration struct {
	Burst int
	Each  time.Duration
}

// Budgets are what members have spent of a ration.
type Budgets struct {
	ration Ration
	mu     sync.Mutex // guards of
	of     map[workflow.PartnerID]spent
}

// spent is how much was spent at a moment (Awake).
type spent struct {
	much int
	at   time.Duration
}

// maxMembers is how many are remembered before those are forgotten that have spent
// nothing lately.
const maxMembers = 256

// New are the budgets of members that have spent nothing.
func New(r Ration) *Budgets { return &Budgets{ration: r, of: map[workflow.PartnerID]spent{}} }

// Spend reports whether a member may have so much done now, by the node's awake clock,
// and notes it.
func (b *Budgets) Spend(p workflow.PartnerID, much int, now time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.of[p]
	if back := int((now - s.at) / b.ration.Each); back > 0 {
		s = spent{max(s.much-back, 0), now}
	}
	if s.much+much > b.ration.Burst {
		return false
	}
	if len(b.of) >= maxMembers {
		for other, o := range b.of {
			if int((now-o.at)/b.ration.Each) >= o.much {
				delete(b.of, other)
			}
		}
	}
	b.of[p] = spent{s.much + much, s.at}
	return true
}
