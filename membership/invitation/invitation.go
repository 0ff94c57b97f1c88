package invitation

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/mutirao-mesh/mutirao/membership/internal/codec"
	"github.com/mutirao-mesh/mutirao/membership/internal/token"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// ErrBadInvitation tells that a text is no invitation, or a damaged one.
var ErrBadInvitation = errors.New("not a complete invitation: copy it again, all of it")

// Secret is the one-time secret of an invitation. Its holder may join.
type Secret [16]byte

// InvitationID names an invitation without giving its secret away.
type InvitationID [8]byte

// String is id in hexadecimal.
func (id InvitationID) String() string { return hex.EncodeToString(id[:]) }

// ID is the name of the invitation with secret s.
func (s Secret) ID() InvitationID {
	sum := sha256.Sum256(trust.InDomain("invitation", s[:]))
	return InvitationID(sum[:len(InvitationID{})])
}

// Invitation is what a joiner needs: which mesh, who can let it in, where to
// find that one or others who relay, and the secret to show. Anybody who has it
// can join until it expires or is used up: it is shown once and never logged.
type Invitation struct {
	Mesh      trust.MeshID       `cbor:"1,keyasint"`
	MeshName  string             `cbor:"2,keyasint"`
	Issuer    workflow.PartnerID `cbor:"3,keyasint"`
	Addresses []string           `cbor:"4,keyasint,omitempty"`
	Secret    Secret             `cbor:"5,keyasint"`
	Expires   trust.Wall         `cbor:"6,keyasint"`
}

// text is how an invitation is written.
var text = token.Form{
	What: "an invitation", Prefix: "mutirao1", Domain: "invitation-text", Max: MaxToken, Bad: ErrBadInvitation,
}

// Token is the invitation as one word to copy.
func (inv Invitation) Token() string { return text.Write(codec.Encode(inv)) }

// ParseInvitation reads what [Invitation.Token] wrote. What is wrong with a text never
// includes the text, since most of it is a secret.
func ParseInvitation(word string) (Invitation, error) {
	body, err := text.Read(word)
	if err != nil {
		return Invitation{}, err
	}
	var inv Invitation
	if err := codec.Decode("invitation", body, MaxToken, &inv); err != nil {
		return Invitation{}, err
	}
	return inv, inv.validate()
}

// validate checks the sizes and names.
func (inv Invitation) validate() error {
	if !workflow.ValidName(inv.MeshName) {
		return trust.BadName("mesh", inv.MeshName)
	}
	if _, err := trust.PublicKey(inv.Issuer); err != nil {
		return err
	}
	if inv.Secret == (Secret{}) {
		return fmt.Errorf("invitation without a secret: %w", ErrBadInvitation)
	}
	if err := trust.CheckAddresses(inv.Addresses); err != nil {
		return err
	}
	if n := len(inv.Token()); n > MaxToken {
		return fmt.Errorf("invitation of %d characters, at most %d: give fewer addresses", n, MaxToken)
	}
	return nil
}

// ExpiredAt tells, by this node's clock, whether it is too late to try: with
// [trust.ClockSkew] to spare, since the issuer's own clock decides.
func (inv Invitation) ExpiredAt(at time.Time) error {
	if trust.WallOf(at.Add(-trust.ClockSkew)) > inv.Expires {
		return fmt.Errorf("invitation to %s %w at %s: ask for another", inv.MeshName, trust.ErrExpired, inv.Expires)
	}
	return nil
}
