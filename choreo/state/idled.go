package state

import (
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/amendments"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about what people may have a holder write that ends nothing. Claims are facts of the
// holder, and count in its share of the instance, but the words in them come from others: people who take
// items and give them back, or bring results too late, would have an honest holder exceed its share. So
// such words have a budget of their own, for each person and for all, well below the smallest share. It is counted
// from the facts, so a restart changes nothing. What an open grant takes is not counted, nor the
// grant and the result that ended an item: of those there is one for each item.

// aroundClaim is about what a fact takes beside what is claimed in it, in bytes.
const aroundClaim = 256

// aroundTry is about what the facts of one try say beside what all facts do, in bytes: why it failed.
const aroundTry = 1 << 10

func (x Idled) Plus(y Idled) Idled { return Idled{x.Facts + y.Facts, x.Bytes + y.Bytes} }

// Takes is what a claim takes.
func Takes(c *fact.Claim) Idled { return Idled{1, len(c.Says) + len(c.Word) + aroundClaim} }

// spend counts what turns out to end nothing with a claim that counts: a release or a revocation, and the
// grant before it; a grant in another mode; a result, until a close takes it.
func (s *State) spend(e *log.Entry, c *fact.Claim, body worklist.Body, who fact.Speaker) {
	by := who.User
	switch x := body.(type) {
	case worklist.Grant:
		for _, i := range x.Items {
			if h, held := s.Work().Holds(i); held && h.User == by {
				s.charge(e, by, s.granting(h.Grant, by), 1)
			}
		}
	case worklist.Release:
		s.charge(e, by, Takes(c).Plus(s.granting(x.Grant, by)), 1)
	case worklist.Revoke:
		if to, _, ever := s.Work().Given(x.Item, x.Grant); ever {
			s.charge(e, s.payer(x.Grant, to), Takes(c).Plus(s.granting(x.Grant, to)), 1)
		}
	case worklist.Transfer:
		// whoever had it is charged for the grant; of what is said there is one for each deadline
		if x.Cause == worklist.ByDeadline {
			if h, held := s.Work().Holds(x.Item); held {
				s.charge(e, h.User, s.granting(h.Grant, h.User), 1)
			}
			return
		}
		takes := s.TransferTakes(c, x)
		if s.Work().MayOrder(by, who.Roles) == "" {
			s.chargeOrder(e, by, takes)
		} else {
			s.charge(e, by, takes, 1)
		}
	case worklist.Result:
		s.charge(e, by, Takes(c), 1)
	case worklist.Order:
		s.chargeOrder(e, by, s.OrderTakes(c, x))
	case worklist.Adopt:
		s.chargeOrder(e, by, Takes(c))
	case worklist.Extend:
		s.chargeOrder(e, by, ExtendTakes(c))
	case worklist.Notify:
		s.chargeOrder(e, by, Takes(c))
	case worklist.Amend:
		s.chargeOrder(e, by, AmendTakes(c, s.fittings[e.ID].patch))
	case worklist.Close:
		if r := s.log.ByID()[fact.ID(x.Result)]; r != nil && r.Counted && r.Fact.Body.Claim != nil && s.log.Knew(e, r) {
			if res, is := r.Fact.Body.Claim.Body().(worklist.Result); is && res.Item == x.Item {
				s.charge(e, r.Speaker().User, Takes(r.Fact.Body.Claim), -1)
			}
		}
	}
}

// TransferTakes is what a transfer takes, with the grant that it ends.
func (s *State) TransferTakes(c *fact.Claim, x worklist.Transfer) Idled {
	out := Takes(c)
	if to, _, ever := s.Work().Given(x.Item, x.Grant); ever {
		out = out.Plus(s.granting(x.Grant, to))
	}
	return out
}

// payer is who is charged for the end of a grant: whom it was given to, unless that one was only handed
// the item.
func (s *State) payer(grant worklist.ID, to worklist.User) worklist.User {
	g := s.log.ByID()[fact.ID(grant)]
	if g == nil || g.Fact.Body.Claim == nil {
		return to
	}
	if _, handed := g.Fact.Body.Claim.Body().(worklist.Transfer); handed {
		return g.Speaker().User
	}
	return to
}

// chargeOrder counts what somebody who decides has a partner write.
func (s *State) chargeOrder(e *log.Entry, u worklist.User, x Idled) {
	for _, who := range []Idler{
		{Holder: e.Fact.Chain.Author, User: u, Orders: true}, {Holder: e.Fact.Chain.Author, Orders: true},
	} {
		s.peoples.Idled[who] = s.peoples.Idled[who].Plus(x)
	}
}

// OrderTakes is what an order takes with the facts that its holder writes because of it: another attempt with
// all of its tries, or the end of one.
func (s *State) OrderTakes(c *fact.Claim, x worklist.Order) Idled {
	out := Takes(c)
	a := s.attempts[fact.AttemptIDOf(x.Item)]
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
			return out.Plus(Idled{1, aroundClaim + len(x.To)})
		}
		// The assignment, of each try its start and its end, and the verdict
		facts := 1 + 2*tries + 1
		if a.Task.Type == workflow.SubWorkflow {
			facts += tries // which instance does it
		}
		out = out.Plus(Idled{facts, facts*aroundClaim + tries*aroundTry})
	case worklist.Undo: // of each try of the compensation its start and its end
		if a.Undo != nil {
			tries = 1 + a.Undo.Task.Retries.Times
		}
		out = out.Plus(Idled{2 * tries, 2*tries*aroundClaim + tries*aroundTry})
	case worklist.Skip: // the assignment, and the verdict, which says why
		out = out.Plus(Idled{2, 2*aroundClaim + len(x.Reason)})
	case worklist.Stop: // the end of the item, and the verdict, which says why
		out = out.Plus(Idled{2, 2*aroundClaim + len(x.Reason)})
	}
	return out
}

// ExtendTakes is what another deadline takes, with the fact by which the item may pass on once more.
func ExtendTakes(c *fact.Claim) Idled { return Takes(c).Plus(Idled{1, aroundClaim}) }

// AmendTakes is what an amendment takes, with the facts by which items pass on once more whose tasks have another
// deadline by it.
func AmendTakes(c *fact.Claim, p amendments.Meant) Idled {
	n := len(p.Dates())
	return Takes(c).Plus(Idled{n, n * aroundClaim})
}

// granting is what a grant takes for one of its items; nothing, if it is not that person's.
func (s *State) granting(grant worklist.ID, to worklist.User) Idled {
	g := s.log.ByID()[fact.ID(grant)]
	if g == nil || !g.Counted || g.Fact.Body.Claim == nil || g.Speaker().User != to {
		return Idled{}
	}
	x := Takes(g.Fact.Body.Claim)
	x.Bytes /= max(1, len(g.Fact.Body.Claim.About()))
	return x
}

func (s *State) charge(e *log.Entry, u worklist.User, x Idled, sign int) {
	for _, who := range []Idler{{Holder: e.Fact.Chain.Author, User: u}, {Holder: e.Fact.Chain.Author}} {
		s.peoples.Idled[who] = s.peoples.Idled[who].Plus(Idled{sign * x.Facts, sign * x.Bytes})
	}
}
