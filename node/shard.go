package node

import (
	"cmp"
	"iter"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/index"
	"github.com/mutirao-mesh/mutirao/node/overview"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// listing is what is listed of people's tasks: those that can be done, or those that can be locked before.
type listing int

const (
	ready listing = iota
	ahead
	listings
)

// shard owns a share of the instances. One goroutine runs it: it takes the
// events that wait, feeds them to the machines, makes what they ask for durable
// in one commit, and only then acts. While one shard waits for its commit the
// others go on, and their commits share a sync.
type shard struct {
	n      *instances
	number int
	log    *slog.Logger
	events chan event
	held   map[workflow.InstanceID]*held
	came   []*held // the same, in the order in which they came into memory; nil: it is not there any more
	// tellings are, by peer, heads of which not all parts have come yet.
	tellings map[workflow.PartnerID]*telling
	local    []event // of our own making, before anything from outside
	carried  []event // out in an earlier round, for its array
	batch    batch
	spent    batch         // of an earlier round, for its arrays
	wakeAt   time.Duration // Boot time; 0: never
	acks     acknowledgements

	nextTick, nextCompare time.Duration // Awake
	nextWeigh, nextEarly  time.Duration // Awake
	// refuses: facts were refused for want of room, and nobody was told since that they are
	// taken. Room may be found by another shard, while this one has nothing to do.
	refuses  bool
	ended    bool                                                  // an instance may be compared before its turn
	weighed  map[workflow.InstanceID]map[workflow.PartnerID]weight // as counted in usage
	delayed  []delayed
	underWay map[workflow.InstanceID]bool // of which something may be unacknowledged
	lost     int                          // how many rounds in a row could not be made durable
	// again are the instances that are loaded again when the pause after a failed
	// commit is over.
	again   map[workflow.InstanceID]bool
	recalls bool                                   // not all that was here before the node began goes on yet
	aside   map[workflow.InstanceID]index.SetAside // in quarantine
	broken  []workflow.InstanceID                  // whose machines panicked since the last flush (contained.go)
	within  workflow.InstanceID                    // of which something is done now, if anything is contained
	reading bool                                   // an instance is read for somebody
	unread  error                                  // the last failure at that outside machines
	heard   workflow.PartnerID                     // by whose word something is done now, if by a partner's
	listed  [listings]atomic.Int64                 // how many items there were when they were listed last
	reports reports
	// expected is the moment (Boot) by which the next turn should be taken.
	expected time.Duration
	// now is what the clocks said when the turn, or the step of the round that is being
	// done, began: a clock that counts suspend costs a system call.
	now moment.Now
}

const (
	eventQueue = 1024
	roundSize  = 256 // events at most in one commit
	// tick is how often unacknowledged messages are looked at.
	tick = 200 * time.Millisecond
	// The pause before an unacknowledged message is sent again, doubled each
	// time; a chance part of up to a quarter keeps peers apart.
	firstPause = time.Second
	maxPause   = 30 * time.Second
	// late is how much later than expected a turn must be for a gap: the process
	// was stopped, or the device suspended.
	late = 5 * time.Second
)

func newShard(n *instances, i int) *shard {
	return &shard{n: n, number: i, log: n.log.With("shard", i), events: make(chan event, eventQueue), recalls: true,
		held: map[workflow.InstanceID]*held{}, tellings: map[workflow.PartnerID]*telling{},
		underWay: map[workflow.InstanceID]bool{}, again: map[workflow.InstanceID]bool{},
		aside: map[workflow.InstanceID]index.SetAside{}, weighed: map[workflow.InstanceID]map[workflow.PartnerID]weight{}}
}

// event is something that happened, for one shard. apply changes machines; of is the
// instance that it is about, zero if it sees to several itself (only), and from whose
// word it is, if it is a partner's.
// after is called once what it led to is durable, or with the error. look only
// reads: it comes before everything else of its round, when all that is in
// memory is durable, so that no failing disk keeps people from reading.
// taken gives back what the event held while it waited: it is called even if the instance
// is set aside meanwhile and apply is not called.
type event struct {
	of    workflow.InstanceID
	from  workflow.PartnerID
	taken func()
	look  func(*shard)
	apply func(*shard) error
	read  func(*held) // looks at the instance once it has decided after apply went well, and before after is called
	after func(error)
}

// delayed is something to do at a moment (Awake).
type delayed struct {
	due time.Duration
	of  workflow.InstanceID
	fn  func(*shard) error
}

// reports are what a shard has to tell the coordinator.
type reports struct {
	to     overview.Chief
	queue  []workflow.InstanceID // as they changed
	queued map[workflow.InstanceID]bool
	next   time.Duration // Awake: nothing is sent before
}

func (r *reports) add(id workflow.InstanceID) {
	if r.to.Partner == "" || r.queued[id] {
		return
	}
	r.queued[id] = true
	r.queue = append(r.queue, id)
}

// done takes the first n off the queue.
func (r *reports) done(n int) {
	for _, id := range r.queue[:n] {
		delete(r.queued, id)
	}
	r.queue = slices.Delete(r.queue, 0, n)
}

// telling are heads of one instance of which not all parts have come yet.
type telling struct {
	so   wire.Heads
	next uint8
}

// each calls fn for every instance in memory, in the order of their IDs.
func (s *shard) each(fn func(workflow.InstanceID, *held)) {
	s.only(func(*held) bool { return true }, fn)
}

// all is each in the order in which they came into memory: what was made together is near together there, and is
// read in half the time.
func (s *shard) all(fn func(workflow.InstanceID, *held)) {
	for _, h := range s.came {
		if h != nil {
			s.contained(h.id, func() { fn(h.id, h) })
		}
	}
}

// those is each for some of them, as far as they are in memory, in the order in which they came there.
func (s *shard) those(some iter.Seq[workflow.InstanceID], fn func(workflow.InstanceID, *held)) {
	var found []*held
	for id := range some {
		if h := s.held[id]; h != nil {
			found = append(found, h)
		}
	}
	slices.SortFunc(found, func(a, b *held) int { return cmp.Compare(a.place, b.place) })
	for _, h := range found {
		if s.held[h.id] == h { // it still is
			s.contained(h.id, func() { fn(h.id, h) })
		}
	}
}

// only is each for those that are meant; meant is asked in any order.
func (s *shard) only(meant func(*held) bool, fn func(workflow.InstanceID, *held)) {
	var ids []workflow.InstanceID
	for id, h := range s.held {
		s.contained(id, func() {
			if meant(h) {
				ids = append(ids, id)
			}
		})
	}
	slices.SortFunc(ids, workflow.InstanceID.Compare)
	for _, id := range ids {
		s.contained(id, func() { fn(id, s.held[id]) })
	}
}

// enlist has an instance among those in memory, as the one that came last.
func (s *shard) enlist(h *held) {
	s.unlist(h.id)
	h.place = len(s.came)
	s.held[h.id], s.came = h, append(s.came, h)
}

// unlist forgets what is held of an instance. The order of the others stays; the places of what is gone are taken back
// once they are as many as those of the rest.
func (s *shard) unlist(id workflow.InstanceID) {
	h := s.held[id]
	if h == nil {
		return
	}
	delete(s.held, id)
	s.came[h.place] = nil
	if len(s.came) < 2*len(s.held)+16 {
		return
	}
	left := make([]*held, 0, len(s.held))
	for _, h := range s.came {
		if h != nil {
			h.place = len(left)
			left = append(left, h)
		}
	}
	s.came = left
}

// touch has the machine decide at the end of the round.
func (s *shard) touch(h *held) {
	h.glance = nil
	if !slices.Contains(s.batch.touched, h) {
		s.batch.touched = append(s.batch.touched, h)
	}
}

// touchConcerned has the instances decide again in which p takes part, or has people's work,
// or which wait for somebody who can take a contingency.
func (s *shard) touchConcerned(p workflow.PartnerID) {
	s.each(func(_ workflow.InstanceID, h *held) {
		h.m.PeopleChanged()
		if h.m.Participates(p) || h.m.Waiting() || h.m.Claims() {
			s.touch(h)
		}
	})
}

// sendHeads says to a peer, after the commit, what is durable here of an instance.
func (s *shard) sendHeads(p workflow.PartnerID, id workflow.InstanceID, mode wire.HeadsMode) {
	if s.batch.heads == nil {
		s.batch.heads = map[headsKey][]workflow.InstanceID{}
	}
	k := headsKey{p, mode}
	s.batch.heads[k] = append(s.batch.heads[k], id)
}

// supply sends p, after the commit, what it lacks of an instance.
func (s *shard) supply(h *held, p workflow.PartnerID) {
	s.batch.supplies = append(s.batch.supplies, supply{h, p})
}

// later applies fn to an instance after a pause that grows while nothing can be made durable.
func (s *shard) later(id workflow.InstanceID, fn func(*shard) error) {
	pause := min(firstPause<<min(max(s.lost-1, 0), 5), maxPause)
	s.delayed = append(s.delayed, delayed{due: s.now.Awake + pause, of: id, fn: fn})
}

// readClock takes up what the clocks say.
func (s *shard) readClock() { s.now = s.n.clock.Now() }

// moment is when what is being done happens, for the core.
func (s *shard) moment() choreo.Moment {
	return choreo.Moment{Boot: s.now.Boot, Wall: s.now.Wall, Chance: s.n.chance()}
}
