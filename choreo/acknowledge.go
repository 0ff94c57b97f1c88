package choreo

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file takes in what a peer says that it has, and what follows for what it is sent.

// Acknowledge notes what a peer says that it has made durable, and reports whether it
// never said so much before. A new incarnation voids what it was believed to have; what
// is under way to it still is: it can say so as often as it likes.
func (m *Machine) Acknowledge(from workflow.PartnerID, inc fact.Incarnation, heads []fact.Head) (more bool) {
	p := m.peer(from)
	m.Here(from)
	m.perhapsDue[from] = true
	if p.incarnation != inc {
		p.incarnation, p.acked, p.refused, p.disputed = inc, log.Vector{}, nil, nil
	}
	p.heads, p.ahead = heads, len(heads) <= fewHeads && !m.HasAll(heads)
	p.acked = p.acked.Join(m.log.Covered(heads, p.disputed), &m.log.Steps)
	return p.more(&m.log.Steps)
}

// fewHeads is up to how many chains a peer may name for what it said before facts of them were here to count later: each
// fact that comes costs a step for each of them.
const fewHeads = 64

// comeTrue counts what peers said that they have, and that was not here then, as far as it is now.
func (m *Machine) comeTrue() {
	for _, p := range m.peers {
		if p.ahead {
			m.log.Steps += len(p.heads)
			p.ahead = !m.HasAll(p.heads)
			p.acked = p.acked.Join(m.log.Covered(p.heads, p.disputed), &m.log.Steps)
		}
	}
}

// more notes all that a peer is known to have, and reports whether it never said so much before.
func (p *peer) more(steps *int) (more bool) {
	more = !p.most.Covers(p.acked)
	p.most = p.most.Join(p.acked, steps)
	return more
}

// ShowsMore reports whether the facts that a peer sent last show, as an acknowledgement would, that it has all that was under
// way to it, and more than it ever said.
func (m *Machine) ShowsMore(from workflow.PartnerID) bool {
	p := m.peer(from)
	return p.acked.Covers(p.sent) && p.more(&m.log.Steps)
}

// Restate is Acknowledge for a peer that says all that it has, in a question or
// an answer: what it was believed to have beyond that, it has not. (It may have
// lied, or facts may have been put under its name on the way.)
func (m *Machine) Restate(from workflow.PartnerID, inc fact.Incarnation, heads []fact.Head) (more bool) {
	m.peer(from).acked = log.Vector{}
	return m.Acknowledge(from, inc, heads)
}

// doubt has the machine believe of chains that turned out to be forked only that
// its peers have what they named: numbers of such a chain say nothing.
func (m *Machine) doubt() {
	for _, c := range m.log.TakeForked() {
		for id, p := range m.peers {
			m.perhapsDue[id] = true
			for _, s := range c.Strands {
				p.acked = p.acked.With(s.Place, 0)
			}
			p.acked = p.acked.Join(m.log.Covered(p.heads, p.disputed), &m.log.Steps)
		}
	}
}

// dispute notes that a peer has a fact which forks a chain that is not forked here, and
// which is not taken in: numbers say nothing of what that peer has of the chain.
func (m *Machine) dispute(from workflow.PartnerID, f fact.Received) {
	c, p := m.log.Index()[f.Fact.Chain], m.peer(from)
	if c == nil || c.ForkedAt > 0 || p.disputed[c] || f.Fact.Seq > c.Strands[0].End() {
		return
	}
	if p.disputed == nil {
		p.disputed = map[*log.Chain]bool{}
	}
	p.disputed[c] = true
	p.acked = p.acked.With(c.Strands[0].Place, 0).Join(m.log.Covered(p.heads, p.disputed), &m.log.Steps)
	m.perhapsDue[from] = true
}

// Forget has the next Outgoing send again what was not acknowledged: after a
// reconnection, or when an acknowledgement is overdue.
func (m *Machine) Forget(p workflow.PartnerID) {
	m.peer(p).sent = log.Vector{}
	m.Here(p)
	m.perhapsDue[p] = true
}

// Greet is Forget where the conversation with a peer begins again: what it refused before
// goes again too.
func (m *Machine) Greet(p workflow.PartnerID) {
	m.peer(p).refused = nil
	m.Forget(p)
}

// Owes reports whether p lacks something that must reach it now.
func (m *Machine) Owes(p workflow.PartnerID) bool {
	pr := m.peers[p]
	if pr == nil {
		return false
	}
	m.catchUp(pr)
	return !pr.acked.Covers(pr.owed)
}

// AheadOfUs reports whether heads name a fact of our own chain that is not here,
// or facts of it came from others: then this store was rolled back, and a new
// incarnation is needed.
func (m *Machine) AheadOfUs(heads []fact.Head) bool {
	return m.rolledBack() || slices.ContainsFunc(heads,
		func(h fact.Head) bool { return h.Chain == m.chain && m.log.ByID()[h.ID] == nil })
}

// HeldElsewhere reports whether another participant has made the instance durable.
func (m *Machine) HeldElsewhere() bool {
	for _, p := range m.peers {
		if p.acked.At(0) > 0 {
			return true
		}
	}
	return false
}

// Forked reports whether a partner's last chain here is proven to be forked.
func (m *Machine) Forked(p workflow.PartnerID) bool {
	chains := m.log.ByAuthor()[p]
	return len(chains) > 0 && chains[len(chains)-1].ForkedAt > 0
}
