package choreo

import (
	"fmt"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// Machine is one instance at one node: its log, what the log means, what each
// peer is known to have, and what runs here. It is not safe for concurrent
// use; one goroutine owns it.
//
// Events go in by the methods below; each may add facts. Decide then says what
// is to be done. A driver that fails to carry out the first step of a decision
// throws the machine away and loads it again from what is durable.
type Machine struct {
	self  workflow.PartnerID
	does  bool // Self.Instant
	chain fact.Chain
	log   *log.Log
	state *state.State
	own   *log.Entry // our chain's last fact

	unsaved      []*log.Entry
	beyond       []error            // what could not be said since Decide last reported that
	orchestrator workflow.PartnerID // who orchestrates, when the routes were worked out
	// unanswered is what the coordinator is to acknowledge; nil: nothing.
	unanswered *unanswered
	// entrusted is what partners are to be told by the coordinator.
	entrusted map[workflow.PartnerID]entrusted
	// entrustedAt is before all of it was (Boot), as far as known when that was last looked at.
	entrustedAt time.Duration
	told        int           // entries of our own that routes have been worked out for
	spare       *decision     // that has ended; nil: there is none
	backdated   bool          // what could begin when it was loaded was noticed
	decided     time.Duration // Boot, when it last was
	noticedAt   time.Time     // the same by the wall clock
	ticked      bool          // a decision is under way, so decided is now
	unnoticed   []*state.Slot // looked at since the last decision, see notice
	begun       []begun       // starts to be told of if the task still runs then, the earliest first
	peers       map[workflow.PartnerID]*peer
	// perhapsDue are the peers that may be due (peer.go); all others are not.
	perhapsDue map[workflow.PartnerID]bool
	// missed are the facts that all are owed, since somebody is away; near those that are not
	// away, and some that are; nil: nobody ever was (away.go).
	missed  []*log.Entry
	near    []workflow.PartnerID
	running map[fact.AttemptID]bool // started in this process, not ended
	again   map[fact.AttemptID]time.Duration
	ended   map[workflow.PartitionName]bool // own partitions whose end was told
	// nobody says of people's tasks here why they wait for somebody to perform them;
	// keeps are those that this node performs by the plain rule.
	nobody map[fact.AttemptID]string
	unseen map[fact.AttemptID]string // why nobody sees an attempt that waits to be taken
	keeps  map[fact.AttemptID]bool
	// claimedAt is since when (Boot) claims wait.
	claimedAt map[fact.ID]time.Duration
	given     []Holding // what was given out since the driver was last told (pass.go)
	door      door
	clocks    clocks
	desk      desk
	hearing   hearing
	timed     bool                 // the definition has time-outs or emergency triggers
	pulls     bool                 // tasks of people may wait to be taken
	read      *workflow.Definition // of which it is known what the instance may need
	undoes    bool                 // it has compensations
	endless   bool                 // of some task it does not say by when it ends
	peopled   bool                 // some of its tasks are for people
	filed     bool                 // some of its data are files
	dated     bool                 // some of its tasks have a deadline
	passesOn  bool                 // some of people's tasks pass to the responsible user as their deadline is near
}

// Moment is when something happens, for this node: Boot is the time since the
// machine started, suspend included; Wall is for people. Chance is a number in
// [0, 1) for a choice by lot.
type Moment struct {
	Boot   time.Duration
	Wall   time.Time
	Chance float64
}

// Self says who a machine acts for.
type Self struct {
	Partner     workflow.PartnerID
	Incarnation fact.Incarnation
	// Trust checks what authors show; nil: nobody's credentials prove anything.
	Trust state.Trust
	// Credentials prove what roles this node has, when it creates an instance.
	Credentials []byte
	// Instant: this node does noop and set itself, in the step in which they begin; else its driver is
	// asked to, as for all other applications (Effects.Start).
	Instant bool
}

// Partners is what decisions need to know of the partner list.
type Partners interface {
	// Gone reports whether a partner is expired, has left or was evicted; Evicted,
	// whether it was evicted.
	Gone(workflow.PartnerID) bool
	Evicted(workflow.PartnerID) bool
	// Eviction proves that a partner was evicted, and Credentials what roles this
	// node has, to a node that trusts (Trust); nil: nothing does.
	Eviction(workflow.PartnerID) []byte
	Credentials() []byte
	// ConnectionTime is within what time a partner that nobody met expires.
	ConnectionTime(workflow.PartnerID) time.Duration
	// HasRole reports whether a partner has a role, as far as is known.
	HasRole(workflow.PartnerID, workflow.RoleName) bool
	// Person is a person who may have people's work, with the roles that this node knows; false:
	// it knows no such person, or one that was removed.
	Person(worklist.User) (worklist.Person, bool)
	// People are those to whom items for a role can be offered, whether or not they can be reached now; with no
	// role, those at this node.
	People(workflow.RoleName) []worklist.Person
	// Coordinator is the partner that holds the office of coordinator, as far as
	// is known; empty: nobody.
	Coordinator() workflow.PartnerID
	// Reachable reports whether a partner can be reached now, as far as is known.
	Reachable(workflow.PartnerID) bool
	// Office is the office that this node holds at this moment; nil: none.
	Office() *fact.Office
	// TellStart is when (Moment.Boot) partners are to be told of the start of a task
	// that began at since (Moment.Boot), if it still runs then. What began later is
	// not told earlier.
	TellStart(since time.Duration) time.Duration
	// Entitled are the people who are here and have the role of a person's task which waits to
	// be taken, and who of them may see it by the instance's mechanism ([partition.Entitled]).
	Entitled(Work, partition.Waiting) (here []worklist.User, sight partition.Sight, err error)
	// Choose finds the partner that takes a piece of work; the error says why
	// nobody can. It changes nothing: what is given out is said by Effects.Given.
	Choose(Work) (partition.Choice, error)
}

// Instance is the instance's ID.
func (m *Machine) Instance() workflow.InstanceID { return m.log.Instance() }

// Definition is what the instance is an instance of.
func (m *Machine) Definition() *workflow.Definition { return m.state.Definition() }

// Heads is what this replica knows.
func (m *Machine) Heads() []fact.Head { return m.log.Heads() }

// Len is the number of facts in the replica.
func (m *Machine) Len() int { return m.log.Len() }

// Overall says how the instance stands.
func (m *Machine) Overall() workflow.InstanceState { return m.state.Overall() }

// Participants are all who take part, in the order of succession.
func (m *Machine) Participants() []workflow.PartnerID { return m.state.Participants() }

// Participates reports whether p takes part.
func (m *Machine) Participates(p workflow.PartnerID) bool { return m.state.Participates(p) }

// Involved reports whether p takes part, or may believe so: a participant's chain that
// proved to be forked had brought it in, and it wrote facts, or said that it has some (Hears).
// It has the instance, and is to hear why it is out of it and what follows: it may not
// know of the fork, and wait. A partner that brought itself in is not, nor is one that may
// never have heard of the instance.
func (m *Machine) Involved(p workflow.PartnerID) bool {
	pr := m.peers[p]
	return m.Participates(p) || m.tookPart(p) || pr != nil && len(pr.heads) > 0 && m.wasBroughtIn(p)
}

// Hears reports whether p is involved, if need be by saying that it has these.
func (m *Machine) Hears(p workflow.PartnerID, heads []fact.Head) bool {
	return m.Involved(p) || len(heads) > 0 && m.wasBroughtIn(p)
}

// tookPart reports whether p wrote facts, and a chain that proved to be forked had brought it in.
func (m *Machine) tookPart(p workflow.PartnerID) bool {
	return len(m.log.ByAuthor()[p]) > 0 && m.state.Former()[p] != nil
}

// wasBroughtIn reports whether a chain that proved to be forked had brought p in: by what is
// here, or by what p itself showed and is one branch too many here (choreo/log/fork.go).
func (m *Machine) wasBroughtIn(p workflow.PartnerID) bool {
	pr := m.peers[p]
	return m.state.Former()[p] != nil || pr != nil && pr.broughtIn
}

// BringsIn reports whether facts that came from elsewhere, causes first, bring a
// partner into the instance: participants, or others whom these facts bring in,
// give it work.
func (m *Machine) BringsIn(p workflow.PartnerID, facts []fact.Received) bool {
	return m.state.BroughtIn(facts)[p]
}

// Audience are those that are to have all facts in the end: the participants,
// and after them the others who took part as far as they knew. This follows from the
// facts alone.
func (m *Machine) Audience() []workflow.PartnerID {
	ps := slices.Clone(m.state.Participants())
	for _, c := range m.log.Chains() {
		if p := c.ID.Author; !m.Participates(p) && m.tookPart(p) && m.log.ByAuthor()[p][0] == c {
			ps = append(ps, p)
		}
	}
	return ps
}

// Genesis is the fact that created the instance.
func (m *Machine) Genesis() *fact.Fact { return m.log.Genesis().Fact }

// GenesisSize is how many bytes the genesis has.
func (m *Machine) GenesisSize() int { return len(m.log.Genesis().Raw) }

// Waiting reports whether a contingency waits for somebody who can take it, or a
// person's task here for somebody to perform it.
func (m *Machine) Waiting() bool {
	return len(m.nobody) > 0 || m.state.Pending() > 0
}

// begun is a start of which nobody may know yet.
type begun struct {
	start *log.Entry
	since time.Duration // Boot
}

// withheld is that a partner has no room for facts of an author.
type withheld struct {
	until, pause time.Duration // Boot, and how long that is since it refused them
	held         log.Vector    // what it lacks and is not sent before
	taken        int           // how often it said that it takes that now
}

// heeded reports whether facts of ours would count: we take part, as far as is
// known here, and our chain is all of our own writing.
func (m *Machine) heeded() bool { return m.Participates(m.self) && !m.rolledBack() }

// rolledBack reports whether others gave us facts of our own chain that we had
// not: then this store is older than it should be, and what we wrote next
// would fork the chain. A new incarnation is needed.
func (m *Machine) rolledBack() bool {
	if m.own == nil {
		return m.log.Index()[m.chain] != nil
	}
	c := m.own.Strand.Chain
	return c.ForkedAt > 0 || c.Strands[0].Last() != m.own
}

func (m *Machine) goesOn() bool { return m.look().atWork > 0 }

// atWork reports whether this node may still do a slot's task, whatever others presume.
func (m *Machine) atWork(sl *state.Slot) bool {
	a := sl.Current
	return a.Partner == m.self && a.Success() == nil && m.state.Wanted(a) &&
		(a.Start != nil || a.MayStart() || m.state.Armed(sl))
}

var errUnheeded = fmt.Errorf("%w: what this node says would not count: it takes no part in the instance, or its store was rolled back and it has not taken a new incarnation yet", state.ErrNotNow)

// Elsewhere says which partner holds a task. It is an ErrElsewhere.
type Elsewhere struct {
	Task    string // as people read it
	Partner workflow.PartnerID
}

func (e *Elsewhere) Error() string {
	return fmt.Sprintf("%s is held by %s", e.Task, e.Partner.Short())
}

// Is makes errors.Is(err, ErrElsewhere) hold.
func (e *Elsewhere) Is(target error) bool { return target == state.ErrElsewhere }

// cancellable reports whether an instance can be cancelled that stands so: also one that waits for what
// cannot come.
func cancellable(s workflow.InstanceState) bool {
	return s == workflow.InstanceRunning || s == workflow.InstanceBlocked
}

// byPlace is a heap of slots, the first in rule order first.
type byPlace []*state.Slot

// beingRead are the files that this node's tasks read: of each item, how many tasks that can
// begin or run; and, once asked for, which files these are now.
type beingRead struct {
	tasks map[workflow.DataName]int
	by    map[*state.Slot]*workflow.Task // whose tasks these are
	files []state.Reading
	known bool
}

// hearing is what partners are known to have of what ended the slots of a name, as long as
// nothing changes.
type hearing struct {
	ends  map[state.Name][]*log.Entry // of each strand the last
	lacks map[heard]int               // the place of the newest fact
}

type heard struct {
	partner workflow.PartnerID
	of      state.Name
}

// wall is a moment as facts carry it. A clock beyond their years counts as at
// their end: what it shows decides nothing.
func wall(t time.Time) int64 { return min(max(t.UnixMilli(), fact.MinAt), fact.MaxAt) }

// unanswered is what a coordinator was to have at a moment, and has not acknowledged.
type unanswered struct {
	by    workflow.PartnerID
	since time.Duration // Boot
	owed  log.Vector
}

// entrusted is what a partner is to be told by the coordinator: the newest of it, and
// since when the first of it is under way.
type entrusted struct {
	newest *log.Entry
	since  time.Duration // Boot
}
