package state

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/workflow/amendments"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about claims: who has a person's task, and with which result it ends
// (docs/worklists.md). An item is an attempt at a person's task. All that is claimed of it
// its holder writes, and nobody else: what a person asks for, gives back or brings comes to
// the holder signed, and goes into the fact with what proves who the person is. So nobody
// can have a person say something, and the holder's chain gives all claims of an item one order.
//
// A claim counts if its author holds the items, and if the person's word in it is true and
// was not written down before: that follows from its past alone. What it changes is for
// worklist.Board to say, which is given all claims that count, in the order of the facts.

// MostWords is how many words of people about one item there may be when one of that kind is said.
func MostWords(body worklist.Body) int {
	switch body.(type) {
	case worklist.Grant, worklist.Transfer:
		return fact.MaxClaims
	}
	return 2 * fact.MaxClaims
}

func (s *State) enterClaim(c *fact.Claim, e *log.Entry) (why string) {
	body, err := c.Read()
	if err != nil {
		return "it cannot be read" // validate refuses it
	}
	if AboutUnits(body) {
		return s.enterUnits(e, body)
	}
	var of []*Attempt
	for _, id := range c.About() {
		a, why := s.claimable(e, id, c)
		if why != "" {
			return why
		}
		of = append(of, a)
	}
	if len(of) == 0 {
		if why := s.saidOften(e, OfInstance(body), MostOfInstance(body)); why != "" {
			return why
		}
	}
	who, why := s.speaker(e, c) // whose word it is costs most to find out
	if why == "" {
		why = s.maySay(e, c, body, of, who)
	}
	if x, amends := body.(worklist.Amend); amends && why == "" {
		if why = s.fits(e, x); why == "" && s.EvidenceOf(e).SteersBegun(s.fittings[e.ID].patch) {
			why = "it amends what a task waits for that had begun, as its author knew"
		}
	}
	if why != "" {
		return why
	}
	board, digest := s.Work(), [sha256.Size]byte{}
	if len(c.Word) > 0 {
		digest = fact.SpokenOf(s.log.Instance(), c.Says, c.Nonce)
		said := s.peoples.Spoken[digest]
		if s.EvidenceOf(e).any(said) {
			return "the person's word in it was written down before"
		}
		s.peoples.Spoken[digest] = firstOf(said, e)
	}
	s.spend(e, c, body, who)
	if len(of) == 0 {
		s.peoples.Of[OfInstance(body)] = append(s.peoples.Of[OfInstance(body)], e)
	}
	for _, a := range of {
		s.enterClaimOf(a, e, c, body)
	}
	if gives(body) {
		s.taken(e, of...)
	}
	board.Add(&worklist.Fact{
		ID: worklist.ID(e.ID), Time: e.Time, Partner: e.Fact.Chain.Author, User: who.User, Roles: who.Roles,
		From: who.At, Word: worklist.ID(digest), At: time.UnixMilli(e.Fact.At), Body: body,
		Unfit: s.unfit(e, of, body),
	}, 0)
	if _, changes := body.(worklist.Notify); changes {
		s.offerAnew()
	}
	if _, amends := body.(worklist.Amend); amends {
		s.amends = append(s.amends, e)
		for who := range e.Fact.Body.Appoints() {
			s.join(who, e)
		}
	}
	s.peoples.unheard = append(s.peoples.unheard, e)
	return ""
}

// maySay says why somebody may not say what a claim says of these attempts; empty: it is allowed.
func (s *State) maySay(e *log.Entry, c *fact.Claim, body worklist.Body, of []*Attempt, who fact.Speaker) (why string) {
	if x, passes := body.(worklist.Transfer); passes {
		if why := s.mayPass(e, of[0], x, who); why != "" {
			return why
		}
	} else if Decides(body) {
		if why := s.Work().MayOrder(who.User, who.Roles); why != "" {
			return why
		}
	} else if len(c.Word) > 0 && slices.ContainsFunc(of, func(a *Attempt) bool { return s.elsewhere(e, a, who) }) {
		return notHere
	}
	if x, adopts := body.(worklist.Adopt); adopts {
		return s.mayAdopt(e, of[0], x)
	}
	return ""
}

// enterClaimOf enters what a claim that counts changes of one attempt.
func (s *State) enterClaimOf(a *Attempt, e *log.Entry, c *fact.Claim, body worklist.Body) {
	s.PlaceItem(a)
	if x, closes := body.(worklist.Close); closes {
		s.closeItem(e, a, x)
	}
	if fact.IsOffer(body) && e.Fact.Body.Annex != nil {
		a.Weighed = earlier(a.Weighed, e)
	}
	if x, passes := body.(worklist.Transfer); passes {
		s.notePassed(e, a, x)
	}
	if _, adopts := body.(worklist.Adopt); adopts {
		s.succeed(a, e)
		s.touch(a.Slot)
	}
	if x, orders := body.(worklist.Order); orders && x.What == worklist.Undo {
		a.toUndo = true
	} else if orders && a.Partner != e.Fact.Chain.Author {
		s.peoples.instead = append(s.peoples.instead, e)
	}
	if recovers(body) && s.flow != nil && a.Slot == s.flow.Slot {
		s.flow.say(a, e)
	}
	if a.Fired != nil { // also what programs do, as it may be ordered about
		s.flow.people[a] = true
	}
	s.peoples.Of[partOf(c, a)] = append(s.peoples.Of[partOf(c, a)], e)
	s.Move(a.Slot)
}

// TakeClosed are the attempts whose items were closed since it was last called.
func (s *State) TakeClosed() []fact.AttemptID {
	closed := s.peoples.closed
	s.peoples.closed = nil
	return closed
}

// CloseLater has TakeClosed tell of an attempt once more: it cannot end yet.
func (s *State) CloseLater(id fact.AttemptID) { s.peoples.closed = append(s.peoples.closed, id) }

// TakeUnheard are the claims that came since it was last called.
func (s *State) TakeUnheard() []*log.Entry {
	unheard := s.peoples.unheard
	s.peoples.unheard = nil
	return unheard
}

// speaker is who spoke in a claim; a zero one: nobody.
func (s *State) speaker(e *log.Entry, c *fact.Claim) (fact.Speaker, string) {
	if len(c.Word) == 0 {
		return fact.Speaker{}, ""
	}
	if e.Word == nil {
		who, err := s.SpeakerOf(c)
		e.Word = &log.Voiced{By: who, Untrue: err}
	}
	if e.Word.Untrue != nil {
		return fact.Speaker{}, "the word of a person in it is not true"
	}
	return e.Word.By, ""
}

func (s *State) SpeakerOf(c *fact.Claim) (fact.Speaker, error) {
	if s.trust == nil {
		return fact.Speaker{}, errNoTrust
	}
	return s.trust.Speaker(c.Word, fact.SpokenOf(s.log.Instance(), c.Says, c.Nonce))
}

// partOf are the claims of an attempt among which one is counted.
func partOf(c *fact.Claim, a *Attempt) ClaimsOf {
	if fact.IsOffer(c.Body()) {
		return ClaimsOf{offers: a.Partner}
	}
	return ClaimsOf{Attempt: a.ID, People: len(c.Word) > 0}
}

// OfInstance are the claims about an instance that are counted together with what somebody says of it.
func OfInstance(body worklist.Body) ClaimsOf {
	_, notify := body.(worklist.Notify)
	_, amend := body.(worklist.Amend)
	return ClaimsOf{People: true, notify: notify, amend: amend}
}

// MostOfInstance is how many such claims about an instance there may be.
func MostOfInstance(body worklist.Body) int {
	if _, amends := body.(worklist.Amend); amends {
		return amendments.MaxPatches
	}
	return 2 * fact.MaxClaims
}

// claimable is an attempt that a fact may claim something of; else why it may not.
func (s *State) claimable(e *log.Entry, id fact.AttemptID, c *fact.Claim) (*Attempt, string) {
	a := s.attempts[id]
	switch {
	case a == nil || !s.knewOf(e, id):
		return nil, "it is about an attempt that it does not know"
	case a.Partner != e.Fact.Chain.Author && !Adopts(c.Body()) && !s.OrderedInStead(e, a, c.Body()):
		return nil, "its author does not hold the attempt"
	case !ForPeople(a, c.Body()):
		return nil, "its task is not for a person to claim"
	}
	most := fact.MaxClaims
	if len(c.Word) > 0 {
		most = MostWords(c.Body())
	} else if fact.IsOffer(c.Body()) {
		most = worklist.MaxOffers
	}
	return a, s.saidOften(e, partOf(c, a), most)
}

// ForPeople reports whether something may be claimed of an attempt: of one at a task of people, and
// of any by those who decide about the instance.
func ForPeople(a *Attempt, body worklist.Body) bool {
	x, closes := body.(worklist.Close)
	if a.Task.Whole || recovers(body) {
		return a.Task.Whole && recovers(body)
	}
	if a.Beside() { // what fails of the flow is recovered, and nothing follows a compensation that failed
		o, orders := body.(worklist.Order)
		stops := orders && o.What == worklist.Stop || closes && !x.Order.IsZero()
		return a.Transition() && stops || !a.Task.ByNode() && !Decides(body)
	}
	return !a.Task.ByNode() || Decides(body) || closes && !x.Order.IsZero()
}

// saidOften says why a claim does not count, of which kind there are so many that its author knew; "": it does.
func (s *State) saidOften(e *log.Entry, kind ClaimsOf, most int) string {
	of := s.peoples.Of[kind]
	if s.AtLeast(most, len(of), func(i int) bool { return s.log.Knew(e, of[i]) }) {
		return fmt.Sprintf("%d such things had been said about the item, as its author knew: no more count", most)
	}
	return ""
}

// closeItem notes that the item of an attempt was closed, and whether somebody did it who has
// the role of its task, or one to which it was passed.
func (s *State) closeItem(e *log.Entry, a *Attempt, x worklist.Close) {
	s.peoples.closed = append(s.peoples.closed, a.ID)
	r := s.log.ByID()[fact.ID(x.Result)]
	if r == nil || !r.Counted || !s.log.Knew(e, r) || r.Fact.Body.Claim == nil ||
		!slices.Contains(r.Fact.Body.Claim.About(), a.ID) {
		return
	}
	if a.Task.ByRole() && s.entitledAt(r, a, r.Speaker()) {
		s.peoples.done[a.ID] = firstOf(s.peoples.done[a.ID], e)
	}
}

// ClaimLines are what the claims come to, for the fingerprint.
func (s *State) ClaimLines() []string {
	if s.peoples.Board == nil && len(s.def.Resources) == 0 {
		return nil
	}
	return s.Work().Lines()
}
