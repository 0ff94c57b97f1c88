package users

import (
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/membership/internal/codec"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Spoken is a person's word for a fact with all that proves who the person is, and which roles
// it has: anybody can check it with nothing but the mesh, at any time. Every partner is a person
// too, by its own key and certificate; then the user that the signature names is the zero ID.
type Spoken struct {
	Signature Signature    `cbor:"1,keyasint"`
	Partner   trust.Chain  `cbor:"2,keyasint,omitempty"` // of a partner
	Device    *Device      `cbor:"3,keyasint,omitempty"` // of a user
	Roles     []RoleChange `cbor:"4,keyasint,omitempty"` // the last of each role of the user, by role
}

// Person is who said something.
type Person struct {
	// ID is the whole ID of a user or, of a partner, the partner's.
	ID    string
	Name  string
	Roles []workflow.RoleName // sorted
	// At is the partner at whose node the person's key is: a partner's own is its own.
	At workflow.PartnerID
}

// MaxSpoken bounds an encoded word of a person, in bytes.
const MaxSpoken = 24 << 10

// EncodeSpoken writes s for DecodeSpoken.
func EncodeSpoken(s Spoken) []byte { return codec.Encode(s) }

// DecodeSpoken reads a person's word; its signature and [Spoken.Shown] judge it.
func DecodeSpoken(b []byte) (s Spoken, err error) {
	if err := codec.Decode("word of a person", b, MaxSpoken, &s); err != nil {
		return Spoken{}, err
	}
	if n := len(s.Signature.Signature); n != ed25519.SignatureSize {
		return Spoken{}, fmt.Errorf("signature of a person of %d bytes: want %d", n, ed25519.SignatureSize)
	}
	return s, nil
}

// Speak has a user say something, by a key of its own that is good at that moment.
func (s *Set) Speak(key ed25519.PrivateKey, user ID, fact [sha256.Size]byte, at time.Time) (Spoken, error) {
	d, err := s.Key(user, trust.IDOf(key.Public().(ed25519.PublicKey)), at)
	if err != nil {
		return Spoken{}, err
	}
	return Spoken{Signature: Sign(key, user, fact), Device: &d, Roles: s.lastChanges(user)}, nil
}

// SpeakAsPartner has a partner say something as the user of its own name.
func SpeakAsPartner(key ed25519.PrivateKey, chain trust.Chain, fact [sha256.Size]byte) Spoken {
	return Spoken{Signature: Sign(key, ID{}, fact), Partner: chain}
}

// lastChanges are the last of the changes in force of each role of a user, by role.
func (s *Set) lastChanges(user ID) (out []RoleChange) {
	for _, e := range s.of[user] {
		c := e.Role
		if c == nil || s.void(c.By.Chain, c.By.Serial) != nil {
			continue
		}
		at, found := slices.BinarySearchFunc(out, c.Role, func(x RoleChange, r workflow.RoleName) int {
			switch {
			case x.Role < r:
				return -1
			case x.Role > r:
				return 1
			}
			return 0
		})
		switch {
		case !found:
			out = slices.Insert(out, at, *c)
		case c.Number > out[at].Number || c.Number == out[at].Number && !c.Given:
			out[at] = *c
		}
	}
	return out
}

// Shown is whose key that of s is, as its certificates prove, and so who spoke if the signature is good
// ([Signature.Verify]). It is the same for all words that somebody says by them, and never changes. Whether that one may
// still speak is for [Set.Judge], of a partner for its certificate.
func (s Spoken) Shown(m trust.Mesh) (Person, error) {
	g := s.Signature
	if g.User == (ID{}) {
		return s.partner(m)
	}
	if s.Device == nil || len(s.Partner) > 0 {
		return Person{}, fmt.Errorf("the word of user %s shows no certificate of its key: %w", g.User.Short(),
			trust.ErrNotAllowed)
	}
	if err := s.Device.Authentic(m); err != nil {
		return Person{}, err
	}
	if leaf := s.Device.Leaf(); leaf.Key != g.Key || leaf.User != g.User {
		return Person{}, fmt.Errorf("the word of user %s shows the certificate of another key: %w", g.User.Short(),
			trust.ErrNotAllowed)
	}
	roles, err := s.roles(m)
	return Person{ID: g.User.String(), Name: s.Device.Account.Name, Roles: roles, At: s.Device.Leaf().Node}, err
}

func (s Spoken) partner(m trust.Mesh) (Person, error) {
	if s.Device != nil || len(s.Roles) > 0 {
		return Person{}, fmt.Errorf("a partner's word that shows what is a user's: %w", trust.ErrNotAllowed)
	}
	if err := s.Partner.Authentic(m); err != nil {
		return Person{}, err
	}
	leaf := s.Partner.Leaf()
	if leaf.Partner != s.Signature.Key {
		return Person{}, said.Errorf("the word of %s shows the certificate of another: %w", s.Signature.Key,
			trust.ErrNotAllowed)
	}
	return Person{ID: string(leaf.Partner), Name: leaf.Name, Roles: slices.Clone(leaf.Roles), At: leaf.Partner}, nil
}

// roles are those of the account, as the changes that are shown leave them.
func (s Spoken) roles(m trust.Mesh) ([]workflow.RoleName, error) {
	out := slices.Clone(s.Device.Account.Roles)
	for i, c := range s.Roles {
		if err := c.verify(m); err != nil {
			return nil, err
		}
		if c.User != s.Signature.User || i > 0 && s.Roles[i-1].Role >= c.Role {
			return nil, fmt.Errorf("changes of roles that are another's, or out of order: %w", trust.ErrNotAllowed)
		}
		at, has := slices.BinarySearch(out, c.Role)
		switch {
		case c.Given && !has:
			out = slices.Insert(out, at, c.Role)
		case !c.Given && has:
			out = slices.Delete(out, at, at+1)
		}
	}
	return out, nil
}
