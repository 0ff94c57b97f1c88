package choreo

import "github.com/mutirao-mesh/mutirao/workflow"

// This file says who is told what at once (docs/systems.md, Partitions;
// docs/design.md, idea 4). Everything else that a peer lacks travels with the next
// message to it, or with anti-entropy.
//
//	genesis, verdict, assignment, cancellation,
//	seen, write-off, what compensations do       → all participants
//	success in a slot with several attempts      → all participants
//	success with a successor elsewhere           → the successors' holders, the guardian and its successor
//	success that may have written data           → likewise, the holders of tasks whose rules ask for them
//	success that makes a predecessor ready       → the holders of emergency tasks that wait for that one
//	ready or start that a rule elsewhere asks for → the holders of the tasks with that rule
//	start of a task that still runs after a while → the successors' holders, the guardian (begun.go)
//	the end of a partition                       → all participants
//
// In orchestration, while the coordinator takes part and answers, all that goes to it
// instead, and it hands on what it received by the same table. When it does not
// answer, or is another, everything of ours is routed again (office.go).
//
// A message to a peer carries all that the peer lacks, so that its replica
// stays causally closed; hence only the newest fact of our chain matters.

// route works out who is owed what since it was last called.
func (m *Machine) route(now Moment, partners Partners) {
	if c := m.router(now, partners); c != m.orchestrator {
		m.orchestrator, m.told, m.begun = c, 0, nil
		clear(m.ended)
	}
	for ; m.told < len(m.log.order); m.told++ {
		e := m.log.order[m.told]
		if e.counted && (e.fact.Chain == m.chain || m.orchestrator == m.self) {
			m.routeFact(e, now, partners)
		}
	}
	for _, g := range m.state.genesis.Assign {
		mine := g.Partner == m.self || m.orchestrator == m.self
		done := mine && m.partitionDone(g.Partition)
		if done == m.ended[g.Partition] {
			continue
		}
		if done {
			m.oweAll(m.latest())
		}
		m.ended[g.Partition] = done // what was only presumed to be over may go on, and end again
	}
}

// latest is the newest fact that is ours to tell of.
func (m *Machine) latest() *entry {
	if m.orchestrator == m.self {
		return m.log.order[len(m.log.order)-1]
	}
	return m.own
}

func (m *Machine) routeFact(e *entry, now Moment, partners Partners) {
	b := &e.fact.Body
	switch {
	case b.Genesis != nil, b.Verdict != nil, b.Assign != nil, b.Cancel != nil, b.Seen != nil, b.WriteOff != nil:
		m.oweAll(e)
	case b.Success != nil:
		m.routeSuccess(e, m.state.attempts[b.Success.Attempt], partners)
	case b.Ready != nil:
		m.oweWhoAsks(e, m.state.attempts[b.Ready.Attempt], workflow.BecameReady)
	case b.Start != nil && m.state.attempts[b.Start.Attempt].undoes != nil:
		m.oweAll(e)
	case b.Start != nil:
		a := m.state.attempts[b.Start.Attempt]
		m.oweWhoAsks(e, a, workflow.BecameRunning)
		if a.start == e && a.runs() {
			m.begun = append(m.begun, begun{e, now.Boot})
		}
	}
}

// tell owes a fact to p, or in its place to the coordinator.
func (m *Machine) tell(p workflow.PartnerID, e *entry) {
	if m.orchestrator != "" && m.orchestrator != m.self && e.fact.Body.Genesis == nil {
		p = m.orchestrator
	}
	m.oweFact(p, e)
}

func (m *Machine) routeSuccess(e *entry, a *Attempt, partners Partners) {
	if len(a.Slot.Attempts) > 1 || a.undoes != nil {
		m.oweAll(e)
		return
	}
	author := e.fact.Chain.Author
	elsewhere := false
	for p := range m.awaiting(a) {
		if p != author {
			elsewhere = true
			m.tell(p, e)
		}
	}
	if elsewhere {
		for _, p := range m.guardians(partners) {
			m.tell(p, e)
		}
	}
	for _, part := range m.state.plan.EmergencyListeners(a.Slot.Task.Name) {
		m.tell(m.holder(part), e)
		for _, sl := range m.state.patient {
			if sl.Current.Depth > 1 && m.state.plan.Home(sl.Task.Name) == part {
				m.tell(sl.Current.Partner, e)
			}
		}
	}
}

// awaiting are those who hold what waits for an attempt's success, or may wait for
// data that it writes.
func (m *Machine) awaiting(a *Attempt) map[workflow.PartnerID]bool {
	next := map[workflow.PartnerID]bool{}
	for _, d := range a.Slot.dependents {
		m.log.steps++
		next[d.Current.Partner] = true
	}
	for _, it := range a.Slot.writes {
		for p := range it.holders {
			next[p] = true
		}
	}
	return next
}

// oweWhoAsks owes the holders of tasks whose rules ask for this transition.
// Readiness is asked for by starting tasks too: started means ready.
func (m *Machine) oweWhoAsks(e *entry, a *Attempt, tr workflow.Transition) {
	asks := func(tr workflow.Transition) {
		if q := m.state.questions[asked{tr, a.Slot.Task.Name}]; q != nil {
			for _, n := range q.terms {
				m.log.steps++
				m.tell(n.of.Current.Partner, e)
			}
		}
	}
	if asks(tr); tr == workflow.BecameRunning {
		asks(workflow.BecameReady)
	}
}

// oweAll owes a fact to all participants.
func (m *Machine) oweAll(e *entry) {
	if e == nil {
		return // nothing was said here
	}
	for _, p := range m.state.Participants() {
		m.tell(p, e)
	}
}

// guardians are the one who judges and its successor.
func (m *Machine) guardians(partners Partners) []workflow.PartnerID {
	judges := m.judges(partners)
	return judges[:min(2, len(judges))]
}

func (m *Machine) holder(p workflow.PartitionName) workflow.PartnerID {
	return m.state.holder[p]
}

// partitionDone reports whether a partition has ended, also for this node if it holds
// what others only presume to have failed.
func (m *Machine) partitionDone(p workflow.PartitionName) bool {
	return m.look().part(p).left == 0
}
