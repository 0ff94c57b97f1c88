package choreo

import (
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

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
//	success, success before, or readiness of what
//	holds a resource; that it was called off      → those who give the resource out (resources.go)
//	ready or start that a rule elsewhere asks for → the holders of the tasks with that rule
//	start and success in one fact                 → as both
//	start of a task that still runs after a while → the successors' holders, the guardian (begun.go)
//	the end of a partition                       → all participants
//
// In orchestration, while the coordinator takes part and answers, all that goes to it
// instead, and it hands on what it received by the same table. When it does not
// answer, or is another, everything of ours is routed again, and those are asked that
// give no sign of having been told (office.go).
//
// Which of this goes for a kind of fact its own tell says (choreo/fact/kinds.go).
//
// A message to a peer carries all that the peer lacks, so that its replica
// stays causally closed; hence only the newest fact of our chain matters.

// tellFact owes a fact to those who are to have it at once.
func (d *decision) tellFact(e *log.Entry) {
	switch b := e.Fact.Body.Says().(type) {
	case *fact.TryFailed, *fact.Lease, *fact.Child: // nobody waits for it
	case *fact.ReadyBody:
		d.tellReady(b, e)
	case *fact.Start:
		d.tellStart(b, e)
	case *fact.Success:
		d.routeSuccess(e, d.state.Attempts()[b.Attempt])
	case *fact.Done:
		d.tellStart(b.Start, e)
		d.routeSuccess(e, d.state.Attempts()[b.Start.Attempt])
	case *fact.CalledOff:
		d.tellKeepers(e, d.state.Attempts()[b.Attempt].Slot) // nobody else waits for it
	case *fact.Claim:
		d.tellClaim(b, e)
	case *fact.Fire, *fact.Aged:
		d.tellGuardians(e)
	default:
		d.oweAll(e)
	}
}

// tellGuardians owes a fact to those who may come to hold what it is about.
func (d *decision) tellGuardians(e *log.Entry) {
	for _, p := range d.guardians() {
		d.tell(p, e)
	}
}

// route works out who is owed what since it was last called.
func (d *decision) route() {
	if c := d.router(); c != d.orchestrator {
		d.orchestrator, d.told, d.begun = c, 0, nil
		clear(d.ended)
		clear(d.entrusted)
	}
	for ; d.told < len(d.log.Order()); d.told++ {
		e := d.log.Order()[d.told]
		if e.Counted && (e.Fact.Chain == d.chain || d.orchestrator == d.self) {
			d.tellFact(e)
		}
	}
	for _, g := range d.state.Placements() {
		mine := g.Partner == d.self || d.orchestrator == d.self
		done := mine && d.partitionDone(g.Partition)
		if done == d.ended[g.Partition] {
			continue
		}
		if done {
			d.oweAll(d.latest())
		}
		d.ended[g.Partition] = done // what was only presumed to be over may go on, and end again
	}
}

// latest is the newest fact that is ours to tell of.
func (d *decision) latest() *log.Entry {
	if d.orchestrator == d.self {
		return d.log.Order()[len(d.log.Order())-1]
	}
	return d.own
}

// tell owes a fact to p, or in its place to the coordinator.
func (d *decision) tell(p workflow.PartnerID, e *log.Entry) {
	if d.handsOver(e) {
		d.entrust(p, e)
		p = d.orchestrator
	}
	d.oweFact(p, e)
}

// handsOver reports whether the coordinator is to tell others of a fact.
func (d *decision) handsOver(e *log.Entry) bool {
	return d.orchestrator != "" && d.orchestrator != d.self && e.Fact.Body.Genesis == nil
}

func (d *decision) routeSuccess(e *log.Entry, a *state.Attempt) {
	if len(a.Slot.Attempts) > 1 || a.Beside() {
		d.oweAll(e)
		return
	}
	author := e.Fact.Chain.Author
	elsewhere := false
	for p := range d.state.Awaiting(a) {
		if p != author {
			elsewhere = true
			d.tell(p, e)
		}
	}
	if elsewhere {
		d.tellGuardians(e)
	}
	d.tellKeepers(e, a.Slot)
	for _, part := range d.state.Plan().EmergencyListeners(a.Slot.Task.Name) {
		d.tell(d.state.Holders()[part], e)
		for _, sl := range d.state.Patient() {
			if sl.Current.Depth > 1 && d.state.Plan().Home(sl.Task.Name) == part {
				d.tell(sl.Current.Partner, e)
			}
		}
	}
}

// oweWhoAsks owes the holders of tasks whose rules ask for this transition.
// Readiness is asked for by starting tasks too: started means ready.
func (d *decision) oweWhoAsks(e *log.Entry, a *state.Attempt, tr workflow.Transition) {
	asks := func(tr workflow.Transition) {
		if q := d.state.Questions()[state.TransitionOf{Transition: tr, Task: a.Slot.Task.Name}]; q != nil {
			for _, n := range q.Terms {
				d.log.Steps++
				d.tell(n.Of.Current.Partner, e)
				d.tellKeepers(e, n.Of)
			}
		}
	}
	if asks(tr); tr == workflow.BecameRunning {
		asks(workflow.BecameReady)
	}
}

// oweAll owes a fact to all participants.
func (d *decision) oweAll(e *log.Entry) {
	if e == nil {
		return // nothing was said here
	}
	within := d.within()
	for _, p := range within {
		d.tell(p, e)
		if pr := d.peer(p); len(within) >= manySlots && d.handsOver(e) && !pr.sought {
			pr.sought = true
			d.ask(p) // of many the driver says at once who is away, though they are sent nothing
		}
	}
	if d.near != nil && !d.handsOver(e) {
		d.missed = append(d.missed, e)
	}
}

// guardians are the one who judges and its successor.
func (o outlook) guardians() []workflow.PartnerID {
	judges := o.judges()
	return judges[:min(2, len(judges))]
}

func (d *decision) tellReady(b *fact.ReadyBody, e *log.Entry) {
	d.oweWhoAsks(e, d.state.Attempts()[b.Attempt], workflow.BecameReady)
	d.tellKeepers(e, d.state.Attempts()[b.Attempt].Slot)
}

func (d *decision) tellStart(b *fact.Start, e *log.Entry) {
	a := d.state.Attempts()[b.Attempt]
	if a.Undoes != nil {
		d.oweAll(e)
		return
	}
	d.oweWhoAsks(e, a, workflow.BecameRunning)
	if a.Start == e && a.Runs() {
		d.begun = append(d.begun, begun{e, d.now.Boot})
	}
}

func (d *decision) tellClaim(c *fact.Claim, e *log.Entry) {
	if x, reserves := c.Body().(worklist.Reserve); reserves {
		d.tellReserved(e, fact.AttemptIDOf(x.Item))
		return
	}
	d.oweAll(e)
}

// tellKeepers owes a fact to those who give out what the tasks of a slot hold.
func (d *decision) tellKeepers(e *log.Entry, sl *state.Slot) {
	for _, k := range d.state.KeepersOf(sl) {
		d.tell(k, e)
	}
}

// tellReserved owes the word that an attempt has units to whoever is to do it, and to those who judge.
func (d *decision) tellReserved(e *log.Entry, id fact.AttemptID) {
	for _, a := range d.state.Attempts()[id].Slot.Attempts {
		if a.Root().ID == id {
			d.tell(a.Partner, e)
		}
	}
	d.tellGuardians(e)
}
