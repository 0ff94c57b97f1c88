package choreo

import (
	"cmp"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Machine is one instance at one node: its log, what the log means, what each
// peer is known to have, and what runs here. It is not safe for concurrent
// use; one goroutine owns it.
//
// Events go in by the methods below; each may add facts. Decide then says what
// is to be done. A driver that fails to carry out the first step of a decision
// throws the machine away and loads it again from what is durable.
type Machine struct {
	self   workflow.PartnerID
	does   bool                                // Self.Instant
	served func(workflow.ApplicationName) bool // Self.Served
	chain  fact.Chain
	log    *log.Log
	state  *state.State
	own    *log.Entry // our chain's last fact

	begunBy *fact.Speaker // the user who began the instance; nil: its initiator

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
	loaded      time.Duration // Boot, when that was
	undated     bool          // some deadlines may not count from when their tasks could be done yet
	decided     time.Duration // Boot, when it last was
	noticedAt   time.Time     // the same by the wall clock
	ticked      bool          // a decision is under way, so decided is now
	unnoticed   []*state.Slot // looked at since the last decision, see notice
	begun       []begun       // starts to be told of if the task still runs then, the earliest first
	peers       map[workflow.PartnerID]*peer
	// perhapsDue are the peers that may be due (owing.go); all others are not.
	perhapsDue map[workflow.PartnerID]bool
	// missed are the facts that all are owed, since somebody is away; near those that are not
	// away, and some that are; nil: nobody ever was (away.go).
	missed  []*log.Entry
	near    []workflow.PartnerID
	running map[fact.AttemptID]bool // started in this process, not ended
	again   map[fact.AttemptID]time.Duration
	// graces are until when (Boot) attempts are not called off whose children may have succeeded (childsGrace).
	graces map[fact.AttemptID]time.Duration
	ended  map[workflow.PartitionName]bool // own partitions whose end was told
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
	clockedBy *workflow.Definition // by which the clocks of this node ran last; nil: by the one of now
	read      *workflow.Definition // of which it is known what the instance may need
	undoes    bool                 // it has compensations
	endless   bool                 // of some task it does not say by when it ends
	peopled   bool                 // some of its tasks are for people
	filed     bool                 // some of its data are files
	dated     bool                 // some of its tasks have a deadline
	passesOn  bool                 // some of people's tasks pass to the responsible user as their deadline is near
}

// outlook is an instance as this node sees it at a moment, among the partners as they
// are then. What only reads is a method of State or Machine or, where it asks for the time
// or for partners, of outlook: it can neither add a fact nor have anything done. What
// decides is a method of decision.
type outlook struct {
	*Machine
	now      Moment
	partners Partners // nil: it is not asked about partners
}

// decision is an outlook upon which this node acts: it adds facts of its own, and gathers
// what is to be done.
type decision struct {
	outlook
	out    Effects
	atOnce int // how many tasks were done in it (instant.go)
}

// looking begins to look.
func (m *Machine) looking(now Moment, partners Partners) outlook { return outlook{m, now, partners} }

// deciding begins to decide.
func (m *Machine) deciding(now Moment, partners Partners) *decision {
	d := m.spare
	if m.spare = nil; d == nil {
		d = &decision{}
	}
	d.outlook = m.looking(now, partners)
	return d
}

// reuse ends a decision, which nobody may use any more. The next one is made in its place:
// there are two for each task.
func (m *Machine) reuse(d *decision) {
	*d = decision{}
	m.spare = d
}

// fold has facts change the state, which may run by another definition then.
func (m *Machine) fold(es []*log.Entry) {
	m.state.Fold(es)
	if m.state.Definition() != m.read {
		m.clockedBy = cmp.Or(m.clockedBy, m.read)
		m.readDefinition()
	}
}

// readDefinition notes what an instance that runs by its definition may need at all. What people do and what undoes
// something goes on once it has begun, though an amendment drops its task.
func (m *Machine) readDefinition() {
	def, plan := m.state.Definition(), m.state.Plan()
	m.read = def
	m.timed = slices.ContainsFunc(def.Tasks, func(t *workflow.Task) bool { return t.Timeout > 0 || t.TimeToWait > 0 })
	m.timed = m.timed || slices.ContainsFunc(def.Tasks,
		func(t *workflow.Task) bool { return t.Condition != nil && len(t.Condition.Ages()) > 0 })
	m.undoes = m.undoes || slices.ContainsFunc(def.Tasks, func(t *workflow.Task) bool { return t.Compensate != nil })
	m.timed = m.timed || slices.ContainsFunc(plan.Partitions(),
		func(p *partition.Partition) bool { return p.Timeout > 0 })
	m.pulls = m.state.Mechanism().Pulls() &&
		slices.ContainsFunc(def.Tasks, func(t *workflow.Task) bool { return t.ByRole() })
	m.peopled = m.peopled || slices.ContainsFunc(def.Tasks, func(t *workflow.Task) bool { return !t.ByNode() })
	m.filed = slices.ContainsFunc(def.Data, func(d workflow.DataDecl) bool { return state.IsFile(&d) })
	m.dated = slices.ContainsFunc(def.Tasks, func(t *workflow.Task) bool { return t.Deadline != nil })
	m.undated = m.dated
	m.passesOn = slices.ContainsFunc(def.Tasks, func(t *workflow.Task) bool { return m.state.TransferAt(t) > 0 })
	m.endless = slices.ContainsFunc(def.Tasks, func(t *workflow.Task) bool {
		_, known := plan.WorstEnd(t.Name)
		return !known && !t.ContingencyOnly
	})
}

// Instance is the instance's ID.
func (m *Machine) Instance() workflow.InstanceID { return m.log.Instance() }

// Incarnation is that under which this node writes its facts of the instance.
func (m *Machine) Incarnation() fact.Incarnation { return m.chain.Incarnation }

// Definition is what the instance is an instance of.
func (m *Machine) Definition() *workflow.Definition { return m.state.Definition() }

// Heads is what this replica knows.
func (m *Machine) Heads() []fact.Head { return m.log.Heads() }

// Len is the number of facts in the replica.
func (m *Machine) Len() int { return m.log.Len() }

// Overall says how the instance stands.
func (m *Machine) Overall() workflow.InstanceState { return m.state.Overall() }

// Ended is when the instance came to its end, in ms since 1970, by the clock of whoever ended it: the same at all nodes
// that know the same facts. 0: it goes on.
func (m *Machine) Ended() int64 { return (&state.Moments{S: m.state}).Over() }

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

// Uncounted is how many facts that do not count came since the last call, by author:
// without those of forked chains, whose author may be honest (choreo/log/fork.go).
func (m *Machine) Uncounted() map[workflow.PartnerID]int {
	return m.state.TakeUncounted()
}

// Has reports whether a fact is here.
func (m *Machine) Has(id fact.ID) bool { return m.log.Has(id) }

// Lives is how many chains of an author are here: one for each time that its store was
// made or restored while it took part.
func (m *Machine) Lives(p workflow.PartnerID) int { return len(m.log.ByAuthor()[p]) }

// Authored calls each with how many facts of an author are here, and their bytes.
func (m *Machine) Authored(each func(author workflow.PartnerID, facts, bytes int)) {
	for p, of := range m.log.Authored() {
		each(p, of.Facts, of.Bytes)
	}
}

// AuthoredBy is how many facts of an author are here, and their bytes.
func (m *Machine) AuthoredBy(author workflow.PartnerID) (facts, bytes int) {
	of := m.log.Authored()[author]
	return of.Facts, of.Bytes
}
