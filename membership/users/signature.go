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

// JudgeRemoved is [Set.Judge] of the word of a user who was removed, by a key that was not removed itself: what such a
// user did before hearing of it.
func (s *Set) JudgeRemoved(g Signature, fact [sha256.Size]byte, author workflow.PartnerID, at time.Time) error {
	if err := g.Verify(fact); err != nil {
		return err
	}
	if _, err := s.Account(g.User); !errors.Is(err, ErrRemoved) {
		return fmt.Errorf("user %s was not removed: %w", s.named(g.User), trust.ErrNotAllowed)
	}
	d, err := s.current(g.User, g.Key, at)
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
