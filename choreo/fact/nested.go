package fact

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is about instances that do a task of another instance (docs/language.md, uses).
//
// The holder of a task of type workflow begins an instance for it, the child, and is its
// initiator. The child's genesis names the parent, the attempt and the try, and its nonce is
// made of these three: so whoever has two such instances can tell that they are for one try.
// That the child is there is a fact of the parent, by which the other participants can name
// it. What the child comes to is for the driver to see, who ends the try as it does one of an
// application.
//
// The child's workflow may want a role of its creator. Then the holder has to have it, as its
// certificate proves to everybody, and each initiator in the line above: an honest holder begins no child
// for somebody who might not have started that workflow, and who lies about the line has the role
// itself, or nobody takes its child.
//
// A genesis says which definition each name under uses stands for, for itself and for all that
// its children use: so they are the same whoever holds a task, and whatever is listed
// meanwhile.

// MaxNesting is how deep instances may be nested: the children of one that nobody nested
// have depth 1.
const MaxNesting = 8

// MaxPins is how many workflows an instance uses at most, those of its children included.
const MaxPins = 64

// Parent is what a child is for.
type Parent struct {
	_        struct{} `cbor:",toarray"`
	Instance workflow.InstanceID
	Attempt  AttemptID
	Try      int
	// Line are the initiators of the instances above the child, the outermost first, by the
	// word of those who began them: how many they are is how deep it lies.
	Line []workflow.PartnerID
}

// Nonce is that of the genesis of the child.
func (p Parent) Nonce() (out [16]byte) {
	h := sha256.New()
	h.Write([]byte("mutirao child/1\x00"))
	h.Write(p.Instance[:])
	h.Write(p.Attempt.Fact[:])
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(p.Try)))
	h.Write([]byte(p.Attempt.Slot))
	return [16]byte(h.Sum(nil))
}

func (p *Parent) validate(g *Genesis) error {
	switch {
	case p == nil:
		return nil
	case p.Instance == (workflow.InstanceID{}):
		return errors.New("an instance that is part of none")
	case len(p.Line) < 1 || len(p.Line) > MaxNesting:
		return fmt.Errorf("an instance of depth %d, want 1 to %d", len(p.Line), MaxNesting)
	case g != nil && g.Nonce != p.Nonce():
		return errors.New("an instance whose nonce is not that of the try which it is for")
	}
	return errors.Join(try(p.Attempt, p.Try), names(p.Line...))
}

// Pin says which definition a name stands for in an instance.
type Pin struct {
	_          struct{} `cbor:",toarray"`
	Workflow   workflow.Name
	Definition workflow.Hash
}

func pins(list []Pin) error {
	if len(list) > MaxPins {
		return fmt.Errorf("it uses %d workflows, at most %d", len(list), MaxPins)
	}
	for i, p := range list {
		if i > 0 && list[i-1].Workflow >= p.Workflow {
			return errors.New("the workflows that it uses are not sorted, or named twice")
		}
		if err := names(p.Workflow); err != nil {
			return err
		}
	}
	return nil
}

// Child records that a try of a task of type workflow is done by an instance of its own.
type Child struct {
	_        struct{} `cbor:",toarray"`
	Attempt  AttemptID
	Try      int
	Instance workflow.InstanceID
}

func (b *Child) kind() string { return "child" }

func (b *Child) Validate(workflow.PartnerID) error {
	if b.Instance == (workflow.InstanceID{}) {
		return errors.New("a child that is no instance")
	}
	return try(b.Attempt, b.Try)
}
