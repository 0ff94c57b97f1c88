package users

import (
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/membership/internal/codec"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Signature is a user's word for a fact, by one of its keys. The partner that writes the
// fact signs it besides.
type Signature struct {
	User      ID                 `cbor:"1,keyasint"`
	Key       workflow.PartnerID `cbor:"2,keyasint"`
	Signature []byte             `cbor:"3,keyasint"`
}

const (
	factDomain = "user-fact"
	// maxSignature is the greatest encoded signature, in bytes.
	maxSignature = 256
)

// Sign is a user's word for the fact with that hash.
func Sign(key ed25519.PrivateKey, user ID, fact [sha256.Size]byte) Signature {
	return Signature{
		User: user, Key: trust.IDOf(key.Public().(ed25519.PublicKey)),
		Signature: trust.Sign(key, factDomain, append(user[:], fact[:]...)),
	}
}

// Verify checks that the key signed for the fact, in the name of the user. Whether the key
// is one of the user's is for [Set.Judge].
func (g Signature) Verify(fact [sha256.Size]byte) error {
	return trust.Verify(g.Key, factDomain, append(g.User[:], fact[:]...), g.Signature)
}

// Judge checks a user's word for a fact that the partner author wrote, and returns the user.
// The key must be good at that moment of this node's wall clock, and be at that partner's
// node: nobody writes down the word of a user who is elsewhere.
func (s *Set) Judge(g Signature, fact [sha256.Size]byte, author workflow.PartnerID, at time.Time) (User, error) {
	if err := g.Verify(fact); err != nil {
		return User{}, err
	}
	d, err := s.Key(g.User, g.Key, at)
	if err != nil {
		return User{}, err
	}
	if node := d.Leaf().Node; node != author {
		return User{}, said.Errorf("%s shows the word of user %s, whose key is at the node of %s: %w",
			author, d.Account.Name, node, trust.ErrNotAllowed)
	}
	return s.User(g.User, at)
}

// JudgeLate is [Set.Judge] of the word of a user who was removed, or of whom no key is good any more, by a key that was
// not removed itself, though its certificate may have ended: what such a user did before that.
func (s *Set) JudgeLate(g Signature, fact [sha256.Size]byte, author workflow.PartnerID, at time.Time) error {
	if err := g.Verify(fact); err != nil {
		return err
	}
	switch u, err := s.User(g.User, at); {
	case err != nil && !errors.Is(err, ErrRemoved):
		return err
	case err == nil && len(u.Devices) > 0:
		return fmt.Errorf("user %s was not removed, and has a key that is good: %w", u.Name, trust.ErrNotAllowed)
	}
	d, err := s.certified(g.User, g.Key, func(d Device) error {
		if err := d.validAt(at); !errors.Is(err, trust.ErrExpired) {
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	if node := d.Leaf().Node; node != author {
		return said.Errorf("%s shows the word of user %s, whose key is at the node of %s: %w",
			author, d.Account.Name, node, trust.ErrNotAllowed)
	}
	return nil
}

// EncodeSignature writes g for DecodeSignature.
func EncodeSignature(g Signature) []byte { return codec.Encode(g) }

// DecodeSignature reads a user's word; [Set.Judge] judges it.
func DecodeSignature(b []byte) (Signature, error) {
	var g Signature
	if err := codec.Decode("signature of a user", b, maxSignature, &g); err != nil {
		return Signature{}, err
	}
	if len(g.Signature) != ed25519.SignatureSize {
		return Signature{}, fmt.Errorf("signature of a user of %d bytes: want %d", len(g.Signature),
			ed25519.SignatureSize)
	}
	return g, nil
}
