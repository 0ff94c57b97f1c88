package choreo

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"

	"github.com/fxamacker/cbor/v2"

	"github.com/mutirao-mesh/mutirao/membership/election"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// FactID names a fact: SHA-256 of a domain prefix and its encoding.
type FactID [sha256.Size]byte

func (id FactID) String() string { return string(hex.AppendEncode(make([]byte, 0, 2*len(id)), id[:])) }

// Short is the prefix that people see.
func (id FactID) Short() string { return hex.EncodeToString(id[:5]) }

// IsZero reports whether id names nothing.
func (id FactID) IsZero() bool { return id == FactID{} }

func (id FactID) compare(o FactID) int { return bytes.Compare(id[:], o[:]) }

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
	ID    FactID
}

func (h Head) compare(o Head) int {
	if n := h.Chain.compare(o.Chain); n != 0 {
		return n
	}
	if n := cmp.Compare(h.Seq, o.Seq); n != 0 {
		return n
	}
	return h.ID.compare(o.ID)
}

// Fact is something that happened to an instance, as its author tells it. It
// is immutable and named by the hash of its encoding (docs/design.md, idea 1).
type Fact struct {
	_ struct{} `cbor:",toarray"`
	// Format is the version of the encoding, FormatFact.
	Format uint8
	// Instance is zero in a genesis, whose hash gives the ID.
	Instance workflow.InstanceID
	Chain    Chain
	// Seq numbers a chain's facts from 1 without gaps; Prev is the one before.
	Seq  uint64
	Prev FactID
	// Seen are the heads of other chains that the author had seen and that the
	// past of Prev does not contain, sorted.
	Seen []Head
	// At is the author's wall clock in milliseconds since 1970, until the year
	// 9999. It is shown to people and decides nothing.
	At   int64
	Body Body
}

// FormatFact is the version of the encoding of facts. 1 (2026-11): the first.
const FormatFact = 1

// Body says what happened: exactly one field is set, beside the annex.
type Body struct {
	Genesis   *Genesis   `cbor:"1,keyasint,omitempty"`
	Ready     *ReadyBody `cbor:"2,keyasint,omitempty"`
	Start     *Start     `cbor:"3,keyasint,omitempty"`
	Success   *Success   `cbor:"4,keyasint,omitempty"`
	TryFailed *TryFailed `cbor:"5,keyasint,omitempty"`
	Verdict   *Verdict   `cbor:"6,keyasint,omitempty"`
	Assign    *Assign    `cbor:"7,keyasint,omitempty"`
	CalledOff *CalledOff `cbor:"8,keyasint,omitempty"`
	Cancel    *Cancel    `cbor:"9,keyasint,omitempty"`
	Seen      *Seen      `cbor:"10,keyasint,omitempty"`
	WriteOff  *WriteOff  `cbor:"11,keyasint,omitempty"`
	Claim     *Claim     `cbor:"12,keyasint,omitempty"`
	Child     *Child     `cbor:"13,keyasint,omitempty"`
	Fire      *Fire      `cbor:"14,keyasint,omitempty"`
	Lease     *Lease     `cbor:"17,keyasint,omitempty"`
	Aged      *Aged      `cbor:"18,keyasint,omitempty"`

	// Annex may go with a genesis, a verdict, an assignment or an offer of people's work.
	Annex *Annex `cbor:"20,keyasint,omitempty"`
	// Credentials are the certificate chain of the author's key, which proves its
	// roles (trust.EncodeChain). They go with the first fact of a chain for
	// which they matter: a genesis of a workflow with a creator role, and the start
	// of a task with a role.
	Credentials []byte `cbor:"21,keyasint,omitempty"`
}

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

// AttemptID names an attempt: the fact that assigned it (zero: the genesis)
// and the slot that it is to fill. A compensation is named by a success that it
// undoes, and that one's slot.
type AttemptID struct {
	_    struct{} `cbor:",toarray"`
	Fact FactID
	Slot workflow.TaskName
}

func (a AttemptID) String() string {
	if a.Fact.IsZero() {
		return string(a.Slot)
	}
	return string(a.Slot) + "/" + a.Fact.Short()
}

// ReadyBody records that a rule about data or age held at the holder, or that
// an emergency trigger fired there.
type ReadyBody struct {
	_       struct{} `cbor:",toarray"`
	Attempt AttemptID
	Trigger bool
}

// Start records that the holder starts a try of an attempt. Consumed names, sorted
// by slot, what results it builds upon where that does not follow from its past
// (converge.go, consumed.go).
type Start struct {
	_        struct{} `cbor:",toarray"`
	Attempt  AttemptID
	Try      int
	Consumed []Consumption
}

// Consumption names what a start built upon: a success, or the verdict that
// released the slot.
type Consumption struct {
	_    struct{} `cbor:",toarray"`
	Slot workflow.TaskName
	Fact FactID
}

// Success records that an attempt succeeded, with its results.
type Success struct {
	_       struct{} `cbor:",toarray"`
	Attempt AttemptID
	Try     int
	Outputs map[workflow.DataName]workflow.Value
}

// TryFailed records a failed try that will be tried again in the same attempt.
type TryFailed struct {
	_       struct{} `cbor:",toarray"`
	Attempt AttemptID
	Try     int
	Reason  string
}

// Verdict says that attempts failed and what that does to the instance. By the
// attempts' holder it is final; by anybody else it is presumed.
type Verdict struct {
	_       struct{} `cbor:",toarray"`
	Cause   Cause
	Reason  string
	Actions []Action
	Office  *Office
}

// Cause says why attempts are held to have failed.
type Cause string

// The causes of a verdict.
const (
	CauseReported Cause = "reported" // the performer said so
	CauseTimeout  Cause = "timeout"
	CauseExpired  Cause = "expired" // its holder did not re-validate within its connectionTime
	CauseEvicted  Cause = "evicted"
	// CauseLost: nobody has the content of a file any more that its task reads, as its holder says.
	CauseLost Cause = "lost"
)

// Action is what a verdict does to one slot (docs/systems.md, Failure).
type Action struct {
	_       struct{} `cbor:",toarray"`
	Attempt AttemptID
	Kind    workflow.FailureAction
	// Task and Partner are the contingency and who performs it; an empty
	// Partner means that nobody could be found yet, and an Assign follows.
	Task    workflow.TaskName
	Partner workflow.PartnerID
}

// Office is under whose authority a coordinator wrote (docs/design.md, Electorate).
type Office struct {
	_ struct{} `cbor:",toarray"`
	election.Office
	// Proof are the author's credentials (election.Credentials). A node that
	// takes the fact in has checked that they prove this office to be its
	// author's.
	Proof []byte
}

// Assign gives a slot a new attempt: a contingency for which the verdict found
// nobody, or a new attempt by order of the responsible user.
type Assign struct {
	_       struct{}  `cbor:",toarray"`
	After   AttemptID // the attempt that it follows
	Verdict FactID    // the verdict that asked for it; zero: by order
	Task    workflow.TaskName
	Partner workflow.PartnerID
}

// CalledOff records that the holder stopped an attempt that is not needed.
type CalledOff struct {
	_       struct{} `cbor:",toarray"`
	Attempt AttemptID
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
	// count, or others had no room for them (door.go). Sorted.
	Aside []Head
}

// ErrFactInvalid is wrapped by the error of a fact that no correct node writes.
var ErrFactInvalid = errors.New("invalid fact")

var (
	encMode = func() cbor.EncMode {
		o := cbor.CoreDetEncOptions()
		m, err := o.EncMode()
		if err != nil {
			panic(err) // the options are constants of ours
		}
		return m
	}()
	decMode = func() cbor.DecMode {
		m, err := cbor.DecOptions{
			DupMapKey:         cbor.DupMapKeyEnforcedAPF,
			IndefLength:       cbor.IndefLengthForbidden,
			TagsMd:            cbor.TagsForbidden,
			IntDec:            cbor.IntDecConvertSignedOrFail,
			DefaultMapType:    reflect.TypeFor[map[string]any](),
			MaxArrayElements:  maxCollection,
			MaxMapPairs:       maxCollection,
			MaxNestedLevels:   maxDepth,
			UTF8:              cbor.UTF8RejectInvalid,
			ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
		}.DecMode()
		if err != nil {
			panic(err) // the options are constants of ours
		}
		return m
	}()
)

// Encode gives a fact's canonical bytes and its name. It refuses what DecodeFact
// refuses; its error wraps ErrFactInvalid.
func (f *Fact) Encode() ([]byte, FactID, error) {
	if err := f.validate(); err != nil {
		return nil, FactID{}, fmt.Errorf("%w: %w", ErrFactInvalid, err)
	}
	raw, err := encMode.Marshal(f)
	if err != nil {
		return nil, FactID{}, fmt.Errorf("encode fact: %w", err)
	}
	if len(raw) > MaxFact {
		return nil, FactID{}, fmt.Errorf("%w: %s fact of %d bytes, at most %d may be recorded: keep large results in files", ErrFactInvalid, f.Body.Kind(), len(raw), MaxFact)
	}
	return raw, nameOf(raw), nil
}

// DecodeFact reads a fact. Its error wraps ErrFactInvalid.
func DecodeFact(raw []byte) (*Fact, FactID, error) {
	if len(raw) > MaxFact {
		return nil, FactID{}, fmt.Errorf("%w: %d bytes, at most %d", ErrFactInvalid, len(raw), MaxFact)
	}
	var f Fact
	if err := decMode.Unmarshal(raw, &f); err != nil {
		return nil, FactID{}, fmt.Errorf("%w: %w", ErrFactInvalid, err)
	}
	if err := f.validate(); err != nil {
		return nil, FactID{}, fmt.Errorf("%w: %w", ErrFactInvalid, err)
	}
	return &f, nameOf(raw), nil
}

var factDomain = []byte("mutirao/fact/1\x00")

func nameOf(raw []byte) FactID {
	h := sha256.New()
	h.Write(factDomain)
	h.Write(raw)
	var id FactID
	h.Sum(id[:0])
	return id
}

// InstanceOf gives the ID of the instance that a genesis with that name creates.
func InstanceOf(id FactID) workflow.InstanceID {
	return workflow.InstanceID(id[:16])
}
