// Package roster keeps the partner list: who is here, since when, and what each says of
// itself. It passes on what changes, gives and watches for signs of life, and asks others
// of whom it does not hear.
//
// Promises: what is known of a partner outlives a restart; whoever is silent for its
// connection time expires, on all nodes at the same time, as far as they hear of the same.
// What is heard of a partner through others counts from when it said so. A [List] is asked
// by many goroutines at once; while it holds its lock it asks nobody but who is evicted.
//
// What it needs of the rest of a node it names in small interfaces; nothing but the node
// puts it together.
//
// It imports membership, membership/moment, membership/trust, node/api, node/store/kv,
// node/wire and workflow; node imports it.
package roster

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Prefix is the first byte of the keys under which partners are stored, by their IDs.
const Prefix = 'p'

// Store keeps the partner list.
type Store interface {
	Commit(writes []kv.Write, done func(error))
	CommitWait(writes []kv.Write) error
	Scan(prefix []byte, fn func(key, value []byte) error) error
}

// Clock reads this node's clocks.
type Clock interface{ Now() moment.Now }

// Whose says whose list it is, and what it needs of the rest of a node.
type Whose struct {
	Self    workflow.PartnerID
	Mesh    trust.Mesh
	Store   Store
	Clock   Clock
	Evicted trust.Evictions
	// Load is that of this node.
	Load func() membership.PerMille
	// Changed is told of every event of the list, without its lock held.
	Changed func(membership.Event, membership.Partner)
}

// List are the partners that are here. It may be used by several goroutines.
type List struct {
	of Whose

	mu      sync.Mutex // guards what follows
	list    *membership.List
	hearsay map[workflow.PartnerID]*hearsay
	// missed are authors of facts that were put off, since they are not on the list; maxMissed at most.
	missed map[workflow.PartnerID]bool
	// unkept are partners of whom the newest could not be stored, by ID: the disk was full.
	unkept sync.Map
}

// Load reads what is stored. welcome is what joining brought.
func Load(of Whose, welcome []membership.Record) (*List, error) {
	l := &List{
		of: of, list: membership.NewList(of.Mesh, of.Self, of.Evicted), hearsay: map[workflow.PartnerID]*hearsay{},
	}
	now := of.Clock.Now()
	err := of.Store.Scan([]byte{Prefix}, func(_, value []byte) error {
		st, err := membership.DecodeStored(value)
		if err == nil && st.Record.Partner != of.Self {
			l.list.Restore(st, now)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("the stored partner list cannot be read: %w", err)
	}
	for _, r := range welcome {
		// What the welcome brought may be outdated or gone by now; then it is passed
		// over. Its age is not known: like stored partners, they are not here until
		// heard.
		if _, known := l.list.Get(r.Partner); !known {
			if _, err := l.list.Apply(r, 0, now); err != nil {
				continue
			}
			l.list.Hint(r.Partner, false, now)
		}
	}
	l.list.Gap(now)
	return l, nil
}

func key(p workflow.PartnerID) []byte { return append([]byte{Prefix}, p...) }

// Publish puts this node's own record on the list.
func (l *List) Publish(own membership.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.list.Publish(own, l.of.Clock.Now())
	return err
}

// takePulse takes in a pulse over a peer's own connection.
func (l *List) takePulse(who workflow.PartnerID, b *wire.Pulse) error {
	_, err := l.update(who, func(now moment.Now) ([]membership.Event, error) {
		return l.list.Pulse(who, b.Record, b.Load, now)
	})
	return err
}

// apply takes in a record of that age from a peer. fresh reports whether it was new
// here, so that it should be passed on.
func (l *List) apply(r membership.Record, age time.Duration) (fresh bool, err error) {
	return l.update(r.Partner, func(now moment.Now) ([]membership.Event, error) { return l.list.Apply(r, age, now) })
}

// maxMissed bounds the authors that are missed: what is beyond is put off, and missed again.
const maxMissed = 64

// miss notes that facts of somebody who is not on the list were put off.
func (l *List) miss(who workflow.PartnerID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.missed == nil || len(l.missed) >= maxMissed {
		l.missed = map[workflow.PartnerID]bool{}
	}
	l.missed[who] = true
}

// misses reports whether facts of somebody were put off.
func (l *List) misses(who workflow.PartnerID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.missed[who]
}

// recall takes in the record of somebody who is missed, and is a member no more.
func (l *List) recall(r membership.Record) error {
	_, err := l.update(r.Partner, func(now moment.Now) ([]membership.Event, error) {
		delete(l.missed, r.Partner)
		return l.list.Recall(r, now)
	})
	return err
}

// takeBeat takes in a heartbeat of that age from a peer.
func (l *List) takeBeat(b membership.Beat, age time.Duration) (fresh bool, err error) {
	return l.update(b.Partner, func(now moment.Now) ([]membership.Event, error) { return l.list.Beat(b, age, now) })
}

// update changes what is known of a partner by fn, stores it, and tells of the events.
func (l *List) update(
	who workflow.PartnerID, fn func(moment.Now) ([]membership.Event, error),
) (fresh bool, err error) {
	l.mu.Lock()
	before, _ := l.list.Stored(who)
	events, err := fn(l.of.Clock.Now())
	after, ok := l.list.Stored(who)
	l.mu.Unlock()
	if ok && (before.Record.Version != after.Record.Version || before.Expired != after.Expired) {
		val := membership.EncodeStored(after)
		if serr := l.of.Store.CommitWait([]kv.Write{{Key: key(who), Value: val}}); serr != nil {
			l.unkept.Store(who, true)
			err = errors.Join(err, serr)
		}
	}
	l.Announce(events)
	return err == nil && (before.Record.Version != after.Record.Version || before.Beat.Version != after.Beat.Version),
		err
}

// Announce tells of what was found, without the lock held.
func (l *List) Announce(events []membership.Event) {
	for _, e := range events {
		partner, _ := l.Get(e.Partner)
		l.of.Changed(e, partner)
	}
}

// Reach takes the carrier's word on whether a partner can be reached.
func (l *List) Reach(who workflow.PartnerID, reachable bool) {
	l.mu.Lock()
	events := l.list.Hint(who, reachable, l.of.Clock.Now())
	l.mu.Unlock()
	l.Announce(events)
}

// Gap has everybody's silence count from now on: this node could not hear.
func (l *List) Gap() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list.Gap(l.of.Clock.Now())
}

// tick expires silent partners, and says after what time to call again.
func (l *List) tick() time.Duration {
	l.mu.Lock()
	now := l.of.Clock.Now()
	events, next, ok := l.list.Tick(now)
	l.keep(events)
	l.mu.Unlock()
	l.Announce(events)
	if !ok {
		return time.Minute
	}
	return max(next-now.Awake, 10*time.Millisecond)
}

// keep stores the partners of whom something has changed, and again those who could not be
// stored: else a partner that is gone for good would be given work after each restart, and one
// that came back would be gone once more. The caller holds l.mu.
func (l *List) keep(events []membership.Event) {
	var who []workflow.PartnerID
	for _, e := range events {
		who = append(who, e.Partner)
	}
	l.unkept.Range(func(id, _ any) bool {
		who = append(who, id.(workflow.PartnerID))
		return true
	})
	slices.Sort(who)
	for _, id := range slices.Compact(who) {
		l.unkept.Delete(id)
		st, listed := l.list.Stored(id)
		if !listed {
			continue
		}
		l.of.Store.Commit([]kv.Write{{Key: key(id), Value: membership.EncodeStored(st)}}, func(err error) {
			if err != nil {
				l.unkept.Store(id, true)
			}
		})
	}
}

// Get is what is known of a partner.
func (l *List) Get(id workflow.PartnerID) (membership.Partner, bool) {
	l.mu.Lock()
	x, ok := l.list.Get(id)
	l.mu.Unlock()
	l.weigh(&x)
	return x, ok
}

// Known reports whether somebody is on the partner list.
func (l *List) Known(id workflow.PartnerID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.list.Get(id)
	return ok
}

// All are all partners, this node among them.
func (l *List) All() []membership.Partner {
	l.mu.Lock()
	all := l.list.Partners()
	l.mu.Unlock()
	for i := range all {
		l.weigh(&all[i])
	}
	return all
}

// weigh enters this node's own load, which it tells others and hears from nobody.
func (l *List) weigh(x *membership.Partner) {
	if x.Record.Partner == l.of.Self {
		x.Load = l.of.Load()
	}
}

// digest and newer compare lists with a peer's.
func (l *List) digest() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return membership.EncodeDigest(l.list.Digest())
}

func (l *List) newer(digest []membership.Held) ([]membership.Record, []membership.Beat) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.list.Newer(digest)
}

// age is how long ago a partner told what is passed on of it.
func (l *List) age(id workflow.PartnerID) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return wire.Millis(l.list.Age(id, l.of.Clock.Now()))
}

// Name is what a partner is called where programs read it too: its label, or its whole ID
// if it is not on the list.
func (l *List) Name(id workflow.PartnerID) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.list.Get(id); !ok {
		return string(id)
	}
	return l.list.Label(id)
}

// Called is the name in a partner's certificate; empty if it is not on the list.
func (l *List) Called(id workflow.PartnerID) string {
	partner, _ := l.Get(id)
	return partner.Record.Name()
}

// Label is the name of a partner in a sentence: it tells partners of one name apart.
func (l *List) Label(id workflow.PartnerID) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.list.Label(id)
}

// Review looks again at everybody's certificates, after evictions were added.
func (l *List) Review() []membership.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.list.Review(l.of.Clock.Now())
}

// Find is the partner that a user names. The error is one of [membership.List.Resolve].
func (l *List) Find(ref string) (workflow.PartnerID, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.list.Resolve(ref)
}

// Namesake is another partner than p that has a name, or one that looks like it.
func (l *List) Namesake(name string, p workflow.PartnerID) (membership.Partner, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.list.Namesake(name, p)
}
