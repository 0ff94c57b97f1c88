// Package wire is the language between nodes: what a frame says, how it is
// encoded, and its limits.
//
// Promises: decoding is strict and bounded, and never panics; a message that
// decodes is well formed, which says nothing about whether it is true. Types of
// this package stay between node and its peers.
//
// A frame holds one Message: a version byte, then deterministic CBOR (RFC
// 8949, 4.2). Numbers and meanings are never reused:
//
//	version 1 (2026-11): the first.
//
// It imports choreo/fact, membership, membership/trust and workflow; many packages import it.
package wire

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Version is the first byte of every frame.
const Version = 1

// Limits of messages.
const (
	// MaxFrame is the greatest size of a frame in bytes.
	MaxFrame = 1 << 20
	// MaxFacts is how many bytes of facts a sender puts in one frame: with
	// attestations and names around them they stay below MaxFrame.
	MaxFacts = 384 << 10
	// MaxDefinition bounds a definition's canonical form.
	MaxDefinition = 384 << 10
	// MaxInstances bounds how many instances one message is about.
	MaxInstances = 512
	// MaxBundle bounds the facts of one instance in one frame, in bytes: what came in
	// one bundle may have to be passed on as one, beside the definition.
	MaxBundle = fact.MaxBundle
	// MaxStored bounds what the facts of a bundle take on a disk, with their attestations and storedBeside bytes for each:
	// as much as is made durable at once, and no more facts (kv.Unit), since one attestation may be all that vouches for
	// them. What a node builds, of half MaxFacts, stays below even if all its facts are small.
	MaxStored    = 1 << 20
	storedBeside = 256 // bytes: more than a fact's key and what is counted for a write
	// MaxHeads bounds the heads of one instance that are told at once; more are told in
	// up to MaxParts parts, one after the other.
	MaxHeads = 1024
	MaxParts = 16
	// MaxRecords bounds the partner records in one message.
	MaxRecords = 512
	// MaxEvictions bounds the evictions that one message names.
	MaxEvictions = 8192
	// MaxUserRecords bounds the records about users that one message names.
	MaxUserRecords = 16 << 10
	// MaxReports bounds the reports in one message, MaxReportBytes how much of
	// them a sender puts in one frame.
	MaxReports     = 512
	MaxReportBytes = 256 << 10
	// MaxElection bounds the messages of the election in one message.
	MaxElection = 64
	// EndedDigest is the size of a digest of ended instances, in bytes.
	EndedDigest = 16
	// MaxAge bounds the ages of records and beats, in milliseconds: ten years.
	MaxAge = 10 * 365 * 24 * 3600 * 1000
	// MaxWall bounds what is said of moments by wall clocks, in ms since 1970: the
	// end of the year 9999. Later ones cannot be said in JSON.
	MaxWall     = 253402300799999
	maxElements = 16 << 10
)

// Message is what one frame says: any of its parts, none of which depends on
// another's order.
type Message struct {
	Facts       []Facts           `cbor:"1,keyasint,omitempty"`
	Heads       []Heads           `cbor:"2,keyasint,omitempty"`
	Records     [][]byte          `cbor:"3,keyasint,omitempty"` // encoded membership.Record
	Beats       [][]byte          `cbor:"4,keyasint,omitempty"` // encoded membership.Beat
	Definitions []Definition      `cbor:"5,keyasint,omitempty"`
	Have        []DefinitionStamp `cbor:"6,keyasint,omitempty"`
	// Greeting marks the first message on a new contact: answer with your own.
	Greeting bool `cbor:"7,keyasint,omitempty"`
	// Digest is an encoded digest of the sender's partner list: answer with
	// what it lacks.
	Digest []byte `cbor:"8,keyasint,omitempty"`
	// Evictions keeps the sets of evictions equal: trust.Eviction.
	Evictions *Records `cbor:"9,keyasint,omitempty"`
	// Election are encoded messages of the election, election.Message.
	Election [][]byte `cbor:"10,keyasint,omitempty"`
	// Renewal is the receiver's own certificate chain, issued again.
	Renewal []byte `cbor:"11,keyasint,omitempty"`
	// Wall is the sender's wall clock in ms since 1970, to find clocks that are
	// wrong (node/clocks).
	Wall int64 `cbor:"12,keyasint,omitempty"`
	// Reports tell the coordinator of instances in which the sender takes part.
	Reports []Report `cbor:"13,keyasint,omitempty"`
	// Pulse is a beat without a signature: the connection proves whose it is, so
	// it is for the receiver only.
	Pulse *Pulse `cbor:"14,keyasint,omitempty"`
	// Ended is a digest of the ended instances in which sender and receiver take
	// part: a receiver that has another compares them.
	Ended []byte `cbor:"15,keyasint,omitempty"`
	// Ages say how many milliseconds ago their author told each of Records, and then
	// each of Beats, which the sender passes on; missing at the end: just now.
	Ages []uint64 `cbor:"16,keyasint,omitempty"`
	// Wanted are partners whose signs of life do not reach the sender: it wants them
	// passed on for a while as they come.
	Wanted []workflow.PartnerID `cbor:"17,keyasint,omitempty"`
	// Refusals say which instances of the receiver's messages the sender did not take
	// in, and why.
	Refusals []Refusal `cbor:"18,keyasint,omitempty"`
	// Users keeps the sets of records about users equal: users.Record.
	Users *Records `cbor:"19,keyasint,omitempty"`
}

// Age is how long ago the author told the i-th of Records and Beats together.
func (m *Message) Age(i int) time.Duration {
	if i >= len(m.Ages) {
		return 0
	}
	return time.Duration(m.Ages[i]) * time.Millisecond
}

// Millis are the milliseconds of an age, rounded up: nobody is to seem younger. What is older than can be said is as
// old as can be said: a partner that lies about an age is not to have us send what nobody can read.
func Millis(age time.Duration) uint64 {
	age = min(max(age, 0), MaxAge*time.Millisecond)
	return uint64((age + time.Millisecond - 1) / time.Millisecond)
}

// Pulse says that the sender stands by its record, which it names.
type Pulse struct {
	_      struct{} `cbor:",toarray"`
	Record membership.Version
	Load   membership.PerMille
}

// Records has two partners find out which signed records of one kind one of them lacks: a
// digest first, where that differs the IDs, and then the records.
type Records struct {
	_ struct{} `cbor:",toarray"`
	// Digest is that of the sender's set; a receiver that has another answers with IDs, in
	// its time. It also ends what answers to IDs.
	Digest []byte
	// IDs name all that the sender has or will not take, if Asks: answer with the rest.
	Asks bool
	IDs  [][]byte
	// List are encoded records.
	List [][]byte
}

// Facts are facts of one instance, causes first. In each chain the last is
// attested by its author.
type Facts struct {
	_        struct{} `cbor:",toarray"`
	Instance workflow.InstanceID
	// Definition is the canonical form, for a peer that has nothing of the
	// instance yet.
	Definition []byte
	Facts      []Fact
	// More tells that these are not all that the sender knows the peer to lack.
	More bool
	// Next tells that the sender began the instance, and that of all that it began and
	// the peer is not known to have this is the oldest: it is this one's turn to be taken
	// in.
	Next bool
}

// Fact is one encoded fact with its attestation, if it carries one.
type Fact struct {
	_   struct{} `cbor:",toarray"`
	Raw []byte
	Att *fact.Attestation
}

// Heads tells what the sender has made durable of one instance.
type Heads struct {
	_           struct{} `cbor:",toarray"`
	Instance    workflow.InstanceID
	Incarnation fact.Incarnation
	Heads       []fact.Head
	Mode        HeadsMode
	// Part counts from 0 where there are more heads than one part takes, and More says
	// that another part follows. All parts together are one statement.
	Part uint8
	More bool
}

// HeadsMode says why heads are told.
type HeadsMode uint8

// The modes.
const (
	// Acknowledge tells what was made durable.
	Acknowledge HeadsMode = iota
	// Ask has the receiver send what the sender lacks, and answer with its own heads.
	Ask
	// Answer answers Ask: the one that asked sends what the other lacks.
	Answer
)

// Refusal says that an instance was not taken in, or facts of it.
type Refusal struct {
	_        struct{} `cbor:",toarray"`
	Instance workflow.InstanceID
	Why      RefusedWhy
	// Closing is the signed summary of an instance that was RefusedClosed, if one is
	// kept still.
	Closing []byte
	// Author is whose facts were RefusedFacts, or are TakesFacts; who is the RefusedStranger.
	Author workflow.PartnerID
}

// maxClosing bounds a summary.
const maxClosing = 8 << 10

// RefusedWhy says why an instance was not taken in.
type RefusedWhy uint8

// The reasons.
const (
	// RefusedShare: its initiator has as many there as one member may.
	RefusedShare RefusedWhy = iota + 1
	// RefusedFull: there are as many as others may begin.
	RefusedFull
	// RefusedEnded: ended ones take the room, and may not be deleted yet.
	RefusedEnded
	// RefusedClosed: it ended, everybody had all of it, and its facts were deleted.
	RefusedClosed
	// RefusedHeavy: what its initiator has written fills the part of that node that one
	// member may, or all others' the part that others may.
	RefusedHeavy
	// RefusedWorkflows: nobody lists its workflow there, and as many such are kept as
	// its initiator, or all, may bring.
	RefusedWorkflows
	// RefusedLives: facts of its own that the sender wrote since its store was made or
	// restored once more: of one author only so many such lives are taken in.
	RefusedLives
	// RefusedLarge: it has more facts, or bytes of them, than that node takes, or needs more
	// room than it keeps for one instance.
	RefusedLarge
	// RefusedFacts: the instance is there, and there is no room for more of what an
	// author has written.
	RefusedFacts
	// TakesFacts: there is room now for what an author has written and was RefusedFacts.
	TakesFacts
	// RefusedStranger: an author of its facts is not on that node's partner list. The
	// sender, which knows the author, shows the author's certificate.
	RefusedStranger
	// RefusedBeginner: the user who began it may not begin it any more, as far as that node knows.
	RefusedBeginner
	// RefusedUnfit: by that node's version of the program it has not begun as an instance may.
	RefusedUnfit

	lastRefused = RefusedUnfit
)

// Definition is what an author says of a definition that the mesh shares.
type Definition struct {
	_ struct{} `cbor:",toarray"`
	// Notices are all encoded trust.Notice of the author about it, from the first.
	Notices [][]byte
	// Canonical is nil where it was taken off the list.
	Canonical []byte
}

// DefinitionStamp says how new somebody's knowledge is of what one author says of one
// definition.
type DefinitionStamp struct {
	_      struct{} `cbor:",toarray"`
	Claim  Claim
	Number uint64 // of the last notice
}

// Claim names what one author says of one definition.
type Claim [16]byte

// ClaimOf names what an author says of a definition.
func ClaimOf(h workflow.Hash, author workflow.PartnerID) Claim {
	sum := sha256.Sum256(append(h[:], author...))
	return Claim(sum[:len(Claim{})])
}

// Errors of Decode.
var (
	// ErrVersion is returned for a frame of a version that this node does not read.
	ErrVersion = errors.New("frame of another version")
	// ErrMalformed is returned for a frame that no correct node sends.
	ErrMalformed = errors.New("malformed frame")
)

var (
	encMode = must(cbor.CoreDetEncOptions().UserBufferEncMode())
	decMode = must(cbor.DecOptions{
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		IndefLength:       cbor.IndefLengthForbidden,
		TagsMd:            cbor.TagsForbidden,
		DefaultMapType:    reflect.TypeFor[map[string]any](),
		MaxArrayElements:  maxElements,
		MaxMapPairs:       maxElements,
		MaxNestedLevels:   16,
		UTF8:              cbor.UTF8RejectInvalid,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
	}.DecMode())
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err) // the options are constants of ours
	}
	return v
}

// buffers are where frames are encoded before their lengths are known.
var buffers = sync.Pool{New: func() any { return &bytes.Buffer{} }}

// Encode gives the frame of a message.
func Encode(m *Message) ([]byte, error) {
	b := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(b)
	b.Reset()
	b.WriteByte(Version)
	if err := encMode.MarshalToBuffer(m, b); err != nil {
		return nil, fmt.Errorf("encode message: %w", err)
	}
	if b.Len() > MaxFrame {
		return nil, fmt.Errorf("a message of %d bytes does not fit a frame of %d", b.Len()-1, MaxFrame)
	}
	return bytes.Clone(b.Bytes()), nil
}

// Decode reads a frame. Its error wraps ErrVersion or ErrMalformed.
func Decode(frame []byte) (*Message, error) {
	switch {
	case len(frame) == 0:
		return nil, fmt.Errorf("%w: it is empty", ErrMalformed)
	case len(frame) > MaxFrame:
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrMalformed, len(frame), MaxFrame)
	case frame[0] != Version:
		return nil, fmt.Errorf("%w: %d, this node reads %d", ErrVersion, frame[0], Version)
	}
	var m Message
	if err := decMode.Unmarshal(frame[1:], &m); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return &m, nil
}

// check holds the message against the limits.
func (m *Message) check() error {
	for _, c := range []struct {
		what   string
		n, max int
	}{
		{"instances with facts", len(m.Facts), MaxInstances},
		{"instances with heads", len(m.Heads), MaxInstances},
		{"refused instances", len(m.Refusals), MaxInstances},
		{"records", len(m.Records) + len(m.Beats), MaxRecords},
		{"wanted partners", len(m.Wanted), MaxRecords},
		{"ages", len(m.Ages), len(m.Records) + len(m.Beats)},
		{"election messages", len(m.Election), MaxElection},
		{"evictions", m.Evictions.size(), MaxEvictions},
		{"records about users", m.Users.size(), MaxUserRecords},
		{"reports", len(m.Reports), MaxReports},
	} {
		if c.n > c.max {
			return fmt.Errorf("%d %s, at most %d", c.n, c.what, c.max)
		}
	}
	if n := len(m.Ended); n != 0 && n != EndedDigest {
		return fmt.Errorf("a digest of ended instances of %d bytes, want %d", n, EndedDigest)
	}
	for _, age := range m.Ages {
		if age > MaxAge {
			return fmt.Errorf("an age of %d ms, at most %d", age, uint64(MaxAge))
		}
	}
	for _, r := range m.Refusals {
		if r.Why == 0 || r.Why > lastRefused {
			return fmt.Errorf("an instance refused for reason %d, want 1 to %d", r.Why, lastRefused)
		}
		if len(r.Closing) > maxClosing {
			return fmt.Errorf("a summary of %d bytes, at most %d", len(r.Closing), maxClosing)
		}
		if len(r.Author) > workflow.MaxName {
			return fmt.Errorf("an author's name of %d bytes, at most %d", len(r.Author), workflow.MaxName)
		}
	}
	for _, h := range m.Heads {
		if h.Mode > Answer {
			return fmt.Errorf("heads of mode %d, at most %d", h.Mode, Answer)
		}
		if len(h.Heads) > MaxHeads {
			return fmt.Errorf("%d heads of one instance, at most %d", len(h.Heads), MaxHeads)
		}
		if h.Part >= MaxParts {
			return fmt.Errorf("part %d of heads, at most %d", h.Part, MaxParts-1)
		}
	}
	for i := range m.Reports {
		if err := m.Reports[i].check(); err != nil {
			return err
		}
	}
	for _, d := range m.Definitions {
		if n := len(d.Notices); n == 0 || n > trust.MaxNotices {
			return fmt.Errorf("a definition with %d notices, want 1 to %d", n, trust.MaxNotices)
		}
		if len(d.Canonical) > MaxDefinition {
			return fmt.Errorf("a definition of %d bytes, at most %d", len(d.Canonical), MaxDefinition)
		}
	}
	return nil
}

// size is how many records r names.
func (r *Records) size() int {
	if r == nil {
		return 0
	}
	return len(r.IDs) + len(r.List)
}

// size is how many bytes the facts have, without their attestations.
func (f *Facts) size() (n int) {
	for _, w := range f.Facts {
		n += len(w.Raw)
	}
	return n
}

// stored is about how many bytes the facts take on a disk.
func (f *Facts) stored() (n int) {
	for _, w := range f.Facts {
		if n += len(w.Raw) + storedBeside; w.Att != nil {
			n += w.Att.Size()
		}
	}
	return n
}

// Parts splits heads into as many parts as they take. Of more than MaxParts parts the
// rest is not told.
func (h Heads) Parts() []Heads {
	if len(h.Heads) <= MaxHeads {
		return []Heads{h}
	}
	var out []Heads
	for some := range slices.Chunk(h.Heads[:min(len(h.Heads), MaxHeads*MaxParts)], MaxHeads) {
		part := h
		part.Heads, part.Part, part.More = some, uint8(len(out)), true
		out = append(out, part)
	}
	out[len(out)-1].More = false
	return out
}

// Verifier checks signatures; it may remember those that are right.
type Verifier interface {
	Verify(fact.Signature) error
}

// DecodeFacts reads and checks the facts of one instance: each is of it, well formed,
// and either attested by its author or named as previous by one that is, so
// that all are their author's. Each that brings somebody in is attested itself.
// Errors wrap fact.ErrInvalid or
// fact.ErrForged.
func DecodeFacts(f *Facts, v Verifier) ([]fact.Received, error) {
	if n := f.size(); n > MaxBundle {
		return nil, fmt.Errorf("%w: a bundle of %d bytes, at most %d", fact.ErrInvalid, n, MaxBundle)
	}
	if n := f.stored(); n > MaxStored {
		return nil, fmt.Errorf("%w: a bundle of %d facts, which take %d bytes on a disk with what vouches for them, at most %d",
			fact.ErrInvalid, len(f.Facts), n, MaxStored)
	}
	out := make([]fact.Received, len(f.Facts))
	for i, w := range f.Facts {
		told, id, err := fact.Decode(w.Raw)
		if err != nil {
			return nil, err
		}
		out[i] = fact.Received{Fact: told, ID: id, Raw: w.Raw, Att: w.Att}
		if of := out[i].Instance(); of != f.Instance {
			return nil, fmt.Errorf("%w: it is of instance %s, and came among the facts of %s", fact.ErrInvalid,
				of, f.Instance)
		}
	}
	vouched := make(map[fact.ID]workflow.PartnerID, len(out))
	for _, r := range slices.Backward(out) {
		author := r.Fact.Chain.Author
		if by, ok := vouched[r.ID]; r.Att != nil || !ok || by != author || r.Fact.Body.BringsIn() {
			s, err := r.Att.Signature(author, r.ID)
			if err == nil {
				err = v.Verify(s)
			}
			if err != nil {
				return nil, err
			}
		}
		vouched[r.Fact.Prev] = author
	}
	return out, nil
}
