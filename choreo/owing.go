package choreo

import (
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file says what must reach each peer now, and whether it is under way.

func (m *Machine) peer(p workflow.PartnerID) *peer {
	pr := m.peers[p]
	if pr == nil {
		pr = &peer{}
		m.peers[p] = pr
	}
	return pr
}

// oweFact says that a fact, and with it its past, must reach p.
func (m *Machine) oweFact(p workflow.PartnerID, e *log.Entry) {
	if p != m.self && p != "" {
		pr := m.peer(p)
		pr.owed = upTo(pr.owed, e, m.log)
		m.perhapsDue[p] = true
	}
}

// owe says that all of our chain so far must reach p.
func (m *Machine) owe(p workflow.PartnerID) {
	if m.own != nil {
		m.oweFact(p, m.own)
	}
}

// due reports whether p lacks something that must reach it now and is not under
// way to it.
func (m *Machine) due(p workflow.PartnerID) bool {
	pr := m.peers[p]
	return pr != nil && !pr.underWay(&m.log.Steps).Covers(pr.owed)
}

// allDue are the participants that are due, in the order of succession.
func (m *Machine) allDue() (out []workflow.PartnerID) {
	for p := range m.perhapsDue {
		switch m.log.Steps++; {
		case !m.due(p):
			delete(m.perhapsDue, p) // until more is owed, or less was heard
		case m.Participates(p):
			out = append(out, p)
		}
	}
	return m.state.InSuccession(out)
}

// Behind reports whether p is not known to have all that this replica has.
func (m *Machine) Behind(p workflow.PartnerID) bool {
	return !m.peer(p).acked.Covers(m.log.All())
}

// Compares reports whether p is to be told what is here, so that it says what it has: it is
// not known to have all of this, or the instance runs and this node is out of it, as a fork
// had brought it in. Then nobody need think of telling it what follows.
func (m *Machine) Compares(p workflow.PartnerID) bool {
	return m.Behind(p) || m.Overall() == workflow.InstanceRunning && !m.Participates(m.self)
}

func (m *Machine) mine(e *log.Entry) bool { return e.Fact.Chain.Author == m.self }
