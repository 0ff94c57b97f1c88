package fact

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"

	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// ID names a fact: SHA-256 of a domain prefix and its encoding.
type ID [sha256.Size]byte

func (id ID) String() string { return string(hex.AppendEncode(make([]byte, 0, 2*len(id)), id[:])) }

// Short is the prefix that people see.
func (id ID) Short() string { return hex.EncodeToString(id[:5]) }

// IsZero reports whether id names nothing.
func (id ID) IsZero() bool { return id == ID{} }

func (id ID) Compare(o ID) int { return bytes.Compare(id[:], o[:]) }

// Incarnation tells the lives of a store apart, so that an author never uses a
// number twice.
type Incarnation = trust.Incarnation

// Chain names one author's facts in one incarnation, in one instance.
type Chain struct {
	_           struct{} `cbor:",toarray"`
	Author      workflow.PartnerID
	Incarnation Incarnation
}

func (c Chain) compare(o Chain) int {
	if n := cmp.Compare(c.Author, o.Author); n != 0 {
		return n
	}
	return bytes.Compare(c.Incarnation[:], o.Incarnation[:])
}

// Head is a place in a chain, in practice its last fact that somebody knows.
type Head struct {
	_     struct{} `cbor:",toarray"`
	Chain Chain
	Seq   uint64
	ID    ID
}

func (h Head) Compare(o Head) int {
	if n := h.Chain.compare(o.Chain); n != 0 {
		return n
	}
	if n := cmp.Compare(h.Seq, o.Seq); n != 0 {
		return n
	}
	return h.ID.Compare(o.ID)
}

// AttemptID names an attempt: the fact that assigned it (zero: the genesis)
// and the slot that it is to fill. A compensation is named by a success that it
// undoes, and that one's slot.
type AttemptID struct {
	Slot workflow.TaskName `cbor:"1,keyasint"`
	Fact ID                `cbor:"2,keyasint,omitzero"`
}

func (a AttemptID) String() string {
	if a.Fact.IsZero() {
		return string(a.Slot)
	}
	return string(a.Slot) + "/" + a.Fact.Short()
}
