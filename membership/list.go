package membership

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/workflow"
)

var (
	// ErrListFull tells that [MaxPartners] live partners are listed.
	ErrListFull = errors.New("partner list is full")
	// ErrReplaced tells that a record comes with a certificate older than one
	// that the same partner has shown.
	ErrReplaced = errors.New("certificate was replaced by a newer one")
	// ErrLeft tells that a partner left for good, and speaks again.
	ErrLeft = errors.New("it left for good")
	// ErrLacking tells that a beat is about a record that is not known here:
	// the caller pulls by [List.Digest].
	ErrLacking = errors.New("record not known")
)

// State is where a partner stands in the list (docs/design.md, idea 9).
type State string

// The states of a partner. Unreachable is a matter of seconds: a carrier's opinion,
// silence for most of its connectionTime, or its own word that it goes down. Expired
// means that a whole connectionTime went by without a sign of life, and the absence that it
// announced, if it did, and that its unfinished work is presumed failed.
const (
	Active      State = "active"
	Unreachable State = "unreachable"
	Expired     State = "expired"
	Left        State = "left"
	Evicted     State = "evicted"
)

// Gone reports whether a partner in this state is out of the process.
func (s State) Gone() bool { return s == Expired || s == Left || s == Evicted }

// Partner is one entry of the list, as it stands.
type Partner struct {
	Record    Record
	State     State
	Since     trust.Wall // this node's wall clock when it came into the state
	Load      PerMille
	Work      []byte     // by its last beat (DecodeWork); a pulse says that it is the same
	Validated trust.Wall // this node's wall clock at the last new sign of life
	// Back is when (Boot) the absence is over that the partner announced, Until the same by this node's wall
	// clock, for people and across restarts. 0: it announced none, or is back.
	Back  time.Duration
	Until trust.Wall
}

// Down reports whether the partner said that it goes down and has not been back since.
func (p Partner) Down() bool { return p.Record.Going == GoesDown }

// Absent reports whether the partner is out of reach as it announced, and is waited for.
func (p Partner) Absent() bool { return p.State == Unreachable && p.Down() && p.Record.Away > 0 }

// ForGood reports whether the partner left for good, by its own word.
func (p Partner) ForGood() bool { return p.Record.Going == LeavesForGood }

// Reason is why a partner is in its state.
type Reason string

// The reasons. An active partner needs none.
const (
	GoingDown Reason = "going down" // unreachable, by its own word
	Announced Reason = "away as announced"
	Overdue   Reason = "not back when its announced absence was over"
	NoContact Reason = "no contact" // unreachable
	NotBack   Reason = "not back within its connection time"
	Silent    Reason = "silent for its connection time"
	InOrder   Reason = "in good order" // it left
	ForGood   Reason = "for good"      // it left, and cannot come back
	Removed   Reason = "removed by an administrator"
	Closed    Reason = "takes nothing new on" // it is active, and leaves or is absent
)

// Reason says why the partner is in its state; empty while it is active and takes work on.
func (p Partner) Reason() Reason {
	switch {
	case p.State == Active && p.Record.Absence == Whole:
		return Closed
	case p.Absent():
		return Announced
	case p.State == Unreachable && p.Down():
		return GoingDown
	case p.State == Unreachable:
		return NoContact
	case p.State == Expired && p.Down() && p.Record.Away > p.Record.ConnectionTime:
		return Overdue
	case p.State == Expired && p.Down():
		return NotBack
	case p.State == Expired:
		return Silent
	case p.State == Left && p.ForGood():
		return ForGood
	case p.State == Left:
		return InOrder
	case p.State == Evicted:
		return Removed
	}
	return ""
}

// item is a Partner with what the list needs to keep it.
type item struct {
	Partner
	beat     Beat          // the newest, if newer than the record
	signed   time.Duration // Awake at which the newest of both was told by the partner itself
	deadline time.Duration // Awake at which silence expires it, unless it is absent as announced until later
	named    string        // the name that looks is of
	looks    string
}

// become puts the partner into a state.
func (it *item) become(s State, at trust.Wall) {
	if it.State != s {
		it.State, it.Since = s, at
	}
}

// silentAt is the Awake at which silence makes the partner unreachable: before it
// expires, whatever carriers noticed, and not for one lost sign of life.
func (it *item) silentAt() time.Duration {
	return it.deadline - time.Duration(silentShare*float64(it.Record.ConnectionTime))
}

// silentShare is the part of a connectionTime for which a partner is unreachable, at
// least, before it expires. Signs of life come three times per connectionTime.
const silentShare = 0.3

// latest is the newest version that was heard of.
func (it *item) latest() Version {
	if it.beat.Version.Compare(it.Record.Version) > 0 {
		return it.beat.Version
	}
	return it.Record.Version
}

// lateness is how much later than asked the list may be called before it
// concludes that this node was stopped meanwhile.
const lateness = 2 * time.Second

// List folds the partners' signed records, and the hints of carriers, into
// who is here. Which record of a partner is kept does not depend on the order
// of arrival. It is not safe for concurrent use.
//
// A partner is validated by each *new* record or beat; one that was seen before
// says nothing, no matter who repeats it. A partner that passes one on says how
// long ago its author told it, its age, and from then on silence counts: else
// news of somebody who is gone would keep it listed. Silence counts the
// observer's awake time only, and again after a gap. An absence that the partner
// announced goes on while the observer sleeps: whoever is away does not know of that.
type List struct {
	mesh     trust.Mesh
	self     workflow.PartnerID
	evicted  trust.Evictions
	partners map[workflow.PartnerID]*item
	alike    map[string]int // how many of them have a name that looks so
	due      time.Duration  // Awake at which Tick wants to be called; 0 for never
	now      time.Duration  // the greatest Awake seen
	boot     time.Duration  // the greatest Boot seen
}

// NewList is the empty list of node self in mesh m. r is what the caller knows of
// evictions, which the list asks.
func NewList(m trust.Mesh, self workflow.PartnerID, r trust.Evictions) *List {
	return &List{mesh: m, self: self, evicted: r, partners: map[workflow.PartnerID]*item{}, alike: map[string]int{}}
}

// Publish puts this node's own record into the list. It never expires here.
// An error tells that a record of this node that is not older is known, as
// after a store went back in time: raise the boot counter above it.
func (l *List) Publish(r Record, now moment.Now) ([]Event, error) {
	if r.Partner != l.self {
		return nil, said.Errorf("record of %s published as that of %s", r.Partner, l.self)
	}
	if own := l.partners[l.self]; own != nil && r.Version.Compare(own.Record.Version) <= 0 {
		return nil, fmt.Errorf("own record %s is not newer than %s, which is known: raise the boot counter", r.Version,
			own.Record.Version)
	}
	return l.apply(r, 0, now)
}

// Apply takes in a partner's record that its author told that long ago, wherever
// it comes from, and returns what it changed, in order: nothing if it is known or
// older. It is verified only if it is new. An error refuses the record and leaves
// the list as it was.
//
// The node's own record, when somebody has a newer one than this node, gives
// the event [EventOutrun]: the store went back in time.
func (l *List) Apply(r Record, age time.Duration, now moment.Now) ([]Event, error) {
	if r.Partner == l.self {
		return l.outrun(r)
	}
	return l.apply(r, age, now)
}

// Recall takes in the record of a partner that is a member no more: its certificate has run out,
// or it, or the delegate who issued that, was evicted. Whoever joined later has never had it on
// the list, and meets what it wrote. That it was a member is all that follows. An error says that
// it was none, is one still, or that [MaxRecalled] are listed.
func (l *List) Recall(r Record, now moment.Now) ([]Event, error) {
	l.notice(now)
	if r.Partner == l.self || l.partners[r.Partner] != nil {
		return nil, nil
	}
	if err := r.Verify(); err != nil {
		return nil, err
	}
	if err := r.Chain.Authentic(l.mesh); err != nil {
		return nil, err
	}
	it := &item{
		Partner: Partner{Record: r, State: Evicted, Since: trust.WallOf(now.Wall), Validated: r.Chain.Leaf().NotBefore},
	}
	switch err := r.Chain.Current(now.Wall, l.evicted); {
	case trust.Evicted(l.evicted, r.Chain) != nil:
	case errors.Is(err, trust.ErrExpired):
		it.State = Expired
	case err != nil:
		return nil, err
	default:
		return nil, said.Errorf("record of %s: it is a member", r.Partner)
	}
	if n := l.recalled(now.Wall); n >= MaxRecalled {
		return nil, said.Errorf("record of %s, who is a member no more: %d such are listed, at most %d", r.Partner, n,
			MaxRecalled)
	}
	if err := l.makeRoom(); err != nil {
		return nil, err
	}
	l.enter(it)
	return []Event{{Kind: transition(Active, it.State), Partner: r.Partner}}, nil
}

// recalled counts the partners that are members no more.
func (l *List) recalled(wall time.Time) (n int) {
	for _, it := range l.partners {
		if it.State == Evicted || it.State == Expired && it.Record.Chain.Current(wall, nil) != nil {
			n++
		}
	}
	return n
}

func (l *List) apply(r Record, age time.Duration, now moment.Now) ([]Event, error) {
	l.notice(now)
	old := l.partners[r.Partner]
	if old != nil && old.State != Evicted && r.compare(old.Record) <= 0 {
		return nil, stale(r, old.Record)
	}
	if err := l.verify(r, old, now.Wall); err != nil {
		return nil, err
	}
	if old == nil {
		if err := l.makeRoom(); err != nil {
			return nil, err
		}
		l.enter(l.fresh(r, age, now))
		return joined(r), nil
	}
	return l.replace(old, r, age, now), nil
}

// stale tells why r does not replace old: nil if it is merely not newer.
func stale(r, old Record) error {
	switch {
	case r.Version.Compare(old.Version) <= 0:
		return nil
	case old.Going == LeavesForGood:
		return said.Errorf("record %s of %s: %w by record %s", r.Version, r.Partner, ErrLeft, old.Version)
	}
	return said.Errorf("record %s of %s: its %w, valid from %s: fetch that from any partner", r.Version, r.Partner,
		ErrReplaced, old.Chain.Leaf().NotBefore)
}

// verify checks the signature, the limits and the chain, of a chain that was
// verified before only what may have changed since.
func (l *List) verify(r Record, old *item, wall time.Time) error {
	if err := r.Verify(); err != nil {
		return err
	}
	if old != nil && old.Record.Chain.Equal(r.Chain) {
		return r.Chain.Current(wall, l.evicted)
	}
	return r.Chain.Verify(l.mesh, wall, l.evicted)
}

// fresh is a partner that was just heard of; if its record is old, Tick expires it.
func (l *List) fresh(r Record, age time.Duration, now moment.Now) *item {
	it := &item{
		Partner: Partner{Record: r, State: Active, Since: told(age, now), Load: r.Load, Validated: told(age, now)},
		signed:  l.now - age, deadline: l.now - age + r.ConnectionTime,
	}
	it.goes(told(age, now))
	l.announced(it, age, now)
	return it
}

// announced notes the absence that a partner announced so long ago.
func (l *List) announced(it *item, age time.Duration, now moment.Now) {
	if it.Back, it.Until = 0, 0; it.Record.Away > 0 {
		it.Back, it.Until = l.boot-age+it.Record.Away, trust.WallOf(now.Wall.Add(it.Record.Away-age))
	}
}

// told is when something of that age was told, by this node's wall clock.
func told(age time.Duration, now moment.Now) trust.Wall { return trust.WallOf(now.Wall.Add(-age)) }

// goes puts a partner into the state that its record's word on its going means.
func (it *item) goes(at trust.Wall) {
	switch it.Record.Going {
	case Leaves, LeavesForGood:
		it.become(Left, at)
	case GoesDown:
		if it.State == Active {
			it.become(Unreachable, at)
		}
	}
}

// validate has the count of a partner's silence begin at a sign of that age, unless
// a younger one is known: a pulse proves nothing to others, and is not passed on.
func (l *List) validate(it *item, age time.Duration, now moment.Now) {
	deadline := l.now - age + it.Record.ConnectionTime
	if age > 0 && deadline <= it.deadline {
		return
	}
	it.Validated = told(age, now)
	it.deadline = deadline
}

// replace puts r in the place of an older record of the same partner.
func (l *List) replace(it *item, r Record, age time.Duration, now moment.Now) []Event {
	was := *it
	isNew := was.State == Evicted || r.Version.Compare(was.latest()) > 0
	l.alike[it.look()]--
	it.Record, it.Load, it.beat = r, r.Load, Beat{}
	l.alike[it.look()]++
	if isNew {
		it.signed = l.now - age
		switch {
		case was.State != Evicted && was.Down() && r.Going == GoesDown && r.Away == 0 && was.Record.Away == 0:
			// It said so before, and time runs since then: else it could say so for ever.
		case age < max(r.ConnectionTime, r.Away):
			it.become(Active, told(age, now))
			l.validate(it, age, now)
		case it.State == Evicted || it.State == Left:
			it.become(Expired, told(age, now))
		}
	}
	if isNew || r.Away != was.Record.Away {
		l.announced(it, age, now)
	}
	if it.Down() && !was.Down() && it.State == Unreachable {
		it.Since = told(age, now)
	}
	it.goes(told(age, now))
	return changes(was.Partner, it.Partner)
}

// outrun reports whether r, said to be this node's own, is newer than what this
// node published.
func (l *List) outrun(r Record) ([]Event, error) {
	if own := l.partners[l.self]; own != nil && r.Version.Compare(own.Record.Version) <= 0 {
		return nil, nil
	}
	if err := r.Verify(); err != nil {
		return nil, err
	}
	return []Event{{Kind: EventOutrun, Partner: l.self, Version: r.Version}}, nil
}

// Beat takes in a beat that a partner told that long ago. The error wraps
// [ErrLacking] if the record that it confirms is not the one known here.
func (l *List) Beat(b Beat, age time.Duration, now moment.Now) ([]Event, error) {
	l.notice(now)
	it := l.partners[b.Partner]
	if b.Partner == l.self || it != nil && (it.State == Evicted || b.Version.Compare(it.latest()) <= 0) {
		return nil, nil
	}
	if it == nil || it.Record.Version != (Version{b.Version.Boot, b.Base}) {
		return nil, said.Errorf("beat %s of %s confirms record %d: %w", b.Version, b.Partner, b.Base, ErrLacking)
	}
	if err := b.Verify(); err != nil {
		return nil, err
	}
	if err := it.Record.Chain.Current(now.Wall, l.evicted); err != nil {
		return nil, err
	}
	it.beat, it.signed = b, l.now-age
	if age >= it.Record.ConnectionTime {
		return nil, nil
	}
	it.Work = b.Work
	return l.alive(it, b.Load, age, now), nil
}

// Pulse takes in that a partner stands by its record of that version, of which the
// caller is certain: it was told over a connection on which the partner has proved
// its key. It counts like a beat, but cannot be proved to others. The error wraps
// [ErrLacking] if the record is not the one known here.
func (l *List) Pulse(id workflow.PartnerID, record Version, load PerMille, now moment.Now) ([]Event, error) {
	l.notice(now)
	it := l.partners[id]
	switch {
	case id == l.self || it != nil && it.State == Evicted:
		return nil, nil
	case !load.valid():
		return nil, said.Errorf("pulse of %s: load %d: want 0 to 1000 thousandths", id, load)
	case it == nil || it.Record.Version != record:
		return nil, said.Errorf("pulse of %s confirms record %s: %w", id, record, ErrLacking)
	}
	if err := it.Record.Chain.Current(now.Wall, l.evicted); err != nil {
		return nil, err
	}
	return l.alive(it, load, 0, now), nil
}

// alive takes in a sign of life; one that goes stays away until its next record.
func (l *List) alive(it *item, load PerMille, age time.Duration, now moment.Now) []Event {
	was := it.Partner
	it.Load = load
	if it.Record.Going == Staying {
		it.become(Active, told(age, now))
		l.validate(it, age, now)
	}
	return changes(was, it.Partner)
}

// Hint takes a carrier's opinion on whether a partner can be reached. It
// moves a partner between active and unreachable, and never postpones expiry. A
// connection to one that goes down, or is silent, says nothing: what it tells does.
func (l *List) Hint(id workflow.PartnerID, reachable bool, now moment.Now) []Event {
	l.notice(now)
	it := l.partners[id]
	if it == nil || id == l.self {
		return nil
	}
	was := it.Partner
	switch {
	case !reachable && it.State == Active:
		it.become(Unreachable, trust.WallOf(now.Wall))
	case reachable && it.State == Unreachable && !it.Down() && l.now < it.silentAt():
		it.become(Active, trust.WallOf(now.Wall))
	}
	return changes(was, it.Partner)
}

// Tick has the silent become unreachable, and expires those whose time is up. Call it
// after the other calls and when the Awake clock reaches next, which it returns; ok is
// false when there is nothing to wait for.
func (l *List) Tick(now moment.Now) (events []Event, next time.Duration, ok bool) {
	l.notice(now)
	for _, id := range l.ids() {
		it := l.partners[id]
		if id == l.self || it.State.Gone() {
			continue
		}
		turn := func(s State) {
			was := it.Partner
			it.become(s, trust.WallOf(now.Wall))
			events = append(events, changes(was, it.Partner)...)
		}
		due := it.silentAt()
		if l.now >= due {
			turn(Unreachable) // first, so that nobody goes from active to expired
			due = max(it.deadline, l.now+it.Back-l.boot)
		}
		if l.now >= due {
			turn(Expired)
			continue
		}
		if !ok || due < next {
			next, ok = due, true
		}
	}
	l.due = next
	return events, next, ok
}

// notice moves the list's clock, and finds a gap by being called late.
func (l *List) notice(now moment.Now) {
	l.now, l.boot = max(l.now, now.Awake), max(l.boot, now.Boot)
	if l.due > 0 && l.now > l.due+lateness {
		l.Gap(now)
	}
}

// Gap tells the list that this node could not hear for a while (suspend,
// stop): everybody's silence counts again, after a grace. A gap that made the
// list miss its own wake-up it finds itself.
func (l *List) Gap(now moment.Now) {
	l.now, l.boot = max(l.now, now.Awake), max(l.boot, now.Boot)
	l.due = 0
	for _, it := range l.partners {
		it.deadline = l.now + moment.Grace(it.Record.ConnectionTime) + it.Record.ConnectionTime
	}
}

// Review looks again at everybody's certificates after evictions were added.
func (l *List) Review(now moment.Now) []Event {
	var events []Event
	for _, id := range l.ids() {
		it := l.partners[id]
		if it.State == Evicted || trust.Evicted(l.evicted, it.Record.Chain) == nil {
			continue
		}
		was := it.Partner
		it.become(Evicted, trust.WallOf(now.Wall))
		events = append(events, changes(was, it.Partner)...)
	}
	return events
}

// makeRoom forgets, when the list is full, the partner that is gone longest.
func (l *List) makeRoom() error {
	if len(l.partners) < MaxPartners {
		return nil
	}
	var oldest *item
	for _, id := range l.ids() {
		it := l.partners[id]
		if it.State.Gone() && id != l.self && (oldest == nil || it.Validated < oldest.Validated) {
			oldest = it
		}
	}
	if oldest == nil {
		return fmt.Errorf("%w: %d partners, and none is gone", ErrListFull, len(l.partners))
	}
	l.alike[oldest.look()]--
	delete(l.partners, oldest.Record.Partner)
	return nil
}

// enter puts a partner on the list, in place of what is there of it.
func (l *List) enter(it *item) {
	if old := l.partners[it.Record.Partner]; old != nil {
		l.alike[old.look()]--
	}
	l.partners[it.Record.Partner] = it
	l.alike[it.look()]++
}

// Get returns a partner's entry.
func (l *List) Get(id workflow.PartnerID) (Partner, bool) {
	it := l.partners[id]
	if it == nil {
		return Partner{}, false
	}
	return it.Partner, true
}

// Partners returns everybody in the order of their IDs.
func (l *List) Partners() []Partner {
	all := make([]Partner, 0, len(l.partners))
	for _, id := range l.ids() {
		all = append(all, l.partners[id].Partner)
	}
	return all
}

func (l *List) ids() []workflow.PartnerID { return slices.Sorted(maps.Keys(l.partners)) }
