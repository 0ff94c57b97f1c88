package choreo

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file says who is told what at once (spec/choreography.md, Partitions;
// design.md, idea 4). Everything else that a peer lacks travels with the next
// message to it, or with anti-entropy.
//
//	genesis, verdict, assignment, cancellation  → all participants
//	success with a successor elsewhere           → the successors' holders, the guardian and its successor
//	success that may have written data           → likewise, the holders of tasks whose rules ask for them
//	success that makes a predecessor ready       → the holders of emergency tasks that wait for that one
//	ready or start that a rule elsewhere asks for → the holders of the tasks with that rule
//	the end of a partition, of a contingency     → all participants
//
// A message to a peer carries all that the peer lacks, so that its replica
// stays causally closed; hence only the newest fact of our chain matters.

// route works out who is owed what since it was last called.
func (m *Machine) route(partners Partners) {
	for ; m.told < len(m.log.order); m.told++ {
		if e := m.log.order[m.told]; e.fact.Chain == m.chain && e.counted {
			m.routeFact(e, partners)
		}
	}
	for _, g := range m.state.genesis.Assign {
		if g.Partner == m.self && !m.ended[g.Partition] && m.partitionDone(g.Partition) {
			m.ended[g.Partition] = true
			m.oweAll()
		}
	}
}

func (m *Machine) routeFact(e *entry, partners Partners) {
	b := &e.fact.Body
	switch {
	case b.Genesis != nil, b.Verdict != nil, b.Assign != nil, b.Cancel != nil:
		m.oweAll()
	case b.Success != nil:
		m.routeSuccess(m.state.attempts[b.Success.Attempt], partners)
	case b.Ready != nil:
		m.oweWhoAsks(m.state.attempts[b.Ready.Attempt], workflow.BecameReady)
	case b.Start != nil:
		m.oweWhoAsks(m.state.attempts[b.Start.Attempt], workflow.BecameRunning)
	}
}

func (m *Machine) routeSuccess(a *Attempt, partners Partners) {
	if a.Depth > 1 {
		m.oweAll()
		return
	}
	elsewhere := false
	for _, d := range slices.Concat(a.Slot.dependents, a.Slot.readers) {
		if p := d.Current.Partner; p != m.self {
			elsewhere = true
			m.owe(p)
		}
	}
	if elsewhere {
		for _, p := range m.guardians(partners) {
			m.owe(p)
		}
	}
	for _, part := range m.state.plan.EmergencyListeners(a.Slot.Task.Name) {
		m.owe(m.holder(part))
	}
}

// oweWhoAsks owes the holders of tasks whose rules ask for this transition.
// Readiness is asked for by starting tasks too: started means ready.
func (m *Machine) oweWhoAsks(a *Attempt, tr workflow.Transition) {
	for _, d := range a.Slot.dependents {
		d.Task.Rule.Terms(func(r *workflow.Rule) {
			asks := r.Transition == tr || (tr == workflow.BecameRunning && r.Transition == workflow.BecameReady)
			if r.Op == workflow.OpTask && r.Task == a.Slot.Task.Name && asks {
				m.owe(d.Current.Partner)
			}
		})
	}
}

func (m *Machine) oweAll() {
	for _, p := range m.state.Participants() {
		m.owe(p)
	}
}

// guardians are the one who judges and its successor: the first two of the
// succession who are not gone.
func (m *Machine) guardians(partners Partners) []workflow.PartnerID {
	living := slices.DeleteFunc(slices.Clone(m.state.genesis.Succession), partners.Gone)
	return living[:min(2, len(living))]
}

func (m *Machine) holder(p workflow.PartitionName) workflow.PartnerID {
	for _, g := range m.state.genesis.Assign {
		if g.Partition == p {
			return g.Partner
		}
	}
	return ""
}

func (m *Machine) partitionDone(p workflow.PartitionName) bool {
	for _, t := range m.state.plan.Partition(p).Tasks {
		if sl := m.state.bySlot[t]; sl != nil && !sl.State.Done() {
			return false
		}
	}
	return true
}
