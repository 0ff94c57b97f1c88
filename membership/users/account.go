package users

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/membership/internal/codec"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// ID names a user for good: a hash of the account, so that nobody can take another's.
type ID [16]byte

// String is the whole ID in hexadecimal.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// Short is the beginning of the ID, by which people tell users of one name apart.
func (id ID) Short() string { return id.String()[:8] }

// ParseID reads what [ID.String] wrote.
func ParseID(text string) (id ID, err error) {
	if len(text) != 2*len(id) {
		return id, noID(text)
	}
	b, err := hex.DecodeString(text)
	if err != nil || hex.EncodeToString(b) != text {
		return id, noID(text)
	}
	return ID(b), nil
}

// noID is a text that is no ID of a user. It is put into words only when they are read: most who try whether a text is an
// ID never read them.
type noID string

func (e noID) Error() string {
	return fmt.Sprintf("%q is no ID of a user: want %d hexadecimal digits", plain.CutBytes(string(e), 40), 2*len(ID{}))
}

// Word is what an administrator, the founder or a delegate, signs a record with.
type Word struct {
	Serial    trust.Serial       `cbor:"1,keyasint"` // drawn at random
	At        trust.Wall         `cbor:"2,keyasint"`
	Issuer    workflow.PartnerID `cbor:"3,keyasint"`
	Chain     trust.Chain        `cbor:"4,keyasint,omitempty"` // the issuer's; none for the founder
	Signature []byte             `cbor:"5,keyasint,omitempty"`
}

// wordOf is the word of an administrator, to be signed. The moment is moved into the time
// for which its certificate is valid: the clock may be a little off.
func wordOf(by trust.Issuer, s trust.Serial, at trust.Wall) Word {
	w := Word{Serial: s, At: at, Issuer: by.ID()}
	if !by.IsFounder() {
		w.Chain = by.Chain
		w.At = min(max(at, by.Chain.Leaf().NotBefore), by.Chain.Leaf().NotAfter)
	}
	return w
}

// verify checks that w is by the founder of m, or by one who was a delegate at the moment
// that it states, and signs body. A word stays good when its issuer's certificate runs out.
func (w Word) verify(m trust.Mesh, domain string, body []byte) error {
	if w.Serial == (trust.Serial{}) {
		return fmt.Errorf("%s has no serial", domain)
	}
	if !w.At.Sayable() {
		return fmt.Errorf("%s at second %d: want the years 1970 to 9999", domain, int64(w.At))
	}
	if err := administers(m, domain, w.Issuer, w.Chain); err != nil {
		return err
	}
	if by := w.Chain.Leaf(); len(w.Chain) > 0 && (w.At < by.NotBefore || w.At > by.NotAfter) {
		return fmt.Errorf("%s by %s at %s: its certificate is valid from %s to %s: %w",
			domain, by.Name, w.At, by.NotBefore, by.NotAfter, trust.ErrNotAllowed)
	}
	return trust.Verify(w.Issuer, domain, body, w.Signature)
}

// administers checks that an issuer shows that it is the founder of m or a delegate.
func administers(m trust.Mesh, domain string, issuer workflow.PartnerID, chain trust.Chain) error {
	if issuer == m.Founder {
		if len(chain) != 0 {
			return fmt.Errorf("%s by the founder with a certificate attached: want none", domain)
		}
		return nil
	}
	if err := chain.Authentic(m); err != nil {
		return said.Errorf("%s by %s: %w", domain, issuer, err)
	}
	if by := chain.Leaf(); by.Partner != issuer || !by.Delegate {
		return said.Errorf("%s by %s: only the founder and delegates may: %w", domain, issuer, trust.ErrNotAllowed)
	}
	return nil
}

// Account makes a user of a mesh, with a name and the roles that it begins with.
//
// Names are not unique by force, since two delegates that cannot see each other may give
// one name twice; people tell such users apart by their IDs.
type Account struct {
	Mesh  trust.MeshID        `cbor:"1,keyasint"`
	Name  string              `cbor:"2,keyasint"`
	Roles []workflow.RoleName `cbor:"3,keyasint,omitempty"` // sorted, each once
	By    Word                `cbor:"4,keyasint"`
}

const accountDomain = "user-account"

// NewAccount makes a user. serial is random.
func NewAccount(
	by trust.Issuer, name string, roles []workflow.RoleName, serial trust.Serial, at trust.Wall,
) (Account, error) {
	a := Account{
		Mesh: by.Mesh.ID(), Name: name, Roles: slices.Compact(slices.Sorted(slices.Values(roles))),
		By: wordOf(by, serial, at),
	}
	a.By.Signature = trust.Sign(by.Key, accountDomain, a.body())
	return a, a.verify(by.Mesh)
}

// body is what is signed.
func (a Account) body() []byte {
	a.By.Signature = nil
	return codec.Encode(a)
}

// ID is the user's.
func (a Account) ID() ID {
	sum := sha256.Sum256(trust.InDomain(accountDomain, a.body()))
	return ID(sum[:len(ID{})])
}

func (a Account) verify(m trust.Mesh) error {
	if a.Mesh != m.ID() {
		return wrongMesh("account", a.Mesh, m)
	}
	if !workflow.ValidName(a.Name) {
		return trust.BadName("user", a.Name)
	}
	if len(a.Roles) > trust.MaxRoles {
		return fmt.Errorf("user %s with %d roles: at most %d", a.Name, len(a.Roles), trust.MaxRoles)
	}
	for i, r := range a.Roles {
		if !workflow.ValidName(string(r)) {
			return trust.BadName("role", string(r))
		}
		if i > 0 && a.Roles[i-1] >= r {
			return fmt.Errorf("user %s: role %q is out of order or given twice", a.Name, r)
		}
	}
	return a.By.verify(m, accountDomain, a.body())
}

func wrongMesh(what string, got trust.MeshID, m trust.Mesh) error {
	return fmt.Errorf("%s %w: %s, this one is %s", what, trust.ErrWrongMesh, got.Short(), m.Name)
}
