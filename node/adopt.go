package node

import (
	"errors"
	"fmt"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/closings"
	"github.com/mutirao-mesh/mutirao/node/library"
	"github.com/mutirao-mesh/mutirao/node/quota"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file takes in instances that are new here.

// mayTell reports whether p takes part in an instance, if need be by these facts:
// a partner that a participant's verdict chose may be the first to tell of it.
func mayTell(m *choreo.Machine, p workflow.PartnerID, facts []fact.Received) bool {
	return m.Involved(p) || m.BringsIn(p, facts)
}

// adopt opens an instance that is new here. Its first fact must be its genesis. Its
// initiator and the sender may be in order, and this node take no part all the same:
// then nobody would ever tell it more, and it would take the room of its initiator.
func (s *shard) adopt(from workflow.PartnerID, f *wire.Facts, facts []fact.Received) (*held, error) {
	if len(facts) == 0 || facts[0].Fact.Body.Genesis == nil || fact.InstanceOf(facts[0].ID) != f.Instance {
		return nil, errUnknownInstance
	}
	if c, found, err := s.n.retention.closings.Of(f.Instance); err != nil || found {
		return nil, errors.Join(err, &closedHere{c})
	}
	by, self := facts[0].Fact.Chain.Author, s.n.member.ID()
	was, again := s.n.index.Get(f.Instance) // one that was set aside was never given up
	if !again && s.n.retention.closings.MayBeDropped(by, facts[0].Fact.At) {
		return nil, &closedHere{closings.Closing{Instance: f.Instance}}
	}
	next := f.Next && from == by
	// before anything dear is done
	if err := s.n.index.Room(f.Instance, s.n.config.Limits, by, self, next); err != nil {
		return nil, err
	}
	def, m, err := s.openNew(from, facts, next)
	if err != nil {
		return nil, err
	}
	needs := begunWeight(def, m) + s.n.expect(def, m).all
	if err := s.n.roomFor(by, next, needs); err != nil {
		return nil, err
	}
	outOfTurn := s.n.index.Room(f.Instance, s.n.config.Limits, by, self, false) == nil &&
		s.n.roomFor(by, false, needs) == nil
	if err := s.n.index.Begin(f.Instance, s.n.config.Limits, by, self, next, def.Hash); err != nil {
		return nil, err
	}
	beside := func(brings map[workflow.PartnerID]map[workflow.Hash]int) bool {
		return s.n.definitions.RoomBeside(def, by, s.n.people.administers(by), brings)
	}
	if !again && !s.n.index.RoomBeside(beside) {
		err = &quota.NoRoom{Why: wire.RefusedWorkflows, By: by}
	} else {
		err = s.n.definitions.Keep(def)
	}
	if err != nil {
		s.n.index.Forget(f.Instance)
		return nil, err
	}
	if m.Genesis().Chain == (fact.Chain{Author: self, Incarnation: s.n.life.incarnation()}) {
		s.n.restoration.rolledBack(from) // this node began it, and its store knows nothing of that
	}
	m.Adopt()
	m.Gap(s.n.clock.Now().Boot + moment.Grace(s.n.own.ConnectionTime())) // what others concluded may be under way
	h := s.create(m, def, max(was.Began, m.Genesis().At))
	s.touch(h)
	if !outOfTurn {
		s.tellTaken(h, from)
	}
	return h, nil
}

// openNew reads the definition of an instance that is new here, and opens its machine, if there is
// room for each, and it is for this node to take in.
func (s *shard) openNew(
	from workflow.PartnerID, facts []fact.Received, next bool,
) (*library.Definition, *choreo.Machine, error) {
	genesis := facts[0].Fact
	by, least := genesis.Chain.Author, factsWeigh(1, len(facts[0].Raw))
	if err := s.n.roomFor(by, next, instanceWeight+least); err != nil { // before its definition is read
		return nil, nil, err
	}
	def, err := s.n.definitions.Get(genesis.Body.Genesis.Definition)
	if errors.Is(err, kv.ErrNotFound) {
		if def = s.n.definitions.Fresh(genesis.Body.Genesis.Definition); def != nil { // see library.Topic.ReadAhead
			err = nil
		}
	}
	if err != nil {
		return nil, nil, err
	}
	if err := s.n.roomFor(by, next, int64(weightOf(def))+least); err != nil { // before it is opened
		return nil, nil, err
	}
	m, err := choreo.Open(s.n.self(), def.Def, def.Plan, facts[0])
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("%w: %w", errUnfit, err)
	case !mayTell(m, from, facts):
		return nil, nil, errNoParticipant
	case !mayTell(m, s.n.member.ID(), facts):
		return nil, nil, errNoPart
	}
	if err := s.mayBegin(from, def.Def, genesis); err != nil {
		return nil, nil, err
	}
	return def, m, nil
}

// mayBegin refuses an instance that its author sends, begun by the word of a user who may not begin it any more,
// as far as is known here.
func (s *shard) mayBegin(from workflow.PartnerID, def *workflow.Definition, genesis *fact.Fact) error {
	word := genesis.BegunWord()
	if len(word) == 0 || genesis.Chain.Author != from {
		return nil
	}
	signed, err := genesis.Beginning()
	if err == nil {
		err = s.n.mayHaveBegun(word, signed, from, def.CreatorRole)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errMayNotBegin, err)
	}
	return nil
}

// tellTaken tells those that take part that an instance is here now, which was refused to
// those of them that sent it before its turn.
func (s *shard) tellTaken(h *held, from workflow.PartnerID) {
	for _, p := range h.m.Audience() {
		if p != from && p != s.n.member.ID() && s.n.up(p) {
			s.sendHeads(p, h.m.Instance(), wire.Ask)
		}
	}
}

var (
	errNoParticipant   = errors.New("facts of an instance in which the sender takes no part")
	errNoPart          = errors.New("an instance in which this node takes no part")
	errMayNotBegin     = errors.New("an instance that the user who began it may not begin any more")
	errUnfit           = errors.New("an instance that has not begun as it may")
	errUnknownInstance = errors.New("facts of an instance that is not known here, without its genesis")
)
