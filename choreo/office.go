package choreo

import (
	"maps"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/contingency/waits"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file says which node hands on what this one has to tell (route.go): in
// orchestration the coordinator, while it can be reached and answers, else this node
// itself.
//
// So a hand-over waits for a coordinator that is dead for officePatience at most, which
// is less than a guardian-timeout: until then it has acknowledged what it is to hand on,
// or this node hands on itself; and of whom it was to tell, this node knows that they
// have it, or asks them. Who is asked, and lacks something, gets it from here. A question
// and an answer are cheaper than the facts, which the partner mostly has.

// officePatience is how long the coordinator may leave something without
// acknowledgement, which is several attempts to send it, and how long those whom it is
// to tell may give no sign that they have been told.
const officePatience = waits.GuardianTimeout * 2 / 3

// coordinator is the partner that orchestrates the instance now: nobody in
// choreography, or while no living participant holds the office.
func (o outlook) coordinator() workflow.PartnerID {
	if o.state.Genesis().Coordination != workflow.Orchestration {
		return ""
	}
	c := o.partners.Coordinator()
	if c == "" || !o.Participates(c) || (c != o.self && !o.present(c)) {
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
	if w := d.unanswered; w != nil && (w.by != c || d.peer(c).acked.Covers(w.owed)) {
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

// entrust begins to wait for p to have a fact of ours that the coordinator is to tell it.
func (d *decision) entrust(p workflow.PartnerID, e *log.Entry) {
	if p == "" || d.knows(p, e) {
		return
	}
	x, waits := d.entrusted[p]
	if !waits || d.knows(p, x.newest) {
		x = entrusted{e, d.now.Boot}
	}
	if e.Fact.Seq > x.newest.Fact.Seq { // all of them are of our own chain
		x.newest = e
	}
	d.entrusted[p] = x
}

// mindEntrusted asks those who may not have been told what they have, once each time, and
// asks to be woken when that is due for others.
func (d *decision) mindEntrusted() {
	if len(d.entrusted) == 0 {
		d.entrustedAt = d.now.Boot
		return
	}
	if at := d.entrustedAt + officePatience; len(d.entrusted) >= manySlots && d.now.Boot < at {
		d.out.wake(at) // not all of many are looked at with each fact
		return
	}
	d.entrustedAt = d.now.Boot
	for _, p := range slices.Sorted(maps.Keys(d.entrusted)) {
		d.log.Steps++
		x := d.entrusted[p]
		switch at := x.since + officePatience; {
		case !d.Participates(p) || d.knows(p, x.newest):
			delete(d.entrusted, p)
		case d.now.Boot < at:
			d.out.wake(at)
			d.entrustedAt = min(d.entrustedAt, x.since)
		default:
			delete(d.entrusted, p)
			d.ask(p)
		}
	}
}

// officeNow is the office in which this node judges: none, if it knows of a higher one.
func (o outlook) officeNow() *fact.Office {
	office := o.partners.Office()
	if slices.ContainsFunc(o.state.Offices(),
		func(h *log.Entry) bool { return h.Fact.Body.Verdict.Office.Compare(office) > 0 }) {
		return nil
	}
	return office
}

// judgesBefore is how many living partners judge before this node does; a Duration, as
// it is multiplied by one.
func (o outlook) judgesBefore() time.Duration {
	judges := o.judges()
	if i := slices.Index(judges, o.self); i >= 0 {
		return time.Duration(i)
	}
	return time.Duration(len(judges))
}

// present reports whether a partner can be expected to answer: it is neither gone nor absent as
// it announced. One that is merely out of reach is present: it may be back at once.
func (o outlook) present(p workflow.PartnerID) bool {
	return !o.partners.Gone(p) && !o.partners.Absent(p)
}

// judges are the living partners in the order in which they judge: who
// orchestrates, then the succession, without those who are absent.
func (o outlook) judges() []workflow.PartnerID {
	c := o.coordinator()
	living := slices.DeleteFunc(slices.Clone(o.state.Genesis().Succession),
		func(p workflow.PartnerID) bool { return p == c || !o.present(p) })
	if c != "" {
		living = slices.Insert(living, 0, c)
	}
	return living
}
