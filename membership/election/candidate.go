package election

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/workflow"
)

var (
	// ErrNoElectorate tells that this node knows no electorate.
	ErrNoElectorate = errors.New("no electorate is known")
	// ErrHeld tells that somebody else holds the office.
	ErrHeld = errors.New("there is a coordinator")
	// ErrNotCoordinator tells that this node holds no office.
	ErrNotCoordinator = errors.New("this node is not the coordinator")
	// ErrGoesDown is why a node that goes down holds its office, or stands for it, no longer.
	ErrGoesDown = errors.New("its node goes down")
)

// role is what a node is in an election.
type role int

const (
	bystander role = iota
	candidate
	coordinator
)

// candidacy is a node's attempts to be elected, and its office. All its times
// are by the boot clock: what it was promised runs out while it sleeps.
type candidacy struct {
	role     role
	office   Office
	votes    map[workflow.PartnerID]Vote
	granted  map[workflow.PartnerID]time.Duration // when the Ask was sent that each voter granted last
	refusals map[workflow.PartnerID]noVote
	askAt    time.Duration // when to ask again
	triedAt  time.Duration // begin of the attempt in this term
	tryUntil time.Duration // its end; 0 while pausing before the next
	giveUpAt time.Duration
	until    time.Duration // end of a coordinator's lease
}

// noVote is why a voter did not vote, when it said so, and when it will, if it only waits since it started (0: it did
// not say).
type noVote struct {
	why       error
	at, until time.Duration
}

// next is when something is due.
func (c candidacy) next() time.Duration {
	switch {
	case c.role == coordinator:
		return min(c.askAt, c.until)
	case c.tryUntil == 0:
		return min(c.askAt, c.giveUpAt)
	default:
		return min(c.askAt, c.tryUntil, c.giveUpAt)
	}
}

// What parts of a lease things take.
const (
	heldPart   = 5  // a holder stops when one part in five is left
	askPart    = 4  // a coordinator prolongs its lease four times per lease
	retryPart  = 8  // a candidate asks again after one part in eight
	tryPart    = 2  // an attempt in one term lasts for half a lease
	patiently  = 4  // a candidate gives up after four leases
	pausePart  = 2  // a pause between attempts is at most half a lease
	soonPart   = 64 // nobody is asked again sooner than this, whatever it says
	shownVoter = 8  // refusals that a message lists
)

// Elect makes this node stand for election. It tries for some leases' time,
// in several terms if need be; an event tells how it ended.
func (e *Election) Elect(now moment.Now) (Ready, error) {
	e.lapse(now)
	err := e.stand(now)
	return e.flush(now), err
}

func (e *Election) stand(now moment.Now) error {
	if len(e.lineage) == 0 {
		return fmt.Errorf("%w: a node learns it from any partner, the first list is made with the mesh",
			ErrNoElectorate)
	}
	if m, led := e.Coordinator(now); led && m.Holder != e.self {
		return heldBy(m)
	}
	if e.candidacy.role == bystander {
		e.campaign(now)
	}
	return nil
}

// Resign gives the office up at once.
func (e *Election) Resign(now moment.Now) (Ready, error) {
	return e.giveUp(errors.New("it resigned"), now)
}

// GoDown gives the office up at once, because the node goes down.
func (e *Election) GoDown(now moment.Now) (Ready, error) { return e.giveUp(ErrGoesDown, now) }

func (e *Election) giveUp(reason error, now moment.Now) (Ready, error) {
	e.lapse(now)
	if e.candidacy.role == bystander {
		return e.flush(now), ErrNotCoordinator
	}
	e.abandon(reason, now)
	return e.flush(now), nil
}

// Leads reports whether this node holds an office at this moment. Ask it before
// each act in office; the boot clock must be read after the node was awake.
func (e *Election) Leads(now moment.Now) (Mandate, bool) {
	if e.candidacy.role != coordinator || now.Boot >= e.candidacy.until {
		return Mandate{}, false
	}
	return e.ballot.Known, true
}

// campaign begins to stand.
func (e *Election) campaign(now moment.Now) {
	e.candidacy = candidacy{role: candidate, giveUpAt: now.Boot + patiently*e.head.Lease}
	e.attempt(now)
}

// attempt asks everybody's vote in a term above all that are known, and uses
// no term twice, not even after a restart.
func (e *Election) attempt(now moment.Now) {
	c := &e.candidacy
	term := max(e.known.highest, e.ballot.Highest, e.ballot.Voted.Term, e.head.First()-1) + 1
	c.office = Office{Term: term, Number: e.head.Number, List: e.list}
	c.votes, c.granted, c.refusals = map[workflow.PartnerID]Vote{}, map[workflow.PartnerID]time.Duration{},
		map[workflow.PartnerID]noVote{}
	c.triedAt, c.tryUntil = now.Boot, now.Boot+e.head.Lease/tryPart
	e.ballot.Highest, e.known.highest = term, term
	e.persist()
	e.ask(now)
}

// ask asks every voter, this node first, for a vote or a longer lease.
func (e *Election) ask(now moment.Now) {
	c := &e.candidacy
	part := time.Duration(retryPart)
	if c.role == coordinator {
		part = askPart
	}
	c.askAt = now.Boot + e.head.Lease/part
	if e.head.Has(e.me()) {
		if no := e.refuse(e.self, c.office, now); no != nil {
			e.refused(e.self, *no, now)
		} else {
			v := e.vote(e.self, c.office, now)
			c.votes[e.self], c.granted[e.self] = v, now.Boot
		}
	}
	e.toVoters(Message{Ask: &Ask{Office: c.office, Sent: now.Boot}})
	e.tellSoon(now)
	e.count(now)
}

// onGrant counts a vote for the office that is sought or held.
func (e *Election) onGrant(from workflow.PartnerID, g Grant, now moment.Now) error {
	c := &e.candidacy
	v := g.Vote
	if c.role == bystander || v.Office != c.office || v.Candidate != e.self || v.Voter.Partner != from ||
		g.Sent > now.Boot || c.role == candidate && c.tryUntil == 0 {
		return nil
	}
	if old, known := c.votes[from]; !known || !slices.Equal(old.Signature, v.Signature) || old.Voter != v.Voter {
		if err := v.verify(e.head); err != nil {
			return err
		}
	}
	c.votes[from], c.granted[from] = v, max(c.granted[from], g.Sent)
	delete(c.refusals, from)
	e.count(now)
	return nil
}

// count sees whether a majority granted a lease, and until when: it lasts
// from the latest moment before which a majority was asked.
func (e *Election) count(now moment.Now) {
	c := &e.candidacy
	if len(c.granted) < e.head.Majority() {
		return
	}
	var sent []time.Duration
	for _, at := range c.granted {
		sent = append(sent, at)
	}
	slices.Sort(sent)
	from := sent[len(sent)-e.head.Majority()]
	until := from + e.head.Lease - e.head.Lease/heldPart
	if until <= now.Boot {
		return
	}
	c.until = max(c.until, until)
	if c.role == candidate {
		e.takeOffice(now)
	}
}

// takeOffice makes an elected candidate coordinator and tells everybody, unless another
// is known that was elected above it.
func (e *Election) takeOffice(now moment.Now) {
	c := &e.candidacy
	m := mandate(c.office, e.self, c.votes)
	if m.compare(e.ballot.Known) < 0 {
		e.abandon(e.ballot.Known.outranks(m), now)
		return
	}
	c.role = coordinator
	c.askAt = now.Boot + e.head.Lease/askPart
	e.learn(m, now)
	e.nominations.theirs, e.nominations.tellAt = nil, 0 // the claim tells them
	e.tell(Event{Kind: BecameCoordinator, Partner: e.self, Office: c.office})
	e.showClaim("", now)
}

// onRefusal learns why, and gives a voter that is behind the list.
func (e *Election) onRefusal(from workflow.PartnerID, r Refusal, now moment.Now) {
	c := &e.candidacy
	if c.role == bystander || r.Office != c.office {
		return
	}
	if r.Term < c.office.Term+maxJump {
		e.known.highest = max(e.known.highest, r.Term)
	}
	if r.List != e.list && r.Number <= e.head.Number {
		e.send(from, Message{Lists: &Lists{e.lineage}})
	}
	e.refused(from, r, now)
}

// refused keeps why a voter did not vote. One that only waits since it started is asked
// again when it will vote, and the attempt goes on until then: in another term it would
// vote no sooner, and a pause could miss it. But no attempt goes on for ever, whatever a
// voter says: it waits for a lease, and the votes that it has gathered are lacked by others.
func (e *Election) refused(from workflow.PartnerID, r Refusal, now moment.Now) {
	c := &e.candidacy
	no := noVote{why: heard(r.Reason, r.About), at: now.Boot}
	if r.Wait > 0 {
		no.until = now.Boot + min(r.Wait, MaxLease)
	}
	c.refusals[from] = no
	e.tellSoon(now)
	if c.role != candidate || c.tryUntil == 0 || r.Wait <= 0 {
		return
	}
	lease := e.head.Lease
	votes := min(now.Boot+max(min(r.Wait, lease), lease/soonPart), c.triedAt+lease)
	c.tryUntil = max(c.tryUntil, votes+lease/retryPart)
	if votes > now.Boot {
		c.askAt = min(c.askAt, votes)
	}
}

// tickCandidacy asks again, pauses, tries the next term, or gives up.
func (e *Election) tickCandidacy(now moment.Now) {
	c := &e.candidacy
	switch {
	case c.role == coordinator && now.Boot >= c.askAt:
		o := c.office
		e.ask(now)
		e.send("", Message{Holding: &o})
	case c.role == candidate && now.Boot >= c.giveUpAt:
		e.abandon(e.complaints(now), now)
	case c.role == candidate && c.tryUntil == 0 && now.Boot >= c.askAt:
		e.attempt(now)
	case c.role == candidate && c.tryUntil > 0 && now.Boot >= c.tryUntil:
		e.pause(now)
	case c.role == candidate && c.tryUntil > 0 && now.Boot >= c.askAt:
		e.ask(now)
	}
}

// pause lets go of the votes of a failed attempt and waits a random while, so
// that one of several candidates comes first.
func (e *Election) pause(now moment.Now) {
	c := &e.candidacy
	e.release(now)
	c.tryUntil = 0
	c.askAt = now.Boot + e.spread(e.head.Lease/pausePart)
}

// release tells the voters, and of an office everybody, that its lease need
// not be waited for. Nothing is done in the office any more.
func (e *Election) release(now moment.Now) {
	o := e.candidacy.office
	e.onRelease(e.self, o, now)
	if e.candidacy.role == coordinator {
		e.send("", Message{Release: &o})
		return
	}
	e.toVoters(Message{Release: &o})
}

// lapse ends an office whose lease has run out. It comes before everything
// else, so that a node that was stopped does nothing with its old term.
func (e *Election) lapse(now moment.Now) {
	if c := e.candidacy; c.role == coordinator && now.Boot >= c.until {
		e.abandon(errors.New("its lease ran out: no majority prolonged it"), now)
	}
}

// abandon ends a candidacy or an office, if there is one.
func (e *Election) abandon(reason error, now moment.Now) {
	c := e.candidacy
	if c.role == bystander {
		return
	}
	e.release(now)
	kind := NotElected
	if c.role == coordinator {
		kind = StoppedBeing
	}
	e.candidacy = candidacy{}
	e.decline(reason)
	e.tell(Event{Kind: kind, Partner: e.self, Office: c.office, Reason: reason})
}

// Standing says, while this node stands for election, for how long it goes on asking, and which votes it lacks and
// why; nil: it does not stand.
func (e *Election) Standing(now moment.Now) (left time.Duration, lacks error) {
	if e.candidacy.role != candidate {
		return 0, nil
	}
	return max(e.candidacy.giveUpAt-now.Boot, 0), e.complaints(now)
}

// complaints says that there is no majority: how many votes there are of those that are needed, which voters refused
// and why, when they will vote as far as they said so, and which did not answer.
func (e *Election) complaints(now moment.Now) error {
	var each []string
	var args []any
	for _, v := range e.head.Voters {
		if _, voted := e.candidacy.votes[v.Partner]; voted {
			continue
		}
		no, answered := e.candidacy.refusals[v.Partner]
		if !answered {
			no.why = errors.New("did not answer")
		}
		if len(each) == shownVoter {
			each = append(each, "…")
			break
		}
		each, args = append(each, "%s %v"+no.when(now)), append(args, v.Partner, no.why)
	}
	so := fmt.Sprintf("no majority (%d of %d votes): ", len(e.candidacy.votes), e.head.Majority())
	return said.Errorf(so+strings.Join(each, "; "), args...)
}

// when says until when a voter waits; of what it said a while ago, how long ago that was.
func (no noVote) when(now moment.Now) string {
	ago := (now.Boot - no.at).Truncate(time.Second)
	switch {
	case no.until > now.Boot:
		return fmt.Sprintf(", for %s more", seconds(no.until-now.Boot))
	case no.at > 0 && ago >= time.Second:
		return fmt.Sprintf(" (as it said %s ago)", ago)
	}
	return ""
}

// seconds is how long it takes at most, in whole seconds.
func seconds(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) }
