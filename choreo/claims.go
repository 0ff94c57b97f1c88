package choreo

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
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

// Claim says something about people's work.
type Claim struct {
	_ struct{} `cbor:",toarray"`
	// Says is what, as the package worklist writes it down.
	Says []byte
	// Nonce makes two words that say the same two.
	Nonce [16]byte
	// Word is the word of the person for Says and Nonce in this instance (SpokenOf), with
	// what proves who that is; empty: the holder itself says it.
	Word []byte

	body worklist.Body // what Says says, once it was read
}

// MaxClaims is how many words of people about one item there may be, as far as their author knew,
// when it is granted or passed on once more, and how much its holder says of itself. Nobody takes one item and
// gives it back so often; and so nobody makes one costly. Releases and results have as much again: whoever
// got the item at last can give it back, or end it.
const MaxClaims = 256

// mostWords is how many words of people about one item there may be when one of that kind is said.
func mostWords(body worklist.Body) int {
	switch body.(type) {
	case worklist.Grant, worklist.Transfer:
		return MaxClaims
	}
	return 2 * MaxClaims
}

// maxWord bounds a person's word with what proves it, in bytes.
const maxWord = 24 << 10

// Speaker is who a person's word is by, as Trust finds.
type Speaker struct {
	User  worklist.User
	Roles []workflow.RoleName
	// At is the partner at whose node the person's key is.
	At workflow.PartnerID
}

var claimDomain = []byte("mutirao/claim/1\x00")

// SpokenOf is what a person signs: what is claimed, in that instance, once.
func SpokenOf(id workflow.InstanceID, says []byte, nonce [16]byte) [sha256.Size]byte {
	h := sha256.New()
	h.Write(claimDomain)
	h.Write(id[:])
	h.Write(nonce[:])
	h.Write(says)
	return [sha256.Size]byte(h.Sum(nil))
}

// read is what a claim says.
func (c *Claim) read() (worklist.Body, error) {
	if c.body == nil {
		body, err := worklist.Decode(c.Says)
		if err != nil {
			return nil, err
		}
		c.body = body
	}
	return c.body, nil
}

// Body is what a claim says; nil: it cannot be read.
func (c *Claim) Body() worklist.Body {
	body, _ := c.read()
	return body
}

func (c *Claim) kind() string { return "claim" }

func (c *Claim) validate(workflow.PartnerID) error {
	body, err := c.read()
	if err != nil {
		return err
	}
	if len(c.Word) > maxWord {
		return fmt.Errorf("a person's word of %d bytes, at most %d", len(c.Word), maxWord)
	}
	switch byPerson := len(c.Word) > 0; {
	case peopleSay(body) && !byPerson:
		return errors.New("it is said in nobody's name")
	case !peopleSay(body) && (byPerson || c.Nonce != [16]byte{}):
		return errors.New("only its author can say that")
	}
	return nil
}

// peopleSay reports whether something is the word of a person, and not that of its author alone.
func peopleSay(body worklist.Body) bool {
	switch x := body.(type) {
	case worklist.Grant, worklist.Release, worklist.Result, worklist.Order, worklist.Adopt, worklist.Extend,
		worklist.Notify:
		return true
	case worklist.Transfer:
		return x.Cause != worklist.ByDeadline
	}
	return false
}

// About are the attempts that a claim is about.
func (c *Claim) About() (out []AttemptID) {
	body, err := c.read()
	if err != nil {
		return nil
	}
	for _, i := range worklist.About(body) {
		out = append(out, attemptIDOf(i))
	}
	return out
}

func itemOf(id AttemptID) worklist.Item {
	return worklist.Item{Assigned: worklist.ID(id.Fact), Slot: id.Slot}
}

func attemptIDOf(i worklist.Item) AttemptID {
	return AttemptID{Fact: FactID(i.Assigned), Slot: i.Slot}
}

// peoplesWork is what is known of people's work in an instance. It is empty in most: then
// it takes no memory (State.work).
type peoplesWork struct {
	board *worklist.Board // nil: nothing was claimed, or asked for
	// spoken are the facts in which a word was written down, by what was signed, one of each strand.
	spoken map[[sha256.Size]byte][]*entry
	// of are the claims of an attempt; done, of each strand, the first that closed it with a result
	// of a person who shows the task's role.
	of   map[claimsOf][]*entry
	done map[AttemptID][]*entry
	// unheard are claims of which the board does not know yet since when they wait; closed are attempts
	// that this node may have to end, as their items were closed.
	unheard []*entry
	closed  []AttemptID
	// idled is what words that ended nothing take (idled.go).
	idled map[idler]idled
	// passed are the claims by which an item was passed to a role (passing.go), dueTo those by which one passed
	// to the responsible user as its deadline was near.
	passed, dueTo map[AttemptID][]*entry
	// reserved are the claims by which an attempt was given units, keeps those by which a partition's resources
	// were taken over, in the order of facts (resources.go).
	reserved map[AttemptID][]*entry
	keeps    map[workflow.PartitionName][]*entry
}

// work is the board of the instance. With it begins what is noted of claims.
func (s *State) work() *worklist.Board {
	if s.peoples.board == nil {
		s.peoples = peoplesWork{
			spoken: map[[sha256.Size]byte][]*entry{}, of: map[claimsOf][]*entry{}, done: map[AttemptID][]*entry{},
			idled:  map[idler]idled{},
			passed: map[AttemptID][]*entry{}, dueTo: map[AttemptID][]*entry{},
			reserved: map[AttemptID][]*entry{}, keeps: map[workflow.PartitionName][]*entry{},
		}
		terms := worklist.Terms{
			Instance: s.log.instance, Workflow: s.def.Name, Policy: s.policyAtStart(), Open: true,
			Responsible: s.responsible(), Administrators: s.def.Administrators,
		}
		s.peoples.board = worklist.New(terms, func(later, earlier worklist.ID) bool {
			l, e := s.log.byID[FactID(later)], s.log.byID[FactID(earlier)]
			return l != nil && e != nil && l != e && s.log.knew(l, e)
		})
		s.placeStores()
	}
	return s.peoples.board
}

func (s *State) enterClaim(c *Claim, e *entry) (why string) {
	body, err := c.read()
	if err != nil {
		return "it cannot be read" // validate refuses it
	}
	if aboutUnits(body) {
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
		if why := s.saidOften(e, ofInstance(body), 2*MaxClaims); why != "" {
			return why
		}
	}
	who, why := s.speaker(e, c) // whose word it is costs most to find out
	if why == "" {
		why = s.maySay(e, c, body, of, who)
	}
	if why != "" {
		return why
	}
	board, digest := s.work(), [sha256.Size]byte{}
	if len(c.Word) > 0 {
		digest = SpokenOf(s.log.instance, c.Says, c.Nonce)
		said := s.peoples.spoken[digest]
		if s.evidenceOf(e).any(said) {
			return "the person's word in it was written down before"
		}
		s.peoples.spoken[digest] = firstOf(said, e)
	}
	s.spend(e, c, body, who)
	if len(of) == 0 {
		s.peoples.of[ofInstance(body)] = append(s.peoples.of[ofInstance(body)], e)
	}
	for _, a := range of {
		s.enterClaimOf(a, e, c, body)
	}
	board.Add(&worklist.Fact{
		ID: worklist.ID(e.id), Time: e.time, Partner: e.fact.Chain.Author, User: who.User, Roles: who.Roles,
		Word: worklist.ID(digest), At: time.UnixMilli(e.fact.At), Body: body,
	}, 0)
	if _, changes := body.(worklist.Notify); changes {
		s.offerAnew()
	}
	s.peoples.unheard = append(s.peoples.unheard, e)
	return ""
}

func (d *decision) tellClaim(c *Claim, e *entry) {
	if x, reserves := c.Body().(worklist.Reserve); reserves {
		d.tellReserved(e, attemptIDOf(x.Item))
		return
	}
	d.oweAll(e)
}

// maySay says why somebody may not say what a claim says of these attempts; empty: it is allowed.
func (s *State) maySay(e *entry, c *Claim, body worklist.Body, of []*Attempt, who Speaker) (why string) {
	if x, passes := body.(worklist.Transfer); passes {
		if why := s.mayPass(e, of[0], x, who); why != "" {
			return why
		}
	} else if decides(body) {
		if why := s.work().MayOrder(who.User, who.Roles); why != "" {
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
func (s *State) enterClaimOf(a *Attempt, e *entry, c *Claim, body worklist.Body) {
	s.placeItem(a)
	if x, closes := body.(worklist.Close); closes {
		s.closeItem(e, a, x)
	}
	if isOffer(body) && e.fact.Body.Annex != nil {
		a.weighed = earlier(a.weighed, e)
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
	}
	if recovers(body) && s.flow != nil && a.Slot == s.flow.slot {
		s.flow.say(a, e)
	}
	s.peoples.of[partOf(c, a)] = append(s.peoples.of[partOf(c, a)], e)
	s.move(a.Slot)
}

// takeClosed are the attempts whose items were closed since it was last called.
func (s *State) takeClosed() []AttemptID {
	closed := s.peoples.closed
	s.peoples.closed = nil
	return closed
}

// takeUnheard are the claims that came since it was last called.
func (s *State) takeUnheard() []*entry {
	unheard := s.peoples.unheard
	s.peoples.unheard = nil
	return unheard
}

// voiced is whose word a claim has in it; or why it is nobody's.
type voiced struct {
	by     Speaker
	untrue error
	// adopted are the data that an adoption takes, once it counted (adopting.go).
	adopted map[workflow.DataName]workflow.Value
}

// speaker is who spoke in a fact, as far as that was checked; a zero one: nobody.
func (e *entry) speaker() Speaker {
	if e.word == nil {
		return Speaker{}
	}
	return e.word.by
}

// speaker is who spoke in a claim; a zero one: nobody.
func (s *State) speaker(e *entry, c *Claim) (Speaker, string) {
	if len(c.Word) == 0 {
		return Speaker{}, ""
	}
	if e.word == nil {
		who, err := s.speakerOf(c)
		e.word = &voiced{by: who, untrue: err}
	}
	if e.word.untrue != nil {
		return Speaker{}, "the word of a person in it is not true"
	}
	return e.word.by, ""
}

func (s *State) speakerOf(c *Claim) (Speaker, error) {
	if s.trust == nil {
		return Speaker{}, errNoTrust
	}
	return s.trust.Speaker(c.Word, SpokenOf(s.log.instance, c.Says, c.Nonce))
}

// claimsOf are the claims of an attempt that people said, or that its holder said of itself. Without an attempt: those
// about the instance; changes of policy among them, which shall not keep out any other; and what a partner
// said of whom it offers items to.
type claimsOf struct {
	attempt AttemptID
	people  bool
	notify  bool
	offers  workflow.PartnerID
}

// partOf are the claims of an attempt among which one is counted.
func partOf(c *Claim, a *Attempt) claimsOf {
	if isOffer(c.Body()) {
		return claimsOf{offers: a.Partner}
	}
	return claimsOf{attempt: a.ID, people: len(c.Word) > 0}
}

// ofInstance are the claims about an instance that are counted together with what somebody says of it.
func ofInstance(body worklist.Body) claimsOf {
	_, notify := body.(worklist.Notify)
	return claimsOf{people: true, notify: notify}
}

// claimable is an attempt that a fact may claim something of; else why it may not.
func (s *State) claimable(e *entry, id AttemptID, c *Claim) (*Attempt, string) {
	a := s.attempts[id]
	switch {
	case a == nil || !s.knewOf(e, id):
		return nil, "it is about an attempt that it does not know"
	case a.Partner != e.fact.Chain.Author && !adopts(c.Body()):
		return nil, "its author does not hold the attempt"
	case !forPeople(a, c.Body()):
		return nil, "its task is not for a person to claim"
	}
	most := MaxClaims
	if len(c.Word) > 0 {
		most = mostWords(c.Body())
	} else if isOffer(c.Body()) {
		most = worklist.MaxOffers
	}
	return a, s.saidOften(e, partOf(c, a), most)
}

// forPeople reports whether something may be claimed of an attempt: of one at a task of people, and
// of any by those who decide about the instance.
func forPeople(a *Attempt, body worklist.Body) bool {
	x, closes := body.(worklist.Close)
	if a.Task.Whole || recovers(body) {
		return a.Task.Whole && recovers(body)
	}
	if a.transition() { // what fails of the flow is recovered: nobody orders anything else
		return !a.Task.ByNode() && !decides(body)
	}
	return !a.beside() && (!a.Task.ByNode() || decides(body) || closes && !x.Order.IsZero())
}

// saidOften says why a claim does not count, of which kind there are so many that its author knew; "": it does.
func (s *State) saidOften(e *entry, kind claimsOf, most int) string {
	of := s.peoples.of[kind]
	if s.atLeast(most, len(of), func(i int) bool { return s.log.knew(e, of[i]) }) {
		return fmt.Sprintf("%d such things had been said about the item, as its author knew: no more count", most)
	}
	return ""
}

const notHere = "its task names no role: it is for people at its holder"

// closeItem notes that the item of an attempt was closed, and whether somebody did it who has
// the role of its task, or one to which it was passed.
func (s *State) closeItem(e *entry, a *Attempt, x worklist.Close) {
	s.peoples.closed = append(s.peoples.closed, a.ID)
	r := s.log.byID[FactID(x.Result)]
	if r == nil || !r.counted || !s.log.knew(e, r) || r.fact.Body.Claim == nil ||
		!slices.Contains(r.fact.Body.Claim.About(), a.ID) {
		return
	}
	if a.Task.ByRole() && s.entitledAt(r, a, r.speaker()) {
		s.peoples.done[a.ID] = firstOf(s.peoples.done[a.ID], e)
	}
}

// personDid reports whether the result of a person who showed the role of its task closed an attempt.
func (v *evidence) personDid(a *Attempt) bool { return v.any(v.s.peoples.done[a.ID]) }

// holdOf is who has the item of an attempt; false: nobody.
func (s *State) holdOf(a *Attempt) (worklist.Standing, bool) {
	if s.peoples.board == nil {
		return worklist.Standing{}, false
	}
	return s.peoples.board.Holds(itemOf(a.ID))
}

// placeItem tells the board how an attempt stands.
func (s *State) placeItem(a *Attempt) {
	wanted := s.wanted(a)
	ready := wanted && (a.start != nil || a.mayStart())
	waits := s.waitsOf(a)
	skipped := wanted && !ready && a.Slot.State == workflow.Skipped
	s.work().Set(worklist.Place{
		Item: itemOf(a.ID), Holder: a.Partner, Partition: s.plan.Home(a.Task.Name),
		Task: s.taskOf(a), Root: s.rootItem(a), Begun: a.start != nil,
		Presumed: a.Slot.State == workflow.Failed || a.Slot.Pending != nil,
		InCharge: s.inCharge(a), Stands: s.endOf(a), Ready: ready, Since: a.noticed, Waits: waits,
		Over: !wanted || skipped || a.success() != nil || a.endedByHolder(), Why: s.whyOver(a, wanted && !ready && len(waits) == 0),
		Unhandled: s.unhandled(a), Failure: failureOf(a),
	})
}

// rootItem is the item for which units are given to an attempt; a zero one: its own.
func (s *State) rootItem(a *Attempt) worklist.Item {
	if r := a.root(); len(a.holds()) > 0 && r != a {
		return itemOf(r.ID)
	}
	return worklist.Item{}
}

// inCharge reports whether an attempt is in charge of its slot, or its success stands; of a transition, whether it is
// in the history that counts.
func (s *State) inCharge(a *Attempt) bool {
	if a.transition() {
		return s.flow.pendingJob(a) != nil || a.success() != nil && a.stands == standing
	}
	return a.Slot.Current == a || a.Slot.Pick == a
}

// taskOf is what the board has to know of the task of an attempt. A deadline matters to it only where the item
// passes on as it is near, once it is known since when it can be done.
func (s *State) taskOf(a *Attempt) worklist.Task {
	t := worklist.Task{
		Role: a.Task.Role, ByNode: a.Task.ByNode() || a.undoes != nil, Offline: a.Task.Offline,
		Priority: a.Task.Priority, Holds: a.holds(), Limited: s.pulled(a),
	}
	if left := s.transferOf(a); left > 0 && a.noticed != 0 {
		t.Transfer = left
		t.Due, _ = s.dueOf(a)
	}
	return t
}

// whyOver is why people cannot do an attempt any more, or not now if it waits, if that is not for its item's
// end; "": nothing more is to say than that it is over, or in another's hands.
func (s *State) whyOver(a *Attempt, waits bool) string {
	switch now := a.Slot.Current; {
	case a.transition():
		return s.whyStopped(a)
	case a.endedByHolder(), now != a && now.Task != a.Task:
		return "the task had failed by then"
	case now != a && now.Partner == a.Partner:
		return "the task was begun once more"
	case now == a && s.cancel != nil:
		return "the instance was cancelled"
	case waits && a.Slot.barred:
		return "a strict constraint is broken, so nothing begins"
	case waits && a.Slot.State == workflow.Skipped:
		return "the task is not needed any more"
	case waits:
		return "what the task waits for is not so any more"
	}
	return ""
}

// whyStopped is whyOver for a transition.
func (s *State) whyStopped(a *Attempt) string {
	switch {
	case a.endedByHolder():
		return "the task had failed by then"
	case s.cancel != nil:
		return "the instance was cancelled"
	case s.interruption() != nil:
		return "the instance was interrupted"
	}
	return ""
}

// placeItems tells the board how the attempts of a slot stand of which something was claimed.
func (s *State) placeItems(sl *Slot) {
	if s.peoples.board == nil && len(s.def.Resources) == 0 {
		return
	}
	s.work()
	if s.flow != nil && sl == s.flow.slot {
		s.placeTransitions()
	}
	for _, a := range sl.Attempts {
		if s.peoples.board.Knows(itemOf(a.ID)) || s.transferOf(a) > 0 || s.limits(a) || len(a.holds()) > 0 {
			s.placeItem(a)
		}
	}
}
