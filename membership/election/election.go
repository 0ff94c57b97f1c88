package election

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Election is one node's part in electing a coordinator: voter, candidate or
// coordinator, and countersigner of electorates. It is a pure state machine:
// every call takes the clocks and returns what to do. It is not safe for
// concurrent use.
//
// What it promises, whatever is lost, repeated, reordered or restarted, as
// long as what it says is persisted is: in one (term, electorate) there is
// one coordinator at most; and, but for an override, one at a time, as long
// as the holder's clock does not run slower than a voter's by a fifth.
type Election struct {
	cfg     Config
	self    workflow.PartnerID
	ballot  Ballot
	lineage Lineage
	head    Electorate
	list    ListHash // of head
	rand    *rand.Rand

	voter     voter
	candidacy candidacy
	proposing proposing
	known     known
	out       Ready

	nominations nominations
}

// voter is what a voter may forget only by waiting for a full lease.
type voter struct {
	leaseTo    workflow.PartnerID
	leaseUntil time.Duration // Awake
	waitUntil  time.Duration // Awake: no new vote before, after a restart or in a new list
}

// known is what this node knows about the coordinator.
type known struct {
	heard   time.Duration // Awake at the last sign of the coordinator of Ballot.Known
	highest uint64        // the highest term seen anywhere
	autoAt  time.Duration // Awake at which to stand of our own accord; 0 if not set
}

// New starts the machine from what was persisted: the zero Ballot and
// a nil lineage on a node that has never voted. A voter that starts waits for
// a full lease before it votes, as it cannot know what it granted. Call
// [Election.Tick] at once.
func New(cfg Config, ballot Ballot, lineage Lineage, now moment.Now) (*Election, error) {
	e := &Election{
		cfg: cfg, self: trust.IDOf(cfg.Key.Public().(ed25519.PublicKey)), ballot: ballot,
		rand: rand.New(rand.NewPCG(cfg.Seed, 0)),
	}
	if len(lineage) > 0 {
		if err := lineage.Verify(cfg.Mesh); err != nil {
			return nil, fmt.Errorf("stored electorate: %w", err)
		}
		e.setLineage(lineage, now)
	}
	e.known.highest = max(ballot.Highest, ballot.Voted.Term, ballot.Known.Office.Term)
	e.known.heard = now.Awake - e.head.Lease
	if e.cfg.Auto && len(lineage) > 0 {
		e.known.autoAt = e.voter.waitUntil + e.spread(e.head.Lease)
	}
	return e, nil
}

// setLineage makes the lineage's last list the one to vote in, after a lease
// in which every coordinator of the lists before must stop.
func (e *Election) setLineage(ln Lineage, now moment.Now) {
	lease := time.Duration(0)
	for _, l := range append(ln[:len(ln):len(ln)], e.lineage...) {
		lease = max(lease, l.Lease)
	}
	e.lineage = ln
	e.head, _ = ln.Head()
	e.list = e.head.Hash()
	e.voter.waitUntil = max(e.voter.waitUntil, now.Awake+lease)
}

// Electorate returns the list that this node votes in, and its proof.
func (e *Election) Electorate() (Electorate, Lineage) { return e.head, e.lineage }

// HighestTerm is the highest term that this node has heard of.
func (e *Election) HighestTerm() uint64 { return e.known.highest }

// me is this node as a voter, if the list names it.
func (e *Election) me() Voter { return Voter{e.self, e.cfg.Incarnation} }

// Step takes in a message that the carrier knows to come from partner from.
// An error says why it was refused; nothing else came of it.
func (e *Election) Step(from workflow.PartnerID, m Message, now moment.Now) (Ready, error) {
	e.lapse(now)
	err := m.validate()
	switch {
	case err != nil:
	case m.Ask != nil:
		e.onAsk(from, *m.Ask, now)
	case m.Grant != nil:
		err = e.onGrant(from, *m.Grant, now)
	case m.Refusal != nil:
		e.onRefusal(from, *m.Refusal, now)
	case m.Release != nil:
		e.onRelease(from, *m.Release, now)
	case m.Propose != nil:
		err = e.onPropose(from, m.Propose.List)
	case m.Consented != nil:
		err = e.onConsented(*m.Consented, now)
	case m.Lists != nil:
		_, err = e.adopt(m.Lists.Lineage, now)
	case m.Claim != nil:
		err = e.onClaim(from, *m.Claim, m.Holds, now)
	case m.Holding != nil:
		e.onHolding(from, *m.Holding, now)
	case m.WantClaim != nil:
		e.onWantClaim(from, *m.WantClaim, now)
	case m.Nominate != nil:
		err = e.onNominate(from, now)
	case m.Declined != nil:
		e.onDeclined(from, *m.Declined)
	case m.Stands != nil:
		e.onStands(from, *m.Stands, now)
	}
	return e.flush(now), err
}

// Tick does what is due.
func (e *Election) Tick(now moment.Now) Ready {
	e.lapse(now)
	e.tickNominations(now)
	e.tickCandidacy(now)
	e.tickProposal(now)
	e.tickAuto(now)
	return e.flush(now)
}

// flush hands out what has gathered.
func (e *Election) flush(now moment.Now) Ready {
	e.armAuto(now)
	out := e.out
	out.Wake = e.wake(now)
	e.out = Ready{}
	return out
}

// wake is the time until the next thing is due; 0 if nothing is.
func (e *Election) wake(now moment.Now) time.Duration {
	var next time.Duration
	due := func(in time.Duration) {
		in = max(in, time.Millisecond)
		if next == 0 || in < next {
			next = in
		}
	}
	if e.candidacy.role != bystander {
		due(e.candidacy.next() - now.Boot)
	}
	if e.nominations.tellAt > 0 {
		due(e.nominations.tellAt - now.Boot)
	}
	if e.proposing.active {
		due(e.proposing.next - now.Boot)
	}
	if e.known.autoAt > 0 {
		due(e.known.autoAt - now.Awake)
	}
	return next
}

// persist has the ballot written before anything else happens.
func (e *Election) persist() {
	b := e.ballot
	e.out.Ballot = &b
}

func (e *Election) send(to workflow.PartnerID, m Message) {
	e.out.Send = append(e.out.Send, Envelope{To: to, Message: m})
}

func (e *Election) tell(ev Event) { e.out.Events = append(e.out.Events, ev) }

// toVoters sends m to every voter but this node.
func (e *Election) toVoters(m Message) {
	for _, v := range e.head.Voters {
		if v.Partner != e.self {
			e.send(v.Partner, m)
		}
	}
}

// Adopt takes in a lineage from elsewhere: an override that the founder just
// made here, or what another node holds. It is ignored if it is not higher
// than what is known, else everybody is told.
func (e *Election) Adopt(ln Lineage, now moment.Now) (Ready, error) {
	e.lapse(now)
	adopted, err := e.adopt(ln, now)
	if adopted {
		e.send("", Message{Lists: &Lists{ln}})
	}
	return e.flush(now), err
}

func (e *Election) adopt(ln Lineage, now moment.Now) (bool, error) {
	head, ok := ln.Head()
	if !ok || len(e.lineage) > 0 && head.compare(e.head) <= 0 {
		return false, nil
	}
	if err := ln.Verify(e.cfg.Mesh); err != nil {
		return false, err
	}
	e.takeOver(ln, now)
	return true, nil
}

// takeOver goes over to a verified, higher list. An office ends with its list.
func (e *Election) takeOver(ln Lineage, now moment.Now) {
	e.abandon(errors.New("the electorate changed"), now)
	e.setLineage(ln, now)
	e.known.highest = max(e.known.highest, e.head.First()-1)
	e.ballot.Signed = nil
	if _, inForce := e.listOf(e.ballot.Known.Office); !inForce {
		e.ballot.Known = Mandate{}
	}
	e.persist()
	e.proposing = proposing{}
	e.out.Lineage = ln
	e.tell(Event{
		Kind: ElectorateChanged, Reason: fmt.Errorf("electorate %d with %d voters", e.head.Number, len(e.head.Voters)),
	})
	e.known.heard, e.known.autoAt = now.Awake-e.head.Lease, 0
}

// armAuto sets the time at which this node stands of its own accord, if it is
// configured to: when it has heard of no coordinator for a lease, granted none
// that still runs, and a bit later.
func (e *Election) armAuto(now moment.Now) {
	k := &e.known
	switch {
	case !e.cfg.Auto || len(e.lineage) == 0 || e.candidacy.role != bystander:
		k.autoAt = 0
	case k.autoAt == 0:
		lease := e.head.Lease
		k.autoAt = max(k.heard+lease, e.voter.leaseUntil, now.Awake) + e.spread(lease)
	}
}

// tickAuto makes this node stand when the time has come and nobody leads.
func (e *Election) tickAuto(now moment.Now) {
	if at := e.known.autoAt; at == 0 || now.Awake < at {
		return
	}
	e.known.autoAt = 0
	if _, led := e.Coordinator(now); !led {
		e.campaign(now)
	}
}

// spread is a random part of d, so that candidates do not stand all at once.
func (e *Election) spread(d time.Duration) time.Duration {
	return time.Duration(e.rand.Int64N(int64(d)) + 1)
}
