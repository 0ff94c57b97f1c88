package closings

import (
	"fmt"

	"github.com/fxamacker/cbor/v2"

	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/codec"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

const (
	domain = "closing"
	// maxWith bounds how many partners a summary names.
	maxWith = 32
)

// Digest is of the facts of an instance, or of several.
type Digest = [wire.EndedDigest]byte

// Xored is the digest of what two digests are of.
func Xored(a, b Digest) Digest {
	for i := range a {
		a[i] ^= b[i]
	}
	return a
}

// Closing is the summary of an ended instance whose facts were deleted.
type Closing struct {
	_          struct{} `cbor:",toarray"`
	Instance   workflow.InstanceID
	Definition workflow.Hash
	Workflow   workflow.Name
	Version    int
	State      workflow.InstanceState
	By         workflow.PartnerID // who began it
	Started    int64              // ms, the initiator's clock
	Ended      int64              // ms, the clock of whoever ended it, as the signer knew
	Closed     int64              // ms, the signer's: when the facts were deleted
	// Number and Digest tell which facts there were: how many, and a digest of the
	// heads of their chains.
	Number uint64
	Digest Digest
	// With are partners that took part, Others how many more did.
	With   []workflow.PartnerID
	Others int
	Signer workflow.PartnerID
	Sig    []byte
}

// Encode is c as it is kept, and shown to partners.
func (c Closing) Encode() []byte { return codec.Encode(c) }

func (c Closing) signed() []byte {
	c.Sig = nil
	return codec.Encode(c)
}

// Verify reads a summary and checks that by signed it.
func Verify(b []byte, by workflow.PartnerID) (c Closing, err error) {
	if err := cbor.Unmarshal(b, &c); err != nil {
		return c, err
	}
	if c.Signer != by || len(c.With) > maxWith {
		return c, fmt.Errorf("a summary by %s with %d names", c.Signer, len(c.With))
	}
	return c, trust.Verify(by, domain, c.signed(), c.Sig)
}

// forgotten is what is kept of an instance whose summary is forgotten, beside its ID.
type forgotten struct {
	_       struct{}           `cbor:",toarray"`
	By      workflow.PartnerID // who began it
	Started int64              // ms, the initiator's clock
}

// read reads a stored summary. Of one that was forgotten, who began it and when
// is left beside the ID; of one that cannot be read, the ID.
func read(id workflow.InstanceID, b []byte) Closing {
	var c Closing
	if codec.Decode(b, &c) == nil {
		return c
	}
	var f forgotten
	if codec.Decode(b, &f) != nil {
		f = forgotten{}
	}
	return Closing{Instance: id, By: f.By, Started: f.Started}
}
