package trust

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"

	"github.com/mr-tron/base58"

	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// ErrForged tells that a signature does not match what it is said to sign.
var ErrForged = errors.New("signature does not match")

// An Ed25519 peer ID is the identity multihash (code 0, length 36) of the
// key's protobuf: field 1 (key type) = 1, field 2 (data) = 32 bytes.
var peerIDPrefix = []byte{0x00, 0x24, 0x08, 0x01, 0x12, 0x20}

// maxPartnerID bounds the text that is decoded: 38 bytes are at most 52
// base58 digits.
const maxPartnerID = 52

// IDOf names the partner that holds the private half of key: the libp2p peer
// ID in its base58btc text form. A key of another length is our own bug.
func IDOf(key ed25519.PublicKey) workflow.PartnerID {
	if len(key) != ed25519.PublicKeySize {
		panic(fmt.Sprintf("membership: public key of %d bytes, want %d", len(key), ed25519.PublicKeySize))
	}
	return workflow.PartnerID(base58.Encode(append(bytes.Clone(peerIDPrefix), key...)))
}

// PublicKey returns the key that id names. Only the one text that [IDOf]
// writes is accepted, so that two texts never name one partner.
func PublicKey(id workflow.PartnerID) (ed25519.PublicKey, error) {
	if len(id) == 0 || len(id) > maxPartnerID {
		return nil, fmt.Errorf("partner ID of %d characters: want 1 to %d, the base58 text of an Ed25519 peer ID",
			len(id), maxPartnerID)
	}
	raw, err := base58.Decode(string(id))
	if err != nil {
		return nil, fmt.Errorf("partner ID %q is not base58: %w", id, err)
	}
	key, found := bytes.CutPrefix(raw, peerIDPrefix)
	if !found || len(key) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("partner ID %q does not name an Ed25519 key: use the identity that this program made",
			id)
	}
	if IDOf(key) != id {
		return nil, fmt.Errorf("partner ID %q is not in its canonical form %q", id, IDOf(key))
	}
	return key, nil
}

// Sign signs msg for one use only: a signature made for one domain never
// verifies in another, so that nobody can pass off, say, a vote as an
// eviction. A domain is a short constant without NUL, such as "certificate".
func Sign(key ed25519.PrivateKey, domain string, msg []byte) []byte {
	return ed25519.Sign(key, InDomain(domain, msg))
}

// Verify checks that partner id signed msg in domain. The error wraps
// [ErrForged] when it did not.
func Verify(id workflow.PartnerID, domain string, msg, sig []byte) error {
	key, err := PublicKey(id)
	if err != nil {
		return err
	}
	if len(sig) != ed25519.SignatureSize || !ed25519.Verify(key, InDomain(domain, msg), sig) {
		return said.Errorf("%s said to be signed by %s: %w", domain, id, ErrForged)
	}
	return nil
}

// InDomain puts the domain and the version of its meaning before msg.
func InDomain(domain string, msg []byte) []byte {
	b := make([]byte, 0, len("mutirao/")+len(domain)+len("/1\x00")+len(msg))
	b = append(b, "mutirao/"...)
	b = append(b, domain...)
	b = append(b, "/1\x00"...)
	return append(b, msg...)
}
