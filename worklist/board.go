package worklist

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Moment is a node's clocks read at one moment: Boot counts from any fixed point and never
// goes back, Wall is what people see.
type Moment struct {
	Boot time.Duration
	Wall time.Time
}

// Terms are what an instance says of its people from the start.
type Terms struct {
	Instance    workflow.InstanceID
	Workflow    workflow.Name
	Responsible User // by key
	// Administrators are the role whose members may order what the responsible user may.
	Administrators workflow.RoleName
	Policy         Policy
	// Open: by a policy to all everybody of a task's role sees its item from the start, and nobody has to be
	// told so by an Offer, unless a mechanism limits who sees it.
	Open bool
}

// Task is what the definition says of a person's task.
type Task struct {
	Role     workflow.RoleName // empty: anybody
	ByNode   bool              // no person does it: it is only ordered about
	Limited  bool              // a mechanism limits who sees it
	Offline  bool              // it may be locked
	Priority int
	Size     int64 // bytes that a device needs for it
	Due      Due
	Warnings []time.Duration // with so much time left people are warned
	Transfer time.Duration   // with so much left it passes to the responsible user; 0: never
	Renewed  Renewal         // what gave it another deadline last, for all attempts at it; zero: nothing
	Holds    []Resource
}

// Renewal is the place in the order of facts of a change of the definition by which a task has another deadline.
type Renewal struct {
	Time uint64
	ID   ID
}

// Place is what the core concludes of an attempt.
type Place struct {
	Item   Item
	Holder workflow.PartnerID
	// Partition is where it is; empty: with whoever was found for it.
	Partition workflow.PartitionName
	Task      Task
	// InCharge is set while the attempt is the one in charge of its slot, or its success stands.
	InCharge bool
	// Ready: its rule holds, since that moment (Boot) by the local clock.
	Ready bool
	Since time.Duration
	// Waits are the tasks whose success would make it ready, while it is not. ByProgram: a program does one of them.
	Waits     []workflow.TaskName
	ByProgram bool
	// Root is the first of the attempts that were passed on to this one, by no verdict; no slot: it is the first.
	Root Item
	// Begun: work on it was begun by its holder. Presumed: others say that it has failed.
	Begun, Presumed bool
	// Over: it ended in another way than by a Close: called off, cancelled, given up.
	Over bool
	// GivenUp: its holder itself said that it failed.
	GivenUp bool
	// Why says why nobody can do it any more, for people, where the attempt is not in charge or is over, or why
	// nobody can do it now, where it is not ready; empty: by default.
	Why string
	// Unhandled: it failed, and the definition does not say what follows. Failure is the fact
	// by which it failed; zero: its Close, if it has one.
	Unhandled bool
	Failure   ID
	// Stands is the end that the rules of convergence chose among several; zero: the first.
	Stands ID
}

// Board is what follows from the facts about the people's work of one instance.
type Board struct {
	terms Terms
	knew  func(later, earlier ID) bool
	facts map[ID]*Fact
	heard map[ID]time.Duration // Boot, of facts from which a wait counts
	items map[Item]*item
	slots map[workflow.TaskName][]*item

	takers  map[ID][]*Fact // of results: who closed items with them, or adopted them
	words   map[ID][]*Fact // of words: the results that were written down from them
	upon    map[ID][]*item // of words: items with results that were made from what they say
	notify  *Fact          // the policy that counts
	offers  map[workflow.PartnerID]offering
	loads   map[LoadOf]Load
	loadsAt int           // how often they have changed
	cancels []*Fact       // orders to cancel the instance
	refused map[ID]string // facts about the instance that change nothing
	stores  map[Resource]*store
	inParts []*store         // the same, by partition and name
	heirs   map[Item][]*item // those to which an attempt was passed on, by the first (Place.Root)
	hadAll  map[*item]bool   // that had all their units when these were last counted
	counted bool             // units are, as things stand

	course Course
	desk   desk
	steps  int // of work, for tests of cost
}

// New is the board of an instance without facts. Knew says whether the author of one fact
// had the other in its past.
func New(terms Terms, knew func(later, earlier ID) bool) *Board {
	return &Board{
		terms: terms, knew: knew, facts: map[ID]*Fact{}, heard: map[ID]time.Duration{}, items: map[Item]*item{},
		slots: map[workflow.TaskName][]*item{}, takers: map[ID][]*Fact{}, words: map[ID][]*Fact{},
		upon:    map[ID][]*item{},
		refused: map[ID]string{}, stores: map[Resource]*store{}, heirs: map[Item][]*item{}, desk: newDesk(),
		offers: map[workflow.PartnerID]offering{}, loads: map[LoadOf]Load{},
	}
}

// Add takes a fact in. Since is the moment (Boot) from which waits count that it begins: when it became
// durable here, or earlier, if the node was stopped meanwhile.
func (b *Board) Add(f *Fact, since time.Duration) {
	if b.facts[f.ID] != nil || f.Body == nil {
		return
	}
	b.facts[f.ID], b.heard[f.ID] = f, since
	switch body := f.Body.(type) {
	case Notify:
		b.enterNotify(body, f)
	case Reserve:
		b.enterReserve(body, f)
	case Order:
		if len(body.about()) == 0 {
			b.enterOrder(body, f)
			return
		}
		b.item(body.Item).add(b, f)
	default:
		b.enterOffered(f)
		b.enterTaker(f)
		seen := map[Item]bool{}
		for _, i := range f.Body.about() {
			if !seen[i] {
				seen[i] = true
				b.item(i).add(b, f)
			}
		}
	}
}

// Heard says from when (Boot) the waits count that a fact begins, in place of what Add was told:
// where that was not known yet.
func (b *Board) Heard(id ID, since time.Duration) {
	f := b.facts[id]
	if f == nil || b.heard[id] == since {
		return
	}
	b.heard[id] = since
	for _, i := range f.Body.about() {
		b.changed(b.item(i))
	}
}

// enterOffered counts what a partner offers. When it has said all that it may, its items are for all.
func (b *Board) enterOffered(f *Fact) {
	if x, offers := f.Body.(Offer); offers {
		was := b.offers[f.Partner]
		if b.offers[f.Partner] = (offering{was.offers + 1, was.names + len(x.To)}); b.Spent(f.Partner) {
			b.allChanged()
		}
	}
}

// enterTaker notes who took a result, or adopted it, by which word one was brought, and what it was made from.
func (b *Board) enterTaker(f *Fact) {
	switch x := f.Body.(type) {
	case Result:
		b.words[f.word()] = append(b.words[f.word()], f)
		for _, of := range x.Upon {
			b.upon[of.Word] = append(b.upon[of.Word], b.item(x.Item))
		}
	case Close:
		if b.item(x.Item).Holder == f.Partner {
			b.takers[x.Result] = append(b.takers[x.Result], f)
		}
	case Adopt:
		if b.mayOrder(f) == "" {
			b.takers[x.Result] = append(b.takers[x.Result], f)
		}
	}
}

// Set takes in what the core concludes of an attempt, in place of what it concluded before.
func (b *Board) Set(p Place) {
	it := b.item(p.Item)
	was := it.Place
	if p.Root.Slot != "" && was.Root.Slot == "" {
		b.heirs[p.Root] = append(b.heirs[p.Root], it)
	}
	it.Place, it.placed = p, true
	if was.InCharge != p.InCharge || was.Ready != p.Ready || was.Over != p.Over || was.Unhandled != p.Unhandled ||
		was.Failure != p.Failure {
		it.cannot = nil
	}
	if was.Holder != p.Holder || was.Task.Role != p.Task.Role || was.Task.Offline != p.Task.Offline ||
		was.Task.Renewed != p.Task.Renewed {
		it.replay(b)
	}
	b.changed(it)
}

// item finds or makes what is known of an item.
func (b *Board) item(i Item) *item {
	it := b.items[i]
	if it == nil {
		it = &item{Place: Place{Item: i}}
		it.clear()
		b.items[i] = it
		b.slots[i.Slot] = append(b.slots[i.Slot], it)
		slices.SortFunc(b.slots[i.Slot], func(a, b *item) int { return a.Item.Compare(b.Item) })
	}
	return it
}

// inOrder are all items, in one order.
func (b *Board) inOrder() []*item {
	return slices.SortedFunc(maps.Values(b.items), func(a, b *item) int { return a.Item.Compare(b.Item) })
}

// mayOrder says why the person who signed a fact may not decide about the instance; "": may (rule 2).
func (b *Board) mayOrder(f *Fact) (why string) {
	if f.User != "" && f.User == b.terms.Responsible {
		return ""
	}
	if b.terms.Administrators != "" && f.User != "" && f.hasRole(b.terms.Administrators) {
		return ""
	}
	return fmt.Sprintf("%s answers neither for the instance nor for the mesh", orNobody(f.User))
}

func orNobody(u User) string {
	if u == "" {
		return "nobody"
	}
	return string(u)
}

// MayOrder says why somebody with these roles may not decide about the instance; empty: may.
func (b *Board) MayOrder(u User, roles []workflow.RoleName) (why string) {
	return b.mayOrder(&Fact{User: u, Roles: roles})
}

// enterOrder takes an order about the instance in: to cancel it. Its author carries it out.
func (b *Board) enterOrder(x Order, f *Fact) {
	switch why := b.mayOrder(f); {
	case why != "":
		b.refused[f.ID] = why
	case x.What != Cancel:
		b.refused[f.ID] = "it names no task"
	default:
		b.cancels = append(b.cancels, f)
	}
}

// enterNotify takes a change of policy in: the last in the order of facts counts.
func (b *Board) enterNotify(x Notify, f *Fact) {
	if why := b.mayOrder(f); why != "" {
		b.refused[f.ID] = why
		return
	}
	if why := x.Policy.wrong(); why != "" {
		b.refused[f.ID] = why
		return
	}
	if b.notify == nil || b.notify.compare(f) < 0 {
		b.notify = f
		b.allChanged()
	}
}

// Policy is whom items are offered to now.
func (b *Board) Policy() Policy {
	if b.notify != nil {
		return b.notify.Body.(Notify).Policy
	}
	return b.terms.Policy
}
