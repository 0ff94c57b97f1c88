package election

import (
	"fmt"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Coordinator returns the mandate of the coordinator as far as this node
// knows: itself while its lease lasts, another for a lease after the last
// sign of it.
func (e *Election) Coordinator(now moment.Now) (Mandate, bool) {
	if m, ok := e.Leads(now); ok {
		return m, true
	}
	m := e.ballot.Known
	here := m.Holder != "" && m.Holder != e.self && now.Awake < e.known.heard+e.head.Lease
	return m, here
}

// Presumed is for how long the coordinator counts as that here if nothing more is heard of it; 0: none is known.
func (e *Election) Presumed(now moment.Now) time.Duration {
	m, known := e.Coordinator(now)
	switch {
	case !known:
		return 0
	case m.Holder == e.self:
		return e.candidacy.until - now.Boot
	}
	return e.known.heard + e.head.Lease - now.Awake
}

// Admit reports whether a request made in office o by its holder is to be
// followed: its electorate is in force and no higher office is known, else
// the error wraps [ErrLowerOffice].
func (e *Election) Admit(o Office) error {
	if _, inForce := e.listOf(o); !inForce {
		return fmt.Errorf("request in the office of %s: %w: electorate %d is in force here", o, ErrLowerOffice,
			e.head.Number)
	}
	if o.Compare(e.ballot.Known.Office) < 0 {
		return said.Errorf("request in the office of %s: %w: %s, held by %s", o, ErrLowerOffice, e.ballot.Known.Office,
			e.ballot.Known.Holder)
	}
	return nil
}

// onClaim learns of a coordinator. A claim proves that its holder was elected, and anybody
// may pass it on. That its holder is still in office the holder has to say: one that has
// restarted is not, and shows the same claim.
func (e *Election) onClaim(from workflow.PartnerID, m Mandate, holds bool, now moment.Now) error {
	c := m.compare(e.ballot.Known)
	if c < 0 {
		return e.Admit(m.Office)
	}
	if c > 0 {
		l, ok := e.listOf(m.Office)
		if !ok {
			return said.Errorf("claim of %s to %s: that electorate is not known here, or no longer in force", m.Holder,
				m.Office)
		}
		if err := m.Verify(l); err != nil {
			return err
		}
		e.learn(m, now)
	}
	if holds && from == e.ballot.Known.Holder {
		e.heardOfCoordinator(now)
	}
	return nil
}

// listOf finds the list of an office in the lineage.
func (e *Election) listOf(o Office) (Electorate, bool) {
	for _, l := range e.lineage {
		if o.of(l) {
			return l, true
		}
	}
	return Electorate{}, false
}

// learn makes m, which is proven, the highest mandate known. That its holder
// is there remains to be heard. An office of this node's own ends with it: honest voters
// have no two holders at once, but one that votes for two would keep both for ever.
func (e *Election) learn(m Mandate, now moment.Now) {
	if e.candidacy.role == coordinator && m.Holder != e.self {
		e.abandon(m.outranks(e.ballot.Known), now)
	}
	e.ballot.Known = m
	e.known.heard = now.Awake - e.head.Lease
	e.known.highest = max(e.known.highest, m.Office.Term)
	e.persist()
	e.tell(Event{Kind: CoordinatorKnown, Partner: m.Holder, Office: m.Office})
}

func (e *Election) heardOfCoordinator(now moment.Now) {
	e.known.heard = now.Awake
	e.known.autoAt = 0
}

// onHolding hears that a coordinator is still there. It asks for the proof if
// it has none, and tells one who is behind.
func (e *Election) onHolding(from workflow.PartnerID, o Office, now moment.Now) {
	_, inForce := e.listOf(o)
	c := Mandate{Office: o, Holder: from}.compare(e.ballot.Known)
	switch {
	case !inForce && o.Number < e.head.Number:
		e.send(from, Message{Lists: &Lists{e.lineage}})
	case !inForce || c > 0:
		e.send(from, Message{WantClaim: &WantClaim{e.list}})
	case c < 0:
		e.showClaim(from, now)
	default:
		e.heardOfCoordinator(now)
	}
}

// onWantClaim shows the highest claim known, and its electorate before it.
func (e *Election) onWantClaim(from workflow.PartnerID, want WantClaim, now moment.Now) {
	if want.List != e.list && len(e.lineage) > 0 {
		e.send(from, Message{Lists: &Lists{e.lineage}})
	}
	e.showClaim(from, now)
}

// showClaim shows the highest claim known, and that this node holds its office, if so.
func (e *Election) showClaim(to workflow.PartnerID, now moment.Now) {
	_, leads := e.Leads(now)
	if m := e.ballot.Known; m.Holder != "" {
		e.send(to, Message{Claim: &m, Holds: leads})
	}
}
