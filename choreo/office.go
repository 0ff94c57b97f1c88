package choreo

import (
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file says which node hands on what this one has to tell (route.go): in
// orchestration the coordinator, while it can be reached and answers, else this node
// itself.
//
// So a hand-over waits for a coordinator that is dead for officePatience at most, which
// is less than a guardian-timeout. Only what it acknowledged and did not hand on before
// it died waits until this node finds that it cannot be reached, or until partners
// compare what they have (30 s).

// officePatience is how long the coordinator may leave something without
// acknowledgement: several attempts to send it.
const officePatience = GuardianTimeout * 2 / 3

// unanswered is what a coordinator was to have at a moment, and has not acknowledged.
type unanswered struct {
	by    workflow.PartnerID
	since time.Duration // Boot
	owed  vector
}

// coordinator is the partner that orchestrates the instance now: nobody in
// choreography, or while no living participant holds the office.
func (m *Machine) coordinator(partners Partners) workflow.PartnerID {
	if m.state.genesis.Coordination != workflow.Orchestration {
		return ""
	}
	c := partners.Coordinator()
	if c == "" || !m.Participates(c) || (c != m.self && partners.Gone(c)) {
		return ""
	}
	return c
}

// router is the partner that hands on what this node has to tell; empty:
// itself.
func (m *Machine) router(now Moment, partners Partners) workflow.PartnerID {
	c := m.coordinator(partners)
	if c == "" || c == m.self {
		return c
	}
	if w := m.unanswered; w != nil && (w.by != c || m.peer(c).acked.covers(w.owed)) {
		m.unanswered = nil
	}
	if !partners.Reachable(c) || m.unanswered != nil && now.Boot >= m.unanswered.since+officePatience {
		return ""
	}
	return c
}

// awaitOffice begins to wait for the acknowledgement of what the coordinator is owed,
// and asks to be woken when that has lasted for too long.
func (m *Machine) awaitOffice(now Moment, r *Ready) {
	if m.orchestrator == "" || m.orchestrator == m.self {
		return
	}
	if m.unanswered == nil && m.Owes(m.orchestrator) {
		m.unanswered = &unanswered{by: m.orchestrator, since: now.Boot, owed: m.peer(m.orchestrator).owed}
	}
	if m.unanswered != nil {
		r.wake(m.unanswered.since + officePatience)
	}
}
