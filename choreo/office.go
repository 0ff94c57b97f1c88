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
func (o outlook) coordinator() workflow.PartnerID {
	if o.state.genesis.Coordination != workflow.Orchestration {
		return ""
	}
	c := o.partners.Coordinator()
	if c == "" || !o.Participates(c) || (c != o.self && o.partners.Gone(c)) {
		return ""
	}
	return c
}

// router is the partner that hands on what this node has to tell; empty:
// itself.
func (d *decision) router() workflow.PartnerID {
	c := d.coordinator()
	if c == "" || c == d.self {
		return c
	}
	if w := d.unanswered; w != nil && (w.by != c || d.peer(c).acked.covers(w.owed)) {
		d.unanswered = nil
	}
	if !d.partners.Reachable(c) || d.unanswered != nil && d.now.Boot >= d.unanswered.since+officePatience {
		return ""
	}
	return c
}

// awaitOffice begins to wait for the acknowledgement of what the coordinator is owed,
// and asks to be woken when that has lasted for too long.
func (d *decision) awaitOffice() {
	if d.orchestrator == "" || d.orchestrator == d.self {
		return
	}
	if d.unanswered == nil && d.Owes(d.orchestrator) {
		d.unanswered = &unanswered{by: d.orchestrator, since: d.now.Boot, owed: d.peer(d.orchestrator).owed}
	}
	if d.unanswered != nil {
		d.out.wake(d.unanswered.since + officePatience)
	}
}
