package node

import (
	"slices"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// ledger is the unfinished work that is known here, by who holds it: what new
// work is weighed against, beside the loads that partners publish. It follows
// from the instances in memory, and an assignment counts at once.
type ledger struct {
	// assigning is held while somebody is chosen and the choice is entered, so
	// that of two choices at once the second sees the first.
	assigning sync.Mutex

	mu       sync.Mutex // guards what follows
	entries  map[workflow.InstanceID]entry
	own      time.Duration // of this node's own
	partners map[workflow.PartnerID]inHand
	kinds    map[aptitude.TaskID]time.Duration
	told     membership.PerMille // the load that partners were last told
	asked    bool                // to tell it early
}

// entry is what one instance adds up to.
type entry struct {
	own      time.Duration
	holdings []choreo.Holding // of instances that a mechanism distributes
}

// inHand is what one partner holds.
type inHand struct {
	time  time.Duration
	share int // of its availability, in thousandths; it may exceed 1000
}

func newLedger() *ledger {
	return &ledger{entries: map[workflow.InstanceID]entry{}, partners: map[workflow.PartnerID]inHand{}, kinds: map[aptitude.TaskID]time.Duration{}}
}

// enter brings an instance's work up to date.
func (l *ledger) enter(m *choreo.Machine) {
	e := entry{own: m.InHand()}
	if m.Mechanism() != "" {
		e.holdings = m.Holdings()
	}
	l.set(m.Instance(), e)
}

// add enters work that was given just now, until the instance is entered again.
func (l *ledger) add(id workflow.InstanceID, h choreo.Holding) {
	l.mu.Lock()
	e := l.entries[id]
	l.mu.Unlock()
	e.holdings = append(slices.Clone(e.holdings), h)
	l.set(id, e)
}

// drop forgets an instance.
func (l *ledger) drop(id workflow.InstanceID) { l.set(id, entry{}) }

func (l *ledger) set(id workflow.InstanceID, e entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.entries[id]
	if was.own == e.own && slices.Equal(was.holdings, e.holdings) {
		return
	}
	l.count(was, -1)
	l.count(e, 1)
	if l.entries[id] = e; e.own == 0 && len(e.holdings) == 0 {
		delete(l.entries, id)
	}
}

func (l *ledger) count(e entry, sign int) {
	l.own += time.Duration(sign) * e.own
	for _, h := range e.holdings {
		p := l.partners[h.Partner]
		p.time += time.Duration(sign) * h.Time
		p.share += sign * int(h.Share)
		l.partners[h.Partner] = p
		l.kinds[h.Work] += time.Duration(sign) * h.Time
	}
}

// of is what a partner holds, as far as is known here.
func (l *ledger) of(p workflow.PartnerID) inHand {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.partners[p]
}

// holdings are what one instance's work is known to be.
func (l *ledger) holdings(id workflow.InstanceID) []choreo.Holding {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries[id].holdings
}

// inHand is the expected time of unfinished work by kind, in seconds.
func (l *ledger) inHand() map[aptitude.TaskID]float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make(map[aptitude.TaskID]float64, len(l.kinds))
	for k, d := range l.kinds {
		out[k] = d.Seconds()
	}
	return out
}

// halfBusy is the expected work in hand at which a partner is half busy.
const halfBusy = time.Hour

// busy is how busy so much expected work makes a partner: half by an hour of
// it, three quarters by three, never wholly.
func busy(d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(d) / float64(d+halfBusy)
}

// load is how busy this node is, any work at all counting.
func (l *ledger) load() membership.PerMille {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.loadNow()
}

// loadWithout is load as if this node had less to do by d.
func (l *ledger) loadWithout(d time.Duration) membership.PerMille {
	l.mu.Lock()
	defer l.mu.Unlock()
	return loadOf(l.own - d)
}

func (l *ledger) loadNow() membership.PerMille { return loadOf(l.own) }

func loadOf(own time.Duration) membership.PerMille {
	if own <= 0 {
		return 0
	}
	return membership.PerMille(max(1, busy(own)*1000))
}

// tell is load, for partners.
func (l *ledger) tell() membership.PerMille {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told, l.asked = l.loadNow(), false
	return l.told
}

// turn is how much the load must have changed to be told before it is due.
const turn = 100

// turned tells whether partners should hear of the load early.
func (l *ledger) turned() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.loadNow()
	return now >= l.told+turn || l.told >= now+turn
}

// turns is turned, once until it was told.
func (l *ledger) turns() bool {
	if !l.turned() {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	first := !l.asked
	l.asked = true
	return first
}
