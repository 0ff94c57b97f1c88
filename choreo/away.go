package choreo

import (
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is about participants that cannot be reached. An author can bring in as many as
// it likes, which need not exist; what all are owed must not cost a step for each of them. So
// the driver says of whom it could not send anything to that it is away. What all are owed is
// then noted once, for all who are away, and each is owed it when it is here again.
//
// Whoever says something is here. Nothing of this is kept: whoever is away after a restart is
// found to be so again when there is something to send.

// Away tells the machine that a partner cannot be reached: it is not named among those who
// are to be told (Effects.Tell) for what all are, until it is here again.
func (m *Machine) Away(p workflow.PartnerID) {
	pr := m.peer(p)
	if delete(m.perhapsDue, p); p == m.self || pr.away {
		return
	}
	if m.near == nil {
		m.state.TakeNewcomers() // they are among the participants
		m.near = []workflow.PartnerID{}
		m.bringNear(m.state.Participants())
	}
	pr.away, pr.missed = true, len(m.missed)
}

// Here tells the machine that a partner can be reached: it is owed what it missed.
func (m *Machine) Here(p workflow.PartnerID) {
	pr := m.peers[p]
	if pr == nil || !pr.away {
		return
	}
	m.catchUp(pr)
	pr.away = false
	m.perhapsDue[p] = true
	m.comesNear(p)
}

// catchUp has a peer that is away be owed what it missed.
func (m *Machine) catchUp(pr *peer) {
	if !pr.away {
		return
	}
	for ; pr.missed < len(m.missed); pr.missed++ {
		m.log.Steps++
		pr.owed = upTo(pr.owed, m.missed[pr.missed], m.log)
	}
}

// bringNear notes of participants that those who are not away are near.
func (m *Machine) bringNear(ps []workflow.PartnerID) {
	for _, p := range ps {
		m.log.Steps++
		if !m.peer(p).away {
			m.comesNear(p)
		}
	}
}

func (m *Machine) comesNear(p workflow.PartnerID) {
	if pr := m.peer(p); !pr.near {
		pr.near = true
		m.near = append(m.near, p)
	}
}

// within are the participants that are owed at once what all are: those that are not away.
func (m *Machine) within() []workflow.PartnerID {
	if m.near == nil {
		return m.state.Participants()
	}
	m.bringNear(m.state.TakeNewcomers())
	kept := m.near[:0]
	for _, p := range m.near {
		m.log.Steps++
		if pr := m.peer(p); pr.away || !m.Participates(p) {
			pr.near = false // a newcomer, if it takes part again
			continue
		}
		kept = append(kept, p)
	}
	m.near = kept
	return m.near
}
