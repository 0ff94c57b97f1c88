package choreo

import (
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// peer is what this node knows of another participant's replica. Nothing of it
// is kept on disk: after a restart the peers say again what they have. There
// is no outbox; what is owed follows from the log (docs/design.md, idea 1).
type peer struct {
	incarnation fact.Incarnation
	// acked is what the peer has made durable, sent what is under way to it,
	// both as clocks of our log.
	acked, sent log.Vector
	// most is all that it ever said that it has, in any incarnation.
	most  log.Vector
	heads []fact.Head // as it said last
	// ahead: it named facts that were not here, and not many chains.
	ahead bool
	// owed is what must reach it now, as a clock.
	owed log.Vector
	// refused are the authors of whom it has no room for more (crowded.go), disputed the
	// chains of which it sent facts that fork them, and that were not taken in (choreo/log/fork.go).
	refused  map[workflow.PartnerID]*withheld
	disputed map[*log.Chain]bool
	// away: it cannot be reached, and is not told of what is missed from there on (away.go).
	// near: it is among those that are owed what all are.
	// sought: it was asked only to find that out.
	away, near, sought bool
	missed             int
	// broughtIn: it showed a branch that gave it work, and that was not taken in (branchAppoints).
	broughtIn bool
}

// has notes that the peer holds a fact, and with it the fact's past.
func (p *peer) has(l *log.Log, e *log.Entry) {
	if e != nil {
		p.acked = upTo(p.acked, e, l)
	}
}

// upTo is what a clock says of a log with a fact and its past in it.
func upTo(v log.Vector, e *log.Entry, l *log.Log) log.Vector {
	if v.At(e.Strand.Place) >= e.Fact.Seq {
		return v
	}
	return v.Join(e.Past(), &l.Steps)
}

// underWay is what a peer has, or is not to be sent now.
func (p *peer) underWay(steps *int) log.Vector {
	v := p.acked.Join(p.sent, steps)
	for _, r := range p.refused {
		v = v.Join(r.held, steps)
	}
	return v
}

// withheld is that a partner has no room for facts of an author.
type withheld struct {
	until, pause time.Duration // Boot, and how long that is since it refused them
	held         log.Vector    // what it lacks and is not sent before
	taken        int           // how often it said that it takes that now
}
