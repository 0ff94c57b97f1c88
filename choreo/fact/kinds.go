package fact

import (
	"errors"
	"fmt"

	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file says what makes a kind of fact. To add one: a type with the methods below, a field
// of Body, and a line in Body.Says; how it changes the state is a case of State.enterFact, and who
// is told of it at once one of decision.tellFact. If it may give somebody work, it is appointing as
// well, and if it may have an annex, Fact.validateAnnex lets it.

// Statement is what a body says.
type Statement interface {
	// kind names it, for people and for counters.
	kind() string
	// Validate checks what can be told of it by itself, within the limits of limits.go.
	Validate(author workflow.PartnerID) error
}

// appointing is a kind of fact that may give partners work.
type appointing interface {
	// appoints are those partners, as an iterator.
	appoints(yield func(workflow.PartnerID) bool)
}

func (g *Genesis) kind() string { return "genesis" }

func (g *Genesis) Validate(author workflow.PartnerID) error {
	if len(g.Succession) == 0 || len(g.Assign) == 0 {
		return errors.New("a genesis names its participants and who holds which partition")
	}
	if n := max(len(g.Succession), len(g.Assign)); n > MaxCollection {
		return fmt.Errorf("%d participants and %d partitions, at most %d", len(g.Succession), len(g.Assign),
			MaxCollection)
	}
	seen := map[workflow.PartnerID]bool{}
	for _, p := range g.Succession {
		if p == "" || seen[p] {
			return fmt.Errorf("succession names %q twice or names nobody", p)
		}
		seen[p] = true
		if err := names(p); err != nil {
			return err
		}
	}
	for _, a := range g.Assign {
		if err := names(a.Partition); err != nil {
			return err
		}
		if !seen[a.Partner] {
			return said.Errorf("partition %s is at %s, who is not in the succession", a.Partition, a.Partner)
		}
	}
	if !seen[author] {
		return errors.New("the initiator is not in the succession")
	}
	if err := names(g.Responsible); err != nil {
		return err
	}
	if err := names(g.Coordination); err != nil {
		return err
	}
	return values(g.Input)
}

func (x *Seen) kind() string { return "seen" }

func (x *Seen) Validate(workflow.PartnerID) error { return heads(x.Aside) }

func (c *Cancel) kind() string { return "cancel" }

func (c *Cancel) Validate(workflow.PartnerID) error { return Reason(c.Reason) }

// Genesis creates an instance. Its author is the initiator.
type Genesis struct {
	_          struct{} `cbor:",toarray"`
	Definition workflow.Hash
	// Nonce makes two instances of one definition two.
	Nonce [16]byte
	Input map[workflow.DataName]workflow.Value
	// Succession lists the participants in the order in which they judge; the
	// first living one is the guardian (docs/design.md, idea 4).
	Succession []workflow.PartnerID
	// Assign gives each partition its first holder, in the definition's order.
	Assign       []Placement
	Responsible  workflow.UserName
	Coordination workflow.Coordination
}

// Placement puts a partition at a partner.
type Placement struct {
	_         struct{} `cbor:",toarray"`
	Partition workflow.PartitionName
	Partner   workflow.PartnerID
}

// Cancel ends the whole instance.
type Cancel struct {
	_      struct{} `cbor:",toarray"`
	Reason string
}

// Seen says nothing but what its author had seen.
type Seen struct {
	_ struct{} `cbor:",toarray"`
	// Aside are heads that its author has as well and does not build upon: they do not
	// count, or others had no room for them (choreo/admit.go). Sorted.
	Aside []Head
}
