package invitation

import (
	"errors"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/membership/internal/codec"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Pass is a joiner's message to the issuer of its invitation, for another member
// to pass on. The member that passes it puts in the joiner's ID as its connection
// shows it; what it could forge is worth nothing (see Hello).
type Pass struct {
	Issuer  workflow.PartnerID `cbor:"1,keyasint"`
	Joiner  workflow.PartnerID `cbor:"2,keyasint,omitempty"`
	Proof   bool               `cbor:"3,keyasint,omitempty"` // a Proof, else a Hello
	Message []byte             `cbor:"4,keyasint"`
}

// Passed is what the issuer answered: the message, or why it refuses.
type Passed struct {
	Message []byte `cbor:"1,keyasint,omitempty"`
	Refusal string `cbor:"2,keyasint,omitempty"`
}

// Way is a way to the issuer of an invitation: straight, or by another member.
type Way struct {
	To        workflow.PartnerID
	Addresses []string
}

// passMark precedes, in an address of an invitation, the ID of the member who is
// found there and passes on, where that is not the issuer.
const passMark = "/p2p/"

// PassAddress is how an invitation names another member who passes on.
func PassAddress(address string, id workflow.PartnerID) string {
	return address + passMark + string(id)
}

// Ways are the ways to the issuer: first straight, then by the others in order.
func (inv Invitation) Ways() []Way {
	ways := []Way{{To: inv.Issuer}}
	for _, a := range inv.Addresses {
		to := inv.Issuer
		// An address that goes on after the ID leads over a libp2p relay, to the issuer.
		if i := strings.LastIndex(a, passMark); i >= 0 && !strings.Contains(a[i+len(passMark):], "/") {
			a, to = a[:i], workflow.PartnerID(a[i+len(passMark):])
		}
		at := slices.IndexFunc(ways, func(w Way) bool { return w.To == to })
		if at < 0 {
			at, ways = len(ways), append(ways, Way{To: to})
		}
		ways[at].Addresses = append(ways[at].Addresses, a)
	}
	return ways
}

// Answer is the error of a request that the other side answered with. Any other error tells
// that no answer came.
type Answer interface {
	error
	Answer() string
}

// Refusal is what the other side answered a request with, where err is that.
func Refusal(err error) (text string, answered bool) {
	var a Answer
	if !errors.As(err, &a) {
		return "", false
	}
	return a.Answer(), true
}

// PassBack is what a member passes back of a request that it passed on: the issuer's message,
// or why it refuses. answered: one of the two came.
func PassBack(message []byte, err error) (passed []byte, answered bool) {
	if err == nil {
		return EncodePassed(Passed{Message: message}), true
	}
	text, answered := Refusal(err)
	if !answered {
		return nil, false
	}
	return EncodePassed(Passed{Refusal: text}), true
}

// EncodePass writes p for DecodePass.
func EncodePass(p Pass) []byte { return codec.Encode(p) }

// DecodePass reads what is to be passed on; the issuer judges it.
func DecodePass(b []byte) (Pass, error) {
	var p Pass
	if err := codec.Decode("request to pass on", b, maxJoin, &p); err != nil {
		return Pass{}, err
	}
	_, err := trust.PublicKey(p.Issuer)
	return p, err
}

// EncodePassed writes p for DecodePassed.
func EncodePassed(p Passed) []byte { return codec.Encode(p) }

// DecodePassed reads what an issuer answered.
func DecodePassed(b []byte) (Passed, error) {
	var p Passed
	err := codec.Decode("answer passed on", b, MaxWelcome+maxJoin, &p)
	return p, err
}
