package mesh

import (
	"crypto/ed25519"
	"fmt"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/mutirao-mesh/mutirao/workflow"
)

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
