package choreo

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

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
	chain Chain
	log   *Log
	state *State
	own   *entry // our chain's last fact

	unsaved      []*entry
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
	unnoticed   []*Slot       // looked at since the last decision, see notice
	begun       []begun       // starts to be told of if the task still runs then, the earliest first
	peers       map[workflow.PartnerID]*peer
	// perhapsDue are the peers that may be due (peer.go); all others are not.
	perhapsDue map[workflow.PartnerID]bool
	// missed are the facts that all are owed, since somebody is away; near those that are not
	// away, and some that are; nil: nobody ever was (away.go).
	missed  []*entry
	near    []workflow.PartnerID
	running map[AttemptID]bool // started in this process, not ended
	again   map[AttemptID]time.Duration
	ended   map[workflow.PartitionName]bool // own partitions whose end was told
	// nobody says of people's tasks here why they wait for somebody to perform them;
	// keeps are those that this node performs by the plain rule.
	nobody map[AttemptID]string
	unseen map[AttemptID]string // why nobody sees an attempt that waits to be taken
	keeps  map[AttemptID]bool
	// claimedAt is since when (Boot) claims wait.
	claimedAt map[FactID]time.Duration
	given     []Holding // what was given out since the driver was last told (pass.go)
	door      door
	clocks    clocks
	desk      desk
	hearing   hearing
	timed     bool // the definition has time-outs or emergency triggers
	pulls     bool // tasks of people may wait to be taken
	undoes    bool // it has compensations
	endless   bool // of some task it does not say by when it ends
	peopled   bool // some of its tasks are for people
	filed     bool // some of its data are files
	dated     bool // some of its tasks have a deadline
	passesOn  bool // some of people's tasks pass to the responsible user as their deadline is near
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
	Incarnation Incarnation
	// Trust checks what authors show; nil: nobody's credentials prove anything.
	Trust Trust
	// Credentials prove what roles this node has, when it creates an instance.
	Credentials []byte
}

// Received is a fact as it came from elsewhere, its attestation verified.
type Received struct {
	Fact *Fact
	ID   FactID
	Raw  []byte
	Att  *Attestation
}

// Instance is the instance that the fact is of; a genesis says so by its name.
func (r Received) Instance() workflow.InstanceID {
	if r.Fact.Body.Genesis != nil {
		return InstanceOf(r.ID)
	}
	return r.Fact.Instance
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
	Office() *Office
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

// Create makes a new instance and the machine of its initiator, whose credentials go
// with the genesis where the definition wants a role of its creator.
func Create(
	self Self, def *workflow.Definition, plan *partition.Plan, g *Genesis, annex *Annex, now Moment,
) (*Machine, error) {
	f := &Fact{
		Format: FormatFact, Chain: Chain{Author: self.Partner, Incarnation: self.Incarnation}, Seq: 1,
		At: wall(now.Wall), Body: Body{Genesis: g, Annex: annex},
	}
	if def.CreatorRole != "" {
		f.Body.Credentials = self.Credentials
	}
	raw, id, err := f.Encode()
	if err != nil {
		return nil, err
	}
	m, err := Open(self, def, plan, Received{Fact: f, ID: id, Raw: raw})
	if err != nil {
		return nil, err
	}
	m.unsaved = append(m.unsaved, m.log.genesis)
	return m, nil
}

// Open makes the machine of an instance from its genesis: before facts are
// loaded from a store, or when the genesis came from another partner.
func Open(self Self, def *workflow.Definition, plan *partition.Plan, genesis Received) (*Machine, error) {
	l, err := NewLog(genesis.Fact, genesis.Raw, genesis.ID, genesis.Att)
	if err != nil {
		return nil, err
	}
	g := genesis.Fact.Body.Genesis
	if def.Hash() != g.Definition {
		return nil, fmt.Errorf("%w: instance of definition %s, opened with %s", ErrFactInvalid, g.Definition,
			def.Hash())
	}
	if err := placed(plan, g); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFactInvalid, err)
	}
	if err := mayCreate(self.Trust, def, genesis.Fact); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFactInvalid, err)
	}
	if err := given(def, g); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFactInvalid, err)
	}
	m := &Machine{
		self: self.Partner, chain: Chain{Author: self.Partner, Incarnation: self.Incarnation},
		log: l, state: newState(def, plan, l, self.Trust),
		peers: map[workflow.PartnerID]*peer{}, perhapsDue: map[workflow.PartnerID]bool{},
		entrusted: map[workflow.PartnerID]entrusted{},
		running:   map[AttemptID]bool{}, again: map[AttemptID]time.Duration{},
		ended: map[workflow.PartitionName]bool{}, nobody: map[AttemptID]string{},
		unseen: map[AttemptID]string{}, keeps: map[AttemptID]bool{},
		claimedAt: map[FactID]time.Duration{}, clocks: newClocks(&l.steps),
	}
	m.timed = slices.ContainsFunc(def.Tasks, func(t *workflow.Task) bool { return t.Timeout > 0 || t.TimeToWait > 0 })
	m.timed = m.timed || slices.ContainsFunc(def.Tasks,
		func(t *workflow.Task) bool { return t.Condition != nil && len(t.Condition.Ages()) > 0 })
	m.undoes = slices.ContainsFunc(def.Tasks, func(t *workflow.Task) bool { return t.Compensate != nil })
	m.timed = m.timed || slices.ContainsFunc(plan.Partitions(),
		func(p *partition.Partition) bool { return p.Timeout > 0 })
	m.pulls = m.state.mechanism().Pulls() &&
		slices.ContainsFunc(def.Tasks, func(t *workflow.Task) bool { return t.ByRole() })
	m.peopled = slices.ContainsFunc(def.Tasks, func(t *workflow.Task) bool { return !t.ByNode() })
	m.filed = slices.ContainsFunc(def.Data, func(d workflow.DataDecl) bool { return isFile(&d) })
	m.dated = slices.ContainsFunc(def.Tasks, func(t *workflow.Task) bool { return t.Deadline != nil })
	m.passesOn = slices.ContainsFunc(def.Tasks, func(t *workflow.Task) bool { return m.state.transferAt(t) > 0 })
	m.endless = slices.ContainsFunc(def.Tasks, func(t *workflow.Task) bool {
		_, known := plan.WorstEnd(t.Name)
		return !known && !t.ContingencyOnly
	})
	m.door = newDoor(m.self, l, m.state)
	if genesis.Fact.Chain == m.chain {
		m.own = l.genesis
	}
	m.state.settle()
	return m, nil
}

// given checks that a genesis gives data only what their declarations allow.
func given(def *workflow.Definition, g *Genesis) error {
	decls := make(map[workflow.DataName]*workflow.DataDecl, len(def.Data))
	for i := range def.Data {
		decls[def.Data[i].Name] = &def.Data[i]
	}
	for _, n := range slices.Sorted(maps.Keys(g.Input)) {
		if decls[n] == nil {
			return fmt.Errorf("the genesis gives %s, which the definition does not declare", n)
		}
		if _, err := workflow.CheckValue(decls[n], g.Input[n]); err != nil {
			return fmt.Errorf("the genesis gives what the definition does not allow: %w", err)
		}
	}
	if why := Rejects(def, g.Input); why != "" {
		return errors.New(why)
	}
	return nil
}

// placed checks that a genesis gives every partition one holder.
func placed(plan *partition.Plan, g *Genesis) error {
	parts := plan.Partitions()
	if len(parts) != len(g.Assign) {
		return fmt.Errorf("the genesis places %d partitions, the definition has %d", len(g.Assign), len(parts))
	}
	for i, p := range parts {
		if g.Assign[i].Partition != p.Name {
			return fmt.Errorf("the genesis places %s where the definition has partition %s", g.Assign[i].Partition,
				p.Name)
		}
	}
	return nil
}

// Load inserts facts that come from this node's own store, in the order of
// their places. With owe, all that was ours is owed to everybody until they
// say that they have it.
func (m *Machine) Load(facts []Received, owe bool) error {
	es, err := m.log.insertAll(facts)
	if err != nil {
		return err
	}
	m.state.fold(es)
	m.state.takeUncounted() // that is no news
	for _, e := range m.log.order {
		if e.fact.Chain == m.chain && (m.own == nil || e.fact.Seq > m.own.fact.Seq) {
			m.own = e
		}
	}
	for _, p := range m.state.Participants() {
		if owe {
			m.owe(p)
		}
	}
	m.told = len(m.log.order)
	for _, g := range m.state.genesis.Assign {
		m.ended[g.Partition] = m.partitionDone(g.Partition)
	}
	return nil
}

// Adopt has the genesis, which came from another partner, made durable here.
func (m *Machine) Adopt() { m.unsaved = append(m.unsaved, m.log.genesis) }

// Receive inserts facts that came from a peer. Facts that are here already are
// passed over, and so is what is beyond what is taken in of an author (door.go,
// Declined). An error wraps ErrMissingPast (the sender must send more), ErrNoRoom,
// ErrFactInvalid; with ErrMissingPast, facts before the offending one stay. With ErrOtherInstance none does:
// chains are named alike in all instances, so nothing of such facts may be looked at here.
func (m *Machine) Receive(from workflow.PartnerID, facts []Received) (added int, err error) {
	if slices.ContainsFunc(facts, func(f Received) bool { return f.Instance() != m.Instance() }) {
		return 0, ErrOtherInstance
	}
	m.Here(from)
	if err := m.log.misnamed(facts); err != nil {
		return 0, err
	}
	taken, all := m.log.vouched(facts), true
	if from != m.self {
		taken, all = m.admit(from, taken)
	}
	es, err := m.log.insertAll(taken)
	if errors.Is(err, ErrMissingPast) {
		if all {
			in := m.state.broughtIn(taken)
			for _, f := range taken {
				m.door.nameSeen(f.Fact, in)
			}
		}
		if m.door.noRoomBefore(taken) {
			err = ErrNoRoom
		}
	}
	m.unsaved = append(m.unsaved, es...)
	m.doubt()
	if len(es) > 0 {
		m.state.fold(es)
	}
	if !m.Participates(from) && m.branchAppoints(from, facts) {
		m.peer(from).broughtIn = true
	}
	if p := m.peer(from); err == nil {
		for _, f := range facts {
			p.has(m.log, m.log.byID[f.ID])
		}
	}
	return len(es), err
}

// PutBack inserts facts that this node had before, and that were saved from a store which
// lost others. Those stay out that nothing vouches for any more, as the later fact of their
// chain whose attestation covered them is lost: no peer would take them from us, nor what
// we would then build upon them. A partner that still has that fact sends them with it.
// It reports how many facts are new here, and whether all of them are here now.
func (m *Machine) PutBack(saved []Received) (added int, all bool) {
	proven := m.log.stillVouched(saved)
	added, err := m.Receive(m.self, proven)
	return added, err == nil && len(proven) == len(saved)
}

// append adds a fact of our own. More heads than one fact takes, or than fit beside
// what is said, go into `seen` facts of ours before it. An error says which limit
// the fact is beyond (limits.go); then nothing was added, and it is among what
// Decide reports.
func (d *decision) append(b Body) (*entry, error) {
	e, err := d.say(b, d.log.unseen(d.own))
	if err == nil {
		return e, nil
	}
	if err = d.fits(b); err == nil {
		if err = d.sayHeads(); err == nil {
			e, err = d.say(b, nil)
		}
	}
	if err != nil {
		d.beyond = append(d.beyond, err)
	}
	return e, err
}

// sayHeads names all heads that this node has seen and not named, in as many facts
// as that takes.
func (d *decision) sayHeads() error {
	for heads := d.log.unseen(d.own); len(heads) > 0; heads = d.log.unseen(d.own) {
		if _, err := d.say(Body{Seen: &Seen{}}, heads[:min(len(heads), MaxHeadsSeen)]); err != nil {
			return err
		}
	}
	return nil
}

// say adds our next fact, which has seen those heads, or says which limit it is
// beyond.
func (d *decision) say(b Body, seen []Head) (*entry, error) {
	f := d.next(b, seen)
	raw, id, err := f.Encode()
	if err != nil {
		return nil, err
	}
	return d.enter(f, raw, id), nil
}

// fits says which limit a fact of ours would be beyond, heads aside.
func (d *decision) fits(b Body) error {
	one := []Head{d.log.genesis.head()} // for a first fact, which must have seen something
	_, _, err := d.next(b, one).Encode()
	return err
}

// next is our next fact, if it has seen those heads.
func (d *decision) next(b Body, seen []Head) *Fact {
	f := &Fact{
		Format: FormatFact, Instance: d.log.instance, Chain: d.chain, Seq: 1, Seen: seen, At: wall(d.now.Wall), Body: b,
	}
	if d.own != nil {
		f.Seq, f.Prev = d.own.fact.Seq+1, d.own.id
	}
	return f
}

// enter puts a fact of ours into the log.
func (d *decision) enter(f *Fact, raw []byte, id FactID) *entry {
	e, err := d.log.insert(f, raw, id, nil)
	if err != nil || e == nil {
		panic(fmt.Sprintf("choreo: our own fact does not fit our own log: %v", err)) // our bug
	}
	d.own = e
	d.unsaved = append(d.unsaved, e)
	d.state.fold([]*entry{e})
	return e
}

// Instance is the instance's ID.
func (m *Machine) Instance() workflow.InstanceID { return m.log.instance }

// Definition is what the instance is an instance of.
func (m *Machine) Definition() *workflow.Definition { return m.state.def }

// Heads is what this replica knows.
func (m *Machine) Heads() []Head { return m.log.Heads() }

// Len is the number of facts in the replica.
func (m *Machine) Len() int { return m.log.Len() }

// Overall says how the instance stands.
func (m *Machine) Overall() workflow.InstanceState { return m.state.overall() }

// Participants are all who take part, in the order of succession.
func (m *Machine) Participants() []workflow.PartnerID { return m.state.Participants() }

// Participates reports whether p takes part.
func (m *Machine) Participates(p workflow.PartnerID) bool { return m.state.participates(p) }

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
func (m *Machine) Hears(p workflow.PartnerID, heads []Head) bool {
	return m.Involved(p) || len(heads) > 0 && m.wasBroughtIn(p)
}

// tookPart reports whether p wrote facts, and a chain that proved to be forked had brought it in.
func (m *Machine) tookPart(p workflow.PartnerID) bool {
	return len(m.log.byAuthor[p]) > 0 && m.state.former[p] != nil
}

// wasBroughtIn reports whether a chain that proved to be forked had brought p in: by what is
// here, or by what p itself showed and is one branch too many here (fork.go).
func (m *Machine) wasBroughtIn(p workflow.PartnerID) bool {
	pr := m.peers[p]
	return m.state.former[p] != nil || pr != nil && pr.broughtIn
}

// branchAppoints reports whether among facts that were not taken in, as they are one branch
// too many of their chain, is one by which a participant from the start gave p work: with an
// attestation of its own, as such facts go (BringsIn).
func (m *Machine) branchAppoints(p workflow.PartnerID, facts []Received) bool {
	return slices.ContainsFunc(facts, func(f Received) bool {
		if f.Att == nil || m.door.declined[f.ID].Why != TooManyForks || !m.log.original[f.Fact.Chain.Author] {
			return false
		}
		for who := range f.Fact.Body.appoints() {
			if who == p {
				return true
			}
		}
		return false
	})
}

// BringsIn reports whether facts that came from elsewhere, causes first, bring a
// partner into the instance: participants, or others whom these facts bring in,
// give it work.
func (m *Machine) BringsIn(p workflow.PartnerID, facts []Received) bool {
	return m.state.broughtIn(facts)[p]
}

// broughtIn are those whom facts bring into the instance.
func (s *State) broughtIn(facts []Received) map[workflow.PartnerID]bool {
	in := map[workflow.PartnerID]bool{}
	for _, f := range facts {
		if by := f.Fact.Chain.Author; s.participates(by) || in[by] {
			for who := range f.Fact.Body.appoints() {
				in[who] = true
			}
		}
	}
	return in
}

// Audience are those that are to have all facts in the end: the participants,
// and after them the others who took part as far as they knew. This follows from the
// facts alone.
func (m *Machine) Audience() []workflow.PartnerID {
	ps := slices.Clone(m.state.Participants())
	for _, c := range m.log.chains {
		if p := c.id.Author; !m.Participates(p) && m.tookPart(p) && m.log.byAuthor[p][0] == c {
			ps = append(ps, p)
		}
	}
	return ps
}

// Genesis is the fact that created the instance.
func (m *Machine) Genesis() *Fact { return m.log.genesis.fact }

// GenesisSize is how many bytes the genesis has.
func (m *Machine) GenesisSize() int { return len(m.log.genesis.raw) }

// Waiting reports whether a contingency waits for somebody who can take it, or a
// person's task here for somebody to perform it.
func (m *Machine) Waiting() bool {
	return len(m.nobody) > 0 || m.state.pending > 0
}
