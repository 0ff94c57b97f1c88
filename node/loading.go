package node

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/index"
	"github.com/mutirao-mesh/mutirao/node/library"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// loadAgain loads an instance after a while, and tries until its store can be read:
// nobody else may ever ask for it, and its waits go on. What partners told meanwhile
// was not taken in, so they are asked.
func (s *shard) loadAgain(id workflow.InstanceID) {
	s.again[id] = true
	s.later(id, func(s *shard) error {
		delete(s.again, id)
		h, err := s.find(id)
		switch {
		case err == nil:
			s.touch(h)
			for _, p := range h.m.Audience() {
				if p != s.n.member.ID() && s.n.up(p) {
					s.sendHeads(p, id, wire.Ask)
				}
			}
		case errors.As(err, new(*api.Error)): // set aside
			s.n.index.Forget(id)
		case errors.Is(err, kv.ErrNotFound): // not stored: it had only begun
			s.n.index.Forget(id)
			s.n.call(s.n.lineup.End(id))
		default:
			s.log.Error("an instance cannot be loaded again yet", "instance", id, "error", err)
			s.loadAgain(id)
		}
		return nil
	})
}

// putOff reports whether an instance waits to be loaded again. What partners say of it
// meanwhile is not heard: they are asked then, and to load it for each of their frames,
// and to forget it again as nothing can be stored, has each of them answered.
func (s *shard) putOff(id workflow.InstanceID) bool { return s.again[id] && s.held[id] == nil }

// find returns an instance, loading it where it is not in memory. One that turns out
// to be unreadable is set aside.
func (s *shard) find(id workflow.InstanceID) (*held, error) {
	if h := s.held[id]; h != nil {
		return h, nil
	}
	if q, aside := s.aside[id]; aside {
		return nil, errAside(id, q)
	}
	b, err := s.n.store.Get(index.Key(id))
	if err != nil {
		return nil, err
	}
	sum := s.readSummary(id, b)
	if sum.Closed {
		return nil, kv.ErrNotFound
	}
	h, err := s.load(id, sum)
	var u *unreadable
	if errors.As(err, &u) {
		err = s.n.isolate(id, u)
		if u.lost {
			s.n.restoration.forgot()
		}
		return nil, errors.Join(errAside(id, s.aside[id]), err)
	}
	return h, err
}

// readSummary reads the summary of an instance. Of one that cannot be read the
// instance's own facts say the same (see load).
func (s *shard) readSummary(id workflow.InstanceID, b []byte) index.Summary {
	sum, err := index.ReadSummary(b)
	if err != nil {
		s.n.count("unreadable.summaries", 1)
		s.log.Warn("the summary of an instance cannot be read and is made again", "instance", id, "error", err)
		return index.Summary{}
	}
	return sum
}

// load reads an instance from the store. An *unreadable error says that what is
// stored will not do; any other, that the store cannot be read now.
func (s *shard) load(id workflow.InstanceID, sum index.Summary) (*held, error) {
	facts, came, err := s.loadFacts(id)
	if err != nil {
		return nil, err
	}
	g := facts[0].Fact.Body.Genesis
	if g == nil {
		return nil, &unreadable{why: errors.New("its first fact is no genesis"), lost: true}
	}
	def, err := s.n.definitions.Get(g.Definition)
	if err != nil {
		return nil, &unreadable{why: fmt.Errorf("its workflow cannot be read: %w", err)}
	}
	waits, err := s.readWaits(id)
	if err != nil {
		return nil, err
	}
	m, err := choreo.Open(s.n.self(), def.Def, def.Plan, facts[0])
	if err == nil {
		err = m.Resume(facts[1:], !sum.Settled, waits)
	}
	if err != nil {
		return nil, &unreadable{why: fmt.Errorf("it cannot be opened: %w", err)}
	}
	if sum.Definition != def.Hash {
		sum = firstSummary(m, def)
	}
	h := s.hold(m, def, sum)
	s.lineUp(h)
	for i := range facts {
		h.cameAt(facts[i:i+1], came[i])
	}
	if sum.Settled {
		h.settledAt = m.Len()
	}
	s.weigh(h) // before more of it is taken in
	h.kept, err = s.loadKept(id)
	return h, err
}

// loadFacts reads the facts of an instance, which lie in the order of their places, and when
// they came.
func (s *shard) loadFacts(id workflow.InstanceID) (facts []fact.Received, came []int64, err error) {
	err = s.n.store.Scan(factPrefix(id), func(key, value []byte) error {
		from := len(facts)
		err := readFacts(value, func(f fact.Received, at int64) {
			facts, came = append(facts, f), append(came, at)
		})
		if err == nil && !bytes.Equal(key, factKey(id, from)) {
			err = fmt.Errorf("place %d is empty", from)
		}
		if err != nil {
			return &unreadable{why: fmt.Errorf("the facts from %d on cannot be read: %w", from, err), lost: true}
		}
		return nil
	})
	switch {
	case errors.Is(err, kv.ErrDamaged):
		return nil, nil, &unreadable{why: err, lost: true}
	case err != nil:
		return nil, nil, err
	case len(facts) == 0:
		return nil, nil, &unreadable{why: errors.New("it has no facts"), lost: true}
	}
	return facts, came, nil
}

// hold keeps an instance in memory.
func (s *shard) hold(m *choreo.Machine, def *library.Definition, sum index.Summary) *held {
	h := &held{id: m.Instance(), m: m, def: def, sum: sum, pending: map[workflow.PartnerID]*inflight{}}
	h.expected = s.n.expect(def, m)
	s.enlist(h)
	return h
}

// create holds a machine for a new instance, of which nothing is stored yet. When it began
// is its place among this node's own.
func (s *shard) create(m *choreo.Machine, def *library.Definition, began int64) *held {
	sum := firstSummary(m, def)
	sum.Began = began
	h := s.hold(m, def, sum)
	s.lineUp(h)
	return h
}

func firstSummary(m *choreo.Machine, def *library.Definition) index.Summary {
	g := m.Genesis()
	return index.Summary{
		Definition: def.Hash, Workflow: def.Def.Name, Version: def.Def.Version, By: g.Chain.Author, Started: g.At,
		Began: g.At, Of: index.PartOf(m.Parent()), Uses: usedBy(m), Nonce: g.Body.Genesis.Nonce,
	}
}

// usedBy is how a summary names the definitions that an instance's children use.
func usedBy(m *choreo.Machine) string {
	var out []string
	for _, p := range m.Pins() {
		out = append(out, p.Definition.String())
	}
	return strings.Join(out, " ")
}

// loadKept reads the saved facts of an instance that is loaded.
func (s *shard) loadKept(id workflow.InstanceID) (kept []fact.Received, err error) {
	err = s.n.store.Scan(keptPrefix(id), func(_, value []byte) error {
		_ = readFacts(value, func(r fact.Received, _ int64) { kept = append(kept, r) }) // as when it was saved
		return nil
	})
	return kept, err
}
