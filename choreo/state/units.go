package state

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file says who keeps the resources of a partition, and of which of them an attempt is to have units and was given
// some (resources.go).

// Root is the first of the attempts that were passed on to this one by no verdict.
func (a *Attempt) Root() *Attempt {
	for a.after != nil && a.passedOn() {
		a = a.after
	}
	return a
}

// holds are the resources of which an attempt is to have a unit each; what undoes something has none.
func (a *Attempt) holds() []workflow.ResourceName {
	if a.Beside() {
		return nil
	}
	return a.Task.Holds
}

// resourceOf is what a definition says of a resource; nil: it has none of that name.
func resourceOf(def *workflow.Definition, n workflow.ResourceName) *workflow.ResourceDecl {
	i := slices.IndexFunc(def.Resources, func(x workflow.ResourceDecl) bool { return x.Name == n })
	if i < 0 {
		return nil
	}
	return &def.Resources[i]
}

// Keeper is who keeps the resources of a partition, as far as is known here.
func (s *State) Keeper(part workflow.PartitionName) workflow.PartnerID {
	if ks := s.peoples.Keeps[part]; len(ks) > 0 {
		return ks[len(ks)-1].Fact.Chain.Author
	}
	return s.holder[part]
}

// KeepersOf are those who are to know how a slot stands, as they give out what its tasks hold.
func (s *State) KeepersOf(sl *Slot) (out []workflow.PartnerID) {
	if len(s.def.Resources) == 0 {
		return nil
	}
	keeps := func(t *workflow.Task) {
		for _, r := range t.Holds {
			if x := resourceOf(s.def, r); x != nil && !slices.Contains(out, s.Keeper(x.Partition)) {
				out = append(out, s.Keeper(x.Partition))
			}
		}
	}
	for _, t := range s.plan.Chain(sl.Task.Name) {
		keeps(s.def.Task(t))
	}
	if s.edition.answers { // what stands in may do so by another definition
		for _, a := range sl.Attempts {
			keeps(a.Task)
		}
	}
	return out
}

// placeStores tells the board who keeps which resource.
func (s *State) placeStores() {
	for _, r := range s.def.Resources {
		store := worklist.Store{Name: r.Name, Capacity: r.Capacity, Partition: r.Partition}
		for _, k := range slices.Backward(s.peoples.Keeps[r.Partition]) {
			store.Keepers = append(store.Keepers,
				worklist.Keeping{Partner: k.Fact.Chain.Author, Since: worklist.ID(k.ID)})
		}
		store.Keepers = append(store.Keepers, worklist.Keeping{Partner: s.holder[r.Partition]})
		for _, p := range s.keptElsewhere(r.Name) {
			store.Keepers = append(store.Keepers, worklist.Keeping{Partner: p})
		}
		s.peoples.Board.SetStore(store)
	}
}

// keptElsewhere are those who kept a resource as somebody knew who added it, or its partition, beside others.
func (s *State) keptElsewhere(r workflow.ResourceName) (out []workflow.PartnerID) {
	parts := []workflow.PartitionName{resourceOf(s.def, r).Partition}
	for _, a := range s.edition.heavy {
		if part := s.fittings[a.ID].patch.StoreOf(r); part != "" {
			parts = append(parts, part)
			out = append(out, s.firstAt(part, a))
		}
	}
	for _, x := range s.edition.placed {
		if !x.Moves && slices.Contains(parts, x.Partition) {
			out = append(out, x.Partner)
		}
	}
	return out
}

// HasUnits reports whether an attempt has a unit of all that its task holds, as things stand.
func (s *State) HasUnits(a *Attempt) bool {
	return len(a.holds()) == 0 || s.peoples.Board != nil && s.peoples.Board.HasUnits(ItemOf(a.ID))
}

// reservedBy are the resources that a claim gives units of.
func reservedBy(e *log.Entry) []workflow.ResourceName {
	x, _ := e.Fact.Body.Claim.Body().(worklist.Reserve)
	return x.Resources
}

// unitless says what an attempt's holder had been given no unit of, as far as a fact's author knew; "": of nothing.
func (v *Evidence) unitless(a *Attempt) string {
	of := v.s.peoples.reserved[a.Root().ID]
	for _, r := range a.holds() {
		given := func(e *log.Entry) bool { return slices.Contains(reservedBy(e), r) && v.knew(e) }
		if !slices.ContainsFunc(of, given) {
			return "its task holds a resource of which it had been given no unit, as its author knew"
		}
	}
	return ""
}
