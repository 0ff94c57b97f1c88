package trust

import (
	"fmt"
	"strings"

	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/membership/internal/codec"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Notice says of a workflow definition that its author lists it, or that it is
// listed no more. The notices of one definition by one author are numbered from 1 in
// steps of one, so that nobody can make a later one impossible by a great number:
// a partner that shows the last shows all before it.
//
// The author alone lists it; the author, the founder and delegates take it off the
// list.
type Notice struct {
	Mesh       MeshID             `cbor:"1,keyasint"`
	Definition workflow.Hash      `cbor:"2,keyasint"`
	Name       workflow.Name      `cbor:"3,keyasint"` // of the workflow
	Author     workflow.PartnerID `cbor:"4,keyasint"`
	Number     uint64             `cbor:"5,keyasint"`
	Removed    bool               `cbor:"6,keyasint,omitempty"`
	At         Wall               `cbor:"7,keyasint"`
	Issuer     workflow.PartnerID `cbor:"8,keyasint"`
	Chain      Chain              `cbor:"9,keyasint,omitempty"` // the issuer's; none for the founder
	Signature  []byte             `cbor:"10,keyasint,omitempty"`
}

const noticeDomain = "notice"

const (
	// MaxNotices bounds how often one author's definition is listed and taken off.
	MaxNotices = 32
	// MaxNotice is the greatest encoded notice, in bytes.
	MaxNotice = 2*MaxCertificate + 1024
)

// body is what is signed.
func (n Notice) body() []byte {
	n.Signature = nil
	return codec.Encode(n)
}

// EncodeNotice writes n for DecodeNotice.
func EncodeNotice(n Notice) []byte { return codec.Encode(n) }

// DecodeNotice reads a notice; [Notice.Verify] judges it.
func DecodeNotice(b []byte) (Notice, error) {
	var n Notice
	if err := codec.Decode("notice", b, MaxNotice, &n); err != nil {
		return Notice{}, err
	}
	return n, nil
}

// Administers reports whether the issuer shows that it is the founder or a delegate of
// mesh m. Whether a delegate was evicted since is for the caller to find out.
func (n Notice) Administers(m Mesh) bool {
	return n.Issuer == m.Founder || n.Chain.Leaf().Delegate
}

// Verify checks that n is well-formed, of mesh m, and by one who may say it. A
// notice stays in force when its issuer's certificate runs out, so it is held
// against the moment that it states.
func (n Notice) Verify(m Mesh) error {
	switch {
	case n.Mesh != m.ID():
		return fmt.Errorf("notice %w: %s, this one is %s", ErrWrongMesh, n.Mesh.Short(), m.Name)
	case !ValidListed(n.Name):
		return BadName("workflow", string(n.Name))
	case n.Number == 0 || n.Number > MaxNotices:
		return fmt.Errorf("notice %d of workflow %s: want 1 to %d", n.Number, n.Name, MaxNotices)
	case n.At < 0 || n.At > maxWall:
		return fmt.Errorf("notice of workflow %s at second %d: want the years 1970 to 9999", n.Name, int64(n.At))
	case n.Removed == (n.Number%2 == 1):
		return fmt.Errorf("notice %d of workflow %s: odd ones list it, even ones take it off", n.Number, n.Name)
	}
	if _, err := PublicKey(n.Author); err != nil {
		return err
	}
	if err := n.verifyIssuer(m); err != nil {
		return err
	}
	return Verify(n.Issuer, noticeDomain, n.body(), n.Signature)
}

func (n Notice) verifyIssuer(m Mesh) error {
	if n.Issuer == m.Founder {
		if len(n.Chain) != 0 {
			return fmt.Errorf("notice by the founder with a certificate attached: want none")
		}
	} else {
		if err := n.Chain.Authentic(m); err != nil {
			return said.Errorf("notice by %s: %w", n.Issuer, err)
		}
		if by := n.Chain.Leaf(); by.Partner != n.Issuer || n.At < by.NotBefore || n.At > by.NotAfter {
			return said.Errorf("notice by %s at %s: want its own certificate, of that time: %w", n.Issuer, n.At,
				ErrNotAllowed)
		}
	}
	if n.Issuer != n.Author && !(n.Removed && n.Administers(m)) {
		return said.Errorf("notice by %s of what is %s's: only its author lists it, and takes it off besides the founder and delegates: %w", n.Issuer, n.Author, ErrNotAllowed)
	}
	return nil
}

// Announce signs the notice that n describes by Definition, Name, Author, Number,
// Removed and At; the rest is filled in. The moment is moved into the time for which
// the issuer's certificate is valid: the clock may be a little off.
func (i Issuer) Announce(n Notice) (Notice, error) {
	n.Mesh, n.Issuer, n.Chain, n.Signature = i.Mesh.ID(), i.ID(), nil, nil
	if !i.IsFounder() {
		n.Chain = i.Chain
		n.At = min(max(n.At, i.Chain.Leaf().NotBefore), i.Chain.Leaf().NotAfter)
	}
	n.Signature = Sign(i.Key, noticeDomain, n.body())
	return n, n.Verify(i.Mesh)
}

// ValidListed reports whether something may be listed under a name: a workflow under its own, a model or an
// application by itself as model/NAME or application/NAME.
func ValidListed(name workflow.Name) bool {
	if kind, of, piece := strings.Cut(string(name), "/"); piece {
		return (kind == string(workflow.PieceModel) || kind == string(workflow.PieceApplication)) &&
			workflow.ValidName(of)
	}
	return workflow.ValidName(string(name))
}
