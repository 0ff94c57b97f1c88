package invitation

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/internal/codec"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Joining takes two round trips, which may pass through others who relay:
//
//	joiner                                 issuer of the invitation
//	  Hello{invitation, joiner, nonce}  ->
//	                                    <-  Offer{mesh, issuer's chain, both nonces} signed by the issuer
//	  the chain leads to the founder that
//	  the invitation promised: now prove
//	  Proof{name, HMAC(secret, …)}      ->
//	    signed by the joiner                the secret fits this offer: count a use and
//	                                        issue the certificate in one transaction
//	                                    <-  Welcome{chain, what the mesh knows}
//
// The joiner sends nothing derived from the secret before it has verified
// that the issuer belongs to the mesh; the issuer tells nothing but its own
// certificate before the proof. Both nonces are fresh for each attempt, so a
// recorded message is worth nothing. A certificate is good only for the key
// that signed the proof, so nobody who relays gains anything.

// Nonce is drawn at random for one attempt to join.
type Nonce [16]byte

// Hello asks the issuer of an invitation for its credentials.
type Hello struct {
	Invitation InvitationID       `cbor:"1,keyasint"`
	Joiner     workflow.PartnerID `cbor:"2,keyasint"`
	Nonce      Nonce              `cbor:"3,keyasint"`
}

// Offer shows a joiner who the issuer is, and challenges it.
type Offer struct {
	Hello     Hello       `cbor:"1,keyasint"`
	Mesh      trust.Mesh  `cbor:"2,keyasint"`
	Chain     trust.Chain `cbor:"3,keyasint,omitempty"` // the issuer's; none for the founder's own key
	Nonce     Nonce       `cbor:"4,keyasint"`
	Signature []byte      `cbor:"5,keyasint,omitempty"`
}

// Proof shows that the joiner holds the invitation's secret and its own key.
type Proof struct {
	Name      string            `cbor:"1,keyasint"` // what the joiner wants to be called
	MAC       [sha256.Size]byte `cbor:"2,keyasint"`
	Signature []byte            `cbor:"3,keyasint,omitempty"`
}

// Welcome makes the joiner a member and brings it up to date. Each part
// carries its own proof: certificates, evictions and records are signed.
type Welcome struct {
	Chain     trust.Chain         `cbor:"1,keyasint"`
	Evictions []trust.Eviction    `cbor:"2,keyasint,omitempty"`
	Records   []membership.Record `cbor:"3,keyasint,omitempty"`
}

const (
	offerDomain = "join-offer"
	proofDomain = "join-proof"
	maxJoin     = (trust.MaxChain + 1) * trust.MaxCertificate
)

func (o Offer) body() []byte {
	o.Signature = nil
	return codec.Encode(o)
}

// under is what proves p under offer o: the offer, which names the mesh and
// both nonces, the issuer, the joiner, and the name asked for.
func (p Proof) under(o Offer, issuer workflow.PartnerID) []byte {
	return codec.Encode([]any{o.body(), string(issuer), string(o.Hello.Joiner), p.Name})
}

// sum is the keyed hash of msg, domain-separated like a signature.
func (s Secret) sum(msg []byte) [sha256.Size]byte {
	mac := hmac.New(sha256.New, s[:])
	mac.Write(trust.InDomain(proofDomain, msg))
	return [sha256.Size]byte(mac.Sum(nil))
}

// NewHello begins joining by inv as the partner with key. nonce is random.
func NewHello(inv Invitation, joiner workflow.PartnerID, nonce Nonce) Hello {
	return Hello{Invitation: inv.Secret.ID(), Joiner: joiner, Nonce: nonce}
}

// NewOffer answers h as an issuer. nonce is random; the offer is kept until the proof comes
// and is good for one proof only.
func NewOffer(by trust.Issuer, h Hello, nonce Nonce) (Offer, error) {
	if _, err := trust.PublicKey(h.Joiner); err != nil {
		return Offer{}, err
	}
	o := Offer{Hello: h, Mesh: by.Mesh, Nonce: nonce}
	if !by.IsFounder() {
		o.Chain = by.Chain
	}
	o.Signature = trust.Sign(by.Key, offerDomain, o.body())
	return o, nil
}

// Prove verifies that o answers h and comes from the issuer and the mesh that
// inv promised, then proves the secret and the joiner's key. at is the
// joiner's wall clock. name is what the joiner wants to be called.
func Prove(inv Invitation, h Hello, o Offer, key ed25519.PrivateKey, name string, at time.Time) (Proof, error) {
	if !workflow.ValidName(name) {
		return Proof{}, trust.BadName("partner", name)
	}
	if o.Hello != h {
		return Proof{}, fmt.Errorf("offer answers another request than ours: try again")
	}
	if err := inv.vouches(o, at); err != nil {
		return Proof{}, fmt.Errorf("invitation to %s: %w", inv.MeshName, err)
	}
	p := Proof{Name: name}
	msg := p.under(o, inv.Issuer)
	p.MAC = inv.Secret.sum(msg)
	p.Signature = trust.Sign(key, proofDomain, msg)
	return p, nil
}

// vouches verifies the founder and the issuer that o shows.
func (inv Invitation) vouches(o Offer, at time.Time) error {
	if o.Mesh.ID() != inv.Mesh || o.Mesh.Name != inv.MeshName {
		return said.Errorf("%s showed the founder of another mesh: %w", inv.Issuer, trust.ErrWrongMesh)
	}
	if inv.Issuer != o.Mesh.Founder {
		if err := o.Chain.Verify(o.Mesh, at, nil); err != nil {
			return err
		}
		if by := o.Chain.Leaf(); by.Partner != inv.Issuer || !by.Delegate {
			return said.Errorf("%s showed the certificate of %s, which does not let it invite: %w", inv.Issuer, by.Name,
				trust.ErrNotAllowed)
		}
	}
	return trust.Verify(inv.Issuer, offerDomain, o.body(), o.Signature)
}

// verify checks that p is by the joiner, in answer to o of that issuer, with secret s.
func (p Proof) verify(issuer workflow.PartnerID, o Offer, s Secret) error {
	if !workflow.ValidName(p.Name) {
		return trust.BadName("partner", p.Name)
	}
	msg := p.under(o, issuer)
	if want := s.sum(msg); !hmac.Equal(want[:], p.MAC[:]) {
		return said.Errorf("%s does not hold the invitation's secret: %w", o.Hello.Joiner, trust.ErrForged)
	}
	return trust.Verify(o.Hello.Joiner, proofDomain, msg, p.Signature)
}

// Accept verifies that w makes the partner with key a member of the mesh that
// o showed. at is the joiner's wall clock. What else w brings is given to
// [trust.Revocations.Add] and [membership.List.Apply], which judge it.
func Accept(o Offer, key ed25519.PrivateKey, w Welcome, at time.Time) error {
	if err := w.Chain.Verify(o.Mesh, at, nil); err != nil {
		return err
	}
	if me := trust.IDOf(key.Public().(ed25519.PublicKey)); w.Chain.Leaf().Partner != me {
		return said.Errorf("welcome is for %s, not for %s", w.Chain.Leaf().Partner, me)
	}
	return nil
}

// EncodeHello writes h for DecodeHello.
func EncodeHello(h Hello) []byte { return codec.Encode(h) }

// DecodeHello reads the first message to an issuer.
func DecodeHello(b []byte) (Hello, error) {
	var h Hello
	err := codec.Decode("request to join", b, maxJoin, &h)
	return h, err
}

// EncodeOffer writes o for DecodeOffer.
func EncodeOffer(o Offer) []byte { return codec.Encode(o) }

// DecodeOffer reads an issuer's offer; [Prove] judges it.
func DecodeOffer(b []byte) (Offer, error) {
	var o Offer
	err := codec.Decode("offer to join", b, maxJoin, &o)
	return o, err
}

// EncodeProof writes p for DecodeProof.
func EncodeProof(p Proof) []byte { return codec.Encode(p) }

// DecodeProof reads a joiner's proof; [InviteBook.Redeem] judges it.
func DecodeProof(b []byte) (Proof, error) {
	var p Proof
	err := codec.Decode("proof of an invitation", b, maxJoin, &p)
	return p, err
}

// EncodeWelcome writes w for DecodeWelcome.
func EncodeWelcome(w Welcome) []byte { return codec.Encode(w) }

// DecodeWelcome reads an issuer's last message; [Accept] judges it.
func DecodeWelcome(b []byte) (Welcome, error) {
	var w Welcome
	err := codec.Decode("welcome", b, MaxWelcome, &w)
	return w, err
}
