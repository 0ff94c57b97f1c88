package election

import (
	"time"

	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// maxJump is how far above all that it knows a voter follows a term, so that
// nobody can use the terms up.
const maxJump = 1 << 20

// onAsk answers a candidate, or a coordinator that prolongs its lease.
func (e *Election) onAsk(from workflow.PartnerID, a Ask, now moment.Now) {
	if no := e.refuse(from, a.Office, now); no != nil {
		e.send(from, Message{Refusal: no})
		if a.Office.List != e.list && a.Office.Number <= e.head.Number {
			e.send(from, Message{Lists: &Lists{e.lineage}})
		}
		return
	}
	v := e.vote(from, a.Office, now)
	e.send(from, Message{Grant: &Grant{Vote: v, Sent: a.Sent}})
}

// vote votes for a candidate, durably, and grants it a lease.
func (e *Election) vote(candidate workflow.PartnerID, o Office, now moment.Now) Vote {
	if e.ballot.Voted != o {
		e.ballot.Voted, e.ballot.VotedFor = o, candidate
		e.ballot.Highest = max(e.ballot.Highest, o.Term)
		e.known.highest = max(e.known.highest, o.Term)
		e.persist()
	}
	e.voter.leaseTo, e.voter.leaseUntil = candidate, now.Awake+e.head.Lease
	e.known.autoAt = 0
	if known := e.ballot.Known; candidate == known.Holder && o == known.Office {
		e.heardOfCoordinator(now)
	}
	return Vote{Office: o, Candidate: candidate, Voter: e.me()}.sign(e.cfg.Key)
}

// refuse tells why this node does not vote for a candidate in office o; nil
// if it does. It votes in the highest list it knows and not once it consented
// to the next, once per term, and never while a lease that it granted to
// another runs: a node that asks for a term has given up the lower ones, so its
// own lease does not stand in its way.
func (e *Election) refuse(candidate workflow.PartnerID, o Office, now moment.Now) *Refusal {
	no := func(wait time.Duration, format string, args ...any) *Refusal {
		reason := said.Errorf(format, args...)
		return &Refusal{
			Office: o, Reason: reason.Error(), About: said.Partners(reason),
			Term: e.known.highest, Number: e.head.Number, List: e.list, Wait: wait,
		}
	}
	b := e.ballot
	switch {
	case len(e.lineage) == 0:
		return no(0, "knows no electorate")
	case o.Number != e.head.Number || o.List != e.list:
		return no(0, "votes in electorate %d", e.head.Number)
	case !e.head.Has(e.me()):
		return no(0, "is not in electorate %d", e.head.Number)
	case b.Signed != nil:
		return no(0, "consented to electorate %d", b.Signed.List.Number)
	case b.Voted == o && b.VotedFor == candidate:
		return nil
	case o.Term < e.head.First():
		return no(0, "electorate %d starts at term %d", e.head.Number, e.head.First())
	case o.Term > e.known.highest+maxJump || o.Term > maxTerm:
		return no(0, "term %d is too far above %d", o.Term, e.known.highest)
	case o.Term <= b.Voted.Term:
		return no(0, "voted in term %d", b.Voted.Term)
	case now.Awake < e.voter.waitUntil:
		return no(e.voter.waitUntil-now.Awake, "has restarted or changed list and waits for a lease")
	case now.Awake < e.voter.leaseUntil && e.voter.leaseTo != candidate:
		return no(0, "granted %s a lease, which ends in %s", e.voter.leaseTo, seconds(e.voter.leaseUntil-now.Awake))
	}
	return nil
}

// onRelease ends the lease of one who resigned or gave up. Of an office that was given
// up a candidate of its own accord need not wait until it would have run out.
func (e *Election) onRelease(from workflow.PartnerID, o Office, now moment.Now) {
	if e.voter.leaseTo == from && e.ballot.Voted == o {
		e.voter.leaseUntil = now.Awake
	}
	if e.ballot.Known.Holder == from && e.ballot.Known.Office == o {
		e.known.heard = now.Awake - e.head.Lease
		if e.cfg.Auto && from != e.self {
			e.known.autoAt = now.Awake + e.spread(e.head.Lease/retryPart)
		}
	}
}
