package choreo

import (
	"fmt"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/contingency/waits"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about resources (rule 12 of docs/worklists.md): things of which there is only so much, and which
// tasks hold from when they are ready to their end. Who has a unit follows from two kinds of claims, which no person
// signs:
//
//	reserve   a task has a unit of each of these: the word of whoever keeps the resources
//	keep      its author keeps the resources of a partition from now on, as the partner is gone that did
//
// The first keeper is who holds the resource's partition from the start. It gives units away as worklist.Board
// decides. A task begins only when its holder knows that it has a unit of each, and nobody counts the start of one
// for which its author knew no such word. What a unit is given to is the attempt, with all to which that is
// passed on without a verdict: passing on is no failure.
//
// A takeover is a presumption, as a verdict on another's work is: any participant may write it, and the guardian
// does, once the keeper is gone and somebody waits for it. Of two that do not know of each other the later in
// the order of facts keeps the resources from when both are known; what both gave away counts, and the board says
// who has what there is.

// root is the first of the attempts that were passed on to this one by no verdict.
func (a *Attempt) root() *Attempt {
	for a.after != nil && a.passedOn() {
		a = a.after
	}
	return a
}

// holds are the resources of which an attempt is to have a unit each; what undoes something has none.
func (a *Attempt) holds() []workflow.ResourceName {
	if a.beside() {
		return nil
	}
	return a.Task.Holds
}

// resource is what the definition says of one; nil: it has none of that name.
func (s *State) resource(n workflow.ResourceName) *workflow.ResourceDecl {
	i := slices.IndexFunc(s.def.Resources, func(x workflow.ResourceDecl) bool { return x.Name == n })
	if i < 0 {
		return nil
	}
	return &s.def.Resources[i]
}

// keeper is who keeps the resources of a partition, as far as is known here.
func (s *State) keeper(part workflow.PartitionName) workflow.PartnerID {
	if ks := s.peoples.keeps[part]; len(ks) > 0 {
		return ks[len(ks)-1].fact.Chain.Author
	}
	return s.holder[part]
}

// keepersOf are those who are to know how a slot stands, as they give out what its tasks hold.
func (s *State) keepersOf(sl *Slot) (out []workflow.PartnerID) {
	if len(s.def.Resources) == 0 {
		return nil
	}
	for _, t := range s.plan.Chain(sl.Task.Name) {
		for _, r := range s.def.Task(t).Holds {
			if k := s.keeper(s.resource(r).Partition); !slices.Contains(out, k) {
				out = append(out, k)
			}
		}
	}
	return out
}

// tellKeepers owes a fact to those who give out what the tasks of a slot hold.
func (d *decision) tellKeepers(e *entry, sl *Slot) {
	for _, k := range d.state.keepersOf(sl) {
		d.tell(k, e)
	}
}

// tellReserved owes the word that an attempt has units to whoever is to do it, and to those who judge.
func (d *decision) tellReserved(e *entry, id AttemptID) {
	for _, a := range d.state.attempts[id].Slot.Attempts {
		if a.root().ID == id {
			d.tell(a.Partner, e)
		}
	}
	d.tellGuardians(e)
}

// enterUnits has a claim about resources count, or says why it does not.
func (s *State) enterUnits(e *entry, body worklist.Body) (why string) {
	switch x := body.(type) {
	case worklist.Reserve:
		why = s.enterReserve(e, x)
	case worklist.Keep:
		why = s.enterKeep(e, x)
	}
	if why != "" {
		return why
	}
	s.work().Add(&worklist.Fact{
		ID: worklist.ID(e.id), Time: e.time, Partner: e.fact.Chain.Author, Body: body,
	}, 0)
	if _, keeps := body.(worklist.Keep); keeps {
		s.placeStores()
	}
	return ""
}

func aboutUnits(body worklist.Body) bool {
	switch body.(type) {
	case worklist.Reserve, worklist.Keep:
		return true
	}
	return false
}

func (s *State) enterReserve(e *entry, x worklist.Reserve) (why string) {
	id := attemptIDOf(x.Item)
	a := s.attempts[id]
	switch {
	case a == nil || !s.knewOf(e, id):
		return "it is about an attempt that it does not know"
	case a.root() != a:
		return "it is about an attempt that was passed on"
	}
	for _, r := range x.Resources {
		decl := s.resource(r)
		if decl == nil || !slices.Contains(a.holds(), r) {
			return "its task does not hold the resource"
		}
		if why := s.mayReserve(e, decl.Partition); why != "" {
			return why
		}
		twice := func(o *entry) bool { return o.strand == e.strand && slices.Contains(reservedBy(o), r) }
		if slices.ContainsFunc(s.peoples.reserved[id], twice) {
			return "it had given the task a unit before"
		}
	}
	s.work()
	s.peoples.reserved[id] = append(s.peoples.reserved[id], e)
	for _, o := range a.Slot.Attempts {
		if o.root() == a {
			s.move(o.Slot)
		}
	}
	return ""
}

// reservedBy are the resources that a claim gives units of.
func reservedBy(e *entry) []workflow.ResourceName {
	x, _ := e.fact.Body.Claim.Body().(worklist.Reserve)
	return x.Resources
}

// mayReserve says why the author of a fact does not keep the resources of a partition; "": it does, as far as it knew.
func (s *State) mayReserve(e *entry, part workflow.PartitionName) (why string) {
	author, own := e.fact.Chain.Author, (*entry)(nil)
	for _, k := range s.peoples.keeps[part] {
		if k.fact.Chain.Author == author && s.log.knew(e, k) {
			own = k
		}
	}
	if own == nil && s.holder[part] != author {
		return "its author does not keep the resource"
	}
	if s.keptLater(e, part, own) {
		return "another keeps the resource, as its author knew"
	}
	return ""
}

// keptLater reports whether somebody took the resources of a partition over after a fact (nil: the start), as the
// author of another one certainly knew.
func (s *State) keptLater(e *entry, part workflow.PartitionName, after *entry) bool {
	return slices.ContainsFunc(s.peoples.keeps[part], func(k *entry) bool {
		return k != after && (after == nil || byTime(k, after) > 0) && s.certain(e, k)
	})
}

func (s *State) enterKeep(e *entry, x worklist.Keep) (why string) {
	kept := slices.ContainsFunc(s.def.Resources,
		func(r workflow.ResourceDecl) bool { return r.Partition == x.Partition })
	if !kept {
		return "the partition has no resources"
	}
	ks := s.peoples.keeps[x.Partition]
	before := (*entry)(nil)
	if !x.After.IsZero() {
		i := slices.IndexFunc(ks, func(k *entry) bool { return worklist.ID(k.id) == x.After && s.log.knew(e, k) })
		if i < 0 {
			return "it names nobody who kept the resources, as it knew"
		}
		before = ks[i]
	}
	was := s.holder[x.Partition]
	if before != nil {
		was = before.fact.Chain.Author
	}
	switch {
	case was == e.fact.Chain.Author:
		return "its author keeps the resources already"
	case s.keptLater(e, x.Partition, before):
		return "another keeps the resources, as its author knew"
	case s.atLeast(MaxAttempts, len(ks), func(i int) bool { return s.log.knew(e, ks[i]) }):
		return fmt.Sprintf("the resources had been taken over %d times, as its author knew: no more counts", MaxAttempts)
	}
	s.work()
	ks = append(ks, e)
	slices.SortFunc(ks, byTime)
	s.peoples.keeps[x.Partition] = ks
	return ""
}

// placeStores tells the board who keeps which resource.
func (s *State) placeStores() {
	for _, r := range s.def.Resources {
		store := worklist.Store{Name: r.Name, Capacity: r.Capacity, Partition: r.Partition}
		for _, k := range slices.Backward(s.peoples.keeps[r.Partition]) {
			store.Keepers = append(store.Keepers,
				worklist.Keeping{Partner: k.fact.Chain.Author, Since: worklist.ID(k.id)})
		}
		store.Keepers = append(store.Keepers, worklist.Keeping{Partner: s.holder[r.Partition]})
		s.peoples.board.SetStore(store)
	}
}

// hasUnits reports whether an attempt has a unit of all that its task holds, as things stand.
func (s *State) hasUnits(a *Attempt) bool {
	return len(a.holds()) == 0 || s.peoples.board != nil && s.peoples.board.HasUnits(itemOf(a.ID))
}

// lacking are the resources for which an attempt waits that could begin but for them.
func (s *State) lacking(a *Attempt) []worklist.Lack {
	if len(a.holds()) == 0 || a.start != nil || !s.wanted(a) || !a.mayStart() {
		return nil
	}
	s.placeItems(a.Slot)
	return s.work().Lacks(itemOf(a.ID))
}

// mayBeginWith says why a person may not begin an attempt yet; nil: nothing it holds is lacking.
func (s *State) mayBeginWith(a *Attempt) error {
	if why := worklist.Lacking(s.lacking(a)); why != "" {
		return fmt.Errorf("%w: %s waits for %s", ErrNotNow, a.Task.Name, why)
	}
	return nil
}

// unitless says what an attempt's holder had been given no unit of, as far as a fact's author knew; "": of nothing.
func (v *evidence) unitless(a *Attempt) string {
	of := v.s.peoples.reserved[a.root().ID]
	for _, r := range a.holds() {
		given := func(e *entry) bool { return slices.Contains(reservedBy(e), r) && v.knew(e) }
		if !slices.ContainsFunc(of, given) {
			return "its task holds a resource of which it had been given no unit, as its author knew"
		}
	}
	return ""
}

// mindUnits has those looked at that have got all their units. It reports whether one of this node's can begin.
func (d *decision) mindUnits(got []worklist.Item) (begins bool) {
	for _, i := range got {
		if a := d.state.attempts[attemptIDOf(i)]; a != nil {
			d.state.move(a.Slot)
			begins = begins || a.Partner == d.self && a.Task.ByNode() && a.start == nil
		}
	}
	return begins
}

// orphaned are the partitions with resources for which somebody waits, and whose keeper is gone, by keepers.
func (o outlook) orphaned() (out []workflow.PartitionName) {
	if o.state.peoples.board == nil {
		return nil
	}
	for _, r := range o.state.def.Resources {
		k := o.state.keeper(r.Partition)
		if k != o.self && !slices.Contains(out, r.Partition) && o.partners.Gone(k) &&
			o.state.peoples.board.Wanted(r.Partition) {
			out = append(out, r.Partition)
		}
	}
	return out
}

// watchKeeper takes the resources of a partition over whose keeper is gone: the guardian at once, the next in its
// place later.
func (d *decision) watchKeeper(part workflow.PartitionName, later time.Duration) (added bool) {
	k := d.state.keeper(part)
	t := d.clocks.Run(waits.Key{Kind: waits.Gone, Name: string(k)}, true, d.now.Boot)
	if !d.over(t, later, true) {
		return false
	}
	x := worklist.Keep{Partition: part}
	if ks := d.state.peoples.keeps[part]; len(ks) > 0 {
		x.After = worklist.ID(ks[len(ks)-1].id)
	}
	return d.claim(x, nil)
}

// unitIncidents are tasks that go on with more than there is of a resource.
func (s *State) unitIncidents() (out []IncidentView) {
	if len(s.def.Resources) == 0 {
		return nil
	}
	for _, sl := range s.slots {
		a := sl.Current
		if len(a.holds()) == 0 || a.start == nil || !s.wanted(a) {
			continue
		}
		s.placeItems(sl)
		for _, l := range s.work().Beyond(itemOf(a.ID)) {
			out = append(out, IncidentView{
				At: a.start.fact.At, Task: sl.Task.Name, Who: a.Partner,
				What: fmt.Sprintf("it goes on though more of %s was given out than there is, on two sides of a split (%s)",
					l.Resource, l),
			})
		}
	}
	return out
}
