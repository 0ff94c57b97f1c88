package node

import (
	"cmp"
	"slices"
	"sync"

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
// its turn before it is older, so all have that, and it ends; and what was taken in out of
// turn leaves the part that is kept. This is about what one member begins, while that one is
// in reach (what others pass on comes out of turn), and about instances that need no more than
// what is kept. Where somebody else is out of reach, what it is to do waits for it all the same.

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

// place orders the instances of this node in the same way for all partners. When an instance
// began is in milliseconds, and later than that of those which began before while this node ran.
type place struct {
	began int64
	id    workflow.InstanceID
}

func (p place) compare(o place) int {
	return cmp.Or(cmp.Compare(p.began, o.began), p.id.Compare(o.id))
}

// line is what one partner lacks.
type line struct {
	order  []place // some of them it does not lack any more
	sorted bool    // the oldest is first
	lacks  map[workflow.InstanceID]bool
	// refused are those of them that it had no room for, since they were last called.
	refused map[workflow.InstanceID]bool
}

// call is that an instance is to be sent again to a partner: its turn has come there.
type call struct {
	to workflow.PartnerID
	id workflow.InstanceID
}

func newLineup() *lineup {
	return &lineup{places: map[workflow.InstanceID]place{}, lines: map[workflow.PartnerID]*line{}}
}

// begin puts an instance that begins now behind all others, at those that are to have it.
func (l *lineup) begin(id workflow.InstanceID, at int64, partners []workflow.PartnerID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(id, max(at, l.last+1), partners)
}

// resume puts an instance that was stored in its place: it may be that all have it.
func (l *lineup) resume(id workflow.InstanceID, at int64, partners []workflow.PartnerID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(id, at, partners)
}

// put is for both. The caller holds l.mu.
func (l *lineup) put(id workflow.InstanceID, at int64, partners []workflow.PartnerID) {
	if _, known := l.places[id]; !known {
		l.places[id], l.last = place{at, id}, max(l.last, at)
	}
	for _, p := range partners {
		l.join(p, l.places[id])
	}
}

// join puts an instance in its place in the line of a partner. The caller holds l.mu.
func (l *lineup) join(p workflow.PartnerID, x place) {
	q := l.lines[p]
	if q == nil {
		q = &line{sorted: true, lacks: map[workflow.InstanceID]bool{}, refused: map[workflow.InstanceID]bool{}}
		l.lines[p] = q
	}
	if q.lacks[x.id] {
		return
	}
	q.lacks[x.id] = true
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

// first is the instance whose turn it is.
func (q *line) first() workflow.InstanceID {
	q.sort()
	for !q.lacks[q.order[0].id] {
		q.order = q.order[1:]
	}
	return q.order[0].id
}

// next reports, as an instance is sent to a partner that is not known to have it, whether it
// is its turn there.
func (l *lineup) next(p workflow.PartnerID, id workflow.InstanceID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	x, known := l.places[id]
	if !known {
		return false
	}
	l.join(p, x) // it may take part only since then
	return l.lines[p].first() == id
}

// refuse notes that a partner has no room for an instance, and reports whether it is its turn
// there.
func (l *lineup) refuse(p workflow.PartnerID, id workflow.InstanceID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.lines[p]
	if q == nil || !q.lacks[id] {
		return false
	}
	if q.first() == id {
		return true
	}
	q.refused[id] = true
	return false
}

// leave notes that a partner has an instance, or that what it lacks of it is not waited for.
// Called is the instance whose turn it is there now, if it was refused before.
func (l *lineup) leave(p workflow.PartnerID, id workflow.InstanceID) (called []call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.lines[p]
	if q == nil || !q.lacks[id] {
		return nil
	}
	delete(q.lacks, id)
	delete(q.refused, id)
	if len(q.lacks) == 0 {
		delete(l.lines, p)
		return nil
	}
	if len(q.order) > 2*len(q.lacks) {
		q.sort()
		q.order = slices.Compact(slices.DeleteFunc(q.order, func(x place) bool { return !q.lacks[x.id] }))
	}
	if first := q.first(); q.refused[first] {
		delete(q.refused, first)
		called = []call{{p, first}}
	}
	return called
}

// end has nobody wait for an instance any more.
func (l *lineup) end(id workflow.InstanceID) (called []call) {
	l.mu.Lock()
	_, known := l.places[id]
	delete(l.places, id)
	var at []workflow.PartnerID
	for p, q := range l.lines {
		if known && q.lacks[id] {
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
		x.postOwn(s, event{apply: func(s *shard) error {
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
func (s *shard) lineUp(h *held, put func(workflow.InstanceID, int64, []workflow.PartnerID)) {
	self := s.n.member.ID()
	if h.sum.By != self || h.sum.Settled {
		return
	}
	others := slices.DeleteFunc(h.m.Audience(), func(p workflow.PartnerID) bool { return p == self })
	put(h.m.Instance(), h.m.Genesis().At, others)
}

// isNext reports, as a bundle is sent, whether it is the instance's turn at a partner.
func (s *shard) isNext(h *held, p workflow.PartnerID, b *choreo.Bundle) bool {
	return b.First && h.sum.By == s.n.member.ID() && s.n.lineup.next(p, b.Instance)
}

// waitsForRoom reports whether a refusal is about room that instances which run have taken.
func waitsForRoom(why wire.RefusedWhy) bool {
	return why == wire.RefusedShare || why == wire.RefusedFull || why == wire.RefusedHeavy
}
