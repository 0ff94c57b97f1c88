package choreo

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Create makes a new instance and the machine of its initiator. Where the definition wants a role of
// its creator, the genesis shows it: by the word of the user who creates it, or else by the credentials of
// the partner.
func Create(
	self Self, def *workflow.Definition, plan *partition.Plan, g *fact.Genesis, annex *fact.Annex, now Moment,
) (*Machine, error) {
	f := &fact.Fact{
		Format: fact.Format, Chain: fact.Chain{Author: self.Partner, Incarnation: self.Incarnation}, Seq: 1,
		At: wall(now.Wall), Body: fact.Body{Genesis: g, Annex: annex},
	}
	if def.CreatorRole != "" {
		if err := self.signs(f); err != nil {
			return nil, err
		}
	}
	raw, id, err := f.Encode()
	if err != nil {
		return nil, err
	}
	m, err := Open(self, def, plan, fact.Received{Fact: f, ID: id, Raw: raw})
	if err != nil {
		return nil, err
	}
	m.unsaved = append(m.unsaved, m.log.Genesis())
	return m, nil
}

// Open makes the machine of an instance from its genesis: before facts are
// loaded from a store, or when the genesis came from another partner.
func Open(self Self, def *workflow.Definition, plan *partition.Plan, genesis fact.Received) (*Machine, error) {
	l, err := log.NewLog(genesis.Fact, genesis.Raw, genesis.ID, genesis.Att)
	if err != nil {
		return nil, err
	}
	g := genesis.Fact.Body.Genesis
	if def.Hash() != g.Definition {
		return nil, fmt.Errorf("%w: instance of definition %s, opened with %s", fact.ErrInvalid, g.Definition,
			def.Hash())
	}
	if err := placed(plan, g); err != nil {
		return nil, fmt.Errorf("%w: %w", fact.ErrInvalid, err)
	}
	by, err := mayCreate(self.Trust, def, genesis.Fact)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", fact.ErrInvalid, err)
	}
	if err := given(def, g); err != nil {
		return nil, fmt.Errorf("%w: %w", fact.ErrInvalid, err)
	}
	m := &Machine{
		self: self.Partner, chain: fact.Chain{Author: self.Partner, Incarnation: self.Incarnation},
		log: l, state: state.NewState(def, plan, l, self.Trust), begunBy: by,
		peers: map[workflow.PartnerID]*peer{}, perhapsDue: map[workflow.PartnerID]bool{},
		entrusted: map[workflow.PartnerID]entrusted{},
		running:   map[fact.AttemptID]bool{}, again: map[fact.AttemptID]time.Duration{},
		graces: map[fact.AttemptID]time.Duration{},
		ended:  map[workflow.PartitionName]bool{}, nobody: map[fact.AttemptID]string{},
		unseen: map[fact.AttemptID]string{}, keeps: map[fact.AttemptID]bool{},
		claimedAt: map[fact.ID]time.Duration{}, clocks: newClocks(&l.Steps),
	}
	m.does, m.served = self.Instant, self.Served
	m.readDefinition()
	m.door = newDoor(m.self, l, m.state)
	if genesis.Fact.Chain == m.chain {
		m.own = l.Genesis()
	}
	m.state.Settle()
	return m, nil
}

// given checks that a genesis gives data only what their declarations allow.
func given(def *workflow.Definition, g *fact.Genesis) error {
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
func placed(plan *partition.Plan, g *fact.Genesis) error {
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
func (m *Machine) Load(facts []fact.Received, owe bool) error {
	es, err := m.log.InsertAll(facts)
	if err != nil {
		return err
	}
	m.fold(es)
	m.state.TakeUncounted() // that is no news
	for _, e := range m.log.Order() {
		if e.Fact.Chain == m.chain && (m.own == nil || e.Fact.Seq > m.own.Fact.Seq) {
			m.own = e
		}
	}
	for _, p := range m.state.Participants() {
		if owe {
			m.owe(p)
		}
	}
	m.told = len(m.log.Order())
	for _, g := range m.state.Placements() {
		m.ended[g.Partition] = m.partitionDone(g.Partition)
	}
	return nil
}

// Adopt has the genesis, which came from another partner, made durable here.
func (m *Machine) Adopt() { m.unsaved = append(m.unsaved, m.log.Genesis()) }

// Receive inserts facts that came from a peer. Facts that are here already are
// passed over, and so is what is beyond what is taken in of an author (admit.go,
// Declined). An error wraps ErrMissingPast (the sender must send more), ErrNoRoom,
// fact.ErrInvalid; with ErrMissingPast, facts before the offending one stay. With ErrOtherInstance none does:
// chains are named alike in all instances, so nothing of such facts may be looked at here.
func (m *Machine) Receive(from workflow.PartnerID, facts []fact.Received) (added int, err error) {
	if slices.ContainsFunc(facts, func(f fact.Received) bool { return f.Instance() != m.Instance() }) {
		return 0, log.ErrOtherInstance
	}
	m.Here(from)
	if err := m.log.Misnamed(facts); err != nil {
		return 0, err
	}
	taken, all := m.log.Vouched(facts), true
	if from != m.self {
		taken, all = m.admit(from, taken)
	}
	es, err := m.log.InsertAll(taken)
	if errors.Is(err, log.ErrMissingPast) {
		if all {
			in := m.state.BroughtIn(taken)
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
		m.fold(es)
		m.comeTrue()
	}
	if !m.Participates(from) && m.branchAppoints(from, facts) {
		m.peer(from).broughtIn = true
	}
	if p := m.peer(from); err == nil {
		for _, f := range facts {
			p.has(m.log, m.log.ByID()[f.ID])
		}
	}
	return len(es), err
}

// PutBack inserts facts that this node had before, and that were saved from a store which
// lost others. Those stay out that nothing vouches for any more, as the later fact of their
// chain whose attestation covered them is lost: no peer would take them from us, nor what
// we would then build upon them. A partner that still has that fact sends them with it.
// It reports how many facts are new here, and whether all of them are here now.
func (m *Machine) PutBack(saved []fact.Received) (added int, all bool) {
	proven := m.log.StillVouched(saved)
	added, err := m.Receive(m.self, proven)
	return added, err == nil && len(proven) == len(saved)
}

// branchAppoints reports whether among facts that were not taken in, as they are one branch
// too many of their chain, is one by which a participant from the start gave p work: with an
// attestation of its own, as such facts go (BringsIn).
func (m *Machine) branchAppoints(p workflow.PartnerID, facts []fact.Received) bool {
	return slices.ContainsFunc(facts, func(f fact.Received) bool {
		if f.Att == nil || m.door.declined[f.ID].Why != TooManyForks || !m.log.Original()[f.Fact.Chain.Author] {
			return false
		}
		for who := range f.Fact.Body.Appoints() {
			if who == p {
				return true
			}
		}
		return false
	})
}
