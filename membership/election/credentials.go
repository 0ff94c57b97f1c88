package election

import (
	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/membership/internal/codec"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Credentials prove to anybody who knows the mesh that a partner was elected to
// an office: its mandate, and the lineage that proves the electorate. They do
// not prove that it still holds the office. What is written in an office carries
// them (docs/design.md, idea 7).
type Credentials struct {
	Mandate Mandate `cbor:"1,keyasint"`
	Lineage Lineage `cbor:"2,keyasint"`
}

// MaxCredentials is the greatest encoded size, in bytes, that is accepted. That
// of a team is a few thousand; one whose electorate was handed over very often
// needs a list that its founder signs before its coordinator can show any.
const MaxCredentials = 64 << 10

// Encode is c in deterministic CBOR; ok is false if nobody would accept it.
func (c Credentials) Encode() (b []byte, ok bool) {
	b = codec.Encode(c)
	return b, len(b) <= MaxCredentials
}

// VerifyCredentials reads credentials and checks that they prove, in the mesh,
// that holder was elected. It returns the office.
func VerifyCredentials(m trust.Mesh, holder workflow.PartnerID, b []byte) (Office, error) {
	var c Credentials
	if err := codec.Decode("credentials of a coordinator", b, MaxCredentials, &c); err != nil {
		return Office{}, err
	}
	if c.Mandate.Holder != holder {
		return Office{}, said.Errorf("%s shows the mandate of %s: %w", holder, c.Mandate.Holder, trust.ErrForged)
	}
	if err := c.Lineage.Verify(m); err != nil {
		return Office{}, err
	}
	for _, l := range c.Lineage {
		if c.Mandate.Office.of(l) {
			return c.Mandate.Office, c.Mandate.Verify(l)
		}
	}
	return Office{}, said.Errorf("%s claims %s of an electorate that its lineage does not have: %w", holder,
		c.Mandate.Office, trust.ErrForged)
}
