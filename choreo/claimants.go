package choreo

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about what the holder of people's tasks does about claims: it writes down what
// people say, if that may be, ends what is over, and has an attempt end as its item did.

// ErrTaken is returned for a task that a person has claimed, to whoever else wants to end it
// or to give it on.
var ErrTaken = errors.New("somebody has it")

// Claimed is what became of a person's word.
type Claimed struct {
	// Already: it was so before, and nothing was written.
	Already bool
	// Kept says why a result that was written down does not count; empty: it counts.
	Kept string
}

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
		return Claimed{}, fmt.Errorf("%w: this node knows no such person, or it was removed", state.ErrNotNow)
	}
	p.Roles = slices.DeleteFunc(slices.Clone(p.Roles),
		func(r workflow.RoleName) bool { return !slices.Contains(who.Roles, r) })
	d.look()
	for _, id := range c.About() {
		if err := d.mayClaim(id, who, body); err != nil {
			return Claimed{}, err
		}
	}
	before := len(d.state.People().Spoken[fact.SpokenOf(d.log.Instance(), c.Says, c.Nonce)]) > 0
	switch x := body.(type) {
	case worklist.Grant:
		return d.grant(c, x, p, before)
	case worklist.Release:
		return d.giveBack(c, x, p)
	case worklist.Result:
		if before { // the answer was lost
			_, why := d.state.Work().Judged(x.Item, p.User)
			return Claimed{Already: true, Kept: why}, nil
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

// mayClaim says why nothing can be claimed here of an attempt; nil: it can. Its place at the
// board is brought up to date.
func (d *decision) mayClaim(id fact.AttemptID, who fact.Speaker, body worklist.Body) error {
	a := d.state.Attempts()[id]
	switch {
	case a == nil:
		return &worklist.Refusal{
			Item: state.ItemOf(id), Why: worklist.Unknown, Text: "there is no such item here: look at the worklist again",
		}
	case a.Partner != d.self && !state.Adopts(body):
		return &Elsewhere{Task: a.Task.WithLabel(), Partner: a.Partner}
	case !state.ForPeople(a, body):
		return fmt.Errorf("%w: %s is not for a person to claim", state.ErrNotNow, a.Task.WithLabel())
	case d.elsewhere(a, who) && !state.Decides(body) && !d.state.Passes(body, who):
		return fmt.Errorf("%w: %s names no role, so it is for people at its holder", state.ErrNotNow, a.Task.WithLabel())
	}
	d.state.PlaceItem(a)
	return nil
}

// elsewhere reports whether somebody cannot have an attempt of ours, as things stand.
func (d *decision) elsewhere(a *state.Attempt, who fact.Speaker) bool {
	due := who.User == d.state.Responsible() && len(d.state.People().DueTo[a.ID]) > 0
	return a.Task.Role == "" && who.At != d.self && !due
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

// giveBack ends what a person has.
func (d *decision) giveBack(c *fact.Claim, x worklist.Release, p worklist.Person) (Claimed, error) {
	to, open, ever := d.state.Work().Given(x.Item, x.Grant)
	switch {
	case !ever || to != p.User:
		return Claimed{}, fmt.Errorf("%w: %s was not given to you so", state.ErrNotNow, d.called(x.Item.Slot))
	case !open:
		return Claimed{Already: true}, nil
	}
	if h, _ := d.state.Work().Holds(x.Item); h.Grant != x.Grant {
		return Claimed{}, fmt.Errorf("%w: %s was given to you once more meanwhile: look at the worklist again",
			state.ErrNotNow, d.called(x.Item.Slot))
	}
	if err := d.mayBeSaid(x.Item, state.MostWords(x)); err != nil {
		return Claimed{}, err
	}
	_, err := d.append(fact.Body{Claim: c})
	return Claimed{}, err
}

// maxLate is how many results of one person about one item are kept that do not end it.
const maxLate = 1

// bring takes a person's result. If the person has the item, Decide closes it; else the
// result is kept and shown, and does not count.
func (d *decision) bring(c *fact.Claim, x worklist.Result, p worklist.Person) (Claimed, error) {
	board := d.state.Work()
	to, open, ever := board.Given(x.Item, x.Grant)
	a := d.state.Attempts()[fact.AttemptIDOf(x.Item)]
	switch {
	case !ever || to != p.User:
		return Claimed{}, fmt.Errorf("%w: %s was not given to you: select it first", state.ErrNotNow, d.called(x.Item.Slot))
	case board.Did(x.Item, x.Grant, p.User, x.Failed): // a retry, or sent twice
		return Claimed{Already: true}, nil
	case len(board.Unnamed(x)) > 0:
		return Claimed{}, fmt.Errorf("%w: %s waits for %s: bring that first", state.ErrNotNow, d.called(x.Item.Slot),
			d.called(board.Unnamed(x)[0]))
	case board.OnlyHanded(x.Item, x.Grant):
		return Claimed{}, fmt.Errorf("%w: %s was kept for you, and you have not taken it: select it first",
			state.ErrNotNow, d.called(x.Item.Slot))
	}
	if err := d.mayBring(c, x, p.User); err != nil {
		return Claimed{}, err
	}
	if !x.Failed {
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
	}
	if _, err := d.append(fact.Body{Claim: c}); err != nil {
		return Claimed{}, err
	}
	counts, why := board.Judged(x.Item, p.User)
	if !open && !counts && why == "" {
		why = "the item was not yours any more"
	}
	return Claimed{Kept: why}, nil
}

// mayBring says why a result is not taken; nil: it is. One that ends its item always has room.
func (d *decision) mayBring(c *fact.Claim, x worklist.Result, u worklist.User) error {
	board := d.state.Work()
	if board.Takes(x) {
		return d.mayBeSaid(x.Item, state.MostWords(x))
	}
	if n := board.Brought(x.Item, u); n >= maxLate && !board.MayWait(x) {
		return fmt.Errorf("%w: %d result of yours about %s is kept that does not count, at most %d: look at it with mutirao show",
			state.ErrNotNow, n, d.called(x.Item.Slot), maxLate)
	}
	if err := d.mayBeSaid(x.Item, state.MostWords(x)-1); err != nil { // one is for whoever has it
		return err
	}
	return d.mayIdle(c, u)
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
	return added
}

// claim writes down what this node says itself of people's work. It reports whether it added a fact.
func (d *decision) claim(body worklist.Body, why *fact.Annex) (added bool) {
	says, err := worklist.Encode(body)
	if err != nil {
		d.beyond = append(d.beyond, err)
		return false
	}
	e, err := d.append(fact.Body{Claim: &fact.Claim{Says: says}, Annex: why})
	return err == nil && e.Counted
}

// PeopleChanged has this node look again whether those who have people's work may still have
// it: somebody was removed, or roles changed.
func (m *Machine) PeopleChanged() {
	if m.Claims() {
		m.state.People().Board.Changed("")
	}
}

// Claims reports whether something was claimed of people's work here.
func (m *Machine) Claims() bool { return m.state.People().Board != nil }

// hearClaims tells the board since when claims wait: those of this node by its own wall clock, which
// was running when it was not.
func (d *decision) hearClaims() {
	for _, e := range d.state.TakeUnheard() {
		since, known := d.claimedAt[e.ID]
		if !known {
			since = d.now.Boot
			if e.Fact.Chain.Author == d.self {
				since -= max(0, d.now.Wall.Sub(time.UnixMilli(e.Fact.At)))
			}
			d.claimedAt[e.ID] = since
		}
		d.state.Work().Heard(worklist.ID(e.ID), since)
	}
}

// endAsClosed has an attempt end as its item was closed.
func (d *decision) endAsClosed(id fact.AttemptID) (added bool) {
	a := d.state.Attempts()[id]
	res, _, taken := d.state.Work().Taken(state.ItemOf(id))
	if o, stopped := d.state.Work().Stopped(state.ItemOf(id)); stopped && a != nil {
		return d.stop(a, o)
	}
	if a == nil || a.Partner != d.self || !taken || a.Success() != nil || a.Off != nil || a.EndedByHolder() ||
		!d.state.Wanted(a) {
		return false
	}
	if err := d.begin(a); err != nil {
		d.beyond = append(d.beyond, err)
		return false
	}
	a = d.state.Attempts()[id] // where a chain is forked, a fact of ours has all be made again
	end := Result{Failed: res.Failed, Reason: cmp.Or(res.Reason, "the person who had it said so")}
	if !res.Failed {
		var err error
		if end.Outputs, err = d.state.Written(a.Task, res); err != nil {
			d.beyond = append(d.beyond, err)
			return false
		}
	}
	d.record(a, a.Try(), end)
	return true
}

// claimants are the people of a mesh as a board asks about them in one decision.
type claimants struct {
	*decision
	with map[workflow.RoleName][]worklist.Person // that were asked for
	// sights are who may see items that wait to be taken, of those that were asked about.
	sights map[worklist.Item]partition.Sight
}

// With lists those to whom items for a role can be offered.
func (c claimants) With(r workflow.RoleName) []worklist.Person {
	of, known := c.with[r]
	if !known {
		of = c.partners.People(r)
		c.with[r] = of
	}
	return of
}

// Known is a person who may hold items.
func (c claimants) Known(u worklist.User) (worklist.Person, bool) { return c.partners.Person(u) }

// taken says who has the item of an attempt of ours; nil: nobody, or this node itself as a person.
func (m *Machine) taken(a *state.Attempt) error {
	if h, held := m.state.HoldOf(a); held && h.User != worklist.User(m.self) {
		return fmt.Errorf("%w: %s", ErrTaken, a.Task.WithLabel())
	}
	return nil
}

// claimed reports whether a person has the item of an attempt.
func (m *Machine) claimed(a *state.Attempt) bool {
	_, held := m.state.HoldOf(a)
	return held
}

// ItemView is a person's task that can be done, as this replica knows it.
type ItemView struct {
	Item    worklist.Item
	Task    *workflow.Task
	Partner workflow.PartnerID // who holds it
	// Partition is where it is; empty: with whoever was found for it.
	Partition workflow.PartitionName
	// Arrival is since when it can be done, by its holder's clock as far as its facts say, in ms
	// since 1970: the same at all nodes, and after a restart.
	Arrival int64
	// Holder is who has it, by which grant; empty: nobody.
	Holder worklist.User
	Grant  worklist.ID
	Mode   worklist.Mode
	// Word is by which word of a person Holder was given it; Joint: together with items of other holders.
	Word  worklist.ID
	Joint bool
	// Role is for whom it is: that of its task, or to which it was passed.
	Role workflow.RoleName
	// Offered are those of the role to whom its holder offers it, sorted, while nobody has it; ToAll: to all of the role.
	Offered []worklist.User
	ToAll   bool
	// HandedBy is who handed it to Holder, for whom it is kept till Until, where the mode is Handed.
	HandedBy worklist.User
	Until    time.Time
	// Begun is since when its holder works on it, by its own clock, in ms since 1970, while nobody has taken it; 0: it
	// does not.
	Begun int64
	// WaitsFor are the resources that its task is to hold and has not got yet: nobody can take it before.
	WaitsFor []worklist.Lack
	// Awaits are the tasks whose success makes it ready; none: it is ready. PutOff: Holder has done it, which counts when
	// they have.
	Awaits []workflow.TaskName
	PutOff bool
}

// Items are the tasks of people that can be done now: of an instance that runs no more those of this node which are
// only presumed to have failed (GoesOn).
func (m *Machine) Items() (out []ItemView) {
	running := m.state.Overall() == workflow.InstanceRunning
	if !m.peopled || !running && !(m.heeded() && m.goesOn()) {
		return nil
	}
	since := state.Moments{S: m.state}
	for _, sl := range m.state.Slots() {
		a := sl.Current
		m.log.Steps++
		if a.Task.ByNode() || !m.state.Wanted(a) || a.Start == nil && !a.MayStart() || a.Success() != nil ||
			a.EndedByHolder() {
			continue
		}
		if !running && !m.atWork(sl) {
			continue
		}
		out = append(out, m.itemNow(a, &since))
	}
	for _, a := range m.state.PeoplesJobs() {
		out = append(out, m.itemNow(a, &since))
	}
	return out
}

// itemNow is an attempt that can be done, with who has it.
func (m *Machine) itemNow(a *state.Attempt, since *state.Moments) ItemView {
	v := itemView(a, since)
	if h, held := m.state.HoldOf(a); held {
		v.Holder, v.Grant, v.Mode, v.HandedBy, v.Until = h.User, h.Grant, h.Mode, h.By, h.Until
		v.Word, v.Joint = h.Word, h.Joint
		v.PutOff = m.state.People().Board.PutOff(v.Item, v.Holder)
	} else {
		v.Offered, v.ToAll = m.state.Offered(v.Item)
		v.Begun = m.state.WorkedOnSince(a)
	}
	v.WaitsFor = m.state.Lacking(a)
	if m.Claims() && m.state.People().Board.Knows(v.Item) {
		v.Role = m.state.People().Board.Role(v.Item)
	}
	return v
}

func itemView(a *state.Attempt, since *state.Moments) ItemView {
	return ItemView{
		Item: state.ItemOf(a.ID), Task: a.Task, Partner: a.Partner, Partition: since.S.Plan().Home(a.Task.Name),
		Arrival: since.Arrival(a), Role: a.Task.Role,
	}
}

// ItemFor is an item as it concerns one person.
type ItemFor struct {
	ItemView
	// Last is the last grant by which the person got it; zero: none. Over: it cannot be done any more.
	Last worklist.ID
	Over bool
	// Lost is why the person has it no more, who had it; nil: the person has it, gave it back, did it, or never had it.
	Lost *worklist.Loss
}

// ItemsFor are the tasks of people that can be done now, and those that a person had.
func (m *Machine) ItemsFor(u worklist.User) (out []ItemFor) {
	had, lost := map[worklist.Item]worklist.ID{}, map[worklist.Item]*worklist.Loss{}
	if m.Claims() {
		had, lost = m.state.People().Board.Had(u)
	}
	for _, v := range m.Items() {
		x := ItemFor{ItemView: v, Last: had[v.Item]}
		if v.Holder == u {
			x.Last = v.Grant
		} else {
			x.Lost = lost[v.Item]
		}
		out = append(out, x)
		delete(had, v.Item)
	}
	since := state.Moments{S: m.state}
	if m.Claims() {
		for _, i := range m.state.People().Board.HeldBy(u) {
			if v, waits := m.itemAhead(m.state.Attempts()[fact.AttemptIDOf(i)], &since); waits {
				out = append(out, ItemFor{ItemView: v, Last: v.Grant})
				delete(had, i)
			}
		}
	}
	for _, i := range slices.SortedFunc(maps.Keys(had), worklist.Item.Compare) {
		if a := m.state.Attempts()[fact.AttemptIDOf(i)]; a != nil {
			out = append(out, ItemFor{ItemView: itemView(a, &since), Last: had[i], Over: true, Lost: lost[i]})
		}
	}
	return out
}

// KeptResult is a result that a person brought and that did not end its item.
type KeptResult struct {
	ID   fact.ID
	Item worklist.Item
	// Adoptable: who decides about the instance may adopt it.
	Adoptable bool
	Task      workflow.TaskName
	User      worklist.User
	At        int64 // ms, the holder's clock
	Failed    bool
	Why       string // it does not count
	// Outputs are as the person wrote them.
	Outputs map[workflow.DataName]workflow.Value
}

// KeptResults are the results that do not count, in the order of facts.
func (m *Machine) KeptResults() (out []KeptResult) {
	if m.state.People().Board == nil {
		return nil
	}
	for _, i := range m.state.People().Board.Items() {
		if a := m.state.Attempts()[fact.AttemptIDOf(i)]; a != nil {
			m.state.PlaceItem(a)
		}
		v, _ := m.state.People().Board.View(i)
		for _, w := range v.Works {
			if w.Counts || w.Why == "" {
				continue
			}
			e := m.log.ByID()[fact.ID(w.ID)]
			out = append(out, KeptResult{
				ID: e.ID, Item: i, Adoptable: m.state.Adoptable(e) == nil, Task: i.Slot, User: w.User, At: e.Fact.At,
				Failed: w.Failed, Why: w.Why, Outputs: w.Outputs,
			})
		}
	}
	return out
}

// itemAhead is a person's task that is not ready and that can be locked before it is; false: it is not so.
func (m *Machine) itemAhead(a *state.Attempt, since *state.Moments) (v ItemView, waits bool) {
	if a == nil || a.Task.ByNode() || a.Undoes != nil {
		return v, false
	}
	awaits := m.state.WaitsOf(a)
	if len(awaits) == 0 {
		return v, false
	}
	v = m.itemNow(a, since)
	v.Awaits, v.Begun = awaits, 0
	return v, true
}

// Ahead are the tasks of people that are not ready, and that can be locked together with what they wait for: those
// that may be done offline, as far as nobody has chosen yet who sees them.
func (m *Machine) Ahead() (out []ItemView) {
	if !m.peopled || m.state.Overall() != workflow.InstanceRunning {
		return nil
	}
	since := state.Moments{S: m.state}
	for _, sl := range m.state.Slots() {
		m.log.Steps++
		if a := sl.Current; a.Task.Offline && !m.state.Limits(a) {
			if v, waits := m.itemAhead(a, &since); waits {
				out = append(out, v)
			}
		}
	}
	return out
}
