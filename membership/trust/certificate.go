package trust

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/membership/internal/codec"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Why a certificate is refused, besides [ErrForged].
var (
	// ErrWrongMesh tells that something belongs to another mesh.
	ErrWrongMesh = errors.New("belongs to another mesh")
	// ErrExpired tells that a certificate or invitation ran out.
	ErrExpired = errors.New("expired")
	// ErrNotYet tells that a certificate is not valid yet.
	ErrNotYet = errors.New("not valid yet")
	// ErrRevoked tells that a partner or certificate was evicted.
	ErrRevoked = errors.New("evicted")
	// ErrNotAllowed tells that an author may not do what was attempted.
	ErrNotAllowed = errors.New("not allowed")
)

// Serial names one certificate. Its issuer draws it at random.
type Serial [16]byte

// String is s in hexadecimal.
func (s Serial) String() string { return hex.EncodeToString(s[:]) }

// Certificate makes Partner a member of a mesh, with a name and roles. The
// founder signs it, or a delegate: a member whose own certificate the founder
// signed with Delegate set. Only the founder makes delegates, so a chain is
// never longer than [MaxChain].
//
// Names are not unique by force, since two delegates that cannot see each
// other may give one name twice; the partner list handles it.
type Certificate struct {
	Mesh      MeshID              `cbor:"1,keyasint"`
	Partner   workflow.PartnerID  `cbor:"2,keyasint"`
	Name      string              `cbor:"3,keyasint"`
	Roles     []workflow.RoleName `cbor:"4,keyasint,omitempty"` // sorted, each once
	Delegate  bool                `cbor:"5,keyasint,omitempty"`
	Serial    Serial              `cbor:"6,keyasint"`
	NotBefore Wall                `cbor:"7,keyasint"`
	NotAfter  Wall                `cbor:"8,keyasint"`
	Issuer    workflow.PartnerID  `cbor:"9,keyasint"`
	Signature []byte              `cbor:"10,keyasint,omitempty"`
}

const certificateDomain = "certificate"

// body is what is signed.
func (c Certificate) body() []byte {
	c.Signature = nil
	return codec.Encode(c)
}

// HasRole reports whether the certificate gives the role.
func (c Certificate) HasRole(role workflow.RoleName) bool {
	_, found := slices.BinarySearch(c.Roles, role)
	return found
}

// Supersedes reports whether c replaces d, an earlier certificate of the same
// partner: the later NotBefore does, then the greater serial.
func (c Certificate) Supersedes(d Certificate) bool {
	return cmp.Or(cmp.Compare(c.NotBefore, d.NotBefore), bytes.Compare(c.Serial[:], d.Serial[:])) > 0
}

// Equal reports whether c and d are the same certificate, signature included.
func (c Certificate) Equal(d Certificate) bool {
	return c.Mesh == d.Mesh && c.Partner == d.Partner && c.Name == d.Name &&
		slices.Equal(c.Roles, d.Roles) && c.Delegate == d.Delegate && c.Serial == d.Serial &&
		c.NotBefore == d.NotBefore && c.NotAfter == d.NotAfter && c.Issuer == d.Issuer &&
		bytes.Equal(c.Signature, d.Signature)
}

// validate checks everything about c that needs no key and no clock.
func (c Certificate) validate() error {
	if !workflow.ValidName(c.Name) {
		return BadName("partner", c.Name)
	}
	if _, err := PublicKey(c.Partner); err != nil {
		return err
	}
	if len(c.Roles) > MaxRoles {
		return fmt.Errorf("certificate of %s with %d roles: at most %d", c.Name, len(c.Roles), MaxRoles)
	}
	for i, r := range c.Roles {
		if !workflow.ValidName(string(r)) {
			return BadName("role", string(r))
		}
		if i > 0 && c.Roles[i-1] >= r {
			return fmt.Errorf("certificate of %s: role %q is out of order or given twice", c.Name, r)
		}
	}
	if c.Serial == (Serial{}) {
		return fmt.Errorf("certificate of %s has no serial", c.Name)
	}
	if c.NotAfter > maxWall {
		return fmt.Errorf("certificate of %s ends after the year 9999", c.Name)
	}
	if c.NotBefore < 0 || c.NotAfter <= c.NotBefore {
		return fmt.Errorf("certificate of %s is valid from %s to %s: it must end after it begins", c.Name, c.NotBefore,
			c.NotAfter)
	}
	return nil
}

// validAt checks c against this node's wall clock, with [ClockSkew] to spare.
func (c Certificate) validAt(at time.Time) error {
	now, skew := WallOf(at), Wall(ClockSkew/time.Second)
	switch {
	case now-skew > c.NotAfter:
		return fmt.Errorf("certificate of %s %w at %s, and this node's clock says %s (up to %s off is allowed): renew it, or set the clock",
			c.Name, ErrExpired, c.NotAfter, now, ClockSkew)
	case now+skew < c.NotBefore:
		return fmt.Errorf("certificate of %s %w: it begins at %s, and this node's clock says %s (up to %s off is allowed): set the clock",
			c.Name, ErrNotYet, c.NotBefore, now, ClockSkew)
	}
	return nil
}

// Chain is a member's certificate and, when a delegate issued it, the
// delegate's, which the founder issued.
type Chain []Certificate

// Leaf is the member's own certificate; the zero value if there is none.
func (ch Chain) Leaf() Certificate {
	if len(ch) == 0 {
		return Certificate{}
	}
	return ch[0]
}

// Equal reports whether ch and other are the same certificates.
func (ch Chain) Equal(other Chain) bool { return slices.EqualFunc(ch, other, Certificate.Equal) }

// Verify reports whether ch makes its leaf's partner a member of mesh m at the
// wall-clock time at, given the evictions known to r. Errors wrap
// [ErrWrongMesh], [ErrForged], [ErrNotAllowed], [ErrExpired], [ErrNotYet] or
// [ErrRevoked] where these apply.
func (ch Chain) Verify(m Mesh, at time.Time, r Evictions) error {
	if err := ch.Authentic(m); err != nil {
		return err
	}
	return ch.Current(at, r)
}

// Current is the part of [Chain.Verify] that changes with time and evictions. It
// suffices for a chain that was found authentic before: signatures do not change.
func (ch Chain) Current(at time.Time, r Evictions) error {
	for _, c := range ch {
		if err := c.validAt(at); err != nil {
			return err
		}
	}
	return Evicted(r, ch)
}

// Authentic is the part of [Chain.Verify] that never changes: the signatures
// lead to the founder of m, and nobody issued more than it may.
func (ch Chain) Authentic(m Mesh) error {
	if len(ch) == 0 || len(ch) > MaxChain {
		return fmt.Errorf("chain of %d certificates: want 1 to %d", len(ch), MaxChain)
	}
	mesh := m.ID()
	for i, c := range ch {
		if err := c.validate(); err != nil {
			return err
		}
		if c.Mesh != mesh {
			return fmt.Errorf("certificate of %s %w: %s, this one is %s (%s)", c.Name, ErrWrongMesh, c.Mesh.Short(),
				m.Name, mesh.Short())
		}
		if err := ch.issuedProperly(i, m.Founder); err != nil {
			return err
		}
		if err := Verify(c.Issuer, certificateDomain, c.body(), c.Signature); err != nil {
			return fmt.Errorf("certificate of %s: %w", c.Name, err)
		}
	}
	return nil
}

// issuedProperly checks that the i-th certificate names an issuer that may issue it.
func (ch Chain) issuedProperly(i int, founder workflow.PartnerID) error {
	c := ch[i]
	if i == len(ch)-1 {
		if c.Issuer != founder {
			return said.Errorf("certificate of %s was issued by %s, not by the founder %s, and no delegate's certificate is attached: %w",
				c.Name, c.Issuer, founder, ErrNotAllowed)
		}
		return nil
	}
	issuer := ch[i+1]
	switch {
	case c.Issuer != issuer.Partner:
		return said.Errorf("certificate of %s was issued by %s, but that of %s is attached: %w", c.Name, c.Issuer,
			issuer.Partner, ErrNotAllowed)
	case !issuer.Delegate:
		return fmt.Errorf("certificate of %s was issued by %s, who is not a delegate: %w", c.Name, issuer.Name,
			ErrNotAllowed)
	case c.Delegate:
		return fmt.Errorf("certificate of %s as a delegate was issued by %s: only the founder makes delegates: %w",
			c.Name, issuer.Name, ErrNotAllowed)
	case c.NotAfter > issuer.NotAfter:
		return fmt.Errorf("certificate of %s ends at %s, after that of its issuer %s at %s: %w", c.Name, c.NotAfter,
			issuer.Name, issuer.NotAfter, ErrNotAllowed)
	}
	return nil
}

// Issuer is one who may certify members and evict them: the founder, whose
// Chain is empty, or a delegate with its own chain.
type Issuer struct {
	Mesh  Mesh
	Key   ed25519.PrivateKey
	Chain Chain
}

// ID is the partner ID of the issuer's key.
func (i Issuer) ID() workflow.PartnerID { return IDOf(i.Key.Public().(ed25519.PublicKey)) }

// IsFounder reports whether the issuer holds the founder's key.
func (i Issuer) IsFounder() bool { return i.ID() == i.Mesh.Founder }

// Issue certifies what c says: Partner, Name, Roles (in any order), Delegate,
// Serial, NotBefore and NotAfter; the rest is filled in. NotAfter is cut to
// the end of the issuer's own certificate. A renewal is a certificate for the
// same partner with a later NotBefore.
func (i Issuer) Issue(c Certificate) (Chain, error) {
	c.Mesh, c.Issuer = i.Mesh.ID(), i.ID()
	c.Roles = slices.Compact(slices.Sorted(slices.Values(c.Roles)))
	var above Chain
	if !i.IsFounder() {
		above = i.Chain
		c.NotAfter = min(c.NotAfter, i.Chain.Leaf().NotAfter)
	}
	c.Signature = Sign(i.Key, certificateDomain, c.body())
	chain := append(Chain{c}, above...)
	if err := chain.Authentic(i.Mesh); err != nil {
		return nil, err
	}
	return chain, nil
}

// Renew certifies the leaf of ch again, with the same name and rights, for
// lifetime from at, this node's wall clock. serial is random. A delegate
// cannot renew another's right to invite; the founder can.
func (i Issuer) Renew(ch Chain, at time.Time, lifetime time.Duration, serial Serial, r Evictions) (Chain, error) {
	if err := ch.Authentic(i.Mesh); err != nil {
		return nil, err
	}
	if err := Evicted(r, ch); err != nil {
		return nil, err
	}
	c := ch.Leaf()
	c.Serial = serial
	c.NotBefore = max(WallOf(at), c.NotBefore+1)
	c.NotAfter = c.NotBefore + Wall(lifetime/time.Second)
	return i.Issue(c)
}

// EncodeChain writes ch for DecodeChain.
func EncodeChain(ch Chain) []byte { return codec.Encode(ch) }

// DecodeChain reads a chain. It says nothing about its truth: see [Chain.Verify].
func DecodeChain(b []byte) (Chain, error) {
	var ch Chain
	if err := codec.Decode("certificate chain", b, MaxChain*MaxCertificate, &ch); err != nil {
		return nil, err
	}
	return ch, nil
}
