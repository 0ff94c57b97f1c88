package election

import (
	"errors"
	"fmt"
	"time"

	"github.com/mutirao-mesh/mutirao/membership/internal/codec"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Message is one of the messages of elections and electorates: exactly one
// field is set, and Holds only beside Claim. The carrier says who sent it and vouches for that; losing,
// repeating or reordering messages costs time, never safety.
type Message struct {
	Ask       *Ask       `cbor:"1,keyasint,omitempty"`
	Grant     *Grant     `cbor:"2,keyasint,omitempty"`
	Refusal   *Refusal   `cbor:"3,keyasint,omitempty"`
	Release   *Office    `cbor:"4,keyasint,omitempty"` // the sender gives the office up, or no longer seeks it
	Propose   *Proposal  `cbor:"5,keyasint,omitempty"`
	Consented *Consented `cbor:"6,keyasint,omitempty"`
	Lists     *Lists     `cbor:"7,keyasint,omitempty"`
	Claim     *Mandate   `cbor:"8,keyasint,omitempty"`
	Holding   *Office    `cbor:"9,keyasint,omitempty"` // the sender still holds the office
	WantClaim *WantClaim `cbor:"10,keyasint,omitempty"`
	Nominate  *Nominate  `cbor:"11,keyasint,omitempty"`
	Declined  *Declined  `cbor:"12,keyasint,omitempty"`
	// Holds says that the sender holds the office of Claim now.
	Holds  bool    `cbor:"13,keyasint,omitempty"`
	Stands *Stands `cbor:"14,keyasint,omitempty"`
}

// Ask asks for a vote, or to prolong the lease that came with one. To ask for
// a term gives up all lower ones.
type Ask struct {
	Office Office        `cbor:"1,keyasint"`
	Sent   time.Duration `cbor:"2,keyasint"` // by the sender's boot clock, to be echoed
}

// Grant answers an Ask with a vote and a lease, which the holder counts from
// Sent and the voter from when it answered.
type Grant struct {
	Vote Vote          `cbor:"1,keyasint"`
	Sent time.Duration `cbor:"2,keyasint"`
}

// Refusal answers an Ask without a vote.
type Refusal struct {
	Office Office        `cbor:"1,keyasint"` // that was asked for
	Reason string        `cbor:"2,keyasint"`
	Term   uint64        `cbor:"3,keyasint"`           // the highest the voter knows of
	Number uint64        `cbor:"4,keyasint"`           // of the list it votes in
	List   ListHash      `cbor:"5,keyasint"`           // that list
	Wait   time.Duration `cbor:"6,keyasint,omitempty"` // until it votes, if it only waits since it started or changed list
	// About are the partners that Reason has by their short IDs, in its order.
	About []workflow.PartnerID `cbor:"7,keyasint,omitempty"`
}

// Proposal asks for consent to a list.
type Proposal struct {
	List Electorate `cbor:"1,keyasint"`
}

// Consented is the consent of a voter to List, the only one that it gives.
type Consented struct {
	List    Electorate `cbor:"1,keyasint"`
	Consent Consent    `cbor:"2,keyasint"`
}

// Lists makes an electorate known.
type Lists struct {
	Lineage Lineage `cbor:"1,keyasint"`
}

// WantClaim asks to be shown the highest claim, and the electorate that it
// belongs to if that is not List, the asker's own.
type WantClaim struct {
	List ListHash `cbor:"1,keyasint"`
}

// Nominate asks its receiver to stand for election.
type Nominate struct{}

// Declined answers Nominate: the sender did not stand, or stood in vain.
type Declined struct {
	Reason string               `cbor:"1,keyasint"`
	About  []workflow.PartnerID `cbor:"2,keyasint,omitempty"` // as in Refusal
}

// Stands tells those who nominated the sender, while it stands, what it lacks.
type Stands struct {
	Left   time.Duration        `cbor:"1,keyasint"` // for which it goes on asking
	Reason string               `cbor:"2,keyasint"`
	About  []workflow.PartnerID `cbor:"3,keyasint,omitempty"` // as in Refusal
}

// maxMessage is the greatest encoded message, in bytes: a whole lineage.
const maxMessage = MaxLineage * (MaxVoters*96 + (MaxVoters/2+1)*224 + 256)

// fields tells which of m's fields are set.
func (m Message) fields() []bool {
	return []bool{
		m.Ask != nil, m.Grant != nil, m.Refusal != nil, m.Release != nil, m.Propose != nil, m.Consented != nil,
		m.Lists != nil, m.Claim != nil, m.Holding != nil, m.WantClaim != nil, m.Nominate != nil, m.Declined != nil,
		m.Stands != nil,
	}
}

// validate checks that exactly one field is set.
func (m Message) validate() error {
	n := 0
	for _, set := range m.fields() {
		if set {
			n++
		}
	}
	if n != 1 {
		return fmt.Errorf("election message with %d parts: want 1", n)
	}
	if m.Holds && m.Claim == nil {
		return errors.New("election message holds an office without a claim to it")
	}
	return nil
}

// EncodeMessage writes m for DecodeMessage.
func EncodeMessage(m Message) []byte { return codec.Encode(m) }

// DecodeMessage reads a message; [Election.Step] judges it.
func DecodeMessage(b []byte) (Message, error) {
	var m Message
	if err := codec.Decode("election message", b, maxMessage, &m); err != nil {
		return Message{}, err
	}
	return m, m.validate()
}

// Envelope is a message to send. To is empty to tell everybody.
type Envelope struct {
	To      workflow.PartnerID
	Message Message
}

// EncodeBallot writes b for DecodeBallot.
func EncodeBallot(b Ballot) []byte { return codec.Encode(b) }

// DecodeBallot reads a stored ballot.
func DecodeBallot(b []byte) (Ballot, error) {
	var ballot Ballot
	err := codec.Decode("stored ballot", b, maxMessage, &ballot)
	return ballot, err
}

// EncodeLineage writes ln for DecodeLineage.
func EncodeLineage(ln Lineage) []byte { return codec.Encode(ln) }

// DecodeLineage reads a lineage; [Lineage.Verify] judges it.
func DecodeLineage(b []byte) (Lineage, error) {
	var ln Lineage
	err := codec.Decode("lineage of electorates", b, maxMessage, &ln)
	return ln, err
}
