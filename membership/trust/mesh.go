package trust

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// MeshID identifies a mesh for good: the hash of its founder's key and its name.
type MeshID [sha256.Size]byte

// String is the whole ID in hexadecimal.
func (id MeshID) String() string { return hex.EncodeToString(id[:]) }

// Short is the fingerprint that people compare.
func (id MeshID) Short() string { return hex.EncodeToString(id[:6]) }

// Mesh is what all trust starts from: the founder, who certifies members and
// delegates, and the name that people gave the mesh.
type Mesh struct {
	Name    string             `cbor:"1,keyasint"`
	Founder workflow.PartnerID `cbor:"2,keyasint"`
}

// ID is the mesh's identity. A node that knows it can check a founder that a
// stranger claims.
func (m Mesh) ID() MeshID {
	h := sha256.New()
	h.Write([]byte("mutirao/mesh/1\x00"))
	h.Write([]byte(m.Founder))
	h.Write([]byte{0})
	h.Write([]byte(m.Name))
	return MeshID(h.Sum(nil))
}

// Validate checks the name and the founder's key.
func (m Mesh) Validate() error {
	if !workflow.ValidName(m.Name) {
		return BadName("mesh", m.Name)
	}
	_, err := PublicKey(m.Founder)
	return err
}

// BadName says why name cannot name a mesh, partner or role.
func BadName(what, name string) error {
	return fmt.Errorf("%s name %q: want %s", what, clip(name), workflow.NameRule(name))
}

// clip shortens text from outside for an error message.
func clip(s string) string { return plain.CutBytes(s, 40) }
