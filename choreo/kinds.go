package choreo

import (
	"errors"
	"fmt"
	"iter"

	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file says what makes a kind of fact. To add one: a type with the methods below, a field
// of Body, and a line in Body.says; how it changes the state is a case of State.enterFact, and who
// is told of it at once one of decision.tellFact. If it may give somebody work, it is appointing as
// well, and if it may have an annex, Fact.validateAnnex lets it.

// statement is what a body says.
type statement interface {
	// kind names it, for people and for counters.
	kind() string
	// validate checks what can be told of it by itself, within the limits of limits.go.
	validate(author workflow.PartnerID) error
}

// appointing is a kind of fact that may give partners work.
type appointing interface {
	// appoints are those partners, as an iterator.
	appoints(yield func(workflow.PartnerID) bool)
}

// says is what the body says; nil: not exactly one thing.
func (b *Body) says() (what statement) {
	n := 0
	for _, x := range []struct {
		says statement
		set  bool
	}{
		{b.Genesis, b.Genesis != nil}, {b.Ready, b.Ready != nil}, {b.Start, b.Start != nil},
		{b.Success, b.Success != nil},
		{b.TryFailed, b.TryFailed != nil}, {b.Verdict, b.Verdict != nil}, {b.Assign, b.Assign != nil},
		{b.CalledOff, b.CalledOff != nil}, {b.Cancel, b.Cancel != nil}, {b.Seen, b.Seen != nil},
		{b.WriteOff, b.WriteOff != nil},
		{b.Claim, b.Claim != nil}, {b.Child, b.Child != nil}, {b.Lease, b.Lease != nil},
		{b.Fire, b.Fire != nil}, {b.Aged, b.Aged != nil},
	} {
		if x.set {
			what = x.says
			n++
		}
	}
	if n != 1 {
		return nil
	}
	return what
}

// Kind names what a body says, for people and for counters; "" means that it does not
// say exactly one thing.
func (b *Body) Kind() string {
	if what := b.says(); what != nil {
		return what.kind()
	}
	return ""
}

// appoints are the partners to whom a fact gives work, after the genesis.
func (b *Body) appoints() iter.Seq[workflow.PartnerID] {
	if what, ok := b.says().(appointing); ok {
		return what.appoints
	}
	return func(func(workflow.PartnerID) bool) {}
}

// BringsIn reports whether a fact with this body may bring somebody into the instance.
// Such a fact goes with an attestation of its own: so nothing else of its chain is needed
// to show a newcomer that it takes part, whatever its author wrote after it.
func (b *Body) BringsIn() bool {
	what, may := b.says().(appointing)
	if !may { // most kinds: an iterator would cost memory for each fact
		return b.Genesis != nil
	}
	for range what.appoints {
		return true
	}
	return false
}

func (g *Genesis) kind() string { return "genesis" }

func (g *Genesis) validate(author workflow.PartnerID) error {
	if len(g.Succession) == 0 || len(g.Assign) == 0 {
		return errors.New("a genesis names its participants and who holds which partition")
	}
	if n := max(len(g.Succession), len(g.Assign)); n > maxCollection {
		return fmt.Errorf("%d participants and %d partitions, at most %d", len(g.Succession), len(g.Assign),
			maxCollection)
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

func (x *Seen) kind() string                      { return "seen" }
func (x *Seen) validate(workflow.PartnerID) error { return heads(x.Aside) }
func (c *Cancel) kind() string                    { return "cancel" }

func (c *Cancel) validate(workflow.PartnerID) error { return reason(c.Reason) }

func (s *State) enterCancel(e *entry) (why string) {
	if s.cancel == nil {
		for _, sl := range s.slots {
			s.touch(sl)
		}
	}
	s.cancel, s.cancels = earlier(s.cancel, e), firstOf(s.cancels, e)
	return ""
}
