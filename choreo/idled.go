package choreo

import (
	"fmt"

	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about what people may have a holder write that ends nothing. Claims are facts of the
// holder, and count in its share of the instance, but the words in them come from others: people who take
// items and give them back, or bring results too late, would have an honest holder exceed its share. So
// such words have a budget of their own, for each person and for all, well below the smallest share. It is counted
// from the facts, so a restart changes nothing. What an open grant takes is not counted, nor the
// grant and the result that ended an item: of those there is one for each item.

// What people's words that end nothing may take in one instance at one holder. The smallest share is
// 5,000 facts and 1 MiB (the preset mobile).
const (
	MaxIdleFacts       = 512
	MaxIdleBytes       = 384 << 10
	MaxPersonIdleFacts = MaxIdleFacts / 4
	MaxPersonIdleBytes = MaxIdleBytes / 4
)

// MaxGrants is how often one person is given one item.
const MaxGrants = 16

// aroundClaim is about what a fact takes beside what is claimed in it, in bytes.
const aroundClaim = 256

// What orders may take in one instance at one holder, with what follows from them, of all who may decide, and of
// one person: so the words of others never keep one out, nor one of those who decide the other. Together
// with MaxIdleFacts and MaxIdleBytes it is less than the smallest share.
const (
	MaxOrderFacts       = 1024
	MaxOrderBytes       = 448 << 10
	MaxPersonOrderFacts = MaxOrderFacts / 4
	MaxPersonOrderBytes = MaxOrderBytes / 4
)

// aroundTry is about what the facts of one try say beside what all facts do, in bytes: why it failed.
const aroundTry = 1 << 10

// idler is a person at a holder; without a person: all, or those who decide about the instance.
type idler struct {
	holder workflow.PartnerID
	user   worklist.User
	orders bool
}

// idled is what words take that ended nothing.
type idled struct{ facts, bytes int }

func (x idled) plus(y idled) idled { return idled{x.facts + y.facts, x.bytes + y.bytes} }

// takes is what a claim takes.
func takes(c *Claim) idled { return idled{1, len(c.Says) + len(c.Word) + aroundClaim} }

// spend counts what turns out to end nothing with a claim that counts: a release or a revocation, and the
// grant before it; a grant in another mode; a result, until a close takes it.
func (s *State) spend(e *entry, c *Claim, body worklist.Body, who Speaker) {
	by := who.User
	switch x := body.(type) {
	case worklist.Grant:
		for _, i := range x.Items {
			if h, held := s.work().Holds(i); held && h.User == by {
				s.charge(e, by, s.granting(h.Grant, by), 1)
			}
		}
	case worklist.Release:
		s.charge(e, by, takes(c).plus(s.granting(x.Grant, by)), 1)
	case worklist.Revoke:
		if to, _, ever := s.work().Given(x.Item, x.Grant); ever {
			s.charge(e, s.payer(x.Grant, to), takes(c).plus(s.granting(x.Grant, to)), 1)
		}
	case worklist.Transfer:
		if x.Cause == worklist.ByDeadline { // whoever had it is charged for the grant; of what is said there is one for each deadline
			if h, held := s.work().Holds(x.Item); held {
				s.charge(e, h.User, s.granting(h.Grant, h.User), 1)
			}
			return
		}
		takes := s.transferTakes(c, x)
		if s.work().MayOrder(by, who.Roles) == "" {
			s.chargeOrder(e, by, takes)
		} else {
			s.charge(e, by, takes, 1)
		}
	case worklist.Result:
		s.charge(e, by, takes(c), 1)
	case worklist.Order:
		s.chargeOrder(e, by, s.orderTakes(c, x))
	case worklist.Adopt:
		s.chargeOrder(e, by, takes(c))
	case worklist.Extend:
		s.chargeOrder(e, by, extendTakes(c))
	case worklist.Notify:
		s.chargeOrder(e, by, takes(c))
	case worklist.Close:
		if r := s.log.byID[FactID(x.Result)]; r != nil && r.counted && r.fact.Body.Claim != nil && s.log.knew(e, r) {
			if res, is := r.fact.Body.Claim.Body().(worklist.Result); is && res.Item == x.Item {
				s.charge(e, r.speaker().User, takes(r.fact.Body.Claim), -1)
			}
		}
	}
}

// transferTakes is what a transfer takes, with the grant that it ends.
func (s *State) transferTakes(c *Claim, x worklist.Transfer) idled {
	out := takes(c)
	if to, _, ever := s.work().Given(x.Item, x.Grant); ever {
		out = out.plus(s.granting(x.Grant, to))
	}
	return out
}

// payer is who is charged for the end of a grant: whom it was given to, unless that one was only handed
// the item.
func (s *State) payer(grant worklist.ID, to worklist.User) worklist.User {
	g := s.log.byID[FactID(grant)]
	if g == nil || g.fact.Body.Claim == nil {
		return to
	}
	if _, handed := g.fact.Body.Claim.Body().(worklist.Transfer); handed {
		return g.speaker().User
	}
	return to
}

// chargeOrder counts what somebody who decides has a partner write.
func (s *State) chargeOrder(e *entry, u worklist.User, x idled) {
	for _, who := range []idler{
		{holder: e.fact.Chain.Author, user: u, orders: true}, {holder: e.fact.Chain.Author, orders: true},
	} {
		s.peoples.idled[who] = s.peoples.idled[who].plus(x)
	}
}

// orderTakes is what an order takes with the facts that its holder writes because of it: another attempt with
// all of its tries, or the end of one.
func (s *State) orderTakes(c *Claim, x worklist.Order) idled {
	out := takes(c)
	a := s.attempts[attemptIDOf(x.Item)]
	if a == nil {
		return out
	}
	tries := 1
	if a.Task.ByNode() {
		tries += a.Task.Retries.Times
	}
	switch x.What {
	case worklist.Again:
		if x.To != "" && x.To != a.Partner { // the assignment; all else is the other's
			return out.plus(idled{1, aroundClaim + len(x.To)})
		}
		// The assignment, of each try its start and its end, and the verdict
		facts := 1 + 2*tries + 1
		if a.Task.Type == workflow.SubWorkflow {
			facts += tries // which instance does it
		}
		out = out.plus(idled{facts, facts*aroundClaim + tries*aroundTry})
	case worklist.Undo: // of each try of the compensation its start and its end
		if a.undo != nil {
			tries = 1 + a.undo.Task.Retries.Times
		}
		out = out.plus(idled{2 * tries, 2*tries*aroundClaim + tries*aroundTry})
	case worklist.Skip: // the assignment, and the verdict, which says why
		out = out.plus(idled{2, 2*aroundClaim + len(x.Reason)})
	case worklist.Stop: // the end of the item, and the verdict, which says why
		out = out.plus(idled{2, 2*aroundClaim + len(x.Reason)})
	}
	return out
}

// extendTakes is what another deadline takes, with the fact by which the item may pass on once more.
func extendTakes(c *Claim) idled { return takes(c).plus(idled{1, aroundClaim}) }

// granting is what a grant takes for one of its items; nothing, if it is not that person's.
func (s *State) granting(grant worklist.ID, to worklist.User) idled {
	g := s.log.byID[FactID(grant)]
	if g == nil || !g.counted || g.fact.Body.Claim == nil || g.speaker().User != to {
		return idled{}
	}
	x := takes(g.fact.Body.Claim)
	x.bytes /= max(1, len(g.fact.Body.Claim.About()))
	return x
}

func (s *State) charge(e *entry, u worklist.User, x idled, sign int) {
	for _, who := range []idler{{holder: e.fact.Chain.Author, user: u}, {holder: e.fact.Chain.Author}} {
		s.peoples.idled[who] = s.peoples.idled[who].plus(idled{sign * x.facts, sign * x.bytes})
	}
}

// mayIdle says why this node writes down no more words of a person that may end nothing; nil: it does.
func (d *decision) mayIdle(c *Claim, u worklist.User) error {
	his := d.state.peoples.idled[idler{holder: d.self, user: u}].plus(takes(c))
	all := d.state.peoples.idled[idler{holder: d.self}].plus(takes(c))
	const next = "its holder can end the task itself (mutirao task complete, or task fail)"
	switch {
	case his.facts > MaxPersonIdleFacts || his.bytes > MaxPersonIdleBytes:
		return fmt.Errorf("%w: what you said in this instance and what ended nothing would come to %d facts and %d bytes, at most %d and %d: "+
			"somebody else can take the item, or %s", ErrNotNow, his.facts, his.bytes, MaxPersonIdleFacts,
			MaxPersonIdleBytes, next)
	case all.facts > MaxIdleFacts || all.bytes > MaxIdleBytes:
		return fmt.Errorf("%w: what people said in this instance and what ended nothing would come to %d facts and %d bytes, at most %d and %d: %s",
			ErrNotNow, all.facts, all.bytes, MaxIdleFacts, MaxIdleBytes, next)
	}
	return nil
}

// mayOrderMore says why this node writes down no more of what somebody decides; nil: it does. An order that
// cancels the instance is the last, and always has room.
func (d *decision) mayOrderMore(takes idled, u worklist.User) error {
	his := d.state.peoples.idled[idler{holder: d.self, user: u, orders: true}].plus(takes)
	all := d.state.peoples.idled[idler{holder: d.self, orders: true}].plus(takes)
	const next = "its holder can end the task itself (mutirao task complete, or task fail)"
	switch {
	case his.facts > MaxPersonOrderFacts || his.bytes > MaxPersonOrderBytes:
		return fmt.Errorf("%w: what you ordered about what this partner holds of the instance, with what follows from it, would come to "+
			"%d facts and %d bytes, at most %d and %d: somebody else who decides can order it, or %s",
			ErrNotNow, his.facts, his.bytes, MaxPersonOrderFacts, MaxPersonOrderBytes, next)
	case all.facts > MaxOrderFacts || all.bytes > MaxOrderBytes:
		return fmt.Errorf("%w: orders about what this partner holds of the instance, with what follows from them, would come to "+
			"%d facts and %d bytes, at most %d and %d: %s", ErrNotNow, all.facts, all.bytes, MaxOrderFacts,
			MaxOrderBytes, next)
	}
	return nil
}

// words is how much people have said about an attempt.
func (d *decision) words(id AttemptID) int {
	return len(d.state.peoples.of[claimsOf{attempt: id, people: true}])
}

// mayGrant says why an item is not given to a person once more; nil: it is.
func (d *decision) mayGrant(i worklist.Item, u worklist.User) error {
	if n := d.state.work().Granted(i, u); n >= MaxGrants {
		return fmt.Errorf("%w: %s was given to you %d times, at most %d: somebody else can take it", ErrNotNow, i.Slot,
			n, MaxGrants)
	}
	return d.mayBeSaid(i, MaxClaims)
}

// mayBeSaid says why no more is taken about an item; nil: it is.
func (d *decision) mayBeSaid(i worklist.Item, most int) error {
	if n := d.words(attemptIDOf(i)); n >= most {
		return fmt.Errorf("%w: people have said %d things about %s, at most %d are taken: its holder can end the task itself "+
			"(mutirao task complete, or task fail)", ErrNotNow, n, i.Slot, most)
	}
	return nil
}
