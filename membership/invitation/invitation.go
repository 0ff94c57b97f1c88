package invitation

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/mutirao-mesh/mutirao/membership/internal/codec"
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

// The text of an invitation: the prefix, then in base32 the CBOR and four
// bytes of its hash. The alphabet has no i, l, o, u, to be read out loud and
// typed; in capitals it makes the smallest QR code.
const (
	tokenPrefix = "mutirao1"
	tokenDigits = "0123456789abcdefghjkmnpqrstvwxyz"
	tokenDomain = "invitation-text"
	tokenCheck  = 4
)

var (
	tokenEncoding = base32.NewEncoding(tokenDigits).WithPadding(base32.NoPadding)
	mistyped      = strings.NewReplacer("i", "1", "l", "1", "o", "0")
)

// Token is the invitation as one word to copy.
func (inv Invitation) Token() string {
	b := codec.Encode(inv)
	return tokenPrefix + tokenEncoding.EncodeToString(append(b, tokenSum(b)...))
}

// ParseInvitation reads what [Invitation.Token] wrote. Case, white space and
// hyphens do not matter, and i, l, o are read as 1, 1, 0. What is wrong with
// a text never includes the text, since most of it is a secret.
func ParseInvitation(text string) (Invitation, error) {
	if len(text) > 2*MaxToken {
		return Invitation{}, fmt.Errorf("text of %d characters, an invitation has at most %d: %w", len(text), MaxToken, ErrBadInvitation)
	}
	digits, found := strings.CutPrefix(bare(text), tokenPrefix)
	if !found {
		return Invitation{}, fmt.Errorf("an invitation begins with %q: %w", tokenPrefix, ErrBadInvitation)
	}
	digits = mistyped.Replace(digits)
	raw, err := tokenEncoding.DecodeString(digits)
	if err != nil || len(raw) < tokenCheck || tokenEncoding.EncodeToString(raw) != digits {
		return Invitation{}, fmt.Errorf("a character is missing or mistyped: %w", ErrBadInvitation)
	}
	body, sum := raw[:len(raw)-tokenCheck], raw[len(raw)-tokenCheck:]
	if string(tokenSum(body)) != string(sum) {
		return Invitation{}, fmt.Errorf("the check digits do not fit: %w", ErrBadInvitation)
	}
	var inv Invitation
	if err := codec.Decode("invitation", body, MaxToken, &inv); err != nil {
		return Invitation{}, err
	}
	return inv, inv.validate()
}

// bare drops what copying and line breaks add.
func bare(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || r == '-' {
			return -1
		}
		return unicode.ToLower(r)
	}, text)
}

// tokenSum is the check digits of an encoded invitation.
func tokenSum(b []byte) []byte {
	sum := sha256.Sum256(trust.InDomain(tokenDomain, b))
	return sum[:tokenCheck]
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
