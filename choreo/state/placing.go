package state

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/amendments"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file says who has a partition that an amendment adds. The node at which somebody amends an instance finds a
// partner for it, as at a start, and who decides signs that together with the patch. So it is a fact like the genesis,
// and nobody has to be asked: whoever knows of the amendment knows whose the partition is, and it brings that partner
// into the instance. Whoever judges the work of others judges it there as well.
//
// Where two add a partition of one name side by side and give it to different partners, the first in the order of facts
// says who has it. Each of their tasks stays where the author of its own amendment knew the partition to be, so that
// nothing that was begun ceases to count: what the two add alike are two attempts in one slot then (addTask).
//
// A partition that there is moves by the hand of whoever holds it: that one gives on what nobody has begun of it, as
// when it leaves (choreo/giveon.go), once it has heard of the amendment. So each attempt is in one hand, what was begun
// meanwhile is done where it began, and nobody needs another rule for what both sides of a cut did. While the holder is
// out of reach nothing moves: its work is judged as ever. Its clocks, and the resources that the partition gives out,
// stay with whoever had it first.

// Placements are the partitions with those who had them first, those of the genesis before others. It is not to be
// changed.
func (s *State) Placements() []Placement { return s.placements }

// startedAt is who had a partition by the genesis; empty: it had none of that name.
func (s *State) startedAt(p workflow.PartitionName) workflow.PartnerID {
	for _, a := range s.genesis.Assign {
		if a.Partition == p {
			return a.Partner
		}
	}
	return ""
}

// firstAt is who had a partition first, as the author of a fact knew; empty: it knew of nobody.
func (s *State) firstAt(p workflow.PartitionName, e *log.Entry) workflow.PartnerID {
	at := s.startedAt(p)
	for _, x := range s.edition.placed {
		if at == "" && x.Partition == p && !x.Moves && s.log.Knew(e, x.By) {
			at = x.Partner
		}
	}
	return at
}

// placedAt is to whom a task goes that is added to a partition, as the author of a fact knew: to whom it moved last,
// else to whoever had it first.
func (s *State) placedAt(p workflow.PartitionName, e *log.Entry) workflow.PartnerID {
	at := s.startedAt(p)
	for _, x := range s.edition.placed {
		if x.Partition == p && (at == "" || x.Moves) && s.log.Knew(e, x.By) {
			at = x.Partner
		}
	}
	return at
}

// MovedTo is to whom a partition moves by an amendment, with that; nil: it does not.
func (s *State) MovedTo(p workflow.PartitionName) (workflow.PartnerID, *log.Entry) {
	x := s.edition.moves[p]
	return x.Partner, x.By
}

// Moves reports whether any partition does.
func (s *State) Moves() bool { return len(s.edition.moves) > 0 }

// PlacedBy says where an amendment puts partitions.
func PlacedBy(e *log.Entry) []worklist.Placed {
	x, _ := e.Fact.Body.Claim.Body().(worklist.Amend)
	return x.At
}

// placedBy are the partitions that an amendment adds or moves.
func placedBy(e *log.Entry) (out []Placement) {
	for _, p := range PlacedBy(e) {
		out = append(out, Placement{fact.Placement{Partition: p.Partition, Partner: p.Partner}, e, p.Moves})
	}
	return out
}

// Misplaced says why an amendment does not place what it has to; empty: it says of each partition that it adds who has
// it, and of those of which it says who can have them to whom they move, if they do.
func Misplaced(p amendments.Patch, at []worklist.Placed) (why string) {
	parts, moves := p.Parts(), p.Replaces()
	for _, x := range at {
		switch i := slices.Index(parts, x.Partition); {
		case x.Moves && !slices.Contains(moves, x.Partition):
			return "it moves a partition, and does not say that others can have it"
		case x.Moves:
		case i >= 0:
			parts = slices.Delete(parts, i, i+1)
		default:
			return "it gives somebody a partition that it does not add"
		}
	}
	if len(parts) > 0 {
		return "it adds a partition and gives it to nobody"
	}
	return ""
}

// placedUnlike are the partitions that two amendments give to different partners.
func placedUnlike(one, other []worklist.Placed) (out []worklist.Placed) {
	for _, p := range one {
		if slices.ContainsFunc(other, func(o worklist.Placed) bool {
			return o.Partition == p.Partition && o.Moves == p.Moves && o.Partner != p.Partner
		}) {
			out = append(out, p)
		}
	}
	return out
}
