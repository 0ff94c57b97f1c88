package node

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Instances hold room at the partners that took them in until they end, and they end only
// when all that take part have them. So two partners that are full, each with instances that
// the other lacks, would wait for each other for ever. Hence a part of a member's room is kept
// at each node for those of its instances whose turn it is there (keptOf): the oldest of those
// that the node lacks. Their initiator knows which that is, and says so (wire.Facts.Next).
//
// With that the oldest instance that somebody lacks has room in the end. What was taken in on
// its turn before it is older, so all have that, and it ends; what was taken in out of turn
// leaves the part that is kept; and none needs more than that part: what would is refused for
// good, in words (wire.RefusedLarge). Of a share of instances that is one nothing can be kept.
//
// This is about what one member begins, while that one is in reach (what others pass on comes
// out of turn), and about partners that take it. What a partner refuses for another reason
// than want of room, or says nothing of, is passed over there, so that the line goes on; its
// turn comes again when it is sent after the usual pause, or as soon as the partner says a word
// of it. Meanwhile it keeps the room that others gave it. A partner that refuses without need
// delays its own copy, and the next in its line.

// keptOf is how much of a member's share of a limit is kept for instances whose turn it is.
func keptOf[T int | int64](share T) T { return share / 2 }

// lineup is, for each partner, the instances that this node began and that the partner is not
// known to have.
type lineup struct {
	mu     sync.Mutex // guards what follows
	last   int64      // when the youngest of them began
	places map[workflow.InstanceID]place
	lines  map[workflow.PartnerID]*line
}

// place orders the instances of this node in the same way for all partners, and after a
// restart as before (summary.Began).
type place struct {
	began int64 // ms
	id    workflow.InstanceID
}

func (p place) compare(o place) int {
	return cmp.Or(cmp.Compare(p.began, o.began), p.id.Compare(o.id))
}

// line is what one partner lacks.
type line struct {
	order  []place // of all that are not passed over; some of them it does not lack any more
	sorted bool    // the oldest is first
	lacks  map[workflow.InstanceID]*lack
}

// lack is how it stands with an instance that a partner lacks.
type lack struct {
	refused bool          // for want of room, since it was last called
	asked   bool          // it was sent, and the partner has said nothing of it
	since   time.Duration // Awake, when it was sent first since the partner's last word
	passed  bool          // the line goes on without it until the partner says a word of it
}

// silentFor is for how long a partner may say nothing of an instance whose turn it is. Until
// then it was sent again five times and more.
const silentFor = 2 * time.Minute

// call is that an instance is to be sent again to a partner: its turn has come there.
type call struct {
	to workflow.PartnerID
	id workflow.InstanceID
}

func newLineup() *lineup {
	return &lineup{places: map[workflow.InstanceID]place{}, lines: map[workflow.PartnerID]*line{}}
}

// begins is the place in time of an instance that begins now: behind all others, whatever was
// done to the clock meanwhile.
func (l *lineup) begins(at int64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = max(at, l.last+1)
	return l.last
}

// put puts an instance in its place, at those that are to have it. It may be that all have it.
func (l *lineup) put(id workflow.InstanceID, began int64, partners []workflow.PartnerID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.places[id]; !known {
		l.places[id], l.last = place{began, id}, max(l.last, began)
	}
	for _, p := range partners {
		l.join(p, l.places[id])
	}
}

// join puts an instance in its place in the line of a partner. The caller holds l.mu.
func (l *lineup) join(p workflow.PartnerID, x place) *line {
	q := l.lines[p]
	if q == nil {
		q = &line{sorted: true, lacks: map[workflow.InstanceID]*lack{}}
		l.lines[p] = q
	}
	if q.lacks[x.id] == nil {
		q.lacks[x.id] = &lack{}
		q.add(x)
	}
	return q
}

func (q *line) add(x place) {
	q.sorted = q.sorted && (len(q.order) == 0 || q.order[len(q.order)-1].compare(x) <= 0)
	q.order = append(q.order, x)
}

// sort puts the oldest first.
func (q *line) sort() {
	if !q.sorted {
		slices.SortFunc(q.order, place.compare)
		q.sorted = true
	}
}

// first is the instance whose turn it is; false: there is none.
func (q *line) first() (workflow.InstanceID, bool) {
	q.sort()
	for len(q.order) > 0 {
		id := q.order[0].id
		if k := q.lacks[id]; k != nil && !k.passed {
			return id, true
		}
		q.order = q.order[1:]
	}
	return workflow.InstanceID{}, false
}

// isFirst reports whether it is an instance's turn.
func (q *line) isFirst(id workflow.InstanceID) bool {
	first, ok := q.first()
	return ok && first == id
}

// skip passes over those whose turn it is and of which the partner says nothing.
func (q *line) skip(now time.Duration) {
	for first, ok := q.first(); ok; first, ok = q.first() {
		k := q.lacks[first]
		if !k.asked || now-k.since < silentFor {
			return
		}
		k.passed = true
	}
}

// heard ends the wait for a partner's word of an instance that it lacks.
func (q *line) heard(x place) {
	k := q.lacks[x.id]
	k.asked = false
	if k.passed {
		k.passed = false
		q.add(x)
	}
}

// calls is the instance whose turn it is at a partner now, if it was refused before.
func (q *line) calls(p workflow.PartnerID) []call {
	first, ok := q.first()
	if !ok || !q.lacks[first].refused {
		return nil
	}
	q.lacks[first].refused = false
	return []call{{p, first}}
}

// next reports, as an instance is sent to a partner that is not known to have it, whether it
// is its turn there. Called is the instance whose turn it is since another was passed over, if
// it was refused before.
func (l *lineup) next(p workflow.PartnerID, id workflow.InstanceID, now time.Duration) (next bool, called []call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	x, known := l.places[id]
	if !known {
		return false, nil
	}
	q := l.join(p, x) // it may take part only since then
	if k := q.lacks[id]; !k.asked {
		k.asked, k.since = true, now
	}
	q.skip(now)
	if q.isFirst(id) {
		q.lacks[id].refused = false
		return true, nil
	}
	return false, q.calls(p)
}

// refuse notes that a partner has no room for an instance, and reports whether it is its turn
// there.
func (l *lineup) refuse(p workflow.PartnerID, id workflow.InstanceID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.lines[p]
	if q == nil || q.lacks[id] == nil {
		return false
	}
	q.heard(l.places[id])
	if q.isFirst(id) {
		return true
	}
	q.lacks[id].refused = true
	return false
}

// meet is that a partner was just connected: it is not its fault that it said nothing of an
// instance until now.
func (l *lineup) meet(p workflow.PartnerID, id workflow.InstanceID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q := l.lines[p]; q != nil && q.lacks[id] != nil {
		q.heard(l.places[id])
	}
}

// leave notes that a partner has an instance, or that what it lacks of it is not waited for.
// Called is the instance whose turn it is there now, if it was refused before.
func (l *lineup) leave(p workflow.PartnerID, id workflow.InstanceID) (called []call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.lines[p]
	if q == nil || q.lacks[id] == nil {
		return nil
	}
	delete(q.lacks, id)
	if len(q.lacks) == 0 {
		delete(l.lines, p)
		return nil
	}
	if len(q.order) > 2*len(q.lacks) {
		q.sort()
		q.order = slices.Compact(slices.DeleteFunc(q.order, func(x place) bool { return q.lacks[x.id] == nil }))
	}
	return q.calls(p)
}

// end has nobody wait for an instance any more.
func (l *lineup) end(id workflow.InstanceID) (called []call) {
	l.mu.Lock()
	_, known := l.places[id]
	delete(l.places, id)
	var at []workflow.PartnerID
	for p, q := range l.lines {
		if known && q.lacks[id] != nil {
			at = append(at, p)
		}
	}
	l.mu.Unlock()
	slices.Sort(at)
	for _, p := range at {
		called = append(called, l.leave(p, id)...)
	}
	return called
}

// call has those instances sent again whose turn has come.
func (x *instances) call(called []call) {
	for _, c := range called {
		s := x.shardOf(c.id)
		x.postOwn(s, event{of: c.id, apply: func(s *shard) error {
			if h := s.held[c.id]; h != nil {
				s.sendAgain(h, c.to)
			}
			return nil
		}})
	}
}

// sendAgain sends a partner an instance that it refused before.
func (s *shard) sendAgain(h *held, p workflow.PartnerID) {
	delete(h.refused, p)
	delete(h.pending, p)
	h.m.Forget(p)
	s.supply(h, p)
}

// lineUp has the partners that are to have an instance of this node's own take it in in turn.
func (s *shard) lineUp(h *held) {
	self := s.n.member.ID()
	if h.sum.By != self || h.sum.Settled {
		return
	}
	others := slices.DeleteFunc(h.m.Audience(), func(p workflow.PartnerID) bool { return p == self })
	s.n.lineup.put(h.m.Instance(), h.sum.Began, others)
}

// isNext reports, as a bundle is sent, whether it is the instance's turn at a partner.
func (s *shard) isNext(h *held, p workflow.PartnerID, b *choreo.Bundle) bool {
	if !b.First || h.sum.By != s.n.member.ID() {
		return false
	}
	next, called := s.n.lineup.next(p, b.Instance, s.now.Awake)
	s.n.call(called)
	return next
}

// waitsForRoom reports whether a refusal is about room that instances which run have taken.
func waitsForRoom(why wire.RefusedWhy) bool {
	return why == wire.RefusedShare || why == wire.RefusedFull || why == wire.RefusedHeavy
}
