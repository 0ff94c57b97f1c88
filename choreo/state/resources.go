package state

import (
	"fmt"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
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
// The first keeper is who holds the resource's partition from the start, or from the amendment that adds it. Of a
// resource that is added, or a partition, on both sides of a cut each side has its own: what it gave away on its side
// counts, as its facts are judged by what their author knew. It gives units away as worklist.Board
// decides. A task begins only when its holder knows that it has a unit of each, and nobody counts the start of one
// for which its author knew no such word. What a unit is given to is the attempt, with all to which that is
// passed on without a verdict: passing on is no failure.
//
// A takeover is a presumption, as a verdict on another's work is: any participant may write it, and the guardian
// does, once the keeper is gone and somebody waits for it. Of two that do not know of each other the later in
// the order of facts keeps the resources from when both are known; what both gave away counts, and the board says
// who has what there is.

// enterUnits has a claim about resources count, or says why it does not.
func (s *State) enterUnits(e *log.Entry, body worklist.Body) (why string) {
	switch x := body.(type) {
	case worklist.Reserve:
		why = s.enterReserve(e, x)
	case worklist.Keep:
		why = s.enterKeep(e, x)
	}
	if why != "" {
		return why
	}
	s.Work().Add(&worklist.Fact{
		ID: worklist.ID(e.ID), Time: e.Time, Partner: e.Fact.Chain.Author, Body: body,
	}, 0)
	if _, keeps := body.(worklist.Keep); keeps {
		s.placeStores()
	}
	return ""
}

func AboutUnits(body worklist.Body) bool {
	switch body.(type) {
	case worklist.Reserve, worklist.Keep:
		return true
	}
	return false
}

func (s *State) enterReserve(e *log.Entry, x worklist.Reserve) (why string) {
	id := fact.AttemptIDOf(x.Item)
	a := s.attempts[id]
	switch {
	case a == nil || !s.knewOf(e, id):
		return "it is about an attempt that it does not know"
	case a.Root() != a:
		return "it is about an attempt that was passed on"
	}
	knew := s.EvidenceOf(e).under()
	for _, r := range x.Resources {
		decl := resourceOf(knew, r)
		if decl == nil || !slices.Contains(a.holds(), r) {
			return "its task does not hold the resource"
		}
		if why := s.mayReserve(e, decl.Partition); why != "" {
			return why
		}
		twice := func(o *log.Entry) bool { return o.Strand == e.Strand && slices.Contains(reservedBy(o), r) }
		if slices.ContainsFunc(s.peoples.reserved[id], twice) {
			return "it had given the task a unit before"
		}
	}
	s.Work()
	s.peoples.reserved[id] = append(s.peoples.reserved[id], e)
	for _, o := range a.Slot.Attempts {
		if o.Root() == a {
			s.Move(o.Slot)
		}
	}
	return ""
}

// mayReserve says why the author of a fact does not keep the resources of a partition; "": it does, as far as it knew.
func (s *State) mayReserve(e *log.Entry, part workflow.PartitionName) (why string) {
	author, own := e.Fact.Chain.Author, (*log.Entry)(nil)
	for _, k := range s.peoples.Keeps[part] {
		if k.Fact.Chain.Author == author && s.log.Knew(e, k) {
			own = k
		}
	}
	if own == nil && s.firstAt(part, e) != author {
		return "its author does not keep the resource"
	}
	if s.keptLater(e, part, own) {
		return "another keeps the resource, as its author knew"
	}
	return ""
}

// keptLater reports whether somebody took the resources of a partition over after a fact (nil: the start), as the
// author of another one certainly knew.
func (s *State) keptLater(e *log.Entry, part workflow.PartitionName, after *log.Entry) bool {
	return slices.ContainsFunc(s.peoples.Keeps[part], func(k *log.Entry) bool {
		return k != after && (after == nil || log.ByTime(k, after) > 0) && s.certain(e, k)
	})
}

func (s *State) enterKeep(e *log.Entry, x worklist.Keep) (why string) {
	kept := slices.ContainsFunc(s.EvidenceOf(e).under().Resources,
		func(r workflow.ResourceDecl) bool { return r.Partition == x.Partition })
	if !kept {
		return "the partition has no resources"
	}
	ks := s.peoples.Keeps[x.Partition]
	before := (*log.Entry)(nil)
	if !x.After.IsZero() {
		i := slices.IndexFunc(ks, func(k *log.Entry) bool { return worklist.ID(k.ID) == x.After && s.log.Knew(e, k) })
		if i < 0 {
			return "it names nobody who kept the resources, as it knew"
		}
		before = ks[i]
	}
	was := s.firstAt(x.Partition, e)
	if before != nil {
		was = before.Fact.Chain.Author
	}
	switch {
	case was == e.Fact.Chain.Author:
		return "its author keeps the resources already"
	case s.keptLater(e, x.Partition, before):
		return "another keeps the resources, as its author knew"
	case s.AtLeast(fact.MaxAttempts, len(ks), func(i int) bool { return s.log.Knew(e, ks[i]) }):
		return fmt.Sprintf("the resources had been taken over %d times, as its author knew: no more counts",
			fact.MaxAttempts)
	}
	s.Work()
	ks = append(ks, e)
	slices.SortFunc(ks, log.ByTime)
	s.peoples.Keeps[x.Partition] = ks
	return ""
}

// Lacking are the resources for which an attempt waits that could begin but for them.
func (s *State) Lacking(a *Attempt) []worklist.Lack {
	if len(a.holds()) == 0 || a.Start != nil || !s.Wanted(a) || !a.MayStart() {
		return nil
	}
	s.PlaceItems(a.Slot)
	return s.Work().Lacks(ItemOf(a.ID))
}

// Shared are the resources that an attempt uses, and others with it, though there is not enough for all.
func (s *State) Shared(a *Attempt) []worklist.Lack {
	if len(a.holds()) == 0 || s.peoples.Board == nil || !s.Wanted(a) {
		return nil
	}
	s.PlaceItems(a.Slot)
	return s.peoples.Board.Shared(ItemOf(a.ID))
}

// MayBeginWith says why a person may not begin an attempt yet; nil: nothing it holds is lacking.
func (s *State) MayBeginWith(a *Attempt) error {
	if why := worklist.Lacking(s.Lacking(a)); why != "" {
		return fmt.Errorf("%w: %s waits for %s", ErrNotNow, a.Task.WithLabel(), why)
	}
	return nil
}
