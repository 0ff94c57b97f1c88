package lineup

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Lines is, for each partner, the instances that this node began and that the partner is not
// known to have.
type Lines struct {
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

// Call is that an instance is to be sent again to a partner: its turn has come there.
type Call struct {
	To workflow.PartnerID
	ID workflow.InstanceID
}

// New has nobody lack anything yet.
func New() *Lines {
	return &Lines{places: map[workflow.InstanceID]place{}, lines: map[workflow.PartnerID]*line{}}
}

// Begins is the place in time of an instance that begins now: behind all others, whatever was
// done to the clock meanwhile.
func (l *Lines) Begins(at int64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = max(at, l.last+1)
	return l.last
}

// Put puts an instance in its place, at those that are to have it. It may be that all have it.
func (l *Lines) Put(id workflow.InstanceID, began int64, partners []workflow.PartnerID) {
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
func (l *Lines) join(p workflow.PartnerID, x place) *line {
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
func (q *line) calls(p workflow.PartnerID) []Call {
	first, ok := q.first()
	if !ok || !q.lacks[first].refused {
		return nil
	}
	q.lacks[first].refused = false
	return []Call{{p, first}}
}

// Next reports, as an instance is sent to a partner that is not known to have it, whether it
// is its turn there. Called is the instance whose turn it is since another was passed over, if
// it was refused before.
func (l *Lines) Next(p workflow.PartnerID, id workflow.InstanceID, now time.Duration) (next bool, called []Call) {
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

// Refuse notes that a partner has no room for an instance, and reports whether it is its turn
// there.
func (l *Lines) Refuse(p workflow.PartnerID, id workflow.InstanceID) bool {
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

// Meet is that a partner was just connected: it is not its fault that it said nothing of an
// instance until now.
func (l *Lines) Meet(p workflow.PartnerID, id workflow.InstanceID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q := l.lines[p]; q != nil && q.lacks[id] != nil {
		q.heard(l.places[id])
	}
}

// Leave notes that a partner has an instance, or that what it lacks of it is not waited for.
// Called is the instance whose turn it is there now, if it was refused before.
func (l *Lines) Leave(p workflow.PartnerID, id workflow.InstanceID) (called []Call) {
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

// End has nobody wait for an instance any more.
func (l *Lines) End(id workflow.InstanceID) (called []Call) {
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
		called = append(called, l.Leave(p, id)...)
	}
	return called
}
