package mesh

import (
	"crypto/ed25519"
	"fmt"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// IDOf returns the partner ID that belongs to a public key.
func IDOf(key ed25519.PublicKey) (workflow.PartnerID, error) {
	pub, err := crypto.UnmarshalEd25519PublicKey(key)
	if err != nil {
		return "", fmt.Errorf("mesh: not an Ed25519 public key (%d bytes, want %d): %w", len(key), ed25519.PublicKeySize, err)
	}
	id, err := peer.IDFromPublicKey(pub)
	if err != nil {
		return "", fmt.Errorf("mesh: no ID for this key: %w", err)
	}
	return partnerID(id), nil
}

// KeyOf returns the public key that a partner ID contains.
func KeyOf(p workflow.PartnerID) (ed25519.PublicKey, error) {
	id, err := peerID(p)
	if err != nil {
		return nil, err
	}
	pub, err := id.ExtractPublicKey()
	if err != nil {
		return nil, fmt.Errorf("mesh: partner ID %q holds no key: want the ID of an Ed25519 key: %w", p, err)
	}
	raw, err := pub.Raw()
	if err != nil || pub.Type() != crypto.Ed25519 {
		return nil, fmt.Errorf("mesh: partner ID %q is of a %s key: want Ed25519", p, pub.Type())
	}
	return raw, nil
}

func partnerID(id peer.ID) workflow.PartnerID { return workflow.PartnerID(id.String()) }

func peerID(p workflow.PartnerID) (peer.ID, error) {
	id, err := peer.Decode(string(p))
	if err != nil {
		return "", fmt.Errorf("mesh: %q is not a partner ID: %w", p, err)
	}
	return id, nil
}

// privateKey is the key in libp2p's form.
func privateKey(key ed25519.PrivateKey) (crypto.PrivKey, error) {
	return crypto.UnmarshalEd25519PrivateKey(key)
}
