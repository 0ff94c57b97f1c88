package choreo

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/contingency/waits"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about what the holder of people's tasks does about claims: it writes down what
// people say, if that may be, and ends what is over. Its attempt then ends as the item did (tries.go).

// Claim has this node, as the holder, write down what a person says. The person's word was
// checked for what changes with time; here it is checked once more, and whether it may be.
func (m *Machine) Claim(c *fact.Claim, now Moment, partners Partners) (Claimed, error) {
	d := m.deciding(now, partners)
	body, err := c.Read()
	if err == nil {
		err = c.Validate(m.self)
	}
	if err != nil {
		return Claimed{}, fmt.Errorf("%w: %w", fact.ErrInvalid, err)
	}
	if !d.heeded() {
		return Claimed{}, errUnheeded
	}
	who, err := d.state.SpeakerOf(c)
	if err != nil {
		return Claimed{}, err
	}
	p, known := d.partners.Person(who.User)
	if !known {
		x, result := body.(worklist.Result)
		switch _, _, ever := d.state.Work().Given(x.Item, x.Grant); {
		case !result || !ever:
			return Claimed{}, fmt.Errorf("%w: this node knows no such person, or it was removed", state.ErrNotNow)
		case d.state.Work().Takes(x):
			return Claimed{}, errStillTheirs
		}
		// Removed since, or without a good key: a result is kept under whatever grant its person ever had, and ends nothing.
		p.User = who.User
	}
	p.Roles = slices.DeleteFunc(slices.Clone(p.Roles),
		func(r workflow.RoleName) bool { return !slices.Contains(who.Roles, r) })
	d.look()
	for _, id := range c.About() {
		if err := d.mayClaim(id, who, body); err != nil {
			return Claimed{}, err
		}
	}
	before := d.WrittenDown(c)
	switch x := body.(type) {
	case worklist.Grant:
		return d.grant(c, x, p, before)
	case worklist.Release:
		return d.giveBack(c, x, p, before)
	case worklist.Result:
		if before { // the answer was lost
			word := fact.WordOf(d.log.Instance(), c.Says, c.Nonce)
			_, why := d.state.Work().Judged(x.Item, word)
			return d.became(x.Item, word, Claimed{Already: true, Kept: why}), nil
		}
		return d.bring(c, x, p)
	case worklist.Order:
		return d.order(c, x, p, before)
	case worklist.Transfer:
		return d.passOn(c, x, p, before)
	case worklist.Adopt:
		return d.adopt(c, x, p, before)
	case worklist.Extend:
		return d.extend(c, x, p, before)
	case worklist.Notify:
		return d.changePolicy(c, x, p, before)
	case worklist.Amend:
		return d.amend(c, x, p, before)
	}
	return Claimed{}, fmt.Errorf("%w: no person says that", fact.ErrInvalid)
}

// WrittenDown reports whether a person's word was written down already.
func (m *Machine) WrittenDown(c *fact.Claim) bool {
	return len(m.state.People().Spoken[fact.SpokenOf(m.log.Instance(), c.Says, c.Nonce)]) > 0
}

// SaidBy is the word of a person by which something was given; nil: there is none here.
func (m *Machine) SaidBy(given worklist.ID) *fact.Claim {
	e := m.log.ByID()[fact.ID(given)]
	if e == nil || e.Fact.Body.Claim == nil || len(e.Fact.Body.Claim.Word) == 0 {
		return nil
	}
	return e.Fact.Body.Claim
}

// mayClaim says why nothing can be claimed here of an attempt; nil: it can. Its place at the
// board is brought up to date.
func (d *decision) mayClaim(id fact.AttemptID, who fact.Speaker, body worklist.Body) error {
	a := d.state.Attempts()[id]
	switch {
	case a == nil:
		return &worklist.Refusal{
			Item: state.ItemOf(id), Why: worklist.Unknown, Text: "there is no such item here: look at the worklist again",
		}
	case a.Partner != d.self && !state.Adopts(body) && !d.state.OrderedInStead(nil, a, body):
		return &Elsewhere{Task: a.Task.WithLabel(), Partner: a.Partner}
	case a.Transition() && !state.ForPeople(a, body) && state.Decides(body):
		return fmt.Errorf("%w: %s is fired by data states: it can be stopped while it is under way, and what it comes to is recovered",
			state.ErrNotNow, d.called(a.Task.Name))
	case !state.ForPeople(a, body):
		return fmt.Errorf("%w: %s is not for a person to claim", state.ErrNotNow, a.Task.WithLabel())
	case d.elsewhere(a, who) && !state.Decides(body) && !d.state.Passes(body, who):
		return fmt.Errorf("%w: %s names no role, so it is for people at its holder", state.ErrNotNow, a.Task.WithLabel())
	}
	d.state.PlaceItem(a)
	return nil
}

// grant gives items to whoever asks for them, all or none.
func (d *decision) grant(c *fact.Claim, g worklist.Grant, p worklist.Person, before bool) (Claimed, error) {
	if g.Lease != worklist.DefaultLease(g.Mode) {
		return Claimed{}, fmt.Errorf("%w: a lease of %s: %s is given", state.ErrNotNow, g.Lease,
			worklist.DefaultLease(g.Mode))
	}
	given, err := d.state.Work().Ask(d.self, worklist.Request{
		Items: g.Items, Mode: g.Mode, With: g.With, Person: p, Anew: g.Anew, Word: fact.WordOf(d.log.Instance(), c.Says,
			c.Nonce),
	})
	switch {
	case err != nil:
		return Claimed{}, err
	case len(given.Items) == 0:
		return Claimed{Already: true}, nil
	case before:
		return Claimed{}, fmt.Errorf("%w: you asked for that before, and had it: ask anew", state.ErrNotNow)
	case g.Mode == worklist.Handed && len(given.Items) < len(g.Items):
		return Claimed{}, fmt.Errorf("%w: you have some of these items already: ask for the others", state.ErrNotNow)
	}
	for _, i := range given.Items {
		if err := d.mayGrant(i, p.User); err != nil {
			return Claimed{}, err
		}
		if err := d.mayPull(i, p.User, given.Items); err != nil {
			return Claimed{}, err
		}
	}
	if err := d.mayIdle(c, p.User); err != nil {
		return Claimed{}, err
	}
	_, err = d.append(fact.Body{Claim: c})
	return Claimed{}, err
}

// giveBack ends what a person has. Nobody is told that an item is given back who has it by another grant meanwhile, as
// it was taken or kept once more, perhaps at another device; only of a word that came before is said what it did.
func (d *decision) giveBack(c *fact.Claim, x worklist.Release, p worklist.Person, before bool) (Claimed, error) {
	to, open, ever := d.state.Work().Given(x.Item, x.Grant)
	h, held := d.state.Work().Holds(x.Item)
	switch {
	case !ever || to != p.User:
		return Claimed{}, fmt.Errorf("%w: %s was not given to you so", state.ErrNotNow, d.called(x.Item.Slot))
	case !open && (before || !held || h.User != p.User):
		return Claimed{Already: true}, nil
	case h.Grant != x.Grant:
		return Claimed{}, fmt.Errorf("%w: %s was given to you once more meanwhile: look at the worklist again",
			state.ErrNotNow, d.called(x.Item.Slot))
	}
	if err := d.mayBeSaid(x.Item, state.MostWords(x)); err != nil {
		return Claimed{}, err
	}
	_, err := d.append(fact.Body{Claim: c})
	return Claimed{}, err
}

// elsewhere reports whether somebody cannot have an attempt of ours, as things stand.
func (d *decision) elsewhere(a *state.Attempt, who fact.Speaker) bool {
	due := who.User == d.state.Responsible() && len(d.state.People().DueTo[a.ID]) > 0
	return a.Task.Role == "" && who.At != d.self && !due
}

// bring takes a person's result. If the person has the item, Decide closes it; else the
// result is kept and shown, and does not count.
func (d *decision) bring(c *fact.Claim, x worklist.Result, p worklist.Person) (Claimed, error) {
	board := d.state.Work()
	to, open, ever := board.Given(x.Item, x.Grant)
	a := d.state.Attempts()[fact.AttemptIDOf(x.Item)]
	was, late := board.Late(x, p.User)
	unfit := d.isUnfit(a, x)
	switch {
	case !ever: // as this node was put back from an older copy since
		return Claimed{}, fmt.Errorf("%w: its holder has no record that %s was given to you, as it may have been put back "+
			"from an older copy: select it again, and hand it in once more", state.ErrNotNow, d.called(x.Item.Slot))
	case to != p.User:
		return Claimed{}, fmt.Errorf("%w: %s was not given to you: select it first", state.ErrNotNow, d.called(x.Item.Slot))
	case board.Did(x, p.User): // a retry, or sent twice
		return Claimed{Already: true, Waits: board.PutOff(x.Item, p.User)}, nil
	case late && (unfit || !board.Takes(x) && !board.MayWait(x)): // once more, and it is kept already
		_, why := board.Judged(x.Item, was)
		return d.became(x.Item, was, Claimed{Already: true, Kept: cmp.Or(why, notYours), Still: open && unfit}), nil
	case len(board.Unnamed(x)) > 0:
		return Claimed{}, d.waitsFor(x.Item.Slot, board.Unnamed(x)[0])
	case board.OnlyHanded(x.Item, x.Grant):
		return Claimed{}, fmt.Errorf("%w: %s was kept for you, and you have not taken it: select it first",
			state.ErrNotNow, d.called(x.Item.Slot))
	}
	if err := d.mayBring(c, x, p.User, unfit); err != nil {
		return Claimed{}, err
	}
	fails := ""
	if !x.Failed && !unfit {
		outputs, err := d.state.Written(a.Task, x)
		if err == nil {
			outputs, err = d.state.CheckResult(a, outputs)
		}
		if err == nil {
			err = d.fits(fact.Body{Success: &fact.Success{Attempt: a.ID, Try: fact.MaxTry, Outputs: outputs}})
		}
		if err != nil {
			return Claimed{}, fmt.Errorf("%w: %w", state.ErrOutput, err)
		}
		if err := d.state.TooEarlyFor(a, outputs); err != nil {
			return Claimed{}, fmt.Errorf("%w: %w", state.ErrNotNow, err)
		}
		fails = d.clash(a, outputs)
	}
	if _, err := d.append(fact.Body{Claim: c}); err != nil {
		return Claimed{}, err
	}
	word := fact.WordOf(d.log.Instance(), c.Says, c.Nonce)
	counts, why := board.Judged(x.Item, word)
	if !open && !counts && why == "" {
		why = notYours
	}
	if why != "" {
		fails = "" // it makes nothing of the task
	}
	return d.became(x.Item, word, Claimed{Kept: why, Fails: fails, Still: open && unfit}), nil
}

// isUnfit reports whether a result is one that its task might have when its user took the item, and may not have by now,
// as the definition was amended. That may have been out of reach, and nothing of a person's work is lost: it is kept.
func (d *decision) isUnfit(a *state.Attempt, x worklist.Result) bool {
	if x.Failed || a == nil {
		return false
	}
	_, err := d.state.Written(a.Task, x)
	return err != nil && d.state.WasFit(a, x)
}

// became says of a result whether it waits for what it was made from and, if it does not count, by which fact it is
// kept, if it can be adopted.
func (d *decision) became(i worklist.Item, word worklist.ID, became Claimed) Claimed {
	if became.Kept == "" {
		became.Waits = d.state.Work().Waits(i, word)
		return became
	}
	id := d.state.Work().BroughtBy(i, word)
	if e := d.log.ByID()[fact.ID(id)]; e != nil && d.state.Adoptable(e) == nil {
		became.Result = id
	}
	return became
}

// waitsFor says that a result is not made from what its task waits for.
func (d *decision) waitsFor(task, first workflow.TaskName) error {
	do := "bring that first"
	if sl := d.state.BySlot()[first]; sl != nil && sl.Current.Task.ByNode() {
		do = "bring it once that is done"
	}
	return fmt.Errorf("%w: %s waits for %s: %s", state.ErrNotNow, d.called(task), d.called(first), do)
}

// mayBring says why a result is not taken; nil: it is. One that ends its item always has room, as none does that is unfit.
func (d *decision) mayBring(c *fact.Claim, x worklist.Result, u worklist.User, unfit bool) error {
	board := d.state.Work()
	if board.Takes(x) && !unfit {
		return d.mayBeSaid(x.Item, state.MostWords(x))
	}
	if n := board.Brought(x.Item, u); n >= maxLate && (unfit || !board.MayWait(x)) {
		return fmt.Errorf("%w: %d results of yours about %s are kept that do not count, at most %d: look at them with mutirao show",
			state.ErrNotNow, n, d.called(x.Item.Slot), maxLate)
	}
	if err := d.mayBeSaid(x.Item, state.MostWords(x)-1); err != nil { // one is for whoever has it
		return err
	}
	return d.mayIdle(c, u)
}

// maxLate is how many results of one person about one item are kept that do not end it: who decides may adopt any of
// them.
const maxLate = 4

// errStillTheirs is for a result of somebody who is not known any more, and from whom this node is still to take the item
// back: once it has, the result is kept.
var errStillTheirs = errors.New("the item was not taken back yet from whoever had it")

// notYours is why a result does not count where nothing else is to be said.
const notYours = "the item was not yours any more"

// hearClaims tells the board since when claims wait: those of this node by its own wall clock, which was running when it
// was not, and leases by their clocks, which go on after a restart whatever the wall clock says.
func (d *decision) hearClaims() {
	for _, e := range d.state.TakeUnheard() {
		since, known := d.claimedAt[e.ID]
		mine, key := e.Fact.Chain.Author == d.self, leaseOf(e.ID)
		c := d.clocks.Get(key)
		if !known {
			since = d.now.Boot
			switch {
			case c != nil:
				since -= c.Read(d.now.Boot)
			case mine:
				since -= max(0, d.now.Wall.Sub(time.UnixMilli(e.Fact.At)))
			}
			d.claimedAt[e.ID] = since
		}
		d.state.Work().Heard(worklist.ID(e.ID), since)
		if total, runs := d.state.Work().Lease(worklist.ID(e.ID)); mine && runs && c == nil {
			d.clocks.Begin(key, d.now.Boot-since, d.now.Boot)
			d.clocks.LeaseLasts(total)
		}
	}
}

// leaseOf names the wait that is the lease of what was given by a fact.
func leaseOf(given fact.ID) waits.Key {
	return waits.Key{Kind: waits.Lease, Name: hex.EncodeToString(given[:])}
}

// endLeases ends the clocks of leases by which nobody has anything any more. They are looked at when all are stored: a
// clock that runs until then does nothing.
func (d *decision) endLeases() {
	board := d.state.Work()
	d.clocks.Leases(func(name string) (time.Duration, bool) {
		var given fact.ID
		if n, err := hex.Decode(given[:], []byte(name)); err != nil || n != len(given) {
			return 0, false
		}
		return board.Lease(worklist.ID(given))
	})
}

// mindClaims writes what follows from claims for this node as the holder, and has attempts end
// whose items were closed. It reports whether it added facts.
func (d *decision) mindClaims() (added bool) {
	d.look()
	d.bringItems()
	if d.state.People().Board == nil {
		return false
	}
	d.hearClaims()
	people := claimants{
		decision: d, with: map[workflow.RoleName][]worklist.Person{}, sights: map[worklist.Item]partition.Sight{},
	}
	out := d.state.Work().Decide(d.self, people, worklist.Moment{Boot: d.now.Boot, Wall: d.now.Wall})
	added = d.mindUnits(out.Got)
	for _, body := range out.Write {
		if x, again := body.(worklist.Reopen); again {
			if d.doAgain(x) {
				added = true
			} else {
				d.state.Work().CannotFollow(x.Item, x.Order)
			}
			continue
		}
		added = d.claim(body, people.reasons(body)) || added
	}
	if out.Wake > 0 {
		d.out.wake(out.Wake)
	}
	if !out.Cancel.IsZero() {
		added = d.cancelBy(fact.ID(out.Cancel)) || added
	}
	for _, id := range d.state.TakeClosed() {
		added = d.endAsClosed(id) || added
	}
	return d.mindInStead() || added
}
