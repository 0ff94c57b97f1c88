package users

import (
	"fmt"

	"github.com/mutirao-mesh/mutirao/membership/internal/codec"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// RoleChange gives a user a role, or takes it away. Of all changes of one role of one user
// the one with the highest number counts; of two with one number, made where neither
// issuer could know of the other, the one that takes the role away.
type RoleChange struct {
	Mesh   trust.MeshID      `cbor:"1,keyasint"`
	User   ID                `cbor:"2,keyasint"`
	Role   workflow.RoleName `cbor:"3,keyasint"`
	Number uint64            `cbor:"4,keyasint"`
	Given  bool              `cbor:"5,keyasint,omitempty"`
	By     Word              `cbor:"6,keyasint"`
}

const roleDomain = "user-role"

// body is what is signed.
func (c RoleChange) body() []byte {
	c.By.Signature = nil
	return codec.Encode(c)
}

func (c RoleChange) verify(m trust.Mesh) error {
	switch {
	case c.Mesh != m.ID():
		return wrongMesh("change of a role", c.Mesh, m)
	case !workflow.ValidName(string(c.Role)):
		return trust.BadName("role", string(c.Role))
	case c.Number == 0 || c.Number > MaxNumber && len(c.By.Chain) > 0:
		// The founder goes beyond: so no delegate has the last word.
		return fmt.Errorf("change %d of role %s: want 1 to %d", c.Number, c.Role, MaxNumber)
	}
	return c.By.verify(m, roleDomain, c.body())
}

// ChangeRole gives a user a role, or takes it away, whatever s knows to have been said of
// it before. serial is random.
func (s *Set) ChangeRole(
	by trust.Issuer, user ID, role workflow.RoleName, given bool, serial trust.Serial, at trust.Wall,
) (Record, error) {
	c := RoleChange{
		Mesh: by.Mesh.ID(), User: user, Role: role, Number: s.lastNumber(user, role) + 1, Given: given,
		By: wordOf(by, serial, at),
	}
	c.By.Signature = trust.Sign(by.Key, roleDomain, c.body())
	return Record{Role: &c}, c.verify(by.Mesh)
}
