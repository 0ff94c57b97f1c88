package users

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/membership/internal/codec"
	"github.com/mutirao-mesh/mutirao/membership/internal/token"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Signing in takes one round trip, which may pass through members who relay:
//
//	node of the device                     node that made the token
//	  Request{user's new key, HMAC(secret, …)}  ->
//	    signed by that key and by the node's     the secret fits: count the use and
//	                                             certify the key in one transaction
//	                                        <-  Device: the key with what proves it
//
// The two are members of one mesh, and what comes back proves itself: so the node needs no
// proof of the other before it asks. The secret itself is never sent. A certificate is good
// only for the key that signed the request, so whoever relays gains nothing, and a request
// that is sent again gets the same answer.

// ErrBadToken tells that a text is no sign-in token, or a damaged one.
var ErrBadToken = errors.New("not a complete sign-in token: copy it again, all of it")

// Secret is the one-time secret of a sign-in token. Its holder may sign in as the user.
type Secret [16]byte

// TicketID names a sign-in token without giving its secret away.
type TicketID [8]byte

// String is id in hexadecimal.
func (id TicketID) String() string { return hex.EncodeToString(id[:]) }

// ID is the name of the token with secret s.
func (s Secret) ID() TicketID {
	sum := sha256.Sum256(trust.InDomain("user-ticket", s[:]))
	return TicketID(sum[:len(TicketID{})])
}

// Token is what a device needs to sign a user in: who the user is, which node certifies it
// and where that is, and the secret. It is shown once and never logged.
type Token struct {
	Mesh      trust.MeshID       `cbor:"1,keyasint"`
	User      ID                 `cbor:"2,keyasint"`
	Name      string             `cbor:"3,keyasint"` // the user's
	Node      workflow.PartnerID `cbor:"4,keyasint"`
	Addresses []string           `cbor:"5,keyasint,omitempty"`
	Secret    Secret             `cbor:"6,keyasint"`
	Expires   trust.Wall         `cbor:"7,keyasint"`
}

var text = token.Form{
	What: "a sign-in token", Prefix: "mutiraouser1", Domain: "user-token-text", Max: MaxToken, Bad: ErrBadToken,
}

// Text is the token as one word to copy.
func (t Token) Text() string { return text.Write(codec.Encode(t)) }

// ParseToken reads what [Token.Text] wrote. What is wrong with a text never includes the
// text, since most of it is a secret.
func ParseToken(word string) (Token, error) {
	body, err := text.Read(word)
	if err != nil {
		return Token{}, err
	}
	var t Token
	if err := codec.Decode("sign-in token", body, MaxToken, &t); err != nil {
		return Token{}, err
	}
	return t, t.validate()
}

func (t Token) validate() error {
	if !workflow.ValidName(t.Name) {
		return trust.BadName("user", t.Name)
	}
	if _, err := trust.PublicKey(t.Node); err != nil {
		return err
	}
	if t.Secret == (Secret{}) {
		return fmt.Errorf("sign-in token without a secret: %w", ErrBadToken)
	}
	if err := trust.CheckAddresses(t.Addresses); err != nil {
		return err
	}
	if n := len(t.Text()); n > MaxToken {
		return fmt.Errorf("sign-in token of %d characters, at most %d: give fewer addresses", n, MaxToken)
	}
	return nil
}

// Fits checks that the token is of mesh m and, with [trust.ClockSkew] to spare, not out of
// time: the clock of the node that made it decides.
func (t Token) Fits(m trust.Mesh, at time.Time) error {
	if t.Mesh != m.ID() {
		return wrongMesh("sign-in token", t.Mesh, m)
	}
	if trust.WallOf(at.Add(-trust.ClockSkew)) > t.Expires {
		return fmt.Errorf("sign-in token of user %s %w at %s: ask for another", t.Name, trust.ErrExpired, t.Expires)
	}
	return nil
}

// Request asks the node that made a token to certify a key.
type Request struct {
	Ticket    TicketID           `cbor:"1,keyasint"`
	User      ID                 `cbor:"2,keyasint"`
	Key       workflow.PartnerID `cbor:"3,keyasint"`
	Node      workflow.PartnerID `cbor:"4,keyasint"` // at which the key is
	Consent   []byte             `cbor:"5,keyasint"` // of Node, see [Consent]
	MAC       [sha256.Size]byte  `cbor:"6,keyasint"`
	Signature []byte             `cbor:"7,keyasint,omitempty"` // by Key
}

const requestDomain = "user-sign-in"

// under is what a request proves, to the node that it is meant for.
func (r Request) under(to workflow.PartnerID) []byte {
	r.MAC, r.Signature = [sha256.Size]byte{}, nil
	return append(codec.Encode(r), to...)
}

// sum proves the secret over msg.
func (s Secret) sum(msg []byte) [sha256.Size]byte {
	mac := hmac.New(sha256.New, s[:])
	mac.Write(trust.InDomain(requestDomain, msg))
	return [sha256.Size]byte(mac.Sum(nil))
}

// NewRequest asks for a certificate of a user's new key at a node.
func NewRequest(t Token, key, node ed25519.PrivateKey) Request {
	id := func(k ed25519.PrivateKey) workflow.PartnerID { return trust.IDOf(k.Public().(ed25519.PublicKey)) }
	r := Request{Ticket: t.Secret.ID(), User: t.User, Key: id(key), Node: id(node)}
	r.Consent = Consent(node, t.Mesh, t.User, r.Key)
	msg := r.under(t.Node)
	r.MAC, r.Signature = t.Secret.sum(msg), trust.Sign(key, requestDomain, msg)
	return r
}

// verify checks that r comes from whoever holds secret s and the key, for that node.
func (r Request) verify(to workflow.PartnerID, s Secret) error {
	msg := r.under(to)
	if want := s.sum(msg); !hmac.Equal(want[:], r.MAC[:]) {
		return said.Errorf("%s does not hold the token's secret: %w", r.Node, trust.ErrForged)
	}
	return trust.Verify(r.Key, requestDomain, msg, r.Signature)
}

// EncodeRequest writes r for DecodeRequest.
func EncodeRequest(r Request) []byte { return codec.Encode(r) }

// DecodeRequest reads what a device asks; [Tickets.Redeem] judges it.
func DecodeRequest(b []byte) (Request, error) {
	var r Request
	err := codec.Decode("request to sign in", b, maxRequest, &r)
	return r, err
}
