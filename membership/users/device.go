package users

import (
	"crypto/ed25519"
	"fmt"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/membership/internal/codec"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Certificate makes Key a key of a user, at one partner's node. An administrator signs it,
// or another key of the same user, which links a further device.
type Certificate struct {
	Mesh trust.MeshID       `cbor:"1,keyasint"`
	User ID                 `cbor:"2,keyasint"`
	Key  workflow.PartnerID `cbor:"3,keyasint"` // named as a partner's key is
	Node workflow.PartnerID `cbor:"4,keyasint"` // the partner at whose node the key is
	// Linked is the key that brought this one in; none: an administrator did. A renewal
	// by an administrator goes on naming it.
	Linked    workflow.PartnerID `cbor:"5,keyasint,omitempty"`
	Serial    trust.Serial       `cbor:"6,keyasint"`
	NotBefore trust.Wall         `cbor:"7,keyasint"`
	NotAfter  trust.Wall         `cbor:"8,keyasint"`
	Issuer    workflow.PartnerID `cbor:"9,keyasint"`
	Chain     trust.Chain        `cbor:"10,keyasint,omitempty"` // of a delegate that issued it
	// Consent is the signature of Node's own key: nobody's node is named without it.
	Consent   []byte `cbor:"11,keyasint"`
	Signature []byte `cbor:"12,keyasint,omitempty"`
	// Number counts the certificates of a key by one issuer from 0; the last one counts.
	// No moment does, since clocks are wrong at times, and are set right.
	Number uint64 `cbor:"13,keyasint,omitempty"`
}

const (
	deviceDomain  = "user-device"
	consentDomain = "user-device-consent"
)

// body is what is signed.
func (c Certificate) body() []byte {
	c.Signature = nil
	return codec.Encode(c)
}

// consent is what the node of a key signs.
func consent(m trust.MeshID, user ID, key workflow.PartnerID) []byte {
	return append(append(append([]byte{}, m[:]...), user[:]...), key...)
}

// validate checks all of c that needs no issuer.
func (c Certificate) validate(m trust.Mesh, user ID) error {
	switch {
	case c.Mesh != m.ID():
		return wrongMesh("certificate of a user's key", c.Mesh, m)
	case c.User != user:
		return fmt.Errorf("certificate of a key of user %s beside the account of user %s: %w", c.User.Short(),
			user.Short(), trust.ErrNotAllowed)
	case c.Serial == trust.Serial{}:
		return fmt.Errorf("certificate of a user's key has no serial")
	case !c.NotBefore.Sayable() || !c.NotAfter.Sayable() || c.NotAfter <= c.NotBefore:
		return fmt.Errorf("certificate of a user's key is valid from second %d to %d: it must end after it begins, in the years 1970 to 9999",
			int64(c.NotBefore), int64(c.NotAfter))
	case c.Number > MaxNumber:
		return fmt.Errorf("certificate %d of a user's key: want 0 to %d", c.Number, MaxNumber)
	case c.Linked == c.Key:
		return fmt.Errorf("certificate of a user's key that linked itself")
	}
	if _, err := trust.PublicKey(c.Key); err != nil {
		return err
	}
	return trust.Verify(c.Node, consentDomain, consent(c.Mesh, c.User, c.Key), c.Consent)
}

// Device is a key of a user, with all that proves it: the account, and the key's
// certificate, followed by that of the key that issued it, and so on, up to one that an
// administrator issued.
type Device struct {
	Account Account       `cbor:"1,keyasint"`
	Chain   []Certificate `cbor:"2,keyasint"`
}

// Leaf is the certificate of the key itself; the zero value if there is none.
func (d Device) Leaf() Certificate {
	if len(d.Chain) == 0 {
		return Certificate{}
	}
	return d.Chain[0]
}

// Authentic checks what never changes: the signatures lead to an administrator of m, and
// nobody issued more than it may.
func (d Device) Authentic(m trust.Mesh) error {
	if n := len(d.Chain); n == 0 || n > MaxLinks {
		return fmt.Errorf("a user's key with %d certificates: want 1 to %d", n, MaxLinks)
	}
	if err := d.Account.verify(m); err != nil {
		return err
	}
	user := d.Account.ID()
	for i, c := range d.Chain {
		if err := c.validate(m, user); err != nil {
			return err
		}
		if err := d.issuedProperly(i, m); err != nil {
			return err
		}
		if err := trust.Verify(c.Issuer, deviceDomain, c.body(), c.Signature); err != nil {
			return err
		}
	}
	return nil
}

// issuedProperly checks that the i-th certificate names an issuer that may issue it.
func (d Device) issuedProperly(i int, m trust.Mesh) error {
	c := d.Chain[i]
	if i == len(d.Chain)-1 {
		if err := administers(m, deviceDomain, c.Issuer, c.Chain); err != nil {
			return err
		}
		if by := c.Chain.Leaf(); len(c.Chain) > 0 && (c.NotBefore < by.NotBefore || c.NotAfter > by.NotAfter) {
			return fmt.Errorf("certificate of a user's key from %s to %s: that of its issuer %s is from %s to %s: %w",
				c.NotBefore, c.NotAfter, by.Name, by.NotBefore, by.NotAfter, trust.ErrNotAllowed)
		}
		return nil
	}
	by := d.Chain[i+1]
	switch {
	case c.Issuer != by.Key || c.Linked != by.Key || len(c.Chain) > 0:
		return said.Errorf("certificate of a user's key by %s, but that of the key %s is attached: %w", c.Issuer,
			by.Key, trust.ErrNotAllowed)
	case c.NotBefore < by.NotBefore || c.NotAfter > by.NotAfter:
		return fmt.Errorf("certificate of a user's key from %s to %s: that of the key which linked it is from %s to %s: %w",
			c.NotBefore, c.NotAfter, by.NotBefore, by.NotAfter, trust.ErrNotAllowed)
	}
	return nil
}

// validAt checks the time of a key against a node's wall clock, with [trust.ClockSkew] to
// spare.
func (d Device) validAt(at time.Time) error {
	now, skew, c := trust.WallOf(at), trust.Wall(trust.ClockSkew/time.Second), d.Leaf()
	switch {
	case now-skew > c.NotAfter:
		return fmt.Errorf("the key of user %s %w at %s: sign in again with a new token", d.Account.Name,
			trust.ErrExpired, c.NotAfter)
	case now+skew < c.NotBefore:
		return fmt.Errorf("the key of user %s %w: it begins at %s: set the clock", d.Account.Name, trust.ErrNotYet,
			c.NotBefore)
	}
	return nil
}

// Consent is the agreement of a node, by its own key, that a user's key is there.
func Consent(node ed25519.PrivateKey, m trust.MeshID, user ID, key workflow.PartnerID) []byte {
	return trust.Sign(node, consentDomain, consent(m, user, key))
}

// Certify has an administrator certify what c says: Key, Node, Consent, Linked, Number, Serial,
// NotBefore and NotAfter; the rest is filled in. The time is cut to that of the issuer's own
// certificate.
func Certify(by trust.Issuer, a Account, c Certificate) (Device, error) {
	c.Mesh, c.User, c.Issuer, c.Chain = by.Mesh.ID(), a.ID(), by.ID(), nil
	if !by.IsFounder() {
		c.Chain = by.Chain
		c.NotBefore = max(c.NotBefore, by.Chain.Leaf().NotBefore)
		c.NotAfter = min(c.NotAfter, by.Chain.Leaf().NotAfter)
	}
	c.Signature = trust.Sign(by.Key, deviceDomain, c.body())
	d := Device{Account: a, Chain: []Certificate{c}}
	return d, d.Authentic(by.Mesh)
}

// Link has a user's key, which is that of by, certify what c says of another: Key, Node,
// Consent, Number, Serial, NotBefore and NotAfter. The time is cut to that of by.
func Link(m trust.Mesh, key ed25519.PrivateKey, by Device, c Certificate) (Device, error) {
	leaf := by.Leaf()
	c.Mesh, c.User, c.Issuer, c.Linked, c.Chain = m.ID(), leaf.User, leaf.Key, leaf.Key, nil
	c.NotBefore, c.NotAfter = max(c.NotBefore, leaf.NotBefore), min(c.NotAfter, leaf.NotAfter)
	c.Signature = trust.Sign(key, deviceDomain, c.body())
	d := Device{Account: by.Account, Chain: append([]Certificate{c}, by.Chain...)}
	return d, d.Authentic(m)
}
