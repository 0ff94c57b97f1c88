package users

import (
	"crypto/ed25519"
	"fmt"
	"slices"

	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/membership/internal/codec"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Removal ends a user for good, or one of its keys. Administrators remove users and keys. A
// key removes itself: that is how a user signs out.
//
// With a key all keys go that it brought in, and those that they did, but for the ones
// that every removal of the key keeps. So whoever signs out leaves the user's other
// devices as they are, and an administrator that removes a stolen device removes what the
// thief has linked to it.
type Removal struct {
	Mesh trust.MeshID         `cbor:"1,keyasint"`
	User ID                   `cbor:"2,keyasint"`
	Key  workflow.PartnerID   `cbor:"3,keyasint,omitempty"` // none: the user
	Keep []workflow.PartnerID `cbor:"4,keyasint,omitempty"` // sorted, each once
	By   Word                 `cbor:"5,keyasint"`
	// Device proves that a key which removes itself is one of the user's.
	Device *Device `cbor:"6,keyasint,omitempty"`
}

const removalDomain = "user-removal"

// body is what is signed.
func (r Removal) body() []byte {
	r.By.Signature = nil
	return codec.Encode(r)
}

func (r Removal) verify(m trust.Mesh) error {
	if r.Mesh != m.ID() {
		return wrongMesh("removal of a user", r.Mesh, m)
	}
	if r.Device != nil {
		return r.verifyOwn(m)
	}
	if len(r.Keep) > 0 {
		return fmt.Errorf("removal by an administrator that keeps keys: %w", trust.ErrNotAllowed)
	}
	if r.Key != "" {
		if _, err := trust.PublicKey(r.Key); err != nil {
			return err
		}
	}
	return r.By.verify(m, removalDomain, r.body())
}

// verifyOwn checks the removal of a key by itself.
func (r Removal) verifyOwn(m trust.Mesh) error {
	if err := r.Device.Authentic(m); err != nil {
		return err
	}
	leaf := r.Device.Leaf()
	switch {
	case leaf.User != r.User || leaf.Key != r.Key || r.By.Issuer != r.Key || len(r.By.Chain) > 0:
		return said.Errorf("removal of a key by %s: a key removes only itself: %w", r.By.Issuer, trust.ErrNotAllowed)
	case r.By.Serial == trust.Serial{}:
		return fmt.Errorf("removal of a key has no serial")
	case !r.By.At.Sayable():
		return fmt.Errorf("removal of a key at second %d: want the years 1970 to 9999", int64(r.By.At))
	case len(r.Keep) > MaxOfUser:
		return fmt.Errorf("removal of a key that keeps %d others: at most %d", len(r.Keep), MaxOfUser)
	}
	for i, k := range r.Keep {
		if i > 0 && r.Keep[i-1] >= k {
			return fmt.Errorf("removal of a key: what is kept is out of order or named twice")
		}
		if _, err := trust.PublicKey(k); err != nil {
			return err
		}
	}
	return trust.Verify(r.Key, removalDomain, r.body(), r.By.Signature)
}

// Remove has an administrator remove a user, or only one of its keys. serial is random.
func Remove(by trust.Issuer, user ID, key workflow.PartnerID, serial trust.Serial, at trust.Wall) (Record, error) {
	r := Removal{Mesh: by.Mesh.ID(), User: user, Key: key, By: wordOf(by, serial, at)}
	r.By.Signature = trust.Sign(by.Key, removalDomain, r.body())
	return Record{Removal: &r}, r.verify(by.Mesh)
}

// SignOut has a key of a user remove itself; the keys that it brought in, as far as s knows
// them, are kept. serial is random.
func (s *Set) SignOut(key ed25519.PrivateKey, d Device, serial trust.Serial, at trust.Wall) (Record, error) {
	leaf := d.Leaf()
	r := Removal{
		Mesh: s.mesh.ID(), User: leaf.User, Key: leaf.Key, Keep: s.linkedBy(leaf.User, leaf.Key),
		By: Word{Serial: serial, At: at, Issuer: leaf.Key}, Device: &d,
	}
	r.Keep = r.Keep[:min(len(r.Keep), MaxOfUser)]
	r.By.Signature = trust.Sign(key, removalDomain, r.body())
	return Record{Removal: &r}, r.verify(s.mesh)
}

// keeps reports whether a removal of a key leaves another in place that it brought in.
func (r Removal) keeps(key workflow.PartnerID) bool {
	_, kept := slices.BinarySearch(r.Keep, key)
	return kept
}
