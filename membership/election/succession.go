package election

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// ErrProposing tells that a list is being proposed here already.
var ErrProposing = errors.New("a proposal is under way")

// ErrHandedOver says that the electorate was handed over as often as it may be.
var ErrHandedOver = errors.New("the electorate was handed over too often")

// proposing is a node's effort to have the next list countersigned. Consents
// to any list are counted, since each voter gives only one: whichever list
// gets a majority is the next.
type proposing struct {
	active   bool
	list     Electorate
	lists    map[ListHash]Electorate
	consents map[ListHash]map[workflow.PartnerID]Consent
	next     time.Duration // Boot
	until    time.Duration // Boot
}

// Propose asks the voters to be succeeded by other ones. An event tells how
// it ended. The caller has made sure that its user may do that.
func (e *Election) Propose(voters []Voter, lease time.Duration, now moment.Now) (Ready, error) {
	e.lapse(now)
	err := e.propose(voters, lease, now)
	return e.flush(now), err
}

func (e *Election) propose(voters []Voter, lease time.Duration, now moment.Now) error {
	if len(e.lineage) == 0 {
		return ErrNoElectorate
	}
	if e.proposing.active {
		return fmt.Errorf("%w: wait for its end", ErrProposing)
	}
	if len(e.lineage) >= MaxLineage {
		return fmt.Errorf("%w: %d times, at most %d", ErrHandedOver, len(e.lineage)-1, MaxLineage-1)
	}
	next := e.head.successor(e.cfg.Mesh, voters, lease)
	if err := next.validate(); err != nil {
		return err
	}
	e.proposing = proposing{
		active: true, list: next,
		lists:    map[ListHash]Electorate{next.Hash(): next},
		consents: map[ListHash]map[workflow.PartnerID]Consent{},
		until:    now.Boot + patiently*e.head.Lease,
	}
	e.circulate(now)
	return nil
}

// circulate asks all voters, this node first.
func (e *Election) circulate(now moment.Now) {
	p := &e.proposing
	p.next = now.Boot + e.head.Lease/retryPart
	e.toVoters(Message{Propose: &Proposal{p.list}})
	if e.head.Has(e.me()) {
		e.collect(e.sign(p.list), now)
	}
}

// onPropose consents to the first successor that is proposed, and repeats that
// consent to a node that proposes another.
func (e *Election) onPropose(from workflow.PartnerID, l Electorate) error {
	if !e.mayPropose(from) {
		return said.Errorf("electorate proposed by %s, who does not administer the mesh: %w", from, trust.ErrNotAllowed)
	}
	if len(e.lineage) == 0 {
		return ErrNoElectorate
	}
	if !e.head.Has(e.me()) || l.Previous != e.list {
		e.send(from, Message{Lists: &Lists{e.lineage}})
		return nil
	}
	if err := l.proposable(e.head); err != nil {
		return err
	}
	consented := e.sign(l)
	e.send(from, Message{Consented: &consented})
	return nil
}

func (e *Election) mayPropose(id workflow.PartnerID) bool {
	if e.cfg.MayPropose == nil {
		return id == e.cfg.Mesh.Founder
	}
	return e.cfg.MayPropose(id)
}

// proposable checks that l may follow list prev once it is countersigned.
func (l Electorate) proposable(prev Electorate) error {
	if l.Mesh != prev.Mesh || l.Number != prev.Number+1 || l.Start != 0 || l.Founder != nil || l.Consents != nil {
		return fmt.Errorf("proposed electorate %d does not continue %d", l.Number, prev.Number)
	}
	return l.validate()
}

// sign consents to l, durably, unless this voter has consented to another
// successor; it returns the one consent that it gave. From now on it votes no
// more in the present list.
func (e *Election) sign(l Electorate) Consented {
	if e.ballot.Signed == nil {
		highest := max(e.ballot.Voted.Term, e.head.First()-1)
		e.ballot.Signed = &Consented{List: l, Consent: l.consent(e.cfg.Key, e.me(), highest)}
		e.persist()
	}
	return *e.ballot.Signed
}

// onConsented counts a consent, to whichever list.
func (e *Election) onConsented(c Consented, now moment.Now) error {
	if !e.proposing.active || c.List.Previous != e.list {
		return nil
	}
	if err := c.List.proposable(e.head); err != nil {
		return err
	}
	if c.Consent.List != c.List.Hash() {
		return said.Errorf("consent of %s is to another list than it came with: %w", c.Consent.Voter.Partner,
			trust.ErrForged)
	}
	if err := c.Consent.verify(e.head); err != nil {
		return err
	}
	e.collect(c, now)
	return nil
}

// collect keeps a consent, and completes its list with a majority.
func (e *Election) collect(c Consented, now moment.Now) {
	p := &e.proposing
	hash := c.Consent.List
	if p.consents[hash] == nil {
		p.consents[hash] = map[workflow.PartnerID]Consent{}
	}
	p.lists[hash] = c.List
	p.consents[hash][c.Consent.Voter.Partner] = c.Consent
	if len(p.consents[hash]) < e.head.Majority() {
		return
	}
	l := c.List
	for _, given := range p.consents[hash] {
		l.Consents = append(l.Consents, given)
	}
	slices.SortFunc(l.Consents, func(a, b Consent) int { return comparePartner(a.Voter, b.Voter.Partner) })
	e.takeOver(append(slices.Clip(e.lineage), l), now)
	e.send("", Message{Lists: &Lists{e.lineage}})
}

// tickProposal asks again, or gives up.
func (e *Election) tickProposal(now moment.Now) {
	p := &e.proposing
	switch {
	case !p.active || now.Boot < p.next:
	case now.Boot >= p.until:
		reason := fmt.Errorf("%d of the %d consents needed; those given stay given, propose again when more voters can be reached, or let the founder override",
			len(p.consents[p.list.Hash()]), e.head.Majority())
		e.tell(Event{Kind: ProposalFailed, Reason: reason})
		e.proposing = proposing{}
	default:
		e.circulate(now)
	}
}
